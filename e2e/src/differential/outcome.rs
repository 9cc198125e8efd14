//! What became of a Job: everything that a user or a program may rely on, and no times.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::batch::v1::JobStatus;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use serde_json::{Value, json};
use shed::api::LABEL_NO_BACKUP;

use super::case::LABEL;
use super::view::{View, index};
use crate::wait::{is_deleted, is_over, phase};

/// Conditions of batch/v1. shed has more.
const CONDITIONS: [&str; 5] = [
    "Complete",
    "Failed",
    "Suspended",
    "SuccessCriteriaMet",
    "FailureTarget",
];

/// The whole status of a Job that a user deleted before its end, and that a finalizer of its own holds.
pub const STATUS_OF_DELETED: &str = "statusOfDeletedJob";
/// The pods as they were created.
pub const POD_SHAPES: &str = "podShapes";
/// Letters at the end of a pod's name that any two pods differ in.
const RANDOM: usize = 5;

/// What became of a Job.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// By name.
    pub fields: BTreeMap<String, Value>,
    /// The way there, for a reader.
    pub trail: Vec<String>,
}

impl Outcome {
    /// Of a Job that the apiserver did not take.
    pub fn refused(answer: String) -> Self {
        let fields = [("created".to_owned(), json!(answer))];
        Self {
            fields: fields.into(),
            trail: Vec::new(),
        }
    }

    pub fn of(
        view: &View,
        acted: &[String],
        was_stuck: bool,
        was_deleted_early: bool,
        trail: Vec<String>,
    ) -> Self {
        let mut fields = BTreeMap::new();
        let mut is = |name: &str, value: Value| drop(fields.insert(name.to_owned(), value));
        is("acts", json!(acted));
        is("stuck", json!(was_stuck));
        is("jobLeft", json!(!view.job_is_gone));
        is("podsCreated", json!(view.pods.len()));
        is("podsLeft", json!(pods_left(view)));
        is(
            POD_SHAPES,
            json!(
                view.pods
                    .iter()
                    .map(|pod| shape(&pod.first))
                    .collect::<BTreeSet<_>>()
            ),
        );
        let status = of_status(&view.status());
        if !was_deleted_early {
            for (name, value) in status {
                is(name, value);
            }
        } else if !view.job_is_gone {
            is(STATUS_OF_DELETED, json!(BTreeMap::from(status)));
        }
        Self { fields, trail }
    }

    /// A count; 0 if it is absent.
    pub fn number(&self, field: &str) -> i64 {
        self.fields.get(field).and_then(Value::as_i64).unwrap_or(0)
    }

    /// Whether a condition begins with this text.
    pub fn has(&self, condition: &str) -> bool {
        let conditions = self.fields.get("conditions").and_then(Value::as_array);
        let mut texts = conditions.into_iter().flatten().filter_map(Value::as_str);
        texts.any(|text| text.starts_with(condition))
    }

    /// A state in one line.
    pub fn glance(view: &View) -> String {
        let status = view.status();
        let number = |number: Option<i32>| number.unwrap_or(0);
        format!(
            "active {} ready {} terminating {} succeeded {} failed {} indexes {:?} failed {:?} {:?}{}, pods {:?}",
            number(status.active),
            number(status.ready),
            number(status.terminating),
            number(status.succeeded),
            number(status.failed),
            status.completed_indexes.as_deref().unwrap_or_default(),
            status.failed_indexes.as_deref().unwrap_or_default(),
            conditions(&status),
            if view.job_is_gone { " gone" } else { "" },
            pods_left(view),
        )
    }
}

