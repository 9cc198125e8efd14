//! Errors about a specification that cannot be carried out.

use crate::api::CLONE_BUDGET_MAX;
use crate::size;
use crate::validate::WorkflowFault;

/// Why a specification can't be carried out.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum InvalidSpec {
    /// More bytes than the ledger leaves.
    #[error(
        "the specification has {whole} bytes, which exceeds the limit of {}; spec{field} has {bytes} of \
         them: keep large inputs in a ConfigMap or a volume",
        size::SPEC_MAX
    )]
    Size {
        /// The field that has most of them, as `.template.spec`.
        field: String,
        /// How many.
        bytes: usize,
        /// Bytes of the whole specification.
        whole: usize,
    },
    /// A duration that can't be read.
    #[error(
        "spec.deadline.within: invalid duration `{text}`: use a value such as 90s, 10m or 1h30m"
    )]
    Within {
        /// The field's text.
        text: String,
    },
    /// A quantile that can't be read, or is not positive and ascending.
    #[error(
        "spec.expectedTaskDuration.{field}: invalid duration `{text}`: use durations such as p50: 10m and \
         p90: 15m, above 0s and at most 1000 years, with p90 at least p50"
    )]
    ExpectedDuration {
        /// The quantile.
        field: &'static str,
        /// The field's text.
        text: String,
    },
    /// A path without a leading slash, or with whitespace.
    #[error("spec.{field} must begin with / and contain no whitespace")]
    ProgressPath {
        /// The field.
        field: &'static str,
    },
    /// None or several of the deadline's forms.
    #[error("spec.deadline needs exactly one of within, at, clock and history")]
    Deadline,
    /// A time of day that does not exist, or has another form.
    #[error(
        "spec.deadline.clock.time: invalid time `{text}`: use HH:MM from 00:00 to 23:59, such as 06:00"
    )]
    ClockTime {
        /// The field's text.
        text: String,
    },
    /// A time zone that does not exist.
    #[error(
        "spec.deadline.clock.timeZone: unknown time zone `{text}`: use a name from the IANA time zone database, \
         such as Europe/Zurich or Etc/UTC"
    )]
    TimeZone {
        /// The field's text.
        text: String,
    },
    /// A factor that is not a decimal number in its range.
    #[error(
        "spec.deadline.history.factor: invalid factor `{text}`: use a decimal number above 0 and at most 100 with \
         at most three decimals, such as 1.5"
    )]
    Factor {
        /// The field's text.
        text: String,
    },
    /// Without a class there is no history.
    #[error(
        "spec.deadline.history needs the label shed.dev/class on the job, because it is computed from earlier jobs \
         with the same label: add the label, or use spec.deadline.within"
    )]
    HistoryClass,
    /// An annotation of a workflow that cannot be carried out.
    #[error("{0}")]
    Workflow(WorkflowFault),
    /// A number outside its range.
    #[error("spec.{field}: {value} is outside {low}..={high}: choose a number in that range")]
    Range {
        /// The field.
        field: &'static str,
        /// The field's value.
        value: i32,
        /// Smallest allowed.
        low: i32,
        /// Largest allowed.
        high: i32,
    },
    /// A value that is not a probability, or that every job exceeds.
    #[error(
        "spec.targetPoCD: {value} is not above 0 and at most 1: use a value such as 0.95, or omit it"
    )]
    Target {
        /// The field's value.
        value: f64,
    },
    /// A budget that is not a share.
    #[error(
        "spec.speculation.budget: {value} is not between 0 and {CLONE_BUDGET_MAX}: use a share of the job's own \
         slot-seconds such as 0.2, or omit it"
    )]
    CloneBudget {
        /// The field's value.
        value: f64,
    },
    /// Neither or both of the progress sources.
    #[error("spec.progress needs exactly one of file, httpGet and metric")]
    Progress,
    /// The port would belong to the node, and any process on it may serve it.
    #[error(
        "spec.progress does not work with spec.template.spec.hostNetwork: true, because the port then \
         belongs to the node: remove one of them"
    )]
    ProgressOnHost,
    /// A split that could not be agreed on with the task.
    #[error(
        "spec.resume: Range needs spec.progress: {{file: {{}}}}: the agent negotiates the stop point in the \
         units of the task's N/M reports"
    )]
    RangeProgress,
    /// A division of a task whose segments must never run at the same time, or whose commits are
    /// fenced as a whole.
    #[error(
        "spec.resume: Range needs spec.idempotency: Safe, because segments of a task run at the same time: \
         choose Safe, or resume: Checkpoint"
    )]
    RangeIdempotency,
    /// An attempt that would begin from zero after a preemption.
    #[error(
        "spec.preemption: WhenCheckpointed needs spec.resume: Checkpoint, because a preempted task resumes from its checkpoint; or use Never"
    )]
    PreemptionResume,
    /// A fence without an agent to enforce it.
    #[error(
        "spec.idempotency: Fenced needs an agent in each pod: set spec.progress to {{file: {{}}}}, \
         or choose Safe or None"
    )]
    FenceWithoutAgent,
    /// A restart policy under which a task never ends.
    #[error(
        "spec.template.spec.restartPolicy: `{policy}` is not supported: use Never or OnFailure"
    )]
    RestartPolicy {
        /// The field's value.
        policy: String,
    },
    /// No pod spec, or no container in it.
    #[error("spec.template.spec.containers is empty: add the container that runs a task")]
    NoContainer,
    /// A name that the agent needs.
    #[error("spec.template.spec: shed reserves the name `{name}`: rename your {what}")]
    ReservedName {
        /// The name.
        name: &'static str,
        /// The kind of object with that name.
        what: &'static str,
    },
    /// Indexes that are invalid or not the job's.
    #[error("spec.{field}: {problem}: use task indexes such as 0,3-5")]
    Indexes {
        /// The field.
        field: String,
        /// The fault.
        problem: String,
    },
    /// A success policy that can't be met.
    #[error(
        "spec.{field} must be between 1 and {most}, the number of tasks that the rule is about"
    )]
    SuccessCount {
        /// The field.
        field: String,
        /// How many tasks there are.
        most: u32,
    },
    /// A rule about nothing or about two things.
    #[error(
        "spec.podFailurePolicy.rules[{at}] needs exactly one of onExitCodes and onPodConditions"
    )]
    FailureRule {
        /// Its place.
        at: usize,
    },
    /// A rule that never holds.
    #[error(
        "spec.podFailurePolicy.rules[{later}] contradicts rules[{earlier}], which comes first and matches \
         the same failures: remove one of them or swap them"
    )]
    Contradiction {
        /// The rule that comes first.
        earlier: usize,
        /// The rule that never holds.
        later: usize,
    },
    /// A failure policy over containers that are run again in place.
    #[error(
        "spec.podFailurePolicy needs spec.template.spec.restartPolicy: Never, so that each failure is a pod \
         failure"
    )]
    FailurePolicyRestarts,
    /// Something of a batch/v1 Job that this version can't read.
    #[error("spec.{field}: {problem}: this version of shed does not support such a Job")]
    NotKnown {
        /// The field.
        field: &'static str,
        /// The fault.
        problem: String,
    },
    /// An object without the fields that the apiserver always sets.
    #[error("metadata.{field} is missing: the object was not read from an apiserver")]
    Metadata {
        /// The field.
        field: &'static str,
    },
}
