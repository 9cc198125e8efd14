
package dev.shed.v1alpha1;

import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import com.fasterxml.jackson.annotation.JsonAnyGetter;
import com.fasterxml.jackson.annotation.JsonAnySetter;
import com.fasterxml.jackson.annotation.JsonCreator;
import com.fasterxml.jackson.annotation.JsonIgnore;
import com.fasterxml.jackson.annotation.JsonInclude;
import com.fasterxml.jackson.annotation.JsonProperty;
import com.fasterxml.jackson.annotation.JsonPropertyDescription;
import com.fasterxml.jackson.annotation.JsonPropertyOrder;
import com.fasterxml.jackson.annotation.JsonValue;
import io.fabric8.kubernetes.api.model.PodTemplateSpec;


/**
 * DeadlineJobSpec
 * <p>
 * Runs one pod attempt per task, estimates the probability that all tasks complete before the deadline
 * (PoCD), clones stragglers where clones pay, and keeps the fastest attempt of each task.
 * 
 */
@JsonInclude(JsonInclude.Include.NON_NULL)
@JsonPropertyOrder({
    "activeDeadlineSeconds",
    "backoffLimit",
    "backoffLimitPerIndex",
    "completions",
    "deadline",
    "expectedTaskDuration",
    "idempotency",
    "indexes",
    "managedBy",
    "maxFailedIndexes",
    "onMiss",
    "parallelism",
    "podFailurePolicy",
    "podReplacementPolicy",
    "preemption",
    "progress",
    "resume",
    "speculation",
    "successPolicy",
    "suspend",
    "targetPoCD",
    "template",
    "ttlSecondsAfterFinished"
})
public class DeadlineJobSpec {

