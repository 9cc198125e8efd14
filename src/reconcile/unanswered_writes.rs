//! Writes of a ledger without an answer. Their outcome shows only later, and so do their
//! announcements.

use crate::api::{DeadlineJob, Ledger};
use crate::context::unanswered_writes::UnansweredWrite;
use crate::reconcile::context::ReconcileContext;
use crate::reconcile::{events, record};
use crate::validate::ValidatedJob;

/// Announces the effects of a write without an answer, once the job's status shows that it was
/// carried out.
pub(super) fn announce(
    context: &ReconcileContext,
    owner: &DeadlineJob,
    job: &ValidatedJob,
    ledger: &Ledger,
) {
    let found = context.job_memories.with(&job.uid, |memory| {
        if memory.reconcile.unanswered.is_empty() {
            return None;
        }
        let shown = owner.status.as_ref()?;
        let at = UnansweredWrite::position(&memory.reconcile.unanswered, shown)?;
        // Those before it can't have been carried out, those after it would have had to build on it.
        let found = memory.reconcile.unanswered.swap_remove(at);
        memory.reconcile.unanswered.clear();
        Some(found)
    });
    if let Some(found) = found {
        record::announce(context, owner, &found.before, found.verdict);
        events::announce(context, owner, job, ledger, &found.notices);
    }
}
