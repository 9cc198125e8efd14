//! Changes of pods and jobs from which nothing but the status follows that users read, so the job's next reconcile may
//! wait for more. Most changes are of this kind: a pod is created, gets a node, runs, or is released.

use crate::cluster::index::PodIndex;
use crate::cluster::pod::{AttemptFacts, PodFacts, Stage};
use crate::cluster::watched_job::WatchedJob;

/// Whether nothing but the status follows from a change of a pod. `index` has the pod as it is now.
pub(super) fn is_status_only(index: &PodIndex, before: Option<&PodFacts>, pod: &PodFacts) -> bool {
    let Some(attempt) = &pod.attempt else {
        return false;
    };
    let before = before.and_then(|before| before.attempt.as_deref());
    let was_deleting = before.is_some_and(|before| before.deleting);
    if attempt.deleting && !was_deleting {
        return false;
    }
    match &attempt.stage {
        // It may have been created while a sibling won, and must stop then.
        Stage::Pending | Stage::Running => !siblings(index, pod, attempt).any(has_won),
        Stage::Stuck { .. } => before.is_some_and(|before| before.stage == attempt.stage),
        Stage::Succeeded { .. } => has_ended(before) || others_run(index, pod, attempt),
        Stage::Failed { .. } => has_ended(before),
    }
}

fn has_ended(attempt: Option<&AttemptFacts>) -> bool {
    attempt.is_some_and(|attempt| {
        matches!(
            attempt.stage,
            Stage::Succeeded { .. } | Stage::Failed { .. }
        )
    })
}

/// Whether the pod's attempt has succeeded.
pub(super) fn has_won(pod: &PodFacts) -> bool {
    let attempt = pod.attempt.as_deref();
    attempt.is_some_and(|attempt| matches!(attempt.stage, Stage::Succeeded { .. }))
}

/// The pods of the task's other attempts.
fn siblings<'i>(
    index: &'i PodIndex,
    pod: &PodFacts,
    attempt: &AttemptFacts,
) -> impl Iterator<Item = &'i PodFacts> {
    let (task, number) = (attempt.task, attempt.number);
    let owner = pod.identity.owner.as_ref();
    let pods = owner.and_then(|owner| index.by_owner.get(owner));
    let of_task = pods
        .into_iter()
        .flat_map(move |pods| pods.range((task, 0)..=(task, u32::MAX)));
    let others = of_task.filter(move |(id, _)| id.1 != number);
    others.map(|(_, sibling)| &**sibling)
}

/// Whether other tasks of the job run and none of the pod's siblings does: its end stops no attempt and ends no job.
fn others_run(index: &PodIndex, pod: &PodFacts, attempt: &AttemptFacts) -> bool {
    let Some(owner) = &pod.identity.owner else {
        return false;
    };
    let running = index.open.get(owner).map_or(0, |tally| tally.running);
    running > 0 && siblings(index, pod, attempt).all(|sibling| sibling.terminal)
}

/// Whether nothing but the status follows from a change of a job: only its status is another one, which shed itself
/// writes and remembers. A new job counts too, because the planner names it with its first launches, and the two share
/// a write.
pub(super) fn is_status_only_job(before: Option<&WatchedJob>, job: &WatchedJob) -> bool {
    let (before, job) = match (before, job) {
        (Some(WatchedJob::Live(before, _)), WatchedJob::Live(job, _)) => (before, job),
        (None, WatchedJob::Live(job, _)) => return job.status.is_none(),
        _ => return false,
    };
    let (before, now) = (&before.metadata, &job.metadata);
    before.uid == now.uid
        && before.generation == now.generation
        && before.deletion_timestamp == now.deletion_timestamp
        && before.labels == now.labels
        && before.finalizers == now.finalizers
        && before.owner_references == now.owner_references
}

#[cfg(test)]
mod tests;
