# The life of a release while a job runs: upgraded, uninstalled, installed again. Nothing of the job is restarted, and
# nothing is left at the end. Read by chart-test.sh, whose functions it uses. At the end the chart is installed as before.
#
# The cluster must have an image with a shell: SHED_E2E_BUSYBOX, by default localhost/busybox:test.
# shellcheck shell=bash

release=${SHED_RELEASE:-shed}
system=${SHED_NAMESPACE:-shed-system}
ns=shed-life-cycle
busybox=${SHED_E2E_BUSYBOX:-localhost/busybox:test}
helm=$(find_tool helm)
command -v kubectl >/dev/null || PATH=$(dirname -- "$(e2e/cluster/cluster tool helm | tail -n 1)"):$PATH

# Those of tests that have just ended are on their way out.
kubectl wait --for delete deadlinejobs.shed.dev --all --all-namespaces --timeout 60s >/dev/null || {
    kubectl get deadlinejobs.shed.dev --all-namespaces >&2
    echo 'chart-test: the cluster has DeadlineJobs; uninstalling would touch them, so delete them first' >&2
    exit 1
}
work=$(mktemp -d "${TMPDIR:-/tmp}/shed-life-cycle.XXXXXX")
trap 'kubectl delete namespace "$ns" --ignore-not-found --wait=false >/dev/null; rm -rf -- "$work"' EXIT
"$helm" get values "$release" --namespace "$system" --output yaml >"$work/values.yaml"

# `eventually NAME COMMAND…`: the command succeeds within two minutes.
eventually() {
    local name=$1 out=
    shift
    for _ in $(seq 240); do
        if out=$("$@" 2>&1); then
            ok
            return
        fi
        sleep 0.5
    done
    bad "$name: not within two minutes" "$out"
}
install() {
    local out
    if out=$("$helm" upgrade --install "$release" "$chart" --namespace "$system" --values "$work/values.yaml" \
        --wait --timeout 3m "$@" 2>&1); then ok; else bad "install $*" "$out"; fi
}
uninstall() {
    local out
    if out=$("$helm" uninstall "$release" --namespace "$system" --wait --timeout 3m 2>&1); then ok; else bad "uninstall" "$out"; fi
    if out=$(kubectl wait --for delete pod --namespace "$system" --selector "app.kubernetes.io/instance=$release" --timeout 60s 2>&1); then
        ok
    else
        bad "the operator's pods go" "$out"
    fi
}
# One line per attempt: its pod's uid, its phase, and how often its containers were restarted.
attempts() {
    kubectl get pods --namespace "$ns" --selector shed.dev/job-uid --output jsonpath='{range .items[*]}{.metadata.uid} {.status.phase} {.status.containerStatuses[*].restartCount} {.status.initContainerStatuses[*].restartCount} {.metadata.deletionTimestamp}{"\n"}{end}' | sort
}
run_on() {
    local now
    now=$(attempts)
    if [ "$now" = "$before" ]; then ok; else bad "attempts $1" "$(diff <(echo "$before") <(echo "$now"))"; fi
}
key() { kubectl get secret "$release-signing-key" --namespace "$system" --output jsonpath='{.data.ed25519\.pk8}'; }
same_key() { if [ "$(key)" = "$first_key" ]; then ok; else bad "the signing key $1 is another one"; fi; }
leads() { [ -n "$(kubectl get lease "$release" --namespace "$system" --output jsonpath='{.spec.holderIdentity}')" ]; }
# Names of what the release has in the cluster.
left() {
    local kinds=clusterroles,clusterrolebindings,priorityclasses,flowschemas,validatingadmissionpolicies
    kinds+=,validatingadmissionpolicybindings,customresourcedefinitions
    {
        kubectl get "$kinds" --selector app.kubernetes.io/part-of=shed --output name
        kubectl get all,configmaps,secrets,leases,roles,rolebindings,serviceaccounts,poddisruptionbudgets,networkpolicies \
            --namespace "$system" --selector app.kubernetes.io/part-of=shed --output name
    } | sort
}
only_left() {
    local found expected
    found=$(left)
    expected=$(printf '%s\n' "${@:2}" | sed '/^$/d' | sort)
    if [ "$found" = "$expected" ]; then ok; else bad "left $1" "$(diff <(echo "$expected") <(echo "$found"))"; fi
}

# Its pods have a user of OpenShift's range, and so does the agent in them.
kubectl create namespace "$ns" >/dev/null
kubectl create --filename - >/dev/null <<JOB
apiVersion: shed.dev/v1alpha1
kind: DeadlineJob
metadata: {name: steady, namespace: $ns}
spec:
  deadline: {within: 60m}
  completions: 2
  idempotency: Safe
  speculation: {mode: Disabled}
  progress: {file: {}}
  template:
    # Fake nodes end a pod by this.
    metadata: {annotations: {shed.dev/kwok-run-ms: "3600000"}}
    spec:
      securityContext: {runAsUser: 1000740000, runAsGroup: 1000740000, fsGroup: 1000740000}
      terminationGracePeriodSeconds: 1
      containers:
        - name: task
          image: $busybox
          command: [sh, -c, 'while :; do printf 0.1 >"\$SHED_PROGRESS_FILE.new"; mv "\$SHED_PROGRESS_FILE.new" "\$SHED_PROGRESS_FILE"; sleep 1; done']
          resources: {requests: {cpu: 10m, memory: 8Mi}}
JOB
both_run() { [ "$(attempts | grep -Ec '^[^ ]+ Running 0 0 $')" = 2 ]; }
eventually "two attempts run" both_run
before=$(attempts)
first_key=$(key)
if [ -n "$first_key" ]; then ok; else bad "there is no signing key"; fi

install --set-string 'podAnnotations.shed\.dev/life-cycle=upgraded'
run_on "after an upgrade"
same_key "after an upgrade"
eventually "a replica leads after an upgrade" leads

# Only what running jobs need stays.
uninstall
run_on "after the uninstallation"
only_left "after the uninstallation" customresourcedefinition.apiextensions.k8s.io/deadlinejobs.shed.dev \
    "secret/$release-signing-key"

install
eventually "a replica leads after a new installation" leads
run_on "after a new installation"
same_key "after a new installation"

# As the README says.
if out=$(kubectl delete deadlinejobs --all --all-namespaces --cascade=foreground --timeout 2m 2>&1); then ok; else bad "jobs are deleted" "$out"; fi
if out=$(kubectl delete namespace "$ns" --timeout 2m 2>&1); then ok; else bad "the jobs' namespace goes" "$out"; fi
uninstall
kubectl delete secret --namespace "$system" "$release-signing-key" >/dev/null
kubectl delete crd deadlinejobs.shed.dev >/dev/null
only_left "at the end" ''

install
