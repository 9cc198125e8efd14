
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
 * Speculation
 * <p>
 * Clones of stragglers.
 * 
 */
@JsonInclude(JsonInclude.Include.NON_NULL)
@JsonPropertyOrder({
    "budget",
    "maxClonesPerTask",
    "mode"
})
public class Speculation {

    /**
     * Limit of clones, as a share of the job's own work: the slot-seconds of its clones may be at most this share of
     * the slot-seconds of its other attempts, e.g. 0.2. A straggler may have one clone whatever the budget. The lowest
     * of this limit, that of the namespace and that of the cluster holds.
     * 
     */
    @JsonProperty("budget")
    @JsonPropertyDescription("Limit of clones, as a share of the job's own work: the slot-seconds of its clones may be at most this share of\nthe slot-seconds of its other attempts, e.g. 0.2. A straggler may have one clone whatever the budget. The lowest\nof this limit, that of the namespace and that of the cluster holds.")
    private Double budget;
    /**
     * Maximum number of live clones of one task, not counting its first attempt.
     * 
     */
    @JsonProperty("maxClonesPerTask")
    @JsonPropertyDescription("Maximum number of live clones of one task, not counting its first attempt.")
    private Integer maxClonesPerTask;
    /**
     * SpeculationMode
     * <p>
     * Enabled, Observe (decide and report, but launch no clones) or Disabled.
     * 
     */
    @JsonProperty("mode")
    @JsonPropertyDescription("Enabled, Observe (decide and report, but launch no clones) or Disabled.")
    private Speculation.SpeculationMode mode;
    @JsonIgnore
    private Map<String, Object> additionalProperties = new LinkedHashMap<String, Object>();

    /**
     * Limit of clones, as a share of the job's own work: the slot-seconds of its clones may be at most this share of
     * the slot-seconds of its other attempts, e.g. 0.2. A straggler may have one clone whatever the budget. The lowest
     * of this limit, that of the namespace and that of the cluster holds.
     * 
     */
    @JsonProperty("budget")
    public Double getBudget() {
        return budget;
    }

    /**
     * Limit of clones, as a share of the job's own work: the slot-seconds of its clones may be at most this share of
     * the slot-seconds of its other attempts, e.g. 0.2. A straggler may have one clone whatever the budget. The lowest
     * of this limit, that of the namespace and that of the cluster holds.
     * 
     */
    @JsonProperty("budget")
    public void setBudget(Double budget) {
        this.budget = budget;
    }

    public Speculation withBudget(Double budget) {
        this.budget = budget;
        return this;
    }

    /**
     * Maximum number of live clones of one task, not counting its first attempt.
     * 
     */
    @JsonProperty("maxClonesPerTask")
    public Integer getMaxClonesPerTask() {
        return maxClonesPerTask;
    }

    /**
     * Maximum number of live clones of one task, not counting its first attempt.
     * 
     */
    @JsonProperty("maxClonesPerTask")
    public void setMaxClonesPerTask(Integer maxClonesPerTask) {
        this.maxClonesPerTask = maxClonesPerTask;
    }

    public Speculation withMaxClonesPerTask(Integer maxClonesPerTask) {
        this.maxClonesPerTask = maxClonesPerTask;
        return this;
    }

    /**
     * SpeculationMode
     * <p>
     * Enabled, Observe (decide and report, but launch no clones) or Disabled.
     * 
     */
    @JsonProperty("mode")
    public Speculation.SpeculationMode getMode() {
        return mode;
    }

    /**
     * SpeculationMode
     * <p>
     * Enabled, Observe (decide and report, but launch no clones) or Disabled.
     * 
     */
    @JsonProperty("mode")
    public void setMode(Speculation.SpeculationMode mode) {
        this.mode = mode;
    }

    public Speculation withMode(Speculation.SpeculationMode mode) {
        this.mode = mode;
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

    public Speculation withAdditionalProperty(String name, Object value) {
        this.additionalProperties.put(name, value);
        return this;
    }

    @Override
    public String toString() {
        StringBuilder sb = new StringBuilder();
        sb.append(Speculation.class.getName()).append('@').append(Integer.toHexString(System.identityHashCode(this))).append('[');
        sb.append("budget");
        sb.append('=');
        sb.append(((this.budget == null)?"<null>":this.budget));
        sb.append(',');
        sb.append("maxClonesPerTask");
        sb.append('=');
        sb.append(((this.maxClonesPerTask == null)?"<null>":this.maxClonesPerTask));
        sb.append(',');
        sb.append("mode");
        sb.append('=');
        sb.append(((this.mode == null)?"<null>":this.mode));
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
     * SpeculationMode
     * <p>
     * Enabled, Observe (decide and report, but launch no clones) or Disabled.
     * 
     */
    public enum SpeculationMode {

        ENABLED("Enabled"),
        OBSERVE("Observe"),
        DISABLED("Disabled");
        private final String value;
        private final static Map<String, Speculation.SpeculationMode> CONSTANTS = new HashMap<String, Speculation.SpeculationMode>();

        static {
            for (Speculation.SpeculationMode c: values()) {
                CONSTANTS.put(c.value, c);
            }
        }

        SpeculationMode(String value) {
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
        public static Speculation.SpeculationMode fromValue(String value) {
            Speculation.SpeculationMode constant = CONSTANTS.get(value);
            if (constant == null) {
                throw new IllegalArgumentException(value);
            } else {
                return constant;
            }
        }

    }

}
