
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
 * Progress
 * <p>
 * How attempts report progress. Absent: they do not report, and shed estimates from elapsed time alone.
 * 
 */
@JsonInclude(JsonInclude.Include.NON_NULL)
@JsonPropertyOrder({
    "file",
    "httpGet",
    "metric",
    "periodSeconds"
})
public class Progress {

    /**
     * ProgressFile
     * <p>
     * The task writes `0.42`, `17/40` or `{\"progress\":0.42,\"checkpoint\":\"…\"}` to the file
     * that SHED_PROGRESS_FILE names; a sidecar serves it.
     * 
     */
    @JsonProperty("file")
    @JsonPropertyDescription("The task writes `0.42`, `17/40` or `{\\\"progress\\\":0.42,\\\"checkpoint\\\":\\\"\u2026\\\"}` to the file\nthat SHED_PROGRESS_FILE names; a sidecar serves it.")
    private ProgressFile file;
    /**
     * ProgressHttpGet
     * <p>
     * The task serves the same content itself.
     * 
     */
    @JsonProperty("httpGet")
    @JsonPropertyDescription("The task serves the same content itself.")
    private ProgressHttpGet httpGet;
    /**
     * ProgressMetric
     * <p>
     * The task serves a page of Prometheus metrics, and one metric has its progress.
     * 
     */
    @JsonProperty("metric")
    @JsonPropertyDescription("The task serves a page of Prometheus metrics, and one metric has its progress.")
    private ProgressMetric metric;
    /**
     * Minimum seconds between two polls of one attempt whose rate is known. shed polls an attempt up to eight
     * times less often if a newer value would change little.
     * 
     */
    @JsonProperty("periodSeconds")
    @JsonPropertyDescription("Minimum seconds between two polls of one attempt whose rate is known. shed polls an attempt up to eight\ntimes less often if a newer value would change little.")
    private Integer periodSeconds;
    @JsonIgnore
    private Map<String, Object> additionalProperties = new LinkedHashMap<String, Object>();

    /**
     * ProgressFile
     * <p>
     * The task writes `0.42`, `17/40` or `{\"progress\":0.42,\"checkpoint\":\"…\"}` to the file
     * that SHED_PROGRESS_FILE names; a sidecar serves it.
     * 
     */
    @JsonProperty("file")
    public ProgressFile getFile() {
        return file;
    }

    /**
     * ProgressFile
     * <p>
     * The task writes `0.42`, `17/40` or `{\"progress\":0.42,\"checkpoint\":\"…\"}` to the file
     * that SHED_PROGRESS_FILE names; a sidecar serves it.
     * 
     */
    @JsonProperty("file")
    public void setFile(ProgressFile file) {
        this.file = file;
    }

    public Progress withFile(ProgressFile file) {
        this.file = file;
        return this;
    }

    /**
     * ProgressHttpGet
     * <p>
     * The task serves the same content itself.
     * 
     */
    @JsonProperty("httpGet")
    public ProgressHttpGet getHttpGet() {
        return httpGet;
    }

    /**
     * ProgressHttpGet
     * <p>
     * The task serves the same content itself.
     * 
     */
    @JsonProperty("httpGet")
    public void setHttpGet(ProgressHttpGet httpGet) {
        this.httpGet = httpGet;
    }

    public Progress withHttpGet(ProgressHttpGet httpGet) {
        this.httpGet = httpGet;
        return this;
    }

    /**
     * ProgressMetric
     * <p>
     * The task serves a page of Prometheus metrics, and one metric has its progress.
     * 
     */
    @JsonProperty("metric")
    public ProgressMetric getMetric() {
        return metric;
    }

    /**
     * ProgressMetric
     * <p>
     * The task serves a page of Prometheus metrics, and one metric has its progress.
     * 
     */
    @JsonProperty("metric")
    public void setMetric(ProgressMetric metric) {
        this.metric = metric;
    }

    public Progress withMetric(ProgressMetric metric) {
        this.metric = metric;
        return this;
    }

    /**
     * Minimum seconds between two polls of one attempt whose rate is known. shed polls an attempt up to eight
     * times less often if a newer value would change little.
     * 
     */
    @JsonProperty("periodSeconds")
    public Integer getPeriodSeconds() {
        return periodSeconds;
    }

    /**
     * Minimum seconds between two polls of one attempt whose rate is known. shed polls an attempt up to eight
     * times less often if a newer value would change little.
     * 
     */
    @JsonProperty("periodSeconds")
    public void setPeriodSeconds(Integer periodSeconds) {
        this.periodSeconds = periodSeconds;
    }

    public Progress withPeriodSeconds(Integer periodSeconds) {
        this.periodSeconds = periodSeconds;
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

    public Progress withAdditionalProperty(String name, Object value) {
        this.additionalProperties.put(name, value);
        return this;
    }

    @Override
    public String toString() {
        StringBuilder sb = new StringBuilder();
        sb.append(Progress.class.getName()).append('@').append(Integer.toHexString(System.identityHashCode(this))).append('[');
        sb.append("file");
        sb.append('=');
        sb.append(((this.file == null)?"<null>":this.file));
        sb.append(',');
        sb.append("httpGet");
        sb.append('=');
        sb.append(((this.httpGet == null)?"<null>":this.httpGet));
        sb.append(',');
        sb.append("metric");
        sb.append('=');
        sb.append(((this.metric == null)?"<null>":this.metric));
        sb.append(',');
        sb.append("periodSeconds");
        sb.append('=');
        sb.append(((this.periodSeconds == null)?"<null>":this.periodSeconds));
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