fn of_status(status: &JobStatus) -> [(&'static str, Value); 11] {
    let uncounted = status.uncounted_terminated_pods.clone().unwrap_or_default();
    let uncounted = uncounted
        .failed
        .iter()
        .chain(&uncounted.succeeded)
        .flatten()
        .count();
    [
        ("conditions", json!(conditions(status))),
        ("active", json!(status.active.unwrap_or(0))),
        ("ready", json!(status.ready.unwrap_or(0))),
        ("terminating", json!(status.terminating.unwrap_or(0))),
        ("succeeded", json!(status.succeeded.unwrap_or(0))),
        ("failed", json!(status.failed.unwrap_or(0))),
        ("completedIndexes", json!(status.completed_indexes)),
        ("failedIndexes", json!(status.failed_indexes)),
        ("startTime", json!(status.start_time.is_some())),
        ("completionTime", json!(status.completion_time.is_some())),
        ("uncounted", json!(uncounted)),
    ]
}

fn conditions(status: &JobStatus) -> BTreeSet<String> {
    let all = status.conditions.iter().flatten();
    let known = all.filter(|own| CONDITIONS.contains(&own.type_.as_str()));
    let words = known.map(|own| {
        format!(
            "{}={} {}",
            own.type_,
            own.status,
            own.reason.as_deref().unwrap_or_default()
        )
    });
    words.collect()
}

fn pods_left(view: &View) -> Vec<String> {
    let mut left: Vec<_> = view.left().map(|pod| pod_left(pod)).collect();
    left.sort();
    left
}

fn pod_left(pod: &Pod) -> String {
    let index = index(pod).map_or_else(String::new, |index| format!(" of index {index}"));
    let deleted = if is_deleted(pod) { " deleted" } else { "" };
    let owned = if pod.owner_references().is_empty() {
        " orphan"
    } else {
        ""
    };
    let held = pod.finalizers().join(" ");
    let held = if is_over(pod) || is_deleted(pod) {
        held
    } else {
        String::new()
    };
    format!("{}{index}{deleted}{owned} {held}", phase(pod))
        .trim_end()
        .to_owned()
}

/// What a controller made of the template, without what differs between any two pods.
fn shape(pod: &Pod) -> String {
    let mut spec = json!(pod.spec);
    if let Some(spec) = spec.as_object_mut() {
        spec.remove("nodeName");
    }
    for list in ["containers", "initContainers"] {
        for container in spec[list].as_array_mut().into_iter().flatten() {
            tidy_index(container, index(pod));
        }
    }
    let is_own = |name: &str| name.contains("shed.dev/") || name == LABEL_NO_BACKUP;
    let foreign = |name: &&String| !is_own(name) || name.as_str() == LABEL;
    let labels = pod.labels().keys().filter(foreign);
    let labels: BTreeMap<_, _> = labels
        .filter(|name| !name.ends_with("controller-uid"))
        .map(|name| (name, &pod.labels()[name]))
        .collect();
    let annotations = pod.annotations().keys().filter(foreign);
    let annotations: BTreeMap<_, _> = annotations
        .map(|name| (name, &pod.annotations()[name]))
        .collect();
    // The end of a name is random.
    let name = pod.name_any();
    let stem = name.get(..name.len().saturating_sub(RANDOM));
    let owners: Vec<_> = pod
        .owner_references()
        .iter()
        .map(|owner| {
            json!([
                owner.kind,
                owner.name,
                owner.controller,
                owner.block_owner_deletion
            ])
        })
        .collect();
    json!({"spec": spec, "labels": labels, "annotations": annotations, "owners": owners,
        "finalizers": pod.finalizers(), "name": stem})
    .to_string()
}

/// The built-in controller refers to an annotation of the pod where shed writes the value of the index.
fn tidy_index(container: &mut Value, index: Option<u32>) {
    let Some(env) = container["env"].as_array_mut() else {
        return;
    };
    for variable in env
        .iter_mut()
        .filter(|own| own["name"] == "JOB_COMPLETION_INDEX")
    {
        let value = variable["value"].as_str();
        if value.is_none() || value == index.map(|index| index.to_string()).as_deref() {
            *variable = json!({"name": "JOB_COMPLETION_INDEX"});
        }
    }
    env.sort_by_key(|own| own["name"].to_string());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_uids_of_pods_make_no_difference() {
        let pod = |uid: &str, index: &str| {
            let name = format!("job-0-{uid}{uid}{uid}{uid}{uid}");
            let pod = json!({"metadata": {"name": name, "uid": name, "labels": {
                "batch.kubernetes.io/controller-uid": name, "shed.dev/task": name,
                "batch.kubernetes.io/job-completion-index": index}},
                "spec": {"nodeName": name, "containers": [{"name": "main"}]}});
            shape(&serde_json::from_value(pod).unwrap())
        };
        assert_eq!(pod("a", "1"), pod("b", "1"));
        assert_ne!(pod("a", "1"), pod("a", "2"));
    }

    #[test]
    fn conditions_of_batch_v1_alone_count() {
        let status = json!({"conditions": [
            {"type": "Failed", "status": "True", "reason": "PodFailurePolicy"},
            {"type": "DeadlineAtRisk", "status": "True"}]});
        let status: JobStatus = serde_json::from_value(status).unwrap();
        assert_eq!(
            conditions(&status),
            BTreeSet::from(["Failed=True PodFailurePolicy".to_owned()])
        );
    }
}
