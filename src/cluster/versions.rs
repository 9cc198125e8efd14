//! The newest changes that were seen, resource by resource. Versions of two resources are comparable
//! only if both are in one etcd, and an apiserver may keep pods in an etcd of their own
//! (`--etcd-servers-overrides`).

use parking_lot::{Mutex, MutexGuard};

use kube::api::ObjectMeta;

use crate::api::LABEL_JOB_UID;

/// Resources whose versions are compared, each only with itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Versioned {
    /// Pods.
    Pods,
    /// DeadlineJobs.
    DeadlineJobs,
    /// batch/v1 Jobs.
    Jobs,
}

/// The newest changes of a resource that any watch or own write has shown.
#[derive(Debug, Clone, Default)]
pub struct Newest {
    /// The highest resourceVersion.
    pub version: u64,
    /// The DeadlineJob or attempt that changed last and was not deleted since.
    pub changed: Option<Seen>,
    /// The DeadlineJob or attempt that was deleted last.
    pub deleted: Option<Seen>,
}

/// An object as it was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// Its resourceVersion.
    pub version: u64,
}

impl Newest {
    fn note(&mut self, of: Versioned, metadata: &ObjectMeta, is_deleted: bool) {
        let Some(version) = version(metadata) else {
            return;
        };
        self.version = self.version.max(version);
        let labels = metadata.labels.as_ref();
        let is_attempt = || labels.is_some_and(|labels| labels.contains_key(LABEL_JOB_UID));
        if of != Versioned::DeadlineJobs && !is_attempt() {
            return;
        }
        let kept = match is_deleted {
            true => &mut self.deleted,
            false => &mut self.changed,
        };
        if kept.as_ref().is_none_or(|seen| seen.version <= version) {
            *kept = Some(Seen::new(metadata, version));
        }
        let is_it = |seen: &mut Seen| Some(&seen.uid) == metadata.uid.as_ref();
        if is_deleted {
            self.changed.take_if(is_it);
        }
    }
}

impl Seen {
    fn new(metadata: &ObjectMeta, version: u64) -> Self {
        let text = |field: &Option<String>| field.clone().unwrap_or_default();
        Self {
            namespace: text(&metadata.namespace),
            name: text(&metadata.name),
            uid: text(&metadata.uid),
            version,
        }
    }
}

/// The newest changes of all resources.
#[derive(Debug, Default)]
pub(super) struct NewestVersions {
    pods: Mutex<Newest>,
    deadline_jobs: Mutex<Newest>,
    jobs: Mutex<Newest>,
}

impl NewestVersions {
    // A panic while the lock was held leaves whole values.
    pub(super) fn of(&self, resource: Versioned) -> MutexGuard<'_, Newest> {
        let newest = match resource {
            Versioned::Pods => &self.pods,
            Versioned::DeadlineJobs => &self.deadline_jobs,
            Versioned::Jobs => &self.jobs,
        };
        newest.lock()
    }

    pub(super) fn note(&self, of: Versioned, metadata: &ObjectMeta, is_deleted: bool) {
        self.of(of).note(of, metadata, is_deleted);
    }
}

/// An object's resourceVersion, if it is a number. It is one wherever etcd is the store.
pub fn version(metadata: &ObjectMeta) -> Option<u64> {
    metadata.resource_version.as_deref()?.parse().ok()
}
