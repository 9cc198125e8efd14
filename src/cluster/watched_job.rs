//! A DeadlineJob as the operator keeps it: whole while it may have something to do, else as a skeleton.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use kube::api::ObjectMeta;
use kube::runtime::reflector::ObjectRef;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use shed_core::time::{Instant, Span};

use crate::api::decoding::{Read, read};
use crate::api::managed_fields::{Parts, essentials, stands_for};
use crate::api::{self, DeadlineJob, DeadlineJobSpec, DeadlineJobStatus, Ledger};
use crate::clock;
use crate::cluster::version;
use crate::completion_history::Completion;
use crate::conditions;
use crate::deadline_totals::{DeadlineOutcome, JobWithDeadline};
use crate::quarantine;
use crate::size;
use crate::validate::{self, InvalidSpec, Workflow};
use shed_core::snapshot::{Conclusion, OnMiss};
use shed_core::workflow::JobState;

/// The most bytes of a status that is kept for a refusal. What shed itself writes to a job that never ran is less.
const STATUS_KEPT_MAX: usize = 4096;

/// A DeadlineJob as the operator keeps it.
#[derive(Clone, Debug)]
pub enum WatchedJob {
    /// Whole, and the bytes of its `managedFields`, which are not kept.
    Live(Arc<DeadlineJob>, usize),
    /// Of a job that has nothing to do for now.
    Skeleton(Arc<Skeleton>),
}

/// The stored form of a job that has nothing to do for now.
#[derive(Clone, Debug)]
pub struct Skeleton {
    /// Its identity, with its owners and its class.
    pub metadata: ObjectMeta,
    /// Whether it holds the ledger of a batch/v1 Job.
    pub is_companion: bool,
    /// Its version.
    pub version: JobVersion,
    /// Why it has nothing to do.
    pub rest: Rest,
}

/// Why a job has nothing to do for now.
#[derive(Clone, Debug, PartialEq)]
pub enum Rest {
    /// Another controller runs it.
    Foreign,
    /// It has ended finally.
    Finished(Finished),
    /// It is suspended, and none of its attempts is left.
    Suspended {
        /// Its deadline, unless that has been judged.
        due: Option<Instant>,
        /// Of a companion, its settings from the annotations of its Job.
        settings: Option<CompanionSettings>,
    },
    /// Its specification is too large to be kept, or to be carried out.
    Oversized {
        /// Unless its status reports the refusal already.
        refusal: Option<Box<Refusal>>,
    },
    /// The operator's memory budget does not admit it.
    Crowded(Box<Crowded>),
}

/// The settings of a companion that is not kept whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompanionSettings {
    /// Fixed at creation, as the companion has them.
    pub completions: i32,
    /// The same.
    pub on_miss: api::OnMiss,
    digest: u64,
}

impl CompanionSettings {
    /// Those of this specification.
    pub fn of(spec: &DeadlineJobSpec) -> Self {
        let mut digest = DefaultHasher::new();
        // Every specification that was decoded can be encoded.
        serde_json::to_vec(spec)
            .unwrap_or_default()
            .hash(&mut digest);
        Self {
            completions: spec.completions,
            on_miss: spec.on_miss,
            digest: digest.finish(),
        }
    }
}

/// A job that waits because the operator's memory budget does not admit it.
#[derive(Clone, Debug, PartialEq)]
pub struct Crowded {
    /// Bytes that it would take.
    pub bytes: usize,
    /// Bytes of its specification.
    pub spec_bytes: usize,
    /// Whether its status reports why it waits.
    pub is_reported: bool,
    /// Its status until then. Absent if it is large: the job must be read for it.
    pub status: Option<DeadlineJobStatus>,
}

/// The refusal of a specification that is too large, until the job's status reports it.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// The field and the fix.
    pub message: String,
    /// Bytes of the specification.
    pub spec_bytes: usize,
    /// The status to add it to. Absent if it has a ledger or is large: the job must be read for it.
    pub status: Option<DeadlineJobStatus>,
}

/// The stored form of a job that has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Finished {
    /// When.
    pub ended: Option<Instant>,
    /// When it expires.
    pub expiry: Option<Instant>,
    /// Its class.
    pub class: Option<Arc<str>>,
    /// How it ended, if it has a deadline.
    pub outcome: Option<DeadlineOutcome>,
    /// Execution times of its latest winners.
    pub runs: Vec<Span>,
    /// When it was complete, if it did not fail.
    pub completion: Option<Completion>,
    /// Whether it did not fail.
    pub is_complete: bool,
    /// Its deadline.
    pub deadline: Option<Instant>,
    /// Its tasks.
    pub tasks: i32,
    /// Those that succeeded.
    pub succeeded: i32,
}

