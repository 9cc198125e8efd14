//! The lines of a recording.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use shed_core::ids::{AttemptNumber, JobKey, TaskIndex, Tenant};
use shed_core::memory::Memory;
use shed_core::plan::{Outcome, Plan, Settled};
use shed_core::policy::{Order, ParsePolicyError, Policy, Registry};
use shed_core::snapshot::{AttemptKind, AttemptState, JobSnapshot, Node, TaskSnapshot};
use shed_core::time::{Instant, Span};

/// The version of what is written here. Raised with every change that an older reader would
/// misread.
pub const SCHEMA: u32 = 1;

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    /// The first of a file.
    Header(Header),
    /// One run of `decide`.
    Pass(PassLine),
    /// An attempt was counted.
    Ended(Ended),
    /// Lines are missing here, or the planner's memory is another one.
    Gap(Gap),
}

/// The first line of a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// [`SCHEMA`] of its writer.
    pub schema: u32,
    /// The version of shed that wrote it.
    pub shed: String,
    /// Under which policy.
    pub policy: PolicyText,
    /// When the process began that wrote it: passes of one run follow each other.
    pub run: Instant,
    /// The number of the first pass, counted over the run from 0, lost ones included.
    pub first_pass: u64,
    /// Passes that were lost just before.
    pub lost: u64,
    /// The planner's memory before the first pass.
    pub memory: Memory,
}

/// A policy as text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PolicyText {
    /// The policy, with order and distribution: `shed-plus{…,order=lst}`.
    pub policy: String,
    /// λ.
    pub capacity_share: f64,
    /// First attempts that may wait as pods beyond capacity.
    pub surge_max: u32,
    /// Steps of a policy about clones in one pass.
    pub work_max: u64,
    /// Files that it decides by: name and text.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
}

impl PolicyText {
    /// The text of a policy.
    pub fn of(policy: &Policy) -> Self {
        // All fields are named: a new one must find its place here.
        let Policy {
            order: _,
            speculation: _,
            distribution: _,
            capacity_share,
            surge_max,
            work_max,
        } = *policy;
        Self {
            policy: policy.to_string(),
            capacity_share,
            surge_max,
            work_max,
            files: policy.speculation.files(),
        }
    }

    /// The policy of the text, one of those that are known.
    pub fn policy(&self, known: &Registry) -> Result<Policy, ParsePolicyError> {
        let policy = known.parse(&self.policy, Order::default())?;
        let policy = policy.with_files(&self.files)?;
        Ok(Policy {
            capacity_share: self.capacity_share,
            surge_max: self.surge_max,
            work_max: self.work_max,
            ..policy
        })
    }
}

/// One run of `decide`, as the difference from the previous pass in the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PassLine {
    /// Counted over the run from 0.
    pub number: u64,
    /// When the facts were gathered.
    pub now: Instant,
    /// As in the snapshot.
    pub launch_overhead: Option<Span>,
    /// As in the snapshot.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub launch_overheads: BTreeMap<Tenant, Span>,
    /// As in the snapshot.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub weights: BTreeMap<Tenant, f64>,
    /// How many nodes there are.
    pub node_count: usize,
    /// Nodes that are new or changed, by position.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<(usize, Node)>,
    /// All jobs, in the snapshot's order.
    pub jobs: Vec<JobLine>,
    /// Names of jobs that the file has not named yet.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub names: BTreeMap<JobKey, String>,
    /// Positions of the jobs whose facts may differ from those of the pass before, ascending. Absent if the pass looked
    /// at every job. The first pass of a file does, and so does a pass after a gap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<Vec<usize>>,
    /// By which of its ways the planner came to the plan.
    pub decided: Decided,
    /// The plan, before any slice of it was refused, as [`recorded_plan`] has it.
    pub plan: Plan,
}

/// The plan as a recording has it: without the expected PoCD and the expected ends of jobs and attempts, which a replay
/// of the pass computes again.
pub fn recorded_plan(mut plan: Plan) -> Plan {
    for report in &mut plan.report.jobs {
        report.ends.clear();
        report.pocd_expected = None;
        report.end_range = None;
    }
    plan
}

/// The changes of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobLine {
    /// Its key.
    pub key: JobKey,
    /// The job without its tasks, if it is new or anything but its tasks changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<Box<JobSnapshot>>,
    /// Tasks that are new or changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<TaskSnapshot>,
    /// Tasks that are not listed any more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gone: Vec<TaskIndex>,
}

/// By which of its ways the planner came to a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decided {
    /// Under its policy.
    Policy,
    /// That panicked, so without clones.
    WithoutClones,
    /// That panicked too, so by submission.
    BySubmission,
    /// All three panicked: the plan is empty.
    Not,
}

impl Decided {
    /// The way of a pass in which this many of the guard's policies panicked.
    pub fn after(panics: u32) -> Self {
        match panics {
            0 => Self::Policy,
            1 => Self::WithoutClones,
            2 => Self::BySubmission,
            _ => Self::Not,
        }
    }

    /// The number of the guard's policies that panicked.
    pub fn panics(self) -> u32 {
        match self {
            Self::Policy => 0,
            Self::WithoutClones => 1,
            Self::BySubmission => 2,
            Self::Not => 3,
        }
    }
}

/// Lines are missing here, or the planner's memory was changed between two passes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Gap {
    /// How many passes are missing. After 0 the next pass still relies on the pass before.
    pub passes: u64,
    /// The planner's memory before the next pass.
    pub memory: Memory,
}

/// An attempt that was counted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ended {
    /// Its job.
    pub job: JobKey,
    /// Its task.
    pub task: TaskIndex,
    /// The attempt's number within its task.
    pub attempt: AttemptNumber,
    /// As what it was launched.
    pub kind: AttemptKind,
    /// Its bucket; absent: it won.
    pub outcome: Option<Outcome>,
    /// When its launch was recorded.
    pub launched: Instant,
    /// When it began to process.
    pub started: Option<Instant>,
    /// When its container finished, if that was observed.
    pub finished: Option<Instant>,
    /// Where it began.
    pub start_progress: f64,
    /// Its last report and the time of the report.
    pub reported: Option<(f64, Instant)>,
}

impl Ended {
    /// The end that an action counts; none if it counts none.
    pub fn by(job: &JobSnapshot, action: &Settled) -> Option<Self> {
        match action {
            Settled::Win { task, attempt, .. } => Self::of(job, *task, *attempt, None),
            Settled::Count {
                task,
                attempt,
                outcome,
            } => Self::of(job, *task, *attempt, Some(*outcome)),
            Settled::Kill(_) | Settled::FailTask { .. } | Settled::End(_) | Settled::Finish(_) => {
                None
            }
        }
    }

    /// The facts of an attempt on which its end was settled.
    pub fn of(
        job: &JobSnapshot,
        task: TaskIndex,
        attempt: AttemptNumber,
        outcome: Option<Outcome>,
    ) -> Option<Self> {
        let facts = job.task(task)?;
        let facts = facts.attempts.iter().find(|a| a.number == attempt)?;
        let finished = match facts.state {
            AttemptState::Succeeded { finished } | AttemptState::Failed { finished, .. } => {
                Some(finished)
            }
            _ => None,
        };
        Some(Self {
            job: job.key.clone(),
            task,
            attempt,
            kind: facts.kind,
            outcome,
            launched: facts.launched,
            started: facts.started,
            finished,
            start_progress: facts.start_progress,
            reported: facts.progress.map(|seen| (seen.last, seen.last_at)),
        })
    }
}
