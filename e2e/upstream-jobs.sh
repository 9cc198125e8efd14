#!/usr/bin/env bash
# Runs the specs of batch/v1 Job of Kubernetes' own end-to-end suite (`[sig-apps] Job`) on a
# cluster of its own with real nodes, next to any other, and stops it again.
#
#   e2e/upstream-jobs.sh                   shed runs every Job; the built-in controller is off
#   e2e/upstream-jobs.sh builtin           the built-in controller runs them: is the cluster sound?
#   e2e/upstream-jobs.sh build             only builds the suite's program
#   e2e/upstream-jobs.sh shed "adopt matching orphans"    only specs whose names contain this regexp
#
# Specs whose feature gates are off by default in that minor are left out.
#
# Environment:
#   SHED_KUBERNETES=1.37.2    the Kubernetes version of cluster and suite (`e2e/cluster/cluster --help` lists them)
#   SHED_UPSTREAM_STATE=DIR   the cluster's state folder; a cluster that is up there stays up
set -euo pipefail

here=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
cluster=$here/cluster/cluster
cd "$here/.."

controller=${1:-shed} focus=${2-}
case $controller in
shed) up=(--no-job-controller) ;;
builtin) up=(--no-job-controller=false) ;;
build) ;;
*)
    sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"
    exit 2
    ;;
esac
say() { echo "upstream: $*" >&2; }

suite=$("$cluster" tool jobs | tail -n 1)
[ "$controller" != build ] || exit 0
if [ "$controller" = shed ]; then
    archive=$(e2e/image.sh | tail -n 1)
    helm=$("$cluster" tool helm | tail -n 1)
fi

SHED_CLUSTER_STATE=${SHED_UPSTREAM_STATE:-$(mktemp -d "${TMPDIR:-/tmp}/shed-upstream.XXXXXX")}
export SHED_CLUSTER_STATE
log=$(mktemp "${TMPDIR:-/tmp}/shed-upstream-log.XXXXXX")
stays=no
"$cluster" status >/dev/null 2>&1 && stays=yes
finish() {
    status=$?
    trap - EXIT INT TERM
    if [ "$status" != 0 ] && [ "$controller" = shed ]; then
        kubectl -n shed-system logs -l app.kubernetes.io/instance=shed --tail=60 --prefix >&2 || true
    fi
    if [ "$stays" = no ]; then
        "$cluster" down >&2 || true
        [ -n "${SHED_UPSTREAM_STATE-}" ] || rm -rf -- "$SHED_CLUSTER_STATE"
    fi
    rm -f -- "$log"
    exit "$status"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

"$cluster" up --nodes real "${up[@]}" >&2
eval "$("$cluster" env)"
if [ "$controller" = shed ]; then
    "$cluster" load "$archive" >&2
    "$helm" upgrade --install shed charts/shed --namespace shed-system --create-namespace \
        --set image.tag=dev --set adoptJobs=all --set log.json=false --wait --timeout 5m >&2
fi

# Without colours; what a spec said is printed where it failed.
code=0
"$suite" --kubeconfig "$KUBECONFIG" --provider skeleton --ginkgo.no-color --ginkgo.timeout 20m \
    --ginkgo.focus "\[sig-apps\] Job.*$focus" --ginkgo.label-filter '!/^Feature:OffByDefault$/' \
    --ginkgo.silence-skips --ginkgo.poll-progress-after 2m >"$log" 2>&1 || code=$?
[ "$code" = 0 ] || cat "$log"
summary=$(grep -aE '^Ran [0-9]+ of|^(SUCCESS|FAIL)!' "$log") || true
printf 'upstream Job suite, run by %s:\n%s\n' "$controller" "$summary"
grep -aqE '^Ran [1-9]' "$log" || {
    say "no spec ran"
    exit 1
}
exit "$code"
