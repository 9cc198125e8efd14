//! Writes of a ledger without an answer: whether one was carried out shows only later, and what it
//! would have announced is announced then.

use std::hash::{DefaultHasher, Hasher};

use super::status::Blocked;
use super::step::Notice;
use super::{events, record};
use crate::api::Ledger;
use crate::api::{DeadlineJob, DeadlineJobStatus};
use crate::context::Context;
use crate::validate::ValidatedJob;

/// Writes without an answer that are remembered of a job, the latest.
const REMEMBERED: usize = 4;

/// A write of which it is not known whether it was carried out.
#[derive(Clone, Debug)]
pub struct Unanswered {
    /// The status before it, without its ledger.
    before: DeadlineJobStatus,
    /// What was written.
    digest: u64,
    /// What keeps attempts from starting.
    blocked: Option<Blocked>,
    /// What the step did.
    notices: Vec<Notice>,
}

impl Unanswered {
    /// A write of `sent` over `before`.
    pub(super) fn new(
        before: &DeadlineJobStatus,
        sent: &DeadlineJobStatus,
        blocked: Option<&Blocked>,
        notices: &[Notice],
    ) -> Self {
        Self {
            before: DeadlineJobStatus {
                conditions: before.conditions.clone(),
                ..DeadlineJobStatus::default()
            },
            digest: digest(sent),
            blocked: blocked.cloned(),
            notices: notices.to_vec(),
        }
    }

    /// Remembers it with those before.
    pub(super) fn remember(self, all: &mut Vec<Self>) {
        all.push(self);
        let surplus = all.len().saturating_sub(REMEMBERED);
        all.drain(..surplus);
    }
}

fn digest(status: &DeadlineJobStatus) -> u64 {
    let mut hasher = DefaultHasher::new();
    // What can't be written as JSON was not written either.
    hasher.write(&serde_json::to_vec(status).unwrap_or_default());
    hasher.finish()
}

/// Announces what a write without an answer would have announced, once the job's status shows that
/// it was carried out.
pub(super) fn announce(context: &Context, owner: &DeadlineJob, job: &ValidatedJob, book: &Ledger) {
    let found = context.memos.with(&job.uid, |memo| {
        if memo.unanswered.is_empty() {
            return None;
        }
        let shown = digest(owner.status.as_ref()?);
        let mut all = memo.unanswered.iter();
        let at = all.position(|unanswered| unanswered.digest == shown)?;
        // Those before it can't have been carried out, those after it would have had to build on it.
        let found = memo.unanswered.swap_remove(at);
        memo.unanswered.clear();
        Some(found)
    });
    if let Some(found) = found {
        record::announce(context, owner, &found.before, found.blocked.as_ref());
        events::announce(context, owner, job, book, &found.notices);
    }
}
