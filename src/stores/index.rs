//! Pods by what they are asked for.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use shed_core::resources::Resources;

use crate::observe::job::JobPods;
use crate::observe::pod::PodFacts;

/// Namespace and name of a pod.
pub(super) type PodKey = (Arc<str>, String);

/// Pods by what they are asked for.
#[derive(Default)]
pub(super) struct PodIndex {
    pub(super) listed: bool,
    /// The newest version that the watch has shown; all up to it is in here.
    pub(super) reached: u64,
    pub(super) all: HashMap<PodKey, Arc<PodFacts>>,
    pub(super) by_job: HashMap<Arc<str>, JobPods>,
    /// Pods of batch/v1 Jobs that are no attempts by their labels, by the Job's uid.
    pub(super) unlabelled: HashMap<Arc<str>, BTreeMap<PodKey, Arc<PodFacts>>>,
    /// What pods request that are no attempts, or such that have ended and are not over, by node.
    pub(super) others: BTreeMap<Arc<str>, Resources>,
    /// The list that is coming in.
    pub(super) incoming: Option<Vec<PodFacts>>,
}

impl PodIndex {
    pub(super) fn put(&mut self, facts: PodFacts) -> Arc<PodFacts> {
        let key = (Arc::clone(&facts.namespace), facts.name.clone());
        self.remove(&key);
        let facts = Arc::new(facts);
        if let Some(attempt) = &facts.attempt {
            let id = (attempt.task, attempt.number);
            let pods = self.by_job.entry(Arc::clone(&attempt.job_uid));
            pods.or_default().insert(id, Arc::clone(&facts));
        }
        if let Some(node) = in_the_way(&facts) {
            let used = self.others.entry(Arc::clone(node)).or_default();
            used.add(&facts.requests);
        }
        if let Some(uid) = unlabelled_of(&facts) {
            let pods = self.unlabelled.entry(uid).or_default();
            pods.insert(key.clone(), Arc::clone(&facts));
        }
        self.all.insert(key, Arc::clone(&facts));
        facts
    }

    pub(super) fn remove(&mut self, key: &PodKey) -> Option<Arc<PodFacts>> {
        let old = self.all.remove(key)?;
        if let Some(uid) = unlabelled_of(&old)
            && let Some(pods) = self.unlabelled.get_mut(&uid)
        {
            pods.remove(key);
            if pods.is_empty() {
                self.unlabelled.remove(&uid);
            }
        }
        if let Some(attempt) = &old.attempt
            && let Some(pods) = self.by_job.get_mut(&attempt.job_uid)
        {
            pods.remove(&(attempt.task, attempt.number));
            if pods.is_empty() {
                self.by_job.remove(&attempt.job_uid);
            }
        }
        if let Some(node) = in_the_way(&old)
            && let Some(used) = self.others.get_mut(node)
        {
            used.subtract(&old.requests);
        }
        Some(old)
    }

    pub(super) fn replace_all(&mut self, pods: Vec<PodFacts>) {
        self.all.clear();
        self.by_job.clear();
        self.unlabelled.clear();
        self.others.clear();
        for pod in pods {
            self.reached = self.reached.max(pod.version);
            self.put(pod);
        }
        self.listed = true;
    }
}

/// The node on which a pod takes room that no attempt is counted for: one leaves only after the kubelet
/// has said that its task has ended, and where that must be proven this is the proof.
fn in_the_way(pod: &PodFacts) -> Option<&Arc<str>> {
    let is_in_the_way = match &pod.attempt {
        Some(_) => pod.is_leaving,
        None => !pod.terminal,
    };
    pod.node.as_ref().filter(|_| is_in_the_way)
}

/// The batch/v1 Job that controls a pod which is no attempt by its labels.
pub(super) fn unlabelled_of(pod: &PodFacts) -> Option<Arc<str>> {
    let belongs = pod.belongs.as_ref().filter(|_| pod.attempt.is_none())?;
    belongs.controller.clone()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use shed_core::time::Instant;

    use super::*;

    fn pod(name: &str, node: &str, attempt: bool, phase: &str) -> PodFacts {
        let labels = if attempt {
            "labels: {shed.dev/job-uid: u, shed.dev/attempt: '0', batch.kubernetes.io/job-completion-index: '1'},"
        } else {
            ""
        };
        let pod: Pod = serde_yaml_ng::from_str(&format!(
            "{{metadata: {{name: {name}, namespace: n, {labels} uid: x}}, status: {{phase: {phase}}}, \
             spec: {{nodeName: {node}, containers: [{{name: c, resources: {{requests: {{cpu: '1'}}}}}}]}}}}"
        ))
        .unwrap();
        PodFacts::from_pod(&pod, Instant(0))
    }

    #[test]
    fn what_others_request_follows_every_change_of_their_pods() {
        let mut index = PodIndex::default();
        let cpu = |index: &PodIndex| index.others.get("a").map_or(0, |used| used.get("cpu"));
        index.put(pod("x", "a", false, "Running"));
        index.put(pod("y", "a", false, "Running"));
        assert_eq!(cpu(&index), 2000);
        index.put(pod("x", "a", false, "Succeeded"));
        assert_eq!(cpu(&index), 1000);
        index.remove(&(Arc::from("n"), "x".to_owned()));
        index.remove(&(Arc::from("n"), "y".to_owned()));
        assert_eq!(cpu(&index), 0);
    }

    #[test]
    fn an_attempt_that_has_ended_takes_room_until_its_pod_is_over() {
        let mut index = PodIndex::default();
        let cpu = |index: &PodIndex| index.others.get("a").map_or(0, |used| used.get("cpu"));
        let leaving = |is_leaving| PodFacts {
            terminal: true,
            is_leaving,
            ..pod("x", "a", true, "Running")
        };
        index.put(leaving(true));
        assert_eq!(cpu(&index), 1000);
        index.put(leaving(false));
        assert_eq!(cpu(&index), 0);
    }

    #[test]
    fn attempts_are_found_by_job_and_number_until_they_are_gone() {
        let mut index = PodIndex::default();
        index.put(pod("x", "a", true, "Running"));
        assert!(index.by_job["u"].contains_key(&(1, 0)));
        assert!(index.others.is_empty(), "an attempt is no load of others");
        index.remove(&(Arc::from("n"), "x".to_owned()));
        assert!(index.by_job.is_empty());
    }
}
