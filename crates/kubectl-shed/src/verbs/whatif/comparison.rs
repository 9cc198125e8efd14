//! What would become of a job with another deadline or with more or fewer slots: two planning passes over the same
//! facts, the second one with the change. Callers pass copies, so the planner's own state stays as it is.

use std::sync::Arc;

use shed_core::capacity::{allocatable, usable};
use shed_core::decide::Changed;
use shed_core::guard::GuardedPlanner;
use shed_core::ids::{JobKey, NodeName};
use shed_core::memory::{JobMemory, Memory};
use shed_core::plan::JobReport;
use shed_core::policy::Policy;
use shed_core::resources::Resources;
use shed_core::snapshot::{JobSnapshot, Node, NodeIndex, Snapshot};
use shed_core::time::Instant;

/// One change of the facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// The job has this deadline.
    Deadline(Instant),
    /// The usable capacity is this number of the job's slots, at least 1. The job shares them with other jobs, as
    /// before. More slots than there are come as one new node.
    Slots(u32),
}

/// The reports about a job.
#[derive(Debug, Clone, PartialEq)]
pub struct WhatIf {
    /// With the facts as they are.
    pub now: JobReport,
    /// The slots that the usable capacity has now for attempts like the job's.
    pub slots: u32,
    /// With the change.
    pub then: JobReport,
}

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unanswered {
    /// The snapshot has no facts about the job, or they are invalid.
    UnknownJob,
    /// The policy panicked.
    Panicked,
}

/// Decides on the snapshot twice, without and with the change. The policy looks at every job, and acts on this one
/// even if its next turn is later. Each pass is within the policy's work budget.
///
/// # Errors
/// [`Unanswered`].
pub fn what_if(
    mut snapshot: Snapshot,
    mut memory: Memory,
    policy: &Policy,
    job: &JobKey,
    change: Change,
) -> Result<WhatIf, Unanswered> {
    let of_job = |known: &JobSnapshot| known.key == *job;
    let at = snapshot.jobs.iter().position(of_job);
    let at = at.ok_or(Unanswered::UnknownJob)?;
    let turn = JobMemory {
        last_optimized: snapshot.jobs.get(at).map(|job| job.submitted),
        was_idle: true,
    };
    memory.set(job.clone(), turn);
    let demand = snapshot.jobs.get(at).map(|job| job.demand.clone());
    let demand = demand.unwrap_or_default();
    let slots = usable(&snapshot, policy.capacity_share).times(&demand);
    let now = report(&snapshot, memory.clone(), policy, job)?;
    let policy = match change {
        Change::Deadline(deadline) => {
            let jobs = snapshot.jobs.get_mut(at);
            jobs.into_iter()
                .for_each(|job| job.deadline = Some(deadline));
            policy.clone()
        }
        Change::Slots(wanted) => {
            let missing = wanted.saturating_sub(slots);
            if missing > 0 {
                grow(&mut snapshot, &demand, missing, policy.capacity_share);
            }
            let share = share_of(&snapshot, policy.capacity_share, &demand, wanted);
            Policy {
                capacity_share: share,
                ..policy.clone()
            }
        }
    };
    let then = report(&snapshot, memory, &policy, job)?;
    Ok(WhatIf { now, slots, then })
}

fn report(
    snapshot: &Snapshot,
    mut memory: Memory,
    policy: &Policy,
    job: &JobKey,
) -> Result<JobReport, Unanswered> {
    let mut planner = GuardedPlanner::default();
    let passed = planner.decide(snapshot, &mut memory, policy, Changed::All);
    if passed.panics > 0 {
        return Err(Unanswered::Panicked);
    }
    let mut reports = passed.plan.report.jobs.into_iter();
    reports
        .find(|report| report.key == *job)
        .ok_or(Unanswered::UnknownJob)
}

/// Adds an empty node with this number of slots, which every job may use.
fn grow(snapshot: &mut Snapshot, demand: &Resources, slots: u32, capacity_share: f64) {
    let mut free = Resources::default();
    free.add_times(demand, slots as usize);
    // Attempts may use only that share of it.
    let allocatable = free.scaled(1.0 / capacity_share.max(f64::MIN_POSITIVE));
    let new = NodeIndex(snapshot.nodes.len());
    snapshot.nodes.push(Node {
        name: NodeName::from("what-if"),
        free: allocatable.clone(),
        allocatable,
        used_by_others: Resources::default(),
        usable: true,
    });
    // Most jobs share one list of nodes, and keep sharing it.
    type Nodes = Arc<[NodeIndex]>;
    let mut last: Option<(Nodes, Nodes)> = None;
    for job in &mut snapshot.jobs {
        let known = last.take();
        let known = known.filter(|(before, _)| Arc::ptr_eq(before, &job.eligible_nodes));
        let (before, after) = known.unwrap_or_else(|| {
            let nodes = job.eligible_nodes.iter().copied();
            let after = nodes.chain([new]).collect();
            (Arc::clone(&job.eligible_nodes), after)
        });
        job.eligible_nodes = Arc::clone(&after);
        last = Some((before, after));
    }
}

/// The share of the capacity that has this number of slots, at most the present one.
fn share_of(snapshot: &Snapshot, capacity_share: f64, demand: &Resources, slots: u32) -> f64 {
    let all = allocatable(snapshot);
    // Half a unit more, because amounts are whole and rounded.
    let share = |(name, amount): (&str, i64)| {
        (amount as f64 * f64::from(slots) + 0.5) / (all.get(name) as f64)
    };
    let demand = demand.iter().filter(|(_, amount)| *amount > 0);
    let share = demand.map(share).reduce(f64::max);
    share.map_or(capacity_share, |share| share.min(capacity_share))
}

#[cfg(test)]
mod tests;