    /**
     * Seconds that the job may run, not counting suspension and independent of its deadline: a limit that
     * stops the job, not a goal. Its clock restarts when the job is resumed.
     * 
     */
    @JsonProperty("activeDeadlineSeconds")
    @JsonPropertyDescription("Seconds that the job may run, not counting suspension and independent of its deadline: a limit that\nstops the job, not a goal. Its clock restarts when the job is resumed.")
    private Integer activeDeadlineSeconds;
    /**
     * Failures that all tasks together may have before the job fails. Absent: no limit beyond
     * backoffLimitPerIndex.
     * 
     */
    @JsonProperty("backoffLimit")
    @JsonPropertyDescription("Failures that all tasks together may have before the job fails. Absent: no limit beyond\nbackoffLimitPerIndex.")
    private Integer backoffLimit;
    /**
     * Failures that a task may have before it fails for good. Attempts that shed stopped, evictions, and
     * failures of clones while a sibling lives do not count.
     * 
     */
    @JsonProperty("backoffLimitPerIndex")
    @JsonPropertyDescription("Failures that a task may have before it fails for good. Attempts that shed stopped, evictions, and\nfailures of clones while a sibling lives do not count.")
    private Integer backoffLimitPerIndex;
    /**
     * How many tasks the job has; each runs with its own JOB_COMPLETION_INDEX from 0. You may change it
     * while the job runs: shed starts new tasks and stops tasks beyond the new number.
     * 
     */
    @JsonProperty("completions")
    @JsonPropertyDescription("How many tasks the job has; each runs with its own JOB_COMPLETION_INDEX from 0. You may change it\nwhile the job runs: shed starts new tasks and stops tasks beyond the new number.")
    private Integer completions;
    /**
     * Deadline
     * <p>
     * When the job must be complete. Required, except in the companion that shed creates for a batch/v1 Job.
     * 
     */
    @JsonProperty("deadline")
    @JsonPropertyDescription("When the job must be complete. Required, except in the companion that shed creates for a batch/v1 Job.")
    private Deadline deadline;
    /**
     * ExpectedTaskDuration
     * <p>
     * How long a task takes, if you know it: shed then estimates the job before its first report, e.g.
     * whether the deadline is feasible. Reports of the job's attempts outweigh it. Absent: shed learns from
     * reports and from earlier jobs of the same class. You may change it.
     * 
     */
    @JsonProperty("expectedTaskDuration")
    @JsonPropertyDescription("How long a task takes, if you know it: shed then estimates the job before its first report, e.g.\nwhether the deadline is feasible. Reports of the job's attempts outweigh it. Absent: shed learns from\nreports and from earlier jobs of the same class. You may change it.")
    private ExpectedTaskDuration expectedTaskDuration;
    /**
     * Idempotency
     * <p>
     * Whether two live copies of a task do harm: Safe (they do not), Fenced (both may run, but only the
     * attempt with the commit grant may publish, see `$SHED_BIN agent commit -- CMD`) or None (two must
     * never run, so the job gets no clones). Required, because a wrong guess publishes twice.
     * (Required)
     * 
     */
    @JsonProperty("idempotency")
    @JsonPropertyDescription("Whether two live copies of a task do harm: Safe (they do not), Fenced (both may run, but only the\nattempt with the commit grant may publish, see `$SHED_BIN agent commit -- CMD`) or None (two must\nnever run, so the job gets no clones). Required, because a wrong guess publishes twice.")
    private DeadlineJobSpec.Idempotency idempotency;
    /**
     * Tasks to run, e.g. `0,3-5`: those of another job that failed. Absent: all.
     * 
     */
    @JsonProperty("indexes")
    @JsonPropertyDescription("Tasks to run, e.g. `0,3-5`: those of another job that failed. Absent: all.")
    private String indexes;
    /**
     * The controller that runs the job. Default: shed.dev/deadline-controller. shed ignores jobs of other
     * controllers. shed.dev/job-companion marks the companions that shed creates: they hold the ledger of a
     * batch/v1 Job, which specifies everything else.
     * 
     */
    @JsonProperty("managedBy")
    @JsonPropertyDescription("The controller that runs the job. Default: shed.dev/deadline-controller. shed ignores jobs of other\ncontrollers. shed.dev/job-companion marks the companions that shed creates: they hold the ledger of a\nbatch/v1 Job, which specifies everything else.")
    private String managedBy;
    /**
     * Tasks that may fail for good before the job fails and shed stops the others. Absent: no limit.
     * 
     */
    @JsonProperty("maxFailedIndexes")
    @JsonPropertyDescription("Tasks that may fail for good before the job fails and shed stops the others. Absent: no limit.")
    private Integer maxFailedIndexes;
    /**
     * OnMiss
     * <p>
     * Action at the deadline: Continue (shed records the miss and the attempts continue) or Fail (shed stops
     * the attempts and the job fails).
     * 
     */
    @JsonProperty("onMiss")
    @JsonPropertyDescription("Action at the deadline: Continue (shed records the miss and the attempts continue) or Fail (shed stops\nthe attempts and the job fails).")
    private DeadlineJobSpec.OnMiss onMiss;
    /**
     * How many tasks may have a live attempt at a time, not counting clones. Default: completions. You may
     * change it while the job runs: if it is lowered, shed stops the tasks that started last and starts
     * them again later.
     * 
     */
    @JsonProperty("parallelism")
    @JsonPropertyDescription("How many tasks may have a live attempt at a time, not counting clones. Default: completions. You may\nchange it while the job runs: if it is lowered, shed stops the tasks that started last and starts\nthem again later.")
    private Integer parallelism;
    /**
     * PodFailurePolicy
     * <p>
     * Effect of a pod failure, by exit code or pod condition.
     * 
     */
    @JsonProperty("podFailurePolicy")
    @JsonPropertyDescription("Effect of a pod failure, by exit code or pod condition.")
    private PodFailurePolicy podFailurePolicy;
    /**
     * PodReplacementPolicy
     * <p>
     * When shed retries a task: TerminatingOrFailed (when its attempts have finished, or their node is
     * gone) or Failed (when its last attempt has finished).
     * 
     */
    @JsonProperty("podReplacementPolicy")
    @JsonPropertyDescription("When shed retries a task: TerminatingOrFailed (when its attempts have finished, or their node is\ngone) or Failed (when its last attempt has finished).")
    private DeadlineJobSpec.PodReplacementPolicy podReplacementPolicy;
    /**
     * Preemption
     * <p>
     * Whether shed may preempt a task's only attempt for a job that would otherwise miss its deadline:
     * Never, or WhenCheckpointed (shed stops an attempt that has a checkpoint and resumes the task from
     * there when a slot is free). Only the policy shed-prime preempts.
     * 
     */
    @JsonProperty("preemption")
    @JsonPropertyDescription("Whether shed may preempt a task's only attempt for a job that would otherwise miss its deadline:\nNever, or WhenCheckpointed (shed stops an attempt that has a checkpoint and resumes the task from\nthere when a slot is free). Only the policy shed-prime preempts.")
    private DeadlineJobSpec.Preemption preemption;
    /**
     * Progress
     * <p>
     * How attempts report progress. Absent: they do not report, and shed estimates from elapsed time alone.
     * 
     */
    @JsonProperty("progress")
    @JsonPropertyDescription("How attempts report progress. Absent: they do not report, and shed estimates from elapsed time alone.")
    private Progress progress;
    /**
     * Resume
     * <p>
     * Where clones and retries start: None (from zero), Checkpoint (from the best attempt's last
     * checkpoint, in SHED_RESUME_FILE) or Range (the original stops at a later unit of its input, and
     * clones process the rest: SHED_RANGE_START, SHED_RANGE_END, SHED_STOP_FILE).
     * 
     */
    @JsonProperty("resume")
    @JsonPropertyDescription("Where clones and retries start: None (from zero), Checkpoint (from the best attempt's last\ncheckpoint, in SHED_RESUME_FILE) or Range (the original stops at a later unit of its input, and\nclones process the rest: SHED_RANGE_START, SHED_RANGE_END, SHED_STOP_FILE).")
    private DeadlineJobSpec.Resume resume;
    /**
     * Speculation
     * <p>
     * Clones of stragglers.
     * 
     */
    @JsonProperty("speculation")
    @JsonPropertyDescription("Clones of stragglers.")
    private Speculation speculation;
    /**
     * SuccessPolicy
     * <p>
     * When the job succeeds before every task has.
     * 
     */
    @JsonProperty("successPolicy")
    @JsonPropertyDescription("When the job succeeds before every task has.")
    private SuccessPolicy successPolicy;
    /**
     * True: shed stops live attempts and starts none. The deadline's clock keeps running.
     * 
     */
    @JsonProperty("suspend")
    @JsonPropertyDescription("True: shed stops live attempts and starts none. The deadline's clock keeps running.")
    private Boolean suspend;
    /**
     * The PoCD at which shed stops starting clones, above 0 and at most 1, e.g. 0.95. `DeadlineFeasible`
     * reports whether the job can reach it. Absent: 0.9 for `DeadlineFeasible`, and the policy alone limits
     * clones.
     * 
     */
    @JsonProperty("targetPoCD")
    @JsonPropertyDescription("The PoCD at which shed stops starting clones, above 0 and at most 1, e.g. 0.95. `DeadlineFeasible`\nreports whether the job can reach it. Absent: 0.9 for `DeadlineFeasible`, and the policy alone limits\nclones.")
    private Double targetPoCD;
    /**
     * The pod to run for each attempt. restartPolicy is Never (default) or OnFailure.
     * (Required)
     * 
     */
    @JsonProperty("template")
    @JsonPropertyDescription("The pod to run for each attempt. restartPolicy is Never (default) or OnFailure.")
    private PodTemplateSpec template;
    /**
     * Seconds between the job's end and its deletion. Absent: shed never deletes it.
     * 
     */
    @JsonProperty("ttlSecondsAfterFinished")
    @JsonPropertyDescription("Seconds between the job's end and its deletion. Absent: shed never deletes it.")
    private Integer ttlSecondsAfterFinished;
    @JsonIgnore
    private Map<String, Object> additionalProperties = new LinkedHashMap<String, Object>();

