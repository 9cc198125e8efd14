
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
 * DeadlineClock
 * <p>
 * The next time of day in a time zone after the job's creation. For a Job of a CronJob: after its scheduled
 * time.
 * 
 */
@JsonInclude(JsonInclude.Include.NON_NULL)
@JsonPropertyOrder({
    "time",
    "timeZone"
})
public class DeadlineClock {

    /**
     * Hour and minute, 00:00 to 23:59.
     * (Required)
     * 
     */
    @JsonProperty("time")
    @JsonPropertyDescription("Hour and minute, 00:00 to 23:59.")
    private String time;
    /**
     * Name from the IANA time zone database, e.g. Europe/Zurich or Etc/UTC.
     * (Required)
     * 
     */
    @JsonProperty("timeZone")
    @JsonPropertyDescription("Name from the IANA time zone database, e.g. Europe/Zurich or Etc/UTC.")
    private String timeZone;
    @JsonIgnore
    private Map<String, Object> additionalProperties = new LinkedHashMap<String, Object>();

    /**
     * Hour and minute, 00:00 to 23:59.
     * (Required)
     * 
     */
    @JsonProperty("time")
    public String getTime() {
        return time;
    }

    /**
     * Hour and minute, 00:00 to 23:59.
     * (Required)
     * 
     */
    @JsonProperty("time")
    public void setTime(String time) {
        this.time = time;
    }

    public DeadlineClock withTime(String time) {
        this.time = time;
        return this;
    }

    /**
     * Name from the IANA time zone database, e.g. Europe/Zurich or Etc/UTC.
     * (Required)
     * 
     */
    @JsonProperty("timeZone")
    public String getTimeZone() {
        return timeZone;
    }

    /**
     * Name from the IANA time zone database, e.g. Europe/Zurich or Etc/UTC.
     * (Required)
     * 
     */
    @JsonProperty("timeZone")
    public void setTimeZone(String timeZone) {
        this.timeZone = timeZone;
    }

    public DeadlineClock withTimeZone(String timeZone) {
        this.timeZone = timeZone;
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

    public DeadlineClock withAdditionalProperty(String name, Object value) {
        this.additionalProperties.put(name, value);
        return this;
    }

    @Override
    public String toString() {
        StringBuilder sb = new StringBuilder();
        sb.append(DeadlineClock.class.getName()).append('@').append(Integer.toHexString(System.identityHashCode(this))).append('[');
        sb.append("time");
        sb.append('=');
        sb.append(((this.time == null)?"<null>":this.time));
        sb.append(',');
        sb.append("timeZone");
        sb.append('=');
        sb.append(((this.timeZone == null)?"<null>":this.timeZone));
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
