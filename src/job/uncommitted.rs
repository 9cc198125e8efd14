//! Attempts that ended with exit code 0 without requesting the commit grant of a fence. They count as failed. Pure.

use shed_core::ids::TaskIndex;
use shed_core::snapshot::Idempotency;

use crate::cluster::pod::Stage;
use crate::job::view::JobView;

/// Whether an attempt of a task without a winner did so.
pub fn any(view: &JobView) -> bool {
    let is_uncommitted = |id: &(u32, u32)| {
        let entry = view.ledger.tasks.get(&id.0);
        let grant = entry.and_then(|entry| entry.grant.as_ref());
        !view.ledger.done.contains(TaskIndex(id.0))
            && grant.is_none_or(|grant| grant.attempt != id.1)
    };
    view.job.rules.idempotency == Idempotency::Fenced
        && view.pods.iter().any(|(id, pod)| {
            let attempt = pod.attempt.as_deref();
            // shed deletes what it stops, and an exit with 0 is then no claim to be done.
            attempt.is_some_and(|attempt| {
                matches!(attempt.stage, Stage::Succeeded { .. }) && !attempt.deleting
            }) && is_uncommitted(id)
        })
}
