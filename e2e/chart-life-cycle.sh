# The life of a release while a job runs: upgraded, rolled back, uninstalled, installed again. Nothing of the job is
# restarted, and nothing is left at the end. On the way: `helm test`, an operator with a user of OpenShift's range,
# /metrics over TLS, and an uninstallation that is refused. Read by chart-test.sh, whose functions it uses. At the end the chart is installed as before.
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
forward=
reader=$release-life-cycle-reader
finish_life_cycle() {
    [ -z "$forward" ] || kill "$forward" 2>/dev/null || true
    kubectl delete clusterrolebinding "$reader" --ignore-not-found >/dev/null
    kubectl delete namespace "$ns" --ignore-not-found --wait=false >/dev/null
    rm -rf -- "$work"
}
trap finish_life_cycle EXIT
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
# `roll_back [REVISION]`, by default to the revision before.
roll_back() {
    local out
    if out=$("$helm" rollback "$release" "$@" --namespace "$system" --wait --timeout 3m 2>&1); then ok; else bad "rollback $*" "$out"; fi
}
uninstall() {
    local out
    if out=$("$helm" uninstall "$release" --namespace "$system" --wait --timeout 3m "$@" 2>&1); then ok; else bad "uninstall $*" "$out"; fi
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
key() { kubectl get secret "$release-signing-key" --namespace "$system" --output jsonpath='{.data.ed25519-1\.pk8}'; }
run_as() {
    local users
    users=$(kubectl get pods --namespace "$system" --selector "$operators" --output jsonpath='{range .items[*]}{.spec.containers[0].securityContext.runAsUser} {.status.phase}{"\n"}{end}' | sort -u)
    if [ "$users" = "$1 Running" ]; then ok; else bad "the operator's user is not $1 alone" "$users"; fi
}
same_key() { if [ "$(key)" = "$first_key" ]; then ok; else bad "the signing key $1 is another one"; fi; }
leads() { [ -n "$(kubectl get lease "$release" --namespace "$system" --output jsonpath='{.spec.holderIdentity}')" ]; }
# Labels of the Deployment's pods, which no other pod of the release has.
operators=app.kubernetes.io/instance=$release,pod-template-hash
none_is_replaced() {
    local leaving
    leaving=$(kubectl get pods --namespace "$system" --selector "$operators" --output jsonpath='{.items[*].metadata.deletionTimestamp}') &&
        [ -z "$leaving" ]
}
revision() { "$helm" history "$release" --namespace "$system" --output json | python3 -c 'import json, sys; print(json.load(sys.stdin)[-1]["revision"])'; }
status() { "$helm" status "$release" --namespace "$system" --output json | python3 -c 'import json, sys; print(json.load(sys.stdin)["info"]["status"])'; }
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

install --set-string 'podAnnotations.shed\.dev/life-cycle=upgraded' --set securityContext.runAsUser=1000740000
run_on "after an upgrade"
same_key "after an upgrade"
eventually "a replica leads after an upgrade" leads
eventually "the old pods go after an upgrade" none_is_replaced
run_as 1000740000

if out=$("$helm" test "$release" --namespace "$system" --timeout 5m 2>&1) && grep -Eq '^Phase: +Succeeded' <<<"$out"; then
    ok
else
    bad "helm test" "$out"
fi

roll_back
run_on "after a rollback"
same_key "after a rollback"
eventually "a replica leads after a rollback" leads
eventually "the old pods go after a rollback" none_is_replaced
run_as ''

# /metrics over TLS: the apiserver tells whose token it is, and whether that account may read them.
install --set metrics.secure.enabled=true
run_on "with secure metrics"
for account in reader stranger; do kubectl create serviceaccount "$account" --namespace "$ns" >/dev/null; done
kubectl create clusterrolebinding "$reader" --clusterrole "$release-metrics-reader" --serviceaccount "$ns:reader" >/dev/null
eventually "the old pods go with secure metrics" none_is_replaced
pod=$(kubectl get pods --namespace "$system" --selector "$operators" --output jsonpath='{.items[0].metadata.name}')
kubectl port-forward --namespace "$system" "pod/$pod" :8080 >"$work/forward" 2>&1 &
forward=$!
address() { sed -nE 's/^Forwarding from (127\.0\.0\.1:[0-9]+) .*/\1/p' "$work/forward" | grep .; }
eventually "the port of the metrics is forwarded" address
# `answers CODE [TOKEN]`
answers() {
    local code
    code=$(curl --silent --show-error --noproxy '*' --insecure --max-time 10 --output "$work/page" --write-out '%{http_code}' \
        ${2:+--header "Authorization: Bearer $2"} "https://$(address)/metrics" 2>&1) || true
    echo "$code"
    [ "$code" = "$1" ]
}
token=$(kubectl create token reader --namespace "$ns")
eventually "metrics for the reader" answers 200 "$token"
if grep -q '^shed_build_info{' "$work/page"; then ok; else bad "the page of metrics" "$(head -n 5 "$work/page")"; fi
if out=$("$(find_tool promtool)" check metrics <"$work/page" 2>&1) && [ -z "$out" ]; then ok; else bad "promtool check metrics" "$out"; fi
eventually "no metrics without a token" answers 401
eventually "no metrics for a token that no one issued" answers 401 forged
token=$(kubectl create token stranger --namespace "$ns")
eventually "no metrics for another account" answers 403 "$token"
kill "$forward"
wait "$forward" 2>/dev/null || true
forward=

# As long as a job runs, the release stays, and nothing changes.
revision=$(revision)
if out=$("$helm" uninstall "$release" --namespace "$system" --wait --timeout 3m 2>&1); then
    bad "an uninstallation while a job runs was not refused" "$out"
elif grep -Fq "unfinished jobs (DeadlineJob $ns/steady)" <<<"$out" && grep -Fq 'helm uninstall --no-hooks' <<<"$out"; then
    ok
else
    bad "the refusal names the job and the way out" "$out"
fi
run_on "after a refused uninstallation"
has_replicas() { kubectl rollout status deployment "$release" --namespace "$system" --timeout 60s; }
eventually "the operator runs after a refused uninstallation" has_replicas
# As the README says.
roll_back "$revision"
if [ "$(status)" = deployed ]; then ok; else bad "the release is $(status) after a refused uninstallation and a rollback"; fi
kubectl delete pod "$release-uninstall" --namespace "$system" >/dev/null
run_on "after the release was kept"

# Only what running jobs need stays.
uninstall --no-hooks
run_on "after the uninstallation"
only_left "after the uninstallation" customresourcedefinition.apiextensions.k8s.io/deadlinejobs.shed.dev \
    "secret/$release-signing-key"
# In a chosen namespace, the next Job runs under the built-in controller.
kubectl label namespace "$ns" shed.dev/jobs=run >/dev/null
kubectl create --filename - >/dev/null <<JOB
apiVersion: batch/v1
kind: Job
metadata: {name: next-night, namespace: $ns, annotations: {shed.dev/deadline: 5m}}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: task, image: $busybox, command: ["true"]}]}}}
JOB
runs_without_shed() { [ "$(kubectl get job next-night --namespace "$ns" --output jsonpath='{.spec.managedBy}{.status.succeeded}')" = 1 ]; }
eventually "the next Job ends without shed" runs_without_shed

install
eventually "a replica leads after a new installation" leads
run_on "after a new installation"
same_key "after a new installation"

# A job that has ended does not hold up the uninstallation, and one that is being deleted is waited for. No namespace
# hangs afterwards.
kubectl create --filename - >/dev/null <<JOB
apiVersion: shed.dev/v1alpha1
kind: DeadlineJob
metadata: {name: ended, namespace: $ns}
spec:
  deadline: {within: 10m}
  completions: 1
  idempotency: Safe
  template: {spec: {containers: [{name: task, image: $busybox, command: ["true"]}]}}
JOB
has_ended() { [ "$(kubectl get deadlinejob ended --namespace "$ns" --output jsonpath='{.status.phase}')" = Complete ]; }
eventually "a job ends" has_ended
kubectl delete deadlinejob steady --namespace "$ns" --cascade=foreground --wait=false >/dev/null
uninstall
if out=$(kubectl delete namespace "$ns" --timeout 2m 2>&1); then ok; else bad "the jobs' namespace goes without an operator" "$out"; fi
kubectl delete secret --namespace "$system" "$release-signing-key" >/dev/null
kubectl delete crd deadlinejobs.shed.dev >/dev/null
only_left "at the end" ''

install
