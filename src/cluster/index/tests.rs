use k8s_openapi::api::core::v1::Pod;
use serde_json::json;
use shed_core::time::Instant;

use super::*;
use crate::api;
use crate::cluster::identity::Owner;
use crate::fixtures;

/// A pod on node `a` that is no attempt.
fn pod(name: &str, phase: &str) -> Pod {
    let mut pod = attempt();
    pod.metadata.name = Some(name.to_owned());
    pod.metadata.owner_references = None;
    pod.metadata.labels = None;
    pod.metadata.finalizers = None;
    pod.status.as_mut().unwrap().phase = Some(phase.to_owned());
    pod
}

/// The first attempt of task 1 of the job, on node `a`.
fn attempt() -> Pod {
    fixtures::attempt_pod(&fixtures::job(""), (1, 0), "a", "Running")
}

fn facts(pod: &Pod) -> PodFacts {
    PodFacts::from_pod(&pod.clone().into(), Instant(0))
}

fn key(pod: &Pod) -> PodKey {
    let metadata = &pod.metadata;
    let name = metadata.name.as_deref().unwrap().into();
    (metadata.namespace.as_deref().unwrap().into(), name)
}

/// Milli-cores that others use on node `a`.
fn cpu(index: &PodIndex) -> i64 {
    index.others.get("a").map_or(0, |used| used.get("cpu"))
}

/// Uid of the pod that is the job's attempt (1, 0).
fn first_of_task_1(index: &PodIndex) -> Option<&str> {
    let owner = Owner::of(&fixtures::job("").metadata);
    let pod = index.by_owner.get(&owner)?.get(&(1, 0))?;
    Some(&pod.uid)
}

#[test]
fn what_others_request_follows_every_change_of_their_pods() {
    let mut index = PodIndex::default();
    index.put(facts(&pod("x", "Running")));
    index.put(facts(&pod("y", "Running")));
    assert_eq!(cpu(&index), 2000);
    index.put(facts(&pod("x", "Succeeded")));
    assert_eq!(cpu(&index), 1000);
    index.remove(&key(&pod("x", "")));
    index.remove(&key(&pod("y", "")));
    assert_eq!(cpu(&index), 0);
}

#[test]
fn an_ended_attempt_uses_capacity_until_its_pod_has_ended() {
    let mut index = PodIndex::default();
    let leaving = |is_leaving| PodFacts {
        terminal: true,
        is_leaving,
        ..facts(&attempt())
    };
    index.put(leaving(true));
    assert_eq!(cpu(&index), 1000);
    index.put(leaving(false));
    assert_eq!(cpu(&index), 0);
}

#[test]
fn attempts_are_found_by_job_and_number_until_they_are_gone() {
    let mut index = PodIndex::default();
    index.put(facts(&attempt()));
    assert_eq!(first_of_task_1(&index), Some("pod-1-0"));
    assert!(index.others.is_empty(), "an attempt is no load of others");
    index.remove(&key(&attempt()));
    assert!(index.by_owner.is_empty());
}

