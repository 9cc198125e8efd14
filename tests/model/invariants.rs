//! Invariants at every write, checked on the apiserver's real content, not on the operator's view.

use std::collections::BTreeSet;

use shed::api::{AttemptCounts, TaskEntry};
use shed::book::Book;
use shed::observe::job::AttemptId;
use shed_core::ids::TaskIndex;
use shed_core::snapshot::KillKind;

use super::world::Invariant::{ExactlyOnce, KillSafety, NoLoss};
use super::world::{Finish, Stage, World};

pub fn open(book: &Book) -> BTreeSet<AttemptId> {
    let attempts = |task: &TaskEntry| {
        let index = task.index;
        let numbers = task
            .attempts
            .iter()
            .map(move |attempt| (index, attempt.number));
        numbers.collect::<Vec<_>>()
    };
    book.tasks.values().flat_map(attempts).collect()
}

fn launched(counts: &AttemptCounts) -> i64 {
    counts.originals + counts.clones + counts.retries
}

fn ended(counts: &AttemptCounts) -> i64 {
    counts.won
        + counts.superseded
        + counts.failed
        + counts.clone_failed
        + counts.disrupted
        + counts.late
        + counts.refused
}

/// Checks the write of a ledger.
pub fn ledger(world: &mut World, new: &Book) {
    let old = world.job.clone();
    let old = &old.book;
    let (before, after) = (open(old), open(new));
    let counts = &new.counts;
    let balanced = launched(counts) == ended(counts) + after.len() as i64;
    world.breaks(
        balanced,
        ExactlyOnce,
        "an attempt is in no bucket or in two",
    );
    let one_each = counts.won == i64::from(new.done.len());
    world.breaks(one_each, ExactlyOnce, "winners and done tasks differ");
    for task in (0u32..).zip(world.given.clone()).map(|(task, _)| task) {
        lasting(world, old, new, task);
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
    settled(world, new);
}

/// The outcome of a task in a ledger never changes.
fn lasting(world: &mut World, old: &Book, new: &Book, task: u32) {
    let index = TaskIndex(task);
    let stays = (!old.done.contains(index) || new.done.contains(index))
        && (!old.failed.contains(index) || new.failed.contains(index))
        && (!old.finished || new.finished);
    world.breaks(stays, ExactlyOnce, "an end is taken back");
    let winner = |book: &Book| book.tasks.get(&task).and_then(|entry| entry.winner);
    let same = match (winner(old), winner(new)) {
        (Some(before), Some(after)) => before == after,
        _ => true,
    };
    world.breaks(same, ExactlyOnce, "a winner changes");
}

/// An attempt leaves the ledger only when it has really ended, into the bucket of that end.
fn counted(world: &mut World, old: &Book, new: &Book, id: AttemptId) {
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

/// Kills for a winner or for the job's end are in the ledger together with it.
fn settled(world: &mut World, new: &Book) {
    let entries = new.tasks.values().flat_map(|task| {
        let kills = task.attempts.iter().filter_map(|attempt| attempt.kill);
        kills.map(move |kill| (task.index, kill))
    });
    let sound = |(task, kill): (u32, KillKind)| match kill {
        KillKind::Settle => new.done.contains(TaskIndex(task)),
        KillKind::JobEnd => new.ending.is_some(),
        _ => true,
    };
    let all_sound = entries.into_iter().all(sound);
    world.breaks(
        all_sound,
        KillSafety,
        "a loser is killed before there is a winner",
    );
}

/// No plan takes an unfinished task's last attempt: only its user, its end, or a restart does.
fn last_attempt(world: &mut World, old: &Book, new: &Book, task: u32) {
    let index = TaskIndex(task);
    if new.done.contains(index) || new.failed.contains(index) {
        return;
    }
    let entry = |book: &Book| book.tasks.get(&task).cloned().unwrap_or_default();
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
    let entry = world.job.book.attempt(id.0, id.1);
    let is_alive = entry.is_some_and(|entry| entry.kill.is_none());
    world.breaks(is_alive, ExactlyOnce, "a pod nobody recorded");
    let is_first = !world.gone.contains_key(&id);
    world.breaks(is_first, ExactlyOnce, "an attempt runs a second time");
}

/// A pod is deleted after its kill is recorded, or when it is no open attempt at all.
pub fn delete(world: &mut World, id: AttemptId) {
    let entry = world.job.book.attempt(id.0, id.1);
    let may_die = entry.is_none_or(|entry| entry.kill.is_some());
    world.breaks(may_die, KillSafety, "a delete without a recorded kill");
}

/// The finalizer comes off after the end is counted.
pub fn release(world: &mut World, id: AttemptId) {
    let is_counted = world.job.book.attempt(id.0, id.1).is_none();
    world.breaks(
        is_counted,
        ExactlyOnce,
        "a release before the end is counted",
    );
}
