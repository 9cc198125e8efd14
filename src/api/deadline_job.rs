//! `DeadlineJob`: N tasks, a pod template, a deadline.

use std::fmt;

use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use shed_core::snapshot::{Idempotency, OnMiss, Preemption, SpeculationMode};

use super::batch::{PodFailurePolicy, PodReplacementPolicy, SuccessPolicy};
use super::decimal::Decimal;
use super::ledger::Ledger;
use super::pocd::{self, Pocd};
use super::record::{self, JobRecord};
use super::rule_schemas;
use super::tasks::TASKS_MAX;
use super::template_bounds;
use super::unknown_fields::Unknown;

/// Runs one pod attempt per task, estimates the probability that all tasks complete before the deadline
/// (PoCD), clones stragglers where clones pay, and keeps the fastest attempt of each task.
#[expect(
    clippy::duplicated_attributes,
    reason = "printer columns of the same type are no duplicates"
)]
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "shed.dev",
    version = "v1alpha1",
    kind = "DeadlineJob",
    plural = "deadlinejobs",
    singular = "deadlinejob",
    shortname = "dj",
    namespaced,
    status = "DeadlineJobStatus",
    derive = "PartialEq",
    doc = "A batch job with a deadline that it works to meet.",
    printcolumn(name = "Tasks", type_ = "integer", json_path = ".spec.completions", description = "Tasks of the job"),
    printcolumn(name = "Done", type_ = "integer", json_path = ".status.succeeded", description = "Tasks with a winner"),
    printcolumn(name = "Clones", type_ = "integer", json_path = ".status.clones", description = "Clones alive now"),
    printcolumn(name = "PoCD", type_ = "string", json_path = ".status.pocd", description = "Probability of \
    completion before the deadline"),
    // A `date` column prints an instant in the future as `<invalid>`, hence a string.
    printcolumn(name = "Deadline", type_ = "string", json_path = ".status.deadline", description = "When \
    the job must be complete"),
    printcolumn(name = "Status", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Expected", type_ = "string", json_path = ".status.estimatedCompletionTime", priority = 1, description = "When the last task is expected to end")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("!has(self.parallelism) || self.parallelism <= self.completions")
        .message("spec.parallelism must not be above spec.completions: lower it or leave it out"),
    validation = Rule::new("!has(self.template.spec) || !has(self.template.spec.restartPolicy) || self.template.spec.restartPolicy in ['Never', 'OnFailure']")
        .message("spec.template.spec.restartPolicy must be Never (the default) or OnFailure: a task that always restarts never ends"),
    validation = Rule::new("!has(self.progress) || !has(self.template.spec) || !has(self.template.spec.hostNetwork) || !self.template.spec.hostNetwork")
        .message("spec.progress does not work with spec.template.spec.hostNetwork: true, because the port then belongs to the node: remove one of them"),
    validation = Rule::new("has(self.deadline) || (has(self.managedBy) && self.managedBy == 'shed.dev/job-companion')")
        .message("spec.deadline: Required value: set the time when the job must be complete, e.g. {within: 10m}, {at: 2030-01-31T08:00:00Z} or {clock: {time: '06:00', timeZone: Europe/Zurich}}"),
    validation = Rule::new("(has(self.managedBy) && self.managedBy == 'shed.dev/job-companion') || (has(self.template.spec) && size(self.template.spec.containers) > 0)")
        .message("spec.template.spec.containers must hold at least one container: the task"),
    validation = Rule::new("self.resume != 'Checkpoint' || has(self.progress)")
        .message("spec.resume: Checkpoint needs spec.progress (e.g. progress: {file: {}}), because tasks report checkpoints with their progress"),
    validation = Rule::new("self.preemption != 'WhenCheckpointed' || self.resume == 'Checkpoint'")
        .message("spec.preemption: WhenCheckpointed needs spec.resume: Checkpoint, because a preempted task resumes from its checkpoint; or use Never"),
    validation = Rule::new("self.resume != 'Range' || (has(self.progress) && has(self.progress.file))")
        .message("spec.resume: Range needs spec.progress: {file: {}}: the agent negotiates the stop point in the units of the task's N/M reports"),
    validation = Rule::new("self.resume != 'Range' || self.idempotency == 'Safe'")
        .message("spec.resume: Range needs spec.idempotency: Safe, because segments of a task run at the same time and Fenced does not support segments yet; or choose resume: Checkpoint"),
    validation = Rule::new("self.resume != 'Range' || self.completions == oldSelf.completions")
        .message("spec.completions cannot be changed with spec.resume: Range: create another DeadlineJob"),
    validation = Rule::new("!has(self.podFailurePolicy) || !has(self.template.spec) || !has(self.template.spec.restartPolicy) || self.template.spec.restartPolicy == 'Never'")
        .message("spec.podFailurePolicy needs spec.template.spec.restartPolicy: Never (the default), so that each failure is a pod failure"),
    validation = Rule::new("!has(self.maxFailedIndexes) || self.maxFailedIndexes <= self.completions")
        .message("spec.maxFailedIndexes must not be above spec.completions: lower it or leave it out"),
    validation = Rule::new("!has(self.targetPoCD) || self.targetPoCD > 0.0")
        .message("spec.targetPoCD must be above 0 and at most 1, e.g. 0.95, or left out"),
    validation = Rule::new("!has(self.speculation) || !has(self.speculation.budget) || (self.speculation.budget >= 0.0 && self.speculation.budget <= 20.0)")
        .message("spec.speculation.budget must be between 0 and 20, e.g. 0.2, or left out"),
    validation = Rule::new("has(self.indexes) == has(oldSelf.indexes) && (!has(self.indexes) || self.indexes == oldSelf.indexes)")
        .message("spec.indexes cannot be changed: create another DeadlineJob"),
    validation = Rule::new("has(self.managedBy) == has(oldSelf.managedBy) && (!has(self.managedBy) || self.managedBy == oldSelf.managedBy)")
        .message("spec.managedBy cannot be changed: create another DeadlineJob"),
    validation = Rule::new("has(self.podFailurePolicy) == has(oldSelf.podFailurePolicy) && (!has(self.podFailurePolicy) || self.podFailurePolicy == oldSelf.podFailurePolicy)")
        .message("spec.podFailurePolicy cannot be changed: create another DeadlineJob"),
    validation = Rule::new("has(self.successPolicy) == has(oldSelf.successPolicy) && (!has(self.successPolicy) || self.successPolicy == oldSelf.successPolicy)")
        .message("spec.successPolicy cannot be changed: create another DeadlineJob"),
    validation = Rule::new("(!has(self.successPolicy) && !has(self.indexes)) || self.completions >= oldSelf.completions")
        .message("spec.completions cannot be lowered with spec.successPolicy or spec.indexes, which name tasks: create another DeadlineJob"),
    validation = Rule::new("has(self.progress) == has(oldSelf.progress) && (!has(self.progress) || (has(self.progress.file) == has(oldSelf.progress.file) && has(self.progress.httpGet) == has(oldSelf.progress.httpGet) && (!has(self.progress.httpGet) || self.progress.httpGet == oldSelf.progress.httpGet) && has(self.progress.metric) == has(oldSelf.progress.metric) && (!has(self.progress.metric) || self.progress.metric == oldSelf.progress.metric)))")
        .message("spec.progress cannot be changed except for periodSeconds, because running attempts keep their sidecar: create another DeadlineJob"),
    validation = Rule::new("self.idempotency != 'Fenced' || (has(self.progress) && has(self.progress.file))")
        .message("spec.idempotency: Fenced needs an agent in each pod: set spec.progress to {file: {}}, or choose Safe or None"),
    // At creation only: a job from before these rules can still be changed, and shed replaces the
    // labels and annotations they refuse.
    validation = Rule::new("oldSelf.hasValue() || !has(self.template.metadata) || !has(self.template.metadata.labels) || ['shed.dev/job-uid', 'shed.dev/job-name', 'shed.dev/task', 'shed.dev/attempt', 'shed.dev/attempt-kind', 'shed.dev/segment', 'batch.kubernetes.io/job-completion-index'].all(key, !(key in self.template.metadata.labels))")
        .optional_old_self(true)
        .message("spec.template.metadata.labels must not hold shed.dev/job-uid, shed.dev/job-name, shed.dev/task, shed.dev/attempt, shed.dev/attempt-kind, shed.dev/segment or batch.kubernetes.io/job-completion-index, which shed sets itself: remove them"),
    validation = Rule::new("oldSelf.hasValue() || !has(self.template.metadata) || !has(self.template.metadata.annotations) || ['shed.dev/job-uid', 'shed.dev/job-name', 'shed.dev/task', 'shed.dev/attempt', 'shed.dev/attempt-kind', 'shed.dev/segment', 'batch.kubernetes.io/job-completion-index'].all(key, !(key in self.template.metadata.annotations))")
        .optional_old_self(true)
        .message("spec.template.metadata.annotations must not hold shed.dev/job-uid, shed.dev/job-name, shed.dev/task, shed.dev/attempt, shed.dev/attempt-kind, shed.dev/segment or batch.kubernetes.io/job-completion-index, which shed sets itself: remove them"),
    // At creation only, as the two above. Each list alone is bounded by its schema.
    validation = Rule::new("oldSelf.hasValue() || (has(self.indexes) ? size(self.indexes) : 0) + (has(self.successPolicy) ? self.successPolicy.rules.map(rule, has(rule.succeededIndexes) ? size(rule.succeededIndexes) : 0).sum() : 0) <= 262144")
        .optional_old_self(true)
        .message("spec.indexes and spec.successPolicy.rules[*].succeededIndexes together exceed the limit of 262144 bytes: use ranges such as 0-99"),
    validation = Rule::new("self.idempotency == oldSelf.idempotency").message("spec.idempotency cannot be changed: create another DeadlineJob"),
    validation = Rule::new("self.resume == oldSelf.resume").message("spec.resume cannot be changed: create another DeadlineJob"),
    validation = Rule::new("self.template == oldSelf.template").message("spec.template cannot be changed: create another DeadlineJob")
)]
pub struct DeadlineJobSpec {
    /// When the job must be complete. Required, except in the companion that shed creates for a batch/v1 Job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Deadline>,
    /// How many tasks the job has; each runs with its own JOB_COMPLETION_INDEX from 0. You may change it
    /// while the job runs: shed starts new tasks and stops tasks beyond the new number.
    #[schemars(range(min = 1, max = TASKS_MAX))]
    pub completions: i32,
    /// How many tasks may have a live attempt at a time, not counting clones. Default: completions. You may
    /// change it while the job runs: if it is lowered, shed stops the tasks that started last and starts
    /// them again later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = TASKS_MAX))]
    pub parallelism: Option<i32>,
    /// Whether two live copies of a task do harm: Safe (they do not), Fenced (both may run, but only the
    /// attempt with the commit grant may publish, see `$SHED_BIN agent commit -- CMD`) or None (two must
    /// never run, so the job gets no clones). Required, because a wrong guess publishes twice.
    #[schemars(schema_with = "rule_schemas::idempotency")]
    pub idempotency: Idempotency,
    /// How attempts report progress. Absent: they do not report, and shed estimates from elapsed time alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<ProgressSource>,
    /// Where clones and retries start: None (from zero), Checkpoint (from the best attempt's last
    /// checkpoint, in SHED_RESUME_FILE) or Range (the original stops at a later unit of its input, and
    /// clones process the rest: SHED_RANGE_START, SHED_RANGE_END, SHED_STOP_FILE).
    #[serde(default)]
    pub resume: Resume,
    /// Whether shed may preempt a task's only attempt for a job that would otherwise miss its deadline:
    /// Never, or WhenCheckpointed (shed stops an attempt that has a checkpoint and resumes the task from
    /// there when a slot is free). Only the policy shed-prime preempts.
    #[serde(default)]
    #[schemars(schema_with = "rule_schemas::preemption")]
    pub preemption: Preemption,
    /// How long a task takes, if you know it: shed then estimates the job before its first report, e.g.
    /// whether the deadline is feasible. Reports of the job's attempts outweigh it. Absent: shed learns from
    /// reports and from earlier jobs of the same class. You may change it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_task_duration: Option<ExpectedTaskDuration>,
    /// The PoCD at which shed stops starting clones, above 0 and at most 1, e.g. 0.95. `DeadlineFeasible`
    /// reports whether the job can reach it. Absent: 0.9 for `DeadlineFeasible`, and the policy alone limits
    /// clones.
    #[serde(
        rename = "targetPoCD",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub target_pocd: Option<f64>,
    /// Clones of stragglers.
    #[serde(default)]
    pub speculation: Speculation,
    /// Action at the deadline: Fail (shed stops the attempts and the job fails) or Continue (shed
    /// records the miss and the attempts continue).
    #[serde(default)]
    #[schemars(schema_with = "rule_schemas::on_miss")]
    pub on_miss: OnMiss,
    /// Failures that a task may have before it fails for good. Attempts that shed stopped, evictions, and
    /// failures of clones while a sibling lives do not count.
    #[serde(default = "default_backoff_limit")]
    #[schemars(range(min = 0, max = 1000))]
    pub backoff_limit_per_index: i32,
    /// Failures that all tasks together may have before the job fails. Absent: no limit beyond
    /// backoffLimitPerIndex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub backoff_limit: Option<i32>,
    /// Tasks that may fail for good before the job fails and shed stops the others. Absent: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100_000))]
    pub max_failed_indexes: Option<i32>,
    /// Effect of a pod failure, by exit code or pod condition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_failure_policy: Option<PodFailurePolicy>,
    /// When the job succeeds before every task has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub success_policy: Option<SuccessPolicy>,
    /// When shed retries a task: TerminatingOrFailed (when its attempts have finished, or their node is
    /// gone) or Failed (when its last attempt has finished).
    #[serde(default)]
    pub pod_replacement_policy: PodReplacementPolicy,
    /// Seconds that the job may run, not counting suspension and independent of its deadline: a limit that
    /// stops the job, not a goal. Its clock restarts when the job is resumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub active_deadline_seconds: Option<i64>,
    /// Tasks to run, e.g. `0,3-5`: those of another job that failed. Absent: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 65536))]
    pub indexes: Option<String>,
    /// The controller that runs the job. Default: shed.dev/deadline-controller. shed ignores jobs of other
    /// controllers. shed.dev/job-companion marks the companions that shed creates: they hold the ledger of a
    /// batch/v1 Job, which specifies everything else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63), regex(pattern = r"^[a-z0-9.-]+/[A-Za-z0-9._~/-]+$"))]
    pub managed_by: Option<String>,
    /// Seconds between the job's end and its deletion. Absent: shed never deletes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub ttl_seconds_after_finished: Option<i32>,
    /// True: shed stops live attempts and starts none. The deadline's clock keeps running.
    #[serde(default)]
    pub suspend: bool,
    /// The pod to run for each attempt. restartPolicy is Never (default) or OnFailure.
    #[schemars(schema_with = "template_bounds::template")]
    pub template: PodTemplateSpec,
}

