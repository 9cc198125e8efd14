//! A job is validated once per generation. Planner and reconciler look at every job in every pass, and a
//! validation encodes the specification, reads its texts and copies its template.

use std::sync::Arc;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use shed_core::time::Instant;

use crate::adopt::{self, Jobs, annotations, kueue, translate};
use crate::api::{self, DeadlineJob, Ledger, WORKFLOW_ANNOTATIONS, reason};
use crate::context::JobMemories;
use crate::validate::template_extras::TemplateExtras;
use crate::validate::{
    InvalidSpec, SpecFault, ValidatedJob, by_ledger, recorded_deadline, validate,
};

/// Why a job can't be worked on.
#[derive(Debug)]
pub enum Unfit {
    /// Its specification can't be carried out.
    Invalid(InvalidSpec),
    /// It is a companion whose Job does not exist, is not shed's, or is being deleted.
    Absent,
}

/// The result of a job's last validation.
#[derive(Debug, Clone)]
pub struct Validation {
    of: Version,
    result: Result<Arc<ValidatedJob>, InvalidSpec>,
}

/// Input versions of a validation. Equal versions give an equal result.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Version {
    /// Of the specification.
    generation: i64,
    /// Deadlines count from it.
    created: Option<Time>,
    /// One of two labels that matter.
    class: Option<String>,
    /// By the other one, a backup restored it without a ledger.
    lacks_ledger: bool,
    /// The annotations of its workflow, which are no part of its specification.
    workflow: Vec<(String, String)>,
    /// The batch/v1 Job that it represents.
    job: Option<JobVersion>,
}

/// Version of a batch/v1 Job's fields that validation reads.
#[derive(Debug, Clone, PartialEq, Eq)]
struct JobVersion {
    uid: String,
    generation: i64,
    created: Option<Time>,
    /// Deadlines count from it.
    counts_from: Option<Instant>,
    /// Its requests to shed, and its class.
    requests: Vec<(String, String)>,
    /// A label decides, also of a Job that runs.
    is_queued: bool,
}

impl Version {
    /// Nothing, if the apiserver did not count: there is no telling then.
    fn of(job: &DeadlineJob, owner: Option<&Job>) -> Option<Self> {
        let labels = job.metadata.labels.as_ref();
        let class = labels.and_then(|labels| labels.get(api::LABEL_CLASS));
        let owner = match owner {
            Some(owner) => Some(JobVersion::of(owner)?),
            None => None,
        };
        let annotations = job.metadata.annotations.iter().flatten();
        let workflow = annotations.filter(|(key, _)| WORKFLOW_ANNOTATIONS.contains(&&***key));
        Some(Self {
            generation: job.metadata.generation?,
            created: job.metadata.creation_timestamp.clone(),
            class: class.cloned(),
            lacks_ledger: lacks_ledger(job),
            workflow: workflow
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect(),
            job: owner,
        })
    }
}

impl JobVersion {
    fn of(job: &Job) -> Option<Self> {
        let metadata = &job.metadata;
        Some(Self {
            uid: metadata.uid.clone()?,
            generation: metadata.generation?,
            created: metadata.creation_timestamp.clone(),
            counts_from: adopt::counts_from(metadata),
            requests: annotations::requests(metadata),
            is_queued: kueue::is_queued(job),
        })
    }
}

/// Validates a job, or the Job of a companion. The job's memory keeps the result until the job has
/// finished, because the result holds the template.
pub fn read(
    job_memories: &JobMemories,
    job: &DeadlineJob,
    jobs: Option<&Jobs>,
) -> Result<Arc<ValidatedJob>, Unfit> {
    let owner = match job.spec.is_companion() {
        true => Some(owner(job, jobs)?),
        false => None,
    };
    let uid: Arc<str> = job.metadata.uid.as_deref().unwrap_or_default().into();
    let version = Version::of(job, owner.as_deref());
    let kept = job_memories.with(&uid, |memory| memory.validated.clone());
    let result = match kept {
        Some(kept) if version.as_ref() == Some(&kept.of) => kept.result,
        kept => {
            let last = kept.and_then(|kept| kept.result.ok());
            judge(job, owner.as_deref(), last.as_deref()).map(Arc::new)
        }
    };
    let result = result.map(|validated| with_template_extras(validated, jobs));
    let kept = version.filter(|_| !has_finished(job)).map(|of| {
        let result = result.clone();
        Validation { of, result }
    });
    job_memories.with(&uid, |memory| memory.validated = kept);
    result.map_err(Unfit::Invalid)
}

