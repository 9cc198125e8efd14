//! Bare tasks, whose only data is their attempt. If no policy judges running attempts, a task is not read between the
//! launch of its original and its end. Most of a run's time would be spent fetching its entry among the facts from
//! memory. The entry is therefore made only when a pass may examine the job, or when the attempt ends other than by
//! success.

use shed_core::ids::{AttemptNumber, TaskIndex};
use shed_core::settle::settle_tasks;
use shed_core::snapshot::{AttemptKind, AttemptSnapshot, AttemptState, TaskSnapshot};
use shed_core::time::Instant;

use super::group::untouched;
use super::{Engine, Scope};
use crate::settings::Settings;

/// Marks a task that has an entry, or no attempt.
const NO_SLOT: u32 = u32::MAX;

/// The attempts of a group's bare tasks.
#[derive(Debug, Default)]
pub(super) struct Bare {
    /// By task.
    slots: Vec<u32>,
    count: usize,
}

impl Bare {
    pub(super) fn put(&mut self, task: TaskIndex, slot: u32, completions: u32) {
        if self.slots.is_empty() {
            self.slots.resize(completions as usize, NO_SLOT);
        }
        if let Some(held) = self.slots.get_mut(task.0 as usize) {
            *held = slot;
            self.count += 1;
        }
    }

    fn get(&self, task: TaskIndex) -> Option<u32> {
        let slot = self.slots.get(task.0 as usize).copied();
        slot.filter(|&slot| slot != NO_SLOT)
    }

    pub(super) fn has(&self, task: TaskIndex) -> bool {
        self.get(task).is_some()
    }

    pub(super) fn take(&mut self, task: TaskIndex) -> Option<u32> {
        let slot = self.get(task)?;
        self.slots[task.0 as usize] = NO_SLOT;
        self.count -= 1;
        Some(slot)
    }

    /// All bare tasks of the group.
    fn tasks(&self) -> Vec<TaskIndex> {
        if self.count == 0 {
            return Vec::new();
        }
        let tasks = (0..).zip(&self.slots);
        tasks
            .filter(|(_, slot)| **slot != NO_SLOT)
            .map(|(task, _)| TaskIndex(task))
            .collect()
    }
}

/// Whether a run has bare tasks. A run with checks compares with the complete facts.
pub(super) fn applies(settings: &Settings, scope: Scope) -> bool {
    scope == Scope::Scoped && settings.policy.speculation.is_none() && !settings.check
}

impl Engine<'_> {
    /// Makes the entries of all tasks of the group.
    pub(super) fn show_bare(&mut self, id: u32) {
        for task in self.groups[id as usize].bare.tasks() {
            self.show_task(id, task);
        }
    }

    /// Makes the task's entry, if it has none.
    pub(super) fn show_task(&mut self, id: u32, task: TaskIndex) {
        let group = &mut self.groups[id as usize];
        let Some(slot) = group.bare.take(task) else {
            return;
        };
        let facts = self.attempt_facts(slot);
        let group = &mut self.groups[id as usize];
        let Some((entry, truth)) = group.entry(task) else {
            return;
        };
        self.spare.make_room(entry, truth);
        truth.next_number = facts.number.0 + 1;
        truth.slots.push(slot);
        entry.attempts.push(facts);
        self.attempts.get_mut(slot).position = group.position(task).unwrap_or(0);
    }

    /// The facts in an entry about the attempt of a bare task.
    pub(super) fn attempt_facts(&self, slot: u32) -> AttemptSnapshot {
        let attempt = self.attempts.get(slot);
        AttemptSnapshot {
            state: match attempt.started {
                _ if attempt.ended => AttemptState::Succeeded {
                    finished: attempt.end().0,
                },
                Some(_) => AttemptState::Running,
                None => AttemptState::Pending,
            },
            started: attempt.started,
            ..launched(
                attempt.number,
                attempt.kind,
                attempt.launched,
                attempt.start_progress,
            )
        }
    }

    /// Settles the group on these tasks if they are all bare; false if entries are required.
    pub(super) fn settle_bare(&mut self, id: u32, dirty: &[(u32, u32)]) -> bool {
        let bare = &self.groups[id as usize].bare;
        if !dirty.iter().all(|&(_, task)| bare.has(TaskIndex(task))) {
            for &(_, task) in dirty {
                self.show_task(id, TaskIndex(task));
            }
            return false;
        }
        let mut seen = std::mem::take(&mut self.bare_entries);
        if seen.len() < dirty.len() {
            seen.resize_with(dirty.len(), || untouched(TaskIndex(0)));
        }
        let tasks = &mut seen[..dirty.len()];
        for (entry, &(_, task)) in tasks.iter_mut().zip(dirty) {
            self.fill(id, TaskIndex(task), entry);
        }
        let mut actions = std::mem::take(&mut self.settling.1);
        let now = self.now;
        if let Some(facts) = &mut self.groups[id as usize].facts {
            facts.facts_as_of = facts.facts_as_of.max(now);
            settle_tasks(now, facts, tasks.iter(), &mut actions);
        }
        self.apply_all(id, &actions);
        actions.clear();
        self.settling.1 = actions;
        self.bare_entries = seen;
        true
    }

    fn fill(&self, id: u32, task: TaskIndex, entry: &mut TaskSnapshot) {
        let slot = self.groups[id as usize].bare.get(task);
        entry.index = task;
        entry.attempts.clear();
        entry
            .attempts
            .extend(slot.map(|slot| self.attempt_facts(slot)));
    }
}

/// An attempt that was just launched.
pub(super) fn launched(
    number: u32,
    kind: AttemptKind,
    at: Instant,
    start_progress: f64,
) -> AttemptSnapshot {
    AttemptSnapshot {
        number: AttemptNumber(number),
        kind,
        state: AttemptState::Pending,
        kill: None,
        killed_at: None,
        launched: at,
        node: None,
        started: None,
        start_progress,
        progress: None,
        checkpoint: None,
        failure_rule: None,
        out_of_reach: false,
        ended_in_deletion: false,
        unplaceable: false,
    }
}
