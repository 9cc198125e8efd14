//! Writes of a ledger without an answer.

use std::hash::{DefaultHasher, Hasher};

use crate::api::DeadlineJobStatus;
use crate::job::notice::Notice;
use crate::job::verdict::DeadlineVerdict;

/// Writes without an answer that are remembered of a job, the latest.
const REMEMBERED: usize = 4;

/// A write with an unknown outcome.
#[derive(Clone, Debug)]
pub struct UnansweredWrite {
    /// The status before it, without its ledger.
    pub(crate) before: DeadlineJobStatus,
    /// Digest of the written status.
    digest: u64,
    /// The verdict on the deadline, if there was one.
    pub(crate) verdict: Option<DeadlineVerdict>,
    /// Notices of the step.
    pub(crate) notices: Vec<Notice>,
}

impl UnansweredWrite {
    /// A write of `sent` over `before`.
    pub(crate) fn new(
        before: &DeadlineJobStatus,
        sent: &DeadlineJobStatus,
        verdict: Option<DeadlineVerdict>,
        notices: &[Notice],
    ) -> Self {
        Self {
            before: DeadlineJobStatus {
                conditions: before.conditions.clone(),
                ..DeadlineJobStatus::default()
            },
            digest: digest(sent),
            verdict,
            notices: notices.to_vec(),
        }
    }

    /// Position of the write that this status contains.
    pub(crate) fn position(all: &[Self], shown: &DeadlineJobStatus) -> Option<usize> {
        let shown = digest(shown);
        all.iter().position(|unanswered| unanswered.digest == shown)
    }

    /// Remembers it with those before.
    pub(crate) fn remember(self, all: &mut Vec<Self>) {
        all.push(self);
        let surplus = all.len().saturating_sub(REMEMBERED);
        all.drain(..surplus);
    }
}

fn digest(status: &DeadlineJobStatus) -> u64 {
    let mut hasher = DefaultHasher::new();
    // A status that cannot be encoded as JSON was not written either.
    hasher.write(&serde_json::to_vec(status).unwrap_or_default());
    hasher.finish()
}
