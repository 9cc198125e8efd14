# The part of chart-test.sh that needs a cluster with the chart in it; read by
# chart-test.sh, whose functions it uses. All but the test's own namespace is
# left as it was: every create is a dry run on the server, or in that namespace.
# shellcheck shell=bash

release=${SHED_RELEASE:-shed}
system=${SHED_NAMESPACE:-shed-system}
ns=shed-chart-test
operator=system:serviceaccount:$system:$release

# The result of a command must hold a text: `has TEXT NAME COMMAND…`.
has() {
    local text=$1 name=$2 out
    shift 2
    out=$("$@" 2>&1) || true
    if grep -Fq -- "$text" <<<"$out"; then ok; else bad "$name: no '$text' in the answer" "$out"; fi
}
# `job NAME SPEC-LINES…` prints a DeadlineJob; a line begins with its key.
job() {
    local name=$1 line
    shift
    printf 'apiVersion: shed.dev/v1alpha1\nkind: DeadlineJob\nmetadata: {name: %s, namespace: %s}\nspec:\n' "$name" "$ns"
    for line in "$@"; do printf '  %s\n' "$line"; done
}
deadline='deadline: {within: 10m}'
completions='completions: 2'
safe='idempotency: Safe'
template='template: {spec: {containers: [{name: task, image: busybox:1.37}]}}'
good=("$deadline" "$completions" "$safe" "$template")

submit() { kubectl create --dry-run=server --filename - "$@"; }
# `refused TEXT SPEC-LINES…`
refused() {
    local text=$1
    shift
    has "$text" "spec with [$*]" submit < <(job bad "$@")
}
may() { # may USER yes|no VERB RESOURCE [arguments…]
    local user=$1 wanted=$2 out
    shift 2
    # Warnings (a resource that isn't namespaced) go to the standard error.
    out=$(kubectl auth can-i --as "$user" --namespace "$ns" "$@" 2>/dev/null) || true
    if [ "$out" = "$wanted" ]; then ok; else bad "can $user $*: '$out', wanted '$wanted'"; fi
}

command -v kubectl >/dev/null || PATH=$(dirname -- "$(e2e/cluster/cluster tool helm | tail -n 1)"):$PATH
# `kubectl wait` ends with an error while a definition has no condition at all yet.
served=no
for _ in $(seq 150); do
    if kubectl get deadlinejobs.shed.dev --all-namespaces >/dev/null 2>&1; then
        served=yes
        break
    fi
    sleep 0.2
done
[ "$served" = yes ] || {
    echo 'chart-test: the apiserver does not serve DeadlineJobs after 30 s: is the chart installed?' >&2
    exit 1
}
kubectl delete namespace "$ns" --ignore-not-found --wait >/dev/null
kubectl create namespace "$ns" >/dev/null
pages=$(mktemp -d "${TMPDIR:-/tmp}/shed-pages.XXXXXX")
trap 'rm -rf -- "$pages"; kubectl delete namespace "$ns" --ignore-not-found --wait=false >/dev/null' EXIT

