//! A batch/v1 Job → its companion, and both → the job that all other modules work on. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::batch::v1::{Job, JobSpec};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::Resource;
use kube::core::Selector;
use serde::Serialize;
use serde::de::DeserializeOwned;
use shed_core::time::Span;

use crate::adopt::annotations::{self, BadAnnotation, Wishes};
use crate::adopt::kueue;
use crate::api::{
    self, DeadlineJob, DeadlineJobSpec, Idempotency, PodReplacementPolicy, Resume, RetryRule,
};
use crate::clock;
use crate::pod_names::{self, fnv1a};
use crate::size;
use crate::validate::{self, Adopted, DeadlineRule, InvalidSpec, ValidatedJob, validate};

/// Default of batch/v1 for `backoffLimit`.
const BACKOFF_LIMIT: i32 = 6;
/// The built-in controller's waits after failures of a Job whose failures are counted per index.
const BATCH_RETRIES: RetryRule = RetryRule {
    first: Span::from_seconds(10),
    most: Span::from_seconds(600),
    whole_job: false,
};
/// Most tasks of a `DeadlineJob`, and smallest.
const COMPLETIONS: std::ops::RangeInclusive<i32> = 1..=100_000;

/// Name of a Job's companion. It holds a hash of the Job's uid: a Job that is made again under the
/// same name gets another while the old one is still on its way out.
pub fn companion_name(job: &Job) -> Option<String> {
    let (name, uid) = (job.metadata.name.as_ref()?, job.metadata.uid.as_ref()?);
    Some(companion_name_of(name, uid))
}

/// Name of the companion of the Job with this name and uid.
pub fn companion_name_of(name: &str, uid: &str) -> String {
    format!("{name}-{:08x}", fnv1a(uid.as_bytes()))
}

