//! Invariants at every write, checked on the apiserver's real content, not on the operator's view.

use std::collections::BTreeSet;

use shed::api::ledger::invariants::{LedgerFault, faults};
use shed::api::{Ledger, TaskEntry};
use shed::cluster::pod::AttemptId;
use shed_core::ids::TaskIndex;
use shed_core::snapshot::KillKind;

use super::world::Invariant::{ExactlyOnce, KillSafety, NoLoss};
use super::world::{Finish, Stage, World};

pub fn open(ledger: &Ledger) -> BTreeSet<AttemptId> {
    ledger.open_attempts().map(|(id, _)| id).collect()
}

/// Checks the write of a ledger.
pub fn ledger(world: &mut World, new: &Ledger) {
    let old = world.job.clone();
    let old = &old.ledger;
    let (before, after) = (open(old), open(new));
    for fault in faults(old, new) {
        let kind = match fault {
            LedgerFault::KillChanged | LedgerFault::KillWithoutCause => KillSafety,
            _ => ExactlyOnce,
        };
        world.breaks(false, kind, fault.words());
    }
    for task in (0u32..).zip(world.given.clone()).map(|(task, _)| task) {
        last_attempt(world, old, new, task);
    }
    for &(task, number) in after.difference(&before) {
        let next = world
            .given
            .get_mut(task as usize)
            .expect("a task of the job");
        let is_new = number >= *next;
        *next = (*next).max(number + 1);
        world.breaks(is_new, ExactlyOnce, "an attempt number is given out twice");
        let is_active = new.ending.is_none();
        world.breaks(is_active, NoLoss, "a launch in an ended job");
    }
    for &id in before.difference(&after) {
        counted(world, old, new, id);
    }
}

/// An attempt leaves the ledger only when it has really ended, into the bucket of that end.
fn counted(world: &mut World, old: &Ledger, new: &Ledger, id: AttemptId) {
    let pod = world.pods.get(&id).copied();
    let is_over = pod.is_none_or(|pod| pod.is_over());
    world.breaks(is_over, ExactlyOnce, "an attempt is counted that goes on");
    let index = TaskIndex(id.0);
    let wins = new.done.contains(index) && !old.done.contains(index);
    let killed = old
        .attempt(id.0, id.1)
        .is_some_and(|entry| entry.kill.is_some());
    let others_failed =
        new.counts.failed + new.counts.clone_failed > old.counts.failed + old.counts.clone_failed;
    let left = open(old).difference(&open(new)).count();
    // With one attempt counted in a write, its bucket is known.
    if left == 1 && wins {
        let is_success = match pod.map(|pod| pod.stage) {
            // An exit with 0 after any deletion does not prove that the work is done.
            Some(Stage::Succeeded(finish)) => matches!(finish, Finish::InTime(_) | Finish::Late),
            _ => false,
        };
        world.breaks(is_success, ExactlyOnce, "a winner that did not succeed");
    }
    if left == 1 && others_failed {
        let is_failure = matches!(pod.map(|pod| pod.stage), Some(Stage::Failed(_)));
        world.breaks(
            is_failure && !killed,
            ExactlyOnce,
            "a failure that is none, or a kill counted as one",
        );
    }
}

/// No plan takes an unfinished task's last attempt: only its user, its end, or a restart does.
fn last_attempt(world: &mut World, old: &Ledger, new: &Ledger, task: u32) {
    let index = TaskIndex(task);
    if new.done.contains(index) || new.failed.contains(index) {
        return;
    }
    let entry = |ledger: &Ledger| ledger.tasks.get(&task).cloned().unwrap_or_default();
    let lives = |entry: &TaskEntry| entry.attempts.iter().any(|a| a.kill.is_none());
    let (before, after) = (entry(old), entry(new));
    let by_plan = after.attempts.iter().any(|attempt| {
        let is_new = before
            .attempts
            .iter()
            .any(|old| old.number == attempt.number && old.kill.is_none());
        is_new && matches!(attempt.kill, Some(KillKind::Prune | KillKind::Evict))
    });
    let holds = !by_plan || lives(&after);
    world.breaks(holds, NoLoss, "an unfinished task loses its last attempt");
}

/// A pod is created for an attempt that the ledger holds, once.
pub fn create(world: &mut World, id: AttemptId) {
    let entry = world.job.ledger.attempt(id.0, id.1);
    let is_alive = entry.is_some_and(|entry| entry.kill.is_none());
    world.breaks(is_alive, ExactlyOnce, "an unrecorded pod");
    let is_first = !world.gone.contains_key(&id);
    world.breaks(is_first, ExactlyOnce, "an attempt runs a second time");
}

/// A pod is deleted after its kill is recorded, or when it is no open attempt at all.
pub fn delete(world: &mut World, id: AttemptId) {
    let entry = world.job.ledger.attempt(id.0, id.1);
    let may_die = entry.is_none_or(|entry| entry.kill.is_some());
    world.breaks(may_die, KillSafety, "a delete without a recorded kill");
}

/// The finalizer comes off after the end is counted.
pub fn release(world: &mut World, id: AttemptId) {
    let is_counted = world.job.ledger.attempt(id.0, id.1).is_none();
    world.breaks(
        is_counted,
        ExactlyOnce,
        "a release before the end is counted",
    );
}
