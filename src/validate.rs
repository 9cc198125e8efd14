//! Turns a specification into a `ValidatedJob`: the only reader of raw spec fields. It applies the
//! checks that the schema cannot express. Its errors name the field and the fix.

use std::sync::Arc;

use jiff::SignedDuration;
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use shed_core::index_set::IndexSet;
use shed_core::snapshot::{
    ExpectedDuration, ExpectedDurationError, Idempotency, JobRules, Preemption,
};
use shed_core::time::{Instant, Span};

use crate::api::{
    self, DeadlineJob, DeadlineJobSpec, ExpectedTaskDuration, Ledger, PodFailureRule,
    PodReplacementPolicy, RetryRule, TASKS_MAX,
};
use crate::clock;
use crate::size;

mod adopted_job;
mod batch;
mod clock_time;
mod deadline;
pub mod deadline_text;
mod error;
mod progress;
mod spec_fault;
pub mod template_extras;
#[cfg(test)]
mod tests;
mod workflow;

pub use adopted_job::Adopted;
pub use clock_time::{ClockFault, ClockTime};
pub use deadline::{DeadlineRule, HistoryRule, Learned, deadline_rule, rule_of};
pub use error::InvalidSpec;
pub use progress::{ProgressRule, ProgressSource, progress_rule};
use progress::{fenced, range};
pub use spec_fault::{SpecFault, by_ledger, recorded_deadline};
pub use workflow::{RunDeadline, Workflow, WorkflowFault};

/// A job whose specification can be carried out.
#[derive(Debug, Clone)]
pub struct ValidatedJob {
    /// Identity.
    pub uid: Arc<str>,
    /// Namespace.
    pub namespace: Arc<str>,
    /// Name.
    pub name: Arc<str>,
    /// Class under which the job recurs: namespace and label, because the samples of one namespace
    /// must not affect another.
    pub class: Option<Arc<str>>,
    /// Generation that was validated.
    pub generation: i64,
    /// When it was created.
    pub created: Instant,
    /// Start of the deadline's clock: the creation, or the time for which a CronJob scheduled the Job.
    pub counts_from: Instant,
    /// Deadline, as written.
    pub deadline: DeadlineRule,
    /// The run of a workflow that it is a stage of.
    pub workflow: Option<Arc<Workflow>>,
    /// How long its user expects a task to take.
    pub expected_duration: Option<ExpectedDuration>,
    /// Rules that decisions depend on.
    pub rules: JobRules,
    /// How attempts are polled for progress.
    pub progress: Option<ProgressRule>,
    /// How long a failed task waits for its next attempt.
    pub retries: RetryRule,
    /// Effects of pod failures, first match first.
    pub failure_rules: Arc<[PodFailureRule]>,
    /// Tasks that are not to be run; absent: none.
    pub skipped: Option<IndexSet>,
    /// How long the job may run.
    pub time_limit: Option<Span>,
    /// Time from the end to the deletion.
    pub ttl: Option<Span>,
    /// How large the specification of its DeadlineJob is, in bytes of JSON.
    pub spec_bytes: usize,
    /// The pod to run.
    pub template: Arc<PodTemplateSpec>,
    /// The batch/v1 Job that it is, if it is one.
    pub adopted: Option<Arc<Adopted>>,
    /// Why the present specification of a job that has begun is not in force.
    pub fault: Option<SpecFault>,
    /// Whether a backup restored the job without its ledger. Then its rules suspend it, because its tasks may be done.
    pub lacks_ledger: bool,
}

/// When a finished job with this time to live expires.
pub fn expiry(ttl: Option<Span>, ledger: &Ledger) -> Option<Instant> {
    let ended = ledger.ended.or(ledger.last_win)?;
    ttl.filter(|_| ledger.finished).map(|ttl| ended.plus(ttl))
}

/// Time from a job's end to its deletion.
pub fn ttl(spec: &DeadlineJobSpec) -> Option<Span> {
    let seconds = spec.ttl_seconds_after_finished?;
    Some(Span::from_seconds(i64::from(seconds)))
}

