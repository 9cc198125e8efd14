# What the operator's own token may write, against a cluster with the chart in it; read by chart-cluster.sh, whose
# functions and namespace it uses. A stolen token is the operator's account, impersonated. Every write of it is a dry
# run on the server, which calls admission too.
# shellcheck shell=bash

stolen() { kubectl --as "$operator" --namespace "$ns" "$@" --dry-run=server 2>&1; }
# `can NAME COMMAND…` and `cannot TEXT NAME COMMAND…`, with what the token does.
can() {
    local name=$1 out
    shift
    if out=$(stolen "$@"); then ok; else bad "$name: refused" "$out"; fi
}
cannot() {
    local text=$1 name=$2 out
    shift 2
    if out=$(stolen "$@"); then bad "$name: not refused" "$out"; elif grep -Fq -- "$text" <<<"$out"; then ok; else bad "$name: no '$text'" "$out"; fi
}
# `pod KIND APIVERSION FINALIZERS [CONTROLLER]` prints a pod with an owner of this kind.
pod() {
    cat <<YAML
apiVersion: v1
kind: Pod
metadata:
  name: attempt
  finalizers: [$3]
  labels: {app: report, shed.dev/job-uid: a}
  annotations: {example.org/team: batch}
  ownerReferences: [{apiVersion: $2, kind: $1, name: report, uid: 11111111-2222-3333-4444-555555555555, controller: ${4-true}}]
spec: {containers: [{name: task, image: busybox:1.37}]}
YAML
}
# `companion OWNER-KIND` prints a DeadlineJob with a controller of this kind.
companion() {
    job stolen "${good[@]}" | sed "s|^metadata: {|&ownerReferences: [{apiVersion: batch/v1, kind: $1, name: report, uid: 11111111-2222-3333-4444-555555555555, controller: true}], |"
}
tracking=shed.dev/attempt-tracking batch=batch.kubernetes.io/job-tracking

# A policy reaches the apiserver a moment after it was created.
for _ in $(seq 50); do
    ! stolen run loose --image busybox:1.37 >/dev/null || break
    sleep 0.2
done

attempt='only as an attempt'
cannot "$attempt" 'a pod of nobody' run loose --image busybox:1.37
can 'an attempt of a DeadlineJob' create --filename - < <(pod DeadlineJob shed.dev/v1alpha1 $tracking)
can 'an attempt of a Job' create --filename - < <(pod Job batch/v1 $batch)
cannot "$attempt" 'a pod without a finalizer' create --filename - < <(pod DeadlineJob shed.dev/v1alpha1 '')
cannot "$attempt" 'a pod with the finalizer of Jobs' create --filename - < <(pod DeadlineJob shed.dev/v1alpha1 $batch)
cannot "$attempt" 'a pod of a ReplicaSet' create --filename - < <(pod ReplicaSet apps/v1 $tracking)
cannot "$attempt" 'a pod of a kind of the same name' create --filename - < <(pod Job example.org/v1 $batch)
cannot "$attempt" 'a pod without a controller' create --filename - < <(pod Job batch/v1 $batch false)
cannot 'operatorPolicy.excludedNamespaces' 'a pod in kube-system' create --namespace kube-system --filename - < <(pod Job batch/v1 $batch)

# The owner exists, so that the pod stays.
owner=$(kubectl get configmap kube-root-ca.crt --namespace "$ns" --output jsonpath='{.metadata.uid}')
pod ConfigMap v1 "$tracking, example.org/hold" false | sed "s|name: report, uid: [0-9-]*|name: kube-root-ca.crt, uid: $owner|" |
    kubectl create --namespace "$ns" --filename - >/dev/null
patch() {
    local type=merge
    if [[ $1 == *containers* ]]; then type=strategic; fi
    printf '%s\n' patch pod attempt --type "$type" --patch "$1"
}
while IFS='|' read -r text change; do
    mapfile -t words < <(patch "$change")
    if [ -z "$text" ]; then can "$change" "${words[@]}"; else cannot "$text" "$change" "${words[@]}"; fi
done <<'TABLE'
|{"metadata": {"finalizers": ["example.org/hold"]}}
|{"metadata": {"finalizers": ["example.org/hold", "batch.kubernetes.io/job-tracking"]}}
|{"metadata": {"labels": {"shed.dev/job-uid": null}}}
|{"metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "100", "shed.dev/expected-end": "2030-01-31T08:00:00Z"}}}
|{"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true", "cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}}}
change no finalizer|{"metadata": {"finalizers": ["shed.dev/attempt-tracking"]}}
change no finalizer|{"metadata": {"finalizers": ["shed.dev/attempt-tracking", "example.org/hold", "example.org/more"]}}
change no label|{"metadata": {"labels": {"app": "other"}}}
change no label|{"metadata": {"labels": {"app": null}}}
change no label|{"metadata": {"labels": {"more": "x"}}}
change no label|{"metadata": {"labels": {"karpenter.sh/do-not-disrupt": "true"}}}
change no annotation|{"metadata": {"annotations": {"shed.dev/job-uid": "x"}}}
change no annotation|{"metadata": {"annotations": {"example.org/team": "other"}}}
change no annotation|{"metadata": {"annotations": {"example.org/more": "x"}}}
change no owner|{"metadata": {"ownerReferences": null}}
may not change the spec|{"spec": {"containers": [{"name": "task", "image": "busybox:1.36"}]}}
may not change the spec|{"spec": {"activeDeadlineSeconds": 1}}
TABLE
kubectl patch pod attempt --namespace "$ns" --type merge --patch '{"metadata": {"finalizers": null}}' >/dev/null

of_job='only the companion of a Job'
cannot "$of_job" 'a DeadlineJob of its own' create --filename - < <(job stolen "${good[@]}")
cannot "$of_job" 'a DeadlineJob of another kind' create --filename - < <(companion CronJob)
can 'a companion' create --filename - < <(companion Job)
job own "${good[@]}" 'suspend: true' | kubectl create --filename - >/dev/null
cannot "$of_job" "a user's DeadlineJob" patch deadlinejob own --type merge --patch '{"spec": {"completions": 3}}'
kubectl delete deadlinejob own --namespace "$ns" --wait=false >/dev/null
kubectl delete pod attempt --namespace "$ns" --wait=false --grace-period=0 --force >/dev/null 2>&1
