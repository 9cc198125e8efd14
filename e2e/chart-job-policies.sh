# The policies on Jobs, against a cluster with the chart in it; read by chart-cluster.sh, whose functions and namespace it
# uses. Every create is a dry run on the server, which calls admission too.
# shellcheck shell=bash

# `batch_job ANNOTATIONS [MORE-SPEC]` prints a Job; both are in YAML's flow style.
batch_job() {
    cat <<YAML
apiVersion: batch/v1
kind: Job
metadata: {name: policy, namespace: $ns, annotations: {$1}}
spec: {${2-}${2:+, }template: {metadata: {annotations: {${3-}}}, spec: {restartPolicy: Never, containers: [{name: task, image: busybox:1.37}]}}}
YAML
}
# `cron_job OWN-ANNOTATIONS JOB-ANNOTATIONS [MORE-SPEC]`
cron_job() {
    cat <<YAML
apiVersion: batch/v1
kind: CronJob
metadata: {name: policy, namespace: $ns, annotations: {$1}}
spec:
  schedule: "0 1 * * *"
  jobTemplate:
    metadata: {annotations: {$2}}
    spec: {${3-}${3:+, }template: {spec: {restartPolicy: Never, containers: [{name: task, image: busybox:1.37}]}}}
YAML
}
# `warns TEXT NAME < OBJECT`: kubectl prints a warning with this text. An empty text stands for no warning.
warns() {
    local out
    out=$(submit 2>&1) || { bad "$2: refused" "$out"; return; }
    if [ -z "$1" ]; then
        if grep -q '^Warning' <<<"$out"; then bad "$2: a warning" "$out"; else ok; fi
    elif grep '^Warning' <<<"$out" | grep -Fq -- "$1"; then
        ok
    else
        bad "$2: no warning '$1'" "$out"
    fi
}
manager() { submit --output jsonpath='{.spec.managedBy}' 2>/dev/null; }

managed='managedBy: shed.dev/deadline-controller'
# A policy reaches the apiserver a moment after it was created.
for _ in $(seq 50); do
    ! grep -q '^Warning' <<<"$(batch_job 'shed.dev/deadlin: 5m' "$managed" | submit 2>&1)" || break
    sleep 0.2
done

# What shed accepts brings no warning.
for text in 90s 1h30m 1.5h 300ms 2030-01-31T08:00:00Z 2030-01-31T08:00:00+01:00 '06:00 Europe/Zurich' 'history(p95)*1.5' 'history(max)' 'history( p50 ) * 2'; do
    warns '' "the deadline $text" < <(batch_job "shed.dev/deadline: \"$text\"" "$managed")
