//! A job as the verbs show it. It is decoded leniently, so that a plugin that is older than the operator works.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::api::ObjectMeta;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use shed::api::{CompletionRange, JobRecord, LABEL_CLASS, Pocd, WorkflowStatus};
use shed::cluster::identity::{Owner, OwnerKind};

/// The first version of shed whose operator writes `status.record`.
pub const RECORD_SINCE: &str = "0.1.0";

/// The fields of a `DeadlineJob`'s specification that the verbs need.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct JobSpec {
    pub completions: i32,
    /// Absent: as many as there are tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallelism: Option<i32>,
    /// Safe, Fenced or None.
    pub idempotency: String,
    /// Whether attempts may run.
    pub suspend: bool,
    #[serde(rename = "targetPoCD", skip_serializing_if = "Option::is_none")]
    pub target_pocd: Option<f64>,
    /// Limits of clones.
    pub speculation: Speculation,
}

/// Limits of clones.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Speculation {
    /// Enabled, Observe or Disabled.
    pub mode: String,
    /// Clones of one task.
    pub max_clones_per_task: i32,
    /// Share of the job's own slot-seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<f64>,
}

impl Default for Speculation {
    fn default() -> Self {
        Self {
            mode: "Enabled".to_owned(),
            max_clones_per_task: 5,
            budget: None,
        }
    }
}

/// The fields of a status that the verbs need. A probability that is not a number is absent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct JobStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pocd: Option<String>,
    #[serde(rename = "calibratedPoCD", skip_serializing_if = "Option::is_none")]
    pub calibrated_pocd: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimated_completion_time: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_range: Option<CompletionRange>,
    pub active: i32,
    pub clones: i32,
    pub terminating: i32,
    pub succeeded: i32,
    pub failed: i32,
    /// The run of a workflow that it is a stage of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workflow: Option<WorkflowStatus>,
    pub conditions: Vec<Condition>,
    /// The record, not decoded yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<Value>,
}

/// A `DeadlineJob`, or a batch/v1 Job with the status of its companion.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct JobView {
    pub namespace: String,
    pub name: String,
    /// That of the owner of its pods.
    #[serde(skip)]
    pub uid: String,
    /// `DeadlineJob` or `Job`.
    pub kind: &'static str,
    /// The `DeadlineJob` that has the status, if its name differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub companion: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// What to know of a Job that shed only watches, in sentences. Absent of the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watched: Option<String>,
    pub spec: JobSpec,
    pub status: JobStatus,
}

/// Whether a job of this phase has finished.
pub fn is_end(phase: &str) -> bool {
    matches!(phase, "Complete" | "Failed")
}

/// A probability; absent if the text has none.
pub fn probability(text: Option<&str>) -> Option<Pocd> {
    serde_json::from_value(text?.into()).ok()
}

impl JobView {
    /// The job that a `DeadlineJob` is about: itself, or the Job that owns it.
    pub fn new(metadata: &ObjectMeta, spec: JobSpec, status: JobStatus) -> Self {
        let owner = Owner::of(metadata);
        let is_companion = owner.kind == OwnerKind::Job;
        let labels = metadata.labels.as_ref();
        Self {
            namespace: owner.namespace.to_string(),
            kind: if is_companion { "Job" } else { "DeadlineJob" },
            companion: metadata.name.clone().filter(|_| is_companion),
            name: owner.name.to_string(),
            uid: owner.uid.to_string(),
            class: labels.and_then(|labels| labels.get(LABEL_CLASS).cloned()),
            watched: None,
            spec,
            status,
        }
    }

    /// Whether nothing of it will change any more.
    pub fn is_finished(&self) -> bool {
        is_end(self.phase())
    }

    /// Its phase in one word.
    pub fn phase(&self) -> &str {
        self.status.phase.as_deref().unwrap_or("New")
    }

    pub fn pocd(&self) -> Option<Pocd> {
        probability(self.status.pocd.as_deref())
    }

    pub fn deadline(&self) -> Option<Timestamp> {
        self.status.deadline.as_ref().map(|time| time.0)
    }

    /// When its last task ended or should end.
    pub fn end(&self) -> Option<Timestamp> {
        let status = &self.status;
        let end = status.completion_time.as_ref();
        end.or(status.estimated_completion_time.as_ref())
            .map(|time| time.0)
    }

