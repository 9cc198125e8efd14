
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
 * RecordPocd
 * <p>
 * PoCD at one time.
 * 
 */
@JsonInclude(JsonInclude.Include.NON_NULL)
@JsonPropertyOrder({
    "pocd",
    "time"
})
public class RecordPocd {

    /**
     * Probability of completion before the deadline, 0.000 to 1.000.
     * (Required)
     * 
     */
    @JsonProperty("pocd")
    @JsonPropertyDescription("Probability of completion before the deadline, 0.000 to 1.000.")
    private String pocd;
    /**
     * When it was estimated.
     * (Required)
     * 
     */
    @JsonProperty("time")
    @JsonPropertyDescription("When it was estimated.")
    private String time;
    @JsonIgnore
    private Map<String, Object> additionalProperties = new LinkedHashMap<String, Object>();

    /**
     * Probability of completion before the deadline, 0.000 to 1.000.
     * (Required)
     * 
     */
    @JsonProperty("pocd")
    public String getPocd() {
        return pocd;
    }

    /**
     * Probability of completion before the deadline, 0.000 to 1.000.
     * (Required)
     * 
     */
    @JsonProperty("pocd")
    public void setPocd(String pocd) {
        this.pocd = pocd;
    }

    public RecordPocd withPocd(String pocd) {
        this.pocd = pocd;
        return this;
    }

    /**
     * When it was estimated.
     * (Required)
     * 
     */
    @JsonProperty("time")
    public String getTime() {
        return time;
    }

    /**
     * When it was estimated.
     * (Required)
     * 
     */
    @JsonProperty("time")
    public void setTime(String time) {
        this.time = time;
    }

    public RecordPocd withTime(String time) {
        this.time = time;
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

    public RecordPocd withAdditionalProperty(String name, Object value) {
        this.additionalProperties.put(name, value);
        return this;
    }

    @Override
    public String toString() {
        StringBuilder sb = new StringBuilder();
        sb.append(RecordPocd.class.getName()).append('@').append(Integer.toHexString(System.identityHashCode(this))).append('[');
        sb.append("pocd");
        sb.append('=');
        sb.append(((this.pocd == null)?"<null>":this.pocd));
        sb.append(',');
        sb.append("time");
        sb.append('=');
        sb.append(((this.time == null)?"<null>":this.time));
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
