//! The planner's passes.
//!
//! A full pass is `decide` on every job, after every event. Its cost is proportional to all
//! running attempts, and it mostly has no effect. The other ways are in `incremental_passes` and `job_queue`.

use shed_core::guard::{Passed, decide_guarded_by};
use shed_core::memory::Memory;
use shed_core::plan::{Plan, PlannedMove};
use shed_core::plan_check::plan_check;
use shed_core::policy::{Order, Policy};
use shed_core::snapshot::{AttemptState, JobSnapshot, ResumePoint, Snapshot};
use shed_core::time::{Instant, Span};

use super::capacity::{Capacity, held_by};
use super::{Engine, RunError, Scope};
use crate::event::Event;

impl Engine<'_> {
    /// One planner pass.
    pub(super) fn plan(&mut self) -> Result<(), RunError> {
        match self.planner.scope {
            Scope::Full => self.full_pass()?,
            Scope::Steady => self.steady_pass()?,
            Scope::Places => self.places_pass(),
        }
        Ok(())
    }

    /// `decide` on everything.
    fn full_pass(&mut self) -> Result<(), RunError> {
        let ids = std::mem::take(&mut self.live);
        let mut snapshot = std::mem::take(&mut self.planner.scratch);
        self.capacity.show(&mut snapshot.nodes);
        let observes = !self.settings.policy.speculation.is_none() || self.rank_changes();
        self.take_facts(&ids, &mut snapshot, observes);
        let memory = std::mem::take(&mut self.planner.memory);
        let policy = &self.settings.policy;
        let before = self.watch.is_some().then(|| memory.clone());
        let (plan, memory) = self.decide(&snapshot, memory, policy)?;
        if let (Some(watch), Some(before)) = (&mut self.watch, before) {
            watch.pass(&snapshot, before, &plan);
        }
        self.planner.memory = memory;
        let targets = targets(&ids, &snapshot, &plan.actions);
        self.give_back(&ids, &mut snapshot);
        self.planner.scratch = snapshot;
        self.live = ids;
        self.drop_finished();
        self.carry_out(&targets, &plan.actions);
        // New attempts are an event to a policy that clones: the operator sees their pods.
        self.changed |= !plan.actions.is_empty() && !policy.speculation.is_none();
        self.next_pass_at(plan.report.next_pass);
        Ok(())
    }

    /// Whether the rank of jobs in `decide` changes with time and progress.
    fn rank_changes(&self) -> bool {
        let order = self.settings.policy.order;
        !matches!(order, Order::Fifo | Order::EarliestDeadline)
    }

    pub(super) fn decide(
        &mut self,
        snapshot: &Snapshot,
        memory: Memory,
        policy: &Policy,
    ) -> Result<(Plan, Memory), RunError> {
        let (passed, memory) = decide_guarded_by(snapshot, memory, policy, self.planner.decide);
        self.note_pass(&passed, policy)?;
        Ok((passed.plan, memory))
    }

    /// Counts what a pass met, and checks its plan.
    pub(super) fn note_pass(
        &mut self,
        passed: &Passed<'_>,
        policy: &Policy,
    ) -> Result<(), RunError> {
        let plan = &passed.plan;
        let refused = passed.faults.iter().map(|fault| fault.job.clone());
        self.planner.refused.extend(refused);
        self.totals.panics += u64::from(passed.panics);
        let cut_short = plan.report.jobs.iter().filter(|job| job.is_cut_short);
        self.totals.cut_short += cut_short.count() as u64;
        let violations = self
            .settings
            .check
            .then(|| plan_check(&passed.snapshot, policy, plan));
        match violations.and_then(|all| all.into_iter().next()) {
            None => Ok(()),
            Some(violation) => Err(RunError::Plan {
                at: self.seconds(),
                violation,
            }),
        }
    }

    /// Moves the facts of these groups into the snapshot.
    pub(super) fn take_facts(&mut self, ids: &[u32], snapshot: &mut Snapshot, refresh: bool) {
        self.begin_snapshot(snapshot);
        for &id in ids {
            if let Some(mut facts) = self.groups[id as usize].facts.take() {
                if refresh {
                    self.refresh(id, &mut facts);
                }
                snapshot.jobs.push(facts);
            }
        }
    }

    pub(super) fn begin_snapshot(&self, snapshot: &mut Snapshot) {
        snapshot.now = self.now;
        let count = self.planner.overhead_count;
        snapshot.launch_overhead =
            (count > 0).then(|| Span(self.planner.overhead_total / count.max(1)));
        snapshot.weights.clone_from(&self.weights);
        snapshot.jobs.clear();
    }

    pub(super) fn give_back(&mut self, ids: &[u32], snapshot: &mut Snapshot) {
        for (&id, facts) in ids.iter().zip(snapshot.jobs.drain(..)) {
            self.groups[id as usize].facts = Some(facts);
        }
    }

    /// Updates the attempts' reports up to now.
    pub(super) fn refresh(&self, id: u32, facts: &mut JobSnapshot) {
        let group = &self.groups[id as usize];
        let Some(times) = group.reports else {
            return;
        };
        for (task, truth) in facts.tasks.iter_mut().zip(&group.truths) {
            for (seen, &slot) in task.attempts.iter_mut().zip(&truth.slots) {
                if seen.state != AttemptState::Running || seen.kill.is_some() {
                    continue;
                }
                let last = seen.progress.map(|progress| progress.last_at);
                if last.is_some_and(|last| self.now < last.plus(times.every)) {
                    continue;
                }
                let attempt = self.attempts.get(slot);
                let Some((progress, reached)) = attempt.reported(self.now, times) else {
                    continue;
                };
                seen.progress = Some(progress);
                let reached = self.checkpoint(slot, reached);
                let further = seen
                    .checkpoint
                    .as_ref()
                    .is_none_or(|c| c.progress < reached);
                if reached > attempt.start_progress && further {
                    seen.checkpoint = Some(ResumePoint {
                        progress: reached,
                        checkpoint: self.no_checkpoint.clone(),
                    });
                }
            }
        }
    }

    /// Carries a plan out on the groups that it is for, action by action.
    pub(super) fn carry_out(&mut self, targets: &[u32], actions: &[PlannedMove]) {
        for (&id, planned) in targets.iter().zip(actions) {
            self.carry_out_move(id, &planned.action);
        }
    }

    /// The last pass requests the next one then, and no sooner unless something happens.
    pub(super) fn next_pass_at(&mut self, at: Option<Instant>) {
        self.planner.next_pass = at;
        self.wake_at(at);
    }

    /// The wake event came: a later pass may have postponed its reason.
    pub(super) fn woken(&mut self) {
        let is_due = self.planner.next_pass.is_some_and(|next| next <= self.now);
        let scope = self.planner.scope;
        if is_due || matches!(scope, Scope::Steady | Scope::Places) {
            self.changed = true;
        } else {
            self.wake_at(self.planner.next_pass);
        }
    }

    /// The planner requests another examination then.
    pub(super) fn wake_at(&mut self, at: Option<Instant>) {
        let Some(at) = at.filter(|&at| at > self.now) else {
            return;
        };
        if self.planner.wake_at.is_none_or(|pending| at < pending) {
            self.planner.wake_at = Some(at);
            self.queue.put(at, Event::Wake);
        }
    }

    /// λ·m in slots, with the snap of the core.
    pub(super) fn usable_slots(&self) -> (u32, u32) {
        match self.capacity {
            Capacity::Slots {
                total,
                used,
                masters,
            } => {
                let usable = f64::from(total) * self.settings.policy.capacity_share + 1e-9;
                let usable = (usable.floor() as u32).min(total - held_by(masters, total));
                (usable, used)
            }
            Capacity::Nodes(_) => (0, 0),
        }
    }
}

/// The group that each action is for; `ids` are the groups of the snapshot, in its order.
pub(super) fn targets(ids: &[u32], snapshot: &Snapshot, actions: &[PlannedMove]) -> Vec<u32> {
    let mut last = 0;
    let mut position = |planned: &PlannedMove| {
        let is_job = |job: &JobSnapshot| job.key == planned.job;
        // Actions come job by job, mostly.
        if !snapshot.jobs.get(last).is_some_and(is_job) {
            last = snapshot.jobs.iter().position(is_job)?;
        }
        ids.get(last).copied()
    };
    let targets: Vec<u32> = actions.iter().filter_map(&mut position).collect();
    debug_assert_eq!(targets.len(), actions.len());
    targets
}