/// Validates a job. One that has begun goes on if its specification is invalid by now.
fn judge(
    job: &DeadlineJob,
    owner: Option<&Job>,
    last: Option<&ValidatedJob>,
) -> Result<ValidatedJob, InvalidSpec> {
    let read = match owner {
        Some(owner) => translate::validated(job, owner),
        None => validate(job),
    };
    let validated = match read {
        Err(invalid) if has_begun(job) => go_on(job, owner, last, &invalid)?,
        read => read?,
    };
    let refused = owner.and_then(|owner| translate::refused_edit(job, owner));
    let refused = refused.map(|bad| SpecFault {
        reason: reason::INVALID_ANNOTATION,
        message: bad.to_string(),
    });
    let mut rules = validated.rules;
    let lacks_ledger = lacks_ledger(job);
    rules.suspend |= lacks_ledger;
    Ok(ValidatedJob {
        fault: validated.fault.or(refused),
        rules,
        lacks_ledger,
        ..validated
    })
}

/// Whether a backup restored the job without the record of what it has done. Velero restores a status right after the
/// object, and only if it is asked to. A companion is made again.
fn lacks_ledger(job: &DeadlineJob) -> bool {
    let labels = job.metadata.labels.as_ref();
    let is_restored = labels.is_some_and(|labels| labels.contains_key(api::LABEL_RESTORED));
    is_restored && !job.spec.is_companion() && !has_begun(job)
}

/// The last valid specification, or what the ledger needs. A suspension applies in any case, because it only stops.
fn go_on(
    job: &DeadlineJob,
    owner: Option<&Job>,
    last: Option<&ValidatedJob>,
    invalid: &InvalidSpec,
) -> Result<ValidatedJob, InvalidSpec> {
    let last = last.filter(|last| !last.launches_nothing()).cloned();
    let (reason, mut kept) = match (last, owner) {
        (Some(last), _) => (reason::INVALID_SPEC, last),
        (None, Some(owner)) => (
            reason::VALID_SPEC_UNKNOWN,
            translate::by_ledger(job, owner)?,
        ),
        (None, None) => (
            reason::VALID_SPEC_UNKNOWN,
            by_ledger(job, recorded_deadline(job))?,
        ),
    };
    kept.generation = job.metadata.generation.unwrap_or(0);
    kept.rules.suspend = match owner {
        Some(owner) => translate::is_suspended(owner),
        None => job.spec.suspend,
    };
    kept.fault = Some(SpecFault {
        reason,
        message: invalid.to_string(),
    });
    Ok(kept)
}

/// The controller of a Job may change without a change of either object's specification.
fn owner(companion: &DeadlineJob, jobs: Option<&Jobs>) -> Result<Arc<Job>, Unfit> {
    let owner = jobs.and_then(|jobs| jobs.of(companion));
    owner.ok_or(Unfit::Absent)
}

fn has_finished(job: &DeadlineJob) -> bool {
    job.ledger().is_some_and(|ledger| ledger.finished)
}

/// Whether anything of the job was ever recorded.
pub fn has_begun(job: &DeadlineJob) -> bool {
    job.ledger().is_some_and(Ledger::has_begun)
}

/// The Job's cache entry already holds the fields that its pods get unchanged.
fn with_template_extras(validated: Arc<ValidatedJob>, jobs: Option<&Jobs>) -> Arc<ValidatedJob> {
    let (Some(adopted), Some(jobs)) = (&validated.adopted, jobs) else {
        return validated;
    };
    let template_extras = jobs.template_extras.of(&adopted.uid);
    if is_as_before(&adopted.template_extras, &template_extras) {
        return validated;
    }
    let adopted = crate::validate::Adopted {
        template_extras,
        ..crate::validate::Adopted::clone(adopted)
    };
    Arc::new(ValidatedJob {
        adopted: Some(Arc::new(adopted)),
        ..ValidatedJob::clone(&validated)
    })
}

fn is_as_before(before: &Arc<TemplateExtras>, now: &Arc<TemplateExtras>) -> bool {
    Arc::ptr_eq(before, now) || (before.is_empty() && now.is_empty())
}

#[cfg(test)]
mod tests;
