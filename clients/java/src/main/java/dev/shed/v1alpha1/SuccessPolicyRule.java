
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
 * SuccessPolicyRule
 * <p>
 * Tasks whose success is enough.
 * 
 */
@JsonInclude(JsonInclude.Include.NON_NULL)
@JsonPropertyOrder({
    "succeededCount",
    "succeededIndexes"
})
public class SuccessPolicyRule {

    /**
     * How many of them must have succeeded; absent: each.
     * 
     */
    @JsonProperty("succeededCount")
    @JsonPropertyDescription("How many of them must have succeeded; absent: each.")
    private Integer succeededCount;
    /**
     * Tasks that count, e.g. `0,3-5`; absent: all.
     * 
     */
    @JsonProperty("succeededIndexes")
    @JsonPropertyDescription("Tasks that count, e.g. `0,3-5`; absent: all.")
    private String succeededIndexes;
    @JsonIgnore
    private Map<String, Object> additionalProperties = new LinkedHashMap<String, Object>();

    /**
     * How many of them must have succeeded; absent: each.
     * 
     */
    @JsonProperty("succeededCount")
    public Integer getSucceededCount() {
        return succeededCount;
    }

    /**
     * How many of them must have succeeded; absent: each.
     * 
     */
    @JsonProperty("succeededCount")
    public void setSucceededCount(Integer succeededCount) {
        this.succeededCount = succeededCount;
    }

    public SuccessPolicyRule withSucceededCount(Integer succeededCount) {
        this.succeededCount = succeededCount;
        return this;
    }

    /**
     * Tasks that count, e.g. `0,3-5`; absent: all.
     * 
     */
    @JsonProperty("succeededIndexes")
    public String getSucceededIndexes() {
        return succeededIndexes;
    }

    /**
     * Tasks that count, e.g. `0,3-5`; absent: all.
     * 
     */
    @JsonProperty("succeededIndexes")
    public void setSucceededIndexes(String succeededIndexes) {
        this.succeededIndexes = succeededIndexes;
    }

    public SuccessPolicyRule withSucceededIndexes(String succeededIndexes) {
        this.succeededIndexes = succeededIndexes;
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

    public SuccessPolicyRule withAdditionalProperty(String name, Object value) {
        this.additionalProperties.put(name, value);
        return this;
    }

    @Override
    public String toString() {
        StringBuilder sb = new StringBuilder();
        sb.append(SuccessPolicyRule.class.getName()).append('@').append(Integer.toHexString(System.identityHashCode(this))).append('[');
        sb.append("succeededCount");
        sb.append('=');
        sb.append(((this.succeededCount == null)?"<null>":this.succeededCount));
        sb.append(',');
        sb.append("succeededIndexes");
        sb.append('=');
        sb.append(((this.succeededIndexes == null)?"<null>":this.succeededIndexes));
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
