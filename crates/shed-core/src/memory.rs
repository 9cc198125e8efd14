//! What the planner remembers from pass to pass. Everything else follows from the snapshot:
//! a task was flagged as a straggler if it has a clone, a prune is due while two attempts
//! report, a retry is due while none lives.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::estimate::history::History;
use crate::float;
use crate::ids::{JobKey, NodeName, TaskIndex};
use crate::snapshot::Snapshot;
use crate::time::Instant;

/// The memory of the planner; entries of jobs that are gone are dropped.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Memory {
    jobs: BTreeMap<JobKey, JobMemory>,
    /// What policies other than Shed+ remember of jobs. Each field says what its loss costs.
    #[serde(default)]
    speculation: BTreeMap<JobKey, SpeculationMemory>,
    /// Nodes that were seen slow. Need not survive a failover: the next reports from a slow
    /// node tell again.
    #[serde(default)]
    slow_nodes: BTreeMap<NodeName, NodeSlowness>,
    /// What jobs of each class have shown. Should survive a failover: what is lost is learned
    /// again only as jobs of the class come and go, and until then jobs are judged alone.
    #[serde(default)]
    history: History,
}

/// How slow a node was seen.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct NodeSlowness {
    /// Mean ln(time of an attempt there over the median of its job).
    #[serde(with = "float")]
    pub ln_ratio: f64,
    /// How many attempts that rests on.
    #[serde(with = "float")]
    pub weight: f64,
    /// When.
    pub seen: Instant,
}

/// What is remembered of one job.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct JobMemory {
    /// When the optimizer last ran for the job; present also means that the run at ξ, which a
    /// job has once, is over. Need not survive a failover: what is lost costs one run too
    /// early, and that run keeps the clones which it still wants.
    #[serde(default)]
    pub last_optimized: Option<Instant>,
    /// That run changed nothing: the next one waits for no launch to show itself. What is lost
    /// costs one wait of t_avg.
    #[serde(default)]
    pub was_idle: bool,
}

/// What a policy that acts once per job, or in rounds, remembers of one job.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SpeculationMemory {
    /// Attempts per task, the first included, that the policy has decided on for the job, once it
    /// has: at submission (Dolly, Chronos Clone, SCA, ESE) or at τ_est (the other Chronos
    /// strategies, LASER). Should survive a failover: what is lost is decided anew by what is
    /// known then, and may differ for the tasks that are still to come.
    #[serde(default)]
    pub copies: Option<u32>,
    /// Tasks that were judged late at τ_est, ascending: they get their attempts as there is room.
    /// Need not survive a failover: what is lost costs those clones that had no room yet.
    #[serde(default)]
    pub judged: Vec<TaskIndex>,
    /// When the slower attempts were last killed: at τ_kill, which a job has once, or every few
    /// minutes (Mantri). What is lost costs one more look, that kills what was launched since.
    #[serde(default)]
    pub pruned: Option<Instant>,
    /// When the policy last launched a clone for the job (Hadoop-S waits 15 s after it). Need not
    /// survive a failover: what is lost costs one round too early.
    #[serde(default)]
    pub last_launch: Option<Instant>,
    /// How often a task's only attempt was given up for a new one (Mantri). Need not survive a
    /// failover: what is lost costs a few restarts beyond the bound.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub restarts: BTreeMap<TaskIndex, u32>,
}

impl Memory {
    /// What a policy remembers of a job.
    #[must_use]
    pub fn speculation(&self, key: &JobKey) -> SpeculationMemory {
        self.speculation.get(key).cloned().unwrap_or_default()
    }

    /// Remembers it.
    pub fn set_speculation(&mut self, key: JobKey, memory: SpeculationMemory) {
        self.speculation.insert(key, memory);
    }

    /// What is remembered of a job.
    #[must_use]
    pub fn job(&self, key: &JobKey) -> JobMemory {
        self.jobs.get(key).cloned().unwrap_or_default()
    }

    /// Remembers a job.
    pub fn set(&mut self, key: JobKey, job: JobMemory) {
        self.jobs.insert(key, job);
    }

    /// How slow the node was seen, if it is remembered as slow.
    #[must_use]
    pub fn slow_node(&self, name: &NodeName) -> Option<&NodeSlowness> {
        self.slow_nodes.get(name)
    }

    /// Remembers these nodes as slow, instead of those that were remembered before.
    pub fn set_slow_nodes(&mut self, slow_nodes: BTreeMap<NodeName, NodeSlowness>) {
        self.slow_nodes = slow_nodes;
    }

    /// Whether a job is remembered that is not in the snapshot any more.
    pub(crate) fn has_departed(&self, snapshot: &Snapshot) -> bool {
        let present: BTreeSet<&JobKey> = snapshot.jobs.iter().map(|job| &job.key).collect();
        self.jobs.keys().any(|key| !present.contains(key))
    }

    /// What jobs before have shown.
    #[must_use]
    pub fn history(&self) -> &History {
        &self.history
    }

    /// Remembers it, instead of what was remembered before.
    pub fn set_history(&mut self, history: History) {
        self.history = history;
    }

    /// How many jobs are remembered.
    #[must_use]
    pub fn len(&self) -> usize {
        self.jobs.len()
    }

    /// Whether nothing is remembered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }
}
