
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
 * PodFailurePolicyRuleOnPodCondition
 * <p>
 * A condition of a pod.
 * 
 */
@JsonInclude(JsonInclude.Include.NON_NULL)
@JsonPropertyOrder({
    "status",
    "type"
})
public class PodFailurePolicyRuleOnPodCondition {

    /**
     * PodFailurePolicyRuleOnPodConditionStatus
     * <p>
     * True, False or Unknown.
     * 
     */
    @JsonProperty("status")
    @JsonPropertyDescription("True, False or Unknown.")
    private PodFailurePolicyRuleOnPodCondition.PodFailurePolicyRuleOnPodConditionStatus status;
    /**
     * Its type, e.g. DisruptionTarget.
     * (Required)
     * 
     */
    @JsonProperty("type")
    @JsonPropertyDescription("Its type, e.g. DisruptionTarget.")
    private String type;
    @JsonIgnore
    private Map<String, Object> additionalProperties = new LinkedHashMap<String, Object>();

    /**
     * PodFailurePolicyRuleOnPodConditionStatus
     * <p>
     * True, False or Unknown.
     * 
     */
    @JsonProperty("status")
    public PodFailurePolicyRuleOnPodCondition.PodFailurePolicyRuleOnPodConditionStatus getStatus() {
        return status;
    }

    /**
     * PodFailurePolicyRuleOnPodConditionStatus
     * <p>
     * True, False or Unknown.
     * 
     */
    @JsonProperty("status")
    public void setStatus(PodFailurePolicyRuleOnPodCondition.PodFailurePolicyRuleOnPodConditionStatus status) {
        this.status = status;
    }

    public PodFailurePolicyRuleOnPodCondition withStatus(PodFailurePolicyRuleOnPodCondition.PodFailurePolicyRuleOnPodConditionStatus status) {
        this.status = status;
        return this;
    }

    /**
     * Its type, e.g. DisruptionTarget.
     * (Required)
     * 
     */
    @JsonProperty("type")
    public String getType() {
        return type;
    }

    /**
     * Its type, e.g. DisruptionTarget.
     * (Required)
     * 
     */
    @JsonProperty("type")
    public void setType(String type) {
        this.type = type;
    }

    public PodFailurePolicyRuleOnPodCondition withType(String type) {
        this.type = type;
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

    public PodFailurePolicyRuleOnPodCondition withAdditionalProperty(String name, Object value) {
        this.additionalProperties.put(name, value);
        return this;
    }

    @Override
    public String toString() {
        StringBuilder sb = new StringBuilder();
        sb.append(PodFailurePolicyRuleOnPodCondition.class.getName()).append('@').append(Integer.toHexString(System.identityHashCode(this))).append('[');
        sb.append("status");
        sb.append('=');
        sb.append(((this.status == null)?"<null>":this.status));
        sb.append(',');
        sb.append("type");
        sb.append('=');
        sb.append(((this.type == null)?"<null>":this.type));
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
     * PodFailurePolicyRuleOnPodConditionStatus
     * <p>
     * True, False or Unknown.
     * 
     */
    public enum PodFailurePolicyRuleOnPodConditionStatus {

        TRUE("True"),
        FALSE("False"),
        UNKNOWN("Unknown");
        private final String value;
        private final static Map<String, PodFailurePolicyRuleOnPodCondition.PodFailurePolicyRuleOnPodConditionStatus> CONSTANTS = new HashMap<String, PodFailurePolicyRuleOnPodCondition.PodFailurePolicyRuleOnPodConditionStatus>();

        static {
            for (PodFailurePolicyRuleOnPodCondition.PodFailurePolicyRuleOnPodConditionStatus c: values()) {
                CONSTANTS.put(c.value, c);
            }
        }

        PodFailurePolicyRuleOnPodConditionStatus(String value) {
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
        public static PodFailurePolicyRuleOnPodCondition.PodFailurePolicyRuleOnPodConditionStatus fromValue(String value) {
            PodFailurePolicyRuleOnPodCondition.PodFailurePolicyRuleOnPodConditionStatus constant = CONSTANTS.get(value);
            if (constant == null) {
                throw new IllegalArgumentException(value);
            } else {
                return constant;
            }
        }

    }

}
