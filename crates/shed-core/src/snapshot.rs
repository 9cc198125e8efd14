//! The facts for a decision: jobs, tasks, attempts and nodes at one instant, without any logic that decides. Both
//! executors build it: the operator from its stores and ledgers, the simulator from its model.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::float;
use crate::ids::{AttemptNumber, JobClass, JobKey, NodeName, TaskIndex, Tenant};
use crate::index_set::IndexSet;
use crate::resources::Resources;
use crate::time::{Instant, Span};

mod end_rules;
mod expected_duration;
mod kill;
mod new_task;
mod obstacles;
mod phases;
mod ranges;
mod slot_time;

pub use end_rules::{Conclusion, EndRules, SuccessRule};
pub use expected_duration::{ExpectedDuration, ExpectedDurationError};
pub use kill::KillKind;
pub use obstacles::{GATED_MAX, Obstacles};
pub use phases::{PhaseTime, Phases};
pub use slot_time::SlotTime;

/// The cluster in one planning pass.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// When the facts were gathered.
    pub now: Instant,
    /// All nodes, including those that take no attempts now; `NodeIndex` points into this list.
    pub nodes: Vec<Node>,
    /// Jobs that are not finished, in a stable order (submission, then key).
    pub jobs: Vec<JobSnapshot>,
    /// Mean time from the launch of an attempt to its first progress report (the papers' t_avg), or to its start if
    /// attempts report nothing; absent until one was measured.
    pub launch_overhead: Option<Span>,
    /// The same for tenants whose own attempts were measured.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub launch_overheads: BTreeMap<Tenant, Span>,
    /// The weights of tenants in the division of capacity, each above 0 and finite. A tenant that is absent has the
    /// weight 1. Without any weight the capacity is not divided.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub weights: BTreeMap<Tenant, f64>,
}

impl Snapshot {
    /// The expected overhead of a launch of that tenant: that of its own attempts, or else the overall measurement.
    pub fn launch_overhead_of(&self, tenant: &Tenant) -> Option<Span> {
        let own = self.launch_overheads.get(tenant).copied();
        own.or(self.launch_overhead)
    }
}

/// Position of a node in [`Snapshot::nodes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NodeIndex(pub usize);

/// A node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Node {
    /// The node's name.
    pub name: NodeName,
    /// The amounts that pods may use of the node altogether.
    pub allocatable: Resources,
    /// The free amounts after every non-terminal pod on the node, attempts included.
    pub free: Resources,
    /// The requests of pods that are not attempts on the node.
    pub used_by_others: Resources,
    /// Whether the node takes attempts: ready, schedulable and present. Attempts on an unusable node are charged to
    /// it alone.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub usable: bool,
}

/// Before unusable nodes were listed, every node was usable.
fn yes() -> bool {
    true
}

fn is_yes(flag: &bool) -> bool {
    *flag
}

/// The user's choice about clones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum SpeculationMode {
    /// Decide and launch.
    #[default]
    Enabled,
    /// Decide and report, launch nothing.
    Observe,
    /// No clones, no decision about them.
    Disabled,
}

/// The treatment of attempts at the deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum OnMiss {
    /// Attempts stop and the job fails, as in the papers.
    Fail,
    /// Attempts continue; the miss is recorded.
    #[default]
    Continue,
}

/// Where an attempt after the first may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Resume {
    /// From zero: in PoCD a clone is a restart.
    None,
    /// At the best attempt's last checkpoint.
    Checkpoint,
    /// At the best attempt's last checkpoint at the time when the new attempt has started. Work that the others do
    /// meanwhile is not repeated (eq. 16 of Shed+, and the original runs on).
    Latest,
    /// Where the best attempt will be once a clone has started (eq. 16 of Shed+). The best attempt stops there, and
    /// the rest of the range, which clones take over, is a separate task to this crate. Executors derive the position
    /// from the attempt's checkpoint.
    Range,
}

impl Resume {
    /// Whether an attempt's work outlives it.
    pub fn keeps_checkpoints(self) -> bool {
        matches!(self, Self::Checkpoint | Self::Latest)
    }
}

/// Whether a task's only attempt may be preempted for an attempt of a more urgent job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Preemption {
    /// It may not.
    #[default]
    Never,
    /// It may, if the job resumes and a checkpoint of the task is durable. The task continues from there.
    WhenCheckpointed,
}

/// Whether two live copies of a task are harmful.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Idempotency {
    /// They are harmless.
    Safe,
    /// They may run, but only the one that holds the task's grant may publish.
    Fenced,
    /// A task must never have two.
    None,
}

