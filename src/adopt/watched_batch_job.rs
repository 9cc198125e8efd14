//! A batch/v1 Job as the operator keeps it: whole while its pods may be launched, else as a skeleton.

use std::sync::Arc;

use k8s_openapi::api::batch::v1::{Job, JobSpec, JobStatus};
use kube::api::ObjectMeta;

use crate::adopt::{AdoptJobs, SCHEDULED};
use crate::api;
use crate::api::managed_fields::{essentials, stands_for};
use crate::size;
use crate::validate::InvalidSpec;

/// The prefix of the annotations that shed reads.
const PREFIX: &str = "shed.dev/";
/// The most bytes of annotations that are kept of a suspended Job.
const ANNOTATIONS_MAX: usize = 4096;

/// A batch/v1 Job as the operator keeps it.
#[derive(Clone, Debug)]
pub enum WatchedBatchJob {
    /// Complete, because shed runs it.
    Whole(Arc<Job>),
    /// Of one that has no attempts and gets none now its conditions, and what its companion is made from.
    Skeleton(Arc<Job>, BatchRest),
    /// Of one that has ended finally the metadata alone.
    Finished(Arc<ObjectMeta>),
    /// Of another controller's the metadata alone.
    Foreign(Arc<ObjectMeta>),
}

/// Why a Job gets no attempts now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BatchRest {
    /// It is suspended.
    Suspended,
    /// Its template is too large to be carried out: the field and the fix.
    Oversized(Arc<str>),
    /// The operator's memory budget does not admit this many bytes.
    Crowded(usize),
}

impl WatchedBatchJob {
    /// The Job as it is kept: whole if its companion needs it.
    pub fn new(mode: AdoptJobs, job: Job, is_needed: bool) -> Self {
        let metadata = || Arc::new(essentials(&job.metadata));
        if !mode.takes(&job) {
            Self::Foreign(metadata())
        } else if is_needed {
            Self::Whole(Arc::new(job))
        } else if is_finished(&job) {
            Self::Finished(metadata())
        } else if is_suspended(&job) {
            Self::resting(&job, BatchRest::Suspended)
        } else if let Some(invalid) = oversized(&job) {
            Self::resting(&job, BatchRest::Oversized(invalid.to_string().into()))
        } else {
            Self::Whole(Arc::new(job))
        }
    }

    /// The Job as it is kept while it rests.
    pub fn resting(job: &Job, rest: BatchRest) -> Self {
        Self::Skeleton(Arc::new(skeleton(job)), rest)
    }

    /// The Job, if its pods may be launched.
    pub fn whole(&self) -> Option<&Arc<Job>> {
        match self {
            Self::Whole(job) => Some(job),
            _ => None,
        }
    }

    /// The Job or its skeleton, if it is shed's to run and was not seen to end.
    pub fn open(&self) -> Option<&Arc<Job>> {
        match self {
            Self::Whole(job) | Self::Skeleton(job, _) => Some(job),
            Self::Finished(_) | Self::Foreign(_) => None,
        }
    }

    /// Whether it is shed's to run.
    pub fn is_ours(&self) -> bool {
        !matches!(self, Self::Foreign(_))
    }

    fn metadata(&self) -> &ObjectMeta {
        match self {
            Self::Whole(job) | Self::Skeleton(job, _) => &job.metadata,
            Self::Finished(metadata) | Self::Foreign(metadata) => metadata,
        }
    }

    fn metadata_mut(&mut self) -> &mut ObjectMeta {
        match self {
            Self::Whole(job) | Self::Skeleton(job, _) => &mut Arc::make_mut(job).metadata,
            Self::Finished(metadata) | Self::Foreign(metadata) => Arc::make_mut(metadata),
        }
    }
}

stands_for!(WatchedBatchJob, Job);

/// Whether a Job has ended finally; its status does not change after that.
pub fn is_finished(job: &Job) -> bool {
    is_true(job, api::COMPLETE) || is_true(job, api::FAILED)
}

/// Whether a Job has a condition.
pub fn is_true(job: &Job, type_: &str) -> bool {
    let status = job.status.as_ref();
    let conditions = status.and_then(|status| status.conditions.as_ref());
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|condition| condition.type_ == type_ && condition.status == "True")
}

/// Whether the Job lacks fields that were not kept; an update would remove them.
pub fn is_skeleton(job: &Job) -> bool {
    let spec = job.spec.as_ref();
    spec.is_none_or(|spec| spec.template.spec.is_none())
}

/// Whether a Job has started and is not suspended: what it does can't wait.
pub fn has_begun(job: &Job) -> bool {
    let status = job.status.as_ref();
    status.is_some_and(|status| status.start_time.is_some())
}

/// The refusal of a template that is too large, of a Job that has not begun.
fn oversized(job: &Job) -> Option<InvalidSpec> {
    let template = &job.spec.as_ref().filter(|_| !has_begun(job))?.template;
    let whole = size::bytes(template);
    (whole > size::SPEC_MAX).then(|| {
        let (field, bytes) = size::largest(template);
        InvalidSpec::Size {
            field: format!(".template{field}"),
            bytes,
            whole,
        }
    })
}

/// Whether a Job is suspended, its status shows that nothing of it is left, and little is kept of it.
fn is_suspended(job: &Job) -> bool {
    let has_no_pods = |status: &JobStatus| {
        let uncounted = status.uncounted_terminated_pods.iter();
        let mut uncounted = uncounted.flat_map(|pods| [&pods.succeeded, &pods.failed]);
        let is_counted = uncounted.all(|uids| uids.iter().flatten().next().is_none());
        is_counted && status.active.unwrap_or(0) == 0 && status.terminating.unwrap_or(0) == 0
    };
    let bytes = shed_annotations(job).map(|(key, value)| key.len() + value.len());
    job.spec.as_ref().and_then(|spec| spec.suspend) == Some(true)
        && is_true(job, api::SUSPENDED)
        && job.status.as_ref().is_some_and(has_no_pods)
        && bytes.sum::<usize>() <= ANNOTATIONS_MAX
}

fn shed_annotations(job: &Job) -> impl Iterator<Item = (&String, &String)> {
    let all = job.metadata.annotations.iter().flatten();
    all.filter(|(key, _)| key.starts_with(PREFIX) || *key == SCHEDULED)
}

fn skeleton(job: &Job) -> Job {
    let annotations = shed_annotations(job).map(|(key, value)| (key.clone(), value.clone()));
    let spec = job.spec.as_ref().map(|spec| JobSpec {
        completions: spec.completions,
        parallelism: spec.parallelism,
        suspend: spec.suspend,
        managed_by: spec.managed_by.clone(),
        ..JobSpec::default()
    });
    let status = job.status.as_ref().map(|status| JobStatus {
        conditions: status.conditions.clone(),
        ..JobStatus::default()
    });
    Job {
        metadata: ObjectMeta {
            annotations: Some(annotations.collect()),
            ..essentials(&job.metadata)
        },
        spec,
        status,
    }
}
