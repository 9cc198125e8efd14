
package dev.shed.v1alpha1;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import com.fasterxml.jackson.annotation.JsonAnyGetter;
import com.fasterxml.jackson.annotation.JsonAnySetter;
import com.fasterxml.jackson.annotation.JsonIgnore;
import com.fasterxml.jackson.annotation.JsonInclude;
import com.fasterxml.jackson.annotation.JsonProperty;
import com.fasterxml.jackson.annotation.JsonPropertyDescription;
import com.fasterxml.jackson.annotation.JsonPropertyOrder;


/**
 * DeadlineJobStatus
 * <p>
 * The observed state of the job.
 * 
 */
@JsonInclude(JsonInclude.Include.NON_NULL)
@JsonPropertyOrder({
    "active",
    "attempts",
    "calibratedPoCD",
    "clones",
    "completedIndexes",
    "completionRange",
    "completionTime",
    "conditions",
    "deadline",
    "estimatedCompletionTime",
    "failed",
    "failedIndexes",
    "observed",
    "observedGeneration",
    "phase",
    "pocd",
    "ready",
    "record",
    "startTime",
    "succeeded",
    "terminating"
})
public class DeadlineJobStatus {

    /**
     * Attempts that may still win.
     * 
     */
    @JsonProperty("active")
    @JsonPropertyDescription("Attempts that may still win.")
    private Integer active;
    /**
     * Attempts
     * <p>
     * Totals of the job's attempts.
     * 
     */
    @JsonProperty("attempts")
    @JsonPropertyDescription("Totals of the job's attempts.")
    private Attempts attempts;
    /**
     * Probability that the job completes before its deadline, with the clones that shed may still start, 0.000 to
     *  1.000. It is corrected by how often past jobs with a similar prediction were in time.
     * 
     */
    @JsonProperty("calibratedPoCD")
    @JsonPropertyDescription("Probability that the job completes before its deadline, with the clones that shed may still start, 0.000 to\n1.000. It is corrected by how often past jobs with a similar prediction were in time.")
    private String calibratedPoCD;
    /**
     * Active attempts that are clones.
     * 
     */
    @JsonProperty("clones")
    @JsonPropertyDescription("Active attempts that are clones.")
    private Integer clones;
    /**
     * Indexes of tasks with a winner, e.g. `0-17,19`.
     * 
     */
    @JsonProperty("completedIndexes")
    @JsonPropertyDescription("Indexes of tasks with a winner, e.g. `0-17,19`.")
    private String completedIndexes;
    /**
     * CompletionRange
     * <p>
     * Likely finish of the last task. Absent while no attempt runs or nothing is known about the tasks.
     * 
     */
    @JsonProperty("completionRange")
    @JsonPropertyDescription("Likely finish of the last task. Absent while no attempt runs or nothing is known about the tasks.")
    private CompletionRange completionRange;
    /**
     * When the last winner finished; only if the job is complete.
     * 
     */
    @JsonProperty("completionTime")
    @JsonPropertyDescription("When the last winner finished; only if the job is complete.")
    private String completionTime;
    /**
     * Conditions, by type.
     * 
     */
    @JsonProperty("conditions")
    @JsonPropertyDescription("Conditions, by type.")
    private List<Condition> conditions;
    /**
     * The deadline as an instant.
     * 
     */
    @JsonProperty("deadline")
    @JsonPropertyDescription("The deadline as an instant.")
    private String deadline;
    /**
     * Expected finish of the last task.
     * 
     */
    @JsonProperty("estimatedCompletionTime")
    @JsonPropertyDescription("Expected finish of the last task.")
    private String estimatedCompletionTime;
    /**
     * Tasks that have failed for good.
     * 
     */
    @JsonProperty("failed")
    @JsonPropertyDescription("Tasks that have failed for good.")
    private Integer failed;
    /**
     * Indexes of tasks that have failed for good.
     * 
     */
    @JsonProperty("failedIndexes")
    @JsonPropertyDescription("Indexes of tasks that have failed for good.")
    private String failedIndexes;
    /**
     * Observed
     * <p>
     * With speculation.mode Observe: what Enabled would have done.
     * 
     */
    @JsonProperty("observed")
    @JsonPropertyDescription("With speculation.mode Observe: what Enabled would have done.")
    private Observed observed;
    /**
     * Generation of the specification that this status describes.
     * 
     */
    @JsonProperty("observedGeneration")
    @JsonPropertyDescription("Generation of the specification that this status describes.")
    private Integer observedGeneration;
    /**
     * Pending, Running, Suspended, Completing, Failing, Complete or Failed.
     * 
     */
    @JsonProperty("phase")
    @JsonPropertyDescription("Pending, Running, Suspended, Completing, Failing, Complete or Failed.")
    private String phase;
    /**
     * Probability that the current attempts alone complete the job before its deadline, 0.000 to 1.000.
     * 
     */
    @JsonProperty("pocd")
    @JsonPropertyDescription("Probability that the current attempts alone complete the job before its deadline, 0.000 to 1.000.")
    private String pocd;
    /**
     * Active attempts whose pod is Ready, as of the last write. shed writes a change of this number
     * alone after ten seconds.
     * 
     */
    @JsonProperty("ready")
    @JsonPropertyDescription("Active attempts whose pod is Ready, as of the last write. shed writes a change of this number\nalone after ten seconds.")
    private Integer ready;
    /**
     * Record
     * <p>
     * What happened to the job: PoCD over time, attempts, and the last decisions about clones. shed renews it
     * with writes that it makes for other reasons, and decides nothing on it.
     * 
     */
    @JsonProperty("record")
    @JsonPropertyDescription("What happened to the job: PoCD over time, attempts, and the last decisions about clones. shed renews it\nwith writes that it makes for other reasons, and decides nothing on it.")
    private Record record;
    /**
     * When the first attempt was launched.
     * 
     */
    @JsonProperty("startTime")
    @JsonPropertyDescription("When the first attempt was launched.")
    private String startTime;
    /**
     * Tasks with a winner.
     * 
     */
    @JsonProperty("succeeded")
    @JsonPropertyDescription("Tasks with a winner.")
    private Integer succeeded;
    /**
     * Attempts that shed stopped and that are still terminating.
     * 
     */
    @JsonProperty("terminating")
    @JsonPropertyDescription("Attempts that shed stopped and that are still terminating.")
    private Integer terminating;
    @JsonIgnore
    private Map<String, Object> additionalProperties = new LinkedHashMap<String, Object>();

