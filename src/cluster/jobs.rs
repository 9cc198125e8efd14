//! Index of jobs, so that no lookup visits all of them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use kube::Resource;
use kube::api::ObjectMeta;
use shed_core::workflow::JobState;

use crate::api::DeadlineJob;
use crate::cluster::identity::Owner;
use crate::cluster::job_watch::JobFault;
use crate::cluster::version;
use crate::cluster::watched_job::{JobObject, WatchedJob, has_begun, whole_bytes};
use crate::cluster::whole_bytes::{Kind, WholeBytes};
use crate::completion_history::CompletionHistory;
use crate::deadline_totals::{DeadlineTotals, JobWithDeadline};
use crate::workflow_runs::{StageOfRun, WorkflowRuns};

mod store;

pub use store::JobStore;

/// Namespace and name of a job.
pub(super) type Key = (String, String);

/// A job that is there.
#[derive(Clone, Debug)]
enum Known {
    Watched(WatchedJob),
    Undecodable(Arc<ObjectMeta>),
}

/// A job that is gone or on its way out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Departed {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// Index of jobs.
#[derive(Debug, Default)]
pub(in crate::cluster) struct JobTable {
    by_uid: HashMap<Arc<str>, Known>,
    by_name: HashMap<Key, Arc<str>>,
    by_owner: HashMap<Owner, Arc<str>>,
    live: BTreeMap<Arc<str>, Arc<DeadlineJob>>,
    /// Raised when a live job is added, removed or changed.
    live_version: u64,
    /// Raised when a job is added or removed, or its deletion begins.
    staying_version: u64,
    /// Jobs removed since the last call.
    departed: Vec<Departed>,
    /// Jobs that are not understood, or not wholly.
    pub(super) faults: BTreeMap<Key, JobFault>,
    /// Raised when `undecodable` changed.
    pub(super) gaps_version: u64,
    /// The list that is coming in.
    pub(super) incoming: Vec<JobObject>,
    /// The bytes of whole jobs of all kinds.
    pub(super) bytes: Arc<WholeBytes>,
    totals: Arc<DeadlineTotals>,
    completions: Arc<CompletionHistory>,
    workflows: Arc<WorkflowRuns>,
}

pub(super) fn key(metadata: &ObjectMeta) -> Key {
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    (text(&metadata.namespace), text(&metadata.name))
}

impl Known {
    fn metadata(&self) -> &ObjectMeta {
        match self {
            Self::Watched(job) => job.meta(),
            Self::Undecodable(metadata) => metadata,
        }
    }

    fn is_leaving(&self) -> bool {
        self.metadata().deletion_timestamp.is_some()
    }

    fn live(&self) -> Option<&Arc<DeadlineJob>> {
        match self {
            Self::Watched(job) => job.live(),
            Self::Undecodable(_) => None,
        }
    }

    fn with_deadline(&self) -> Option<JobWithDeadline<'_>> {
        match self {
            Self::Watched(job) => job.with_deadline(),
            Self::Undecodable(_) => None,
        }
    }

    fn is_watched(&self) -> bool {
        matches!(self, Self::Watched(_))
    }
}

impl JobTable {
    /// The object as it is kept: a job that has not begun is kept whole only if the memory budget admits it.
    pub(super) fn within_bounds(&self, object: JobObject) -> JobObject {
        let JobObject::Read {
            job,
            unknown_fields,
        } = object
        else {
            return object;
        };
        let is_kept = job.live().is_none_or(|live| {
            let (bytes, has_begun) = (whole_bytes(live), has_begun(live));
            let is_exempt = has_begun || job.is_companion();
            let kind = Kind::Deadline;
            self.bytes.keep(kind, &live.metadata, bytes, is_exempt)
        });
        if let Some(skeleton) = job.skeleton() {
            let uid = skeleton.metadata.uid.as_deref().unwrap_or_default();
            self.bytes.forget(Kind::Deadline, uid);
        }
        let job = match job.live().filter(|_| !is_kept) {
            Some(live) => WatchedJob::crowded(live),
            None => job,
        };
        JobObject::Read {
            job,
            unknown_fields,
        }
    }

    /// Stores a job in its current form. Returns the stored form, unless the job is undecodable.
    pub(super) fn put(&mut self, object: JobObject) -> Option<WatchedJob> {
        let key = key(object.meta());
        let (known, fault) = match object {
            JobObject::Read {
                job,
                unknown_fields,
            } => {
                let fault = (!unknown_fields.is_empty())
                    .then(|| JobFault::unknown_fields(&job, unknown_fields));
                (Known::Watched(job), fault)
            }
            JobObject::Undecodable { metadata, problem } => {
                let fault = JobFault::undecodable((*metadata).clone(), problem);
                (Known::Undecodable(Arc::from(metadata)), Some(fault))
            }
        };
        self.note_fault(&key, fault);
        let before = self.take(&key);
        self.compare(before.as_ref(), Some(&known));
        let uid: Arc<str> = known.metadata().uid.as_deref().unwrap_or_default().into();
        self.count(&uid, &known);
        self.by_owner
            .insert(Owner::of(known.metadata()), Arc::clone(&uid));
        if let Some(job) = known.live() {
            self.live.insert(Arc::clone(&uid), Arc::clone(job));
        }
        let kept = match &known {
            Known::Watched(job) => Some(job.clone()),
            Known::Undecodable(_) => None,
        };
        self.by_name.insert(key, Arc::clone(&uid));
        self.by_uid.insert(uid, known);
        kept
    }

