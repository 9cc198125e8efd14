//! Everything that a decision may look at: facts about jobs, tasks, attempts and nodes at one
//! instant. No behaviour that decides. Both executors build it: the operator from its stores
//! and ledgers, the simulator from its world.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::float;
use crate::ids::{AttemptNumber, JobClass, JobKey, NodeName, TaskIndex, Tenant};
use crate::index_set::IndexSet;
use crate::resources::Resources;
use crate::time::{Instant, Span};

mod ending;
mod kill;
mod obstacles;
mod ranges;

pub use ending::{Conclusion, EndRules, SuccessRule};
pub use kill::KillKind;
pub use obstacles::Obstacles;

/// The cluster as one planner pass sees it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// When the facts were gathered.
    pub now: Instant,
    /// All nodes, also those that take no attempts now; `NodeIndex` points into this list.
    pub nodes: Vec<Node>,
    /// Jobs that are not finished, in a stable order (submission, then key).
    pub jobs: Vec<JobSnapshot>,
    /// Mean time from the launch of an attempt to its first progress report (the papers'
    /// t_avg), or to its start where attempts report nothing; absent until one was measured.
    pub launch_overhead: Option<Span>,
    /// The same for tenants whose own attempts were measured.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub launch_overheads: BTreeMap<Tenant, Span>,
}

impl Snapshot {
    /// What is expected of a launch of that tenant: what its own attempts show, or else what was
    /// measured in all.
    #[must_use]
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
    /// Its name.
    pub name: NodeName,
    /// What pods may use of it altogether.
    pub allocatable: Resources,
    /// What is left after every non-terminal pod on it, attempts included.
    pub free: Resources,
    /// What pods that are no attempts request on it.
    pub used_by_others: Resources,
    /// Whether it takes attempts: ready, schedulable and there. What runs on one that does not is
    /// charged to it alone.
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

/// What a user may choose about clones.
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

/// What happens to attempts at the deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum OnMiss {
    /// Attempts stop and the job fails, as in the papers.
    #[default]
    Fail,
    /// Attempts go on; the miss is recorded.
    Continue,
}

/// Where an attempt after the first may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Resume {
    /// From zero: in PoCD a clone is a restart.
    None,
    /// At the best attempt's last checkpoint.
    Checkpoint,
    /// At the best attempt's last checkpoint, as it is once the new attempt has started: what the
    /// others do while it starts is not done again (eq. 16 of Shed+, and the original runs on).
    Latest,
    /// Where the best attempt will be once a clone has started (eq. 16 of Shed+): it stops there, and
    /// what clones take from there on is a task of its own to this crate. Executors say where that
    /// is by the attempt's checkpoint.
    Range,
}

impl Resume {
    /// Whether what an attempt has done outlives it.
    #[must_use]
    pub fn keeps_checkpoints(self) -> bool {
        matches!(self, Self::Checkpoint | Self::Latest)
    }
}

/// Whether a task's only attempt may make way for an attempt of a more urgent job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Preemption {
    /// It may not.
    #[default]
    Never,
    /// It may, if the job resumes and a checkpoint of the task is durable: it goes on from there.
    WhenCheckpointed,
}

/// Whether two live copies of a task do harm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Idempotency {
    /// They do no harm.
    Safe,
    /// They may run, one may publish: the one that holds the task's grant.
    Fenced,
    /// There must never be two.
    None,
}

/// The part of a job's specification that decisions depend on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobRules {
    /// How many tasks the job has; indexes are `0..completions`.
    pub completions: u32,
    /// How many tasks may have a live attempt at a time; clones are not counted.
    pub parallelism: u32,
    /// Whether two live copies do harm.
    pub idempotency: Idempotency,
    /// Where clones and retries begin.
    pub resume: Resume,
    /// What the user wants of clones.
    pub speculation: SpeculationMode,
    /// Most live clones of one task beside its first attempt (the papers' MAX).
    pub max_clones_per_task: u32,
    /// The PoCD that is enough, in (0, 1]: a job that has reached it gets no clone. Absent: as many as
    /// the policy finds worthwhile.
    #[serde(default, with = "float::option")]
    pub target_pocd: Option<f64>,
    /// What happens at the deadline.
    pub on_miss: OnMiss,
    /// Failures that a task may have before it has failed for good.
    pub backoff_limit: u32,
    /// The user wants nothing to run.
    pub suspend: bool,
    /// A task is launched again only when its last attempt is gone (`podReplacementPolicy: Failed`).
    #[serde(default)]
    pub replaces_when_gone: bool,
    /// Whether its running attempts may make way for a more urgent job's.
    #[serde(default)]
    pub preemption: Preemption,
    /// What ends the job before all its tasks have ended.
    #[serde(default)]
    pub ending: EndRules,
}

