//! The content of a decision: settled facts, planned moves with a typed reason each, and a report that explains them.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::float;
use crate::ids::{AttemptNumber, JobKey, NodeName, TaskIndex, Tenant};
use crate::resources::Resources;
use crate::risk::Risk;
use crate::snapshot::{AttemptKind, Conclusion, KillKind, ResumePoint};
use crate::time::Instant;

/// A fact that `settle` derived from one job's snapshot alone. Executors match every variant, so that a new one does
/// not compile until each of them carries it out.
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
    /// An attempt other than the winner has ended: count it in its bucket, exactly once.
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
    /// The job's result is known: record it; its remaining attempts are killed.
    End(Conclusion),
    /// Nothing of the job is left: its end is final.
    Finish(Conclusion),
}

/// A move that `decide` plans for a job. Executors match every variant.
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
    /// shed stopped it, or a sibling had won, whatever its exit code.
    Superseded,
    /// It failed and spends the task's back-off.
    Failed,
    /// A clone failed while a sibling lived; the back-off is not spent.
    CloneFailed,
    /// Evicted, preempted, lost with its node, or deleted by another client.
    Disrupted,
    /// It finished after the deadline of a job with `onMiss: Fail`.
    Late,
}

impl Outcome {
    /// The value of the metric label `outcome`.
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
    /// The kind of the attempt.
    pub kind: AttemptKind,
    /// Where it begins; absent means from zero.
    pub resume: Option<ResumePoint>,
    /// Nodes to stay away from if possible: those with a live attempt of the task, slow ones.
    pub avoid: Vec<NodeName>,
    /// Nodes to avoid if others are available. They are the nodes that only other tenants' attempts show to be slow,
    /// and the assumed nodes of siblings without one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rather_not: Vec<NodeName>,
    /// The node for the attempt, if the order of first attempts chooses one. The simulator follows it. The operator
    /// leaves the choice to the cluster's scheduler, which has more facts about the node than the snapshot.
    pub node: Option<NodeName>,
    /// Launched beyond usable capacity so that cluster autoscalers see demand.
    pub surge: bool,
    /// Why the attempt is launched.
    pub reason: LaunchReason,
}

/// Why an attempt is launched.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum LaunchReason {
    /// The task has no attempt and capacity is free.
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
        /// The rule's finding.
        finding: Finding,
        /// The job's PoCD before this clone; absent while nothing is known about it.
        #[serde(with = "float::option")]
        pocd_before: Option<f64>,
        /// Its PoCD with this clone.
        #[serde(with = "float::option")]
        pocd_after: Option<f64>,
    },
}

/// The finding of a policy's rule, with its figures.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Finding {
    /// Hadoop's speculator, LATE, Hopper: the task is expected to end this many seconds later than a new attempt
    /// would.
    EndsLater {
        /// The number of seconds.
        #[serde(with = "float")]
        seconds: f64,
    },
    /// Mantri: with this probability one more attempt reduces the machine time of the task.
    Saves {
        /// The probability.
        #[serde(with = "float")]
        probability: f64,
    },
    /// ESE: the task's remaining time is this multiple of the mean time of an attempt.
    Overdue {
        /// The multiple.
        #[serde(with = "float")]
        times: f64,
    },
    /// The task should have this many attempts: Dolly, Chronos, SRQuant, LASER, Shed, SCA, DollyMP.
    Copies {
        /// The number of attempts, including the first.
        copies: u32,
    },
    /// The task is late, and one more attempt reduces the probability of a miss from this value.
    Late {
        /// The probability before this clone.
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
                    "one more attempt saves machine time with probability {probability:.3}"
                )
            }
            Self::Overdue { times } => {
                write!(
                    f,
                    "it still needs {times:.2} times the mean time of an attempt"
                )
            }
            Self::Copies { copies } => write!(f, "it should have {copies} attempts"),
            Self::Late { miss } => {
                write!(f, "it is late and misses with probability {miss:.3}")
            }
        }
    }
}

/// Stop an attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Kill {
    /// The task.
    pub task: TaskIndex,
    /// The attempt.
    pub attempt: AttemptNumber,
    /// The rule that stops it.
    pub kind: KillKind,
    /// The sibling that survives or has won, if the rule needs one.
    pub survivor: Option<AttemptNumber>,
}

/// A move and its job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedMove {
    /// The job.
    pub job: JobKey,
    /// The move to carry out.
    pub action: Move,
}

/// The decisions of one planning pass.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Stops before launches; first attempts before clones.
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
    /// What each tenant may use of the capacity and what it uses, in the order of tenants. It is empty while they
    /// divide nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shares: Vec<TenantShare>,
}

