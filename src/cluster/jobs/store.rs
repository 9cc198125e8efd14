//! The jobs, and the batch/v1 Jobs that companions represent.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kube::Resource;
use kube::api::ObjectMeta;
use kube::runtime::reflector::store::Writer;
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::watcher::Event;
use parking_lot::RwLock;

use super::{Departed, JobTable, Known};
use crate::adopt::{AdoptJobs, Jobs, translate};
use crate::api::{DeadlineJob, LABEL_JOB_NAME};
use crate::cluster::batch::BatchNotices;
use crate::cluster::identity::{Owner, OwnerKind};
use crate::cluster::index::unlabelled_of;
use crate::cluster::job_watch::JobFault;
use crate::cluster::pod::PodFacts;
use crate::cluster::watched_job::{JobObject, Skeleton, WatchedJob};
use crate::cluster::whole_bytes::Kind;
use crate::cluster::{Visits, version};
use crate::completion_history::CompletionHistory;
use crate::deadline_totals::DeadlineTotals;
use crate::fair_places::{FairPlaces, Place};
use crate::workflow_runs::WorkflowRuns;

/// Objects that may be large and are read whole at a time.
const WHOLE_MAX: usize = 4;

/// All jobs.
pub struct JobStore {
    /// The jobs that can be read, as far as they are kept.
    pub store: Store<WatchedJob>,
    /// Index of all jobs.
    pub(in crate::cluster) table: RwLock<JobTable>,
    /// The batch/v1 Jobs, if any of them are shed's to run.
    pub(in crate::cluster) batch: Option<Jobs>,
    /// Raised by every notice of the watch of batch/v1 Jobs.
    batch_version: AtomicU64,
    pub(in crate::cluster) batch_notices: BatchNotices,
    /// Places for objects that may be large and are read whole.
    whole: Arc<FairPlaces<Arc<str>>>,
    pub(in crate::cluster) visits: Visits,
}

impl JobStore {
    pub(in crate::cluster) fn new(store: Store<WatchedJob>, batch: Option<Jobs>) -> Self {
        Self {
            store,
            table: RwLock::default(),
            batch,
            batch_version: AtomicU64::new(0),
            batch_notices: BatchNotices::default(),
            whole: FairPlaces::new(WHOLE_MAX),
            visits: Visits::default(),
        }
    }

    /// The jobs that may have something to do, by uid. Jobs that have ended, rest, or belong to
    /// another controller are not among them.
    pub fn live(&self) -> Vec<Arc<DeadlineJob>> {
        let table = self.table.read();
        self.visits.add(table.live.len());
        table.live.values().cloned().collect()
    }

    /// The job of that uid, if it may have something to do.
    pub fn live_job(&self, uid: &str) -> Option<Arc<DeadlineJob>> {
        self.visits.add(1);
        self.table.read().live.get(uid).cloned()
    }

    /// Whether the memory budget admits a job of this many bytes. It is charged from then on.
    pub fn reserve(&self, kind: Kind, job: &ObjectMeta, bytes: usize) -> bool {
        self.table.read().bytes.keep(kind, job, bytes, false)
    }

    /// Gives back the bytes of a job that could not be read.
    pub fn give_back(&self, kind: Kind, job: &ObjectMeta) {
        let uid = job.uid.as_deref().unwrap_or_default();
        self.table.read().bytes.forget(kind, uid);
    }

    /// Keeps a job whole that was just read. None if the memory budget does not admit it, or the watch has shown something newer.
    pub fn admit(&self, object: JobObject) -> Option<Arc<DeadlineJob>> {
        let mut table = self.table.write();
        let uid = object.meta().uid.clone().unwrap_or_default();
        let known = version(table.by_uid.get(uid.as_str())?.metadata());
        if version(object.meta()) < known {
            return None;
        }
        let object = table.within_bounds(object);
        table.put(object)?.live().cloned()
    }

    /// Counts the end of a job by the answer to shed's own write, or by a live read after one without an answer.
    pub fn count_written(&self, job: &Arc<DeadlineJob>) {
        let job = WatchedJob::Live(Arc::clone(job), 0);
        self.table.read().count_written(job);
    }

