//! Events of a job, for Kubernetes events, metrics and the log.

use shed_core::plan::{Launch, Outcome};
use shed_core::snapshot::{AttemptKind, Conclusion, KillKind};

use crate::cluster::pod::AttemptId;

/// Something that happened in a step.
#[derive(Debug, Clone, PartialEq)]
pub enum Notice {
    /// An attempt was recorded; its pod follows.
    Launched {
        /// The attempt.
        id: AttemptId,
        /// The planner's words.
        launch: Launch,
    },
    /// An attempt must die.
    Killed {
        /// The attempt.
        id: AttemptId,
        /// By which rule.
        kind: KillKind,
    },
    /// shed recorded a commit grant for an attempt.
    Granted {
        /// The attempt.
        id: AttemptId,
        /// Its fencing token.
        token: i64,
    },
    /// A task has a winner.
    Won {
        /// The winner.
        id: AttemptId,
        /// The kind of its launch.
        kind: AttemptKind,
        /// Progress that it did not have to make itself.
        resumed_from: f64,
    },
    /// An attempt ended otherwise.
    Counted {
        /// The attempt.
        id: AttemptId,
        /// The kind of its launch.
        kind: AttemptKind,
        /// Its bucket.
        outcome: Outcome,
        /// Whether it failed because it ended with exit code 0 and never requested a commit grant.
        uncommitted: bool,
    },
    /// A task has failed for good.
    TaskFailed {
        /// The task.
        task: u32,
    },
    /// The job's fate is known.
    Ending(Conclusion),
    /// The job has ended.
    Finished(Conclusion),
    /// A pod carries the job's labels and a number that was never given out.
    Unrecorded {
        /// Its name.
        pod: String,
    },
}