fn default_backoff_limit() -> i32 {
    3
}

impl DeadlineJobSpec {
    /// Whether shed runs the job.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        let manager = self.managed_by.as_deref();
        manager.is_none_or(|manager| manager == super::batch::MANAGED_BY) || self.is_companion()
    }

    /// Whether it is the companion of a batch/v1 Job.
    #[must_use]
    pub fn is_companion(&self) -> bool {
        self.managed_by.as_deref() == Some(super::batch::COMPANION)
    }
}

/// When the job must be complete, in exactly one form.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("[has(self.within), has(self.at), has(self.clock), has(self.history)].filter(given, given).size() == 1")
        .message("spec.deadline needs exactly one of within (e.g. 10m), at (e.g. 2030-01-31T08:00:00Z), clock (e.g. {time: '06:00', timeZone: Europe/Zurich}) and history (e.g. {quantile: p95, factor: '1.5'})"),
    validation = Rule::new("!has(self.within) || duration(self.within) > duration('0s')")
        .message("spec.deadline.within must be longer than 0s, e.g. 10m"),
    validation = Rule::new("(!has(self.clock) && !has(self.history)) || self.clockStart == 'Creation'")
        .message("spec.deadline.clockStart: Start needs spec.deadline.within, because clock and history define their own start: remove it")
)]
pub struct Deadline {
    /// Time from clockStart, e.g. 90s, 10m, 1h30m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"))]
    pub within: Option<String>,
    /// Absolute instant, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Time>,
    /// The next time of day in a time zone after the job's creation. For a Job of a CronJob: after its scheduled
    /// time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<ClockDeadline>,
    /// A quantile of the completion times of earlier jobs with the same label shed.dev/class in the namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<HistoryDeadline>,
    /// Start of `within`: Creation (for a Job of a CronJob its scheduled time), or Start (the first planning pass
    /// in which the job is not suspended).
    #[serde(default)]
    pub clock_start: ClockStart,
}

