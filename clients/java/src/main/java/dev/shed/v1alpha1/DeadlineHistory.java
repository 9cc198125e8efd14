
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
 * DeadlineHistory
 * <p>
 * A quantile of the completion times of earlier jobs with the same label shed.dev/class in the namespace.
 * 
 */
@JsonInclude(JsonInclude.Include.NON_NULL)
@JsonPropertyOrder({
    "factor",
    "quantile"
})
public class DeadlineHistory {

    /**
     * The quantile is multiplied by this decimal number above 0 and at most 100.
     * 
     */
    @JsonProperty("factor")
    @JsonPropertyDescription("The quantile is multiplied by this decimal number above 0 and at most 100.")
    private String factor;
    /**
     * DeadlineHistoryQuantile
     * <p>
     * p50, p90, p95, p99 or max of the last 50 completion times of the class.
     * (Required)
     * 
     */
    @JsonProperty("quantile")
    @JsonPropertyDescription("p50, p90, p95, p99 or max of the last 50 completion times of the class.")
    private DeadlineHistory.DeadlineHistoryQuantile quantile;
    @JsonIgnore
    private Map<String, Object> additionalProperties = new LinkedHashMap<String, Object>();

    /**
     * The quantile is multiplied by this decimal number above 0 and at most 100.
     * 
     */
    @JsonProperty("factor")
    public String getFactor() {
        return factor;
    }

    /**
     * The quantile is multiplied by this decimal number above 0 and at most 100.
     * 
     */
    @JsonProperty("factor")
    public void setFactor(String factor) {
        this.factor = factor;
    }

    public DeadlineHistory withFactor(String factor) {
        this.factor = factor;
        return this;
    }

    /**
     * DeadlineHistoryQuantile
     * <p>
     * p50, p90, p95, p99 or max of the last 50 completion times of the class.
     * (Required)
     * 
     */
    @JsonProperty("quantile")
    public DeadlineHistory.DeadlineHistoryQuantile getQuantile() {
        return quantile;
    }

    /**
     * DeadlineHistoryQuantile
     * <p>
     * p50, p90, p95, p99 or max of the last 50 completion times of the class.
     * (Required)
     * 
     */
    @JsonProperty("quantile")
    public void setQuantile(DeadlineHistory.DeadlineHistoryQuantile quantile) {
        this.quantile = quantile;
    }

    public DeadlineHistory withQuantile(DeadlineHistory.DeadlineHistoryQuantile quantile) {
        this.quantile = quantile;
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

    public DeadlineHistory withAdditionalProperty(String name, Object value) {
        this.additionalProperties.put(name, value);
        return this;
    }

    @Override
    public String toString() {
        StringBuilder sb = new StringBuilder();
        sb.append(DeadlineHistory.class.getName()).append('@').append(Integer.toHexString(System.identityHashCode(this))).append('[');
        sb.append("factor");
        sb.append('=');
        sb.append(((this.factor == null)?"<null>":this.factor));
        sb.append(',');
        sb.append("quantile");
        sb.append('=');
        sb.append(((this.quantile == null)?"<null>":this.quantile));
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
     * DeadlineHistoryQuantile
     * <p>
     * p50, p90, p95, p99 or max of the last 50 completion times of the class.
     * 
     */
    public enum DeadlineHistoryQuantile {

        P_50("p50"),
        P_90("p90"),
        P_95("p95"),
        P_99("p99"),
        MAX("max");
        private final String value;
        private final static Map<String, DeadlineHistory.DeadlineHistoryQuantile> CONSTANTS = new HashMap<String, DeadlineHistory.DeadlineHistoryQuantile>();

        static {
            for (DeadlineHistory.DeadlineHistoryQuantile c: values()) {
                CONSTANTS.put(c.value, c);
            }
        }

        DeadlineHistoryQuantile(String value) {
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
        public static DeadlineHistory.DeadlineHistoryQuantile fromValue(String value) {
            DeadlineHistory.DeadlineHistoryQuantile constant = CONSTANTS.get(value);
            if (constant == null) {
                throw new IllegalArgumentException(value);
            } else {
                return constant;
            }
        }

    }

}
