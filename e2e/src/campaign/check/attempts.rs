//! I2: attempts that take capacity, and whether each of them is in its job's ledger. Both are kept up with each state,
//! so that a long history with many pods is checked in time.

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use shed::api;

use super::{Replay, holds, id};
use crate::jobs::node_of;

impl Replay {
    /// Attempts that take capacity.
    pub fn live(&self) -> usize {
        self.live.len()
    }

    /// Takes note of whether a pod takes capacity, as one does that is ending but not gone.
    pub(super) fn holding(&mut self, pod: &Pod) {
        let uid = pod.uid().unwrap_or_default();
        let Some(attempt) = id(pod) else {
            self.live.remove(&uid);
            return;
        };
        self.pods_of
            .entry(attempt.0.clone())
            .or_default()
            .insert(uid.clone());
        if holds(pod) && !self.can_not_be_placed(pod) {
            self.live.insert(uid);
        } else {
            self.live.remove(&uid);
        }
        self.held(&attempt.0);
    }

    /// Every pod of a job that runs is in the job's ledger.
    pub(super) fn held(&mut self, job: &str) {
        let pods = self.pods_of.get(job).into_iter().flatten();
        let unknown = pods.filter_map(|uid| self.pods.get(uid)).find(|pod| {
            let Some(attempt) = id(pod).filter(|_| holds(pod)) else {
                return false;
            };
            !self.fails_by_deletion(&attempt.0, pod)
                && self.ledger_of(&attempt.0).is_some()
                && self.entry(&attempt).is_none()
        });
        if let Some(name) = unknown.map(ResourceExt::name_any) {
            self.demand(false, || format!("I2: {name} runs and no ledger says so"));
        }
    }

    pub(super) fn pod_gone(&mut self, pod: &Pod) {
        let uid = pod.uid().unwrap_or_default();
        self.pods.remove(&uid);
        self.live.remove(&uid);
        if let Some((job, ..)) = id(pod)
            && let Some(pods) = self.pods_of.get_mut(&job)
        {
            pods.remove(&uid);
        }
    }

    fn can_not_be_placed(&self, pod: &Pod) -> bool {
        let job = pod.labels().get(api::LABEL_JOB_NAME);
        node_of(pod).is_none() && job.is_some_and(|job| self.known.troubled.contains(job))
    }
}