/// A time of day in a time zone. If the clocks skip it on that day, the first instant after the gap counts; if they
/// show it twice, the first one.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("self.time.matches('^([01][0-9]|2[0-3]):[0-5][0-9]$')")
        .message("spec.deadline.clock.time must be HH:MM from 00:00 to 23:59, e.g. 06:00")
)]
pub struct ClockDeadline {
    /// Hour and minute, 00:00 to 23:59.
    #[schemars(length(max = 16))]
    pub time: String,
    /// Name from the IANA time zone database, e.g. Europe/Zurich or Etc/UTC.
    #[schemars(length(min = 1, max = 64))]
    pub time_zone: String,
}

/// A quantile of earlier completion times, times a factor. Until 5 completion times are known, the job runs
/// without a deadline.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("self.factor.matches('^[0-9]{1,3}([.][0-9]{1,3})?$') && double(self.factor) > 0.0 && double(self.factor) <= 100.0")
        .message("spec.deadline.history.factor must be a decimal number above 0 and at most 100, e.g. '1.5'")
)]
pub struct HistoryDeadline {
    /// p50, p90, p95, p99 or max of the last 50 completion times of the class.
    pub quantile: Quantile,
    /// The quantile is multiplied by this decimal number above 0 and at most 100.
    #[serde(default = "default_factor")]
    #[schemars(length(max = 7))]
    pub factor: String,
}