    /// Counts the end of a job that the watch still shows otherwise. Without this a job would count for nothing that ends
    /// and goes while the watch is interrupted.
    pub(super) fn count_written(&self, job: WatchedJob) {
        let uid: Arc<str> = job.meta().uid.as_deref().unwrap_or_default().into();
        if self.is_there(&uid) {
            self.count(&uid, &Known::Watched(job));
        }
    }

    fn count(&self, uid: &Arc<str>, known: &Known) {
        self.totals
            .lock()
            .see(uid, known.is_leaving(), known.with_deadline());
        if let Known::Watched(job) = known
            && let Some((class, completion)) = job.completion()
        {
            self.completions.see(uid, &class, completion);
        }
        if let Known::Watched(job) = known
            && let Some((workflow, state)) = job.stage()
            && let Some(stage) = StageOfRun::of(job.meta(), &workflow)
        {
            self.workflows.see(&stage, state);
        }
    }

    /// A job that was shown is gone. One that has ended stays in its run.
    fn leave_run(&self, known: &Known) {
        if let Known::Watched(job) = known
            && let Some((workflow, JobState::Open)) = job.stage()
            && let Some(stage) = StageOfRun::of(job.meta(), &workflow)
        {
            self.workflows.see(&stage, JobState::Gone);
        }
    }

    /// The job is gone.
    pub(super) fn remove(&mut self, key: &Key) {
        self.note_fault(key, None);
        let before = self.take(key);
        self.compare(before.as_ref(), None);
    }

    /// Replaces all jobs by those of the new list.
    pub(super) fn replace_all(&mut self) {
        let mut incoming = std::mem::take(&mut self.incoming);
        let listed: HashSet<Key> = incoming.iter().map(|job| key(job.meta())).collect();
        let gone: Vec<Key> = self.by_name.keys().cloned().collect();
        for key in gone.iter().filter(|key| !listed.contains(*key)) {
            self.remove(key);
        }
        // A job that was created after the end of a run of its name belongs to the next one.
        incoming.sort_by(|a, b| {
            a.meta()
                .creation_timestamp
                .cmp(&b.meta().creation_timestamp)
        });
        for object in incoming {
            self.put(object);
        }
        self.totals.lock().listed();
        // The first list may be empty, and its waiters must still check.
        self.staying_version += 1;
    }

    fn take(&mut self, key: &Key) -> Option<Known> {
        let uid = self.by_name.remove(key)?;
        let known = self.by_uid.remove(&uid)?;
        self.live.remove(&uid);
        let owner = Owner::of(known.metadata());
        if self.by_owner.get(&owner) == Some(&uid) {
            self.by_owner.remove(&owner);
        }
        Some(known)
    }

    fn note_fault(&mut self, key: &Key, fault: Option<JobFault>) {
        if self.faults.get(key) == fault.as_ref() {
            return;
        }
        self.gaps_version += 1;
        match fault {
            Some(fault) => self.faults.insert(key.clone(), fault),
            None => self.faults.remove(key),
        };
    }

    /// Raises the versions for a change of one job.
    fn compare(&mut self, before: Option<&Known>, after: Option<&Known>) {
        let identity = |known: &Known| {
            let metadata = known.metadata();
            let leaving = known.is_leaving();
            (metadata.uid.clone(), leaving, known.is_watched())
        };
        if before.map(identity) != after.map(identity) {
            self.staying_version += 1;
        }
        let live = |known: Option<&Known>| {
            let job = known.and_then(Known::live)?;
            Some((
                job.metadata.uid.clone(),
                job.metadata.resource_version.clone(),
            ))
        };
        if live(before) != live(after) {
            self.live_version += 1;
        }
        let staying = |known: &&Known| !known.is_leaving();
        let uid = |known: &Known| known.metadata().uid.clone();
        if let Some(gone) = before
            .and_then(uid)
            .filter(|gone| after.and_then(uid).as_ref() != Some(gone))
        {
            before.into_iter().for_each(|known| self.leave_run(known));
            self.totals.lock().gone(&gone);
            self.bytes.forget(Kind::Deadline, &gone);
        }
        let before = before.filter(staying);
        let after = after.filter(staying);
        if let Some(left) = before.filter(|left| after.map(uid) != Some(uid(left))) {
            let (namespace, name) = key(left.metadata());
            self.departed.push(Departed { namespace, name });
        }
    }

    /// Whether the job of that uid is there, decodable or not.
    pub(super) fn is_there(&self, uid: &str) -> bool {
        self.by_uid.contains_key(uid)
    }

    /// The version in which the job of that uid was seen last.
    pub(super) fn version(&self, uid: &str) -> Option<u64> {
        version(self.by_uid.get(uid)?.metadata())
    }
}

#[cfg(test)]
mod tests;
