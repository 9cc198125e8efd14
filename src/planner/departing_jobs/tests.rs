use k8s_openapi::api::core::v1::Pod;
use shed_core::decide::decide;
use shed_core::memory::Memory;
use shed_core::policy::Policy;

use crate::api::{self, DeadlineJob};
use crate::cluster::Stores;
use crate::fixtures;
use crate::planner::observation;
use crate::reconcile::mock::{Apiserver, Process};

/// How many of four tasks of one core each are launched on two nodes of two cores, with these pods there.
fn launched(pods: Vec<Pod>) -> usize {
    let job = fixtures::job(
        "template: {spec: {containers: [{name: task, image: i, resources: {requests: {cpu: '1'}}}]}}",
    );
    let api = Apiserver::new(job.clone());
    let nodes = [fixtures::node("a", 2), fixtures::node("b", 2)];
    let process = Process::with_stores(&api, Stores::for_tests(vec![job], pods, &nodes));
    let view = observation::view(&process.context.shared);
    let policy = Policy {
        surge_max: 0,
        ..Policy::default()
    };
    let (plan, _) = decide(&view.snapshot, Memory::default(), &policy);
    plan.actions.len()
}

/// A job that is nowhere.
fn gone() -> DeadlineJob {
    let mut job = fixtures::job("");
    job.metadata.uid = Some("gone".to_owned());
    job
}

fn pod(task: u32, node: &str, cpu: &str) -> Pod {
    let mut pod = fixtures::attempt_pod(&gone(), (task, 0), node, "Running");
    let spec = pod.spec.as_mut().unwrap();
    let requests = serde_json::json!({"requests": {"cpu": cpu}});
    spec.containers[0].resources = serde_json::from_value(requests).unwrap();
    pod
}

/// With the labels of an attempt and nothing else of one.
fn labelled(mut pod: Pod, job_uid: &str) -> Pod {
    pod.metadata.owner_references = None;
    pod.metadata.finalizers = None;
    let labels = pod.metadata.labels.as_mut().unwrap();
    labels.insert(api::LABEL_JOB_UID.to_owned(), job_uid.to_owned());
    pod
}

fn without_node(mut pod: Pod) -> Pod {
    pod.spec.as_mut().unwrap().node_name = None;
    pod.status.as_mut().unwrap().phase = Some("Pending".to_owned());
    pod
}

#[tokio::test]
async fn a_pending_pod_with_a_made_up_label_holds_nothing() {
    assert_eq!(launched(vec![]), 4);
    let huge = without_node(labelled(pod(0, "", "100000"), "made-up"));
    assert_eq!(launched(vec![huge]), 4);
    let own = fixtures::job("").metadata.uid.unwrap();
    let of_the_job = without_node(labelled(pod(0, "", "100000"), &own));
    assert_eq!(launched(vec![of_the_job]), 4);
}

#[tokio::test]
async fn a_made_up_owner_holds_nothing_without_a_node_either() {
    assert_eq!(launched(vec![without_node(pod(0, "", "100000"))]), 4);
    // Not even if a job with the same uid exists in another namespace.
    let mut twin = fixtures::attempt_pod(&fixtures::job(""), (0, 0), "a", "Running");
    twin.metadata.namespace = Some("evil".to_owned());
    assert_eq!(launched(vec![twin.clone()]), 3, "what runs takes its place");
    assert_eq!(launched(vec![without_node(twin)]), 4);
}

#[tokio::test]
async fn a_pod_that_only_carries_labels_counts_by_its_own_requests() {
    let big = labelled(pod(0, "a", "2"), "made-up");
    let small = labelled(pod(1, "b", "1m"), "made-up");
    assert_eq!(launched(vec![big, small.clone()]), 1);
    assert_eq!(launched(vec![small]), 3);
}

#[tokio::test]
async fn attempts_of_a_deleted_job_count_by_their_own_requests() {
    // By the first one's requests both would be tiny, or both huge.
    assert_eq!(launched(vec![pod(0, "a", "1m"), pod(1, "b", "2")]), 1);
    assert_eq!(launched(vec![pod(0, "a", "2"), pod(1, "b", "1m")]), 1);
    assert_eq!(launched(vec![pod(0, "a", "1"), pod(1, "a", "1")]), 2);
    assert_eq!(launched(vec![pod(0, "nowhere", "2")]), 4);
}
