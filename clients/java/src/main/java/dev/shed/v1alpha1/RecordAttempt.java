
package dev.shed.v1alpha1;

import java.util.LinkedHashMap;
import java.util.Map;
import com.fasterxml.jackson.annotation.JsonAnyGetter;
import com.fasterxml.jackson.annotation.JsonAnySetter;
import com.fasterxml.jackson.annotation.JsonIgnore;
import com.fasterxml.jackson.annotation.JsonInclude;
import com.fasterxml.jackson.annotation.JsonProperty;
import com.fasterxml.jackson.annotation.JsonPropertyDescription;
import com.fasterxml.jackson.annotation.JsonPropertyOrder;


/**
 * RecordAttempt
 * <p>
 * One attempt of a task.
 * 
 */
@JsonInclude(JsonInclude.Include.NON_NULL)
@JsonPropertyOrder({
    "attempt",
    "endTime",
    "estimatedEndTime",
    "kind",
    "node",
    "progress",
    "resumePoint",
    "resumedFrom",
    "startTime",
    "state",
    "task"
})
public class RecordAttempt {

    /**
     * Number of the attempt within its task, as in the name of its pod.
     * (Required)
     * 
     */
    @JsonProperty("attempt")
    @JsonPropertyDescription("Number of the attempt within its task, as in the name of its pod.")
    private Integer attempt;
    /**
     * When it ended, or when shed learned that.
     * 
     */
    @JsonProperty("endTime")
    @JsonPropertyDescription("When it ended, or when shed learned that.")
    private String endTime;
    /**
     * When it is expected to end. Given for stragglers, clones and tasks at risk.
     * 
     */
    @JsonProperty("estimatedEndTime")
    @JsonPropertyDescription("When it is expected to end. Given for stragglers, clones and tasks at risk.")
    private String estimatedEndTime;
    /**
     * Original, Clone or Retry.
     * (Required)
     * 
     */
    @JsonProperty("kind")
    @JsonPropertyDescription("Original, Clone or Retry.")
    private String kind;
    /**
     * Its node, once it has one.
     * 
     */
    @JsonProperty("node")
    @JsonPropertyDescription("Its node, once it has one.")
    private String node;
    /**
     * Its last report, from 0.000 to 1.000.
     * 
     */
    @JsonProperty("progress")
    @JsonPropertyDescription("Its last report, from 0.000 to 1.000.")
    private String progress;
    /**
     * Progress from which a successor could resume.
     * 
     */
    @JsonProperty("resumePoint")
    @JsonPropertyDescription("Progress from which a successor could resume.")
    private String resumePoint;
    /**
     * Progress at which it began; absent: from zero.
     * 
     */
    @JsonProperty("resumedFrom")
    @JsonPropertyDescription("Progress at which it began; absent: from zero.")
    private String resumedFrom;
    /**
     * When its container started.
     * 
     */
    @JsonProperty("startTime")
    @JsonPropertyDescription("When its container started.")
    private String startTime;
    /**
     * Pending, Running, Won, Stopped, Failed, Disrupted or Late.
     * (Required)
     * 
     */
    @JsonProperty("state")
    @JsonPropertyDescription("Pending, Running, Won, Stopped, Failed, Disrupted or Late.")
    private String state;
    /**
     * The task.
     * (Required)
     * 
     */
    @JsonProperty("task")
    @JsonPropertyDescription("The task.")
    private Integer task;
    @JsonIgnore
    private Map<String, Object> additionalProperties = new LinkedHashMap<String, Object>();

    /**
     * Number of the attempt within its task, as in the name of its pod.
     * (Required)
     * 
     */
    @JsonProperty("attempt")
    public Integer getAttempt() {
        return attempt;
    }

    /**
     * Number of the attempt within its task, as in the name of its pod.
     * (Required)
     * 
     */
    @JsonProperty("attempt")
    public void setAttempt(Integer attempt) {
        this.attempt = attempt;
    }

    public RecordAttempt withAttempt(Integer attempt) {
        this.attempt = attempt;
        return this;
    }

    /**
     * When it ended, or when shed learned that.
     * 
     */
    @JsonProperty("endTime")
    public String getEndTime() {
        return endTime;
    }

    /**
     * When it ended, or when shed learned that.
     * 
     */
    @JsonProperty("endTime")
    public void setEndTime(String endTime) {
        this.endTime = endTime;
    }

    public RecordAttempt withEndTime(String endTime) {
        this.endTime = endTime;
        return this;
    }

    /**
     * When it is expected to end. Given for stragglers, clones and tasks at risk.
     * 
     */
    @JsonProperty("estimatedEndTime")
    public String getEstimatedEndTime() {
        return estimatedEndTime;
    }

    /**
     * When it is expected to end. Given for stragglers, clones and tasks at risk.
     * 
     */
    @JsonProperty("estimatedEndTime")
    public void setEstimatedEndTime(String estimatedEndTime) {
        this.estimatedEndTime = estimatedEndTime;
    }

    public RecordAttempt withEstimatedEndTime(String estimatedEndTime) {
        this.estimatedEndTime = estimatedEndTime;
        return this;
    }

    /**
     * Original, Clone or Retry.
     * (Required)
     * 
     */
    @JsonProperty("kind")
    public String getKind() {
        return kind;
    }

