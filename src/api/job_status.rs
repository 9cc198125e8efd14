//! The status of a job.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::decimal::Decimal;
use super::ledger::Ledger;
use super::pocd::{self, Pocd};
use super::record::{self, JobRecord};
use super::unknown_fields::Unknown;

/// The observed state of the job.
// `remote`: `unknown_fields` reads and writes it as a whole, with unknown fields.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", remote = "Self")]
pub struct DeadlineJobStatus {
    /// Generation of the specification that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Pending, Running, Suspended, Completing, Failing, Complete or Failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// The deadline as an instant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Time>,
    /// When the first attempt was launched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    /// When the last winner finished; only if the job is complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Time>,
    /// Probability that the current attempts alone complete the job before its deadline, 0.000 to 1.000.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "pocd::deserialize"
    )]
    #[schemars(with = "Option<String>")]
    pub pocd: Option<Pocd>,
    /// Probability that the job completes before its deadline, with the clones that shed may still start, 0.000 to
    /// 1.000. It is corrected by how often past jobs with a similar prediction were in time.
    #[serde(
        rename = "calibratedPoCD",
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "pocd::deserialize"
    )]
    #[schemars(with = "Option<String>")]
    pub calibrated_pocd: Option<Pocd>,
    /// Expected finish of the last task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_completion_time: Option<Time>,
    /// Likely finish of the last task. Absent while no attempt runs or nothing is known about the tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_range: Option<CompletionRange>,
    /// Attempts that may still win.
    #[serde(default)]
    pub active: i32,
    /// Active attempts whose pod is Ready, as of the last write. shed writes a change of this number
    /// alone after ten seconds.
    #[serde(default)]
    pub ready: i32,
    /// Active attempts that are clones.
    #[serde(default)]
    pub clones: i32,
    /// Attempts that shed stopped and that are still terminating.
    #[serde(default)]
    pub terminating: i32,
    /// Tasks with a winner.
    #[serde(default)]
    pub succeeded: i32,
    /// Tasks that have failed for good.
    #[serde(default)]
    pub failed: i32,
    /// Indexes of tasks with a winner, e.g. `0-17,19`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub completed_indexes: String,
    /// Indexes of tasks that have failed for good.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub failed_indexes: String,
    /// Totals of the job's attempts.
    #[serde(default)]
    pub attempts: AttemptCounts,
    /// With speculation.mode Observe: what Enabled would have done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed: Option<ObservedClones>,
    /// Of a stage of a workflow: its run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<WorkflowStatus>,
    /// Conditions, by type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Vec<Condition>,
    /// What happened to the job: PoCD over time, attempts, and the last decisions about clones. shed renews it
    /// with writes that it makes for other reasons, and decides nothing on it.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "record::deserialize"
    )]
    #[schemars(with = "Option<JobRecord>")]
    pub record: Option<JobRecord>,
    /// The operator's ledger: the state that must survive a crash. Users must not edit it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ledger: Option<Ledger>,
    /// Fields that a newer operator wrote and this version does not know. Every write keeps them.
    #[serde(skip)]
    pub unknown: Unknown,
}

/// The run of a workflow that a job is a stage of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowStatus {
    /// Name of the run.
    pub run: String,
    /// Deadline of the run.
    pub deadline: Time,
    /// When the stage should be complete so that the later ones have the time that they take. Nothing is decided by it.
    /// Absent while that time is unknown, and once this instant has passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage_deadline: Option<Time>,
    /// Probability that the run completes before its deadline, 0.000 to 1.000.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "pocd::deserialize"
    )]
    #[schemars(with = "Option<String>")]
    pub pocd: Option<Pocd>,
    /// Expected completion of the run: that of this stage, and the median time of later stages in earlier runs. Absent
    /// until 3 of them have ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_completion_time: Option<Time>,
    /// The stage of the run that exceeds its usual time most. Absent if none does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overrun: Option<StageOverrun>,
}

/// A stage that takes or took longer than in earlier runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StageOverrun {
    /// The stage.
    pub stage: String,
    /// By how many seconds it exceeds the median of earlier runs.
    pub seconds: i64,
}

/// Totals over the job's life. Every attempt counts for exactly one outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AttemptCounts {
    /// First attempts launched.
    #[serde(default)]
    pub originals: i64,
    /// Clones launched.
    #[serde(default)]
    pub clones: i64,
    /// Retries launched.
    #[serde(default)]
    pub retries: i64,
    /// Attempts that won their task.
    #[serde(default)]
    pub won: i64,
    /// Clones that won their task.
    #[serde(default)]
    pub clone_wins: i64,
    /// Attempts that shed stopped, or that finished after a sibling had won.
    #[serde(default)]
    pub superseded: i64,
    /// Attempts that failed and count against their task's back-off limit.
    #[serde(default)]
    pub failed: i64,
    /// Clones that failed while a sibling lived.
    #[serde(default)]
    pub clone_failed: i64,
    /// Attempts lost to eviction, preemption, node loss or deletion by other clients.
    #[serde(default)]
    pub disrupted: i64,
    /// Attempts that finished after the deadline of a job with onMiss: Fail.
    #[serde(default)]
    pub late: i64,
    /// Attempts that the apiserver refused to create.
    #[serde(default)]
    pub refused: i64,
}

/// When the job has ended with a probability of 50 and of 90 %, by its current attempts and the clones that shed may
/// still start to meet the deadline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompletionRange {
    /// With a probability of 50 %.
    pub p50: Time,
    /// With a probability of 90 %.
    pub p90: Time,
}

/// The clones that shed would have started for the job, as its model estimates. Each clone counts once, with the
/// figures of the first planning pass that decides on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObservedClones {
    /// Clones that shed would start now.
    #[serde(default)]
    pub clones: i32,
    /// Clones that shed would have started so far.
    #[serde(default)]
    pub total_clones: i32,
    /// Expected work of all these clones in slot-seconds, e.g. 84.000.
    #[serde(default)]
    #[schemars(with = "String")]
    pub slot_seconds: Decimal,
    /// Sum of the least gains, in expected deadlines met, at which the policy starts these clones, e.g. 0.040. The
    /// operator's clone price sets them. Absent for policies without a price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub price: Option<Decimal>,
    /// Expected deadlines gained: by how much these clones would have raised PoCD, 0.000 to 1.000.
    #[serde(default)]
    #[schemars(with = "String")]
    pub gain: Decimal,
}

/// A list map by type, so that server-side apply by others merges and does not replace.
fn conditions_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let item = generator.subschema_for::<Condition>();
    schemars::json_schema!({
        "description": "Conditions, by type.",
        "type": "array",
        "items": item,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
    })
}