impl JobRules {
    /// Whether an attempt of a task that is launched anew has to wait until all others are gone.
    #[must_use]
    pub fn waits_until_gone(&self) -> bool {
        self.idempotency == Idempotency::None || self.replaces_when_gone
    }
}

/// How far a job is towards its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum JobPhase {
    /// Attempts may be launched (unless the rules suspend it).
    Active,
    /// Its fate is recorded, the remaining attempts are dying.
    Ending(Conclusion),
}

/// One job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobSnapshot {
    /// Its identity.
    pub key: JobKey,
    /// Whose it is.
    pub tenant: Tenant,
    /// Which recurring jobs it is one of, if it says so: those that ran before tell about its
    /// times.
    pub class: Option<JobClass>,
    /// When it was submitted, or first ran if its clock starts then.
    pub submitted: Instant,
    /// When it must be complete; absent while a clock that starts with the first unsuspended
    /// pass has not started.
    pub deadline: Option<Instant>,
    /// What its user asked for.
    pub rules: JobRules,
    /// How far it is.
    pub phase: JobPhase,
    /// Whether an attempt of it was ever launched.
    pub launched_before: bool,
    /// Whether its attempts can report progress.
    pub reports_progress: bool,
    /// What one attempt requests (with `pods: 1`).
    pub demand: Resources,
    /// Nodes that its attempts may use, ascending.
    #[serde(with = "ranges")]
    pub eligible_nodes: Arc<[NodeIndex]>,
    /// Tasks with a winner.
    pub done: IndexSet,
    /// Tasks that have failed for good.
    pub failed: IndexSet,
    /// Tasks with attempts or a history, ascending; all others are untouched.
    pub tasks: Vec<TaskSnapshot>,
    /// Execution times (start to finish) of recent winners; for a resumed one scaled up to a
    /// whole task.
    pub ended_runs: Vec<Span>,
    /// Nothing may be launched before this (the apiserver refused attempts of this job).
    pub launch_not_before: Option<Instant>,
    /// What else keeps its attempts from being created or placed.
    #[serde(default, skip_serializing_if = "Obstacles::are_none")]
    pub obstacles: Obstacles,
    /// Failures of all its tasks that were counted so far.
    #[serde(default)]
    pub failures: u32,
    /// When it fails whatever its deadline says (`activeDeadlineSeconds`).
    #[serde(default)]
    pub time_limit: Option<Instant>,
    /// Up to when the facts about this job's attempts are known to be complete: every end before it
    /// is in them. An end is reported some time after it, so that a live read does not reach up to its
    /// own instant.
    pub facts_as_of: Instant,
    /// Whether the report is to say which deadline the job could keep. That takes a search, which
    /// is not for every pass.
    #[serde(default)]
    pub asks_feasibility: bool,
    /// Nodes on which attempts of it lately could not start: others are preferred.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub avoid: Vec<NodeIndex>,
}

/// One task with attempts or a history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskSnapshot {
    /// Which task.
    pub index: TaskIndex,
    /// Its winner, once there is one.
    pub winner: Option<AttemptNumber>,
    /// Attempts whose end is not accounted for yet, ascending by number.
    pub attempts: Vec<AttemptSnapshot>,
    /// Counted failures.
    pub failures: u32,
    /// Failures of clones while a sibling lived: after two the task gets no more clones.
    pub clone_failures: u32,
    /// No retry before this (back-off).
    pub retry_not_before: Option<Instant>,
    /// The best durable checkpoint of any of its attempts, ended ones included.
    pub resume_point: Option<ResumePoint>,
    /// With `Fenced`: who may publish. It stays until that attempt's end is counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<Grant>,
    /// Nodes on which attempts of it were last disrupted: others are preferred.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub avoid: Vec<NodeIndex>,
    /// When a clone of it was last disrupted: it gets no other for a while.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clone_disrupted: Option<Instant>,
}

/// Leave to publish a task's result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// Who has it.
    pub attempt: AttemptNumber,
    /// Since when: what counts against the deadline, as publishing has begun.
    pub at: Instant,
}