/// The owner reference of a pod or a companion.
pub fn owner_reference(name: &str, uid: &str) -> OwnerReference {
    OwnerReference {
        api_version: Job::api_version(&()).into_owned(),
        kind: Job::kind(&()).into_owned(),
        name: name.to_owned(),
        uid: uid.to_owned(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// The companion that a Job should have.
pub fn companion(job: &Job) -> Result<DeadlineJob, BadAnnotation> {
    let metadata = &job.metadata;
    let wishes = wishes(metadata)?;
    let annotations = workflow(metadata, &wishes);
    let mut companion = DeadlineJob::new(
        &companion_name(job).unwrap_or_default(),
        companion_spec(job, wishes),
    );
    let class = super::class(metadata);
    let name = metadata.name.as_deref().unwrap_or_default();
    let mut labels = BTreeMap::from([
        (
            api::LABEL_BATCH_JOB_NAME.to_owned(),
            pod_names::label_value(name),
        ),
        (api::LABEL_NO_BACKUP.to_owned(), "true".to_owned()),
    ]);
    labels.extend(class.map(|class| (api::LABEL_CLASS.to_owned(), class.to_owned())));
    companion.metadata = ObjectMeta {
        namespace: metadata.namespace.clone(),
        labels: Some(labels),
        annotations,
        owner_references: Some(vec![owner_reference(
            name,
            metadata.uid.as_deref().unwrap_or_default(),
        )]),
        ..companion.metadata
    };
    Ok(companion)
}

/// The annotations of a Job's companion: those of its workflow.
fn workflow(job: &ObjectMeta, wishes: &Wishes) -> Option<BTreeMap<String, String>> {
    let created = job.creation_timestamp.as_ref().map(clock::instant);
    let run = wishes.workflow.as_ref()?;
    Some(run.annotations_of_companion(job.annotations.as_ref()?, created))
}

/// The requests of a Job's annotations.
pub fn wishes(job: &ObjectMeta) -> Result<Wishes, BadAnnotation> {
    let wishes = annotations::read(job.annotations.as_ref())?;
    let deadline = wishes.deadline.as_ref();
    let run = wishes.workflow.as_ref();
    let has_run = run.is_some_and(|run| run.deadline.is_some());
    match deadline.is_some_and(|deadline| deadline.history.is_some()) {
        true if has_run => Err(annotations::history_with_workflow()),
        true if super::class(job).is_none() => Err(annotations::history_without_class()),
        _ => Ok(wishes),
    }
}

/// Why an edit of a Job's annotations does not reach its companion. The Job continues without it.
pub fn refused_edit(companion: &DeadlineJob, job: &Job) -> Option<BadAnnotation> {
    match self::companion(job) {
        Ok(wanted) => annotations::fixed(&companion.spec, &wanted.spec).or_else(|| {
            let [now, wanted] = [companion, &wanted].map(|one| one.metadata.annotations.as_ref());
            annotations::fixed_workflow(now, wanted)
        }),
        Err(bad) => Some(bad),
    }
}

fn companion_spec(job: &Job, wishes: Wishes) -> DeadlineJobSpec {
    let spec = job.spec.clone().unwrap_or_default();
    DeadlineJobSpec {
        deadline: wishes.deadline,
        // For people who list companions; shed reads the Job.
        completions: tasks(&spec).clamp(*COMPLETIONS.start(), *COMPLETIONS.end()),
        parallelism: None,
        idempotency: wishes.idempotency.unwrap_or(Idempotency::Safe),
        progress: wishes.progress,
        resume: wishes.resume,
        preemption: wishes.preemption,
        speculation: wishes.speculation,
        target_pocd: wishes.target_pocd,
        expected_task_duration: wishes.expected_task_duration,
        on_miss: wishes.on_miss.unwrap_or_default(),
        backoff_limit_per_index: 0,
        backoff_limit: None,
        max_failed_indexes: None,
        pod_failure_policy: None,
        success_policy: None,
        pod_replacement_policy: PodReplacementPolicy::default(),
        active_deadline_seconds: None,
        indexes: None,
        managed_by: Some(api::COMPANION.to_owned()),
        ttl_seconds_after_finished: None,
        suspend: false,
        template: PodTemplateSpec::default(),
    }
}

/// Whether nothing of the Job is to run.
pub fn is_suspended(job: &Job) -> bool {
    job.spec.as_ref().is_some_and(suspends)
}

fn suspends(spec: &JobSpec) -> bool {
    spec.suspend == Some(true)
}

/// A work queue has as many tasks as pods may run.
pub fn tasks(spec: &JobSpec) -> i32 {
    let parallelism = spec.parallelism.unwrap_or(1);
    spec.completions.unwrap_or_else(|| parallelism.max(1))
}

/// The job that a Job and its companion describe.
pub fn validated(companion: &DeadlineJob, job: &Job) -> Result<ValidatedJob, InvalidSpec> {
    described(companion, job, |whole, overlaid| {
        overlaid.and_then(|()| validate(whole))
    })
}

/// The same for a Job that has begun and whose specification can't be carried out.
pub fn by_ledger(companion: &DeadlineJob, job: &Job) -> Result<ValidatedJob, InvalidSpec> {
    described(companion, job, |whole, _| {
        validate::by_ledger(whole, validate::recorded_deadline(companion))
    })
}

fn described(
    companion: &DeadlineJob,
    job: &Job,
    read: impl FnOnce(&DeadlineJob, Result<(), InvalidSpec>) -> Result<ValidatedJob, InvalidSpec>,
) -> Result<ValidatedJob, InvalidSpec> {
    let none = JobSpec::default();
    let spec = job.spec.as_ref().unwrap_or(&none);
    // The ledger may be large and is not needed here.
    let mut whole = DeadlineJob {
        metadata: companion.metadata.clone(),
        spec: companion.spec.clone(),
        status: None,
    };
    let overlaid = overlay(&mut whole.spec, spec);
    whole.metadata.creation_timestamp = job.metadata.creation_timestamp.clone();
    let adopted = adopted(job, spec, companion)?;
    let name = Arc::clone(&adopted.name);
    let validated = read(&whole, overlaid)?;
    let counts_from = super::counts_from(&job.metadata).unwrap_or(validated.created);
    Ok(ValidatedJob {
        name,
        counts_from,
        retries: retries(&validated.deadline, &adopted),
        // The Job's own specification is in the Job.
        spec_bytes: size::bytes(&companion.spec),
        adopted: Some(Arc::new(adopted)),
        ..validated
    })
}

/// Without a deadline a Job waits as the built-in controller lets it.
fn retries(deadline: &DeadlineRule, job: &Adopted) -> RetryRule {
    match deadline {
        DeadlineRule::Never => RetryRule {
            whole_job: !job.per_index,
            ..BATCH_RETRIES
        },
        _ => RetryRule::PROMPT,
    }
}

/// Replaces fields of a companion by those of batch/v1.
fn overlay(whole: &mut DeadlineJobSpec, spec: &JobSpec) -> Result<(), InvalidSpec> {
    whole.completions = tasks(spec);
    whole.parallelism = Some(spec.parallelism.unwrap_or(1));
    // Without a limit per index only the whole Job's counts.
    whole.backoff_limit_per_index = spec.backoff_limit_per_index.unwrap_or(i32::MAX);
    whole.backoff_limit = Some(spec.backoff_limit.unwrap_or(BACKOFF_LIMIT));
    whole.max_failed_indexes = spec.max_failed_indexes;
    whole.active_deadline_seconds = spec.active_deadline_seconds;
    whole.suspend = suspends(spec);
    whole.template = spec.template.clone();
    whole.pod_failure_policy = alike("podFailurePolicy", spec.pod_failure_policy.as_ref())?;
    whole.success_policy = alike("successPolicy", spec.success_policy.as_ref())?;
    let replacement = alike("podReplacementPolicy", spec.pod_replacement_policy.as_ref())?;
    whole.pod_replacement_policy = replacement.unwrap_or_default();
    Ok(())
}

/// The default of batch/v1 without a `podFailurePolicy` is `TerminatingOrFailed`. A Job that states
/// the effect of two copies of a task gets the default for that effect instead.
fn replaces_deleted(job: &Job, spec: &JobSpec) -> bool {
    let policy = spec.pod_replacement_policy.as_deref();
    !annotations::names_idempotency(job.metadata.annotations.as_ref())
        && policy != Some("Failed")
        && spec.pod_failure_policy.is_none()
}

/// The same words in both APIs.
fn alike<T: Serialize, U: DeserializeOwned>(
    field: &'static str,
    theirs: Option<&T>,
) -> Result<Option<U>, InvalidSpec> {
    let read = |theirs| serde_json::to_value(theirs).and_then(serde_json::from_value);
    let unknown = |error: serde_json::Error| InvalidSpec::NotKnown {
        field,
        problem: error.to_string(),
    };
    theirs.map(read).transpose().map_err(unknown)
}

fn adopted(job: &Job, spec: &JobSpec, companion: &DeadlineJob) -> Result<Adopted, InvalidSpec> {
    let metadata = &job.metadata;
    let missing = |field| InvalidSpec::Metadata { field };
    let selector = spec.selector.clone().unwrap_or_default();
    let selector = Selector::try_from(selector).map_err(|error| InvalidSpec::NotKnown {
        field: "selector",
        problem: error.to_string(),
    })?;
    let wishes = &companion.spec;
    Ok(Adopted {
        name: metadata.name.as_deref().ok_or(missing("name"))?.into(),
        uid: metadata.uid.as_deref().ok_or(missing("uid"))?.into(),
        indexed: spec.completion_mode.as_deref() == Some("Indexed"),
        work_queue: spec.completions.is_none(),
        per_index: spec.backoff_limit_per_index.is_some(),
        replaces_deleted: replaces_deleted(job, spec),
        plain: wishes.deadline.is_none()
            && !annotations::names_workflow_deadline(companion.metadata.annotations.as_ref())
            && wishes.progress.is_none()
            && wishes.resume == Resume::None,
        says_idempotency: annotations::names_idempotency(metadata.annotations.as_ref()),
        queued: kueue::is_queued(job),
        selector,
        template_extras: Arc::default(),
    })
}

#[cfg(test)]
mod tests;
