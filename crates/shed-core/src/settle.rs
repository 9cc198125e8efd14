//! The actions that one job's facts alone require: winners, losers, counted ends, the job's end. It is
//! level-triggered: the same facts give the same actions, and after these are applied to the ledger none remains.
//! It never launches anything and never reads other jobs or capacity.

use crate::ids::{AttemptNumber, TaskIndex};
use crate::plan::{Kill, Outcome, Settled};
use crate::snapshot::{
    AttemptKind, AttemptSnapshot, AttemptState, Conclusion, FailureRule, Idempotency, JobPhase,
    JobSnapshot, KillKind, OnMiss, TaskSnapshot,
};
use crate::time::{Instant, Span};

mod backoff_limit;
mod surplus;

/// How long an attempt may be stuck before it is replaced, because image pulls and mounts can fail briefly on a
/// healthy cluster too.
pub const STUCK_GRACE: Span = Span::from_seconds(5);

/// How long after the deadline facts must reach before a job is ended for it: container
/// times have whole seconds, so a finish in time may carry a stamp of the next second.
pub const DEADLINE_GRACE: Span = Span::from_seconds(1);

/// How long after the deadline an attempt may finish publishing if it received its commit grant in time. The state of
/// a result whose publication is stopped is unknown. After its grant, a suspension and a lowered `parallelism` leave
/// it alone for as long.
pub const COMMIT_GRACE: Span = Span::from_seconds(60);

/// The actions that the job's facts require now: wins, counts and failed tasks first, then the end of the job, then
/// kills. A job that ends without attempts left is finished at once. The executor makes every record durable in one
/// write before any delete.
pub fn settle(now: Instant, job: &JobSnapshot) -> Vec<Settled> {
    let mut actions = Vec::new();
    let found = settle_found(now, job, job.tasks.iter(), &mut actions);
    if let Some(&Settled::End(conclusion)) = actions.last()
        && found.remaining == 0
    {
        actions.push(Settled::Finish(conclusion));
    }
    surplus::kill(now, job, &mut actions);
    actions
}

/// The same for an active job where only these tasks, ascending, have facts that were not settled yet. The result for
/// a task depends only on that task and on the job's counts, so the other tasks need not be read. After a
/// [`Settled::End`] the executor must settle the whole job.
pub fn settle_tasks<'a>(
    now: Instant,
    job: &JobSnapshot,
    tasks: impl Iterator<Item = &'a TaskSnapshot> + Clone,
    actions: &mut Vec<Settled>,
) {
    settle_found(now, job, tasks, actions);
}

fn settle_found<'a>(
    now: Instant,
    job: &JobSnapshot,
    tasks: impl Iterator<Item = &'a TaskSnapshot> + Clone,
    actions: &mut Vec<Settled>,
) -> Found {
    let mut found = Found::default();
    for task in tasks.clone() {
        settle_task(job, task, &mut found, actions);
    }
    let ending = end_of_job(now, job, &found, actions);
    for task in tasks {
        kill_in_task(now, job, task, ending, actions);
    }
    found
}

/// When `settle` must be called again although nothing happens: at the deadline (executors record a miss there too),
/// when facts must extend beyond it, when a stuck attempt's grace ends. The planner handles the waits for retries.
pub fn settle_wake(now: Instant, job: &JobSnapshot) -> Option<Instant> {
    if job.phase != JobPhase::Active {
        return None;
    }
    let deadline = job.deadline.filter(|&deadline| deadline > now);
    let grace = if awaited_commits(job) > 0 && job.deadline.is_some_and(|d| now >= d) {
        COMMIT_GRACE
    } else {
        DEADLINE_GRACE
    };
    let stop = job
        .deadline
        .filter(|_| job.rules.on_miss == OnMiss::Fail)
        .map(|deadline| deadline.plus(grace))
        .filter(|&stop| job.facts_as_of < stop)
        // The time has passed, but the facts lag behind. Time alone does not help, so a hot loop is avoided.
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
    let limit = job.time_limit;
    let running = job.tasks.iter().filter(|task| task.live().next().is_some());
    let stops_some = job.rules.suspend || running.count() > job.rules.parallelism as usize;
    let publishing = job.tasks.iter().filter(|_| stops_some);
    let spared = publishing.filter_map(|task| spared_until(job, task));
    let spared = spared.filter(|&until| until > now);
    deadline
        .into_iter()
        .chain(stop)
        .chain(limit)
        .chain(stuck)
        .chain(spared)
        .min()
}

/// The time until which a suspension or a lowered `parallelism` spares the attempt that may publish the task's
/// result.
fn spared_until(job: &JobSnapshot, task: &TaskSnapshot) -> Option<Instant> {
    let is_fenced = job.rules.idempotency == Idempotency::Fenced;
    let grant = task.live_grant().filter(|_| is_fenced)?;
    Some(grant.at.plus(COMMIT_GRACE))
}

