
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


/**
 * Deadline
 * <p>
 * When the job must be complete. Required, except in the companion that shed creates for a batch/v1 Job.
 * 
 */
@JsonInclude(JsonInclude.Include.NON_NULL)
@JsonPropertyOrder({
    "at",
    "clock",
    "clockStart",
    "history",
    "within"
})
public class Deadline {

    /**
     * Absolute instant, RFC 3339.
     * 
     */
    @JsonProperty("at")
    @JsonPropertyDescription("Absolute instant, RFC 3339.")
    private String at;
    /**
     * DeadlineClock
     * <p>
     * The next time of day in a time zone after the job's creation. For a Job of a CronJob: after its scheduled
     * time.
     * 
     */
    @JsonProperty("clock")
    @JsonPropertyDescription("The next time of day in a time zone after the job's creation. For a Job of a CronJob: after its scheduled\ntime.")
    private DeadlineClock clock;
    /**
     * DeadlineClockStart
     * <p>
     * Start of `within`: Creation (for a Job of a CronJob its scheduled time), or Start (the first planning pass
     * in which the job is not suspended).
     * 
     */
    @JsonProperty("clockStart")
    @JsonPropertyDescription("Start of `within`: Creation (for a Job of a CronJob its scheduled time), or Start (the first planning pass\nin which the job is not suspended).")
    private Deadline.DeadlineClockStart clockStart;
    /**
     * DeadlineHistory
     * <p>
     * A quantile of the completion times of earlier jobs with the same label shed.dev/class in the namespace.
     * 
     */
    @JsonProperty("history")
    @JsonPropertyDescription("A quantile of the completion times of earlier jobs with the same label shed.dev/class in the namespace.")
    private DeadlineHistory history;
    /**
     * Time from clockStart, e.g. 90s, 10m, 1h30m.
     * 
     */
    @JsonProperty("within")
    @JsonPropertyDescription("Time from clockStart, e.g. 90s, 10m, 1h30m.")
    private String within;
    @JsonIgnore
    private Map<String, Object> additionalProperties = new LinkedHashMap<String, Object>();

    /**
     * Absolute instant, RFC 3339.
     * 
     */
    @JsonProperty("at")
    public String getAt() {
        return at;
    }

    /**
     * Absolute instant, RFC 3339.
     * 
     */
    @JsonProperty("at")
    public void setAt(String at) {
        this.at = at;
    }

    public Deadline withAt(String at) {
        this.at = at;
        return this;
    }

    /**
     * DeadlineClock
     * <p>
     * The next time of day in a time zone after the job's creation. For a Job of a CronJob: after its scheduled
     * time.
     * 
     */
    @JsonProperty("clock")
    public DeadlineClock getClock() {
        return clock;
    }

    /**
     * DeadlineClock
     * <p>
     * The next time of day in a time zone after the job's creation. For a Job of a CronJob: after its scheduled
     * time.
     * 
     */
    @JsonProperty("clock")
    public void setClock(DeadlineClock clock) {
        this.clock = clock;
    }

    public Deadline withClock(DeadlineClock clock) {
        this.clock = clock;
        return this;
    }

    /**
     * DeadlineClockStart
     * <p>
     * Start of `within`: Creation (for a Job of a CronJob its scheduled time), or Start (the first planning pass
     * in which the job is not suspended).
     * 
     */
    @JsonProperty("clockStart")
    public Deadline.DeadlineClockStart getClockStart() {
        return clockStart;
    }

    /**
     * DeadlineClockStart
     * <p>
     * Start of `within`: Creation (for a Job of a CronJob its scheduled time), or Start (the first planning pass
     * in which the job is not suspended).
     * 
     */
    @JsonProperty("clockStart")
    public void setClockStart(Deadline.DeadlineClockStart clockStart) {
        this.clockStart = clockStart;
    }

    public Deadline withClockStart(Deadline.DeadlineClockStart clockStart) {
        this.clockStart = clockStart;
        return this;
    }

    /**
     * DeadlineHistory
     * <p>
     * A quantile of the completion times of earlier jobs with the same label shed.dev/class in the namespace.
     * 
     */
    @JsonProperty("history")
    public DeadlineHistory getHistory() {
        return history;
    }

    /**
     * DeadlineHistory
     * <p>
     * A quantile of the completion times of earlier jobs with the same label shed.dev/class in the namespace.
     * 
     */
    @JsonProperty("history")
    public void setHistory(DeadlineHistory history) {
        this.history = history;
    }

    public Deadline withHistory(DeadlineHistory history) {
        this.history = history;
        return this;
    }

    /**
     * Time from clockStart, e.g. 90s, 10m, 1h30m.
     * 
     */
    @JsonProperty("within")
    public String getWithin() {
        return within;
    }

    /**
     * Time from clockStart, e.g. 90s, 10m, 1h30m.
     * 
     */
    @JsonProperty("within")
    public void setWithin(String within) {
        this.within = within;
    }

    public Deadline withWithin(String within) {
        this.within = within;
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

    public Deadline withAdditionalProperty(String name, Object value) {
        this.additionalProperties.put(name, value);
        return this;
    }

    @Override
    public String toString() {
        StringBuilder sb = new StringBuilder();
        sb.append(Deadline.class.getName()).append('@').append(Integer.toHexString(System.identityHashCode(this))).append('[');
        sb.append("at");
        sb.append('=');
        sb.append(((this.at == null)?"<null>":this.at));
        sb.append(',');
        sb.append("clock");
        sb.append('=');
        sb.append(((this.clock == null)?"<null>":this.clock));
        sb.append(',');
        sb.append("clockStart");
        sb.append('=');
        sb.append(((this.clockStart == null)?"<null>":this.clockStart));
        sb.append(',');
        sb.append("history");
        sb.append('=');
        sb.append(((this.history == null)?"<null>":this.history));
        sb.append(',');
        sb.append("within");
        sb.append('=');
        sb.append(((this.within == null)?"<null>":this.within));
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
     * DeadlineClockStart
     * <p>
     * Start of `within`: Creation (for a Job of a CronJob its scheduled time), or Start (the first planning pass
     * in which the job is not suspended).
     * 
     */
    public enum DeadlineClockStart {

        CREATION("Creation"),
        START("Start");
        private final String value;
        private final static Map<String, Deadline.DeadlineClockStart> CONSTANTS = new HashMap<String, Deadline.DeadlineClockStart>();

        static {
            for (Deadline.DeadlineClockStart c: values()) {
                CONSTANTS.put(c.value, c);
            }
        }

        DeadlineClockStart(String value) {
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
        public static Deadline.DeadlineClockStart fromValue(String value) {
            Deadline.DeadlineClockStart constant = CONSTANTS.get(value);
            if (constant == null) {
                throw new IllegalArgumentException(value);
            } else {
                return constant;
            }
        }

    }

}
