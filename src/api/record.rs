//! The record of a job: what happened to it, for people and tools. shed decides nothing on it and never writes
//! a status for it alone, so it may be a little old, and losing it harms nothing.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use shed_core::snapshot::AttemptKind;

use super::decimal::Decimal;
use super::pocd::Pocd;

/// A record has at most this number of bytes of JSON.
pub const RECORD_MAX: usize = 4096;

/// What happened to a job, within 4096 bytes of JSON. shed renews it with writes of the status that it makes for
/// other reasons. If it grows too large, shed leaves out what tells least.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobRecord {
    /// When shed made this record.
    pub time: Time,
    /// PoCD over time, oldest first, at most 32 points. shed leaves out points near the line between their neighbors.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pocd: Vec<PocdPoint>,
    /// Attempts by task and number, also those that have ended. Attempts of tasks that had a clone, a failure or a
    /// late forecast are left out last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<AttemptRecord>,
    /// Attempts of the job that are not listed, as far as shed knows.
    #[serde(default)]
    pub omitted_attempts: i32,
    /// The last decisions about clones and stops, oldest first. A decision that repeats has one entry, with the time
    /// and the figures of its first occurrence.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<DecisionRecord>,
    /// First attempts and retries that wait, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<WaitingRecord>,
}

/// PoCD at one time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PocdPoint {
    /// When it was estimated.
    pub time: Time,
    /// Probability of completion before the deadline, 0.000 to 1.000.
    #[schemars(with = "String")]
    pub pocd: Pocd,
}

/// One attempt of a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AttemptRecord {
    /// The task.
    pub task: i32,
    /// Number of the attempt within its task, as in the name of its pod.
    pub attempt: i32,
    /// Original, Clone or Retry.
    #[schemars(with = "String")]
    pub kind: AttemptKind,
    /// Its node, once it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// When its container started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    /// When it ended, or when shed learned that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_time: Option<Time>,
    /// Its last report, from 0.000 to 1.000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub progress: Option<Decimal>,
    /// Progress at which it began; absent: from zero.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub resumed_from: Option<Decimal>,
    /// Progress from which a successor could resume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub resume_point: Option<Decimal>,
    /// When it is expected to end. Given for stragglers, clones and tasks at risk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_end_time: Option<Time>,
    /// Pending, Running, Won, Stopped, Failed, Disrupted or Late.
    #[schemars(with = "String")]
    pub state: AttemptState,
}

/// State of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AttemptState {
    /// Its container has not started.
    Pending,
    /// Its container runs.
    Running,
    /// It was the first of its task to finish.
    Won,
    /// shed stopped it, or a sibling had won.
    Stopped,
    /// It failed.
    Failed,
    /// It was lost to eviction, preemption, node loss or deletion by another client.
    Disrupted,
    /// It finished after the deadline of a job with `onMiss: Fail`.
    Late,
}

impl AttemptState {
    /// Whether the attempt has not ended.
    pub fn is_live(self) -> bool {
        matches!(self, Self::Pending | Self::Running)
    }
}

/// A decision about a clone or a stop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DecisionRecord {
    /// When shed decided so first.
    pub time: Time,
    /// The task.
    pub task: i32,
    /// Granted (a clone was launched), Refused (a straggler got no clone), Stopped (an attempt was stopped) or
    /// Observed (a clone would have been launched, but `speculation.mode` is Observe).
    #[schemars(with = "String")]
    pub verdict: Verdict,
    /// Why, e.g. Straggler, Capacity, `JobBudget` or Preempted.
    pub reason: String,
    /// Expected deadlines that the clone gains; absent without figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub gain: Option<Decimal>,
    /// The least gain at which the policy starts the clone; absent without figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub price: Option<Decimal>,
    /// The best use of the slot that was not chosen, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alternative: Option<String>,
}

/// What was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// A clone was launched.
    Granted,
    /// A straggler got no clone.
    Refused,
    /// An attempt was stopped.
    Stopped,
    /// A clone would have been launched, but the job only observes.
    Observed,
}

/// Tasks that wait for an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WaitingRecord {
    /// Why they wait, e.g. Capacity.
    pub reason: String,
    /// Their number.
    pub tasks: i32,
}

/// For `#[serde(deserialize_with)]`: a record that cannot be decoded, or that is too large, counts as none, so
/// that the next write replaces it. Its unknown fields are not kept.
pub(super) fn deserialize<'de, D>(from: D) -> Result<Option<JobRecord>, D::Error>
where
    D: Deserializer<'de>,
{
    let value = Option::<Value>::deserialize(from)?;
    Ok(value.and_then(|value| serde_json::from_value(value).ok()))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::api::DeadlineJobStatus;

    fn status(record: &Value) -> DeadlineJobStatus {
        serde_json::from_value(json!({"phase": "Running", "record": record})).unwrap()
    }

    #[test]
    fn a_record_that_cannot_be_decoded_is_dropped_alone() {
        let time = "2026-01-01T00:00:00Z";
        for record in [
            json!(7),
            json!("x"),
            json!({}),
            json!({"time": "yesterday"}),
            json!({"time": time, "pocd": [{"time": time, "pocd": "much"}]}),
            json!({"time": time, "attempts": [{"task": 0, "attempt": 0, "kind": "Twin", "state": "Won"}]}),
            json!({"time": time, "omittedAttempts": 1e30}),
        ] {
            let status = status(&record);
            assert_eq!(status.record, None, "{record}");
            assert_eq!(status.phase.as_deref(), Some("Running"));
        }
    }

    #[test]
    fn fields_that_are_not_known_are_not_kept_in_a_record() {
        let status = status(&json!({"time": "2026-01-01T00:00:00Z", "novel": "x".repeat(100_000)}));
        assert!(status.record.is_some() && status.unknown.is_empty());
        let written = serde_json::to_value(&status).unwrap();
        assert_eq!(
            written["record"],
            json!({"time": "2026-01-01T00:00:00Z", "omittedAttempts": 0})
        );
    }
}
