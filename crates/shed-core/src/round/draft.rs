//! What a pass plans for one job, and the values by which it ranks the job's demand.

use std::collections::BTreeSet;

use crate::capacity::NodeQueue;
use crate::ids::{AttemptNumber, TaskIndex};
use crate::plan::{CloneBudget, CloneReport, Feasibility, KillReport, Refusal};
use crate::snapshot::NodeIndex;

/// Value density: expected deadlines met per second for which an attempt holds its slot.
#[derive(Debug, Clone)]
pub struct ValueDensity {
    /// The value density of each waiting attempt.
    pub waiting: f64,
    /// The value density of each live clone, ascending by task and number.
    pub clones: Vec<((TaskIndex, AttemptNumber), f64)>,
}

impl ValueDensity {
    pub(super) fn of_clone(&self, id: (TaskIndex, AttemptNumber)) -> Option<f64> {
        let at = self.clones.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        self.clones.get(at).map(|(_, value_density)| *value_density)
    }
}

/// What a pass plans for one job.
#[derive(Default)]
pub struct JobDraft {
    /// First attempts and retries that the plan launches.
    pub(crate) admitted: u32,
    /// First attempts and retries that would start if capacity or parallelism allowed it.
    pub waiting: u32,
    /// Those that wait because of the tenants' shares.
    pub(crate) waiting_for_share: u32,
    pub(crate) queue: Option<NodeQueue>,
    /// Tasks whose first attempt or retry the plan launches, each with the node that has capacity for it.
    pub started: Vec<(TaskIndex, NodeIndex)>,
    /// Launches of the plan, clones included.
    pub(crate) launched: usize,
    /// Live attempts that the plan stops.
    pub(crate) doomed: BTreeSet<(TaskIndex, AttemptNumber)>,
    /// Attempts that a stop of the plan relies on.
    pub(crate) survivors: BTreeSet<(TaskIndex, AttemptNumber)>,
    /// Whether the optimizer runs for the job in this pass.
    pub optimized: bool,
    /// The value density of the job's waiting attempts and clones, if the policy compares them with those of other
    /// jobs.
    pub(crate) value_density: Option<ValueDensity>,
    /// Whether the pass ran out of work before the policy was done with the job.
    pub(crate) is_cut_short: bool,
    /// ln PoCD with the plan's prunes and clones.
    pub(crate) ln_pocd_after: Option<f64>,
    /// ln PoCD before the first clone of the plan that the job only observes; absent without such a clone.
    pub(crate) ln_pocd_unobserved: Option<f64>,
    pub(crate) clones: Vec<CloneReport>,
    /// The figures of the job's clone budget, once a clone was weighed.
    pub(crate) clone_budget: Option<CloneBudget>,
    pub(crate) kills: Vec<KillReport>,
    pub(crate) refusals: Vec<Refusal>,
    /// The deadline that the job could keep, if its user requests that estimate.
    pub(crate) feasibility: Option<Feasibility>,
}
