//! The pods of a job's attempts. They show attempts that the bounded record leaves out, and ends that no operator has
//! recorded.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::{Api, Client};
use shed::api::managed_fields::Trimmed;
use shed::api::{AttemptRecord, AttemptState, JobRecord, LABEL_JOB_UID, LABEL_KIND};
use shed::clock;
use shed::cluster::pod::{PodFacts, Stage};
use shed_core::snapshot::AttemptKind;

use crate::access;
use crate::model::JobView;

/// Pods in one answer.
const PAGE: u32 = 500;
/// More pods of a job are not read.
pub const PODS_MAX: usize = 2000;

/// An attempt, and its pod.
pub type SeenPod = (AttemptRecord, PodFacts);

/// The pods of the job's attempts. Of a large unfinished job they are those that have not ended.
pub async fn list(client: &Client, job: &JobView) -> anyhow::Result<Vec<SeenPod>> {
    let api: Api<Trimmed<Pod>> = Api::namespaced(client.clone(), &job.namespace);
    let selected = format!("{LABEL_JOB_UID}={}", job.uid);
    let mut wanted = ListParams::default().labels(&selected).limit(PAGE);
    let is_large = usize::try_from(job.spec.completions).is_ok_and(|tasks| tasks > PODS_MAX);
    if is_large && !job.is_finished() {
        wanted = wanted.fields("status.phase!=Succeeded,status.phase!=Failed");
    }
    let listed = access::list(&api, &wanted, PODS_MAX).await?;
    let now = clock::instant(&Timestamp::now().into());
    let pods = listed.iter();
    let seen = pods.filter_map(|pod| attempt(pod, PodFacts::from_pod(pod, now), &job.uid));
    Ok(seen.collect())
}

/// What a pod shows of its attempt. Labels alone make no attempt, because each client that writes pods can copy them.
fn attempt(pod: &Pod, facts: PodFacts, job: &str) -> Option<SeenPod> {
    let owner = facts.identity.owner.as_ref()?;
    let attempt = facts.attempt.as_ref().filter(|_| *owner.uid == *job)?;
    let (state, end) = match &attempt.stage {
        Stage::Pending | Stage::Stuck { .. } => (AttemptState::Pending, None),
        Stage::Running => (AttemptState::Running, None),
        Stage::Succeeded { finished } => (AttemptState::Won, Some(*finished)),
        Stage::Failed { finished, .. } if attempt.deleting => {
            (AttemptState::Stopped, Some(*finished))
        }
        Stage::Failed {
            finished,
            disrupted: true,
        } => (AttemptState::Disrupted, Some(*finished)),
        Stage::Failed { finished, .. } => (AttemptState::Failed, Some(*finished)),
    };
    let label = pod.metadata.labels.as_ref()?.get(LABEL_KIND);
    let kind = [AttemptKind::Clone, AttemptKind::Retry]
        .into_iter()
        .find(|kind| label.is_some_and(|label| label == kind.label()));
    let record = AttemptRecord {
        task: i32::try_from(attempt.task).ok()?,
        attempt: i32::try_from(attempt.number).ok()?,
        kind: kind.unwrap_or(AttemptKind::Original),
        node: facts.node.as_deref().map(str::to_owned),
        start_time: attempt.started.map(clock::time),
        end_time: end.map(clock::time),
        progress: None,
        resumed_from: None,
        resume_point: None,
        estimated_end_time: None,
        state,
    };
    Some((record, facts))
}

