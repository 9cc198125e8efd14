//! The state of a task when a launch is considered.

use crate::snapshot::{AttemptSnapshot, AttemptState, JobSnapshot, TaskSnapshot};
use crate::time::Instant;

/// The state of a task when a launch is considered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaskState {
    /// The task has a winner or has failed for good.
    Ended,
    /// An attempt succeeded, and `settle` will record it as the winner; or an attempt is publishing and must be left
    /// alone.
    Succeeded,
    /// An attempt has ended, and `settle` must count it first.
    Unsettled,
    /// An attempt lives.
    Live,
    /// The task must not be retried before this time.
    BackOff(Instant),
    /// An attempt of the task may still exist, and must be gone before another one is launched.
    NotGone,
    /// The task waits for an attempt.
    Ready,
}

/// The state of the task.
pub(crate) fn task_state(now: Instant, job: &JobSnapshot, task: &TaskSnapshot) -> TaskState {
    let succeeded = |attempt: &AttemptSnapshot| {
        attempt.kill.is_none() && matches!(attempt.state, AttemptState::Succeeded { .. })
    };
    if task.winner.is_some() || job.has_ended(task.index) {
        TaskState::Ended
    } else if task.attempts.iter().any(succeeded) || task.live_grant().is_some() {
        TaskState::Succeeded
    } else if task.live().next().is_some() {
        TaskState::Live
    } else if task.failures > job.rules.backoff_limit_per_index
        || task
            .attempts
            .iter()
            .any(|attempt| !attempt.holds_capacity())
    {
        TaskState::Unsettled
    } else if job.rules.waits_until_gone() && !task.attempts.is_empty() {
        TaskState::NotGone
    } else {
        match task.retry_not_before {
            Some(until) if until > now => TaskState::BackOff(until),
            _ => TaskState::Ready,
        }
    }
}

/// Whether the task counts against the job's `parallelism`. It does with a live attempt. Where two attempts must
/// never exist at once, it does with one that may still exist.
pub(crate) fn is_active(job: &JobSnapshot, task: &TaskSnapshot) -> bool {
    let never_two = job.rules.waits_until_gone();
    let holds = |attempt: &AttemptSnapshot| never_two && attempt.holds_capacity();
    task.attempts
        .iter()
        .any(|attempt| attempt.lives() || holds(attempt))
}
