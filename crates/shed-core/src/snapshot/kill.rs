//! The reasons for stopping attempts.

use serde::{Deserialize, Serialize};

/// Why shed stops an attempt. Each kind has its own rule in `plan_check`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum KillKind {
    /// A sibling won; the winner is recorded.
    Settle,
    /// A sibling that reports progress is kept and covers the range.
    Prune,
    /// A clone is evicted for a waiting first attempt; a sibling survives.
    Evict,
    /// The attempt never started (image, config) and will be launched again later. Or it is a clone that cannot be
    /// placed, and a sibling survives.
    Replace,
    /// The user suspended the job.
    Suspend,
    /// The job's result is recorded.
    JobEnd,
    /// A task's only attempt is stopped in favor of a new one: it reports, and needs longer than a new one would.
    Restart,
    /// A task's only attempt is preempted for one of a more urgent job. Its user allowed it, its checkpoint is
    /// durable, and it is launched again when capacity is free.
    Preempt,
    /// Its node does not report its end: another attempt replaces it, and its usage counts until it is gone.
    Abandon,
    /// Its task is no longer needed. It failed for good by a rule, `completions` was lowered below it, or
    /// `parallelism` below the number of running tasks. Or it is a clone that a quota outside shed has not admitted.
    Surplus,
}

impl KillKind {
    /// Whether it stops a task's only attempt, which is launched again.
    pub fn gives_up_the_only(self) -> bool {
        matches!(self, Self::Restart | Self::Preempt)
    }

    /// The value of the metric label `kill`.
    pub fn label(self) -> &'static str {
        match self {
            Self::Settle => "settle",
            Self::Prune => "prune",
            Self::Evict => "evict",
            Self::Replace => "replace",
            Self::Suspend => "suspend",
            Self::JobEnd => "job_end",
            Self::Restart => "restart",
            Self::Preempt => "preempt",
            Self::Abandon => "abandon",
            Self::Surplus => "surplus",
        }
    }
}