done
warns '' 'all annotations' < <(batch_job 'shed.dev/deadline: 5m, shed.dev/clock-start: Start, shed.dev/on-miss: Fail, shed.dev/idempotency: Safe,
    shed.dev/progress: "{file: {}, periodSeconds: 3}", shed.dev/resume: Checkpoint, shed.dev/preemption: WhenCheckpointed, shed.dev/speculation: Observe,
    shed.dev/max-clones-per-task: "20", shed.dev/clone-budget: "0.2", shed.dev/target-pocd: "0.95", shed.dev/expected-task-duration: "{p50: 10m, p90: 15m}",
    shed.dev/workflow: etl-20300131T0800, shed.dev/workflow-deadline: "06:00 Europe/Zurich", shed.dev/workflow-class: etl,
    shed.dev/workflow-start: 2030-01-31T08:00:00Z, shed.dev/workflow-last: "true"' "$managed")
warns '' 'clones of a stage' < <(batch_job 'shed.dev/workflow: etl-1, shed.dev/workflow-deadline: 4h, shed.dev/idempotency: Safe, shed.dev/speculation: Enabled' "$managed")
warns '' 'a Job that is none of shed' < <(batch_job 'example.org/team: batch')
warns '' 'a Job of another controller without annotations' < <(batch_job '' 'managedBy: example.com/other')
warns '' 'a CronJob with both lines' < <(cron_job '' 'shed.dev/deadline: 5h' "$managed")

# What shed refuses, or what has no effect.
while IFS='|' read -r annotations text; do
    warns "$text" "a Job with $annotations" < <(batch_job "$annotations" "$managed")
    warns "$text" "a CronJob with $annotations" < <(cron_job '' "$annotations" "$managed")
done <<'TABLE'
shed.dev/deadlin: 5m|shed.dev/deadlin: is unknown: use one of shed.dev/deadline
shed.dev/deadline: soon|shed.dev/deadline: invalid deadline `soon`: use a value such as
shed.dev/deadline: 10 min|invalid deadline `10 min`
shed.dev/deadline: 0s|invalid deadline `0s`
shed.dev/deadline: "25:00 Europe/Zurich"|invalid deadline `25:00 Europe/Zurich`
shed.dev/deadline: "06:00"|invalid deadline `06:00`
shed.dev/deadline: history(p80)|invalid deadline `history(p80)`
shed.dev/deadline: 5m, shed.dev/on-miss: fail|shed.dev/on-miss: invalid value `fail`: use Continue or Fail
shed.dev/deadline: 5m, shed.dev/idempotency: safe|shed.dev/idempotency: invalid value `safe`
shed.dev/deadline: 5m, shed.dev/idempotency: Fenced|Fenced needs shed.dev/progress: file
shed.dev/deadline: 5m, shed.dev/resume: Checkpoint|Checkpoint needs shed.dev/progress
shed.dev/deadline: 5m, shed.dev/preemption: WhenCheckpointed|needs shed.dev/resume: Checkpoint
shed.dev/deadline: 5m, shed.dev/speculation: Observe|clones need shed.dev/deadline or shed.dev/workflow-deadline, and shed.dev/idempotency
shed.dev/deadline: 5m, shed.dev/progress: pigeon|shed.dev/progress: invalid value `pigeon`
shed.dev/deadline: 5m, shed.dev/max-clones-per-task: "21"|use a number from 0 to 20
shed.dev/deadline: 5m, shed.dev/clone-budget: "21"|use a share from 0 to 20
shed.dev/deadline: 5m, shed.dev/target-pocd: "1.5"|invalid probability `1.5`
shed.dev/deadline: 5m, shed.dev/expected-task-duration: long|invalid value `long`
shed.dev/deadline: "06:00 Europe/Zurich", shed.dev/clock-start: Start|needs a duration in shed.dev/deadline
shed.dev/workflow-deadline: 4h|shed.dev/workflow-deadline: needs shed.dev/workflow
shed.dev/workflow: "etl 1"|shed.dev/workflow: invalid name `etl 1`
shed.dev/workflow: etl-1, shed.dev/workflow-class: "a/b"|shed.dev/workflow-class: invalid name `a/b`
shed.dev/workflow: etl-1, shed.dev/workflow-deadline: soon|shed.dev/workflow-deadline: invalid deadline `soon`
shed.dev/workflow: etl-1, shed.dev/workflow-deadline: 4h, shed.dev/deadline: history(p95)|does not work with shed.dev/workflow-deadline
shed.dev/workflow: etl-1, shed.dev/workflow-start: now|shed.dev/workflow-start: invalid value `now`
shed.dev/workflow: etl-1, shed.dev/workflow-last: "yes"|shed.dev/workflow-last: invalid value `yes`
TABLE
warns 'has no effect on a pod template: move it' 'a deadline of the pods' < <(batch_job '' '' 'shed.dev/deadline: 5m')
warns 'has no effect on a CronJob: move it to spec.jobTemplate.metadata.annotations' 'a deadline of the CronJob' < <(cron_job 'shed.dev/deadline: 5h' '')
warns '`example.com/other` runs this Job' 'a deadline for another controller' < <(batch_job 'shed.dev/deadline: 5m' 'managedBy: example.com/other')
warns 'has no effect without spec.managedBy: shed.dev/deadline-controller' 'a deadline without a manager' < <(batch_job 'shed.dev/deadline: 5m')
warns 'has no effect without spec.managedBy' 'a CronJob without a manager' < <(cron_job '' 'shed.dev/deadline: 5h')

# In a namespace that is only watched, a deadline needs no manager. Other mistakes are still named.
out=$(kubectl label namespace "$ns" shed.dev/jobs=watch 2>&1)
if grep -q '^Warning' <<<"$out"; then bad 'a namespace that is watched' "$out"; else ok; fi
for _ in $(seq 50); do
    grep -q '^Warning' <<<"$(batch_job 'shed.dev/deadline: 5m' | submit 2>&1)" || break
    sleep 0.2
done
warns '' 'a deadline in a namespace that is watched' < <(batch_job 'shed.dev/deadline: 5m')
warns '' 'a CronJob in a namespace that is watched' < <(cron_job '' 'shed.dev/deadline: 5h')
warns 'invalid deadline `soon`' 'a wrong deadline in a namespace that is watched' < <(batch_job 'shed.dev/deadline: soon')
out=$(batch_job 'shed.dev/deadline: 5m' | manager)
if [ -z "$out" ]; then ok; else bad "a namespace that is watched: managedBy is '$out'"; fi

# In a chosen namespace the annotation is enough, if the apiserver has the API.
has 'unknown value `yes`: use run or watch' 'an unknown choice' kubectl label --overwrite --dry-run=server namespace "$ns" shed.dev/jobs=yes
for out in 'label shed.dev/share=0|shed.dev/share: invalid value `0`' 'label shed.dev/class=a|shed.dev/class: is unknown as a label' \
    'annotate shed.dev/clones=halt|shed.dev/clones: unknown value `halt`: use stop' \
    'annotate shed.dev/clone-budget=21|shed.dev/clone-budget: invalid value `21`' \
    'annotate shed.dev/max-active-jobs=0|shed.dev/max-active-jobs: invalid value `0`' \
    'annotate shed.dev/share=2|shed.dev/share: is unknown as an annotation'; do
    read -r verb value <<<"${out%%|*}"
    has "${out#*|}" "a Namespace with $value" kubectl "$verb" --overwrite --dry-run=server namespace "$ns" "$value"
done
for out in 'label shed.dev/share=0.5' 'annotate shed.dev/clones=stop' 'annotate shed.dev/clone-budget=0.05' 'annotate shed.dev/max-active-jobs=20'; do
    read -r verb value <<<"$out"
    out=$(kubectl "$verb" --overwrite --dry-run=server namespace "$ns" "$value" 2>&1)
    if grep -q '^Warning' <<<"$out"; then bad "a Namespace with $value: a warning" "$out"; else ok; fi
done
out=$(kubectl label --overwrite namespace "$ns" shed.dev/jobs=run 2>&1)
if grep -q '^Warning' <<<"$out"; then bad 'a chosen namespace' "$out"; else ok; fi
if kubectl get mutatingadmissionpolicies "$release-managed-by" >/dev/null 2>&1; then
    for _ in $(seq 50); do
        [ -z "$(batch_job 'shed.dev/deadline: 5m' | manager)" ] || break
        sleep 0.2
    done
    sets() { # sets WANTED NAME < OBJECT
        local found
        found=$(manager)
        if [ "$found" = "$1" ]; then ok; else bad "$2: managedBy is '$found', not '$1'"; fi
    }
    sets shed.dev/deadline-controller 'a deadline alone' < <(batch_job 'shed.dev/deadline: 5m')
    sets shed.dev/deadline-controller 'a stage of a workflow' < <(batch_job 'shed.dev/workflow: etl-1, shed.dev/workflow-deadline: 4h')
    sets shed.dev/deadline-controller 'a time of day' < <(batch_job 'shed.dev/deadline: "06:00 Europe/Zurich"')
    sets '' 'a Job without a deadline' < <(batch_job 'shed.dev/idempotency: Safe')
    sets '' 'a deadline that cannot be read' < <(batch_job 'shed.dev/deadline: soon')
    sets '' 'another annotation that cannot be read' < <(batch_job 'shed.dev/deadline: 5m, shed.dev/on-miss: fail')
    sets example.com/other 'a Job with a manager' < <(batch_job 'shed.dev/deadline: 5m' 'managedBy: example.com/other')
    warns '' 'a deadline alone' < <(batch_job 'shed.dev/deadline: 5m')
    warns '' 'a CronJob with a deadline alone' < <(cron_job '' 'shed.dev/deadline: 5h')
    warns 'invalid deadline `soon`' 'a wrong deadline in a chosen namespace' < <(batch_job 'shed.dev/deadline: soon')
    # The Job of a CronJob is a Job like any other. Nothing runs: it is suspended.
    kubectl create --filename - >/dev/null < <(cron_job '' 'shed.dev/deadline: 5h' 'suspend: true')
    kubectl create job --namespace "$ns" policy-night --from=cronjob/policy >/dev/null
    out=$(kubectl get job --namespace "$ns" policy-night -o jsonpath='{.spec.managedBy}')
    if [ "$out" = shed.dev/deadline-controller ]; then ok; else bad "the Job of a CronJob: managedBy is '$out'"; fi
    kubectl delete --namespace "$ns" --ignore-not-found job/policy-night cronjob/policy --wait=false >/dev/null
else
    echo 'skipped: this apiserver has no MutatingAdmissionPolicy'
fi
kubectl label namespace "$ns" shed.dev/jobs- >/dev/null
