//! The limits on failures, as in batch/v1 Job: `backoffLimitPerIndex` of a task, `backoffLimit` and `maxFailedIndexes`
//! of a job, the rules of `podFailurePolicy`, and which failures count.

use super::Found;
use crate::plan::Outcome;
use crate::snapshot::{
    AttemptSnapshot, AttemptState, Conclusion, FailureRule, JobSnapshot, TaskSnapshot,
};
use crate::time::Instant;

/// Whether the task fails for good. `awaited` is the number of its attempts that have not ended and are not abandoned.
///
/// A stopped attempt that still exists may yet turn out to have succeeded, so the task's result waits for it. `decide`
/// launches no retry for such a task meanwhile. An abandoned attempt may exist for days.
pub(super) fn fails_task(
    job: &JobSnapshot,
    task: &TaskSnapshot,
    failures: u32,
    awaited: usize,
) -> bool {
    let is_spent = awaited == 0 && failures > job.rules.backoff_limit_per_index;
    is_spent || fails_by_rule(task)
}

/// The limit that the failures of the job exceed, if there is one.
pub(super) fn fails_job(job: &JobSnapshot, found: &Found) -> Option<Conclusion> {
    let rules = &job.rules.ending;
    let failed = job.failed.len() as usize + found.failed;
    let failures = job.failures.saturating_add(found.failures);
    if found.fails_job {
        Some(Conclusion::PodFailurePolicy)
    } else if rules.backoff_limit.is_some_and(|max| failures > max) {
        Some(Conclusion::BackoffLimit)
    } else if rules
        .failed_tasks_max
        .is_some_and(|max| failed > max as usize)
    {
        Some(Conclusion::MaxFailedIndexes)
    } else {
        None
    }
}

/// Whether an attempt failed in a way after which its task must not be tried again, although a sibling of it may
/// still run.
pub(super) fn fails_by_rule(task: &TaskSnapshot) -> bool {
    task.attempts.iter().any(|attempt| {
        attempt.kill.is_none()
            && attempt.failure_rule == Some(FailureRule::FailTask)
            && matches!(
                attempt.state,
                AttemptState::Failed {
                    disrupted: false,
                    ..
                }
            )
    })
}

/// The bucket of a failed attempt. While a sibling lives, a failure does not count against a limit, unless a rule of
/// `podFailurePolicy` matches it.
pub(super) fn failure(
    task: &TaskSnapshot,
    attempt: &AttemptSnapshot,
    finished: Instant,
) -> Outcome {
    let is_final = attempt.failure_rule.is_some();
    if !is_final && is_outlived(task, attempt, finished) {
        Outcome::CloneFailed
    } else {
        Outcome::Failed
    }
}

/// Whether a sibling lived when this attempt failed. Siblings that failed later count, so that the result is the same
/// whether one pass or two see both failures.
fn is_outlived(task: &TaskSnapshot, attempt: &AttemptSnapshot, failed_at: Instant) -> bool {
    task.attempts
        .iter()
        .filter(|sibling| sibling.number != attempt.number && sibling.kill.is_none())
        .any(|sibling| match sibling.state {
            AttemptState::Failed { finished, .. } | AttemptState::Succeeded { finished } => {
                (finished, sibling.number) > (failed_at, attempt.number)
            }
            AttemptState::Lost => false,
            AttemptState::Launching
            | AttemptState::Pending
            | AttemptState::Stuck { .. }
            | AttemptState::Running => true,
        })
}