    /// The job whose attempts the object controls, if it may have something to do.
    pub fn live_job_of(&self, owner: &Owner) -> Option<Arc<DeadlineJob>> {
        let table = self.table.read();
        self.visits.add(1);
        let uid = table.by_owner.get(owner)?;
        table.live.get(uid).cloned()
    }

    /// Deadlines met, missed and failed, as far as the watch of jobs has shown them.
    pub fn totals(&self) -> Arc<DeadlineTotals> {
        Arc::clone(&self.table.read().totals)
    }

    /// How long the last completed jobs of each class took, as far as the watch of jobs and the stored state have
    /// shown them.
    pub fn completions(&self) -> Arc<CompletionHistory> {
        Arc::clone(&self.table.read().completions)
    }

    /// The runs of workflows, as far as the watches of jobs and the stored state have shown them.
    pub fn workflows(&self) -> Arc<WorkflowRuns> {
        Arc::clone(&self.table.read().workflows)
    }

    /// Raised whenever a live job is added, removed or changed.
    pub fn live_version(&self) -> u64 {
        self.table.read().live_version
    }

    /// Raised whenever a job is added or removed, or its deletion begins.
    pub fn staying_version(&self) -> u64 {
        self.table.read().staying_version
    }

    /// The stored form of the job with that uid, if it could be decoded.
    pub fn get(&self, uid: &str) -> Option<WatchedJob> {
        self.visits.add(1);
        match self.table.read().by_uid.get(uid)? {
            Known::Watched(job) => Some(job.clone()),
            Known::Undecodable(_) => None,
        }
    }

    /// Whether the owner of attempts is a job that exists and is not being deleted, decodable or
    /// not.
    pub fn stays(&self, owner: &Owner) -> bool {
        self.visits.add(1);
        let table = self.table.read();
        let uid = table.by_owner.get(owner);
        uid.and_then(|uid| table.by_uid.get(uid))
            .is_some_and(|known| self.is_staying(known))
    }

    /// Whether the watch shows the job with the ledger of an owner's attempts, decodable or not.
    pub fn knows(&self, owner: &Owner) -> bool {
        self.table.read().by_owner.contains_key(owner)
    }

    /// Metadata of the job of that uid, if it is there to stay.
    pub fn staying(&self, uid: &str) -> Option<ObjectMeta> {
        self.visits.add(1);
        let table = self.table.read();
        let known = table.by_uid.get(uid);
        let known = known.filter(|known| self.is_staying(known))?;
        Some(known.metadata().clone())
    }

    /// Whether a job of that namespace and name is there to stay.
    pub fn stays_by_name(&self, departed: &Departed) -> bool {
        self.visits.add(1);
        let table = self.table.read();
        let key = (departed.namespace.clone(), departed.name.clone());
        let uid = table.by_name.get(&key);
        uid.and_then(|uid| table.by_uid.get(uid))
            .is_some_and(|known| self.is_staying(known))
    }

    fn is_staying(&self, known: &Known) -> bool {
        let lacks_batch_job = match known {
            Known::Watched(job) => self.lacks_batch_job(job),
            Known::Undecodable(_) => false,
        };
        !known.is_leaving() && !lacks_batch_job
    }

    /// The jobs that were removed, or whose deletion began, since the last call.
    pub fn take_departed(&self) -> Vec<Departed> {
        std::mem::take(&mut self.table.write().departed)
    }

    /// The stored form of the jobs that have nothing to do for now.
    pub fn skeletons(&self) -> Vec<Arc<Skeleton>> {
        let table = self.table.read();
        let watched = table.by_uid.values().filter_map(|known| match known {
            Known::Watched(job) => job.skeleton(),
            Known::Undecodable(_) => None,
        });
        watched.cloned().collect()
    }

    /// Bytes of the job's metadata that its copy here lacks.
    pub fn skipped_bytes(&self, job: &DeadlineJob) -> usize {
        // The answer to a write has them.
        if job.metadata.managed_fields.is_some() {
            return 0;
        }
        let uid = job.metadata.uid.as_deref().unwrap_or_default();
        match self.table.read().by_uid.get(uid) {
            Some(Known::Watched(WatchedJob::Live(_, skipped))) => *skipped,
            _ => 0,
        }
    }