/// The fields of a job's specification that decisions depend on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobRules {
    /// How many tasks the job has; indexes are `0..completions`.
    pub completions: u32,
    /// How many tasks may have a live attempt at a time; clones are not counted.
    pub parallelism: u32,
    /// Whether two live copies are harmful.
    pub idempotency: Idempotency,
    /// Where clones and retries begin.
    pub resume: Resume,
    /// The user's speculation mode.
    pub speculation: SpeculationMode,
    /// Most live clones of one task in addition to its first attempt (the papers' MAX).
    pub max_clones_per_task: u32,
    /// The PoCD target, in (0, 1]: a job that has reached it gets no clone. Absent: as many clones as the policy
    /// finds worthwhile.
    #[serde(default, with = "float::option")]
    pub target_pocd: Option<f64>,
    /// The limit of the slot-seconds of clones as a share of the job's own slot-seconds, at least 0. A straggler may
    /// have one clone whatever the limit. Absent: no limit.
    #[serde(
        default,
        with = "float::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub clone_budget: Option<f64>,
    /// The treatment of attempts at the deadline.
    pub on_miss: OnMiss,
    /// Failures that a task may have before it has failed for good.
    pub backoff_limit_per_index: u32,
    /// Whether the user suspended the job.
    pub suspend: bool,
    /// Whether a task is launched again only when its last attempt is gone (`podReplacementPolicy: Failed`).
    #[serde(default)]
    pub replaces_when_gone: bool,
    /// Whether the job's running attempts may be preempted for a more urgent job's.
    #[serde(default)]
    pub preemption: Preemption,
    /// The rules that end the job before all its tasks have ended.
    #[serde(default)]
    pub ending: EndRules,
}

impl JobRules {
    /// Whether a relaunch of a task has to wait until all other attempts are gone.
    pub fn waits_until_gone(&self) -> bool {
        self.idempotency == Idempotency::None || self.replaces_when_gone
    }

    /// Whether an attempt with a durable checkpoint may be preempted.
    pub fn is_preemptible(&self) -> bool {
        self.preemption == Preemption::WhenCheckpointed
            && self.resume.keeps_checkpoints()
            && !self.waits_until_gone()
    }
}

/// The stage of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum JobPhase {
    /// Attempts may be launched (unless the rules suspend it).
    Active,
    /// The job's result is recorded, the remaining attempts are being stopped.
    Ending(Conclusion),
}

/// One job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobSnapshot {
    /// The job's identity.
    pub key: JobKey,
    /// The job's tenant.
    pub tenant: Tenant,
    /// The recurring class of the job, if its user names one: earlier jobs of the class give estimates of its times.
    pub class: Option<JobClass>,
    /// How long its user expects an attempt to take. The job's own attempts outweigh it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_duration: Option<ExpectedDuration>,
    /// When the job was submitted, or first ran if its clock starts then.
    pub submitted: Instant,
    /// When the job must be complete; absent until a clock that starts with the first unsuspended pass has started.
    pub deadline: Option<Instant>,
    /// The rules that the job's user set.
    pub rules: JobRules,
    /// The job's stage.
    pub phase: JobPhase,
    /// Whether an attempt of the job was ever launched.
    pub launched_before: bool,
    /// Whether the job's attempts can report progress.
    pub reports_progress: bool,
    /// The requests of one attempt (with `pods: 1`).
    pub demand: Resources,
    /// Nodes that the job's attempts may use, ascending.
    #[serde(with = "ranges")]
    pub eligible_nodes: Arc<[NodeIndex]>,
    /// Tasks with a winner.
    pub done: IndexSet,
    /// Tasks that have failed for good.
    pub failed: IndexSet,
    /// Tasks with attempts or a history, ascending; all others are untouched.
    pub tasks: Vec<TaskSnapshot>,
    /// Execution times (start to finish) of recent winners; those of resumed ones are scaled up to a whole task.
    pub ended_runs: Vec<Span>,
    /// The slot time of attempts whose end is counted. Executors record it for jobs with a clone budget only.
    #[serde(default, skip_serializing_if = "SlotTime::is_zero")]
    pub ended_slot_time: SlotTime,
    /// Nothing may be launched before this (the apiserver refused attempts of this job).
    pub launch_not_before: Option<Instant>,
    /// Other obstacles to creating or placing the job's attempts.
    #[serde(default, skip_serializing_if = "Obstacles::are_none")]
    pub obstacles: Obstacles,
    /// Failures of all the job's tasks that were counted so far.
    #[serde(default)]
    pub failures: u32,
    /// When the job fails whatever its deadline (`activeDeadlineSeconds`).
    #[serde(default)]
    pub time_limit: Option<Instant>,
    /// The time up to which the facts about this job's attempts are known to be complete: they include every end
    /// before it. An end is reported some time later, so a live read is not complete up to its own instant.
    pub facts_as_of: Instant,
    /// Whether the report must include the deadline that the job could keep. That requires a search, which not every
    /// pass can afford.
    #[serde(default)]
    pub asks_feasibility: bool,
    /// Nodes on which attempts of the job lately could not start: others are preferred.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub avoid: Vec<NodeIndex>,
    /// The number of attempts that a quota outside shed has admitted at a time. That quota has ordered the job and
    /// counts on its attempts: the first ones are launched at once, beyond capacity if necessary, and it gets no
    /// clones. Absent: shed orders the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admitted: Option<u32>,
    /// Whether the deadline is that of a run, and the job is not known to be its last stage.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_stage: bool,
    /// What else its run has to do, where the graph of the run is known: in the simulator only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phases: Option<Phases>,
}

