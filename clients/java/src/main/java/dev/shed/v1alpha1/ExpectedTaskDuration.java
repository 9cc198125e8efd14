
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
 * ExpectedTaskDuration
 * <p>
 * How long a task takes, if you know it: shed then estimates the job before its first report, e.g.
 * whether the deadline is feasible. Reports of the job's attempts outweigh it. Absent: shed learns from
 * reports and from earlier jobs of the same class. You may change it.
 * 
 */
@JsonInclude(JsonInclude.Include.NON_NULL)
@JsonPropertyOrder({
    "p50",
    "p90"
})
public class ExpectedTaskDuration {

    /**
     * Half of the tasks take at most this, e.g. 90s, 10m, 1h30m.
     * (Required)
     * 
     */
    @JsonProperty("p50")
    @JsonPropertyDescription("Half of the tasks take at most this, e.g. 90s, 10m, 1h30m.")
    private String p50;
    /**
     * Nine of ten tasks take at most this. Absent: about half above p50.
     * 
     */
    @JsonProperty("p90")
    @JsonPropertyDescription("Nine of ten tasks take at most this. Absent: about half above p50.")
    private String p90;
    @JsonIgnore
    private Map<String, Object> additionalProperties = new LinkedHashMap<String, Object>();

    /**
     * Half of the tasks take at most this, e.g. 90s, 10m, 1h30m.
     * (Required)
     * 
     */
    @JsonProperty("p50")
    public String getP50() {
        return p50;
    }

    /**
     * Half of the tasks take at most this, e.g. 90s, 10m, 1h30m.
     * (Required)
     * 
     */
    @JsonProperty("p50")
    public void setP50(String p50) {
        this.p50 = p50;
    }

    public ExpectedTaskDuration withP50(String p50) {
        this.p50 = p50;
        return this;
    }

    /**
     * Nine of ten tasks take at most this. Absent: about half above p50.
     * 
     */
    @JsonProperty("p90")
    public String getP90() {
        return p90;
    }

    /**
     * Nine of ten tasks take at most this. Absent: about half above p50.
     * 
     */
    @JsonProperty("p90")
    public void setP90(String p90) {
        this.p90 = p90;
    }

    public ExpectedTaskDuration withP90(String p90) {
        this.p90 = p90;
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

    public ExpectedTaskDuration withAdditionalProperty(String name, Object value) {
        this.additionalProperties.put(name, value);
        return this;
    }

    @Override
    public String toString() {
        StringBuilder sb = new StringBuilder();
        sb.append(ExpectedTaskDuration.class.getName()).append('@').append(Integer.toHexString(System.identityHashCode(this))).append('[');
        sb.append("p50");
        sb.append('=');
        sb.append(((this.p50 == null)?"<null>":this.p50));
        sb.append(',');
        sb.append("p90");
        sb.append('=');
        sb.append(((this.p90 == null)?"<null>":this.p90));
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