# What the operator may and may not.
for verb in get list watch delete; do may "$operator" yes "$verb" deadlinejobs.shed.dev; done
may "$operator" yes update deadlinejobs.shed.dev --subresource status
may "$operator" no patch deadlinejobs.shed.dev --subresource status
may "$operator" yes update deadlinejobs.shed.dev --subresource finalizers
for verb in get list watch create delete patch; do may "$operator" yes "$verb" pods; done
for verb in list watch; do may "$operator" yes "$verb" nodes; done
for verb in list watch; do may "$operator" yes "$verb" namespaces; done
for verb in get create update patch delete; do may "$operator" no "$verb" namespaces; done
may "$operator" yes get persistentvolumeclaims
for verb in list watch update delete; do may "$operator" no "$verb" persistentvolumeclaims; done
# The Lease, in its own namespace and under its own name only.
for verb in get update; do may "$operator" yes "$verb" "leases.coordination.k8s.io/$release" --namespace "$system"; done
may "$operator" no create leases.coordination.k8s.io --namespace "$system"
may "$operator" no get leases.coordination.k8s.io/other --namespace "$system"
may "$operator" no delete "leases.coordination.k8s.io/$release" --namespace "$system"
may "$operator" no get "leases.coordination.k8s.io/$release"
for verb in create patch; do may "$operator" yes "$verb" events.events.k8s.io; done
# Its own events go by the newer group alone.
for verb in create patch; do may "$operator" no "$verb" events; done
may "$operator" yes get "priorityclasses.scheduling.k8s.io/$release-clones"
may "$operator" no get priorityclasses.scheduling.k8s.io/other
# Its key, by name and in its own namespace.
for verb in get update; do may "$operator" yes "$verb" "secrets/$release-signing-key" --namespace "$system"; done
may "$operator" no create secrets --namespace "$system"
may "$operator" no get secrets/other --namespace "$system"
may "$operator" no list secrets --namespace "$system"
# What it has learned, by name and in its own namespace.
for verb in get patch; do may "$operator" yes "$verb" "configmaps/$release-state" --namespace "$system"; done
for verb in get patch; do may "$operator" no "$verb" configmaps/other --namespace "$system"; done
may "$operator" no create configmaps --namespace "$system"
may "$operator" no get "configmaps/$release-state"
# Companions of batch/v1 Jobs: the operator writes only the status of these Jobs.
for verb in create patch; do may "$operator" yes "$verb" deadlinejobs.shed.dev; done
may "$operator" no update deadlinejobs.shed.dev
for verb in get list watch; do may "$operator" yes "$verb" jobs.batch; done
for sub in status finalizers; do may "$operator" yes update jobs.batch --subresource "$sub"; done
for verb in create update patch delete; do may "$operator" no "$verb" jobs.batch; done
for verb in update deletecollection; do may "$operator" no "$verb" pods; done
for verb in get list watch create; do may "$operator" no "$verb" secrets; done
for sub in exec attach portforward ephemeralcontainers; do may "$operator" no create pods --subresource "$sub"; done
for verb in update patch delete; do may "$operator" no "$verb" nodes; done
for verb in escalate bind; do may "$operator" no "$verb" clusterroles.rbac.authorization.k8s.io; done
may "$operator" no impersonate users
may "$operator" no create serviceaccounts --subresource token
may "$operator" no '*' '*'
# Its requests do not wait with those of all service accounts.
has "flow_schema=\"$release-$system\"" "the operator's FlowSchema" kubectl get --raw /metrics

# What users get by the cluster's own roles.
kubectl --namespace "$ns" create rolebinding viewer --clusterrole view --user viewer >/dev/null
kubectl --namespace "$ns" create rolebinding editor --clusterrole edit --user editor >/dev/null
kubectl --namespace "$ns" create rolebinding owner --clusterrole admin --user owner >/dev/null
# A role that names DeadlineJobs alone.
kubectl --namespace "$ns" create role jobs-only --verb get,create,update,patch --resource deadlinejobs.shed.dev >/dev/null
kubectl --namespace "$ns" create rolebinding jobs-only --role jobs-only --user jobs-only >/dev/null
# Roles aggregate a moment after they were created.
for _ in $(seq 50); do
    [ "$(kubectl auth can-i --as owner --namespace "$ns" create deadlinejobs.shed.dev 2>/dev/null)" = yes ] && break
    sleep 0.2
done
may viewer yes get deadlinejobs.shed.dev
may viewer no create deadlinejobs.shed.dev
for user in editor owner; do
    for verb in get list watch create update patch delete deletecollection; do may "$user" yes "$verb" deadlinejobs.shed.dev; done
    for verb in update patch; do may "$user" no "$verb" deadlinejobs.shed.dev --subresource status; done
done

# The admission policy. It reaches the apiserver a moment after it was created.
for _ in $(seq 50); do
    job probe "${good[@]}" | submit --as jobs-only >/dev/null 2>&1 || break
    sleep 0.2