    /**
     * Attempts that may still win.
     * 
     */
    @JsonProperty("active")
    public Integer getActive() {
        return active;
    }

    /**
     * Attempts that may still win.
     * 
     */
    @JsonProperty("active")
    public void setActive(Integer active) {
        this.active = active;
    }

    public DeadlineJobStatus withActive(Integer active) {
        this.active = active;
        return this;
    }

    /**
     * Attempts
     * <p>
     * Totals of the job's attempts.
     * 
     */
    @JsonProperty("attempts")
    public Attempts getAttempts() {
        return attempts;
    }

    /**
     * Attempts
     * <p>
     * Totals of the job's attempts.
     * 
     */
    @JsonProperty("attempts")
    public void setAttempts(Attempts attempts) {
        this.attempts = attempts;
    }

    public DeadlineJobStatus withAttempts(Attempts attempts) {
        this.attempts = attempts;
        return this;
    }

    /**
     * Probability that the job completes before its deadline, with the clones that shed may still start, 0.000 to
     *  1.000. It is corrected by how often past jobs with a similar prediction were in time.
     * 
     */
    @JsonProperty("calibratedPoCD")
    public String getCalibratedPoCD() {
        return calibratedPoCD;
    }

    /**
     * Probability that the job completes before its deadline, with the clones that shed may still start, 0.000 to
     *  1.000. It is corrected by how often past jobs with a similar prediction were in time.
     * 
     */
    @JsonProperty("calibratedPoCD")
    public void setCalibratedPoCD(String calibratedPoCD) {
        this.calibratedPoCD = calibratedPoCD;
    }

    public DeadlineJobStatus withCalibratedPoCD(String calibratedPoCD) {
        this.calibratedPoCD = calibratedPoCD;
        return this;
    }

    /**
     * Active attempts that are clones.
     * 
     */
    @JsonProperty("clones")
    public Integer getClones() {
        return clones;
    }

