//! The ledger: the state of a job that must survive any crash. It is part of the job's status. Each
//! write carries the resourceVersion that the decision was based on. Done tasks are index ranges,
//! in the status's public fields if possible. Only tasks with uncounted attempts or a history have
//! an entry, which is a line of text.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shed_core::index_set::IndexSet;
use shed_core::snapshot::{AttemptKind, Conclusion, KillKind, ResumePoint, SlotTime};
use shed_core::time::{Instant, Span};

mod compact;
mod disruptions;
mod instant;
pub mod invariants;
mod record;
mod retry;
mod segments;

pub use record::NewerForm;
pub use retry::RetryRule;
pub use segments::{SEGMENTS_MAX, Segments};

use super::job_status::AttemptCounts;

/// The version of the ledger's format that this operator writes. It is raised when an older
/// operator would misread the new format. A field that older operators may ignore needs no new
/// version.
pub const LEDGER_FORM: u32 = 1;

/// A job's ledger.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Ledger {
    /// Version of the ledger's format; absent: 1. An operator does not run a job whose ledger has a newer
    /// format than it supports.
    #[serde(default = "first_form")]
    #[schemars(range(min = 1))]
    pub form: u32,
    /// Incremented with every write, so that the newer of two copies is known.
    #[serde(default)]
    pub revision: i64,
    /// The first planning pass in which the job was not suspended: clockStart: Start counts from it.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "instant::option"
    )]
    #[schemars(with = "Option<MicroTime>")]
    pub first_pass: Option<Instant>,
    /// The deadline that spec.deadline.clock or spec.deadline.history gave. It stays while that field does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fixed_deadline: Option<FixedDeadline>,
    /// When the first attempt was recorded.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "instant::option"
    )]
    #[schemars(with = "Option<MicroTime>")]
    pub started: Option<Instant>,
    /// Indexes of tasks with a winner.
    #[serde(default, skip_serializing_if = "IndexSet::is_empty")]
    #[schemars(with = "String")]
    pub done: IndexSet,
    /// Indexes of tasks that have failed for good.
    #[serde(default, skip_serializing_if = "IndexSet::is_empty")]
    #[schemars(with = "String")]
    pub failed: IndexSet,
    /// When the latest winner finished.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "instant::option"
    )]
    #[schemars(with = "Option<MicroTime>")]
    pub last_win: Option<Instant>,
    /// The job's outcome, once known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub ending: Option<Conclusion>,
    /// Details of the outcome, in addition to the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending_note: Option<String>,
    /// Since when the job has run without suspension: activeDeadlineSeconds counts from it.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "instant::option"
    )]
    #[schemars(with = "Option<MicroTime>")]
    pub active_since: Option<Instant>,
    /// Whether the outcome is final.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub finished: bool,
    /// Since when the outcome is final: ttlSecondsAfterFinished counts from it.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "instant::option"
    )]
    #[schemars(with = "Option<MicroTime>")]
    pub ended: Option<Instant>,
    /// Tasks with uncounted attempts or a history, ascending.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", with = "compact")]
    #[schemars(with = "compact::OpenTasks")]
    pub tasks: BTreeMap<u32, TaskEntry>,
    /// With resume: Range, the segments of divided tasks, ascending by index. They stay in the ledger, so
    /// that a reader of the results knows which segments form a task.
    #[serde(default, skip_serializing_if = "Segments::is_empty")]
    #[schemars(with = "Vec<SegmentEntry>")]
    pub segments: Segments,
    /// The highest fencing token that shed has granted.
    #[serde(default, skip_serializing_if = "is_none_given")]
    pub fence_token: i64,
    /// The policy's state for the job, as text that only that policy understands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy_state: Option<String>,
    /// Execution times in ms of the latest winners, newest last, at most 32.
    #[serde(rename = "endedRunsMs", default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<i64>")]
    pub ended_runs: Vec<Span>,
    /// With a limit of clones: milliseconds for which ended attempts held their slots, from launch to end.
    #[serde(
        rename = "slotTimeMs",
        default,
        skip_serializing_if = "SlotTime::is_zero"
    )]
    #[schemars(with = "SlotTimeEntry")]
    pub slot_time: SlotTime,
    /// Why the job's reconciles are paused. Absent after a successful reconcile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quarantine: Option<QuarantineEntry>,
    /// Totals, which stand in the status's public fields.
    #[serde(skip)]
    pub counts: AttemptCounts,
}

