//! Attempts beyond what a job may run at a time.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::{backoff_limit, spared_until, winner};
use crate::ids::{AttemptNumber, TaskIndex};
use crate::plan::{Kill, Settled};
use crate::snapshot::{
    AttemptSnapshot, AttemptState, JobPhase, JobSnapshot, KillKind, TaskSnapshot,
};
use crate::time::Instant;

/// Stops the attempts beyond `parallelism`, and then those beyond a quota outside shed.
pub(super) fn kill(now: Instant, job: &JobSnapshot, actions: &mut Vec<Settled>) {
    let mut ends = actions.iter();
    let ends = ends.any(|action| matches!(action, Settled::End(_)));
    if !ends && job.phase == JobPhase::Active && !job.rules.suspend {
        kill_beyond_parallelism(now, job, actions);
        kill_beyond_quota(job, actions);
    }
}

/// After `parallelism` was lowered, tasks are stopped, and launched again when others have ended: first those that do
/// not run yet or are not ready, and then those launched last. Tasks that publish are not stopped.
fn kill_beyond_parallelism(now: Instant, job: &JobSnapshot, actions: &mut Vec<Settled>) {
    let stays = |task: &&TaskSnapshot| {
        let (winner, _) = winner(job, task);
        let ended =
            winner.is_some() || job.has_ended(task.index) || backoff_limit::fails_by_rule(task);
        !ended && task.live().next().is_some()
    };
    let running = job.tasks.iter().filter(stays).count();
    let surplus = running.saturating_sub(job.rules.parallelism as usize);
    if surplus == 0 {
        return;
    }
    let publishes = |task: &TaskSnapshot| spared_until(job, task).is_some_and(|until| now < until);
    let mut tasks: Vec<&TaskSnapshot> = job.tasks.iter().filter(stays).collect();
    tasks.retain(|task| !publishes(task));
    tasks.sort_by_key(|task| {
        let first = task.live().map(|attempt| attempt.launched).min();
        let works = |attempt: &AttemptSnapshot| {
            let runs = attempt.state == AttemptState::Running;
            (runs, runs && !attempt.unready)
        };
        (task.live().map(works).max(), Reverse((first, task.index)))
    });
    let doomed = doomed(actions.iter());
    for task in tasks.into_iter().take(surplus) {
        for attempt in task.live() {
            if doomed.contains(&(task.index, attempt.number)) {
                continue;
            }
            actions.push(Settled::Kill(Kill {
                task: task.index,
                attempt: attempt.number,
                kind: KillKind::Surplus,
                survivor: None,
            }));
        }
    }
}

/// A quota outside shed admits one attempt for each task. Clones from before it did are stopped: first those that have
/// come least far. The attempt that may publish stays.
fn kill_beyond_quota(job: &JobSnapshot, actions: &mut Vec<Settled>) {
    let Some(admitted) = job.attempts_admitted() else {
        return;
    };
    let doomed = doomed(actions.iter());
    let mut live = 0usize;
    let mut siblings = Vec::new();
    for task in &job.tasks {
        let stays = |attempt: &&AttemptSnapshot| !doomed.contains(&(task.index, attempt.number));
        let mut attempts: Vec<&AttemptSnapshot> = task.live().filter(stays).collect();
        live += attempts.len();
        let last = |attempt: &AttemptSnapshot| attempt.progress.map_or(0.0, |report| report.last);
        attempts.sort_by(|a, b| {
            let publishes = |one: &AttemptSnapshot| task.granted_at(one.number).is_some();
            let rank = publishes(b).cmp(&publishes(a));
            let rank = rank.then(last(b).total_cmp(&last(a)));
            rank.then(a.number.cmp(&b.number))
        });
        if let Some((survivor, others)) = attempts.split_first() {
            let of_task = others.iter().map(|one| (last(one), task.index, one.number));
            siblings.extend(of_task.map(|sibling| (sibling, survivor.number)));
        }
    }
    siblings.sort_by(|((a, ..), _), ((b, ..), _)| a.total_cmp(b));
    let surplus = live.saturating_sub(admitted as usize);
    for ((_, task, attempt), survivor) in siblings.into_iter().take(surplus) {
        actions.push(Settled::Kill(Kill {
            task,
            attempt,
            kind: KillKind::Surplus,
            survivor: Some(survivor),
        }));
    }
}

/// The attempts that these actions kill.
pub(super) fn doomed<'a>(
    actions: impl Iterator<Item = &'a Settled>,
) -> BTreeSet<(TaskIndex, AttemptNumber)> {
    let killed = actions.filter_map(|action| match action {
        Settled::Kill(kill) => Some((kill.task, kill.attempt)),
        _ => None,
    });
    killed.collect()
}