done
has 'user "jobs-only" may not create pods in namespace "shed-chart-test"' "create without pods" submit --as jobs-only < <(job refused "${good[@]}")
has 'kubectl create rolebinding' "the refusal says what to do" submit --as jobs-only < <(job refused "${good[@]}")
has 'deadlinejob.shed.dev/accepted created' "create with pods" submit --as editor < <(job accepted "${good[@]}")
kubectl create --filename - >/dev/null < <(job kept 'suspend: true' "${good[@]}")
change() { kubectl --namespace "$ns" patch deadlinejob kept --type merge --patch "$@"; }
has 'may not create pods' "a new spec without pods" change '{"spec":{"suspend":false}}' --as jobs-only --dry-run=server
has 'patched' "a new spec with pods" change '{"spec":{"parallelism":1}}' --as editor --dry-run=server
has 'patched' "a label without pods" change '{"metadata":{"labels":{"a":"b"}}}' --as jobs-only
has 'patched' "a finalizer without pods" change '{"metadata":{"finalizers":["example.com/x"]}}' --as jobs-only
has 'patched' "taking it off again" change '{"metadata":{"finalizers":null}}' --as jobs-only
# A raw request: `kubectl patch` would read the subresource first, which no role
# needs. A dry run: a running operator would answer with a status of its own.
put_status() {
    kubectl --namespace "$ns" get deadlinejob kept --output json |
        python3 -c 'import json, sys; job = json.load(sys.stdin); job["status"] = {"phase": "Complete"}; json.dump(job, sys.stdout)' |
        kubectl replace --raw "/apis/shed.dev/v1alpha1/namespaces/$ns/deadlinejobs/kept/status?dryRun=All" --filename - "$@" 2>&1
}
# A running operator may write between the read and the write.
write_status() {
    local answer
    for _ in $(seq 10); do
        answer=$(put_status "$@") && break
        [[ $answer == *Conflict* ]] || break
        sleep 0.5
    done
    printf '%s\n' "$answer"
}
has '"phase":"Complete"' "the operator's status" write_status --as "$operator"
has 'forbidden' "a forged status" write_status --as editor

# The policies on Jobs.
# shellcheck source=/dev/null
. "$here/chart-job-policies.sh"

# The policies on the operator's own writes.
# shellcheck source=/dev/null
. "$here/chart-operator-policies.sh"

# What the CRD refuses, and what it says.
refused 'spec.completions' "$deadline" 'completions: 0' "$safe" "$template"
refused 'spec.idempotency: Required value' "$deadline" "$completions" "$template"
refused 'spec.idempotency: Unsupported value: "Maybe"' "$deadline" "$completions" 'idempotency: Maybe' "$template"
refused 'spec.deadline: Required value' "$completions" "$safe" "$template"
refused 'spec.template: Required value' "$deadline" "$completions" "$safe"
refused 'exactly one of within (e.g. 10m), at' 'deadline: {within: 10m, at: "2030-01-31T08:00:00Z"}' "$completions" "$safe" "$template"
refused 'exactly one of within (e.g. 10m), at' 'deadline: {}' "$completions" "$safe" "$template"
refused 'must be longer than 0s' 'deadline: {within: 0s}' "$completions" "$safe" "$template"
refused 'spec.deadline.within' 'deadline: {within: soon}' "$completions" "$safe" "$template"
refused 'exactly one of within (e.g. 10m), at' 'deadline: {within: 10m, history: {quantile: p95}}' "$completions" "$safe" "$template"
refused 'spec.deadline.clock.time must be HH:MM from 00:00 to 23:59' 'deadline: {clock: {time: "25:00", timeZone: Etc/UTC}}' \
    "$completions" "$safe" "$template"
refused 'spec.deadline.clock.time must be HH:MM from 00:00 to 23:59' 'deadline: {clock: {time: "6:00", timeZone: Etc/UTC}}' \
    "$completions" "$safe" "$template"
refused 'spec.deadline.clock.timeZone: Required value' 'deadline: {clock: {time: "06:00"}}' "$completions" "$safe" "$template"
refused 'spec.deadline.history.quantile: Unsupported value' 'deadline: {history: {quantile: p80}}' "$completions" "$safe" "$template"
refused 'spec.deadline.history.factor must be a decimal number above 0' 'deadline: {history: {quantile: p95, factor: "0"}}' \
    "$completions" "$safe" "$template"
refused 'spec.deadline.clockStart: Start needs spec.deadline.within' \
    'deadline: {history: {quantile: p95}, clockStart: Start}' "$completions" "$safe" "$template"
refused 'spec.deadline.at' 'deadline: {at: tomorrow}' "$completions" "$safe" "$template"
refused 'spec.speculation.maxClonesPerTask' "${good[@]}" 'speculation: {maxClonesPerTask: 21}'
refused 'spec.speculation.mode: Unsupported value' "${good[@]}" 'speculation: {mode: Always}'
refused 'restartPolicy must be Never (the default) or OnFailure' "$deadline" "$completions" "$safe" \
    'template: {spec: {restartPolicy: Always, containers: [{name: task, image: busybox:1.37}]}}'