    /**
     * Active attempts that are clones.
     * 
     */
    @JsonProperty("clones")
    public void setClones(Integer clones) {
        this.clones = clones;
    }

    public DeadlineJobStatus withClones(Integer clones) {
        this.clones = clones;
        return this;
    }

    /**
     * Indexes of tasks with a winner, e.g. `0-17,19`.
     * 
     */
    @JsonProperty("completedIndexes")
    public String getCompletedIndexes() {
        return completedIndexes;
    }

    /**
     * Indexes of tasks with a winner, e.g. `0-17,19`.
     * 
     */
    @JsonProperty("completedIndexes")
    public void setCompletedIndexes(String completedIndexes) {
        this.completedIndexes = completedIndexes;
    }

    public DeadlineJobStatus withCompletedIndexes(String completedIndexes) {
        this.completedIndexes = completedIndexes;
        return this;
    }

    /**
     * CompletionRange
     * <p>
     * Likely finish of the last task. Absent while no attempt runs or nothing is known about the tasks.
     * 
     */
    @JsonProperty("completionRange")
    public CompletionRange getCompletionRange() {
        return completionRange;
    }

    /**
     * CompletionRange
     * <p>
     * Likely finish of the last task. Absent while no attempt runs or nothing is known about the tasks.
     * 
     */
    @JsonProperty("completionRange")
    public void setCompletionRange(CompletionRange completionRange) {
        this.completionRange = completionRange;
    }

    public DeadlineJobStatus withCompletionRange(CompletionRange completionRange) {
        this.completionRange = completionRange;
        return this;
    }

    /**
     * When the last winner finished; only if the job is complete.
     * 
     */
    @JsonProperty("completionTime")
    public String getCompletionTime() {
        return completionTime;
    }

    /**
     * When the last winner finished; only if the job is complete.
     * 
     */
    @JsonProperty("completionTime")
    public void setCompletionTime(String completionTime) {
        this.completionTime = completionTime;
    }

    public DeadlineJobStatus withCompletionTime(String completionTime) {
        this.completionTime = completionTime;
        return this;
    }

    /**
     * Conditions, by type.
     * 
     */
    @JsonProperty("conditions")
    public List<Condition> getConditions() {
        return conditions;
    }

    /**
     * Conditions, by type.
     * 
     */
    @JsonProperty("conditions")
    public void setConditions(List<Condition> conditions) {
        this.conditions = conditions;
    }

    public DeadlineJobStatus withConditions(List<Condition> conditions) {
        this.conditions = conditions;
        return this;
    }

    /**
     * The deadline as an instant.
     * 
     */
    @JsonProperty("deadline")
    public String getDeadline() {
        return deadline;
    }

    /**
     * The deadline as an instant.
     * 
     */
    @JsonProperty("deadline")
    public void setDeadline(String deadline) {
        this.deadline = deadline;
    }

    public DeadlineJobStatus withDeadline(String deadline) {
        this.deadline = deadline;
        return this;
    }

    /**
     * Expected finish of the last task.
     * 
     */
    @JsonProperty("estimatedCompletionTime")
    public String getEstimatedCompletionTime() {
        return estimatedCompletionTime;
    }

    /**
     * Expected finish of the last task.
     * 
     */
    @JsonProperty("estimatedCompletionTime")
    public void setEstimatedCompletionTime(String estimatedCompletionTime) {
        this.estimatedCompletionTime = estimatedCompletionTime;
    }

    public DeadlineJobStatus withEstimatedCompletionTime(String estimatedCompletionTime) {
        this.estimatedCompletionTime = estimatedCompletionTime;
        return this;
    }

    /**
     * Tasks that have failed for good.
     * 
     */
    @JsonProperty("failed")
    public Integer getFailed() {
        return failed;
    }

    /**
     * Tasks that have failed for good.
     * 
     */
    @JsonProperty("failed")
    public void setFailed(Integer failed) {
        this.failed = failed;
    }

    public DeadlineJobStatus withFailed(Integer failed) {
        this.failed = failed;
        return this;
    }

    /**
     * Indexes of tasks that have failed for good.
     * 
     */
    @JsonProperty("failedIndexes")
    public String getFailedIndexes() {
        return failedIndexes;
    }

