//! Obstacles to creating or placing a job's attempts, as known to its executor.

use serde::{Deserialize, Serialize};

use super::{AttemptSnapshot, AttemptState, JobSnapshot};
use crate::time::Instant;

/// Once an attempt of a job waits behind scheduling gates, at most this many do. A queue sees enough demand in them, and
/// a job of many tasks does not fill the cluster with pods that wait.
pub const GATED_MAX: usize = 10;

/// Obstacles to creating or placing a job's attempts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Obstacles {
    /// No node of the cluster could hold an attempt, even when empty. The job gets one attempt beyond capacity, so
    /// that an autoscaler sees the demand.
    #[serde(default)]
    pub no_node: bool,
    /// Most attempts of the job that may exist at a time, including those that are being stopped: the apiserver
    /// refused more (a `ResourceQuota`).
    #[serde(default)]
    pub attempts_max: Option<u32>,
    /// No clone is launched before this: the apiserver refused one.
    #[serde(default)]
    pub clones_not_before: Option<Instant>,
    /// An administrator stopped new clones of the job's namespace, or of the whole cluster. Live clones continue.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub clones_stopped: bool,
}

impl Obstacles {
    /// Whether there is no obstacle.
    pub fn are_none(&self) -> bool {
        *self == Self::default()
    }
}

impl AttemptSnapshot {
    /// Whether the job waits for a node.
    pub fn waits_for_node(&self) -> bool {
        self.node.is_none() && matches!(self.state, AttemptState::Launching | AttemptState::Pending)
    }
}

impl JobSnapshot {
    /// Whether the attempt uses its requests. One that cannot be created or placed, or that gates hold back, uses
    /// nothing.
    pub fn takes_capacity(&self, attempt: &AttemptSnapshot) -> bool {
        let can_wait = attempt.unplaceable || attempt.gated || self.obstacles.no_node;
        attempt.holds_capacity() && !(can_wait && attempt.waits_for_node())
    }
}