/// A tenant's part of the capacity that attempts may use: fractions of it, by the tenant's dominant resource.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TenantShare {
    /// The tenant.
    pub tenant: Tenant,
    /// The share that the tenant is entitled to: weighted max-min over demand.
    pub entitled: f64,
    /// The share that its attempts hold with the plan, clones and stopping attempts included.
    pub held: f64,
    /// The part of `held` beyond `entitled`.
    pub lent: f64,
    /// The part of `entitled` that its tasks wait for while others hold it.
    pub owed: f64,
    /// When the tenant holds its share at the latest, by the expected ends of what others hold of it. It is absent if
    /// nothing is owed or an end is not known.
    pub owed_until: Option<Instant>,
}

/// Capacity in one pass.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CapacityReport {
    /// Per resource min(λ·A, A − requests of other pods).
    pub usable: Resources,
    /// The share of it that non-terminal attempts hold before the plan, including Terminating ones. Attempts on
    /// unusable nodes hold nothing of it.
    pub used: Resources,
    /// The same with the plan's launches.
    pub used_after: Resources,
}

/// When a job has ended with these probabilities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndRange {
    /// With probability 0.5.
    pub p50: Instant,
    /// With probability 0.9.
    pub p90: Instant,
}

/// The pass's findings about a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobReport {
    /// The job.
    pub key: JobKey,
    /// PoCD with the live attempts; absent while nothing is known about the tasks.
    #[serde(with = "float::option")]
    pub pocd_before: Option<f64>,
    /// PoCD with the clones that the plan launches. In `Observe` it launches none.
    #[serde(with = "float::option")]
    pub pocd_after: Option<f64>,
    /// PoCD if each running task may still get further attempts, as the policy starts them for tasks that are late.
    #[serde(default, with = "float::option")]
    pub pocd_expected: Option<f64>,
    /// When the job's last task is expected to end, waves included.
    pub estimated_completion: Option<Instant>,
    /// Its likely end, if the executor asks for it and something is known about the tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_range: Option<EndRange>,
    /// Whether the optimizer ran for the job in this pass.
    pub optimized: bool,
    /// Whether the pass ran out of work (`Policy::work_max`) before the policy was done with the job. Further clones
    /// than those given here were not considered.
    pub is_cut_short: bool,
    /// Tasks whose estimated completion is after the deadline.
    pub stragglers: Vec<TaskIndex>,
    /// Clones given, in the order of the optimizer. In `Observe` the plan does not launch them.
    pub clones: Vec<CloneReport>,
    /// Attempts stopped, with the gain and cost of each.
    pub kills: Vec<KillReport>,
    /// Tasks that should have got a clone and did not.
    pub refusals: Vec<Refusal>,
    /// The figures of the job's clone budget; absent unless the job has one and the pass weighed a clone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clone_budget: Option<CloneBudget>,
    /// First attempts and retries that wait for capacity or parallelism.
    pub waiting: u32,
    /// Waiting attempts that wait because of the tenants' shares: their tenant has used its share and may borrow no more,
    /// or other tenants still hold a part of its share. Attempts that wait because the cluster is full do not count.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub waiting_for_share: u32,
    /// Expected slot-seconds of an attempt from zero; absent while unknown.
    #[serde(with = "float::option")]
    pub attempt_slot_seconds: Option<f64>,
    /// The deadline that the job could keep; absent unless the snapshot requests it and the pass computed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feasibility: Option<Feasibility>,
    /// What lowers the job's PoCD most; absent if the pass did not look at the job, or if the PoCD is near 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub risk: Option<Risk>,
    /// Expected ends of the attempts of cloned tasks, of the task that `risk` names, and of stragglers: at most
    /// [`ENDS_MAX`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ends: Vec<ExpectedEnd>,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// A report has the expected ends of at most this number of attempts.
pub const ENDS_MAX: usize = 16;

/// When an attempt is expected to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExpectedEnd {
    /// The task.
    pub task: TaskIndex,
    /// The attempt.
    pub attempt: AttemptNumber,
    /// When.
    pub at: Instant,
}

/// The deadline that a job could keep with the present capacity and without further clones.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Feasibility {
    /// The PoCD at the job's deadline; absent without a deadline, or while times are unknown.
    #[serde(with = "float::option")]
    pub pocd: Option<f64>,
    /// The target of the PoCD.
    #[serde(with = "float")]
    pub target: f64,
    /// The earliest deadline that reaches the target. Absent while times are unknown, or if no deadline within
    /// [`crate::estimate::feasibility::SLACK_MAX`] reaches it.
    pub earliest: Option<Instant>,
    /// Whether any times are known.
    pub is_known: bool,
    /// The number of the job's tasks that could run at a time.
    pub width: u32,
}

