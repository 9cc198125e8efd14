//! `settle` for changed tasks. Its result for a task depends only on that task and on the job's counts, so an active
//! job is settled only on its changed tasks. Otherwise a job of thousands of running tasks would be read for each of
//! its ends. With `check` the whole job is settled too, and both results must agree.

use shed_core::decide::News;
use shed_core::ids::TaskIndex;
use shed_core::plan::Settled;
use shed_core::plan_check::settle_check;
use shed_core::settle::{settle, settle_tasks};
use shed_core::snapshot::{Conclusion, JobPhase, JobSnapshot};
use shed_core::workflow::JobState;

use super::group::Group;
use super::{Engine, RunError, Scope};

impl Group {
    /// Whether an attempt of the task lives.
    pub(super) fn lives(&self, task: TaskIndex) -> bool {
        let entry = self.position(task).zip(self.facts.as_ref());
        entry.is_some_and(|(at, facts)| facts.tasks[at].live().next().is_some())
    }

    /// Whether the task has a winner or has failed for good.
    pub(super) fn has_ended(&self, task: TaskIndex) -> bool {
        self.facts
            .as_ref()
            .is_none_or(|facts| facts.has_ended(task))
    }
}

impl Engine<'_> {
    /// Settles every group with new facts.
    pub(super) fn settle_dirty(&mut self) -> Result<(), RunError> {
        let mut dirty = std::mem::take(&mut self.dirty);
        dirty.sort_unstable();
        dirty.dedup();
        let mut rest = dirty.as_slice();
        while let Some(&(group, _)) = rest.first() {
            let count = rest.iter().take_while(|(other, _)| *other == group).count();
            let (mine, others) = rest.split_at(count);
            rest = others;
            let is_active = self.groups[group as usize]
                .facts
                .as_ref()
                .is_some_and(|facts| facts.phase == JobPhase::Active);
            if is_active && !self.dirty_groups.contains(&group) {
                self.settle_tasks(group, mine)?;
            } else {
                self.dirty_groups.push(group);
            }
        }
        dirty.clear();
        self.dirty = dirty;
        while let Some(group) = self.dirty_groups.pop() {
            self.settle_group(group)?;
        }
        Ok(())
    }

    /// Settles the group on these tasks.
    fn settle_tasks(&mut self, id: u32, dirty: &[(u32, u32)]) -> Result<(), RunError> {
        let now = self.now;
        let (mut positions, mut actions) = std::mem::take(&mut self.settling);
        let group = &mut self.groups[id as usize];
        positions.extend(
            dirty
                .iter()
                .filter_map(|&(_, task)| group.position(TaskIndex(task))),
        );
        if let Some(facts) = &mut group.facts {
            facts.facts_as_of = facts.facts_as_of.max(now);
            let tasks = positions.iter().map(|&at| &facts.tasks[at]);
            settle_tasks(now, facts, tasks, &mut actions);
            if self.settings.check {
                let mut whole = settle(now, facts);
                // Only the whole job can be finished, which happens next.
                whole.retain(|action| !matches!(action, Settled::Finish(_)));
                self.check_settled(id, &whole, &actions)?;
            }
            self.apply_all(id, &actions);
        }
        positions.clear();
        actions.clear();
        self.settling = (positions, actions);
        Ok(())
    }

    fn check_settled(&self, id: u32, whole: &[Settled], few: &[Settled]) -> Result<(), RunError> {
        if whole != few {
            return Err(RunError::Shortcut {
                at: self.seconds(),
                what: "settled actions",
                details: format!("{few:?} against {whole:?}"),
            });
        }
        self.check_rules(id, few)
    }

    fn check_rules(&self, id: u32, actions: &[Settled]) -> Result<(), RunError> {
        let facts = self.groups[id as usize].facts.as_ref();
        let violations = facts.map(|facts| settle_check(facts, actions));
        match violations.and_then(|all| all.into_iter().next()) {
            None => Ok(()),
            Some(violation) => Err(RunError::Plan {
                at: self.seconds(),
                violation,
            }),
        }
    }

    /// Settles the group as a whole until no action follows.
    fn settle_group(&mut self, id: u32) -> Result<(), RunError> {
        loop {
            let group = &mut self.groups[id as usize];
            let Some(facts) = group.facts.as_mut().filter(|_| !group.is_finished) else {
                return Ok(());
            };
            facts.facts_as_of = facts.facts_as_of.max(self.now);
            let actions = settle(self.now, facts);
            if actions.is_empty() {
                return Ok(());
            }
            if self.settings.check {
                self.check_rules(id, &actions)?;
            }
            self.apply_all(id, &actions);
        }
    }

    pub(super) fn apply_all(&mut self, id: u32, actions: &[Settled]) {
        for action in actions {
            self.apply(id, action);
        }
    }

    /// The stage's result is known: stages that depend on it become available, or never will.
    pub(super) fn end_group(&mut self, id: u32, conclusion: Conclusion) {
        if let Some(facts) = &mut self.groups[id as usize].facts {
            facts.phase = JobPhase::Ending(conclusion);
        }
        self.leave_queue(id);
        self.dirty_groups.push(id);
        let group = &self.groups[id as usize];
        let (job, stage) = (group.job, group.stage as usize);
        let progress = &mut self.jobs[job as usize];
        progress.active.retain(|&other| other != id);
        progress.failed |= conclusion != Conclusion::Complete;
        if !progress.failed {
            for child in self.children_ready(job, stage) {
                self.open_group(job, child);
            }
        }
        self.show_phases(job);
        let state = match conclusion {
            Conclusion::Complete => JobState::Complete(self.now),
            _ => JobState::Failed,
        };
        self.show_stage(id, state);
        let progress = &self.jobs[job as usize];
        if progress.active.is_empty() {
            let outcome = &mut self.outcomes[job as usize];
            outcome.ended = Some(self.now);
            outcome.complete = !progress.failed;
            if self.settings.job_masters {
                self.capacity.count_master(false);
                self.changed = true;
            }
        }
    }

    /// No attempt of the group remains. A recurring job stays until a pass has seen its last end, as in the operator:
    /// else a stage of one task would never teach its class.
    pub(super) fn finish_group(&mut self, id: u32) {
        let group = &mut self.groups[id as usize];
        group.truths = Vec::new();
        let recurs = |facts: &JobSnapshot| facts.class.is_some();
        if !group.facts.as_ref().is_some_and(recurs) {
            self.drop_group(id);
        } else if self.planner.scope == Scope::Places {
            self.see_places(&[id]);
            self.drop_group(id);
        } else {
            group.is_finished = true;
            self.finished.push(id);
            self.touch(id, News::Urgent);
        }
    }

    /// Drops the groups that had finished before the pass.
    pub(super) fn drop_finished(&mut self) {
        for id in std::mem::take(&mut self.finished) {
            self.drop_group(id);
        }
    }

    fn drop_group(&mut self, id: u32) {
        self.forget_place(id);
        self.groups[id as usize].facts = None;
        let place = self.place_of(id);
        if self.live.get(place) == Some(&id) {
            self.live.remove(place);
            self.live_places.remove(place);
        }
    }

    fn children_ready(&mut self, job: u32, stage: usize) -> Vec<usize> {
        let stages = &self.trace.jobs[job as usize].stages;
        let missing = &mut self.jobs[job as usize].missing;
        let mut ready = Vec::new();
        for (child, count) in missing.iter_mut().enumerate() {
            if stages[child].parents.contains(&stage) {
                *count -= 1;
                if *count == 0 {
                    ready.push(child);
                }
            }
        }
        ready
    }
}