    /// Seconds between the job's end and its deadline; negative if it is late.
    pub fn slack(&self) -> Option<i64> {
        let (deadline, end) = (self.deadline()?, self.end()?);
        Some(deadline.as_second() - end.as_second())
    }

    /// A condition that is true.
    pub fn condition(&self, type_: &str) -> Option<&Condition> {
        let mut conditions = self.status.conditions.iter();
        conditions.find(|condition| condition.type_ == type_ && condition.status == "True")
    }

    /// The decoded record. Absent if the operator has not written one, or wrote it in a form of another version.
    pub fn record(&self) -> Option<JobRecord> {
        serde_json::from_value(self.status.record.clone()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use shed::adopt::translate::companion_name_of;
    use shed::api::{DeadlineJob, DeadlineJobSpec};

    use super::*;

    #[test]
    fn the_names_of_fields_are_those_of_the_api() {
        let spec = json!({
            "completions": 20, "parallelism": 5, "idempotency": "Safe", "suspend": true, "targetPoCD": 0.9,
            "speculation": {"mode": "Observe", "maxClonesPerTask": 2, "budget": 0.2},
            "deadline": {"within": "10m"}, "template": {},
        });
        let typed: DeadlineJobSpec = serde_json::from_value(spec.clone()).unwrap();
        let typed = serde_json::to_value(typed).unwrap();
        let own: JobSpec = serde_json::from_value(spec).unwrap();
        let own = serde_json::to_value(own).unwrap();
        for (field, value) in own.as_object().unwrap() {
            assert_eq!(Some(value), typed.get(field), "{field}");
        }
    }

    #[test]
    fn the_status_of_the_api_is_read_whole() {
        let status = json!({
            "phase": "Running", "deadline": "2030-01-31T08:00:00Z", "startTime": "2030-01-31T07:00:00Z",
            "completionTime": "2030-01-31T07:59:00Z", "pocd": "0.953", "calibratedPoCD": "0.930",
            "estimatedCompletionTime": "2030-01-31T07:58:00Z", "active": 3, "clones": 1, "terminating": 1,
            "succeeded": 2, "failed": 1, "workflow": {"run": "etl-7", "deadline": "2030-01-31T09:00:00Z", "pocd": "0.713",
                "overrun": {"stage": "extract", "seconds": 90}}, "record": {"time": "2030-01-31T07:30:00Z", "omittedAttempts": 0},
        });
        let object = json!({
            "apiVersion": "shed.dev/v1alpha1", "kind": "DeadlineJob", "metadata": {"name": "a"},
            "spec": {"completions": 1, "idempotency": "Safe", "template": {}}, "status": status,
        });
        let typed: DeadlineJob = serde_json::from_value(object).unwrap();
        let typed = serde_json::to_value(typed.status.unwrap()).unwrap();
        let own: JobStatus = serde_json::from_value(status).unwrap();
        let own = serde_json::to_value(own).unwrap();
        for (field, value) in own.as_object().unwrap() {
            let empty = value.as_array().is_some_and(Vec::is_empty);
            assert!(empty || Some(value) == typed.get(field), "{field}");
        }
    }

    #[test]
    fn a_companion_is_shown_as_its_job() {
        let name = companion_name_of("report", "u");
        let metadata = json!({
            "name": name.clone(), "namespace": "team", "labels": {"shed.dev/class": "daily"},
            "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "report", "uid": "u", "controller": true}],
        });
        let metadata: ObjectMeta = serde_json::from_value(metadata).unwrap();
        let view = JobView::new(&metadata, JobSpec::default(), JobStatus::default());
        assert_eq!((view.kind, view.name.as_str()), ("Job", "report"));
        assert_eq!(view.companion.as_deref(), Some(&*name));
        assert_eq!(view.class.as_deref(), Some("daily"));
    }

    #[test]
    fn a_record_with_unknown_fields_is_read() {
        let mut view = JobView::default();
        assert_eq!(view.record(), None);
        view.status.record = Some(json!({"moment": 3}));
        assert_eq!(view.record(), None);
        view.status.record = Some(json!({"time": "2030-01-31T07:30:00Z", "novel": 1}));
        assert!(view.record().is_some());
    }
}