/// Reads a job's specification.
pub fn validate(job: &DeadlineJob) -> Result<ValidatedJob, InvalidSpec> {
    #[cfg(test)]
    counted::VALIDATIONS.set(counted::VALIDATIONS.get() + 1);
    let metadata = &job.metadata;
    let spec = &job.spec;
    let missing = |field| InvalidSpec::Metadata { field };
    let spec_bytes = size(spec)?;
    template(spec)?;
    range(spec)?;
    let rules = rules(spec)?;
    let created = metadata.creation_timestamp.as_ref().map(clock::instant);
    let created = created.ok_or(missing("creationTimestamp"))?;
    let (deadline, class) = (deadline_rule(job)?, class(metadata));
    if matches!(deadline, DeadlineRule::History(_)) && class.is_none() {
        return Err(InvalidSpec::HistoryClass);
    }
    let workflow = Workflow::read(metadata.annotations.as_ref());
    let workflow = workflow.map_err(InvalidSpec::Workflow)?;
    Ok(ValidatedJob {
        uid: metadata.uid.as_deref().ok_or(missing("uid"))?.into(),
        namespace: metadata
            .namespace
            .as_deref()
            .ok_or(missing("namespace"))?
            .into(),
        name: metadata.name.as_deref().ok_or(missing("name"))?.into(),
        class,
        generation: metadata.generation.unwrap_or(0),
        created,
        counts_from: created,
        deadline,
        workflow: workflow.map(Arc::new),
        expected_duration: expected_duration(spec.expected_task_duration.as_ref())?,
        retries: RetryRule::PROMPT,
        skipped: batch::skipped(spec, rules.completions)?,
        failure_rules: batch::failure_rules(spec)?.into(),
        time_limit: spec.active_deadline_seconds.map(Span::from_seconds),
        rules,
        progress: progress_rule(spec)?,
        spec_bytes,
        ttl: ttl(spec),
        template: Arc::new(spec.template.clone()),
        adopted: None,
        fault: None,
        lacks_ledger: false,
    })
}

/// Size of the specification in bytes, if it leaves capacity for the ledger.
pub fn size(spec: &DeadlineJobSpec) -> Result<usize, InvalidSpec> {
    let whole = size::bytes(spec);
    if whole <= size::SPEC_MAX {
        return Ok(whole);
    }
    let (field, bytes) = size::largest(spec);
    Err(InvalidSpec::Size {
        field,
        bytes,
        whole,
    })
}

/// The class of a job, by its label. The apiserver checks the label's characters and length.
pub fn class(metadata: &ObjectMeta) -> Option<Arc<str>> {
    let namespace = metadata.namespace.as_deref().unwrap_or_default();
    class_label(metadata).map(|label| format!("{namespace}/{label}").into())
}

/// The class without the namespace.
pub fn class_label(metadata: &ObjectMeta) -> Option<&str> {
    let label = metadata.labels.as_ref()?.get(api::LABEL_CLASS)?;
    (!label.is_empty()).then_some(label)
}

/// How long a task is expected to take.
pub fn expected_duration(
    expected: Option<&ExpectedTaskDuration>,
) -> Result<Option<ExpectedDuration>, InvalidSpec> {
    let Some(expected) = expected else {
        return Ok(None);
    };
    let (p50, p90) = (&expected.p50, expected.p90.as_ref());
    let fault = |field, text: &str| InvalidSpec::ExpectedDuration {
        field,
        text: text.to_owned(),
    };
    let span = |field, text: &str| duration(text).ok_or_else(|| fault(field, text));
    let high = p90.map(|text| span("p90", text)).transpose()?;
    let expected = ExpectedDuration::new(span("p50", p50)?, high);
    expected.map(Some).map_err(|error| match error {
        ExpectedDurationError::Median => fault("p50", p50),
        ExpectedDurationError::High => fault("p90", p90.unwrap_or(p50)),
    })
}

/// A positive duration, as `10m` or `1h30m`, if the CRD's schema takes it too: no other units, no spaces, and in
/// nanoseconds a number of 64 bits.
pub fn duration(text: &str) -> Option<Span> {
    let is_plain = |byte: u8| byte.is_ascii_digit() || b".hms".contains(&byte);
    if text.len() > 32 || !text.bytes().all(is_plain) {
        return None;
    }
    let duration: SignedDuration = text.parse().ok()?;
    i64::try_from(duration.as_nanos()).ok()?;
    let milliseconds = i64::try_from(duration.as_millis()).ok()?;
    (milliseconds > 0).then_some(Span(milliseconds))
}

