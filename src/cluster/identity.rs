//! Identity of an attempt. A pod counts for a job only with the job's namespace, a controller
//! reference to the job (kind, name, uid) and the name that its task and number give. Labels decide
//! nothing, because every client that can write pods can copy, change and remove them.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use crate::adopt::translate;
use crate::api::{
    ATTEMPT_FINALIZER, GROUP, JOB_TRACKING_FINALIZER, LABEL_JOB_UID, LABEL_TASK, RESERVED,
};
use crate::cluster::pod::{AttemptId, PodFacts};
use crate::pod_names;
use crate::validate::ValidatedJob;

/// The kind of an object that controls attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OwnerKind {
    /// A `DeadlineJob`.
    DeadlineJob,
    /// A batch/v1 Job.
    Job,
}

/// The object that controls the attempts of a job: the `DeadlineJob`, or the batch/v1 Job that it
/// represents.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Owner {
    /// Its kind.
    pub kind: OwnerKind,
    /// Its namespace, which is also its pods'.
    pub namespace: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
    /// Its uid.
    pub uid: Arc<str>,
}

impl Owner {
    /// The owner of the attempts of the `DeadlineJob` with this metadata. A companion is identified
    /// by its controller and its name, so that an undecodable companion is identified too.
    pub fn of(metadata: &ObjectMeta) -> Self {
        let own_name = metadata.name.as_deref().unwrap_or_default();
        let is_companion =
            |job: &Self| translate::companion_name_of(&job.name, &job.uid) == own_name;
        let job = Self::controller_of(metadata).filter(|owner| owner.kind == OwnerKind::Job);
        job.filter(is_companion).unwrap_or_else(|| {
            let uid = metadata.uid.as_deref().unwrap_or_default();
            Self::new(OwnerKind::DeadlineJob, metadata, own_name, uid)
        })
    }

    /// The owner of the attempts of the batch/v1 Job with this metadata.
    pub fn of_batch_job(metadata: &ObjectMeta) -> Self {
        let [name, uid] = [&metadata.name, &metadata.uid].map(Option::as_deref);
        let (name, uid) = (name.unwrap_or_default(), uid.unwrap_or_default());
        Self::new(OwnerKind::Job, metadata, name, uid)
    }

    /// The job that controls an object, if a job does.
    pub fn controller_of(metadata: &ObjectMeta) -> Option<Self> {
        let owner = controller(metadata)?;
        let kind = kind(owner)?;
        Some(Self::new(kind, metadata, &owner.name, &owner.uid))
    }

    /// An owner is in the namespace of the objects it owns.
    fn new(kind: OwnerKind, owned: &ObjectMeta, name: &str, uid: &str) -> Self {
        Self {
            kind,
            namespace: owned.namespace.as_deref().unwrap_or_default().into(),
            name: name.into(),
            uid: uid.into(),
        }
    }
}

impl ValidatedJob {
    /// Owner of its attempts.
    pub fn owner(&self) -> Owner {
        let (kind, name, uid) = match &self.adopted {
            Some(job) => (OwnerKind::Job, &job.name, &job.uid),
            None => (OwnerKind::DeadlineJob, &self.name, &self.uid),
        };
        Owner {
            kind,
            namespace: Arc::clone(&self.namespace),
            name: Arc::clone(name),
            uid: Arc::clone(uid),
        }
    }
}

fn controller(metadata: &ObjectMeta) -> Option<&OwnerReference> {
    let mut owners = metadata.owner_references.iter().flatten();
    owners.find(|owner| owner.controller == Some(true))
}

fn kind(owner: &OwnerReference) -> Option<OwnerKind> {
    let group = owner.api_version.split_once('/').map(|(group, _)| group);
    match (&*owner.api_version, &*owner.kind) {
        ("batch/v1", "Job") => Some(OwnerKind::Job),
        (_, "DeadlineJob") if group == Some(GROUP) => Some(OwnerKind::DeadlineJob),
        _ => None,
    }
}

/// Ownership facts of a pod's metadata.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Identity {
    /// The job that controls it.
    pub owner: Option<Arc<Owner>>,
    /// Whether anything controls it.
    pub controlled: bool,
    /// Task and number by its name, if it is an attempt of its owner.
    pub attempt: Option<AttemptId>,
    /// Uid in its job label, even if it does not belong to that job.
    pub labelled: Option<Arc<str>>,
    /// Whether a client requested its deletion.
    pub deleting: bool,
    /// Whether shed's own finalizer is on it.
    pub tracked: bool,
    /// Whether batch/v1's finalizer is on it, which others use too.
    pub tracked_for_batch: bool,
}

impl Identity {
    /// Reads it.
    pub fn of(metadata: &ObjectMeta) -> Self {
        let has = |name: &str| metadata.finalizers.iter().flatten().any(|own| own == name);
        let owner = Owner::controller_of(metadata);
        Self {
            attempt: owner.as_ref().and_then(|owner| by_name(owner, metadata)),
            owner: owner.map(Arc::new),
            controlled: controller(metadata).is_some(),
            labelled: label(metadata, LABEL_JOB_UID).map(Arc::from),
            deleting: metadata.deletion_timestamp.is_some(),
            tracked: has(ATTEMPT_FINALIZER),
            tracked_for_batch: has(JOB_TRACKING_FINALIZER),
        }
    }
}

fn label<'a>(metadata: &'a ObjectMeta, name: &str) -> Option<&'a str> {
    metadata.labels.as_ref()?.get(name).map(String::as_str)
}

/// The attempt of its owner that a pod is by its name. Pods of the built-in controller have random
/// suffixes, so their name proves nothing without a label of shed.
fn by_name(owner: &Owner, metadata: &ObjectMeta) -> Option<AttemptId> {
    let name = metadata.name.as_deref()?;
    match owner.kind {
        OwnerKind::DeadlineJob => pod_names::of_attempt_pod(&owner.name, &owner.uid, name),
        OwnerKind::Job => {
            let mut reserved = RESERVED.iter();
            reserved.find(|key| label(metadata, key).is_some())?;
            let with = |indexed| pod_names::attempt_of(&owner.name, &owner.uid, name, indexed);
            match label(metadata, LABEL_TASK) {
                Some(_) => with(false),
                None => with(true).or_else(|| with(false)),
            }
        }
    }
}

/// The attempt of the job that a pod is, if any. A pod without a controller belongs to a batch/v1
/// Job if its labels and name match. The Job may adopt it (`job::pod_adoption`).
pub fn attempt_of(job: &ValidatedJob, pod: &PodFacts) -> Option<AttemptId> {
    let identity = &pod.identity;
    let is_named = |id: &AttemptId| pod_names::of_attempt(job, id.0, id.1) == *pod.name;
    match &identity.owner {
        Some(owner) if **owner == job.owner() => match &job.adopted {
            // Whether the Job's pods have indexes was guessed.
            Some(_) => identity.attempt.filter(is_named),
            None => identity.attempt,
        },
        None if !identity.controlled && job.adopted.is_some() => {
            let is_labelled = identity.labelled.as_ref() == Some(&job.uid);
            let attempt = pod.attempt.as_ref()?;
            let id = (attempt.task, attempt.number);
            (is_labelled && pod.namespace == job.namespace && is_named(&id)).then_some(id)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