impl WatchedJob {
    /// The job. `skipped` counts the bytes that were not kept.
    pub fn new(job: DeadlineJob, skipped: usize) -> Self {
        match rest(&job) {
            Some(rest) => Self::resting(&job, rest),
            None => Self::Live(Arc::new(job), skipped),
        }
    }

    /// A job that has not begun, as it is kept while the memory budget does not admit it.
    pub fn crowded(job: &DeadlineJob) -> Self {
        let status = job.status.clone().unwrap_or_default();
        let is_reported =
            conditions::crowded(&status, job.metadata.generation, Instant(0)) == status;
        let is_small = size::bytes(&status) <= STATUS_KEPT_MAX;
        let crowded = Crowded {
            bytes: whole_bytes(job),
            spec_bytes: size::bytes(&job.spec),
            is_reported,
            status: (is_small && !is_reported).then_some(status),
        };
        Self::resting(job, Rest::Crowded(Box::new(crowded)))
    }

    fn resting(job: &DeadlineJob, rest: Rest) -> Self {
        Self::Skeleton(Arc::new(Skeleton {
            metadata: essentials(&job.metadata),
            is_companion: job.spec.is_companion(),
            version: job_version(job),
            rest,
        }))
    }

    /// The job, if it may have something to do.
    pub fn live(&self) -> Option<&Arc<DeadlineJob>> {
        match self {
            Self::Live(job, _) => Some(job),
            Self::Skeleton(_) => None,
        }
    }

    /// Its stored form, if it has nothing to do.
    pub fn skeleton(&self) -> Option<&Arc<Skeleton>> {
        match self {
            Self::Live(..) => None,
            Self::Skeleton(skeleton) => Some(skeleton),
        }
    }

    /// Whether it holds the ledger of a batch/v1 Job.
    pub fn is_companion(&self) -> bool {
        match self {
            Self::Live(job, _) => job.spec.is_companion(),
            Self::Skeleton(skeleton) => skeleton.is_companion,
        }
    }

    /// What the totals of deadlines count of it, if it has a deadline.
    pub fn with_deadline(&self) -> Option<JobWithDeadline<'_>> {
        let skeleton = match self {
            Self::Live(job, _) => return JobWithDeadline::of(job),
            Self::Skeleton(skeleton) => skeleton,
        };
        match &skeleton.rest {
            Rest::Finished(finished) => {
                let outcome = finished.outcome?;
                Some(JobWithDeadline::ended(&skeleton.metadata, outcome))
            }
            _ => None,
        }
    }

    /// Its class and how long it took, if it has a class and is complete.
    pub fn completion(&self) -> Option<(Arc<str>, Completion)> {
        match self {
            Self::Live(job, _) => {
                let ledger = job.ledger()?;
                validate::class(&job.metadata).zip(Completion::of(ledger))
            }
            Self::Skeleton(skeleton) => match &skeleton.rest {
                Rest::Finished(finished) => finished.class.clone().zip(finished.completion),
                _ => None,
            },
        }
    }

    /// The run that it is a stage of, and what is known of it, if its annotations can be read.
    pub fn stage(&self) -> Option<(Workflow, JobState)> {
        let workflow = Workflow::read(self.metadata().annotations.as_ref()).ok()??;
        let ended = |is_complete: bool, at: Option<Instant>| match at.filter(|_| is_complete) {
            Some(at) => JobState::Complete(at),
            None => JobState::Failed,
        };
        let state = match self {
            Self::Live(job, _) => match job.ledger().filter(|ledger| ledger.finished) {
                Some(ledger) => {
                    let is_complete = ledger.ending.is_some_and(Conclusion::is_success);
                    ended(is_complete, ledger.last_win.or(ledger.ended))
                }
                None => JobState::Open,
            },
            Self::Skeleton(skeleton) => match &skeleton.rest {
                Rest::Foreign => return None,
                Rest::Finished(it) => {
                    let at = it.completion.map(|completion| completion.at).or(it.ended);
                    ended(it.is_complete, at)
                }
                _ => JobState::Open,
            },
        };
        Some((workflow, state))
    }

    /// Where the queue of reconciles finds it.
    pub fn reference(job: &ObjectRef<DeadlineJob>) -> ObjectRef<Self> {
        job.clone().into_kind_unchecked(())
    }
}

