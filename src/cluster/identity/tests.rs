use serde_json::{Value, json};
use shed_core::time::Instant;

use super::*;
use crate::api;
use crate::fixtures;

/// A pod of the batch/v1 Job of the fixtures: its first attempt at task 3, changed by a JSON merge.
fn pod(job: &ValidatedJob, change: &Value) -> PodFacts {
    let adopted = job.adopted.as_ref().unwrap();
    let mut pod = json!({
        "metadata": {
            "name": pod_names::of_job_pod(adopted, 3, 0), "namespace": "team", "uid": "p",
            "labels": {api::LABEL_JOB_UID: job.uid, api::LABEL_INDEX: "3", api::LABEL_ATTEMPT: "0"},
            "ownerReferences": [translate::owner_reference(&adopted.name, &adopted.uid)],
        },
        "spec": {"containers": [{"name": "task"}]},
    });
    merge(&mut pod, change);
    let pod = serde_json::from_value(pod).unwrap();
    PodFacts::from_pod(&pod, Instant(0))
}

fn adopted(change: &str) -> ValidatedJob {
    let job = fixtures::batch_job(change);
    translate::validated(&fixtures::companion(&job), &job).unwrap()
}

fn indexed() -> ValidatedJob {
    adopted("completions: 5, completionMode: Indexed")
}

/// The attempt of the indexed Job that the pod is, changed so.
fn id(change: &Value) -> Option<AttemptId> {
    let job = indexed();
    attempt_of(&job, &pod(&job, change))
}

#[test]
fn an_attempt_is_identified_by_owner_and_name_despite_labels() {
    assert_eq!(id(&json!({})), Some((3, 0)));
    let wrong = json!({"metadata": {"labels": {api::LABEL_INDEX: "1", api::LABEL_ATTEMPT: "7"}}});
    assert_eq!(id(&wrong), Some((3, 0)));
    let few = json!({"metadata": {"labels": {api::LABEL_JOB_UID: null, api::LABEL_INDEX: null}}});
    assert_eq!(id(&few), Some((3, 0)));
    let job_uid = api::LABEL_JOB_UID;
    let none = json!({job_uid: null, api::LABEL_INDEX: null, api::LABEL_ATTEMPT: null});
    let none = json!({"metadata": {"labels": none}});
    assert_eq!(
        id(&none),
        None,
        "the built-in controller's are called so too"
    );
}

#[test]
fn a_pod_of_another_namespace_owner_or_name_is_none_of_the_jobs() {
    let theirs = |field: &str, value: &str| {
        let mut owner = json!(translate::owner_reference("pi", "job-uid"));
        owner[field] = value.into();
        json!({"metadata": {"ownerReferences": [owner]}})
    };
    for change in [
        json!({"metadata": {"namespace": "evil"}}),
        json!({"metadata": {"name": "pi-3-debug"}}),
        json!({"metadata": {"name": "debug"}}),
        theirs("uid", "other"),
        theirs("name", "other"),
        theirs("kind", "ReplicaSet"),
        theirs("apiVersion", "batch.example.com/v1"),
    ] {
        assert_eq!(id(&change), None, "{change}");
    }
}

#[test]
fn an_orphan_is_adopted_by_the_job_of_its_labels_and_name() {
    let orphan = |mut change: Value| {
        change["ownerReferences"] = json!([]);
        id(&json!({"metadata": change}))
    };
    assert_eq!(orphan(json!({})), Some((3, 0)));
    for change in [
        json!({"namespace": "evil"}),
        json!({"name": "pi-3-bcdfg"}),
        json!({"labels": {api::LABEL_JOB_UID: "other"}}),
        json!({"labels": {api::LABEL_INDEX: "2"}}),
    ] {
        assert_eq!(orphan(change.clone()), None, "{change}");
    }
    // A DeadlineJob takes nothing in.
    let job = crate::validate::validate(&fixtures::job("")).unwrap();
    let mut orphan = fixtures::attempt_pod(&fixtures::job(""), (0, 0), "a", "Running");
    assert_eq!(
        attempt_of(
            &job,
            &PodFacts::from_pod(&orphan.clone().into(), Instant(0))
        ),
        Some((0, 0))
    );
    orphan.metadata.owner_references = None;
    let orphan = PodFacts::from_pod(&orphan.into(), Instant(0));
    assert_eq!(attempt_of(&job, &orphan), None);
}

#[test]
fn pods_without_index_are_known_too() {
    let job = adopted("completions: 5");
    for labels in [json!({api::LABEL_TASK: "3"}), json!({})] {
        let pod = pod(&job, &json!({"metadata": {"labels": labels}}));
        assert_eq!(attempt_of(&job, &pod), Some((3, 0)));
    }
}

#[test]
fn the_owner_of_attempts_is_the_job_or_the_one_it_represents() {
    let job = fixtures::job("");
    let own = Owner::of(&job.metadata);
    assert_eq!(own.kind, OwnerKind::DeadlineJob);
    assert_eq!(own, crate::validate::validate(&job).unwrap().owner());
    let companion = fixtures::companion(&fixtures::batch_job(""));
    assert_eq!(Owner::of(&companion.metadata), adopted("").owner());
    // A companion made by hand represents no Job.
    let mut by_hand = companion;
    by_hand.metadata.name = Some("mine".to_owned());
    assert_eq!(Owner::of(&by_hand.metadata).kind, OwnerKind::DeadlineJob);
}

/// JSON merge patch.
fn merge(into: &mut Value, change: &Value) {
    let Value::Object(fields) = change else {
        into.clone_from(change);
        return;
    };
    for (key, field) in fields {
        merge(&mut into[key], field);
    }
    if let Some(fields) = into.as_object_mut() {
        fields.retain(|_, field| !field.is_null());
    }
}
