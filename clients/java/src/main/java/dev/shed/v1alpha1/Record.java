
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
 * Record
 * <p>
 * What happened to the job: PoCD over time, attempts, and the last decisions about clones. shed renews it
 * with writes that it makes for other reasons, and decides nothing on it.
 * 
 */
@JsonInclude(JsonInclude.Include.NON_NULL)
@JsonPropertyOrder({
    "attempts",
    "decisions",
    "omittedAttempts",
    "pocd",
    "time",
    "waiting"
})
public class Record {

    /**
     * Attempts by task and number, also those that have ended. Attempts of tasks that had a clone, a failure or a
     * late forecast are left out last.
     * 
     */
    @JsonProperty("attempts")
    @JsonPropertyDescription("Attempts by task and number, also those that have ended. Attempts of tasks that had a clone, a failure or a\nlate forecast are left out last.")
    private List<RecordAttempt> attempts;
    /**
     * The last decisions about clones and stops, oldest first. A decision that repeats has one entry, with the time
     * and the figures of its first occurrence.
     * 
     */
    @JsonProperty("decisions")
    @JsonPropertyDescription("The last decisions about clones and stops, oldest first. A decision that repeats has one entry, with the time\nand the figures of its first occurrence.")
    private List<RecordDecision> decisions;
    /**
     * Attempts of the job that are not listed, as far as shed knows.
     * 
     */
    @JsonProperty("omittedAttempts")
    @JsonPropertyDescription("Attempts of the job that are not listed, as far as shed knows.")
    private Integer omittedAttempts;
    /**
     * PoCD over time, oldest first, at most 32 points. shed leaves out points near the line between their neighbors.
     * 
     */
    @JsonProperty("pocd")
    @JsonPropertyDescription("PoCD over time, oldest first, at most 32 points. shed leaves out points near the line between their neighbors.")
    private List<RecordPocd> pocd;
    /**
     * When shed made this record.
     * (Required)
     * 
     */
    @JsonProperty("time")
    @JsonPropertyDescription("When shed made this record.")
    private String time;
    /**
     * RecordWaiting
     * <p>
     * First attempts and retries that wait, if there are any.
     * 
     */
    @JsonProperty("waiting")
    @JsonPropertyDescription("First attempts and retries that wait, if there are any.")
    private RecordWaiting waiting;
    @JsonIgnore
    private Map<String, Object> additionalProperties = new LinkedHashMap<String, Object>();

    /**
     * Attempts by task and number, also those that have ended. Attempts of tasks that had a clone, a failure or a
     * late forecast are left out last.
     * 
     */
    @JsonProperty("attempts")
    public List<RecordAttempt> getAttempts() {
        return attempts;
    }

    /**
     * Attempts by task and number, also those that have ended. Attempts of tasks that had a clone, a failure or a
     * late forecast are left out last.
     * 
     */
    @JsonProperty("attempts")
    public void setAttempts(List<RecordAttempt> attempts) {
        this.attempts = attempts;
    }

    public Record withAttempts(List<RecordAttempt> attempts) {
        this.attempts = attempts;
        return this;
    }

    /**
     * The last decisions about clones and stops, oldest first. A decision that repeats has one entry, with the time
     * and the figures of its first occurrence.
     * 
     */
    @JsonProperty("decisions")
    public List<RecordDecision> getDecisions() {
        return decisions;
    }

    /**
     * The last decisions about clones and stops, oldest first. A decision that repeats has one entry, with the time
     * and the figures of its first occurrence.
     * 
     */
    @JsonProperty("decisions")
    public void setDecisions(List<RecordDecision> decisions) {
        this.decisions = decisions;
    }

    public Record withDecisions(List<RecordDecision> decisions) {
        this.decisions = decisions;
        return this;
    }

    /**
     * Attempts of the job that are not listed, as far as shed knows.
     * 
     */
    @JsonProperty("omittedAttempts")
    public Integer getOmittedAttempts() {
        return omittedAttempts;
    }

    /**
     * Attempts of the job that are not listed, as far as shed knows.
     * 
     */
    @JsonProperty("omittedAttempts")
    public void setOmittedAttempts(Integer omittedAttempts) {
        this.omittedAttempts = omittedAttempts;
    }

    public Record withOmittedAttempts(Integer omittedAttempts) {
        this.omittedAttempts = omittedAttempts;
        return this;
    }

    /**
     * PoCD over time, oldest first, at most 32 points. shed leaves out points near the line between their neighbors.
     * 
     */
    @JsonProperty("pocd")
    public List<RecordPocd> getPocd() {
        return pocd;
    }

    /**
     * PoCD over time, oldest first, at most 32 points. shed leaves out points near the line between their neighbors.
     * 
     */
    @JsonProperty("pocd")
    public void setPocd(List<RecordPocd> pocd) {
        this.pocd = pocd;
    }

    public Record withPocd(List<RecordPocd> pocd) {
        this.pocd = pocd;
        return this;
    }

    /**
     * When shed made this record.
     * (Required)
     * 
     */
    @JsonProperty("time")
    public String getTime() {
        return time;
    }

    /**
     * When shed made this record.
     * (Required)
     * 
     */
    @JsonProperty("time")
    public void setTime(String time) {
        this.time = time;
    }

    public Record withTime(String time) {
        this.time = time;
        return this;
    }

    /**
     * RecordWaiting
     * <p>
     * First attempts and retries that wait, if there are any.
     * 
     */
    @JsonProperty("waiting")
    public RecordWaiting getWaiting() {
        return waiting;
    }

    /**
     * RecordWaiting
     * <p>
     * First attempts and retries that wait, if there are any.
     * 
     */
    @JsonProperty("waiting")
    public void setWaiting(RecordWaiting waiting) {
        this.waiting = waiting;
    }

    public Record withWaiting(RecordWaiting waiting) {
        this.waiting = waiting;
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

    public Record withAdditionalProperty(String name, Object value) {
        this.additionalProperties.put(name, value);
        return this;
    }

    @Override
    public String toString() {
        StringBuilder sb = new StringBuilder();
        sb.append(Record.class.getName()).append('@').append(Integer.toHexString(System.identityHashCode(this))).append('[');
        sb.append("attempts");
        sb.append('=');
        sb.append(((this.attempts == null)?"<null>":this.attempts));
        sb.append(',');
        sb.append("decisions");
        sb.append('=');
        sb.append(((this.decisions == null)?"<null>":this.decisions));
        sb.append(',');
        sb.append("omittedAttempts");
        sb.append('=');
        sb.append(((this.omittedAttempts == null)?"<null>":this.omittedAttempts));
        sb.append(',');
        sb.append("pocd");
        sb.append('=');
        sb.append(((this.pocd == null)?"<null>":this.pocd));
        sb.append(',');
        sb.append("time");
        sb.append('=');
        sb.append(((this.time == null)?"<null>":this.time));
        sb.append(',');
        sb.append("waiting");
        sb.append('=');
        sb.append(((this.waiting == null)?"<null>":this.waiting));
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