/// A pass's findings about its tasks.
#[derive(Default)]
struct Found {
    won: usize,
    /// The tasks that won, if a rule of success needs them.
    winners: Vec<TaskIndex>,
    failed: usize,
    /// Failures that are counted now.
    failures: u32,
    /// Whether one of the failures fails the job.
    fails_job: bool,
    /// Attempts that have not ended yet.
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
    actions: &mut Vec<Settled>,
) {
    let (winner, won) = winner(job, task);
    if let Some((attempt, finished)) = won {
        found.won += 1;
        if !job.rules.ending.success.is_empty() {
            found.winners.push(task.index);
        }
        actions.push(Settled::Win {
            task: task.index,
            attempt,
            finished,
        });
    }
    let mut failures = task.failures;
    let (mut remaining, mut awaited) = (0, 0);
    for attempt in task.attempts.iter().filter(|a| Some(a.number) != winner) {
        let Some(outcome) = outcome(job, task, attempt, winner.is_some()) else {
            remaining += 1;
            awaited += usize::from(attempt.kill != Some(KillKind::Abandon));
            continue;
        };
        if outcome == Outcome::Failed {
            failures += 1;
            found.failures += 1;
            found.fails_job |= attempt.failure_rule == Some(FailureRule::FailJob);
        }
        actions.push(Settled::Count {
            task: task.index,
            attempt: attempt.number,
            outcome,
        });
    }
    found.remaining += remaining;
    if winner.is_none()
        && backoff_limit::fails_task(job, task, failures, awaited)
        && job.phase == JobPhase::Active
        && !job.has_ended(task.index)
    {
        found.failed += 1;
        actions.push(Settled::FailTask { task: task.index });
    }
}

/// The attempt that wins: the earliest finish, then the lowest number, so that a restarted operator selects the same
/// one. A kill record alone does not matter: a pod that succeeded before its deletion has done the work, and no other
/// attempt has won.
///
/// With a fence only the attempt that holds the grant can win, and the grant's time counts.
fn first_success(job: &JobSnapshot, task: &TaskSnapshot) -> Option<(AttemptNumber, Instant)> {
    task.attempts
        .iter()
        .filter_map(|attempt| match attempt.state {
            AttemptState::Succeeded { finished }
                if !may_answer_a_kill(attempt) && !lacks_grant(job, task, attempt) =>
            {
                Some((done_at(task, attempt, finished), attempt.number))
            }
            _ => None,
        })
        .filter(|&(done, _)| !is_late(job, done))
        .min()
        .map(|(finished, number)| (number, finished))
}

fn lacks_grant(job: &JobSnapshot, task: &TaskSnapshot, attempt: &AttemptSnapshot) -> bool {
    job.rules.idempotency == Idempotency::Fenced && task.granted_at(attempt.number).is_none()
}

/// When the attempt's work was done: when it received its commit grant, else when it ended.
fn done_at(task: &TaskSnapshot, attempt: &AttemptSnapshot, finished: Instant) -> Instant {
    task.granted_at(attempt.number).unwrap_or(finished)
}

fn is_late(job: &JobSnapshot, finished: Instant) -> bool {
    job.rules.on_miss == OnMiss::Fail && job.deadline.is_some_and(|deadline| finished > deadline)
}

/// Whether the end may be a response to the kill: a task that traps SIGTERM and exits with 0 has not done its work.
/// Only the observation tells, because clocks cannot: the stamp of an end is from the node's clock and the kill's
/// from another. On a node that is seconds behind, every such response would be dated before the kill. If the order
/// is unknown, shed prefers to run a task twice, so that half a result never counts as complete.
///
/// The kills at the deadline are no exception. A finish in time that was not reported when they were decided would be
/// lost. Executors therefore extend the facts beyond the deadline ([`JobSnapshot::facts_as_of`]) only after reports
/// have had time to arrive.
fn may_answer_a_kill(attempt: &AttemptSnapshot) -> bool {
    attempt.kill.is_some() && attempt.ended_in_deletion
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
    let is_unwanted = task.index.0 >= job.rules.completions;
    // The node ended an abandoned attempt, not shed.
    let is_abandoned = attempt.kill == Some(KillKind::Abandon);
    let is_given_up = attempt.kill.is_some() && !is_abandoned;
    if won || is_given_up || is_unwanted {
        return Some(Outcome::Superseded);
    }
    if is_abandoned {
        return Some(Outcome::Disrupted);
    }
    match attempt.state {
        AttemptState::Launching
        | AttemptState::Pending
        | AttemptState::Stuck { .. }
        | AttemptState::Running => None,
        AttemptState::Succeeded { finished } if is_late(job, done_at(task, attempt, finished)) => {
            Some(Outcome::Late)
        }
        // The attempt never requested a commit grant, so it has published nothing.
        AttemptState::Succeeded { finished } if lacks_grant(job, task, attempt) => {
            Some(backoff_limit::failure(task, attempt, finished))
        }
        // In time but not the winner: the task had failed for good before.
        AttemptState::Succeeded { .. } => Some(Outcome::Superseded),
        AttemptState::Lost => Some(Outcome::Disrupted),
        AttemptState::Failed {
            disrupted: true, ..
        } => Some(Outcome::Disrupted),
        AttemptState::Failed { finished, .. } => {
            Some(backoff_limit::failure(task, attempt, finished))
        }
    }
}

