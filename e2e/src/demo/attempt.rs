//! An attempt as its pod shows it, the same for pods of the Job controller and of shed.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use shed::api;

use crate::bench::page::Spread;
use crate::jobs::{node_of, resume_point, terminated};

/// One attempt at one task.
#[derive(Clone, Debug, PartialEq)]
pub struct Attempt {
    pub task: u32,
    pub number: u32,
    /// `original`, `clone` or `retry`.
    pub kind: String,
    pub node: Option<String>,
    pub created: Timestamp,
    /// When its container ended, if it did, and how.
    pub ended: Option<(Timestamp, i32)>,
    /// The progress that it was handed over.
    pub resumes_at: f64,
    /// When its deletion was requested, if it was.
    pub deleted: Option<Timestamp>,
}

impl Attempt {
    /// Reads a pod; none if it is not an attempt.
    pub fn read(pod: &Pod) -> Option<Self> {
        let labels = pod.labels();
        let number = |label: &str| labels.get(label).and_then(|text| text.parse().ok());
        let kind = labels
            .get(api::LABEL_KIND)
            .map_or("original", String::as_str);
        Some(Self {
            task: number(api::LABEL_INDEX)?,
            number: number(api::LABEL_ATTEMPT).unwrap_or(0),
            kind: kind.to_owned(),
            node: node_of(pod).map(str::to_owned),
            created: pod.metadata.creation_timestamp.as_ref()?.0,
            ended: terminated(pod)
                .and_then(|end| Some((end.finished_at.as_ref()?.0, end.exit_code))),
            resumes_at: resume_point(pod).unwrap_or(0.0),
            deleted: deletion(pod),
        })
    }

    /// Whether it did its task.
    pub fn succeeded(&self) -> bool {
        matches!(self.ended, Some((_, 0)))
    }

    /// Seconds from the pod's creation to its container's end.
    pub fn seconds(&self) -> Option<f64> {
        let (end, _) = self.ended?;
        Some(end.duration_since(self.created).as_secs_f64())
    }

    /// Its node, or a word for none.
    pub fn place(&self) -> &str {
        self.node.as_deref().unwrap_or("no node")
    }
}

/// The instant of the request: the object has the one at which the grace period ends.
fn deletion(pod: &Pod) -> Option<Timestamp> {
    let end = pod.metadata.deletion_timestamp.as_ref()?.0;
    let grace = pod.metadata.deletion_grace_period_seconds.unwrap_or(0);
    end.checked_sub(SignedDuration::from_secs(grace)).ok()
}

/// The middle of some numbers; none of none.
pub fn median(numbers: impl IntoIterator<Item = f64>) -> Option<f64> {
    let spread = Spread::of(numbers.into_iter().collect());
    spread.map(|spread| spread.median)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median([]), None);
        assert_eq!(median([3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median([4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }

    #[test]
    fn a_clones_pod_is_read() {
        let pod: Pod = serde_json::from_value(serde_json::json!({
            "metadata": {
                "name": "x", "creationTimestamp": "2030-01-01T00:00:00Z",
                "deletionTimestamp": "2030-01-01T00:00:15Z", "deletionGracePeriodSeconds": 5,
                "labels": {(api::LABEL_INDEX): "4", (api::LABEL_ATTEMPT): "1", (api::LABEL_KIND): "clone"},
            },
            "spec": {"containers": [], "nodeName": "n1", "initContainers": [{
                "name": api::AGENT_CONTAINER,
                "env": [{"name": "SHED_RESUME", "value": "{\"progress\":0.25,\"checkpoint\":\"c\"}"}],
            }]},
            "status": {"containerStatuses": [{
                "name": "wordcount", "image": "", "imageID": "", "ready": false, "restartCount": 0,
                "state": {"terminated": {"exitCode": 0, "finishedAt": "2030-01-01T00:00:09Z"}},
            }]},
        }))
        .unwrap();
        let attempt = Attempt::read(&pod).unwrap();
        assert_eq!(
            (attempt.task, attempt.number, attempt.kind.as_str()),
            (4, 1, "clone")
        );
        assert!(attempt.succeeded() && attempt.seconds() == Some(9.0));
        assert!((attempt.resumes_at - 0.25).abs() < 1e-9);
        assert_eq!(attempt.deleted.unwrap().to_string(), "2030-01-01T00:00:10Z");
    }
}
