
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
 * RecordDecision
 * <p>
 * A decision about a clone or a stop.
 * 
 */
@JsonInclude(JsonInclude.Include.NON_NULL)
@JsonPropertyOrder({
    "alternative",
    "gain",
    "price",
    "reason",
    "task",
    "time",
    "verdict"
})
public class RecordDecision {

    /**
     * The best use of the slot that was not chosen, in words.
     * 
     */
    @JsonProperty("alternative")
    @JsonPropertyDescription("The best use of the slot that was not chosen, in words.")
    private String alternative;
    /**
     * Expected deadlines that the clone gains; absent without figures.
     * 
     */
    @JsonProperty("gain")
    @JsonPropertyDescription("Expected deadlines that the clone gains; absent without figures.")
    private String gain;
    /**
     * The least gain at which the policy starts the clone; absent without figures.
     * 
     */
    @JsonProperty("price")
    @JsonPropertyDescription("The least gain at which the policy starts the clone; absent without figures.")
    private String price;
    /**
     * Why, e.g. Straggler, Capacity, `JobBudget` or Preempted.
     * (Required)
     * 
     */
    @JsonProperty("reason")
    @JsonPropertyDescription("Why, e.g. Straggler, Capacity, `JobBudget` or Preempted.")
    private String reason;
    /**
     * The task.
     * (Required)
     * 
     */
    @JsonProperty("task")
    @JsonPropertyDescription("The task.")
    private Integer task;
    /**
     * When shed decided so first.
     * (Required)
     * 
     */
    @JsonProperty("time")
    @JsonPropertyDescription("When shed decided so first.")
    private String time;
    /**
     * Granted (a clone was launched), Refused (a straggler got no clone), Stopped (an attempt was stopped) or
     * Observed (a clone would have been launched, but `speculation.mode` is Observe).
     * (Required)
     * 
     */
    @JsonProperty("verdict")
    @JsonPropertyDescription("Granted (a clone was launched), Refused (a straggler got no clone), Stopped (an attempt was stopped) or\nObserved (a clone would have been launched, but `speculation.mode` is Observe).")
    private String verdict;
    @JsonIgnore
    private Map<String, Object> additionalProperties = new LinkedHashMap<String, Object>();

    /**
     * The best use of the slot that was not chosen, in words.
     * 
     */
    @JsonProperty("alternative")
    public String getAlternative() {
        return alternative;
    }

    /**
     * The best use of the slot that was not chosen, in words.
     * 
     */
    @JsonProperty("alternative")
    public void setAlternative(String alternative) {
        this.alternative = alternative;
    }

    public RecordDecision withAlternative(String alternative) {
        this.alternative = alternative;
        return this;
    }

    /**
     * Expected deadlines that the clone gains; absent without figures.
     * 
     */
    @JsonProperty("gain")
    public String getGain() {
        return gain;
    }

    /**
     * Expected deadlines that the clone gains; absent without figures.
     * 
     */
    @JsonProperty("gain")
    public void setGain(String gain) {
        this.gain = gain;
    }

    public RecordDecision withGain(String gain) {
        this.gain = gain;
        return this;
    }

    /**
     * The least gain at which the policy starts the clone; absent without figures.
     * 
     */
    @JsonProperty("price")
    public String getPrice() {
        return price;
    }

    /**
     * The least gain at which the policy starts the clone; absent without figures.
     * 
     */
    @JsonProperty("price")
    public void setPrice(String price) {
        this.price = price;
    }

    public RecordDecision withPrice(String price) {
        this.price = price;
        return this;
    }

    /**
     * Why, e.g. Straggler, Capacity, `JobBudget` or Preempted.
     * (Required)
     * 
     */
    @JsonProperty("reason")
    public String getReason() {
        return reason;
    }

    /**
     * Why, e.g. Straggler, Capacity, `JobBudget` or Preempted.
     * (Required)
     * 
     */
    @JsonProperty("reason")
    public void setReason(String reason) {
        this.reason = reason;
    }

    public RecordDecision withReason(String reason) {
        this.reason = reason;
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

    public RecordDecision withTask(Integer task) {
        this.task = task;
        return this;
    }

    /**
     * When shed decided so first.
     * (Required)
     * 
     */
    @JsonProperty("time")
    public String getTime() {
        return time;
    }

    /**
     * When shed decided so first.
     * (Required)
     * 
     */
    @JsonProperty("time")
    public void setTime(String time) {
        this.time = time;
    }

    public RecordDecision withTime(String time) {
        this.time = time;
        return this;
    }

    /**
     * Granted (a clone was launched), Refused (a straggler got no clone), Stopped (an attempt was stopped) or
     * Observed (a clone would have been launched, but `speculation.mode` is Observe).
     * (Required)
     * 
     */
    @JsonProperty("verdict")
    public String getVerdict() {
        return verdict;
    }

    /**
     * Granted (a clone was launched), Refused (a straggler got no clone), Stopped (an attempt was stopped) or
     * Observed (a clone would have been launched, but `speculation.mode` is Observe).
     * (Required)
     * 
     */
    @JsonProperty("verdict")
    public void setVerdict(String verdict) {
        this.verdict = verdict;
    }

    public RecordDecision withVerdict(String verdict) {
        this.verdict = verdict;
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

    public RecordDecision withAdditionalProperty(String name, Object value) {
        this.additionalProperties.put(name, value);
        return this;
    }

    @Override
    public String toString() {
        StringBuilder sb = new StringBuilder();
        sb.append(RecordDecision.class.getName()).append('@').append(Integer.toHexString(System.identityHashCode(this))).append('[');
        sb.append("alternative");
        sb.append('=');
        sb.append(((this.alternative == null)?"<null>":this.alternative));
        sb.append(',');
        sb.append("gain");
        sb.append('=');
        sb.append(((this.gain == null)?"<null>":this.gain));
        sb.append(',');
        sb.append("price");
        sb.append('=');
        sb.append(((this.price == null)?"<null>":this.price));
        sb.append(',');
        sb.append("reason");
        sb.append('=');
        sb.append(((this.reason == null)?"<null>":this.reason));
        sb.append(',');
        sb.append("task");
        sb.append('=');
        sb.append(((this.task == null)?"<null>":this.task));
        sb.append(',');
        sb.append("time");
        sb.append('=');
        sb.append(((this.time == null)?"<null>":this.time));
        sb.append(',');
        sb.append("verdict");
        sb.append('=');
        sb.append(((this.verdict == null)?"<null>":this.verdict));
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