    /**
     * Seconds that the job may run, not counting suspension and independent of its deadline: a limit that
     * stops the job, not a goal. Its clock restarts when the job is resumed.
     * 
     */
    @JsonProperty("activeDeadlineSeconds")
    public Integer getActiveDeadlineSeconds() {
        return activeDeadlineSeconds;
    }

    /**
     * Seconds that the job may run, not counting suspension and independent of its deadline: a limit that
     * stops the job, not a goal. Its clock restarts when the job is resumed.
     * 
     */
    @JsonProperty("activeDeadlineSeconds")
    public void setActiveDeadlineSeconds(Integer activeDeadlineSeconds) {
        this.activeDeadlineSeconds = activeDeadlineSeconds;
    }

    public DeadlineJobSpec withActiveDeadlineSeconds(Integer activeDeadlineSeconds) {
        this.activeDeadlineSeconds = activeDeadlineSeconds;
        return this;
    }

    /**
     * Failures that all tasks together may have before the job fails. Absent: no limit beyond
     * backoffLimitPerIndex.
     * 
     */
    @JsonProperty("backoffLimit")
    public Integer getBackoffLimit() {
        return backoffLimit;
    }

    /**
     * Failures that all tasks together may have before the job fails. Absent: no limit beyond
     * backoffLimitPerIndex.
     * 
     */
    @JsonProperty("backoffLimit")
    public void setBackoffLimit(Integer backoffLimit) {
        this.backoffLimit = backoffLimit;
    }

    public DeadlineJobSpec withBackoffLimit(Integer backoffLimit) {
        this.backoffLimit = backoffLimit;
        return this;
    }

    /**
     * Failures that a task may have before it fails for good. Attempts that shed stopped, evictions, and
     * failures of clones while a sibling lives do not count.
     * 
     */
    @JsonProperty("backoffLimitPerIndex")
    public Integer getBackoffLimitPerIndex() {
        return backoffLimitPerIndex;
    }

    /**
     * Failures that a task may have before it fails for good. Attempts that shed stopped, evictions, and
     * failures of clones while a sibling lives do not count.
     * 
     */
    @JsonProperty("backoffLimitPerIndex")
    public void setBackoffLimitPerIndex(Integer backoffLimitPerIndex) {
        this.backoffLimitPerIndex = backoffLimitPerIndex;
    }

    public DeadlineJobSpec withBackoffLimitPerIndex(Integer backoffLimitPerIndex) {
        this.backoffLimitPerIndex = backoffLimitPerIndex;
        return this;
    }

    /**
     * How many tasks the job has; each runs with its own JOB_COMPLETION_INDEX from 0. You may change it
     * while the job runs: shed starts new tasks and stops tasks beyond the new number.
     * 
     */
    @JsonProperty("completions")
    public Integer getCompletions() {
        return completions;
    }

    /**
     * How many tasks the job has; each runs with its own JOB_COMPLETION_INDEX from 0. You may change it
     * while the job runs: shed starts new tasks and stops tasks beyond the new number.
     * 
     */
    @JsonProperty("completions")
    public void setCompletions(Integer completions) {
        this.completions = completions;
    }

    public DeadlineJobSpec withCompletions(Integer completions) {
        this.completions = completions;
        return this;
    }

    /**
     * Deadline
     * <p>
     * When the job must be complete. Required, except in the companion that shed creates for a batch/v1 Job.
     * 
     */
    @JsonProperty("deadline")
    public Deadline getDeadline() {
        return deadline;
    }