/// Bytes of a job that is kept whole. Its validation keeps a copy of the template.
pub fn whole_bytes(job: &DeadlineJob) -> usize {
    2 * size::bytes(&job.spec)
}

/// Whether a job has attempts, or is ending. What it does then can't wait.
pub fn has_begun(job: &DeadlineJob) -> bool {
    let ledger = job.ledger();
    ledger.is_some_and(|ledger| {
        let mut tasks = ledger.tasks.values();
        ledger.ending.is_some() || tasks.any(|task| !task.attempts.is_empty())
    })
}

/// Why a job has nothing to do, if so.
fn rest(job: &DeadlineJob) -> Option<Rest> {
    if !job.spec.is_ours() {
        return Some(Rest::Foreign);
    }
    let is_quarantined = quarantine::entry(job).is_some();
    let status = job.status.as_ref();
    let Ok(ledger) = Ledger::from_status(status) else {
        return None;
    };
    let finished = |ttl: Option<Span>| Finished {
        ended: ledger.ended,
        expiry: validate::expiry(ttl, &ledger),
        class: validate::class(&job.metadata),
        outcome: DeadlineOutcome::of(job),
        runs: ledger.ended_runs.clone(),
        completion: Completion::of(&ledger),
        is_complete: ledger.ending.is_some_and(Conclusion::is_success),
        deadline: status.and_then(|status| status.deadline.as_ref().map(clock::instant)),
        tasks: job.spec.completions,
        succeeded: status.map_or(0, |status| status.succeeded),
    };
    let has_ended = ledger.finished && ledger.tasks.is_empty() && is_observed(job);
    if job.spec.is_companion() {
        // All else is read from the Job.
        return match has_ended {
            _ if is_quarantined => None,
            true => Some(Rest::Finished(finished(None))),
            false => suspended_companion(job, &ledger),
        };
    }
    match validate::size(&job.spec) {
        Err(invalid) if !ledger.has_begun() => Some(oversized(job, &invalid)),
        _ if is_quarantined => None,
        // Its specification may be invalid by now. Nothing of that matters any more.
        _ if has_ended => Some(Rest::Finished(finished(validate::ttl(&job.spec)))),
        _ if job.spec.suspend => suspended(job, &ledger),
        _ => None,
    }
}

/// Version of a job: its resourceVersion, and for stores that do not count, the revision of its ledger and the
/// generation of its specification. The newer of two copies of a job has the higher one.
pub type JobVersion = (Option<u64>, i64, Option<i64>);

/// The job's version.
pub fn job_version(job: &DeadlineJob) -> JobVersion {
    let ledger = job.ledger();
    let revision = ledger.map_or(0, |ledger| ledger.revision);
    (version(&job.metadata), revision, job.metadata.generation)
}

/// Whether the status is about this specification.
fn is_observed(job: &DeadlineJob) -> bool {
    let status = job.status.as_ref();
    status.is_some_and(|status| status.observed_generation == job.metadata.generation)
}

fn oversized(job: &DeadlineJob, invalid: &InvalidSpec) -> Rest {
    let old = job.status.clone().unwrap_or_default();
    let (generation, message) = (job.metadata.generation, invalid.to_string());
    if conditions::invalid(&old, generation, &message, Instant(0)) == old {
        return Rest::Oversized { refusal: None };
    }
    let is_small = old.ledger.is_none() && size::bytes(&old) <= STATUS_KEPT_MAX;
    let refusal = Refusal {
        message,
        spec_bytes: size::bytes(&job.spec),
        status: is_small.then_some(old),
    };
    Rest::Oversized {
        refusal: Some(Box::new(refusal)),
    }
}

/// Whether nothing is left to do for a suspended job but to weigh its deadline.
fn is_at_rest(job: &DeadlineJob, ledger: &Ledger) -> bool {
    let mut tasks = ledger.tasks.values();
    let has_attempts = tasks.any(|task| !task.attempts.is_empty());
    // Past decisions of the planner are lost if it does not see the job.
    let is_remembered = ledger.policy_state.is_some() || !ledger.segments.is_empty();
    let is_open = ledger.ending.is_some() || ledger.finished || ledger.active_since.is_some();
    let mut status = job.status.iter();
    let is_reported = is_observed(job) && status.any(|status| status.is_true(api::SUSPENDED));
    is_reported && !has_attempts && !is_remembered && !is_open
}

