
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
 * Observed
 * <p>
 * With speculation.mode Observe: what Enabled would have done.
 * 
 */
@JsonInclude(JsonInclude.Include.NON_NULL)
@JsonPropertyOrder({
    "clones",
    "gain",
    "price",
    "slotSeconds",
    "totalClones"
})
public class Observed {

    /**
     * Clones that shed would start now.
     * 
     */
    @JsonProperty("clones")
    @JsonPropertyDescription("Clones that shed would start now.")
    private Integer clones;
    /**
     * Expected deadlines gained: by how much these clones would have raised PoCD, 0.000 to 1.000.
     * 
     */
    @JsonProperty("gain")
    @JsonPropertyDescription("Expected deadlines gained: by how much these clones would have raised PoCD, 0.000 to 1.000.")
    private String gain;
    /**
     * Sum of the least gains, in expected deadlines met, at which the policy starts these clones, e.g. 0.040. The
     * operator's clone price sets them. Absent for policies without a price.
     * 
     */
    @JsonProperty("price")
    @JsonPropertyDescription("Sum of the least gains, in expected deadlines met, at which the policy starts these clones, e.g. 0.040. The\noperator's clone price sets them. Absent for policies without a price.")
    private String price;
    /**
     * Expected work of all these clones in slot-seconds, e.g. 84.000.
     * 
     */
    @JsonProperty("slotSeconds")
    @JsonPropertyDescription("Expected work of all these clones in slot-seconds, e.g. 84.000.")
    private String slotSeconds;
    /**
     * Clones that shed would have started so far.
     * 
     */
    @JsonProperty("totalClones")
    @JsonPropertyDescription("Clones that shed would have started so far.")
    private Integer totalClones;
    @JsonIgnore
    private Map<String, Object> additionalProperties = new LinkedHashMap<String, Object>();

    /**
     * Clones that shed would start now.
     * 
     */
    @JsonProperty("clones")
    public Integer getClones() {
        return clones;
    }

    /**
     * Clones that shed would start now.
     * 
     */
    @JsonProperty("clones")
    public void setClones(Integer clones) {
        this.clones = clones;
    }

    public Observed withClones(Integer clones) {
        this.clones = clones;
        return this;
    }

    /**
     * Expected deadlines gained: by how much these clones would have raised PoCD, 0.000 to 1.000.
     * 
     */
    @JsonProperty("gain")
    public String getGain() {
        return gain;
    }

    /**
     * Expected deadlines gained: by how much these clones would have raised PoCD, 0.000 to 1.000.
     * 
     */
    @JsonProperty("gain")
    public void setGain(String gain) {
        this.gain = gain;
    }

    public Observed withGain(String gain) {
        this.gain = gain;
        return this;
    }

    /**
     * Sum of the least gains, in expected deadlines met, at which the policy starts these clones, e.g. 0.040. The
     * operator's clone price sets them. Absent for policies without a price.
     * 
     */
    @JsonProperty("price")
    public String getPrice() {
        return price;
    }

    /**
     * Sum of the least gains, in expected deadlines met, at which the policy starts these clones, e.g. 0.040. The
     * operator's clone price sets them. Absent for policies without a price.
     * 
     */
    @JsonProperty("price")
    public void setPrice(String price) {
        this.price = price;
    }

    public Observed withPrice(String price) {
        this.price = price;
        return this;
    }

    /**
     * Expected work of all these clones in slot-seconds, e.g. 84.000.
     * 
     */
    @JsonProperty("slotSeconds")
    public String getSlotSeconds() {
        return slotSeconds;
    }

    /**
     * Expected work of all these clones in slot-seconds, e.g. 84.000.
     * 
     */
    @JsonProperty("slotSeconds")
    public void setSlotSeconds(String slotSeconds) {
        this.slotSeconds = slotSeconds;
    }

    public Observed withSlotSeconds(String slotSeconds) {
        this.slotSeconds = slotSeconds;
        return this;
    }

    /**
     * Clones that shed would have started so far.
     * 
     */
    @JsonProperty("totalClones")
    public Integer getTotalClones() {
        return totalClones;
    }

    /**
     * Clones that shed would have started so far.
     * 
     */
    @JsonProperty("totalClones")
    public void setTotalClones(Integer totalClones) {
        this.totalClones = totalClones;
    }

    public Observed withTotalClones(Integer totalClones) {
        this.totalClones = totalClones;
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

    public Observed withAdditionalProperty(String name, Object value) {
        this.additionalProperties.put(name, value);
        return this;
    }

    @Override
    public String toString() {
        StringBuilder sb = new StringBuilder();
        sb.append(Observed.class.getName()).append('@').append(Integer.toHexString(System.identityHashCode(this))).append('[');
        sb.append("clones");
        sb.append('=');
        sb.append(((this.clones == null)?"<null>":this.clones));
        sb.append(',');
        sb.append("gain");
        sb.append('=');
        sb.append(((this.gain == null)?"<null>":this.gain));
        sb.append(',');
        sb.append("price");
        sb.append('=');
        sb.append(((this.price == null)?"<null>":this.price));
        sb.append(',');
        sb.append("slotSeconds");
        sb.append('=');
        sb.append(((this.slotSeconds == null)?"<null>":this.slotSeconds));
        sb.append(',');
        sb.append("totalClones");
        sb.append('=');
        sb.append(((this.totalClones == null)?"<null>":this.totalClones));
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
