//! The main cause of a job's risk to miss its deadline.

use serde::{Deserialize, Serialize};

use crate::ids::{NodeName, TaskIndex};

/// What lowers a job's PoCD most.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Risk {
    /// The cause.
    pub cause: RiskCause,
    /// The task with this cause that is least likely to be in time; absent for tasks that wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskIndex>,
    /// The node of that task's best attempt, if the attempt has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeName>,
    /// Failures of that task.
    #[serde(default)]
    pub failures: u32,
}

/// A cause of risk. Of causes that lower the PoCD alike, the first one counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum RiskCause {
    /// Tasks that failed for good: they are never launched again.
    Failed,
    /// Tasks without an attempt wait for a slot.
    Waiting,
    /// Tasks that run far behind the others.
    Straggler,
    /// Tasks whose attempts failed before.
    Restarts,
    /// Tasks that should report progress and have not.
    Silent,
    /// All tasks are slow.
    Slow,
}

impl RiskCause {
    /// The causes that are weighed against each other, in the order in which they count. [`Self::Failed`] is certain.
    pub const WEIGHED: [Self; 5] = [
        Self::Waiting,
        Self::Straggler,
        Self::Restarts,
        Self::Silent,
        Self::Slow,
    ];
}