/// Pushes the job's `End` or `Finish`; true if its remaining attempts must die.
fn end_of_job(now: Instant, job: &JobSnapshot, found: &Found, actions: &mut Vec<Settled>) -> bool {
    let total = job.rules.completions as usize;
    let done = job.done.len() as usize + found.won;
    match job.phase {
        JobPhase::Active => {
            let conclusion = conclusion(now, job, found);
            actions.extend(conclusion.map(Settled::End));
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
                actions.push(Settled::Finish(conclusion));
            }
            true
        }
    }
}

/// The result of the facts, if they end the job. Successes count before failures, and both before time.
fn conclusion(now: Instant, job: &JobSnapshot, found: &Found) -> Option<Conclusion> {
    let rules = &job.rules.ending;
    let total = job.rules.completions as usize;
    let done = job.done.len() as usize + found.won;
    let failed = job.failed.len() as usize + found.failed;
    let succeeds = || {
        let mut rules = rules.success.iter();
        rules.any(|rule| rule.is_met(&job.done, &found.winners))
    };
    if done >= total {
        Some(Conclusion::Complete)
    } else if let Some(limit) = backoff_limit::fails_job(job, found) {
        Some(limit)
    } else if succeeds() {
        Some(Conclusion::SuccessPolicy)
    } else if done + failed >= total {
        Some(Conclusion::FailedIndexes)
    } else if job.time_limit.is_some_and(|limit| now >= limit) {
        Some(Conclusion::TimeLimit)
    } else {
        stopped_by_deadline(job, total - done - failed)
    }
}

/// Suspension does not stop the deadline. A finish in time may not have been observed yet, so only facts that extend
/// beyond the deadline end a job that ever ran.
///
/// The deadline does not stop a job either while all its remaining tasks are being published.
fn stopped_by_deadline(job: &JobSnapshot, left: usize) -> Option<Conclusion> {
    let deadline = job.deadline?;
    let grace = if awaited_commits(job) == left {
        COMMIT_GRACE
    } else {
        DEADLINE_GRACE
    };
    if job.rules.on_miss == OnMiss::Continue {
        None
    } else if !job.launched_before && deadline <= job.submitted {
        Some(Conclusion::DeadlineInPast)
    } else if job.facts_as_of >= deadline.plus(grace) {
        Some(Conclusion::DeadlineExceeded)
    } else {
        None
    }
}

/// The number of tasks with a live attempt that received its commit grant before the deadline.
fn awaited_commits(job: &JobSnapshot) -> usize {
    if job.rules.idempotency != Idempotency::Fenced {
        return 0;
    }
    let in_time = |task: &&TaskSnapshot| {
        let grant = task.live_grant().filter(|grant| !is_late(job, grant.at));
        grant.is_some() && !job.has_ended(task.index)
    };
    job.tasks.iter().filter(in_time).count()
}

fn kill_in_task(
    now: Instant,
    job: &JobSnapshot,
    task: &TaskSnapshot,
    ending: bool,
    actions: &mut Vec<Settled>,
) {
    if task.live().next().is_none() {
        return;
    }
    let (winner, _) = winner(job, task);
    let publishes = spared_until(job, task).is_some_and(|until| now < until);
    for attempt in task.live().filter(|a| Some(a.number) != winner) {
        let is_spared = publishes && task.granted_at(attempt.number).is_some();
        let kind = if winner.is_some() {
            KillKind::Settle
        } else if ending {
            KillKind::JobEnd
        } else if job.has_ended(task.index) || backoff_limit::fails_by_rule(task) {
            KillKind::Surplus
        } else if job.rules.suspend && !is_spared {
            KillKind::Suspend
        } else if is_stuck_too_long(now, attempt) || is_clone_in_vain(task, attempt) {
            KillKind::Replace
        } else if attempt.out_of_reach && may_be_abandoned(job, task, attempt) {
            KillKind::Abandon
        } else {
            continue;
        };
        actions.push(Settled::Kill(Kill {
            task: task.index,
            attempt: attempt.number,
            kind,
            survivor: winner,
        }));
    }
}

/// Whether another attempt may replace this one although it may still exist.
pub(crate) fn may_be_abandoned(
    job: &JobSnapshot,
    task: &TaskSnapshot,
    attempt: &AttemptSnapshot,
) -> bool {
    !job.rules.waits_until_gone() && task.granted_at(attempt.number).is_none()
}

/// Whether the attempt is a clone that cannot be placed while another attempt can finish the task alone. That attempt
/// may hold the user's volume, or no other node may accept the clone.
fn is_clone_in_vain(task: &TaskSnapshot, attempt: &AttemptSnapshot) -> bool {
    let waits = |one: &AttemptSnapshot| one.kind == AttemptKind::Clone && one.unplaceable;
    waits(attempt) && task.live().any(|sibling| !waits(sibling))
}

fn is_stuck_too_long(now: Instant, attempt: &AttemptSnapshot) -> bool {
    matches!(attempt.state, AttemptState::Stuck { since } if now >= since.plus(STUCK_GRACE))
}

#[cfg(test)]
mod tests;