    /**
     * Deadline
     * <p>
     * When the job must be complete. Required, except in the companion that shed creates for a batch/v1 Job.
     * 
     */
    @JsonProperty("deadline")
    public void setDeadline(Deadline deadline) {
        this.deadline = deadline;
    }

    public DeadlineJobSpec withDeadline(Deadline deadline) {
        this.deadline = deadline;
        return this;
    }

    /**
     * ExpectedTaskDuration
     * <p>
     * How long a task takes, if you know it: shed then estimates the job before its first report, e.g.
     * whether the deadline is feasible. Reports of the job's attempts outweigh it. Absent: shed learns from
     * reports and from earlier jobs of the same class. You may change it.
     * 
     */
    @JsonProperty("expectedTaskDuration")
    public ExpectedTaskDuration getExpectedTaskDuration() {
        return expectedTaskDuration;
    }

    /**
     * ExpectedTaskDuration
     * <p>
     * How long a task takes, if you know it: shed then estimates the job before its first report, e.g.
     * whether the deadline is feasible. Reports of the job's attempts outweigh it. Absent: shed learns from
     * reports and from earlier jobs of the same class. You may change it.
     * 
     */
    @JsonProperty("expectedTaskDuration")
    public void setExpectedTaskDuration(ExpectedTaskDuration expectedTaskDuration) {
        this.expectedTaskDuration = expectedTaskDuration;
    }

    public DeadlineJobSpec withExpectedTaskDuration(ExpectedTaskDuration expectedTaskDuration) {
        this.expectedTaskDuration = expectedTaskDuration;
        return this;
    }

    /**
     * Idempotency
     * <p>
     * Whether two live copies of a task do harm: Safe (they do not), Fenced (both may run, but only the
     * attempt with the commit grant may publish, see `$SHED_BIN agent commit -- CMD`) or None (two must
     * never run, so the job gets no clones). Required, because a wrong guess publishes twice.
     * (Required)
     * 
     */
    @JsonProperty("idempotency")
    public DeadlineJobSpec.Idempotency getIdempotency() {
        return idempotency;
    }

    /**
     * Idempotency
     * <p>
     * Whether two live copies of a task do harm: Safe (they do not), Fenced (both may run, but only the
     * attempt with the commit grant may publish, see `$SHED_BIN agent commit -- CMD`) or None (two must
     * never run, so the job gets no clones). Required, because a wrong guess publishes twice.
     * (Required)
     * 
     */
    @JsonProperty("idempotency")
    public void setIdempotency(DeadlineJobSpec.Idempotency idempotency) {
        this.idempotency = idempotency;
    }

    public DeadlineJobSpec withIdempotency(DeadlineJobSpec.Idempotency idempotency) {
        this.idempotency = idempotency;
        return this;
    }

    /**
     * Tasks to run, e.g. `0,3-5`: those of another job that failed. Absent: all.
     * 
     */
    @JsonProperty("indexes")
    public String getIndexes() {
        return indexes;
    }

    /**
     * Tasks to run, e.g. `0,3-5`: those of another job that failed. Absent: all.
     * 
     */
    @JsonProperty("indexes")
    public void setIndexes(String indexes) {
        this.indexes = indexes;
    }

    public DeadlineJobSpec withIndexes(String indexes) {
        this.indexes = indexes;
        return this;
    }

    /**
     * The controller that runs the job. Default: shed.dev/deadline-controller. shed ignores jobs of other
     * controllers. shed.dev/job-companion marks the companions that shed creates: they hold the ledger of a
     * batch/v1 Job, which specifies everything else.
     * 
     */
    @JsonProperty("managedBy")
    public String getManagedBy() {
        return managedBy;
    }

    /**
     * The controller that runs the job. Default: shed.dev/deadline-controller. shed ignores jobs of other
     * controllers. shed.dev/job-companion marks the companions that shed creates: they hold the ledger of a
     * batch/v1 Job, which specifies everything else.
     * 
     */
    @JsonProperty("managedBy")
    public void setManagedBy(String managedBy) {
        this.managedBy = managedBy;
    }

    public DeadlineJobSpec withManagedBy(String managedBy) {
        this.managedBy = managedBy;
        return this;
    }

    /**
     * Tasks that may fail for good before the job fails and shed stops the others. Absent: no limit.
     * 
     */
    @JsonProperty("maxFailedIndexes")
    public Integer getMaxFailedIndexes() {
        return maxFailedIndexes;
    }

    /**
     * Tasks that may fail for good before the job fails and shed stops the others. Absent: no limit.
     * 
     */
    @JsonProperty("maxFailedIndexes")
    public void setMaxFailedIndexes(Integer maxFailedIndexes) {
        this.maxFailedIndexes = maxFailedIndexes;
    }

    public DeadlineJobSpec withMaxFailedIndexes(Integer maxFailedIndexes) {
        this.maxFailedIndexes = maxFailedIndexes;
        return this;
    }

    /**
     * OnMiss
     * <p>
     * Action at the deadline: Continue (shed records the miss and the attempts continue) or Fail (shed stops
     * the attempts and the job fails).
     * 
     */
    @JsonProperty("onMiss")
    public DeadlineJobSpec.OnMiss getOnMiss() {
        return onMiss;
    }