fn default_factor() -> String {
    "1".to_owned()
}

/// A quantile of completion times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Quantile {
    P50,
    P90,
    P95,
    P99,
    Max,
}

impl Quantile {
    /// All quantiles, in ascending order.
    pub const ALL: [Self; 5] = [Self::P50, Self::P90, Self::P95, Self::P99, Self::Max];
}

impl fmt::Display for Quantile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::P50 => "p50",
            Self::P90 => "p90",
            Self::P95 => "p95",
            Self::P99 => "p99",
            Self::Max => "max",
        })
    }
}

/// How long a task takes from zero, without its start-up: two quantiles of one distribution.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("duration(self.p50) > duration('0s')")
        .message("spec.expectedTaskDuration.p50 must be longer than 0s, e.g. 10m"),
    validation = Rule::new("!has(self.p90) || duration(self.p90) >= duration(self.p50)")
        .message("spec.expectedTaskDuration.p90 must not be shorter than p50: raise it or leave it out")
)]
pub struct ExpectedTaskDuration {
    /// Half of the tasks take at most this, e.g. 90s, 10m, 1h30m.
    #[schemars(length(max = 32), regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"))]
    pub p50: String,
    /// Nine of ten tasks take at most this. Absent: about half above p50.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"))]
    pub p90: Option<String>,
}

