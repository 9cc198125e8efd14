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
    self, DeadlineJob, DeadlineJobSpec, Ledger, PodFailureRule, PodReplacementPolicy, RetryRule,
    TASKS_MAX,
};
use crate::clock;
use crate::size;

mod adopted_job;
mod batch;
mod clock_time;
mod deadline;
mod error;
mod progress;
pub mod template_extras;

pub use adopted_job::Adopted;
pub use clock_time::{ClockFault, ClockTime};
pub use deadline::{DeadlineRule, HistoryRule, deadline_rule};
pub use error::InvalidSpec;
pub use progress::{ProgressRule, ProgressSource, progress_rule};
use progress::{fenced, range};

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
}

/// When a finished job expires.
#[must_use]
pub fn expiry(job: &ValidatedJob, ledger: &Ledger) -> Option<Instant> {
    let ended = ledger.ended.or(ledger.last_win)?;
    job.ttl
        .filter(|_| ledger.finished)
        .map(|ttl| ended.plus(ttl))
}

/// Reads a job's specification.
///
/// # Errors
/// [`InvalidSpec`], naming the field and the fix.
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
    let (deadline, class) = (deadline_rule(spec)?, class(metadata));
    if matches!(deadline, DeadlineRule::History(_)) && class.is_none() {
        return Err(InvalidSpec::HistoryClass);
    }
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
        expected_duration: expected_duration(spec)?,
        retries: RetryRule::PROMPT,
        skipped: batch::skipped(spec, rules.completions)?,
        failure_rules: batch::failure_rules(spec)?.into(),
        time_limit: spec.active_deadline_seconds.map(Span::from_seconds),
        rules,
        progress: progress_rule(spec)?,
        spec_bytes,
        ttl: spec
            .ttl_seconds_after_finished
            .map(|seconds| Span::from_seconds(i64::from(seconds))),
        template: Arc::new(spec.template.clone()),
        adopted: None,
    })
}

/// Size of the specification in bytes, if it leaves capacity for the ledger.
///
/// # Errors
/// [`InvalidSpec::Size`].
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
#[must_use]
pub fn class(metadata: &ObjectMeta) -> Option<Arc<str>> {
    let label = metadata.labels.as_ref()?.get(api::LABEL_CLASS)?;
    let namespace = metadata.namespace.as_deref().unwrap_or_default();
    (!label.is_empty()).then(|| format!("{namespace}/{label}").into())
}

