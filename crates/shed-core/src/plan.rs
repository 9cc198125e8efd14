//! What a decision says: settled facts, planned moves with a typed reason each, and a report that
//! explains them.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::float;
use crate::ids::{AttemptNumber, JobKey, NodeName, TaskIndex};
use crate::resources::Resources;
use crate::snapshot::{AttemptKind, Conclusion, KillKind, ResumePoint};
use crate::time::Instant;

/// A fact that `settle` found in one job's snapshot alone. Executors match every variant: a new one
/// must not compile until each of them carries it out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Settled {
    /// An attempt is superfluous or must not run. The record is durable before the delete.
    Kill(Kill),
    /// An attempt finished first: record it as the task's winner.
    Win {
        /// The task.
        task: TaskIndex,
        /// Its winner.
        attempt: AttemptNumber,
        /// When the winner's container finished.
        finished: Instant,
    },
    /// An attempt that is no winner has ended: put it into its bucket, exactly once.
    Count {
        /// The task.
        task: TaskIndex,
        /// The attempt.
        attempt: AttemptNumber,
        /// The bucket.
        outcome: Outcome,
    },
    /// The task used up its back-off limit.
    FailTask {
        /// The task.
        task: TaskIndex,
    },
    /// The job's fate is known: record it; its remaining attempts are killed.
    End(Conclusion),
    /// Nothing of the job is left: its end is final.
    Finish(Conclusion),
}

/// What `decide` plans for a job. Executors match every variant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Move {
    /// Start an attempt.
    Launch(Launch),
    /// Stop an attempt. The record is durable before the delete.
    Kill(Kill),
}

/// The bucket of an ended attempt that did not win.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Outcome {
    /// shed killed it, or a sibling had won, whatever its exit code.
    Superseded,
    /// It failed and spends the task's back-off.
    Failed,
    /// A clone failed while a sibling lived; the back-off is not spent.
    CloneFailed,
    /// Evicted, preempted, lost with its node, deleted by somebody else.
    Disrupted,
    /// It finished after the deadline of a job with `onMiss: Fail`.
    Late,
}

impl Outcome {
    /// The value of the metric label `outcome`.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Superseded => "superseded",
            Self::Failed => "failed",
            Self::CloneFailed => "clone_failed",
            Self::Disrupted => "disrupted",
            Self::Late => "late",
        }
    }
}

/// Start an attempt of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Launch {
    /// The task.
    pub task: TaskIndex,
    /// As what.
    pub kind: AttemptKind,
    /// Where it begins; absent means from zero.
    pub resume: Option<ResumePoint>,
    /// Nodes to stay away from if possible: those with a live attempt of the task, slow ones.
    pub avoid: Vec<NodeName>,
    /// Nodes to prefer others to: those that are slow by what other tenants' attempts tell, and those that
    /// siblings without a node are taken to get.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rather_not: Vec<NodeName>,
    /// The node to go to, where the order of first attempts chooses one. The simulator does so; the
    /// operator leaves the choice to the cluster's scheduler, which knows more about the node than
    /// the facts here.
    pub node: Option<NodeName>,
    /// Launched beyond usable capacity so that cluster autoscalers see demand.
    pub surge: bool,
    /// Why.
    pub reason: LaunchReason,
}

/// Why an attempt is launched.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum LaunchReason {
    /// The task has none and capacity is there.
    Admitted,
    /// The task is a straggler and the optimizer finds the clone worthwhile.
    Straggler {
        /// The job's PoCD before this clone.
        #[serde(with = "float")]
        pocd_before: f64,
        /// Its PoCD with this clone.
        #[serde(with = "float")]
        pocd_after: f64,
    },
    /// A policy other than Shed+ finds that the task should have one more attempt.
    Rule {
        /// What it found.
        finding: Finding,
        /// The job's PoCD before this clone; absent while nothing is known about it.
        #[serde(with = "float::option")]
        pocd_before: Option<f64>,
        /// Its PoCD with this clone.
        #[serde(with = "float::option")]
        pocd_after: Option<f64>,
    },
}

