
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
import io.fabric8.kubernetes.api.model.ObjectMeta;


/**
 * DeadlineJob
 * <p>
 * A batch job with a deadline that it works to meet.
 * 
 */
@JsonInclude(JsonInclude.Include.NON_NULL)
@JsonPropertyOrder({
    "apiVersion",
    "kind",
    "metadata",
    "spec",
    "status"
})
public class DeadlineJob {

    /**
     * 
     * (Required)
     * 
     */
    @JsonProperty("apiVersion")
    private String apiVersion;
    /**
     * 
     * (Required)
     * 
     */
    @JsonProperty("kind")
    private String kind;
    /**
     * Name, namespace, labels: https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/object-meta/
     * (Required)
     * 
     */
    @JsonProperty("metadata")
    @JsonPropertyDescription("Name, namespace, labels: https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/object-meta/")
    private ObjectMeta metadata;
    /**
     * DeadlineJobSpec
     * <p>
     * Runs one pod attempt per task, estimates the probability that all tasks complete before the deadline
     * (PoCD), clones stragglers where clones pay, and keeps the fastest attempt of each task.
     * (Required)
     * 
     */
    @JsonProperty("spec")
    @JsonPropertyDescription("Runs one pod attempt per task, estimates the probability that all tasks complete before the deadline\n(PoCD), clones stragglers where clones pay, and keeps the fastest attempt of each task.")
    private DeadlineJobSpec spec;
    /**
     * DeadlineJobStatus
     * <p>
     * The observed state of the job.
     * 
     */
    @JsonProperty("status")
    @JsonPropertyDescription("The observed state of the job.")
    private DeadlineJobStatus status;
    @JsonIgnore
    private Map<String, Object> additionalProperties = new LinkedHashMap<String, Object>();

    /**
     * 
     * (Required)
     * 
     */
    @JsonProperty("apiVersion")
    public String getApiVersion() {
        return apiVersion;
    }

    /**
     * 
     * (Required)
     * 
     */
    @JsonProperty("apiVersion")
    public void setApiVersion(String apiVersion) {
        this.apiVersion = apiVersion;
    }

    public DeadlineJob withApiVersion(String apiVersion) {
        this.apiVersion = apiVersion;
        return this;
    }

    /**
     * 
     * (Required)
     * 
     */
    @JsonProperty("kind")
    public String getKind() {
        return kind;
    }

    /**
     * 
     * (Required)
     * 
     */
    @JsonProperty("kind")
    public void setKind(String kind) {
        this.kind = kind;
    }

    public DeadlineJob withKind(String kind) {
        this.kind = kind;
        return this;
    }

    /**
     * Name, namespace, labels: https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/object-meta/
     * (Required)
     * 
     */
    @JsonProperty("metadata")
    public ObjectMeta getMetadata() {
        return metadata;
    }

    /**
     * Name, namespace, labels: https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/object-meta/
     * (Required)
     * 
     */
    @JsonProperty("metadata")
    public void setMetadata(ObjectMeta metadata) {
        this.metadata = metadata;
    }

    public DeadlineJob withMetadata(ObjectMeta metadata) {
        this.metadata = metadata;
        return this;
    }

    /**
     * DeadlineJobSpec
     * <p>
     * Runs one pod attempt per task, estimates the probability that all tasks complete before the deadline
     * (PoCD), clones stragglers where clones pay, and keeps the fastest attempt of each task.
     * (Required)
     * 
     */
    @JsonProperty("spec")
    public DeadlineJobSpec getSpec() {
        return spec;
    }

    /**
     * DeadlineJobSpec
     * <p>
     * Runs one pod attempt per task, estimates the probability that all tasks complete before the deadline
     * (PoCD), clones stragglers where clones pay, and keeps the fastest attempt of each task.
     * (Required)
     * 
     */
    @JsonProperty("spec")
    public void setSpec(DeadlineJobSpec spec) {
        this.spec = spec;
    }

    public DeadlineJob withSpec(DeadlineJobSpec spec) {
        this.spec = spec;
        return this;
    }

    /**
     * DeadlineJobStatus
     * <p>
     * The observed state of the job.
     * 
     */
    @JsonProperty("status")
    public DeadlineJobStatus getStatus() {
        return status;
    }

    /**
     * DeadlineJobStatus
     * <p>
     * The observed state of the job.
     * 
     */
    @JsonProperty("status")
    public void setStatus(DeadlineJobStatus status) {
        this.status = status;
    }

    public DeadlineJob withStatus(DeadlineJobStatus status) {
        this.status = status;
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

    public DeadlineJob withAdditionalProperty(String name, Object value) {
        this.additionalProperties.put(name, value);
        return this;
    }

    @Override
    public String toString() {
        StringBuilder sb = new StringBuilder();
        sb.append(DeadlineJob.class.getName()).append('@').append(Integer.toHexString(System.identityHashCode(this))).append('[');
        sb.append("apiVersion");
        sb.append('=');
        sb.append(((this.apiVersion == null)?"<null>":this.apiVersion));
        sb.append(',');
        sb.append("kind");
        sb.append('=');
        sb.append(((this.kind == null)?"<null>":this.kind));
        sb.append(',');
        sb.append("metadata");
        sb.append('=');
        sb.append(((this.metadata == null)?"<null>":this.metadata));
        sb.append(',');
        sb.append("spec");
        sb.append('=');
        sb.append(((this.spec == null)?"<null>":this.spec));
        sb.append(',');
        sb.append("status");
        sb.append('=');
        sb.append(((this.status == null)?"<null>":this.status));
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