/// Pods that look like the job's attempt, each wrong in one way.
fn impostors() -> Vec<(&'static str, Pod)> {
    let with = |what: &'static str, change: fn(&mut Pod)| {
        let mut pod = attempt();
        pod.metadata.uid = Some("impostor".to_owned());
        pod.metadata.finalizers = None;
        change(&mut pod);
        (what, pod)
    };
    vec![
        with("another namespace, with owner", |pod| {
            pod.metadata.namespace = Some("evil".to_owned());
        }),
        with("another namespace, labels alone", |pod| {
            pod.metadata.namespace = Some("evil".to_owned());
            pod.metadata.owner_references = None;
        }),
        with("no owner and another name", |pod| {
            pod.metadata.name = Some("debug".to_owned());
            pod.metadata.owner_references = None;
        }),
        with("a mirror pod", |pod| {
            let mirror = ("kubernetes.io/config.mirror".to_owned(), "hash".to_owned());
            pod.metadata.annotations = Some([mirror].into());
            pod.metadata.name = Some("static-node-1".to_owned());
            let owner = &mut pod.metadata.owner_references.as_mut().unwrap()[0];
            (owner.api_version, owner.kind) = ("v1".to_owned(), "Node".to_owned());
        }),
        with("another name", |pod| {
            pod.metadata.name = Some("count-debug".to_owned());
        }),
        with("the name of another uid's attempt", |pod| {
            pod.metadata.name = Some(crate::pod_names::attempt_pod("count", "other", 1, 0));
        }),
        with(
            "a made-up name of the owner, and what follows from it",
            |pod| {
                let owner = &mut pod.metadata.owner_references.as_mut().unwrap()[0];
                owner.name = "fake".to_owned();
                let name = crate::pod_names::attempt_pod("fake", &owner.uid, 1, 0);
                pod.metadata.name = Some(name);
            },
        ),
        with("no controller", |pod| {
            pod.metadata.name = Some("copy".to_owned());
            pod.metadata.owner_references.as_mut().unwrap()[0].controller = None;
        }),
        with("a kind of that name in another group", |pod| {
            pod.metadata.name = Some("other-group".to_owned());
            pod.metadata.owner_references.as_mut().unwrap()[0].api_version = "x.dev/v1".to_owned();
        }),
    ]
}

#[test]
fn no_impostor_takes_the_place_of_an_attempt_nor_away_with_it() {
    for (what, impostor) in impostors() {
        let mut index = PodIndex::default();
        index.put(facts(&attempt()));
        index.put(facts(&impostor));
        assert_eq!(first_of_task_1(&index), Some("pod-1-0"), "{what}");
        assert!(index.held.is_empty(), "{what}");
        index.remove(&key(&impostor));
        assert_eq!(first_of_task_1(&index), Some("pod-1-0"), "{what}: removed");
        assert!(index.strangers.is_empty(), "{what}");
    }
}

#[test]
fn an_impostor_is_other_load_on_its_node_until_it_is_over() {
    for (what, mut impostor) in impostors() {
        let mut index = PodIndex::default();
        index.put(facts(&impostor));
        // Such as name an owner that is nowhere are attempts of a job that is gone.
        let is_departing = !index.by_owner.is_empty();
        assert_eq!(cpu(&index), if is_departing { 0 } else { 1000 }, "{what}");
        assert_ne!(index.strangers.is_empty(), !is_departing, "{what}");
        impostor.spec.as_mut().unwrap().node_name = None;
        index.put(facts(&impostor));
        assert_eq!(cpu(&index), 0, "{what}: without a node");
    }
}

#[test]
fn a_sidecar_of_what_only_carries_labels_is_load() {
    let mut index = PodIndex::default();
    let (_, mut pod) = impostors().swap_remove(1);
    pod.status = serde_json::from_value(json!({"phase": "Running", "containerStatuses": [{
        "name": "task", "image": "", "imageID": "", "ready": false, "restartCount": 0,
        "state": {"terminated": {"exitCode": 0}}}]}))
    .unwrap();
    index.put(facts(&pod));
    assert_eq!(cpu(&index), 1000);
}

#[test]
fn without_labels_an_attempt_is_found_all_the_same() {
    let mut index = PodIndex::default();
    let mut pod = attempt();
    pod.metadata.labels = None;
    index.put(facts(&pod));
    assert_eq!(first_of_task_1(&index), Some("pod-1-0"));
}

#[test]
fn a_finalizer_is_found_without_labels_and_without_an_owner() {
    let mut index = PodIndex::default();
    let mut left = pod("left", "Running");
    left.metadata.finalizers = Some(vec![api::ATTEMPT_FINALIZER.to_owned()]);
    let mut theirs = pod("theirs", "Running");
    theirs.metadata.finalizers = Some(vec![api::JOB_TRACKING_FINALIZER.to_owned()]);
    index.put(facts(&left));
    index.put(facts(&theirs));
    let held = |index: &PodIndex| {
        index
            .held
            .keys()
            .map(|key| key.1.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        held(&index),
        ["left"],
        "the built-in controller counts by the other"
    );
    left.metadata.finalizers = None;
    index.put(facts(&left));
    assert!(held(&index).is_empty());
}
