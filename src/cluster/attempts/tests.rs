use k8s_openapi::api::core::v1::Pod;
use kube::runtime::watcher::Event;

use super::*;
use crate::adopt::{AdoptJobs, translate};
use crate::api;
use crate::cluster::Stores;
use crate::fixtures;

/// Stores with a batch/v1 Job that shed runs, its companion, and these pods.
fn adopted(pods: Vec<Pod>) -> (Arc<Stores>, ValidatedJob) {
    let job = fixtures::batch_job("completions: 1");
    let companion = fixtures::companion(&job);
    let validated = translate::validated(&companion, &job).unwrap();
    let stores = Stores::for_tests(vec![companion], pods, &[]);
    (stores.adopting(AdoptJobs::Managed, vec![job]), validated)
}

fn own_pod() -> Pod {
    fixtures::job_pod(&fixtures::batch_job("completions: 1"))
}

fn without_owner(mut pod: Pod) -> Pod {
    pod.metadata.owner_references = None;
    pod
}

fn called(mut pod: Pod, name: &str) -> Pod {
    pod.metadata.name = Some(name.to_owned());
    pod.metadata.uid = Some(name.to_owned());
    pod
}

/// Uids of the attempts that the Job has.
fn uids(pods: Vec<Pod>) -> Vec<String> {
    let (stores, job) = adopted(pods);
    let pods = stores.pods.of_job(&job).into_values();
    pods.map(|pod| pod.uid.clone()).collect()
}

#[test]
fn what_a_job_may_take_in_is_its_own_and_shadows_nothing() {
    assert_eq!(uids(vec![own_pod()]), ["pod-0-0"]);
    assert_eq!(uids(vec![without_owner(own_pod())]), ["pod-0-0"]);
    let copy = called(without_owner(own_pod()), "a-copy");
    assert_eq!(uids(vec![copy.clone(), own_pod()]), ["pod-0-0"]);
    assert_eq!(
        uids(vec![copy.clone(), without_owner(own_pod())]),
        ["pod-0-0"]
    );
    assert!(uids(vec![copy]).is_empty());
    let mut foreign = without_owner(own_pod());
    foreign.metadata.namespace = Some("evil".to_owned());
    assert!(uids(vec![foreign]).is_empty());
}

#[test]
fn a_pod_event_reaches_the_job_that_controls_or_may_adopt_it() {
    let job = fixtures::job("");
    let mine = fixtures::attempt_pod(&job, (0, 0), "node-1", "Running");
    let (stores, _) = adopted(vec![]);
    let heard = |stores: &Stores, pod: Pod| {
        let (reported, _) = stores.apply_pod_event(Event::Apply(pod.into()));
        let jobs = reported.iter().filter_map(|pod| stores.jobs.job_of(pod));
        jobs.map(|job| job.name).collect::<Vec<_>>()
    };
    let companion = translate::companion_name_of("pi", "job-uid");
    assert_eq!(heard(&stores, own_pod()), [companion.as_str()]);
    // It loses its owner, so both its old and its new group change.
    assert_eq!(
        heard(&stores, without_owner(own_pod())),
        [companion.as_str(), &companion]
    );
    let mut bare = called(own_pod(), "bare");
    bare.metadata.labels = None;
    assert_eq!(heard(&stores, bare), [companion.as_str()]);
    assert!(heard(&stores, mine.clone()).is_empty(), "no such job");
    let stores = Stores::for_tests(vec![job], vec![], &[]);
    assert_eq!(heard(&stores, mine.clone()), ["count"]);
    let mut foreign = mine.clone();
    foreign.metadata.namespace = Some("evil".to_owned());
    assert!(heard(&stores, foreign).is_empty());
    let copy = called(without_owner(mine), "copy");
    assert_eq!(copy.metadata.labels.as_ref().unwrap().len(), 4);
    assert!(
        copy.metadata
            .labels
            .as_ref()
            .unwrap()
            .contains_key(api::LABEL_JOB_UID)
    );
    assert!(heard(&stores, copy).is_empty());
}
