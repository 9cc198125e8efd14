//! What would become of a job with another deadline or with more or fewer slots: two planning passes over the same
//! facts, the second one with the change.

use shed_core::decide::Changed;
use shed_core::guard::GuardedPlanner;
use shed_core::memory::{JobMemory, Memory};
use shed_core::plan::JobReport;
use shed_core::policy::Policy;
use shed_core::resources::Resources;
use shed_core::snapshot::{JobSnapshot, Snapshot};
use shed_core::time::Instant;

use crate::verbs::check::forecast;

/// One change of the facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// The job has this deadline.
    Deadline(Instant),
    /// The job can run this number of attempts at a time, at least 1.
    Slots(u32),
}

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unanswered {
    #[error("the facts about the job do not fit together")]
    InvalidFacts,
    #[error("the policy failed on the facts about the job")]
    Panicked,
}

/// A job that has these slots for itself. Live attempts hold some of them.
#[derive(Debug, Clone)]
pub struct Alone {
    pub job: JobSnapshot,
    pub slots: u32,
}

impl Alone {
    /// At least as many slots as live attempts.
    pub fn new(job: JobSnapshot, slots: u32) -> Self {
        let slots = slots.max(live(&job));
        Self { job, slots }
    }

    pub fn changed(&self, change: Change) -> Self {
        let mut changed = self.clone();
        match change {
            Change::Deadline(deadline) => changed.job.deadline = Some(deadline),
            Change::Slots(slots) => changed.slots = slots,
        }
        changed
    }

    /// Decides about the job. The policy acts on it even if its next turn is later, within its work budget.
    pub fn report(&self, now: Instant) -> Result<JobReport, Unanswered> {
        let job = &self.job;
        let live = live(job);
        // All slots are alike. If more attempts live than there are slots, the policy may use a share of the node.
        let mut node = forecast::node(self.slots.max(live));
        let free = self.slots.saturating_sub(live);
        node.free = Resources::from_pairs([("pods", free.into())]);
        let policy = Policy {
            capacity_share: f64::from(self.slots) / f64::from(self.slots.max(live)),
            ..forecast::policy()
        };
        let turn = JobMemory {
            last_optimized: Some(job.submitted),
            was_idle: true,
        };
        let mut memory = Memory::default();
        memory.set(job.key.clone(), turn);
        let snapshot = Snapshot {
            now,
            nodes: vec![node],
            jobs: vec![job.clone()],
            launch_overhead: None,
            launch_overheads: [].into(),
        };
        let mut planner = GuardedPlanner::default();
        let passed = planner.decide(&snapshot, &mut memory, &policy, Changed::All);
        if passed.panics > 0 {
            return Err(Unanswered::Panicked);
        }
        let report = passed.plan.report.jobs.into_iter().next();
        report.ok_or(Unanswered::InvalidFacts)
    }
}

fn live(job: &JobSnapshot) -> u32 {
    let live: usize = job.tasks.iter().map(|task| task.live().count()).sum();
    u32::try_from(live).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