/// Start of `within`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ClockStart {
    #[default]
    Creation,
    Start,
}

/// Where clones and retries begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Resume {
    #[default]
    None,
    Checkpoint,
    Range,
}

impl From<Resume> for shed_core::snapshot::Resume {
    /// The simulator's `Latest` has no counterpart in the API.
    fn from(resume: Resume) -> Self {
        match resume {
            Resume::None => Self::None,
            Resume::Checkpoint => Self::Checkpoint,
            Resume::Range => Self::Range,
        }
    }
}

/// How attempts report progress. shed polls them like a probe.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("[has(self.file), has(self.httpGet), has(self.metric)].filter(given, given).size() == 1")
    .message("spec.progress needs exactly one of file: {}, httpGet: {port, path} and metric: {port, path, name}; omit spec.progress if tasks do not report"))]
pub struct ProgressSource {
    /// The task writes `0.42`, `17/40` or `{\"progress\":0.42,\"checkpoint\":\"…\"}` to the file
    /// that SHED_PROGRESS_FILE names; a sidecar serves it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<FileProgress>,
    /// The task serves the same content itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_get: Option<HttpProgress>,
    /// The task serves a page of Prometheus metrics, and one metric has its progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<MetricProgress>,
    /// Minimum seconds between two polls of one attempt. shed polls an attempt up to eight times less often
    /// if a newer value would change little.
    #[serde(default = "default_period_seconds")]
    #[schemars(range(min = 1, max = 3600))]
    pub period_seconds: i32,
}