    /**
     * Original, Clone or Retry.
     * (Required)
     * 
     */
    @JsonProperty("kind")
    public void setKind(String kind) {
        this.kind = kind;
    }

    public RecordAttempt withKind(String kind) {
        this.kind = kind;
        return this;
    }

    /**
     * Its node, once it has one.
     * 
     */
    @JsonProperty("node")
    public String getNode() {
        return node;
    }

    /**
     * Its node, once it has one.
     * 
     */
    @JsonProperty("node")
    public void setNode(String node) {
        this.node = node;
    }

    public RecordAttempt withNode(String node) {
        this.node = node;
        return this;
    }

    /**
     * Its last report, from 0.000 to 1.000.
     * 
     */
    @JsonProperty("progress")
    public String getProgress() {
        return progress;
    }

    /**
     * Its last report, from 0.000 to 1.000.
     * 
     */
    @JsonProperty("progress")
    public void setProgress(String progress) {
        this.progress = progress;
    }

    public RecordAttempt withProgress(String progress) {
        this.progress = progress;
        return this;
    }

    /**
     * Progress from which a successor could resume.
     * 
     */
    @JsonProperty("resumePoint")
    public String getResumePoint() {
        return resumePoint;
    }

    /**
     * Progress from which a successor could resume.
     * 
     */
    @JsonProperty("resumePoint")
    public void setResumePoint(String resumePoint) {
        this.resumePoint = resumePoint;
    }

    public RecordAttempt withResumePoint(String resumePoint) {
        this.resumePoint = resumePoint;
        return this;
    }

    /**
     * Progress at which it began; absent: from zero.
     * 
     */
    @JsonProperty("resumedFrom")
    public String getResumedFrom() {
        return resumedFrom;
    }

    /**
     * Progress at which it began; absent: from zero.
     * 
     */
    @JsonProperty("resumedFrom")
    public void setResumedFrom(String resumedFrom) {
        this.resumedFrom = resumedFrom;
    }

    public RecordAttempt withResumedFrom(String resumedFrom) {
        this.resumedFrom = resumedFrom;
        return this;
    }

    /**
     * When its container started.
     * 
     */
    @JsonProperty("startTime")
    public String getStartTime() {
        return startTime;
    }

    /**
     * When its container started.
     * 
     */
    @JsonProperty("startTime")
    public void setStartTime(String startTime) {
        this.startTime = startTime;
    }

    public RecordAttempt withStartTime(String startTime) {
        this.startTime = startTime;
        return this;
    }

    /**
     * Pending, Running, Won, Stopped, Failed, Disrupted or Late.
     * (Required)
     * 
     */
    @JsonProperty("state")
    public String getState() {
        return state;
    }

    /**
     * Pending, Running, Won, Stopped, Failed, Disrupted or Late.
     * (Required)
     * 
     */
    @JsonProperty("state")
    public void setState(String state) {
        this.state = state;
    }

    public RecordAttempt withState(String state) {
        this.state = state;
        return this;
    }

    /**
     * The task.
     * (Required)
     * 
     */
    @JsonProperty("task")
    public Integer getTask() {
        return task;
    }

    /**
     * The task.
     * (Required)
     * 
     */
    @JsonProperty("task")
    public void setTask(Integer task) {
        this.task = task;
    }

    public RecordAttempt withTask(Integer task) {
        this.task = task;
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

    public RecordAttempt withAdditionalProperty(String name, Object value) {
        this.additionalProperties.put(name, value);
        return this;
    }

    @Override
    public String toString() {
        StringBuilder sb = new StringBuilder();
        sb.append(RecordAttempt.class.getName()).append('@').append(Integer.toHexString(System.identityHashCode(this))).append('[');
        sb.append("attempt");
        sb.append('=');
        sb.append(((this.attempt == null)?"<null>":this.attempt));
        sb.append(',');
        sb.append("endTime");
        sb.append('=');
        sb.append(((this.endTime == null)?"<null>":this.endTime));
        sb.append(',');
        sb.append("estimatedEndTime");
        sb.append('=');
        sb.append(((this.estimatedEndTime == null)?"<null>":this.estimatedEndTime));
        sb.append(',');
        sb.append("kind");
        sb.append('=');
        sb.append(((this.kind == null)?"<null>":this.kind));
        sb.append(',');
        sb.append("node");
        sb.append('=');
        sb.append(((this.node == null)?"<null>":this.node));
        sb.append(',');
        sb.append("progress");
        sb.append('=');
        sb.append(((this.progress == null)?"<null>":this.progress));
        sb.append(',');
        sb.append("resumePoint");
        sb.append('=');
        sb.append(((this.resumePoint == null)?"<null>":this.resumePoint));
        sb.append(',');
        sb.append("resumedFrom");
        sb.append('=');
        sb.append(((this.resumedFrom == null)?"<null>":this.resumedFrom));
        sb.append(',');
        sb.append("startTime");
        sb.append('=');
        sb.append(((this.startTime == null)?"<null>":this.startTime));
        sb.append(',');
        sb.append("state");
        sb.append('=');
        sb.append(((this.state == null)?"<null>":this.state));
        sb.append(',');
        sb.append("task");
        sb.append('=');
        sb.append(((this.task == null)?"<null>":this.task));
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