/// Where an attempt may begin. Its checkpoint is the user's, and may be a secret such as a signed
/// address: `Debug`, which logs show, has its length alone.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct ResumePoint {
    /// Progress at the checkpoint, in [0, 1].
    #[serde(with = "float")]
    pub progress: f64,
    /// What the task itself wrote; opaque, at most 256 bytes.
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

/// Why an attempt was launched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum AttemptKind {
    /// A task's first attempt.
    Original,
    /// Launched while another attempt of the task lived.
    Clone,
    /// Launched because none lived.
    Retry,
}

impl AttemptKind {
    /// The value of the metric label and pod label `kind`.
    #[must_use]
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
    /// Its number within the task.
    pub number: AttemptNumber,
    /// Why it was launched.
    pub kind: AttemptKind,
    /// What is known about it.
    pub state: AttemptState,
    /// The recorded kill, if shed decided to end it.
    pub kill: Option<KillKind>,
    /// When that kill was recorded. Nothing is decided on it: clocks of nodes can't be compared with it.
    pub killed_at: Option<Instant>,
    /// When its launch was recorded.
    pub launched: Instant,
    /// Where it runs, once placed on a node of this snapshot.
    pub node: Option<NodeIndex>,
    /// When its main container started processing.
    pub started: Option<Instant>,
    /// Where it began, in [0, 1): its resume point's progress or 0.
    #[serde(with = "float")]
    pub start_progress: f64,
    /// What it reported; absent means unknown, never zero.
    pub progress: Option<Progress>,
    /// The last checkpoint that it reported.
    pub checkpoint: Option<ResumePoint>,
    /// What else its failure brings about, by the user's `podFailurePolicy`.
    #[serde(default)]
    pub failure_rule: Option<FailureRule>,
    /// Its pod should be gone, and its node is: nothing will report its end soon.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub out_of_reach: bool,
    /// Whether its end was first seen on a pod that was being deleted. An exit with 0 may then be the
    /// task's answer to SIGTERM, and of a killed attempt it is no success.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ended_in_deletion: bool,
    /// It can't be created or placed, though it should have been by now. Its job gets no further
    /// launches meanwhile.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unplaceable: bool,
}

/// What the failure of an attempt brings about beside being counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum FailureRule {
    /// Its task has failed for good (`FailIndex`).
    FailTask,
    /// Its job has failed (`FailJob`).
    FailJob,
}

impl AttemptSnapshot {
    /// Whether it may still win: not ended, not killed.
    #[must_use]
    pub fn lives(&self) -> bool {
        self.kill.is_none() && self.holds_capacity()
    }

    /// Whether it still uses what it requested: also while it is being killed.
    #[must_use]
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

/// What is known about an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum AttemptState {
    /// Recorded; its pod is not seen yet.
    Launching,
    /// Its pod exists, its task has not started.
    Pending,
    /// The pod can't start for a reason that waiting does not cure soon (image, config).
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
        /// Not the task's own doing: eviction, node loss, deletion by somebody else.
        disrupted: bool,
    },
    /// Its pod existed and is gone without an end that anybody saw.
    Lost,
}

impl JobSnapshot {
    /// The task's entry, if it has attempts or a history.
    #[must_use]
    pub fn task(&self, index: TaskIndex) -> Option<&TaskSnapshot> {
        // A task that is about to be launched for the first time mostly comes after all others.
        if self.tasks.last().is_none_or(|last| last.index < index) {
            return None;
        }
        let position = self.tasks.binary_search_by_key(&index, |task| task.index);
        position.ok().map(|position| &self.tasks[position])
    }

    /// Whether the task has a winner, has failed for good, or is none of the job's (any more).
    #[must_use]
    pub fn has_ended(&self, index: TaskIndex) -> bool {
        index.0 >= self.rules.completions
            || self.done.contains(index)
            || self.failed.contains(index)
    }
}

impl TaskSnapshot {
    /// When the attempt was given leave to publish.
    #[must_use]
    pub fn granted_at(&self, number: AttemptNumber) -> Option<Instant> {
        let grant = self.grant.filter(|grant| grant.attempt == number);
        grant.map(|grant| grant.at)
    }

    /// The grant, if its holder may still finish.
    #[must_use]
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

    /// The furthest point that a new attempt may begin at: of the durable resume point and
    /// what the attempts reported.
    #[must_use]
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
