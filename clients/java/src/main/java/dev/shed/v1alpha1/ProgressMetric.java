
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
 * ProgressMetric
 * <p>
 * The task serves a page of Prometheus metrics, and one metric has its progress.
 * 
 */
@JsonInclude(JsonInclude.Include.NON_NULL)
@JsonPropertyOrder({
    "name",
    "path",
    "port",
    "total"
})
public class ProgressMetric {

    /**
     * Name of the metric, which must have exactly one series: a fraction from 0 to 1, or the amount of
     * finished work if there is a total.
     * (Required)
     * 
     */
    @JsonProperty("name")
    @JsonPropertyDescription("Name of the metric, which must have exactly one series: a fraction from 0 to 1, or the amount of\nfinished work if there is a total.")
    private String name;
    /**
     * Path of the page, in Prometheus' text format, at most 64 KiB.
     * 
     */
    @JsonProperty("path")
    @JsonPropertyDescription("Path of the page, in Prometheus' text format, at most 64 KiB.")
    private String path;
    /**
     * Port of the pod.
     * (Required)
     * 
     */
    @JsonProperty("port")
    @JsonPropertyDescription("Port of the pod.")
    private Integer port;
    /**
     * Name of the metric with the task's total work. Absent: the first metric is a fraction.
     * 
     */
    @JsonProperty("total")
    @JsonPropertyDescription("Name of the metric with the task's total work. Absent: the first metric is a fraction.")
    private String total;
    @JsonIgnore
    private Map<String, Object> additionalProperties = new LinkedHashMap<String, Object>();

    /**
     * Name of the metric, which must have exactly one series: a fraction from 0 to 1, or the amount of
     * finished work if there is a total.
     * (Required)
     * 
     */
    @JsonProperty("name")
    public String getName() {
        return name;
    }

    /**
     * Name of the metric, which must have exactly one series: a fraction from 0 to 1, or the amount of
     * finished work if there is a total.
     * (Required)
     * 
     */
    @JsonProperty("name")
    public void setName(String name) {
        this.name = name;
    }

    public ProgressMetric withName(String name) {
        this.name = name;
        return this;
    }

    /**
     * Path of the page, in Prometheus' text format, at most 64 KiB.
     * 
     */
    @JsonProperty("path")
    public String getPath() {
        return path;
    }

    /**
     * Path of the page, in Prometheus' text format, at most 64 KiB.
     * 
     */
    @JsonProperty("path")
    public void setPath(String path) {
        this.path = path;
    }

    public ProgressMetric withPath(String path) {
        this.path = path;
        return this;
    }

    /**
     * Port of the pod.
     * (Required)
     * 
     */
    @JsonProperty("port")
    public Integer getPort() {
        return port;
    }

    /**
     * Port of the pod.
     * (Required)
     * 
     */
    @JsonProperty("port")
    public void setPort(Integer port) {
        this.port = port;
    }

    public ProgressMetric withPort(Integer port) {
        this.port = port;
        return this;
    }

    /**
     * Name of the metric with the task's total work. Absent: the first metric is a fraction.
     * 
     */
    @JsonProperty("total")
    public String getTotal() {
        return total;
    }

    /**
     * Name of the metric with the task's total work. Absent: the first metric is a fraction.
     * 
     */
    @JsonProperty("total")
    public void setTotal(String total) {
        this.total = total;
    }

    public ProgressMetric withTotal(String total) {
        this.total = total;
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

    public ProgressMetric withAdditionalProperty(String name, Object value) {
        this.additionalProperties.put(name, value);
        return this;
    }

    @Override
    public String toString() {
        StringBuilder sb = new StringBuilder();
        sb.append(ProgressMetric.class.getName()).append('@').append(Integer.toHexString(System.identityHashCode(this))).append('[');
        sb.append("name");
        sb.append('=');
        sb.append(((this.name == null)?"<null>":this.name));
        sb.append(',');
        sb.append("path");
        sb.append('=');
        sb.append(((this.path == null)?"<null>":this.path));
        sb.append(',');
        sb.append("port");
        sb.append('=');
        sb.append(((this.port == null)?"<null>":this.port));
        sb.append(',');
        sb.append("total");
        sb.append('=');
        sb.append(((this.total == null)?"<null>":this.total));
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
