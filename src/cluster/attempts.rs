//! Assigns pods to the job that they are attempts of, and other pods to their owners.

use std::sync::Arc;

use kube::Resource;
use kube::runtime::reflector::ObjectRef;

use crate::adopt::{AdoptJobs, translate};
use crate::api::{DeadlineJob, LABEL_JOB_NAME};
use crate::cluster::calm::has_won;
use crate::cluster::identity::{self, Owner, OwnerKind};
use crate::cluster::index::{Tally, unlabelled_of};
use crate::cluster::pod::{JobPods, PodFacts};
use crate::cluster::{Stores, WatchedJob};
use crate::validate::ValidatedJob;

impl Stores {
    /// A job's pods by attempt. For a batch/v1 Job these include the pods that it may adopt again.
    pub fn pods_of(&self, job: &ValidatedJob) -> JobPods {
        let index = self.pods.read();
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
        self.pods
            .read()
            .by_owner
            .get(owner)
            .cloned()
            .unwrap_or_default()
    }

    /// Whether an attempt must stop that runs and is not deleted yet: its job is suspended, or another attempt of its
    /// task has succeeded.
    pub fn must_stop_some(&self, owner: &Owner, is_suspended: bool) -> bool {
        let index = self.pods.read();
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
        let index = self.pods.read();
        self.count_visits(index.open.len());
        let meant = index
            .open
            .iter()
            .filter(|(owner, tally)| is_meant(owner, **tally));
        meant.map(|(owner, _)| owner.clone()).collect()
    }

    /// The attempts of an owner that have not ended or that a finalizer holds.
    pub fn open_attempts(&self, owner: &Owner) -> Vec<Arc<PodFacts>> {
        let index = self.pods.read();
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
        let index = self.pods.read();
        let strangers = (Arc::clone(&owner.namespace), Arc::from(job_uid));
        owner.kind == OwnerKind::Job
            && (index.unlabelled.contains_key(owner) || index.strangers.contains_key(&strangers))
    }

    /// Raised by every notice of the watch of pods.
    pub fn pods_version(&self) -> u64 {
        self.pods.read().version
    }

    /// Pods that a batch/v1 Job controls and that are no attempts.
    pub fn unlabelled_pods_of(&self, owner: &Owner) -> Vec<Arc<PodFacts>> {
        let index = self.pods.read();
        let pods = index.unlabelled.get(owner).into_iter();
        pods.flat_map(|pods| pods.values().cloned()).collect()
    }

    /// Pods that carry the label of a job and are no attempts.
    pub fn strangers(&self) -> Vec<Arc<PodFacts>> {
        let index = self.pods.read();
        let groups = index.strangers.values();
        groups.flat_map(|pods| pods.values().cloned()).collect()
    }

    /// Pods that are no attempts and that a finalizer of shed's may hold.
    pub fn held_strangers(&self) -> Vec<Arc<PodFacts>> {
        self.pods.read().held.values().cloned().collect()
    }

    /// Whether the batch/v1 Job that controls pods is shed's to run; unknown where no such Job is there, or
    /// Jobs are not watched.
    pub fn runs(&self, owner: &Owner) -> Option<bool> {
        let jobs = self.batch.as_ref()?;
        let reference = ObjectRef::new(&owner.name).within(&owner.namespace);
        let job = jobs.store.get(&reference)?;
        let is_it = job.meta().uid.as_deref() == Some(&*owner.uid);
        is_it.then(|| job.is_ours())
    }

    /// Whether no other controller runs batch/v1 Jobs.
    pub fn runs_all_jobs(&self) -> bool {
        let jobs = self.batch.as_ref();
        jobs.is_some_and(|jobs| jobs.mode == AdoptJobs::All)
    }

    /// The job that something happened to with this pod.
    pub(super) fn job_of(&self, pod: &PodFacts) -> Option<ObjectRef<DeadlineJob>> {
        let owner = match &pod.identity.owner {
            Some(owner) => Owner::clone(owner),
            None => self.may_take_in(pod)?,
        };
        let name = match owner.kind {
            OwnerKind::DeadlineJob => owner.name.to_string(),
            OwnerKind::Job => translate::companion_name_of(&owner.name, &owner.uid),
        };
        // The built-in controller's Jobs have no companion to look for.
        if unlabelled_of(pod).is_some() && self.batch.is_none() {
            return None;
        }
        self.count_visits(1);
        let reference = ObjectRef::new(&name).within(&owner.namespace);
        let job = self.jobs.get(&WatchedJob::reference(&reference))?;
        (Owner::of(job.meta()) == owner).then_some(reference)
    }

    /// The batch/v1 Job that may take in a pod which nothing controls.
    fn may_take_in(&self, pod: &PodFacts) -> Option<Owner> {
        let belongs = pod.belongs.as_ref().filter(|_| !pod.identity.controlled)?;
        let name = belongs.labels.get(LABEL_JOB_NAME)?;
        let reference = ObjectRef::new(name).within(&pod.namespace);
        let job = self.batch.as_ref()?.store.get(&reference)?;
        Some(Owner {
            kind: OwnerKind::Job,
            namespace: Arc::clone(&pod.namespace),
            name: name.as_str().into(),
            uid: job.meta().uid.as_deref()?.into(),
        })
    }
}

#[cfg(test)]
mod tests;
