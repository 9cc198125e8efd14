//! What is said about a specification that can't be carried out.

use crate::size;

/// Why a specification can't be carried out.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum InvalidSpec {
    /// More than fits beside the ledger.
    #[error(
        "the specification has {whole} bytes and may have {}; {bytes} of them are in spec{field}: keep large inputs \
         in a ConfigMap or a volume",
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
    #[error("spec.deadline.within: `{text}` is no duration: write for example 90s, 10m or 1h30m")]
    Within {
        /// What was written.
        text: String,
    },
    /// Both or neither of `within` and `at`.
    #[error("spec.deadline needs exactly one of within and at")]
    Deadline,
    /// A number outside its range.
    #[error("spec.{field}: {value} is outside {low}..={high}: choose a number in that range")]
    Range {
        /// The field.
        field: &'static str,
        /// What was written.
        value: i32,
        /// Smallest allowed.
        low: i32,
        /// Largest allowed.
        high: i32,
    },
    /// A probability that is none, or that every job has.
    #[error(
        "spec.targetPoCD: {value} is not above 0 and at most 1: write for example 0.95, or leave it out"
    )]
    Target {
        /// What was written.
        value: f64,
    },
    /// Neither or both of the progress sources.
    #[error("spec.progress needs exactly one of file, httpGet and metric")]
    Progress,
    /// Ports there are the node's, and anybody's.
    #[error(
        "spec.progress can't be asked for in pods with spec.template.spec.hostNetwork: true, where its \
         port is the node's: leave one of them out"
    )]
    ProgressOnHost,
    /// A split that could not be agreed on with the task.
    #[error(
        "spec.resume: Range needs spec.progress: {{file: {{}}}}: where a task stops is agreed with its \
         agent, in the units of the N/M that it reports"
    )]
    RangeProgress,
    /// A split of a task of which never two parts may run, or whose commits are fenced as a whole.
    #[error(
        "spec.resume: Range needs spec.idempotency: Safe, as parts of a task run beside each other: \
         choose Safe, or resume: Checkpoint"
    )]
    RangeIdempotency,
    /// An attempt that would have to begin from zero after it made way.
    #[error(
        "spec.preemption: WhenCheckpointed needs spec.resume: Checkpoint: an attempt that makes way goes \
         on from its checkpoint; or leave it at Never"
    )]
    PreemptionResume,
    /// A fence that nobody guards.
    #[error(
        "spec.idempotency: Fenced needs the agent beside each task: set spec.progress to {{file: {{}}}}, \
         or choose Safe or None"
    )]
    FenceWithoutAgent,
    /// A restart policy under which a task never ends.
    #[error(
        "spec.template.spec.restartPolicy: `{policy}` is not supported: use Never or OnFailure"
    )]
    RestartPolicy {
        /// What was written.
        policy: String,
    },
    /// No pod spec, or no container in it.
    #[error("spec.template.spec.containers is empty: add the container that runs a task")]
    NoContainer,
    /// A name that the agent needs.
    #[error("spec.template.spec: the name `{name}` is taken by shed: rename your {what}")]
    ReservedName {
        /// The name.
        name: &'static str,
        /// What carries it.
        what: &'static str,
    },
    /// Indexes that can't be read or are none of the job's.
    #[error("spec.{field}: {problem}: write indexes of tasks such as 0,3-5")]
    Indexes {
        /// The field.
        field: String,
        /// What is wrong with it.
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
        "spec.podFailurePolicy.rules[{later}] contradicts rules[{earlier}], which matches all that \
         it matches and comes first: take one of them out or swap them"
    )]
    Contradiction {
        /// The rule that comes first.
        earlier: usize,
        /// The rule that never holds.
        later: usize,
    },
    /// A failure policy over containers that are run again in place.
    #[error(
        "spec.podFailurePolicy needs spec.template.spec.restartPolicy: Never, so that each failure \
         is one of a pod"
    )]
    FailurePolicyRestarts,
    /// Something of a batch/v1 Job that this version can't read.
    #[error("spec.{field}: {problem}: this version of shed can't run such a Job")]
    NotKnown {
        /// The field.
        field: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// An object without the fields that the apiserver always sets.
    #[error("metadata.{field} is missing: the object does not come from an apiserver")]
    Metadata {
        /// The field.
        field: &'static str,
    },
}
