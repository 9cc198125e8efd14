//! What one job's facts alone force, at once: winners, losers, counted ends, the job's end.
//! Level-triggered: from the same facts follow the same actions, and once they are applied
//! to the ledger nothing follows any more. It never launches anything and never looks at
//! other jobs or at capacity.

use crate::ids::AttemptNumber;
use crate::plan::{Action, Kill, Outcome};
use crate::snapshot::{
    AttemptSnapshot, AttemptState, Conclusion, JobPhase, JobSnapshot, KillKind, OnMiss,
    TaskSnapshot,
};
use crate::time::{Instant, Span};

/// How long an attempt may be stuck before it is replaced: image pulls and mounts fail for
/// a moment on a healthy cluster too.
pub const STUCK_GRACE: Span = Span::from_seconds(5);

/// How long after the deadline facts must reach before a job is ended for it: container
/// times have whole seconds, so a finish in time may carry a stamp of the next second.
pub const DEADLINE_GRACE: Span = Span::from_seconds(1);

/// The resolution of a container's end: a stamp says only in which second it ended.
const STAMP: Span = Span::from_seconds(1);

/// What the job's facts force now: wins, counts and failed tasks first, then the end of the
/// job, then kills. The executor makes every record durable in one write before any delete.
#[must_use]
pub fn settle(now: Instant, job: &JobSnapshot) -> Vec<Action> {
    let mut actions = Vec::new();
    settle_tasks(now, job, job.tasks.iter(), &mut actions);
    actions
}

/// The same for an active job of which only these tasks have facts that were not settled yet,
/// ascending: the verdict on a task depends on that task and on the job's counts alone, so that
/// the other tasks need not be read. Whoever carries out an [`Action::End`] must settle the job
/// as a whole after it.
pub fn settle_tasks<'a>(
    now: Instant,
    job: &JobSnapshot,
    tasks: impl Iterator<Item = &'a TaskSnapshot> + Clone,
    actions: &mut Vec<Action>,
) {
    let mut found = Found::default();
    for task in tasks.clone() {
        settle_task(job, task, &mut found, actions);
    }
    let ending = end_of_job(job, &found, actions);
    for task in tasks {
        kill_in_task(now, job, task, ending, actions);
    }
}

/// When `settle` must be called again though nothing happens: at the deadline (executors
/// record a miss there too), when facts must reach beyond it, when a stuck attempt's grace
/// ends. Waiting for retries is the planner's.
#[must_use]
pub fn settle_wake(now: Instant, job: &JobSnapshot) -> Option<Instant> {
    if job.phase != JobPhase::Active {
        return None;
    }
    let deadline = job.deadline.filter(|&deadline| deadline > now);
    let stop = job
        .deadline
        .filter(|_| job.rules.on_miss == OnMiss::Fail)
        .map(|deadline| deadline.plus(DEADLINE_GRACE))
        .filter(|&stop| job.facts_as_of < stop)
        // Already past, but the facts lag behind: time alone won't help, so no hot loop.
        .map(|stop| {
            if stop > now {
                stop
            } else {
                now.plus(DEADLINE_GRACE)
            }
        });
    let stuck = job.tasks.iter().flat_map(TaskSnapshot::live);
    let stuck = stuck.filter_map(|attempt| match attempt.state {
        AttemptState::Stuck { since } => Some(since.plus(STUCK_GRACE)),
        _ => None,
    });
    deadline.into_iter().chain(stop).chain(stuck).min()
}

/// What a pass found out about its tasks.
#[derive(Default)]
struct Found {
    won: usize,
    failed: usize,
    /// Attempts whose end is still to come.
    remaining: usize,
}

/// The task's winner: recorded before, or found now and then with its finish.
fn winner(
    job: &JobSnapshot,
    task: &TaskSnapshot,
) -> (Option<AttemptNumber>, Option<(AttemptNumber, Instant)>) {
    let won = if task.winner.is_some() || job.has_ended(task.index) {
        None
    } else {
        first_success(job, task)
    };
    (task.winner.or(won.map(|(attempt, _)| attempt)), won)
}

fn settle_task(
    job: &JobSnapshot,
    task: &TaskSnapshot,
    found: &mut Found,
    actions: &mut Vec<Action>,
) {
    let (winner, won) = winner(job, task);
    if let Some((attempt, finished)) = won {
        found.won += 1;
        actions.push(Action::Win {
            task: task.index,
            attempt,
            finished,
        });
    }
    let mut failures = task.failures;
    let mut remaining = 0;
    for attempt in task.attempts.iter().filter(|a| Some(a.number) != winner) {
        let Some(outcome) = outcome(job, task, attempt, winner.is_some()) else {
            remaining += 1;
            continue;
        };
        failures += u32::from(outcome == Outcome::Failed);
        actions.push(Action::Count {
            task: task.index,
            attempt: attempt.number,
            outcome,
        });
    }
    found.remaining += remaining;
    // A killed attempt that is still there may yet turn out to have succeeded, so the task's
    // fate waits for it; `decide` launches no retry for such a task meanwhile.
    if winner.is_none()
        && remaining == 0
        && failures > job.rules.backoff_limit
        && job.phase == JobPhase::Active
        && !job.has_ended(task.index)
    {
        found.failed += 1;
        actions.push(Action::FailTask { task: task.index });
    }
}