fn within(field: &'static str, value: i32, low: i32, high: i32) -> Result<u32, InvalidSpec> {
    let in_range = (low..=high).contains(&value);
    u32::try_from(value)
        .ok()
        .filter(|_| in_range)
        .ok_or(InvalidSpec::Range {
            field,
            value,
            low,
            high,
        })
}

fn rules(spec: &DeadlineJobSpec) -> Result<JobRules, InvalidSpec> {
    // batch/v1 lets a Job have no task, pause with parallelism 0, and fail without end.
    let (least, failures_most) = match spec.is_companion() {
        true => (0, i32::MAX),
        false => (1, 1000),
    };
    let completions = within(
        "completions",
        spec.completions,
        least,
        TASKS_MAX.cast_signed(),
    )?;
    let parallelism = match spec.parallelism {
        Some(parallelism) => within("parallelism", parallelism, least, TASKS_MAX.cast_signed())?,
        None => completions,
    };
    Ok(JobRules {
        completions,
        parallelism,
        idempotency: match spec.idempotency {
            Idempotency::Fenced => fenced(spec)?,
            free => free,
        },
        resume: spec.resume.into(),
        speculation: spec.speculation.mode,
        max_clones_per_task: within(
            "speculation.maxClonesPerTask",
            spec.speculation.max_clones_per_task,
            0,
            20,
        )?,
        target_pocd: target(spec.target_pocd)?,
        clone_budget: clone_budget(spec.speculation.budget)?,
        on_miss: spec.on_miss,
        backoff_limit_per_index: within(
            "backoffLimitPerIndex",
            spec.backoff_limit_per_index,
            0,
            failures_most,
        )?,
        suspend: spec.suspend,
        preemption: preemption(spec)?,
        replaces_when_gone: spec.pod_replacement_policy == PodReplacementPolicy::Failed,
        ending: batch::end_rules(spec, completions)?,
    })
}

fn preemption(spec: &DeadlineJobSpec) -> Result<Preemption, InvalidSpec> {
    match (spec.preemption, spec.resume) {
        (Preemption::WhenCheckpointed, resume) if resume != api::Resume::Checkpoint => {
            Err(InvalidSpec::PreemptionResume)
        }
        (preemption, _) => Ok(preemption),
    }
}

fn target(pocd: Option<f64>) -> Result<Option<f64>, InvalidSpec> {
    let wrong = |value: &f64| *value <= 0.0 || *value > 1.0 || value.is_nan();
    match pocd.filter(wrong) {
        Some(value) => Err(InvalidSpec::Target { value }),
        None => Ok(pocd),
    }
}

fn clone_budget(budget: Option<f64>) -> Result<Option<f64>, InvalidSpec> {
    let wrong = |share: &f64| !api::is_clone_budget(*share);
    match budget.filter(wrong) {
        Some(value) => Err(InvalidSpec::CloneBudget { value }),
        None => Ok(budget),
    }
}

fn template(spec: &DeadlineJobSpec) -> Result<(), InvalidSpec> {
    let pod = spec
        .template
        .spec
        .as_ref()
        .ok_or(InvalidSpec::NoContainer)?;
    if pod.containers.is_empty() {
        return Err(InvalidSpec::NoContainer);
    }
    match pod.restart_policy.as_deref() {
        None | Some("Never" | "OnFailure") => {}
        Some(policy) => {
            return Err(InvalidSpec::RestartPolicy {
                policy: policy.to_owned(),
            });
        }
    }
    if spec.pod_failure_policy.is_some() && pod.restart_policy.as_deref() == Some("OnFailure") {
        return Err(InvalidSpec::FailurePolicyRestarts);
    }
    let init = pod.init_containers.iter().flatten();
    if pod
        .containers
        .iter()
        .chain(init)
        .any(|container| container.name == api::AGENT_CONTAINER)
    {
        return Err(InvalidSpec::ReservedName {
            name: api::AGENT_CONTAINER,
            what: "container",
        });
    }
    if pod
        .volumes
        .iter()
        .flatten()
        .any(|volume| volume.name == api::VOLUME)
    {
        return Err(InvalidSpec::ReservedName {
            name: api::VOLUME,
            what: "volume",
        });
    }
    Ok(())
}

/// How often tests of this thread validated a job.
#[cfg(test)]
pub(crate) mod counted {
    use std::cell::Cell;

    thread_local! {
        pub(crate) static VALIDATIONS: Cell<usize> = const { Cell::new(0) };
    }
}
