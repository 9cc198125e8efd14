//! Assigns pods to the job that they are attempts of, and other pods to their owners.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use parking_lot::RwLock;
use shed_core::resources::Resources;
use shed_core::time::Instant;

use crate::cluster::Visits;
use crate::cluster::identity::{self, Owner, OwnerKind};
use crate::cluster::index::{PodIndex, Tally};
use crate::cluster::pod::{AttemptId, JobPods, PodFacts};
use crate::cluster::status_only_changes::has_won;
use crate::validate::ValidatedJob;

/// The pods.
#[derive(Default)]
pub struct PodStore {
    pub(super) index: RwLock<PodIndex>,
    /// The last event of the watch.
    pub(super) heard: AtomicI64,
    pub(super) visits: Visits,
}

impl PodStore {
    /// A job's pods by attempt. For a batch/v1 Job these include the pods that it may adopt again.
    pub fn of_job(&self, job: &ValidatedJob) -> JobPods {
        let index = self.index.read();
        let own = index.by_owner.get(&job.owner());
        if job.adopted.is_none() {
            return own.cloned().unwrap_or_default();
        }
        let strangers = index
            .strangers
            .get(&(Arc::clone(&job.namespace), Arc::clone(&job.uid)));
        let own = own.into_iter().flat_map(JobPods::values);
        let strangers = strangers.into_iter().flat_map(|pods| pods.values());
        let id = |pod: &Arc<PodFacts>| Some((identity::attempt_of(job, pod)?, Arc::clone(pod)));
        own.chain(strangers).filter_map(id).collect()
    }

    /// The attempts that an object controls.
    pub fn attempts_of(&self, owner: &Owner) -> JobPods {
        self.index
            .read()
            .by_owner
            .get(owner)
            .cloned()
            .unwrap_or_default()
    }

    /// Whether an attempt must stop that runs and is not deleted yet: its job is suspended, or another attempt of its
    /// task has succeeded.
    pub fn must_stop_some(&self, owner: &Owner, is_suspended: bool) -> bool {
        let index = self.index.read();
        let is_open = index.open.get(owner).is_some_and(|tally| tally.running > 0);
        let own = index.by_owner.get(owner).filter(|_| is_open);
        let runs = |pod: &PodFacts| !pod.terminal && !pod.identity.deleting;
        let is_won = |own: &JobPods, task: u32| {
            let mut of_task = own.range((task, 0)..=(task, u32::MAX));
            of_task.any(|(_, pod)| has_won(pod))
        };
        own.is_some_and(|own| {
            let mut running = own.iter().filter(|(_, pod)| runs(pod));
            running.any(|((task, _), _)| is_suspended || is_won(own, *task))
        })
    }

    /// Those of the owners of attempts that have not ended.
    pub fn owners_of_running(&self, is_meant: impl Fn(&Owner) -> bool) -> Vec<Owner> {
        self.owners(|owner, tally| tally.running > 0 && is_meant(owner))
    }

    /// Owners of attempts that a finalizer holds.
    pub fn owners_of_tracked(&self) -> Vec<Owner> {
        self.owners(|_, tally| tally.tracked > 0)
    }

    fn owners(&self, is_meant: impl Fn(&Owner, Tally) -> bool) -> Vec<Owner> {
        let index = self.index.read();
        self.visits.add(index.open.len());
        let meant = index
            .open
            .iter()
            .filter(|(owner, tally)| is_meant(owner, **tally));
        meant.map(|(owner, _)| owner.clone()).collect()
    }

    /// The attempts of an owner that have not ended or that a finalizer holds.
    pub fn open_attempts(&self, owner: &Owner) -> Vec<Arc<PodFacts>> {
        let index = self.index.read();
        if !index.open.contains_key(owner) {
            return Vec::new();
        }
        let pods = index.by_owner.get(owner).into_iter();
        let pods = pods.flat_map(JobPods::values);
        let open = pods.filter(|pod| Tally::of(pod) != Tally::default());
        open.cloned().collect()
    }

    /// Whether a batch/v1 Job takes in or lets go pods that are no attempts.
    pub fn has_other_pods(&self, owner: &Owner, job_uid: &str) -> bool {
        let index = self.index.read();
        let strangers = (Arc::clone(&owner.namespace), Arc::from(job_uid));
        owner.kind == OwnerKind::Job
            && (index.unlabelled.contains_key(owner) || index.strangers.contains_key(&strangers))
    }

    /// Raised by every notice of the watch of pods.
    pub fn version(&self) -> u64 {
        self.index.read().version
    }

    /// Pods that a batch/v1 Job controls and that are no attempts.
    pub fn unlabelled_of(&self, owner: &Owner) -> Vec<Arc<PodFacts>> {
        let index = self.index.read();
        let pods = index.unlabelled.get(owner).into_iter();
        pods.flat_map(|pods| pods.values().cloned()).collect()
    }

    /// Pods that carry the label of a job and are no attempts.
    pub fn strangers(&self) -> Vec<Arc<PodFacts>> {
        let index = self.index.read();
        let groups = index.strangers.values();
        groups.flat_map(|pods| pods.values().cloned()).collect()
    }

    /// Pods that are no attempts and that a finalizer of shed's may hold.
    pub fn held_strangers(&self) -> Vec<Arc<PodFacts>> {
        self.index.read().held.values().cloned().collect()
    }

    /// Requests, by node, of pods that are not attempts, or that are ended attempts that still hold
    /// their slot.
    pub fn used_by_others(&self) -> BTreeMap<Arc<str>, Resources> {
        self.index.read().others.clone()
    }

    /// The last event of the pod watch.
    pub fn heard(&self) -> Instant {
        Instant(self.heard.load(Ordering::Relaxed))
    }

    /// The pods of these attempts; absent for those without a pod.
    pub fn of_attempts(&self, owner: &Owner, attempts: &[AttemptId]) -> Vec<Option<Arc<PodFacts>>> {
        let index = self.index.read();
        let own = index.by_owner.get(owner);
        let pod = |attempt| own.and_then(|own| own.get(attempt)).cloned();
        attempts.iter().map(pod).collect()
    }

    /// When the scheduler last gave a pod its node, as far as that was seen.
    pub fn last_bind(&self, scheduler: &str) -> Option<Instant> {
        self.index.read().binds.0.get(scheduler).copied()
    }
}

#[cfg(test)]
mod tests;