refused 'must hold at least one container' "$deadline" "$completions" "$safe" 'template: {spec: {containers: []}}'
refused 'spec.progress needs exactly one of file: {}, httpGet: {port, path} and metric' "${good[@]}" 'progress: {}'
refused 'spec.progress needs exactly one of' "${good[@]}" 'progress: {file: {}, httpGet: {port: 80}}'
refused 'unknown field "spec.progress.carrierPigeon"' "${good[@]}" 'progress: {carrierPigeon: {}}'
refused 'spec.progress.httpGet.port' "${good[@]}" 'progress: {httpGet: {port: 70000}}'
refused 'spec.resume: Checkpoint needs spec.progress' "${good[@]}" 'resume: Checkpoint'
refused 'must not be above spec.completions' "${good[@]}" 'parallelism: 3'
refused 'spec.template.metadata.labels must not hold shed.dev/job-uid' "$deadline" "$completions" "$safe" \
    'template: {metadata: {labels: {shed.dev/task: "1"}}, spec: {containers: [{name: task, image: busybox:1.37}]}}'
refused 'spec.idempotency: Fenced needs an agent in each pod' "$deadline" "$completions" 'idempotency: Fenced' "$template"
refused 'spec.resume: Range needs spec.progress' "${good[@]}" 'resume: Range'
refused 'spec.ttlSecondsAfterFinished' "${good[@]}" 'ttlSecondsAfterFinished: -1'
refused 'unknown field "spec.deadlin"' "${good[@]}" 'deadlin: {}'
has 'patched' "another number of tasks" change '{"spec":{"completions":3}}' --dry-run=server
kubectl create --filename - >/dev/null < <(job ranged 'suspend: true' "${good[@]}" 'progress: {file: {}}' 'resume: Range')
has "spec.completions cannot be changed with spec.resume: Range" "another number of divided tasks" \
    kubectl --namespace "$ns" patch deadlinejob ranged --type merge --patch '{"spec":{"completions":3}}' --dry-run=server
has "spec.idempotency cannot be changed" "another idempotency" change '{"spec":{"idempotency":"None"}}' --dry-run=server
has "spec.template cannot be changed" "another template" change '{"spec":{"template":{"spec":{"hostname":"x"}}}}' --dry-run=server

# The examples, and the objects in the pages for users.
.ci/docs-links --manifests "$pages"
for file in manifests/examples/*.yaml "$pages"/*.yaml; do
    has 'created (server dry run)' "$file" kubectl create --namespace "$ns" --dry-run=server --filename "$file"
done

# A second release is refused, in whatever namespace.
helm=$(find_tool helm)
for name in "$release" second; do
    has "shed is installed already, as release $release in namespace $system" "a second release named $name" \
        "$helm" install "$name" "$chart" --namespace shed-second --dry-run=server --set crds.enabled=false
done
has 'STATUS: pending-upgrade' "an upgrade of the release" \
    "$helm" upgrade "$release" "$chart" --namespace "$system" --reset-then-reuse-values --dry-run=server

# Names and labels of the greatest length. The Prometheus Operator's CRDs are not there.
out=$("$helm" template "$(printf 'r%.0s' {1..53})" "$chart" --namespace "$system" --kube-version "$(kubectl version --output json |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["serverVersion"]["gitVersion"])')" \
    --values "$chart/ci/long-labels-values.yaml" --set metrics.serviceMonitor.enabled=false \
    --set metrics.prometheusRule.enabled=false --set "networkPolicy.attemptNamespaces={$ns}" --no-hooks |
    kubectl apply --server-side --dry-run=server --force-conflicts --filename - 2>&1) || bad "labels of 63 characters" "$out"
if grep -q 'deployment.apps/.* serverside-applied' <<<"$out"; then ok; else bad "labels of 63 characters" "$out"; fi

# The operator's own pod in the strictest namespace: a violation is a warning.
out=$(kubectl label --dry-run=server --overwrite namespace "$system" pod-security.kubernetes.io/enforce=restricted 2>&1)
if grep -qi warning <<<"$out"; then bad "Pod Security restricted" "$out"; else ok; fi