    /**
     * Indexes of tasks that have failed for good.
     * 
     */
    @JsonProperty("failedIndexes")
    public void setFailedIndexes(String failedIndexes) {
        this.failedIndexes = failedIndexes;
    }

    public DeadlineJobStatus withFailedIndexes(String failedIndexes) {
        this.failedIndexes = failedIndexes;
        return this;
    }

    /**
     * Observed
     * <p>
     * With speculation.mode Observe: what Enabled would have done.
     * 
     */
    @JsonProperty("observed")
    public Observed getObserved() {
        return observed;
    }

    /**
     * Observed
     * <p>
     * With speculation.mode Observe: what Enabled would have done.
     * 
     */
    @JsonProperty("observed")
    public void setObserved(Observed observed) {
        this.observed = observed;
    }

    public DeadlineJobStatus withObserved(Observed observed) {
        this.observed = observed;
        return this;
    }

    /**
     * Generation of the specification that this status describes.
     * 
     */
    @JsonProperty("observedGeneration")
    public Integer getObservedGeneration() {
        return observedGeneration;
    }

    /**
     * Generation of the specification that this status describes.
     * 
     */
    @JsonProperty("observedGeneration")
    public void setObservedGeneration(Integer observedGeneration) {
        this.observedGeneration = observedGeneration;
    }

    public DeadlineJobStatus withObservedGeneration(Integer observedGeneration) {
        this.observedGeneration = observedGeneration;
        return this;
    }

    /**
     * Pending, Running, Suspended, Completing, Failing, Complete or Failed.
     * 
     */
    @JsonProperty("phase")
    public String getPhase() {
        return phase;
    }

    /**
     * Pending, Running, Suspended, Completing, Failing, Complete or Failed.
     * 
     */
    @JsonProperty("phase")
    public void setPhase(String phase) {
        this.phase = phase;
    }

    public DeadlineJobStatus withPhase(String phase) {
        this.phase = phase;
        return this;
    }

    /**
     * Probability that the current attempts alone complete the job before its deadline, 0.000 to 1.000.
     * 
     */
    @JsonProperty("pocd")
    public String getPocd() {
        return pocd;
    }

    /**
     * Probability that the current attempts alone complete the job before its deadline, 0.000 to 1.000.
     * 
     */
    @JsonProperty("pocd")
    public void setPocd(String pocd) {
        this.pocd = pocd;
    }

    public DeadlineJobStatus withPocd(String pocd) {
        this.pocd = pocd;
        return this;
    }

    /**
     * Active attempts whose pod is Ready, as of the last write. shed writes a change of this number
     * alone after ten seconds.
     * 
     */
    @JsonProperty("ready")
    public Integer getReady() {
        return ready;
    }

    /**
     * Active attempts whose pod is Ready, as of the last write. shed writes a change of this number
     * alone after ten seconds.
     * 
     */
    @JsonProperty("ready")
    public void setReady(Integer ready) {
        this.ready = ready;
    }

    public DeadlineJobStatus withReady(Integer ready) {
        this.ready = ready;
        return this;
    }

    /**
     * Record
     * <p>
     * What happened to the job: PoCD over time, attempts, and the last decisions about clones. shed renews it
     * with writes that it makes for other reasons, and decides nothing on it.
     * 
     */
    @JsonProperty("record")
    public Record getRecord() {
        return record;
    }

    /**
     * Record
     * <p>
     * What happened to the job: PoCD over time, attempts, and the last decisions about clones. shed renews it
     * with writes that it makes for other reasons, and decides nothing on it.
     * 
     */
    @JsonProperty("record")
    public void setRecord(Record record) {
        this.record = record;
    }

    public DeadlineJobStatus withRecord(Record record) {
        this.record = record;
        return this;
    }

    /**
     * When the first attempt was launched.
     * 
     */
    @JsonProperty("startTime")
    public String getStartTime() {
        return startTime;
    }

    /**
     * When the first attempt was launched.
     * 
     */
    @JsonProperty("startTime")
    public void setStartTime(String startTime) {
        this.startTime = startTime;
    }

    public DeadlineJobStatus withStartTime(String startTime) {
        this.startTime = startTime;
        return this;
    }

    /**
     * Tasks with a winner.
     * 
     */
    @JsonProperty("succeeded")
    public Integer getSucceeded() {
        return succeeded;
    }