/// How long a specification expects a task to take.
///
/// # Errors
/// [`InvalidSpec`], naming the field and the fix.
fn expected_duration(spec: &DeadlineJobSpec) -> Result<Option<ExpectedDuration>, InvalidSpec> {
    let Some(expected) = &spec.expected_task_duration else {
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

/// A positive duration, as `10m` or `1h30m`.
#[must_use]
pub fn duration(text: &str) -> Option<Span> {
    let duration: SignedDuration = text.parse().ok()?;
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
        backoff_limit: within(
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

#[cfg(test)]
mod tests {
    use shed_core::snapshot::SpeculationMode;

    use super::*;
    use crate::fixtures::job;

    fn refusal(change: &str) -> String {
        validate(&job(change)).unwrap_err().to_string()
    }

    #[test]
    fn defaults_are_those_of_the_documentation() {
        let job = validate(&job("")).unwrap();
        assert_eq!(job.rules.parallelism, job.rules.completions);
        assert_eq!(job.rules.backoff_limit, 3);
        assert_eq!(job.rules.max_clones_per_task, 5);
        assert_eq!(job.rules.speculation, SpeculationMode::Enabled);
        assert_eq!(
            job.deadline,
            DeadlineRule::FromCreation(Span::from_seconds(600))
        );
    }

    #[test]
    fn an_expected_duration_may_exceed_the_deadline() {
        let expected = |text: &str| validate(&job(text)).unwrap().expected_duration.unwrap();
        let long = expected("expectedTaskDuration: {p50: 100h}");
        assert_eq!(long.p50(), Span::from_seconds(360_000));
        assert_eq!(long.p90(), None);
        let both = expected("expectedTaskDuration: {p50: 1m30s, p90: 2m}");
        assert_eq!(both.p90(), Some(Span::from_seconds(120)));
        assert_eq!(validate(&job("")).unwrap().expected_duration, None);
    }

    #[test]
    fn a_clock_that_starts_with_the_job_has_no_deadline_before() {
        let job = validate(&job("deadline: {within: 1h30m, clockStart: Start}")).unwrap();
        let mut ledger = Ledger::default();
        assert_eq!(job.deadline_by(&ledger), None);
        ledger.first_pass = Some(Instant(1000));
        assert_eq!(job.deadline_by(&ledger), Some(Instant(1000 + 5_400_000)));
    }

    #[test]
    fn a_specification_may_fill_a_quarter_of_the_object() {
        let with = |bytes: usize| {
            let mut job = job("");
            let pod = job.spec.template.spec.as_mut().unwrap();
            pod.containers[0].args = Some(vec![String::new()]);
            let rest = size::bytes(&job.spec);
            let pod = job.spec.template.spec.as_mut().unwrap();
            pod.containers[0].args = Some(vec!["x".repeat(bytes - rest)]);
            validate(&job)
        };
        assert!(with(size::SPEC_MAX).is_ok());
        let said = with(size::SPEC_MAX + 1).unwrap_err().to_string();
        let whole = "the specification has 262145 bytes, which exceeds the limit of 262144; ";
        assert!(said.starts_with(whole), "{said}");
        let field = "spec.template.spec.containers[0].args[0] has ";
        assert!(said.contains(field), "{said}");
    }

    #[test]
    fn every_refusal_names_the_field() {
        for (change, field) in [
            ("completions: 0", "spec.completions"),
            ("deadline: {within: soon}", "spec.deadline.within"),
            ("deadline: {}", "spec.deadline"),
            (
                "deadline: {within: 1h, clock: {time: '06:00', timeZone: UTC}}",
                "exactly one of",
            ),
            (
                "deadline: {clock: {time: '25:00', timeZone: Europe/Zurich}}",
                "spec.deadline.clock.time: invalid time `25:00`: use HH:MM",
            ),
            (
                "deadline: {clock: {time: '6:00', timeZone: Europe/Zurich}}",
                "use HH:MM from 00:00 to 23:59, such as 06:00",
            ),
            (
                "deadline: {clock: {time: '06:00', timeZone: Europe/Zürich}}",
                "spec.deadline.clock.timeZone: unknown time zone `Europe/Zürich`",
            ),
            (
                "deadline: {history: {quantile: p95, factor: '0'}}",
                "spec.deadline.history.factor: invalid factor `0`",
            ),
            (
                "deadline: {history: {quantile: p95, factor: '1.5'}}",
                "spec.deadline.history needs the label shed.dev/class",
            ),
            (
                "speculation: {maxClonesPerTask: 21}",
                "spec.speculation.maxClonesPerTask",
            ),
            (
                "expectedTaskDuration: {p50: soon}",
                "spec.expectedTaskDuration.p50",
            ),
            (
                "expectedTaskDuration: {p50: 0s}",
                "spec.expectedTaskDuration.p50",
            ),
            (
                "expectedTaskDuration: {p50: 9000000h}",
                "spec.expectedTaskDuration.p50",
            ),
            (
                "expectedTaskDuration: {p50: 10m, p90: 9m}",
                "spec.expectedTaskDuration.p90",
            ),
            ("targetPoCD: 0", "spec.targetPoCD"),
            ("targetPoCD: 1.01", "spec.targetPoCD"),
            ("speculation: {budget: -0.1}", "spec.speculation.budget"),
            ("speculation: {budget: 20.5}", "spec.speculation.budget"),
            ("progress: {}", "spec.progress"),
            (
                "progress: {file: {}, metric: {port: 80, name: done}}",
                "spec.progress",
            ),
            (
                "progress: {metric: {port: 0, name: done}}",
                "spec.progress.metric.port",
            ),
            (
                "{progress: {file: {}}, template: {spec: {hostNetwork: true, containers: [{name: a}]}}}",
                "hostNetwork",
            ),
            ("resume: Range", "spec.progress"),
            (
                "{resume: Range, progress: {httpGet: {port: 80}}}",
                "spec.progress",
            ),
            (
                "{resume: Range, progress: {file: {}}, idempotency: None}",
                "spec.idempotency",
            ),
            ("preemption: WhenCheckpointed", "spec.preemption"),
            ("idempotency: Fenced", "spec.idempotency"),
            (
                "{idempotency: Fenced, progress: {httpGet: {port: 80}}}",
                "spec.progress to {file: {}}",
            ),
            (
                "template: {spec: {containers: []}}",
                "spec.template.spec.containers",
            ),
            (
                "template: {spec: {restartPolicy: Always, containers: [{name: a}]}}",
                "restartPolicy",
            ),
            (
                "template: {spec: {containers: [{name: shed-agent}]}}",
                "shed-agent",
            ),
        ] {
            assert!(
                refusal(change).contains(field),
                "{change}: {}",
                refusal(change)
            );
        }
    }

    #[test]
    fn a_class_is_that_of_the_label_within_the_namespace() {
        let class = |label: Option<&str>| {
            let mut job = job("");
            let labels = label.map(|label| (api::LABEL_CLASS.to_owned(), label.to_owned()));
            job.metadata.labels = Some(labels.into_iter().collect());
            validate(&job).unwrap().class
        };
        let namespace = job("").metadata.namespace.unwrap();
        let expected = format!("{namespace}/nightly");
        assert_eq!(class(Some("nightly")).as_deref(), Some(expected.as_str()));
        assert_eq!(class(Some("")), None);
        assert_eq!(class(None), None);
    }
}