    /// The batch/v1 Jobs, if any of them are shed's to run.
    pub fn batch(&self) -> Option<&Jobs> {
        self.batch.as_ref()
    }

    /// Whether a job is the companion of a batch/v1 Job that is deleted or being deleted.
    fn lacks_batch_job(&self, job: &WatchedJob) -> bool {
        let batch = self.batch().filter(|_| job.is_companion());
        batch.is_some_and(|jobs| jobs.present(job.meta()).is_none())
    }

    /// Raised by every notice of the watch of batch/v1 Jobs.
    pub fn batch_version(&self) -> u64 {
        self.batch_version.load(Ordering::Acquire)
    }

    pub(in crate::cluster) fn note_batch_change(&self) {
        self.batch_version.fetch_add(1, Ordering::Release);
    }

    /// A place for an object of the namespace that may be large and is read whole, if one is left for it.
    pub fn whole_place(&self, namespace: &Arc<str>) -> Option<Place<Arc<str>>> {
        self.whole.try_acquire(namespace)
    }

    /// Whether the batch/v1 Job that controls pods is shed's to run; unknown where no such Job is there, or
    /// Jobs are not watched.
    pub fn runs(&self, owner: &Owner) -> Option<bool> {
        let jobs = self.batch()?;
        let reference = ObjectRef::new(&owner.name).within(&owner.namespace);
        let job = jobs.store.get(&reference)?;
        let is_it = job.meta().uid.as_deref() == Some(&*owner.uid);
        is_it.then(|| job.is_ours())
    }

    /// Whether no other controller runs batch/v1 Jobs.
    pub fn runs_all_jobs(&self) -> bool {
        let jobs = self.batch();
        jobs.is_some_and(|jobs| jobs.mode == AdoptJobs::All)
    }

    /// The job that something happened to with this pod.
    pub(in crate::cluster) fn job_of(&self, pod: &PodFacts) -> Option<ObjectRef<DeadlineJob>> {
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
        self.visits.add(1);
        let reference = ObjectRef::new(&name).within(&owner.namespace);
        let job = self.store.get(&WatchedJob::reference(&reference))?;
        (Owner::of(job.meta()) == owner).then_some(reference)
    }

    /// The batch/v1 Job that may take in a pod which nothing controls.
    fn may_take_in(&self, pod: &PodFacts) -> Option<Owner> {
        let belongs = pod.belongs.as_ref().filter(|_| !pod.identity.controlled)?;
        let name = belongs.labels.get(LABEL_JOB_NAME)?;
        let reference = ObjectRef::new(name).within(&pod.namespace);
        let job = self.batch()?.store.get(&reference)?;
        Some(Owner {
            kind: OwnerKind::Job,
            namespace: Arc::clone(&pod.namespace),
            name: name.as_str().into(),
            uid: job.meta().uid.as_deref()?.into(),
        })
    }

    /// Takes a job out of the store of the queue, where it is gone or can't be read.
    pub(in crate::cluster) fn drop_job(
        &self,
        writer: &mut Writer<WatchedJob>,
        reference: &ObjectRef<WatchedJob>,
    ) -> Vec<WatchedJob> {
        let known = self.store.get(reference);
        if let Some(known) = &known {
            writer.apply_watcher_event(&Event::Delete((**known).clone()));
        }
        known.iter().map(|job| (**job).clone()).collect()
    }

    /// The undecodable fields, in the order of namespaces and names.
    pub fn faults(&self) -> Vec<JobFault> {
        let table = self.table.read();
        self.visits.add(table.faults.len());
        table.faults.values().cloned().collect()
    }

    /// Raised whenever the set of undecodable fields changed.
    pub fn gaps_version(&self) -> u64 {
        self.table.read().gaps_version
    }
}

#[cfg(test)]
impl JobStore {
    /// Uids of the jobs that are there to stay.
    pub fn staying_uids(&self) -> Vec<String> {
        let table = self.table.read();
        let staying = table.by_uid.iter();
        let staying = staying.filter(|(_, known)| self.is_staying(known));
        staying.map(|(uid, _)| uid.to_string()).collect()
    }
}
