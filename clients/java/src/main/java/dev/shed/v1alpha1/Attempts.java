
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
 * Attempts
 * <p>
 * Totals of the job's attempts.
 * 
 */
@JsonInclude(JsonInclude.Include.NON_NULL)
@JsonPropertyOrder({
    "cloneFailed",
    "cloneWins",
    "clones",
    "disrupted",
    "failed",
    "late",
    "originals",
    "refused",
    "retries",
    "superseded",
    "won"
})
public class Attempts {

    /**
     * Clones that failed while a sibling lived.
     * 
     */
    @JsonProperty("cloneFailed")
    @JsonPropertyDescription("Clones that failed while a sibling lived.")
    private Integer cloneFailed;
    /**
     * Clones that won their task.
     * 
     */
    @JsonProperty("cloneWins")
    @JsonPropertyDescription("Clones that won their task.")
    private Integer cloneWins;
    /**
     * Clones launched.
     * 
     */
    @JsonProperty("clones")
    @JsonPropertyDescription("Clones launched.")
    private Integer clones;
    /**
     * Attempts lost to eviction, preemption, node loss or deletion by other clients.
     * 
     */
    @JsonProperty("disrupted")
    @JsonPropertyDescription("Attempts lost to eviction, preemption, node loss or deletion by other clients.")
    private Integer disrupted;
    /**
     * Attempts that failed and count against their task's back-off limit.
     * 
     */
    @JsonProperty("failed")
    @JsonPropertyDescription("Attempts that failed and count against their task's back-off limit.")
    private Integer failed;
    /**
     * Attempts that finished after the deadline of a job with onMiss: Fail.
     * 
     */
    @JsonProperty("late")
    @JsonPropertyDescription("Attempts that finished after the deadline of a job with onMiss: Fail.")
    private Integer late;
    /**
     * First attempts launched.
     * 
     */
    @JsonProperty("originals")
    @JsonPropertyDescription("First attempts launched.")
    private Integer originals;
    /**
     * Attempts that the apiserver refused to create.
     * 
     */
    @JsonProperty("refused")
    @JsonPropertyDescription("Attempts that the apiserver refused to create.")
    private Integer refused;
    /**
     * Retries launched.
     * 
     */
    @JsonProperty("retries")
    @JsonPropertyDescription("Retries launched.")
    private Integer retries;
    /**
     * Attempts that shed stopped, or that finished after a sibling had won.
     * 
     */
    @JsonProperty("superseded")
    @JsonPropertyDescription("Attempts that shed stopped, or that finished after a sibling had won.")
    private Integer superseded;
    /**
     * Attempts that won their task.
     * 
     */
    @JsonProperty("won")
    @JsonPropertyDescription("Attempts that won their task.")
    private Integer won;
    @JsonIgnore
    private Map<String, Object> additionalProperties = new LinkedHashMap<String, Object>();

    /**
     * Clones that failed while a sibling lived.
     * 
     */
    @JsonProperty("cloneFailed")
    public Integer getCloneFailed() {
        return cloneFailed;
    }

    /**
     * Clones that failed while a sibling lived.
     * 
     */
    @JsonProperty("cloneFailed")
    public void setCloneFailed(Integer cloneFailed) {
        this.cloneFailed = cloneFailed;
    }

    public Attempts withCloneFailed(Integer cloneFailed) {
        this.cloneFailed = cloneFailed;
        return this;
    }

    /**
     * Clones that won their task.
     * 
     */
    @JsonProperty("cloneWins")
    public Integer getCloneWins() {
        return cloneWins;
    }

    /**
     * Clones that won their task.
     * 
     */
    @JsonProperty("cloneWins")
    public void setCloneWins(Integer cloneWins) {
        this.cloneWins = cloneWins;
    }

    public Attempts withCloneWins(Integer cloneWins) {
        this.cloneWins = cloneWins;
        return this;
    }

    /**
     * Clones launched.
     * 
     */
    @JsonProperty("clones")
    public Integer getClones() {
        return clones;
    }

    /**
     * Clones launched.
     * 
     */
    @JsonProperty("clones")
    public void setClones(Integer clones) {
        this.clones = clones;
    }

    public Attempts withClones(Integer clones) {
        this.clones = clones;
        return this;
    }

    /**
     * Attempts lost to eviction, preemption, node loss or deletion by other clients.
     * 
     */
    @JsonProperty("disrupted")
    public Integer getDisrupted() {
        return disrupted;
    }

    /**
     * Attempts lost to eviction, preemption, node loss or deletion by other clients.
     * 
     */
    @JsonProperty("disrupted")
    public void setDisrupted(Integer disrupted) {
        this.disrupted = disrupted;
    }

    public Attempts withDisrupted(Integer disrupted) {
        this.disrupted = disrupted;
        return this;
    }