fn default_period_seconds() -> i32 {
    5
}

/// Progress by file; it has no options yet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileProgress {}

/// Progress by the task's own endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HttpProgress {
    /// Port of the pod.
    #[schemars(range(min = 1, max = 65535))]
    pub port: i32,
    /// Path of the endpoint.
    #[serde(default = "default_path")]
    #[schemars(length(min = 1, max = 256), regex(pattern = r"^/[^\s]*$"))]
    pub path: String,
}

fn default_path() -> String {
    "/progress".to_owned()
}

/// Progress by a metric.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MetricProgress {
    /// Port of the pod.
    #[schemars(range(min = 1, max = 65535))]
    pub port: i32,
    /// Path of the page, in Prometheus' text format, at most 64 KiB.
    #[serde(default = "default_metrics_path")]
    #[schemars(length(min = 1, max = 256), regex(pattern = r"^/[^\s]*$"))]
    pub path: String,
    /// Name of the metric, which must have exactly one series: a fraction from 0 to 1, or the amount of
    /// finished work if there is a total.
    #[schemars(
        length(min = 1, max = 256),
        regex(pattern = r"^[a-zA-Z_:][a-zA-Z0-9_:]*$")
    )]
    pub name: String,
    /// Name of the metric with the task's total work. Absent: the first metric is a fraction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 256),
        regex(pattern = r"^[a-zA-Z_:][a-zA-Z0-9_:]*$")
    )]
    pub total: Option<String>,
}

fn default_metrics_path() -> String {
    "/metrics".to_owned()
}

/// Clones of stragglers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Speculation {
    /// Enabled, Observe (decide and report, but launch no clones) or Disabled.
    #[serde(default)]
    #[schemars(schema_with = "rule_schemas::speculation_mode")]
    pub mode: SpeculationMode,
    /// Maximum number of live clones of one task, not counting its first attempt.
    #[serde(default = "default_max_clones")]
    #[schemars(range(min = 0, max = 20))]
    pub max_clones_per_task: i32,
    /// Limit of clones, as a share of the job's own work: the slot-seconds of its clones may be at most this share of
    /// the slot-seconds of its other attempts, e.g. 0.2. A straggler may have one clone whatever the budget. Absent:
    /// no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<f64>,
}

/// The largest budget: no policy launches more than this number of clones per task.
pub const CLONE_BUDGET_MAX: f64 = 20.0;

/// Whether the value is a budget; false for NaN.
#[must_use]
pub fn is_clone_budget(share: f64) -> bool {
    (0.0..=CLONE_BUDGET_MAX).contains(&share)
}

fn default_max_clones() -> i32 {
    5
}

impl Default for Speculation {
    fn default() -> Self {
        Self {
            mode: SpeculationMode::default(),
            max_clones_per_task: default_max_clones(),
            budget: None,
        }
    }
}