/// When a companion that rests has work again. By its own status its Job is suspended; the Job is read once it is resumed.
fn suspended_companion(companion: &DeadlineJob, ledger: &Ledger) -> Option<Rest> {
    let status = companion.status.as_ref();
    let status = status.filter(|_| is_at_rest(companion, ledger))?;
    let deadline = status.deadline.as_ref().map(clock::instant);
    if deadline.is_some() && !is_weighed(status, companion.metadata.generation) {
        return None;
    }
    Some(Rest::Suspended {
        due: deadline.filter(|_| !status.is_true(api::DEADLINE_MISSED)),
        settings: Some(CompanionSettings::of(&companion.spec)),
    })
}

/// When a suspended job that rests has work again.
fn suspended(job: &DeadlineJob, ledger: &Ledger) -> Option<Rest> {
    let status = job.status.as_ref().filter(|_| is_at_rest(job, ledger))?;
    let validated = validate::validate(job).ok()?;
    let deadline = validated.deadline_by(ledger);
    if deadline.is_some() && !is_weighed(status, job.metadata.generation) {
        return None;
    }
    let is_judged =
        validated.rules.on_miss == OnMiss::Continue && status.is_true(api::DEADLINE_MISSED);
    Some(Rest::Suspended {
        due: deadline.filter(|_| !is_judged),
        settings: None,
    })
}

/// Whether its status has a verdict on the deadline.
fn is_weighed(status: &DeadlineJobStatus, generation: Option<i64>) -> bool {
    let mut conditions = status.conditions.iter();
    conditions.any(|condition| {
        condition.type_ == api::DEADLINE_FEASIBLE
            && condition.status != "Unknown"
            && condition.observed_generation == generation
    })
}

/// A DeadlineJob in a list or a watch event.
#[derive(Clone, Debug)]
pub enum JobObject {
    /// It can be read.
    Read {
        /// Its stored form.
        job: WatchedJob,
        /// Fields of its specification that are not known here.
        unknown_fields: Vec<String>,
    },
    /// It can't.
    Undecodable {
        /// Its identity and owners.
        metadata: Box<ObjectMeta>,
        /// The field and its error.
        problem: String,
    },
}

impl<'de> Deserialize<'de> for JobObject {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let parts = Parts::<Value, Value>::deserialize(from)?;
        let (metadata, skipped) = parts.metadata.split();
        let (spec, status) = (
            parts.spec.unwrap_or_default(),
            parts.status.unwrap_or_default(),
        );
        let identity = essentials(&metadata);
        let kept = ObjectMeta {
            finalizers: metadata.finalizers.clone(),
            ..identity.clone()
        };
        let skipped = skipped + size::bytes(&metadata).saturating_sub(size::bytes(&kept));
        Ok(match read(kept, &spec, &status) {
            Ok(Read {
                job,
                unknown_fields,
            }) => Self::Read {
                job: WatchedJob::new(job, skipped),
                unknown_fields,
            },
            Err(problem) => Self::Undecodable {
                metadata: Box::new(identity),
                problem,
            },
        })
    }
}

stands_for!(WatchedJob, DeadlineJob);
stands_for!(JobObject, DeadlineJob);

impl WatchedJob {
    fn metadata(&self) -> &ObjectMeta {
        match self {
            Self::Live(job, _) => &job.metadata,
            Self::Skeleton(skeleton) => &skeleton.metadata,
        }
    }

    fn metadata_mut(&mut self) -> &mut ObjectMeta {
        match self {
            Self::Live(job, _) => &mut Arc::make_mut(job).metadata,
            Self::Skeleton(skeleton) => &mut Arc::make_mut(skeleton).metadata,
        }
    }
}

impl JobObject {
    fn metadata(&self) -> &ObjectMeta {
        match self {
            Self::Read { job, .. } => job.metadata(),
            Self::Undecodable { metadata, .. } => metadata,
        }
    }

    fn metadata_mut(&mut self) -> &mut ObjectMeta {
        match self {
            Self::Read { job, .. } => job.metadata_mut(),
            Self::Undecodable { metadata, .. } => metadata,
        }
    }
}

#[cfg(test)]
mod tests;