/// What the rule of a policy found, with its figures.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Finding {
    /// Hadoop's speculator, LATE, Hopper: the task is expected to end so many seconds later than
    /// a new attempt would.
    EndsLater {
        /// By how many.
        #[serde(with = "float")]
        seconds: f64,
    },
    /// Mantri: with that probability one attempt more makes the task cost less machine time.
    Saves {
        /// The probability.
        #[serde(with = "float")]
        probability: f64,
    },
    /// ESE: what remains of the task is that many times the mean time of an attempt.
    Overdue {
        /// How many times.
        #[serde(with = "float")]
        times: f64,
    },
    /// The task is to have so many attempts: Dolly, Chronos, SRQuant, LASER, Shed, SCA, DollyMP.
    Copies {
        /// How many, the first included.
        copies: u32,
    },
    /// The task is late, and one more attempt brings the probability that it misses from here.
    Late {
        /// That probability before this clone.
        #[serde(with = "float")]
        miss: f64,
    },
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EndsLater { seconds } => {
                write!(f, "it would end {seconds:.1} s later than a new attempt")
            }
            Self::Saves { probability } => {
                write!(
                    f,
                    "one more saves machine time with probability {probability:.3}"
                )
            }
            Self::Overdue { times } => {
                write!(
                    f,
                    "it still needs {times:.2} times the mean time of an attempt"
                )
            }
            Self::Copies { copies } => write!(f, "it is to have {copies} attempts"),
            Self::Late { miss } => {
                write!(f, "it is late and misses with probability {miss:.3}")
            }
        }
    }
}

/// End an attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Kill {
    /// The task.
    pub task: TaskIndex,
    /// The attempt.
    pub attempt: AttemptNumber,
    /// By which rule.
    pub kind: KillKind,
    /// The sibling that lives on or has won, where the rule needs one.
    pub survivor: Option<AttemptNumber>,
}

/// A move and its job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedMove {
    /// The job.
    pub job: JobKey,
    /// What to do.
    pub action: Move,
}

/// What one planner pass decided.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Kills before launches; first attempts before clones.
    pub actions: Vec<PlannedMove>,
    /// The explanation.
    pub report: PlanReport,
}

/// Why the plan is as it is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PlanReport {
    /// Capacity as the pass saw it.
    pub capacity: CapacityReport,
    /// One entry per job of the snapshot, in its order.
    pub jobs: Vec<JobReport>,
    /// When the next pass is due even if nothing happens.
    pub next_pass: Option<Instant>,
}

/// Capacity in one pass.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CapacityReport {
    /// Per resource min(λ·A, A − requests of other pods).
    pub usable: Resources,
    /// What non-terminal attempts hold of it, Terminating ones included, before the plan. Attempts
    /// on nodes that are not usable hold nothing of it.
    pub used: Resources,
    /// The same with what the plan launches.
    pub used_after: Resources,
}

/// What the pass found out about a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobReport {
    /// The job.
    pub key: JobKey,
    /// PoCD with the attempts that live now; absent while nothing is known about the tasks.
    #[serde(with = "float::option")]
    pub pocd_before: Option<f64>,
    /// PoCD with the clones that the plan launches (or, in `Observe`, would launch).
    #[serde(with = "float::option")]
    pub pocd_after: Option<f64>,
    /// When its last task is expected to end, waves included.
    pub estimated_completion: Option<Instant>,
    /// Whether the optimizer ran for it in this pass.
    pub optimized: bool,
    /// Whether the pass ran out of work (`Policy::work_max`) before the policy was through with the
    /// job: clones beyond those given here were not decided on.
    pub is_cut_short: bool,
    /// Tasks whose estimated completion is after the deadline.
    pub stragglers: Vec<TaskIndex>,
    /// Clones given, in the order of the optimizer.
    pub clones: Vec<CloneReport>,
    /// Attempts killed, and what that gains and costs.
    pub kills: Vec<KillReport>,
    /// Tasks that should have got a clone and did not.
    pub refusals: Vec<Refusal>,
    /// First attempts and retries that wait for capacity or parallelism.
    pub waiting: u32,
    /// Those of them for which there may be room that is kept for jobs to come.
    #[serde(default)]
    pub kept_back: u32,
    /// Expected slot-seconds of an attempt from zero; absent while unknown.
    #[serde(with = "float::option")]
    pub attempt_slot_seconds: Option<f64>,
    /// Which deadline it could keep; absent unless the snapshot asks for it and the pass came to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feasibility: Option<Feasibility>,
}

