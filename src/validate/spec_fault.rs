//! A job that has begun, and whose present specification can't be carried out. It runs on by the last valid one. Where that
//! is not known, the ledger alone decides: nothing is launched, and what runs is counted, stopped and released.

use k8s_openapi::api::core::v1::{Container, PodSpec, PodTemplateSpec};
use shed_core::snapshot::Preemption;
use shed_core::time::Instant;

use crate::api::{Deadline, DeadlineJob, DeadlineJobSpec, Speculation, TASKS_MAX, reason};
use crate::clock;
use crate::validate::{DeadlineRule, InvalidSpec, ValidatedJob, validate};

/// Why the present specification of a job that has begun is not in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecFault {
    /// Reason of the condition.
    pub reason: &'static str,
    /// The field or the annotation, and the fix.
    pub message: String,
}

impl ValidatedJob {
    /// Whether no valid specification of the job is known, so that no pod can be made of it.
    pub fn launches_nothing(&self) -> bool {
        let fault = self.fault.as_ref();
        fault.is_some_and(|fault| fault.reason == reason::VALID_SPEC_UNKNOWN)
    }
}

/// The deadline that the job's last pass recorded. A stage of a workflow may have an earlier one of its own.
pub fn recorded_deadline(job: &DeadlineJob) -> Option<Instant> {
    let status = job.status.as_ref()?;
    let ledger = status.ledger.as_ref();
    let fixed = ledger.and_then(|ledger| ledger.fixed_deadline.as_ref());
    let shown = status.deadline.as_ref().map(clock::instant);
    fixed.map(|fixed| fixed.at).into_iter().chain(shown).min()
}

/// What a ledger needs of a job whose specification can't be carried out, with the recorded deadline.
pub fn by_ledger(
    job: &DeadlineJob,
    recorded: Option<Instant>,
) -> Result<ValidatedJob, InvalidSpec> {
    let mut whole = DeadlineJob {
        metadata: job.metadata.clone(),
        spec: job.spec.clone(),
        status: None,
    };
    // They may be what can't be carried out, and the recorded deadline is that of the run.
    whole.metadata.annotations = None;
    whole.spec.deadline = Some(Deadline {
        at: Some(clock::time(recorded.unwrap_or_default())),
        ..Deadline::default()
    });
    let validated = validate(&whole).or_else(|_| {
        without_edits(&mut whole.spec);
        validate(&whole)
    })?;
    Ok(ValidatedJob {
        deadline: recorded.map_or(DeadlineRule::Never, DeadlineRule::At),
        ..validated
    })
}

/// Replaces what an edit may have made invalid and what only launches need.
fn without_edits(spec: &mut DeadlineJobSpec) {
    let container = Container {
        name: "unknown".to_owned(),
        ..Container::default()
    };
    spec.template = PodTemplateSpec {
        metadata: None,
        spec: Some(PodSpec {
            containers: vec![container],
            ..PodSpec::default()
        }),
    };
    spec.completions = spec.completions.clamp(1, TASKS_MAX.cast_signed());
    spec.parallelism = None;
    spec.backoff_limit_per_index = spec.backoff_limit_per_index.clamp(0, 1000);
    spec.speculation = Speculation::default();
    spec.preemption = Preemption::default();
    spec.target_pocd = None;
    spec.expected_task_duration = None;
}
