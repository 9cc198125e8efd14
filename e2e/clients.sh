#!/usr/bin/env bash
# Runs the example of each client in clients/ on the cluster of e2e/cluster, with shed installed: it creates a job,
# waits for its end, and prints its PoCD.
#
#   e2e/clients.sh [go] [python] [java]      all three without arguments
#
# A client whose toolchain this machine lacks is skipped by name. Environment: KUBECONFIG (the local cluster's),
# SHED_EXAMPLE_IMAGE (an image with `sleep`; localhost/busybox:test).
set -euo pipefail

here=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
cd "$here/.."

namespace=shed-clients
image=${SHED_EXAMPLE_IMAGE-localhost/busybox:test}
if [ -z "${KUBECONFIG-}" ]; then eval "$(e2e/cluster/cluster env)"; fi
export KUBECONFIG

work=$(mktemp -d "${TMPDIR:-/tmp}/shed-clients.XXXXXX")
finish() {
    status=$?
    trap - EXIT
    kubectl delete namespace "$namespace" --ignore-not-found >/dev/null || true
    rm -rf -- "$work"
    exit "$status"
}
trap finish EXIT

run_go() {
    go -C clients/go build -o "$work/go" ./example
    "$work/go" "$@"
}
run_python() {
    python3 -m venv "$work/venv"
    "$work/venv/bin/pip" install --quiet './clients/python[example]'
    "$work/venv/bin/python" -B clients/python/example.py "$@"
}
run_java() {
    mvn --quiet --batch-mode --file clients/java/pom.xml compile dependency:build-classpath \
        -Dmdep.outputFile="$work/classpath" >&2
    java -cp "clients/java/target/classes:$(cat "$work/classpath")" dev.shed.example.Example "$@"
}
declare -A needs=([go]=go [python]=python3 [java]=mvn)

[ $# -gt 0 ] || set -- go python java
for client in "$@"; do
    [ -n "${needs[$client]-}" ] || {
        echo "clients: unknown client $client: go, python or java" >&2
        exit 2
    }
done
{
    kubectl create namespace "$namespace"
    # As in a pod: a service account with the rights that the examples need, and no more. The admission policy lets
    # only those create a job who may create pods.
    kubectl --namespace "$namespace" create serviceaccount client
    kubectl --namespace "$namespace" create role client \
        --verb=create,get,list,watch --resource=deadlinejobs.shed.dev
    kubectl --namespace "$namespace" create role client-pods --verb=create --resource=pods
    for role in client client-pods; do
        kubectl --namespace "$namespace" create rolebinding "$role" --role="$role" --serviceaccount="$namespace:client"
    done
    kubectl config view --minify --flatten --raw >"$work/kubeconfig"
    token=$(kubectl --namespace "$namespace" create token client --duration=1h)
    kubectl config --kubeconfig "$work/kubeconfig" set-credentials client --token="$token"
    kubectl config --kubeconfig "$work/kubeconfig" set-context --current --user=client
} >/dev/null
passed=0 failed=0 skipped=0
for client in "$@"; do
    if ! command -v "${needs[$client]}" >/dev/null 2>&1; then
        echo "clients: skipped the client for $client, because this machine has no ${needs[$client]}"
        skipped=$((skipped + 1))
        continue
    fi
    echo "== client for $client"
    status=0
    KUBECONFIG=$work/kubeconfig "run_$client" "of-$client" "$namespace" "$image" | tee "$work/output" || status=$?
    if [ "$status" = 0 ] && grep -q '^PoCD [01]\.[0-9][0-9]*$' "$work/output" &&
        [ "$(tail -n 1 "$work/output")" = complete ]; then
        passed=$((passed + 1))
    else
        echo "clients: the client for $client did not print a PoCD and the job's end" >&2
        failed=$((failed + 1))
    fi
done
echo "clients: $passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