    /**
     * Tasks with a winner.
     * 
     */
    @JsonProperty("succeeded")
    public void setSucceeded(Integer succeeded) {
        this.succeeded = succeeded;
    }

    public DeadlineJobStatus withSucceeded(Integer succeeded) {
        this.succeeded = succeeded;
        return this;
    }

    /**
     * Attempts that shed stopped and that are still terminating.
     * 
     */
    @JsonProperty("terminating")
    public Integer getTerminating() {
        return terminating;
    }

    /**
     * Attempts that shed stopped and that are still terminating.
     * 
     */
    @JsonProperty("terminating")
    public void setTerminating(Integer terminating) {
        this.terminating = terminating;
    }

    public DeadlineJobStatus withTerminating(Integer terminating) {
        this.terminating = terminating;
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

    public DeadlineJobStatus withAdditionalProperty(String name, Object value) {
        this.additionalProperties.put(name, value);
        return this;
    }

    @Override
    public String toString() {
        StringBuilder sb = new StringBuilder();
        sb.append(DeadlineJobStatus.class.getName()).append('@').append(Integer.toHexString(System.identityHashCode(this))).append('[');
        sb.append("active");
        sb.append('=');
        sb.append(((this.active == null)?"<null>":this.active));
        sb.append(',');
        sb.append("attempts");
        sb.append('=');
        sb.append(((this.attempts == null)?"<null>":this.attempts));
        sb.append(',');
        sb.append("calibratedPoCD");
        sb.append('=');
        sb.append(((this.calibratedPoCD == null)?"<null>":this.calibratedPoCD));
        sb.append(',');
        sb.append("clones");
        sb.append('=');
        sb.append(((this.clones == null)?"<null>":this.clones));
        sb.append(',');
        sb.append("completedIndexes");
        sb.append('=');
        sb.append(((this.completedIndexes == null)?"<null>":this.completedIndexes));
        sb.append(',');
        sb.append("completionRange");
        sb.append('=');
        sb.append(((this.completionRange == null)?"<null>":this.completionRange));
        sb.append(',');
        sb.append("completionTime");
        sb.append('=');
        sb.append(((this.completionTime == null)?"<null>":this.completionTime));
        sb.append(',');
        sb.append("conditions");
        sb.append('=');
        sb.append(((this.conditions == null)?"<null>":this.conditions));
        sb.append(',');
        sb.append("deadline");
        sb.append('=');
        sb.append(((this.deadline == null)?"<null>":this.deadline));
        sb.append(',');
        sb.append("estimatedCompletionTime");
        sb.append('=');
        sb.append(((this.estimatedCompletionTime == null)?"<null>":this.estimatedCompletionTime));
        sb.append(',');
        sb.append("failed");
        sb.append('=');
        sb.append(((this.failed == null)?"<null>":this.failed));
        sb.append(',');
        sb.append("failedIndexes");
        sb.append('=');
        sb.append(((this.failedIndexes == null)?"<null>":this.failedIndexes));
        sb.append(',');
        sb.append("observed");
        sb.append('=');
        sb.append(((this.observed == null)?"<null>":this.observed));
        sb.append(',');
        sb.append("observedGeneration");
        sb.append('=');
        sb.append(((this.observedGeneration == null)?"<null>":this.observedGeneration));
        sb.append(',');
        sb.append("phase");
        sb.append('=');
        sb.append(((this.phase == null)?"<null>":this.phase));
        sb.append(',');
        sb.append("pocd");
        sb.append('=');
        sb.append(((this.pocd == null)?"<null>":this.pocd));
        sb.append(',');
        sb.append("ready");
        sb.append('=');
        sb.append(((this.ready == null)?"<null>":this.ready));
        sb.append(',');
        sb.append("record");
        sb.append('=');
        sb.append(((this.record == null)?"<null>":this.record));
        sb.append(',');
        sb.append("startTime");
        sb.append('=');
        sb.append(((this.startTime == null)?"<null>":this.startTime));
        sb.append(',');
        sb.append("succeeded");
        sb.append('=');
        sb.append(((this.succeeded == null)?"<null>":this.succeeded));
        sb.append(',');
        sb.append("terminating");
        sb.append('=');
        sb.append(((this.terminating == null)?"<null>":this.terminating));
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

}