    /**
     * Attempts that failed and count against their task's back-off limit.
     * 
     */
    @JsonProperty("failed")
    public Integer getFailed() {
        return failed;
    }

    /**
     * Attempts that failed and count against their task's back-off limit.
     * 
     */
    @JsonProperty("failed")
    public void setFailed(Integer failed) {
        this.failed = failed;
    }

    public Attempts withFailed(Integer failed) {
        this.failed = failed;
        return this;
    }

    /**
     * Attempts that finished after the deadline of a job with onMiss: Fail.
     * 
     */
    @JsonProperty("late")
    public Integer getLate() {
        return late;
    }

    /**
     * Attempts that finished after the deadline of a job with onMiss: Fail.
     * 
     */
    @JsonProperty("late")
    public void setLate(Integer late) {
        this.late = late;
    }

    public Attempts withLate(Integer late) {
        this.late = late;
        return this;
    }

    /**
     * First attempts launched.
     * 
     */
    @JsonProperty("originals")
    public Integer getOriginals() {
        return originals;
    }

    /**
     * First attempts launched.
     * 
     */
    @JsonProperty("originals")
    public void setOriginals(Integer originals) {
        this.originals = originals;
    }

    public Attempts withOriginals(Integer originals) {
        this.originals = originals;
        return this;
    }

    /**
     * Attempts that the apiserver refused to create.
     * 
     */
    @JsonProperty("refused")
    public Integer getRefused() {
        return refused;
    }

    /**
     * Attempts that the apiserver refused to create.
     * 
     */
    @JsonProperty("refused")
    public void setRefused(Integer refused) {
        this.refused = refused;
    }

    public Attempts withRefused(Integer refused) {
        this.refused = refused;
        return this;
    }

    /**
     * Retries launched.
     * 
     */
    @JsonProperty("retries")
    public Integer getRetries() {
        return retries;
    }

    /**
     * Retries launched.
     * 
     */
    @JsonProperty("retries")
    public void setRetries(Integer retries) {
        this.retries = retries;
    }

    public Attempts withRetries(Integer retries) {
        this.retries = retries;
        return this;
    }

    /**
     * Attempts that shed stopped, or that finished after a sibling had won.
     * 
     */
    @JsonProperty("superseded")
    public Integer getSuperseded() {
        return superseded;
    }

    /**
     * Attempts that shed stopped, or that finished after a sibling had won.
     * 
     */
    @JsonProperty("superseded")
    public void setSuperseded(Integer superseded) {
        this.superseded = superseded;
    }

    public Attempts withSuperseded(Integer superseded) {
        this.superseded = superseded;
        return this;
    }

    /**
     * Attempts that won their task.
     * 
     */
    @JsonProperty("won")
    public Integer getWon() {
        return won;
    }

    /**
     * Attempts that won their task.
     * 
     */
    @JsonProperty("won")
    public void setWon(Integer won) {
        this.won = won;
    }

    public Attempts withWon(Integer won) {
        this.won = won;
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

    public Attempts withAdditionalProperty(String name, Object value) {
        this.additionalProperties.put(name, value);
        return this;
    }

    @Override
    public String toString() {
        StringBuilder sb = new StringBuilder();
        sb.append(Attempts.class.getName()).append('@').append(Integer.toHexString(System.identityHashCode(this))).append('[');
        sb.append("cloneFailed");
        sb.append('=');
        sb.append(((this.cloneFailed == null)?"<null>":this.cloneFailed));
        sb.append(',');
        sb.append("cloneWins");
        sb.append('=');
        sb.append(((this.cloneWins == null)?"<null>":this.cloneWins));
        sb.append(',');
        sb.append("clones");
        sb.append('=');
        sb.append(((this.clones == null)?"<null>":this.clones));
        sb.append(',');
        sb.append("disrupted");
        sb.append('=');
        sb.append(((this.disrupted == null)?"<null>":this.disrupted));
        sb.append(',');
        sb.append("failed");
        sb.append('=');
        sb.append(((this.failed == null)?"<null>":this.failed));
        sb.append(',');
        sb.append("late");
        sb.append('=');
        sb.append(((this.late == null)?"<null>":this.late));
        sb.append(',');
        sb.append("originals");
        sb.append('=');
        sb.append(((this.originals == null)?"<null>":this.originals));
        sb.append(',');
        sb.append("refused");
        sb.append('=');
        sb.append(((this.refused == null)?"<null>":this.refused));
        sb.append(',');
        sb.append("retries");
        sb.append('=');
        sb.append(((this.retries == null)?"<null>":this.retries));
        sb.append(',');
        sb.append("superseded");
        sb.append('=');
        sb.append(((this.superseded == null)?"<null>":this.superseded));
        sb.append(',');
        sb.append("won");
        sb.append('=');
        sb.append(((this.won == null)?"<null>":this.won));
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
