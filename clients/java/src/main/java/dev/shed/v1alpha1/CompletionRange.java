
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
 * CompletionRange
 * <p>
 * Likely finish of the last task. Absent while no attempt runs or nothing is known about the tasks.
 * 
 */
@JsonInclude(JsonInclude.Include.NON_NULL)
@JsonPropertyOrder({
    "p50",
    "p90"
})
public class CompletionRange {

    /**
     * With a probability of 50 %.
     * (Required)
     * 
     */
    @JsonProperty("p50")
    @JsonPropertyDescription("With a probability of 50 %.")
    private String p50;
    /**
     * With a probability of 90 %.
     * (Required)
     * 
     */
    @JsonProperty("p90")
    @JsonPropertyDescription("With a probability of 90 %.")
    private String p90;
    @JsonIgnore
    private Map<String, Object> additionalProperties = new LinkedHashMap<String, Object>();

    /**
     * With a probability of 50 %.
     * (Required)
     * 
     */
    @JsonProperty("p50")
    public String getP50() {
        return p50;
    }

    /**
     * With a probability of 50 %.
     * (Required)
     * 
     */
    @JsonProperty("p50")
    public void setP50(String p50) {
        this.p50 = p50;
    }

    public CompletionRange withP50(String p50) {
        this.p50 = p50;
        return this;
    }

    /**
     * With a probability of 90 %.
     * (Required)
     * 
     */
    @JsonProperty("p90")
    public String getP90() {
        return p90;
    }

    /**
     * With a probability of 90 %.
     * (Required)
     * 
     */
    @JsonProperty("p90")
    public void setP90(String p90) {
        this.p90 = p90;
    }

    public CompletionRange withP90(String p90) {
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

    public CompletionRange withAdditionalProperty(String name, Object value) {
        this.additionalProperties.put(name, value);
        return this;
    }

    @Override
    public String toString() {
        StringBuilder sb = new StringBuilder();
        sb.append(CompletionRange.class.getName()).append('@').append(Integer.toHexString(System.identityHashCode(this))).append('[');
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