/// The record with what the pods show: attempts that it leaves out, and ends that it does not have yet. Without a record
/// the pods are all that is known.
pub fn complete<'a>(
    record: Option<JobRecord>,
    pods: impl Iterator<Item = &'a AttemptRecord>,
) -> JobRecord {
    let mut record = record.unwrap_or_else(|| JobRecord {
        time: Timestamp::now().into(),
        pocd: Vec::new(),
        attempts: Vec::new(),
        omitted_attempts: 0,
        decisions: Vec::new(),
        waiting: None,
    });
    let key = |one: &AttemptRecord| (one.task, one.attempt);
    let listed = record.attempts.drain(..).map(|one| (key(&one), one));
    let mut attempts: BTreeMap<_, _> = listed.collect();
    for pod in pods {
        match attempts.entry(key(pod)) {
            Entry::Vacant(place) => {
                place.insert(pod.clone());
                record.omitted_attempts = (record.omitted_attempts - 1).max(0);
            }
            Entry::Occupied(mut known) if known.get().state.is_live() => {
                let known = known.get_mut();
                known.state = pod.state;
                known.end_time.clone_from(&pod.end_time);
                known.node = pod.node.clone().or(known.node.take());
                known.start_time = pod.start_time.clone().or(known.start_time.take());
            }
            Entry::Occupied(_) => {}
        }
    }
    record.attempts = attempts.into_values().collect();
    record
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(task: u32, number: u32, kind: &str, status: Value) -> Pod {
        let name = shed::pod_names::attempt_pod("nightly", "u", task, number);
        serde_json::from_value(json!({
            "metadata": {"name": name, "namespace": "team-a", "uid": format!("{task}-{number}"),
                "labels": {LABEL_JOB_UID: "u", "shed.dev/task": task.to_string(), "shed.dev/attempt": number.to_string(),
                    LABEL_KIND: kind},
                "ownerReferences": [{"apiVersion": "shed.dev/v1alpha1", "kind": "DeadlineJob", "name": "nightly", "uid": "u",
                    "controller": true}]},
            "spec": {"nodeName": "worker-1", "containers": [{"name": "task"}]},
            "status": status,
        }))
        .unwrap()
    }

    fn seen(pod: &Pod) -> Option<AttemptRecord> {
        let trimmed = serde_json::from_value(serde_json::to_value(pod).unwrap()).unwrap();
        let facts = PodFacts::from_pod(&trimmed, shed_core::time::Instant(0));
        attempt(pod, facts, "u").map(|(record, _)| record)
    }

    fn running() -> Value {
        json!({"phase": "Running", "containerStatuses": [{"name": "task", "image": "", "imageID": "", "ready": true,
            "restartCount": 0, "state": {"running": {"startedAt": "2030-01-31T07:00:00Z"}}}]})
    }

    fn succeeded() -> Value {
        json!({"phase": "Succeeded", "containerStatuses": [{"name": "task", "image": "", "imageID": "", "ready": false,
            "restartCount": 0, "state": {"terminated": {"exitCode": 0, "startedAt": "2030-01-31T07:00:00Z",
                "finishedAt": "2030-01-31T07:20:00Z"}}}]})
    }

    #[test]
    fn a_pod_shows_its_attempt() {
        let clone = seen(&pod(3, 1, "clone", running())).unwrap();
        assert_eq!((clone.task, clone.attempt), (3, 1));
        assert_eq!(
            (clone.kind, clone.state),
            (AttemptKind::Clone, AttemptState::Running)
        );
        assert_eq!(clone.node.as_deref(), Some("worker-1"));
        let mut copied = pod(3, 1, "clone", running());
        copied.metadata.owner_references = None;
        assert_eq!(seen(&copied), None, "labels alone");
    }

    #[test]
    fn pods_add_what_the_record_leaves_out_and_ends_that_it_lacks() {
        let record: JobRecord = serde_json::from_value(json!({
            "time": "2030-01-31T07:10:00Z", "omittedAttempts": 1, "attempts": [
                {"task": 0, "attempt": 0, "kind": "Original", "state": "Running", "progress": "0.500"},
                {"task": 1, "attempt": 0, "kind": "Original", "state": "Stopped", "progress": "0.100"}],
        }))
        .unwrap();
        let pods = [
            seen(&pod(0, 0, "original", succeeded())).unwrap(),
            seen(&pod(1, 0, "original", succeeded())).unwrap(),
            seen(&pod(2, 0, "original", running())).unwrap(),
        ];
        let whole = complete(Some(record), pods.iter());
        let states: Vec<_> = whole.attempts.iter().map(|one| one.state).collect();
        let expected = [
            AttemptState::Won,
            AttemptState::Stopped,
            AttemptState::Running,
        ];
        assert_eq!(
            (states.as_slice(), whole.omitted_attempts),
            (&expected[..], 0)
        );
        assert_eq!(whole.attempts[0].progress.map(|one| one.value()), Some(0.5));
        assert_eq!(complete(None, pods.iter()).attempts.len(), 3);
    }
}
