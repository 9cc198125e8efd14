//! One job on slots of its own, about which the planner's code decides: a forecast before it begins, and what would
//! become of it with another deadline or other slots.

use std::sync::Arc;

use shed::job::view::Places;
use shed_core::decide::Changed;
use shed_core::guard::GuardedPlanner;
use shed_core::ids::NodeName;
use shed_core::memory::{JobMemory, Memory};
use shed_core::plan::JobReport;
use shed_core::policy::Policy;
use shed_core::resources::Resources;
use shed_core::snapshot::{JobSnapshot, Node, NodeIndex, Snapshot};
use shed_core::time::Instant;

/// One change of the facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
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
pub struct SingleJob {
    pub job: JobSnapshot,
    pub slots: u32,
}

impl SingleJob {
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
        let pods = |count: u32| Resources::from_pairs([("pods", count.into())]);
        let node = Node {
            name: NodeName::from("slots"),
            allocatable: pods(self.slots.max(live)),
            free: pods(self.slots.saturating_sub(live)),
            used_by_others: Resources::default(),
            usable: true,
        };
        // The default policy keeps slots back, but not from a job that is alone. If more attempts live than there are
        // slots, it may use that share of the node.
        let policy = Policy {
            capacity_share: f64::from(self.slots) / f64::from(self.slots.max(live)),
            surge_max: 0,
            ..Policy::default()
        };
        let turn = JobMemory {
            last_optimized: Some(job.submitted),
        };
        let mut memory = Memory::default();
        memory.set(job.key.clone(), turn);
        let snapshot = Snapshot {
            now,
            nodes: vec![node],
            jobs: vec![job.clone()],
            launch_overhead: None,
            launch_overheads: [].into(),
            weights: [].into(),
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

/// The node of all slots, by each name that a pod has for its own.
pub fn places(names: impl Iterator<Item = Arc<str>>) -> Places {
    Places {
        positions: Arc::new(names.map(|name| (name, NodeIndex(0))).collect()),
        eligible: Arc::from([NodeIndex(0)]),
        demand: Resources::from_pairs([("pods", 1)]),
    }
}

fn live(job: &JobSnapshot) -> u32 {
    let live: usize = job.tasks.iter().map(|task| task.live().count()).sum();
    u32::try_from(live).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
