
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
 * RecordWaiting
 * <p>
 * First attempts and retries that wait, if there are any.
 * 
 */
@JsonInclude(JsonInclude.Include.NON_NULL)
@JsonPropertyOrder({
    "reason",
    "tasks"
})
public class RecordWaiting {

    /**
     * Why they wait, e.g. Capacity.
     * (Required)
     * 
     */
    @JsonProperty("reason")
    @JsonPropertyDescription("Why they wait, e.g. Capacity.")
    private String reason;
    /**
     * Their number.
     * (Required)
     * 
     */
    @JsonProperty("tasks")
    @JsonPropertyDescription("Their number.")
    private Integer tasks;
    @JsonIgnore
    private Map<String, Object> additionalProperties = new LinkedHashMap<String, Object>();

    /**
     * Why they wait, e.g. Capacity.
     * (Required)
     * 
     */
    @JsonProperty("reason")
    public String getReason() {
        return reason;
    }

    /**
     * Why they wait, e.g. Capacity.
     * (Required)
     * 
     */
    @JsonProperty("reason")
    public void setReason(String reason) {
        this.reason = reason;
    }

    public RecordWaiting withReason(String reason) {
        this.reason = reason;
        return this;
    }

    /**
     * Their number.
     * (Required)
     * 
     */
    @JsonProperty("tasks")
    public Integer getTasks() {
        return tasks;
    }

    /**
     * Their number.
     * (Required)
     * 
     */
    @JsonProperty("tasks")
    public void setTasks(Integer tasks) {
        this.tasks = tasks;
    }

    public RecordWaiting withTasks(Integer tasks) {
        this.tasks = tasks;
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

    public RecordWaiting withAdditionalProperty(String name, Object value) {
        this.additionalProperties.put(name, value);
        return this;
    }

    @Override
    public String toString() {
        StringBuilder sb = new StringBuilder();
        sb.append(RecordWaiting.class.getName()).append('@').append(Integer.toHexString(System.identityHashCode(this))).append('[');
        sb.append("reason");
        sb.append('=');
        sb.append(((this.reason == null)?"<null>":this.reason));
        sb.append(',');
        sb.append("tasks");
        sb.append('=');
        sb.append(((this.tasks == null)?"<null>":this.tasks));
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