impl Default for Ledger {
    fn default() -> Self {
        Self {
            form: LEDGER_FORM,
            revision: 0,
            first_pass: None,
            fixed_deadline: None,
            started: None,
            done: IndexSet::new(),
            failed: IndexSet::new(),
            last_win: None,
            ending: None,
            ending_note: None,
            active_since: None,
            finished: false,
            ended: None,
            tasks: BTreeMap::new(),
            segments: Segments::default(),
            fence_token: 0,
            policy_state: None,
            ended_runs: Vec::new(),
            slot_time: SlotTime::default(),
            quarantine: None,
            counts: AttemptCounts::default(),
        }
    }
}

fn first_form() -> u32 {
    1
}

fn is_none_given(token: &i64) -> bool {
    *token == 0
}

/// The schema of [`SlotTime`].
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct SlotTimeEntry {
    /// Of first attempts and retries.
    own: i64,
    /// Of clones.
    clones: i64,
}

/// A deadline that is computed once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FixedDeadline {
    /// The deadline as written, e.g. `06:00 Europe/Zurich` or `history(p95)*1.5`.
    pub rule: String,
    /// The instant.
    #[serde(with = "instant")]
    #[schemars(with = "MicroTime")]
    pub at: Instant,
}

/// The last reconcile of the job panicked, timed out or got stuck.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QuarantineEntry {
    /// ReconcilePanicked, ReconcileTimedOut or ReconcileStuck.
    pub reason: String,
    /// The number of consecutive reconciles that failed this way.
    pub count: u32,
    /// No reconcile starts before this instant.
    #[serde(with = "instant")]
    #[schemars(with = "MicroTime")]
    pub until: Instant,
}

/// A segment of a task's input: the units from `start` up to, but not including, `end`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SegmentEntry {
    /// Its index in this ledger: the task's own index for its first segment, otherwise an index from
    /// spec.completions on.
    pub index: u32,
    /// The task.
    pub task: u32,
    /// Its first unit.
    pub start: u64,
    /// The unit after its last one.
    pub end: u64,
    /// The number of units of the whole task.
    pub total: u64,
    /// The attempt that finished the segment, if one has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub winner: Option<u32>,
    /// Merged into the preceding segment; no attempt owns it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dropped: bool,
}

/// One task with uncounted attempts or a history.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskEntry {
    /// The task.
    pub index: u32,
    /// Number of its next attempt. An attempt's number is recorded here before its pod exists.
    pub next_attempt: u32,
    /// The winner while siblings of it are still ending.
    pub winner: Option<u32>,
    /// Counted failures.
    pub failures: u32,
    /// Failures of clones while a sibling lived.
    pub clone_failures: u32,
    /// Attempts in a row, without clones, that ended without a fault of the task: their nodes
    /// disrupted them or could not start them.
    pub disruptions: u32,
    /// When a clone was last disrupted, until the next one is launched.
    pub clone_disrupted: Option<Instant>,
    /// No retry before this.
    pub retry_not_before: Option<Instant>,
    /// The best checkpoint that is durable.
    pub resume: Option<Box<ResumePoint>>,
    /// With idempotency: Fenced, the commit grant.
    pub grant: Option<Box<GrantEntry>>,
    /// Attempts whose end is not counted yet, ascending.
    pub attempts: Vec<AttemptEntry>,
    /// Fields that a newer operator wrote, as they stand in the task's line.
    pub unknown: Vec<String>,
}

/// Commit grant for a task. shed records it before it answers the task.
#[derive(Clone, Debug, PartialEq)]
pub struct GrantEntry {
    /// The attempt that holds it. No other attempt gets it before that attempt is gone.
    pub attempt: u32,
    /// Higher than that of any grant of this job before.
    pub token: i64,
    /// When shed granted it. This instant counts against the deadline.
    pub at: Instant,
}

/// Node of an attempt that must be proven gone before another attempt may take its place.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NodeEntry {
    /// The node.
    pub name: String,
    /// Its boot id then. A different one proves that nothing of the attempt is left there.
    pub boot: String,
}

/// One attempt whose end is not counted yet.
#[derive(Clone, Debug, PartialEq)]
pub struct AttemptEntry {
    /// Its number.
    pub number: u32,
    /// Original, Clone or Retry.
    pub kind: AttemptKind,
    /// When its launch was recorded.
    pub launched: Instant,
    /// Its start point.
    pub resume: Option<Box<ResumePoint>>,
    /// Nodes to avoid.
    pub avoid: Vec<String>,
    /// Node of the attempt, if shed must wait until the attempt is gone: with idempotency: None, or
    /// with a grant.
    pub node: Option<Box<NodeEntry>>,
    /// Why shed must stop it; recorded before the delete.
    pub kill: Option<KillKind>,
    /// When that was recorded.
    pub killed_at: Option<Instant>,
    /// Fields that a newer operator wrote, as they stand in the task's line.
    pub unknown: Vec<String>,
}