    /**
     * OnMiss
     * <p>
     * Action at the deadline: Continue (shed records the miss and the attempts continue) or Fail (shed stops
     * the attempts and the job fails).
     * 
     */
    @JsonProperty("onMiss")
    public void setOnMiss(DeadlineJobSpec.OnMiss onMiss) {
        this.onMiss = onMiss;
    }

    public DeadlineJobSpec withOnMiss(DeadlineJobSpec.OnMiss onMiss) {
        this.onMiss = onMiss;
        return this;
    }

    /**
     * How many tasks may have a live attempt at a time, not counting clones. Default: completions. You may
     * change it while the job runs: if it is lowered, shed stops the tasks that started last and starts
     * them again later.
     * 
     */
    @JsonProperty("parallelism")
    public Integer getParallelism() {
        return parallelism;
    }

    /**
     * How many tasks may have a live attempt at a time, not counting clones. Default: completions. You may
     * change it while the job runs: if it is lowered, shed stops the tasks that started last and starts
     * them again later.
     * 
     */
    @JsonProperty("parallelism")
    public void setParallelism(Integer parallelism) {
        this.parallelism = parallelism;
    }

    public DeadlineJobSpec withParallelism(Integer parallelism) {
        this.parallelism = parallelism;
        return this;
    }

    /**
     * PodFailurePolicy
     * <p>
     * Effect of a pod failure, by exit code or pod condition.
     * 
     */
    @JsonProperty("podFailurePolicy")
    public PodFailurePolicy getPodFailurePolicy() {
        return podFailurePolicy;
    }

    /**
     * PodFailurePolicy
     * <p>
     * Effect of a pod failure, by exit code or pod condition.
     * 
     */
    @JsonProperty("podFailurePolicy")
    public void setPodFailurePolicy(PodFailurePolicy podFailurePolicy) {
        this.podFailurePolicy = podFailurePolicy;
    }

    public DeadlineJobSpec withPodFailurePolicy(PodFailurePolicy podFailurePolicy) {
        this.podFailurePolicy = podFailurePolicy;
        return this;
    }

    /**
     * PodReplacementPolicy
     * <p>
     * When shed retries a task: TerminatingOrFailed (when its attempts have finished, or their node is
     * gone) or Failed (when its last attempt has finished).
     * 
     */
    @JsonProperty("podReplacementPolicy")
    public DeadlineJobSpec.PodReplacementPolicy getPodReplacementPolicy() {
        return podReplacementPolicy;
    }

    /**
     * PodReplacementPolicy
     * <p>
     * When shed retries a task: TerminatingOrFailed (when its attempts have finished, or their node is
     * gone) or Failed (when its last attempt has finished).
     * 
     */
    @JsonProperty("podReplacementPolicy")
    public void setPodReplacementPolicy(DeadlineJobSpec.PodReplacementPolicy podReplacementPolicy) {
        this.podReplacementPolicy = podReplacementPolicy;
    }

    public DeadlineJobSpec withPodReplacementPolicy(DeadlineJobSpec.PodReplacementPolicy podReplacementPolicy) {
        this.podReplacementPolicy = podReplacementPolicy;
        return this;
    }

    /**
     * Preemption
     * <p>
     * Whether shed may preempt a task's only attempt for a job that would otherwise miss its deadline:
     * Never, or WhenCheckpointed (shed stops an attempt that has a checkpoint and resumes the task from
     * there when a slot is free). Only the policy shed-prime preempts.
     * 
     */
    @JsonProperty("preemption")
    public DeadlineJobSpec.Preemption getPreemption() {
        return preemption;
    }

    /**
     * Preemption
     * <p>
     * Whether shed may preempt a task's only attempt for a job that would otherwise miss its deadline:
     * Never, or WhenCheckpointed (shed stops an attempt that has a checkpoint and resumes the task from
     * there when a slot is free). Only the policy shed-prime preempts.
     * 
     */
    @JsonProperty("preemption")
    public void setPreemption(DeadlineJobSpec.Preemption preemption) {
        this.preemption = preemption;
    }

    public DeadlineJobSpec withPreemption(DeadlineJobSpec.Preemption preemption) {
        this.preemption = preemption;
        return this;
    }

    /**
     * Progress
     * <p>
     * How attempts report progress. Absent: they do not report, and shed estimates from elapsed time alone.
     * 
     */
    @JsonProperty("progress")
    public Progress getProgress() {
        return progress;
    }

    /**
     * Progress
     * <p>
     * How attempts report progress. Absent: they do not report, and shed estimates from elapsed time alone.
     * 
     */
    @JsonProperty("progress")
    public void setProgress(Progress progress) {
        this.progress = progress;
    }

    public DeadlineJobSpec withProgress(Progress progress) {
        this.progress = progress;
        return this;
    }

    /**
     * Resume
     * <p>
     * Where clones and retries start: None (from zero), Checkpoint (from the best attempt's last
     * checkpoint, in SHED_RESUME_FILE) or Range (the original stops at a later unit of its input, and
     * clones process the rest: SHED_RANGE_START, SHED_RANGE_END, SHED_STOP_FILE).
     * 
     */
    @JsonProperty("resume")
    public DeadlineJobSpec.Resume getResume() {
        return resume;
    }

