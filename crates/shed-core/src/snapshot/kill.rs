//! Why attempts are ended.

use serde::{Deserialize, Serialize};

/// Why shed ends an attempt. Each kind has its own rule in `plan_check`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum KillKind {
    /// A sibling won; the winner is recorded.
    Settle,
    /// A sibling that reports progress is kept and covers the range.
    Prune,
    /// A clone makes room for a waiting first attempt; a sibling lives on.
    Evict,
    /// The attempt never started (image, config) and will be launched again later; or it is a clone
    /// that can't be placed, and a sibling lives on.
    Replace,
    /// The user suspended the job.
    Suspend,
    /// The job's fate is recorded.
    JobEnd,
    /// A task's only attempt is given up for one that is launched anew: it reports, and still needs
    /// longer than that one would.
    Restart,
    /// A task's only attempt makes way for one of a more urgent job: its user allowed it, its
    /// checkpoint is durable, and it is launched again when there is room.
    Preempt,
    /// Its node is out of reach: another attempt takes its place, and what it still uses there is
    /// counted until it is gone.
    Abandon,
    /// Nobody wants its task to run any more: it failed for good by a rule, `completions` was
    /// lowered below it, or `parallelism` below the number of tasks that run.
    Surplus,
}

impl KillKind {
    /// Whether it ends a task's only attempt, which is launched again.
    #[must_use]
    pub fn gives_up_the_only(self) -> bool {
        matches!(self, Self::Restart | Self::Preempt)
    }

    /// The value of the metric label `kill`.
    #[must_use]
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