/// Which deadline a job could keep with the capacity of the moment and without further clones.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Feasibility {
    /// The PoCD at its deadline; absent while it has none, or nothing is known about times.
    #[serde(with = "float::option")]
    pub pocd: Option<f64>,
    /// The PoCD that is enough.
    #[serde(with = "float")]
    pub target: f64,
    /// The earliest deadline that reaches the target; absent while nothing is known about times, or
    /// where none within [`crate::estimate::feasibility::SLACK_MAX`] does.
    pub earliest: Option<Instant>,
    /// Whether anything is known about times.
    pub is_known: bool,
    /// How many of its tasks could run at a time.
    pub width: u32,
}

/// One clone's marginal gain and cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CloneReport {
    /// The task.
    pub task: TaskIndex,
    /// What the job's PoCD rises by.
    #[serde(with = "float")]
    pub pocd_gain: f64,
    /// Expected work of the clone in slot-seconds: (1 − φ_new) · mean execution time.
    #[serde(with = "float")]
    pub cost_slot_seconds: f64,
}

/// One kill's gain and cost.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct KillReport {
    /// The task.
    pub task: TaskIndex,
    /// The attempt.
    pub attempt: AttemptNumber,
    /// By which rule.
    pub kind: KillKind,
    /// The sibling that lives on; none where the task is launched again.
    pub survivor: Option<AttemptNumber>,
    /// Slot-seconds that it frees until the task is expected to end without it; absent while that
    /// is unknown.
    #[serde(with = "float::option")]
    pub freed_slot_seconds: Option<f64>,
    /// What the probability that the task misses rises by; absent without a deadline or times.
    #[serde(with = "float::option")]
    pub miss_added: Option<f64>,
}

/// A clone that was not launched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// The task.
    pub task: TaskIndex,
    /// Why not.
    pub why: RefusalReason,
}

/// Why a straggler gets no clone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum RefusalReason {
    /// No usable capacity is left.
    Capacity,
    /// No eligible node has room.
    NoNode,
    /// No clone could be in time, or no number of clones makes the job's PoCD positive.
    Hopeless,
    /// The task has as many clones as it may.
    Maximum,
    /// Two clones of the task failed.
    CloneFailures,
    /// A clone of the task was disrupted a moment ago.
    Disrupted,
    /// `idempotency: None`.
    NotIdempotent,
    /// `speculation.mode: Observe`.
    Observe,
    /// The policy's own bound of clones in use is reached.
    Budget,
    /// The pass's bound of work is reached.
    Work,
    /// The job's PoCD is as high as its user wants it.
    Target,
}

impl RefusalReason {
    /// The value of the metric label `reason`.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Capacity => "capacity",
            Self::NoNode => "no_node",
            Self::Hopeless => "hopeless",
            Self::Maximum => "maximum",
            Self::CloneFailures => "clone_failures",
            Self::Disrupted => "disrupted",
            Self::NotIdempotent => "not_idempotent",
            Self::Observe => "observe",
            Self::Budget => "budget",
            Self::Work => "work",
            Self::Target => "target",
        }
    }
}