    /**
     * Resume
     * <p>
     * Where clones and retries start: None (from zero), Checkpoint (from the best attempt's last
     * checkpoint, in SHED_RESUME_FILE) or Range (the original stops at a later unit of its input, and
     * clones process the rest: SHED_RANGE_START, SHED_RANGE_END, SHED_STOP_FILE).
     * 
     */
    @JsonProperty("resume")
    public void setResume(DeadlineJobSpec.Resume resume) {
        this.resume = resume;
    }

    public DeadlineJobSpec withResume(DeadlineJobSpec.Resume resume) {
        this.resume = resume;
        return this;
    }

    /**
     * Speculation
     * <p>
     * Clones of stragglers.
     * 
     */
    @JsonProperty("speculation")
    public Speculation getSpeculation() {
        return speculation;
    }

    /**
     * Speculation
     * <p>
     * Clones of stragglers.
     * 
     */
    @JsonProperty("speculation")
    public void setSpeculation(Speculation speculation) {
        this.speculation = speculation;
    }

    public DeadlineJobSpec withSpeculation(Speculation speculation) {
        this.speculation = speculation;
        return this;
    }

    /**
     * SuccessPolicy
     * <p>
     * When the job succeeds before every task has.
     * 
     */
    @JsonProperty("successPolicy")
    public SuccessPolicy getSuccessPolicy() {
        return successPolicy;
    }

    /**
     * SuccessPolicy
     * <p>
     * When the job succeeds before every task has.
     * 
     */
    @JsonProperty("successPolicy")
    public void setSuccessPolicy(SuccessPolicy successPolicy) {
        this.successPolicy = successPolicy;
    }

    public DeadlineJobSpec withSuccessPolicy(SuccessPolicy successPolicy) {
        this.successPolicy = successPolicy;
        return this;
    }

    /**
     * True: shed stops live attempts and starts none. The deadline's clock keeps running.
     * 
     */
    @JsonProperty("suspend")
    public Boolean getSuspend() {
        return suspend;
    }

    /**
     * True: shed stops live attempts and starts none. The deadline's clock keeps running.
     * 
     */
    @JsonProperty("suspend")
    public void setSuspend(Boolean suspend) {
        this.suspend = suspend;
    }

    public DeadlineJobSpec withSuspend(Boolean suspend) {
        this.suspend = suspend;
        return this;
    }

    /**
     * The PoCD at which shed stops starting clones, above 0 and at most 1, e.g. 0.95. `DeadlineFeasible`
     * reports whether the job can reach it. Absent: 0.9 for `DeadlineFeasible`, and the policy alone limits
     * clones.
     * 
     */
    @JsonProperty("targetPoCD")
    public Double getTargetPoCD() {
        return targetPoCD;
    }

    /**
     * The PoCD at which shed stops starting clones, above 0 and at most 1, e.g. 0.95. `DeadlineFeasible`
     * reports whether the job can reach it. Absent: 0.9 for `DeadlineFeasible`, and the policy alone limits
     * clones.
     * 
     */
    @JsonProperty("targetPoCD")
    public void setTargetPoCD(Double targetPoCD) {
        this.targetPoCD = targetPoCD;
    }

    public DeadlineJobSpec withTargetPoCD(Double targetPoCD) {
        this.targetPoCD = targetPoCD;
        return this;
    }

    /**
     * The pod to run for each attempt. restartPolicy is Never (default) or OnFailure.
     * (Required)
     * 
     */
    @JsonProperty("template")
    public PodTemplateSpec getTemplate() {
        return template;
    }

    /**
     * The pod to run for each attempt. restartPolicy is Never (default) or OnFailure.
     * (Required)
     * 
     */
    @JsonProperty("template")
    public void setTemplate(PodTemplateSpec template) {
        this.template = template;
    }

    public DeadlineJobSpec withTemplate(PodTemplateSpec template) {
        this.template = template;
        return this;
    }

    /**
     * Seconds between the job's end and its deletion. Absent: shed never deletes it.
     * 
     */
    @JsonProperty("ttlSecondsAfterFinished")
    public Integer getTtlSecondsAfterFinished() {
        return ttlSecondsAfterFinished;
    }

    /**
     * Seconds between the job's end and its deletion. Absent: shed never deletes it.
     * 
     */
    @JsonProperty("ttlSecondsAfterFinished")
    public void setTtlSecondsAfterFinished(Integer ttlSecondsAfterFinished) {
        this.ttlSecondsAfterFinished = ttlSecondsAfterFinished;
    }

    public DeadlineJobSpec withTtlSecondsAfterFinished(Integer ttlSecondsAfterFinished) {
        this.ttlSecondsAfterFinished = ttlSecondsAfterFinished;
        return this;
    }

    @JsonAnyGetter
    public Map<String, Object> getAdditionalProperties() {
        return this.additionalProperties;
    }

    @JsonAnySetter
    public void setAdditionalProperty(String name, Object value) {
        this.additionalProperties.put(name, value);
    }

