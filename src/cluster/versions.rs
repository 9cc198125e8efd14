//! The newest version that was seen, resource by resource. Versions of two resources are comparable
//! only if both are in one etcd, and an apiserver may keep pods in an etcd of their own
//! (`--etcd-servers-overrides`).

use std::sync::atomic::AtomicU64;

use kube::api::ObjectMeta;

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

/// The highest resourceVersions that any watch or own write has shown.
#[derive(Debug, Default)]
pub(super) struct NewestVersions {
    pods: AtomicU64,
    deadline_jobs: AtomicU64,
    jobs: AtomicU64,
}

impl NewestVersions {
    pub(super) fn of(&self, resource: Versioned) -> &AtomicU64 {
        match resource {
            Versioned::Pods => &self.pods,
            Versioned::DeadlineJobs => &self.deadline_jobs,
            Versioned::Jobs => &self.jobs,
        }
    }
}

/// An object's resourceVersion, if it is a number. It is one wherever etcd is the store.
#[must_use]
pub fn version(metadata: &ObjectMeta) -> Option<u64> {
    metadata.resource_version.as_deref()?.parse().ok()
}