/// One task with attempts or a history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskSnapshot {
    /// The task's index.
    pub index: TaskIndex,
    /// The task's winner, once there is one.
    pub winner: Option<AttemptNumber>,
    /// Attempts whose end is not accounted for yet, ascending by number.
    pub attempts: Vec<AttemptSnapshot>,
    /// Counted failures.
    pub failures: u32,
    /// Failures of clones while a sibling lived: after two the task gets no more clones.
    pub clone_failures: u32,
    /// No retry before this (back-off).
    pub retry_not_before: Option<Instant>,
    /// The best durable checkpoint of any of the task's attempts, ended ones included.
    pub resume_point: Option<ResumePoint>,
    /// With `Fenced`: the attempt that may publish. It stays until that attempt's end is counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<Grant>,
    /// Nodes on which attempts of the task were last disrupted: others are preferred.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub avoid: Vec<NodeIndex>,
    /// When a clone of the task was last disrupted: the task gets no other for a while.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clone_disrupted: Option<Instant>,
}

/// A commit grant: the permission to publish a task's result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// The attempt that holds it.
    pub attempt: AttemptNumber,
    /// When it was granted. This time counts against the deadline, because publishing has begun.
    pub at: Instant,
}

/// A point where an attempt may begin. Its checkpoint is the user's, and may be a secret such as a signed address.
/// `Debug`, which appears in logs, shows only its length.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct ResumePoint {
    /// Progress at the checkpoint, in [0, 1].
    #[serde(with = "float")]
    pub progress: f64,
    /// The checkpoint that the task wrote; opaque, at most 256 bytes.
    pub checkpoint: Arc<str>,
}

impl fmt::Debug for ResumePoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResumePoint")
            .field("progress", &self.progress)
            .field(
                "checkpoint",
                &format_args!("{} bytes", self.checkpoint.len()),
            )
            .finish()
    }
}

/// The reason that an attempt was launched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum AttemptKind {
    /// A task's first attempt.
    Original,
    /// Launched while another attempt of the task lived.
    Clone,
    /// Launched because no attempt lived.
    Retry,
}

impl AttemptKind {
    /// The value of the metric label and pod label `kind`.
    pub fn label(self) -> &'static str {
        match self {
            Self::Original => "original",
            Self::Clone => "clone",
            Self::Retry => "retry",
        }
    }
}

/// One attempt whose end is not accounted for yet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttemptSnapshot {
    /// The attempt's number within the task.
    pub number: AttemptNumber,
    /// Why the attempt was launched.
    pub kind: AttemptKind,
    /// The state of the attempt.
    pub state: AttemptState,
    /// The recorded kill, if shed decided to stop the attempt.
    pub kill: Option<KillKind>,
    /// When that kill was recorded. No decision uses it, because clocks of nodes cannot be compared with it.
    pub killed_at: Option<Instant>,
    /// When the attempt's launch was recorded.
    pub launched: Instant,
    /// Where the attempt runs, once placed on a node of this snapshot.
    pub node: Option<NodeIndex>,
    /// When the attempt's main container started processing.
    pub started: Option<Instant>,
    /// The progress at which the attempt began, in [0, 1): its resume point's or 0.
    #[serde(with = "float")]
    pub start_progress: f64,
    /// The attempt's reports; absent means unknown, never zero.
    pub progress: Option<Progress>,
    /// The last checkpoint that the attempt reported.
    pub checkpoint: Option<ResumePoint>,
    /// The further consequence of its failure, by the user's `podFailurePolicy`.
    #[serde(default)]
    pub failure_rule: Option<FailureRule>,
    /// Whether its pod should be gone, and no report of its end will come soon.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub out_of_reach: bool,
    /// Whether the attempt's end was first seen on a pod that was being deleted. An exit with 0 may then be the
    /// task's response to SIGTERM. For a stopped attempt it is no success.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ended_in_deletion: bool,
    /// Whether the attempt cannot be created or placed, although it should have been by now. Its job gets no further
    /// launches meanwhile.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unplaceable: bool,
    /// Whether scheduling gates keep its pod from being placed. It waits for the controller that lifts them, and holds
    /// nothing until then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gated: bool,
    /// Whether it runs in a pod that is not ready. Of a job's surplus attempts, these are stopped first.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unready: bool,
}