/// The observed state of the job.
// `remote`: `unknown_fields` reads and writes it as a whole, with unknown fields.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", remote = "Self")]
pub struct DeadlineJobStatus {
    /// Generation of the specification that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Pending, Running, Suspended, Completing, Failing, Complete or Failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// The deadline as an instant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Time>,
    /// When the first attempt was launched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    /// When the last winner finished; only if the job is complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Time>,
    /// Probability of completion before the deadline, 0.000 to 1.000.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "pocd::deserialize"
    )]
    #[schemars(with = "Option<String>")]
    pub pocd: Option<Pocd>,
    /// Share of past jobs with a similar prediction that met their deadline, 0.000 to 1.000. Absent until 30 jobs
    /// with a deadline have ended.
    #[serde(
        rename = "calibratedPoCD",
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "pocd::deserialize"
    )]
    #[schemars(with = "Option<String>")]
    pub calibrated_pocd: Option<Pocd>,
    /// Expected finish of the last task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_completion_time: Option<Time>,
    /// Attempts that may still win.
    #[serde(default)]
    pub active: i32,
    /// Attempts among them whose pod is Ready, as of the last write. shed writes a change of this number
    /// alone after ten seconds.
    #[serde(default)]
    pub ready: i32,
    /// Clones among them.
    #[serde(default)]
    pub clones: i32,
    /// Attempts that shed stopped and that are still terminating.
    #[serde(default)]
    pub terminating: i32,
    /// Tasks with a winner.
    #[serde(default)]
    pub succeeded: i32,
    /// Tasks that have failed for good.
    #[serde(default)]
    pub failed: i32,
    /// Indexes of tasks with a winner, e.g. `0-17,19`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub completed_indexes: String,
    /// Indexes of tasks that have failed for good.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub failed_indexes: String,
    /// Totals of the job's attempts.
    #[serde(default)]
    pub attempts: AttemptCounts,
    /// With speculation.mode Observe: what Enabled would have done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed: Option<ObservedClones>,
    /// Conditions, by type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Vec<Condition>,
    /// What happened to the job: PoCD over time, attempts, and the last decisions about clones. shed renews it
    /// with writes that it makes for other reasons, and decides nothing on it.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "record::deserialize"
    )]
    #[schemars(with = "Option<JobRecord>")]
    pub record: Option<JobRecord>,
    /// The operator's ledger: the state that must survive a crash. Users must not edit it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ledger: Option<Ledger>,
    /// Fields that a newer operator wrote and this version does not know. Every write keeps them.
    #[serde(skip)]
    pub unknown: Unknown,
}

/// Totals over the job's life. Every attempt counts for exactly one outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AttemptCounts {
    /// First attempts launched.
    #[serde(default)]
    pub originals: i64,
    /// Clones launched.
    #[serde(default)]
    pub clones: i64,
    /// Retries launched.
    #[serde(default)]
    pub retries: i64,
    /// Attempts that won their task.
    #[serde(default)]
    pub won: i64,
    /// Clones among them.
    #[serde(default)]
    pub clone_wins: i64,
    /// Attempts that shed stopped, or that finished after a sibling had won.
    #[serde(default)]
    pub superseded: i64,
    /// Attempts that failed and count against their task's back-off limit.
    #[serde(default)]
    pub failed: i64,
    /// Clones that failed while a sibling lived.
    #[serde(default)]
    pub clone_failed: i64,
    /// Attempts lost to eviction, preemption, node loss or deletion by other clients.
    #[serde(default)]
    pub disrupted: i64,
    /// Attempts that finished after the deadline of a job with onMiss: Fail.
    #[serde(default)]
    pub late: i64,
    /// Attempts that the apiserver refused to create.
    #[serde(default)]
    pub refused: i64,
}

/// The clones that shed would have started for the job, as its model estimates. Each clone counts once, with the
/// figures of the first planning pass that decides on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObservedClones {
    /// Clones that shed would start now.
    #[serde(default)]
    pub clones: i32,
    /// Clones that shed would have started so far.
    #[serde(default)]
    pub total_clones: i32,
    /// Expected work of all these clones in slot-seconds, e.g. 84.000.
    #[serde(default)]
    #[schemars(with = "String")]
    pub slot_seconds: Decimal,
    /// Their price in expected deadlines that other jobs would lose, e.g. 0.040. Absent for policies without a price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub price: Option<Decimal>,
    /// Expected deadlines gained: by how much these clones would have raised PoCD, 0.000 to 1.000.
    #[serde(default)]
    #[schemars(with = "String")]
    pub gain: Decimal,
}

/// A list map by type, so that server-side apply by others merges and does not replace.
fn conditions_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let item = generator.subschema_for::<Condition>();
    schemars::json_schema!({
        "description": "Conditions, by type.",
        "type": "array",
        "items": item,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
    })
}