/// The attempt that wins: the earliest finish, then the lowest number, so that a restarted
/// operator picks the same one. A kill record alone does not matter: a pod that had succeeded
/// before shed decided to kill it has done the work, and nobody else has won.
fn first_success(job: &JobSnapshot, task: &TaskSnapshot) -> Option<(AttemptNumber, Instant)> {
    task.attempts
        .iter()
        .filter_map(|attempt| match attempt.state {
            AttemptState::Succeeded { finished }
                if !is_late(job, finished) && !is_killed_before(attempt, finished) =>
            {
                Some((finished, attempt.number))
            }
            _ => None,
        })
        .min()
        .map(|(finished, number)| (number, finished))
}

fn is_late(job: &JobSnapshot, finished: Instant) -> bool {
    job.rules.on_miss == OnMiss::Fail && job.deadline.is_some_and(|deadline| finished > deadline)
}

/// Whether the end may be an answer to the kill: a task that traps SIGTERM and exits with 0 has
/// not done its work. An end stamped with the kill's own second is in doubt, and doing a task
/// twice is better than taking half of it for the whole.
fn is_killed_before(attempt: &AttemptSnapshot, finished: Instant) -> bool {
    attempt.kill.is_some()
        && attempt
            .killed_at
            .is_none_or(|killed_at| finished.plus(STAMP) > killed_at)
}

/// The bucket of an attempt that is not the winner; absent while it has not ended.
fn outcome(
    job: &JobSnapshot,
    task: &TaskSnapshot,
    attempt: &AttemptSnapshot,
    won: bool,
) -> Option<Outcome> {
    if attempt.holds_capacity() {
        return None;
    }
    if won || attempt.kill.is_some() {
        return Some(Outcome::Superseded);
    }
    match attempt.state {
        AttemptState::Launching
        | AttemptState::Pending
        | AttemptState::Stuck { .. }
        | AttemptState::Running => None,
        AttemptState::Succeeded { finished } if is_late(job, finished) => Some(Outcome::Late),
        // In time and yet no winner: the task had failed for good before.
        AttemptState::Succeeded { .. } => Some(Outcome::Superseded),
        AttemptState::Lost => Some(Outcome::Disrupted),
        AttemptState::Failed {
            disrupted: true, ..
        } => Some(Outcome::Disrupted),
        AttemptState::Failed { finished, .. } => Some(if is_outlived(task, attempt, finished) {
            Outcome::CloneFailed
        } else {
            Outcome::Failed
        }),
    }
}

/// Whether a sibling lived when this attempt failed. Siblings that failed later count, so
/// that it makes no difference whether both failures are seen in one pass or in two.
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

/// Pushes the job's `End` or `Finish`; true if its remaining attempts must die.
fn end_of_job(job: &JobSnapshot, found: &Found, actions: &mut Vec<Action>) -> bool {
    let total = job.rules.completions as usize;
    let done = job.done.len() as usize + found.won;
    let failed = job.failed.len() as usize + found.failed;
    match job.phase {
        JobPhase::Active => {
            let conclusion = if done >= total {
                Some(Conclusion::Complete)
            } else if done + failed >= total {
                Some(Conclusion::FailedIndexes)
            } else {
                stopped_by_deadline(job)
            };
            actions.extend(conclusion.map(Action::End));
            conclusion.is_some()
        }
        JobPhase::Ending(recorded) => {
            let late_evidence = recorded == Conclusion::DeadlineExceeded && done >= total;
            let conclusion = if late_evidence {
                Conclusion::Complete
            } else {
                recorded
            };
            if found.remaining == 0 {
                actions.push(Action::Finish(conclusion));
            }
            true
        }
    }
}

/// Suspension does not stop the deadline. A finish in time that nobody has observed yet is
/// honoured: only facts that reach beyond the deadline end a job that ever ran.
fn stopped_by_deadline(job: &JobSnapshot) -> Option<Conclusion> {
    let deadline = job.deadline?;
    if job.rules.on_miss == OnMiss::Continue {
        None
    } else if !job.launched_before && deadline <= job.submitted {
        Some(Conclusion::DeadlineInPast)
    } else if job.facts_as_of >= deadline.plus(DEADLINE_GRACE) {
        Some(Conclusion::DeadlineExceeded)
    } else {
        None
    }
}

fn kill_in_task(
    now: Instant,
    job: &JobSnapshot,
    task: &TaskSnapshot,
    ending: bool,
    actions: &mut Vec<Action>,
) {
    if task.live().next().is_none() {
        return;
    }
    let (winner, _) = winner(job, task);
    for attempt in task.live().filter(|a| Some(a.number) != winner) {
        let kind = if winner.is_some() {
            KillKind::Settle
        } else if ending {
            KillKind::JobEnd
        } else if job.rules.suspend {
            KillKind::Suspend
        } else if is_stuck_too_long(now, attempt) {
            KillKind::Replace
        } else {
            continue;
        };
        actions.push(Action::Kill(Kill {
            task: task.index,
            attempt: attempt.number,
            kind,
            survivor: winner,
        }));
    }
}

fn is_stuck_too_long(now: Instant, attempt: &AttemptSnapshot) -> bool {
    matches!(attempt.state, AttemptState::Stuck { since } if now >= since.plus(STUCK_GRACE))
}

#[cfg(test)]
mod tests;