/// The consequence of an attempt's failure in addition to being counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum FailureRule {
    /// Its task has failed for good (`FailIndex`).
    FailTask,
    /// Its job has failed (`FailJob`).
    FailJob,
}

impl AttemptSnapshot {
    /// Whether the attempt may still win: not ended, not killed.
    pub fn lives(&self) -> bool {
        self.kill.is_none() && self.holds_capacity()
    }

    /// Whether the attempt still uses its requests: also while it is being stopped.
    pub fn holds_capacity(&self) -> bool {
        matches!(
            self.state,
            AttemptState::Launching
                | AttemptState::Pending
                | AttemptState::Stuck { .. }
                | AttemptState::Running
        )
    }
}

/// The reports of one attempt; values never go back.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// When the first report came (the papers' t_FP).
    pub first_at: Instant,
    /// Its value.
    #[serde(with = "float")]
    pub first: f64,
    /// When the newest value came.
    pub last_at: Instant,
    /// The newest value, in [0, 1].
    #[serde(with = "float")]
    pub last: f64,
}

/// The state of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum AttemptState {
    /// Recorded; its pod has not appeared yet.
    Launching,
    /// Its pod exists, its task has not started.
    Pending,
    /// The pod cannot start for a reason that does not pass by itself soon (image, config).
    Stuck {
        /// Since when.
        since: Instant,
    },
    /// Its task runs.
    Running,
    /// Its main containers ended with 0.
    Succeeded {
        /// When the last of them ended.
        finished: Instant,
    },
    /// It ended otherwise.
    Failed {
        /// When.
        finished: Instant,
        /// Not caused by the task: eviction, node loss, deletion by another client.
        disrupted: bool,
    },
    /// Its pod existed and is gone without an observed end.
    Lost,
}

impl JobSnapshot {
    /// The task's entry, if it has attempts or a history.
    pub fn task(&self, index: TaskIndex) -> Option<&TaskSnapshot> {
        // A task that is launched for the first time mostly comes after all others.
        if self.tasks.last().is_none_or(|last| last.index < index) {
            return None;
        }
        let position = self.tasks.binary_search_by_key(&index, |task| task.index);
        position.ok().map(|position| &self.tasks[position])
    }

    /// The time from the job's submission to its deadline.
    pub fn time_given(&self) -> Option<Span> {
        Some(self.deadline?.since(self.submitted))
    }

    /// The number of live attempts that a quota outside shed allows: it takes back what ended tasks no longer need.
    pub fn attempts_admitted(&self) -> Option<u32> {
        self.admitted
            .map(|admitted| admitted.min(self.unfinished()))
    }

    /// Tasks that have not ended, including those that wait.
    pub fn unfinished(&self) -> u32 {
        let ended = self.done.len().saturating_add(self.failed.len());
        self.rules.completions.saturating_sub(ended)
    }

    /// Whether the task has a winner, has failed for good, or does not belong to the job (any more).
    pub fn has_ended(&self, index: TaskIndex) -> bool {
        index.0 >= self.rules.completions
            || self.done.contains(index)
            || self.failed.contains(index)
    }
}

impl TaskSnapshot {
    /// When the attempt received its commit grant.
    pub fn granted_at(&self, number: AttemptNumber) -> Option<Instant> {
        let grant = self.grant.filter(|grant| grant.attempt == number);
        grant.map(|grant| grant.at)
    }

    /// The grant, if its holder may still finish.
    pub fn live_grant(&self) -> Option<Grant> {
        let grant = self.grant?;
        let mut live = self.live();
        live.any(|attempt| attempt.number == grant.attempt)
            .then_some(grant)
    }

    /// Attempts that may still win.
    pub fn live(&self) -> impl Iterator<Item = &AttemptSnapshot> {
        self.attempts.iter().filter(|attempt| attempt.lives())
    }

    /// Whether a checkpoint of the task is durable that saves work.
    pub fn has_checkpoint(&self) -> bool {
        self.best_resume_point()
            .is_some_and(|point| point.progress > 0.0)
    }

    /// The furthest point at which a new attempt may begin: the durable resume point or one that the attempts
    /// reported.
    pub fn best_resume_point(&self) -> Option<&ResumePoint> {
        let reported = self
            .attempts
            .iter()
            .filter_map(|attempt| attempt.checkpoint.as_ref());
        self.resume_point
            .iter()
            .chain(reported)
            .max_by(|a, b| a.progress.total_cmp(&b.progress))
    }
}
