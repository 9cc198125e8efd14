
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
 * PodFailurePolicy
 * <p>
 * Effect of a pod failure, by exit code or pod condition.
 * 
 */
@JsonInclude(JsonInclude.Include.NON_NULL)
@JsonPropertyOrder({
    "rules"
})
public class PodFailurePolicy {

    /**
     * The rules, in order; at most 20.
     * (Required)
     * 
     */
    @JsonProperty("rules")
    @JsonPropertyDescription("The rules, in order; at most 20.")
    private List<PodFailurePolicyRule> rules;
    @JsonIgnore
    private Map<String, Object> additionalProperties = new LinkedHashMap<String, Object>();

    /**
     * The rules, in order; at most 20.
     * (Required)
     * 
     */
    @JsonProperty("rules")
    public List<PodFailurePolicyRule> getRules() {
        return rules;
    }

    /**
     * The rules, in order; at most 20.
     * (Required)
     * 
     */
    @JsonProperty("rules")
    public void setRules(List<PodFailurePolicyRule> rules) {
        this.rules = rules;
    }

    public PodFailurePolicy withRules(List<PodFailurePolicyRule> rules) {
        this.rules = rules;
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

    public PodFailurePolicy withAdditionalProperty(String name, Object value) {
        this.additionalProperties.put(name, value);
        return this;
    }

    @Override
    public String toString() {
        StringBuilder sb = new StringBuilder();
        sb.append(PodFailurePolicy.class.getName()).append('@').append(Integer.toHexString(System.identityHashCode(this))).append('[');
        sb.append("rules");
        sb.append('=');
        sb.append(((this.rules == null)?"<null>":this.rules));
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