/// The figures of a job's clone budget in slot-seconds: spent so far, and expected until the live attempts end.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CloneBudget {
    /// Of first attempts and retries, with those that the plan launches.
    #[serde(with = "float")]
    pub own: f64,
    /// Of clones that were launched before the plan.
    #[serde(with = "float")]
    pub clones: f64,
    /// Of the plan's clones.
    #[serde(with = "float")]
    pub granted: f64,
}

/// One clone's marginal gain and cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CloneReport {
    /// The task.
    pub task: TaskIndex,
    /// The increase of the job's PoCD.
    #[serde(with = "float")]
    pub pocd_gain: f64,
    /// Expected work of the clone in slot-seconds: (1 − φ_new) · mean execution time.
    #[serde(with = "float")]
    pub cost_slot_seconds: f64,
    /// What the policy has weighed; absent for policies without a price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trade: Option<Trade>,
}

/// What a policy with a price has weighed before it launched a clone. Gains and prices are in expected deadlines met.
/// Clones that were weighed together have the mean of their gains and prices.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trade {
    /// The gain over later clones: what would be lost if the policy waited.
    #[serde(with = "float")]
    pub gain: f64,
    /// The price that the gain had to reach.
    #[serde(with = "float")]
    pub price: f64,
    /// The best use of the slots that was not chosen; absent if nothing else would have gained.
    pub alternative: Option<Alternative>,
}

/// What a policy could have done instead of launching a clone. Gains and prices are in expected deadlines met.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Alternative {
    /// Clones that gain their price, and for which capacity was missing.
    Clones {
        /// Their job.
        job: JobKey,
        /// Their number.
        clones: u32,
        /// The gain of each one.
        #[serde(with = "float")]
        gain: f64,
        /// The price of each one.
        #[serde(with = "float")]
        price: f64,
    },
    /// A first attempt or retry that waits for capacity.
    Attempt {
        /// Its job.
        job: JobKey,
        /// What it gains in the time for which the clone holds its slot.
        #[serde(with = "float")]
        gain: f64,
    },
    /// No clone before the next report.
    Wait {
        /// What the clones that can follow that report add to the job's PoCD.
        #[serde(with = "float")]
        gain: f64,
    },
}

impl fmt::Display for Alternative {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Clones {
                job,
                clones,
                gain,
                price,
            } => write!(
                f,
                "clones of job {job}, {clones} at once, which gain {gain:.4} each for a price of {price:.4}"
            ),
            Self::Attempt { job, gain } => {
                write!(
                    f,
                    "an attempt of job {job} that waits, which gains {gain:.4}"
                )
            }
            Self::Wait { gain } => {
                write!(f, "to wait for the next report, which gains {gain:.4}")
            }
        }
    }
}

/// The gain and cost of stopping one attempt.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct KillReport {
    /// The task.
    pub task: TaskIndex,
    /// The attempt.
    pub attempt: AttemptNumber,
    /// The rule that stops it.
    pub kind: KillKind,
    /// The sibling that survives; absent if the task is launched again.
    pub survivor: Option<AttemptNumber>,
    /// Slot-seconds that become free until the task is expected to end without the attempt; absent while that is
    /// unknown.
    #[serde(with = "float::option")]
    pub freed_slot_seconds: Option<f64>,
    /// The increase of the probability that the task misses; absent without a deadline or times.
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
    /// No eligible node has enough free capacity.
    NoNode,
    /// No clone could be in time, or no number of clones makes the job's PoCD positive.
    Hopeless,
    /// The task has the maximum number of clones.
    Maximum,
    /// Two clones of the task failed.
    CloneFailures,
    /// A clone of the task was disrupted recently.
    Disrupted,
    /// `idempotency: None`.
    NotIdempotent,
    /// `speculation.mode: Observe`.
    Observe,
    /// The policy's own limit of clones in use is reached.
    Budget,
    /// The pass's work budget is used up.
    Work,
    /// The job's PoCD has reached the value that its user set.
    Target,
    /// An administrator stopped new clones of the job's namespace, or of the whole cluster.
    Stopped,
    /// The job's own budget of clones is used up.
    JobBudget,
    /// A quota outside shed has admitted the job, and no attempts beyond one for each task.
    Queue,
}

impl RefusalReason {
    /// The value of the metric label `reason`.
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
            Self::Stopped => "stopped",
            Self::JobBudget => "job_budget",
            Self::Queue => "queue",
        }
    }
}