    public DeadlineJobSpec withAdditionalProperty(String name, Object value) {
        this.additionalProperties.put(name, value);
        return this;
    }

    @Override
    public String toString() {
        StringBuilder sb = new StringBuilder();
        sb.append(DeadlineJobSpec.class.getName()).append('@').append(Integer.toHexString(System.identityHashCode(this))).append('[');
        sb.append("activeDeadlineSeconds");
        sb.append('=');
        sb.append(((this.activeDeadlineSeconds == null)?"<null>":this.activeDeadlineSeconds));
        sb.append(',');
        sb.append("backoffLimit");
        sb.append('=');
        sb.append(((this.backoffLimit == null)?"<null>":this.backoffLimit));
        sb.append(',');
        sb.append("backoffLimitPerIndex");
        sb.append('=');
        sb.append(((this.backoffLimitPerIndex == null)?"<null>":this.backoffLimitPerIndex));
        sb.append(',');
        sb.append("completions");
        sb.append('=');
        sb.append(((this.completions == null)?"<null>":this.completions));
        sb.append(',');
        sb.append("deadline");
        sb.append('=');
        sb.append(((this.deadline == null)?"<null>":this.deadline));
        sb.append(',');
        sb.append("expectedTaskDuration");
        sb.append('=');
        sb.append(((this.expectedTaskDuration == null)?"<null>":this.expectedTaskDuration));
        sb.append(',');
        sb.append("idempotency");
        sb.append('=');
        sb.append(((this.idempotency == null)?"<null>":this.idempotency));
        sb.append(',');
        sb.append("indexes");
        sb.append('=');
        sb.append(((this.indexes == null)?"<null>":this.indexes));
        sb.append(',');
        sb.append("managedBy");
        sb.append('=');
        sb.append(((this.managedBy == null)?"<null>":this.managedBy));
        sb.append(',');
        sb.append("maxFailedIndexes");
        sb.append('=');
        sb.append(((this.maxFailedIndexes == null)?"<null>":this.maxFailedIndexes));
        sb.append(',');
        sb.append("onMiss");
        sb.append('=');
        sb.append(((this.onMiss == null)?"<null>":this.onMiss));
        sb.append(',');
        sb.append("parallelism");
        sb.append('=');
        sb.append(((this.parallelism == null)?"<null>":this.parallelism));
        sb.append(',');
        sb.append("podFailurePolicy");
        sb.append('=');
        sb.append(((this.podFailurePolicy == null)?"<null>":this.podFailurePolicy));
        sb.append(',');
        sb.append("podReplacementPolicy");
        sb.append('=');
        sb.append(((this.podReplacementPolicy == null)?"<null>":this.podReplacementPolicy));
        sb.append(',');
        sb.append("preemption");
        sb.append('=');
        sb.append(((this.preemption == null)?"<null>":this.preemption));
        sb.append(',');
        sb.append("progress");
        sb.append('=');
        sb.append(((this.progress == null)?"<null>":this.progress));
        sb.append(',');
        sb.append("resume");
        sb.append('=');
        sb.append(((this.resume == null)?"<null>":this.resume));
        sb.append(',');
        sb.append("speculation");
        sb.append('=');
        sb.append(((this.speculation == null)?"<null>":this.speculation));
        sb.append(',');
        sb.append("successPolicy");
        sb.append('=');
        sb.append(((this.successPolicy == null)?"<null>":this.successPolicy));
        sb.append(',');
        sb.append("suspend");
        sb.append('=');
        sb.append(((this.suspend == null)?"<null>":this.suspend));
        sb.append(',');
        sb.append("targetPoCD");
        sb.append('=');
        sb.append(((this.targetPoCD == null)?"<null>":this.targetPoCD));
        sb.append(',');
        sb.append("template");
        sb.append('=');
        sb.append(((this.template == null)?"<null>":this.template));
        sb.append(',');
        sb.append("ttlSecondsAfterFinished");
        sb.append('=');
        sb.append(((this.ttlSecondsAfterFinished == null)?"<null>":this.ttlSecondsAfterFinished));
        sb.append(',');
        sb.append("additionalProperties");
        sb.append('=');
        sb.append(((this.additionalProperties == null)?"<null>":this.additionalProperties));
        sb.append(',');
        if (sb.charAt((sb.length()- 1)) == ',') {
            sb.setCharAt((sb.length()- 1), ']');
        } else {
            sb.append(']');
        }
        return sb.toString();
    }


    /**
     * Idempotency
     * <p>
     * Whether two live copies of a task do harm: Safe (they do not), Fenced (both may run, but only the
     * attempt with the commit grant may publish, see `$SHED_BIN agent commit -- CMD`) or None (two must
     * never run, so the job gets no clones). Required, because a wrong guess publishes twice.
     * 
     */
    public enum Idempotency {

        SAFE("Safe"),
        FENCED("Fenced"),
        NONE("None");
        private final String value;
        private final static Map<String, DeadlineJobSpec.Idempotency> CONSTANTS = new HashMap<String, DeadlineJobSpec.Idempotency>();

        static {
            for (DeadlineJobSpec.Idempotency c: values()) {
                CONSTANTS.put(c.value, c);
            }
        }

