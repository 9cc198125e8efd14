use shed_core::time::Instant;

use super::*;
use crate::adopt::translate;
use crate::fixtures;
use crate::pod_names;
use crate::validate::ValidatedJob;
use k8s_openapi::api::core::v1::Pod;

/// The first attempt's pod of the Job of the fixtures: its labels and its owner, as YAML.
fn pod(labels: &str, owner: &str) -> Arc<PodFacts> {
    let name = pod_names::of_job_pod(job().adopted.as_ref().unwrap(), 0, 0);
    let pod: Pod = serde_saphyr::from_str(&format!(
        "{{metadata: {{name: {name}, namespace: team, uid: u, labels: {labels}, ownerReferences: [{owner}]}}, \
         spec: {{containers: [{{name: c}}]}}}}"
    ))
    .unwrap();
    Arc::new(PodFacts::from_pod(&pod.into(), Instant(0)))
}

const MATCHING: &str = "{shed.dev/job-uid: d, shed.dev/task: '0', shed.dev/attempt: '0', \
                        batch.kubernetes.io/controller-uid: job-uid}";
const OTHER: &str = "{shed.dev/job-uid: d, shed.dev/task: '0', shed.dev/attempt: '0'}";
const OURS: &str = "{apiVersion: batch/v1, kind: Job, name: pi, uid: job-uid, controller: true}";
const THEIRS: &str = "{apiVersion: batch/v1, kind: Job, name: pi, uid: other, controller: true}";
const KIND: &str = "{apiVersion: apps/v1, kind: ReplicaSet, name: pi, uid: rs, controller: true}";

fn job() -> ValidatedJob {
    let job = fixtures::batch_job("completions: 1");
    translate::validated(&fixtures::companion(&job), &job).unwrap()
}

fn sorted(labels: &str, owner: &str) -> (usize, Claims) {
    let job = job();
    let pods = JobPods::from([((0, 0), pod(labels, owner))]);
    let (pods, claims) = sort(job.adopted.as_ref().unwrap(), pods, &[]);
    (pods.len(), claims)
}

#[test]
fn a_pod_is_the_jobs_if_it_controls_it_and_its_labels_match() {
    assert_eq!(sorted(MATCHING, OURS), (1, Claims::default()));
    assert_eq!(sorted(MATCHING, THEIRS), (0, Claims::default()));
    assert_eq!(sorted(MATCHING, KIND), (0, Claims::default()));
}

#[test]
fn a_matching_orphan_is_adopted_and_already_counts() {
    let (left, claims) = sorted(MATCHING, "");
    assert_eq!((left, claims.adopt.len(), claims.release.len()), (1, 1, 0));
    assert_eq!(sorted(OTHER, ""), (0, Claims::default()));
}

#[test]
fn what_does_not_match_any_more_is_let_go() {
    let (left, claims) = sorted(OTHER, OURS);
    assert_eq!((left, claims.adopt.len(), claims.release.len()), (0, 0, 1));
    let job = job();
    let bare = pod("{}", OURS);
    assert!(bare.attempt.is_none());
    let (_, claims) = sort(job.adopted.as_ref().unwrap(), JobPods::new(), &[bare]);
    assert_eq!(claims.release.len(), 1, "also one without any labels");
}
