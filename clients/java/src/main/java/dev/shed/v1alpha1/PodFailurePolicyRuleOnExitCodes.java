
package dev.shed.v1alpha1;

import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
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
 * PodFailurePolicyRuleOnExitCodes
 * <p>
 * Matches by the exit code of a container.
 * 
 */
@JsonInclude(JsonInclude.Include.NON_NULL)
@JsonPropertyOrder({
    "containerName",
    "operator",
    "values"
})
public class PodFailurePolicyRuleOnExitCodes {

    /**
     * Container that the rule checks; absent: any.
     * 
     */
    @JsonProperty("containerName")
    @JsonPropertyDescription("Container that the rule checks; absent: any.")
    private String containerName;
    /**
     * PodFailurePolicyRuleOnExitCodesOperator
     * <p>
     * In or NotIn.
     * (Required)
     * 
     */
    @JsonProperty("operator")
    @JsonPropertyDescription("In or NotIn.")
    private PodFailurePolicyRuleOnExitCodes.PodFailurePolicyRuleOnExitCodesOperator operator;
    /**
     * The codes; at most 255.
     * (Required)
     * 
     */
    @JsonProperty("values")
    @JsonPropertyDescription("The codes; at most 255.")
    private List<Integer> values;
    @JsonIgnore
    private Map<String, Object> additionalProperties = new LinkedHashMap<String, Object>();

    /**
     * Container that the rule checks; absent: any.
     * 
     */
    @JsonProperty("containerName")
    public String getContainerName() {
        return containerName;
    }

    /**
     * Container that the rule checks; absent: any.
     * 
     */
    @JsonProperty("containerName")
    public void setContainerName(String containerName) {
        this.containerName = containerName;
    }

    public PodFailurePolicyRuleOnExitCodes withContainerName(String containerName) {
        this.containerName = containerName;
        return this;
    }

    /**
     * PodFailurePolicyRuleOnExitCodesOperator
     * <p>
     * In or NotIn.
     * (Required)
     * 
     */
    @JsonProperty("operator")
    public PodFailurePolicyRuleOnExitCodes.PodFailurePolicyRuleOnExitCodesOperator getOperator() {
        return operator;
    }

    /**
     * PodFailurePolicyRuleOnExitCodesOperator
     * <p>
     * In or NotIn.
     * (Required)
     * 
     */
    @JsonProperty("operator")
    public void setOperator(PodFailurePolicyRuleOnExitCodes.PodFailurePolicyRuleOnExitCodesOperator operator) {
        this.operator = operator;
    }

    public PodFailurePolicyRuleOnExitCodes withOperator(PodFailurePolicyRuleOnExitCodes.PodFailurePolicyRuleOnExitCodesOperator operator) {
        this.operator = operator;
        return this;
    }

    /**
     * The codes; at most 255.
     * (Required)
     * 
     */
    @JsonProperty("values")
    public List<Integer> getValues() {
        return values;
    }

    /**
     * The codes; at most 255.
     * (Required)
     * 
     */
    @JsonProperty("values")
    public void setValues(List<Integer> values) {
        this.values = values;
    }

    public PodFailurePolicyRuleOnExitCodes withValues(List<Integer> values) {
        this.values = values;
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

    public PodFailurePolicyRuleOnExitCodes withAdditionalProperty(String name, Object value) {
        this.additionalProperties.put(name, value);
        return this;
    }

    @Override
    public String toString() {
        StringBuilder sb = new StringBuilder();
        sb.append(PodFailurePolicyRuleOnExitCodes.class.getName()).append('@').append(Integer.toHexString(System.identityHashCode(this))).append('[');
        sb.append("containerName");
        sb.append('=');
        sb.append(((this.containerName == null)?"<null>":this.containerName));
        sb.append(',');
        sb.append("operator");
        sb.append('=');
        sb.append(((this.operator == null)?"<null>":this.operator));
        sb.append(',');
        sb.append("values");
        sb.append('=');
        sb.append(((this.values == null)?"<null>":this.values));
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
     * PodFailurePolicyRuleOnExitCodesOperator
     * <p>
     * In or NotIn.
     * 
     */
    public enum PodFailurePolicyRuleOnExitCodesOperator {

        IN("In"),
        NOT_IN("NotIn");
        private final String value;
        private final static Map<String, PodFailurePolicyRuleOnExitCodes.PodFailurePolicyRuleOnExitCodesOperator> CONSTANTS = new HashMap<String, PodFailurePolicyRuleOnExitCodes.PodFailurePolicyRuleOnExitCodesOperator>();

        static {
            for (PodFailurePolicyRuleOnExitCodes.PodFailurePolicyRuleOnExitCodesOperator c: values()) {
                CONSTANTS.put(c.value, c);
            }
        }

        PodFailurePolicyRuleOnExitCodesOperator(String value) {
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
        public static PodFailurePolicyRuleOnExitCodes.PodFailurePolicyRuleOnExitCodesOperator fromValue(String value) {
            PodFailurePolicyRuleOnExitCodes.PodFailurePolicyRuleOnExitCodesOperator constant = CONSTANTS.get(value);
            if (constant == null) {
                throw new IllegalArgumentException(value);
            } else {
                return constant;
            }
        }

    }

}
