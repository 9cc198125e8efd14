//! `DeadlineJob`: N tasks, a pod template, a deadline.

use k8s_openapi::api::core::v1::PodTemplateSpec;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use shed_core::snapshot::{Idempotency, OnMiss, Preemption, SpeculationMode};

use super::Ledger;
use super::batch::{PodFailurePolicy, PodReplacementPolicy, SuccessPolicy};
use super::deadline::Deadline;
use super::job_status::DeadlineJobStatus;
use super::progress_source::ProgressSource;
use super::rule_schemas;
use super::tasks::TASKS_MAX;
use super::template_bounds;

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
    printcolumn(name = "Risk", type_ = "string", json_path = ".status.conditions[?(@.type=='DeadlineAtRisk')].reason", description = "Whether \
    the job is likely to miss its deadline, and why"),
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
    #[serde(default = "default_completions")]
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
    /// Action at the deadline: Continue (shed records the miss and the attempts continue) or Fail (shed stops
    /// the attempts and the job fails).
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

fn default_completions() -> i32 {
    1
}

fn default_backoff_limit() -> i32 {
    3
}

impl DeadlineJob {
    /// The ledger that its status holds.
    pub fn ledger(&self) -> Option<&Ledger> {
        self.status.as_ref()?.ledger.as_ref()
    }
}

impl DeadlineJobSpec {
    /// Whether shed runs the job.
    pub fn is_ours(&self) -> bool {
        let manager = self.managed_by.as_deref();
        manager.is_none_or(|manager| manager == super::batch::MANAGED_BY) || self.is_companion()
    }

    /// Whether it is the companion of a batch/v1 Job.
    pub fn is_companion(&self) -> bool {
        self.managed_by.as_deref() == Some(super::batch::COMPANION)
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
    /// the slot-seconds of its other attempts, e.g. 0.2. A straggler may have one clone whatever the budget. The lowest
    /// of this limit, that of the namespace and that of the cluster holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<f64>,
}

/// The largest budget: no policy launches more than this number of clones per task.
pub const CLONE_BUDGET_MAX: f64 = 20.0;

/// Whether the value is a budget; false for NaN.
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