        Idempotency(String value) {
            this.value = value;
        }

        @Override
        public String toString() {
            return this.value;
        }

        @JsonValue
        public String value() {
            return this.value;
        }

        @JsonCreator
        public static DeadlineJobSpec.Idempotency fromValue(String value) {
            DeadlineJobSpec.Idempotency constant = CONSTANTS.get(value);
            if (constant == null) {
                throw new IllegalArgumentException(value);
            } else {
                return constant;
            }
        }

    }


    /**
     * OnMiss
     * <p>
     * Action at the deadline: Continue (shed records the miss and the attempts continue) or Fail (shed stops
     * the attempts and the job fails).
     * 
     */
    public enum OnMiss {

        FAIL("Fail"),
        CONTINUE("Continue");
        private final String value;
        private final static Map<String, DeadlineJobSpec.OnMiss> CONSTANTS = new HashMap<String, DeadlineJobSpec.OnMiss>();

        static {
            for (DeadlineJobSpec.OnMiss c: values()) {
                CONSTANTS.put(c.value, c);
            }
        }

        OnMiss(String value) {
            this.value = value;
        }

        @Override
        public String toString() {
            return this.value;
        }

        @JsonValue
        public String value() {
            return this.value;
        }

        @JsonCreator
        public static DeadlineJobSpec.OnMiss fromValue(String value) {
            DeadlineJobSpec.OnMiss constant = CONSTANTS.get(value);
            if (constant == null) {
                throw new IllegalArgumentException(value);
            } else {
                return constant;
            }
        }

    }


    /**
     * PodReplacementPolicy
     * <p>
     * When shed retries a task: TerminatingOrFailed (when its attempts have finished, or their node is
     * gone) or Failed (when its last attempt has finished).
     * 
     */
    public enum PodReplacementPolicy {

        TERMINATING_OR_FAILED("TerminatingOrFailed"),
        FAILED("Failed");
        private final String value;
        private final static Map<String, DeadlineJobSpec.PodReplacementPolicy> CONSTANTS = new HashMap<String, DeadlineJobSpec.PodReplacementPolicy>();

        static {
            for (DeadlineJobSpec.PodReplacementPolicy c: values()) {
                CONSTANTS.put(c.value, c);
            }
        }

        PodReplacementPolicy(String value) {
            this.value = value;
        }

        @Override
        public String toString() {
            return this.value;
        }

        @JsonValue
        public String value() {
            return this.value;
        }

        @JsonCreator
        public static DeadlineJobSpec.PodReplacementPolicy fromValue(String value) {
            DeadlineJobSpec.PodReplacementPolicy constant = CONSTANTS.get(value);
            if (constant == null) {
                throw new IllegalArgumentException(value);
            } else {
                return constant;
            }
        }

    }


    /**
     * Preemption
     * <p>
     * Whether shed may preempt a task's only attempt for a job that would otherwise miss its deadline:
     * Never, or WhenCheckpointed (shed stops an attempt that has a checkpoint and resumes the task from
     * there when a slot is free). Only the policy shed-prime preempts.
     * 
     */
    public enum Preemption {

        NEVER("Never"),
        WHEN_CHECKPOINTED("WhenCheckpointed");
        private final String value;
        private final static Map<String, DeadlineJobSpec.Preemption> CONSTANTS = new HashMap<String, DeadlineJobSpec.Preemption>();

        static {
            for (DeadlineJobSpec.Preemption c: values()) {
                CONSTANTS.put(c.value, c);
            }
        }

        Preemption(String value) {
            this.value = value;
        }

        @Override
        public String toString() {
            return this.value;
        }

        @JsonValue
        public String value() {
            return this.value;
        }

        @JsonCreator
        public static DeadlineJobSpec.Preemption fromValue(String value) {
            DeadlineJobSpec.Preemption constant = CONSTANTS.get(value);
            if (constant == null) {
                throw new IllegalArgumentException(value);
            } else {
                return constant;
            }
        }

    }


    /**
     * Resume
     * <p>
     * Where clones and retries start: None (from zero), Checkpoint (from the best attempt's last
     * checkpoint, in SHED_RESUME_FILE) or Range (the original stops at a later unit of its input, and
     * clones process the rest: SHED_RANGE_START, SHED_RANGE_END, SHED_STOP_FILE).
     * 
     */
    public enum Resume {

        NONE("None"),
        CHECKPOINT("Checkpoint"),
        RANGE("Range");
        private final String value;
        private final static Map<String, DeadlineJobSpec.Resume> CONSTANTS = new HashMap<String, DeadlineJobSpec.Resume>();

        static {
            for (DeadlineJobSpec.Resume c: values()) {
                CONSTANTS.put(c.value, c);
            }
        }

        Resume(String value) {
            this.value = value;
        }

        @Override
        public String toString() {
            return this.value;
        }

        @JsonValue
        public String value() {
            return this.value;
        }

        @JsonCreator
        public static DeadlineJobSpec.Resume fromValue(String value) {
            DeadlineJobSpec.Resume constant = CONSTANTS.get(value);
            if (constant == null) {
                throw new IllegalArgumentException(value);
            } else {
                return constant;
            }
        }

    }

}
