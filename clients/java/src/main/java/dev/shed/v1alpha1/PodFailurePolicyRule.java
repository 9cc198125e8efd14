
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
 * PodFailurePolicyRule
 * <p>
 * One rule: its match and its action.
 * 
 */
@JsonInclude(JsonInclude.Include.NON_NULL)
@JsonPropertyOrder({
    "action",
    "onExitCodes",
    "onPodConditions"
})
public class PodFailurePolicyRule {

    /**
     * PodFailurePolicyRuleAction
     * <p>
     * FailJob, FailIndex (shed does not retry the task), Ignore (the failure does not count) or Count.
     * (Required)
     * 
     */
    @JsonProperty("action")
    @JsonPropertyDescription("FailJob, FailIndex (shed does not retry the task), Ignore (the failure does not count) or Count.")
    private PodFailurePolicyRule.PodFailurePolicyRuleAction action;
    /**
     * PodFailurePolicyRuleOnExitCodes
     * <p>
     * Matches by the exit code of a container.
     * 
     */
    @JsonProperty("onExitCodes")
    @JsonPropertyDescription("Matches by the exit code of a container.")
    private PodFailurePolicyRuleOnExitCodes onExitCodes;
    /**
     * Matches if the pod has one of these conditions.
     * 
     */
    @JsonProperty("onPodConditions")
    @JsonPropertyDescription("Matches if the pod has one of these conditions.")
    private List<PodFailurePolicyRuleOnPodCondition> onPodConditions;
    @JsonIgnore
    private Map<String, Object> additionalProperties = new LinkedHashMap<String, Object>();

    /**
     * PodFailurePolicyRuleAction
     * <p>
     * FailJob, FailIndex (shed does not retry the task), Ignore (the failure does not count) or Count.
     * (Required)
     * 
     */
    @JsonProperty("action")
    public PodFailurePolicyRule.PodFailurePolicyRuleAction getAction() {
        return action;
    }

    /**
     * PodFailurePolicyRuleAction
     * <p>
     * FailJob, FailIndex (shed does not retry the task), Ignore (the failure does not count) or Count.
     * (Required)
     * 
     */
    @JsonProperty("action")
    public void setAction(PodFailurePolicyRule.PodFailurePolicyRuleAction action) {
        this.action = action;
    }

    public PodFailurePolicyRule withAction(PodFailurePolicyRule.PodFailurePolicyRuleAction action) {
        this.action = action;
        return this;
    }

    /**
     * PodFailurePolicyRuleOnExitCodes
     * <p>
     * Matches by the exit code of a container.
     * 
     */
    @JsonProperty("onExitCodes")
    public PodFailurePolicyRuleOnExitCodes getOnExitCodes() {
        return onExitCodes;
    }

    /**
     * PodFailurePolicyRuleOnExitCodes
     * <p>
     * Matches by the exit code of a container.
     * 
     */
    @JsonProperty("onExitCodes")
    public void setOnExitCodes(PodFailurePolicyRuleOnExitCodes onExitCodes) {
        this.onExitCodes = onExitCodes;
    }

    public PodFailurePolicyRule withOnExitCodes(PodFailurePolicyRuleOnExitCodes onExitCodes) {
        this.onExitCodes = onExitCodes;
        return this;
    }

    /**
     * Matches if the pod has one of these conditions.
     * 
     */
    @JsonProperty("onPodConditions")
    public List<PodFailurePolicyRuleOnPodCondition> getOnPodConditions() {
        return onPodConditions;
    }

    /**
     * Matches if the pod has one of these conditions.
     * 
     */
    @JsonProperty("onPodConditions")
    public void setOnPodConditions(List<PodFailurePolicyRuleOnPodCondition> onPodConditions) {
        this.onPodConditions = onPodConditions;
    }

    public PodFailurePolicyRule withOnPodConditions(List<PodFailurePolicyRuleOnPodCondition> onPodConditions) {
        this.onPodConditions = onPodConditions;
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

    public PodFailurePolicyRule withAdditionalProperty(String name, Object value) {
        this.additionalProperties.put(name, value);
        return this;
    }

    @Override
    public String toString() {
        StringBuilder sb = new StringBuilder();
        sb.append(PodFailurePolicyRule.class.getName()).append('@').append(Integer.toHexString(System.identityHashCode(this))).append('[');
        sb.append("action");
        sb.append('=');
        sb.append(((this.action == null)?"<null>":this.action));
        sb.append(',');
        sb.append("onExitCodes");
        sb.append('=');
        sb.append(((this.onExitCodes == null)?"<null>":this.onExitCodes));
        sb.append(',');
        sb.append("onPodConditions");
        sb.append('=');
        sb.append(((this.onPodConditions == null)?"<null>":this.onPodConditions));
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
     * PodFailurePolicyRuleAction
     * <p>
     * FailJob, FailIndex (shed does not retry the task), Ignore (the failure does not count) or Count.
     * 
     */
    public enum PodFailurePolicyRuleAction {

        FAIL_JOB("FailJob"),
        FAIL_INDEX("FailIndex"),
        IGNORE("Ignore"),
        COUNT("Count");
        private final String value;
        private final static Map<String, PodFailurePolicyRule.PodFailurePolicyRuleAction> CONSTANTS = new HashMap<String, PodFailurePolicyRule.PodFailurePolicyRuleAction>();

        static {
            for (PodFailurePolicyRule.PodFailurePolicyRuleAction c: values()) {
                CONSTANTS.put(c.value, c);
            }
        }

        PodFailurePolicyRuleAction(String value) {
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
        public static PodFailurePolicyRule.PodFailurePolicyRuleAction fromValue(String value) {
            PodFailurePolicyRule.PodFailurePolicyRuleAction constant = CONSTANTS.get(value);
            if (constant == null) {
                throw new IllegalArgumentException(value);
            } else {
                return constant;
            }
        }

    }

}
