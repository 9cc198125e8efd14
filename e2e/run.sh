#!/usr/bin/env bash
# Runs the end-to-end tests: cluster up, operator's image built and brought in,
# chart installed, tests run, summary printed.
#
#   e2e/run.sh [FILTER…]      only the tests whose names contain one of the words
#
# The local cluster is left as it was found: up if it was up, else down.
#
# Environment:
#   SHED_KUBERNETES=1.37.2 the local cluster's Kubernetes version
#                         (`e2e/cluster/cluster --help` lists them)
#   SHED_E2E_DOWN=1       take the cluster down in any case
#   SHED_E2E_THREADS=6    how many tests run at a time
#   SHED_E2E_KEEP=1       keep the namespace of a test that fails
#   SHED_E2E_THEN='…'     a command that runs at the end, on the same cluster
#   SHED_E2E_NODES=kwok   fake nodes: needs no root, tests that need containers are
#                         left out by name, the operator runs on this machine
#   SHED_KUBECONFIG, SHED_ALLOW_EXISTING_CLUSTER, SHED_LOAD_IMAGE: a cluster of
#                         your own instead; SHED_E2E_BUSYBOX names an image with a
#                         shell there (default localhost/busybox:test)
set -euo pipefail

here=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname -- "$here")
cluster=$here/cluster/cluster

case ${1-} in
-h | --help)
    sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"
    exit 0
    ;;
esac

say() { echo "e2e: $*" >&2; }

cd "$root"
# What the audit log says of the operator before is another run's.
SHED_E2E_BEGUN=${SHED_E2E_BEGUN:-$(date -u +%Y-%m-%dT%H:%M:%SZ)}
export SHED_E2E_BEGUN
work=$(mktemp -d "${TMPDIR:-/tmp}/shed-e2e.XXXXXX")
export SHED_E2E=1 SHED_E2E_REPORT=$work/report
: >"$SHED_E2E_REPORT"
own=yes was_up=no operator_pid='' had_release=no failed=no
[ -z "${SHED_KUBECONFIG-}" ] || own=no

finish() {
    status=$?
    set +e
    trap - EXIT INT TERM
    [ "$status" = 0 ] || failed=yes
    [ -z "$operator_pid" ] || kill "$operator_pid" 2>/dev/null
    if [ "$failed" = yes ]; then show_operator; fi
    if [ -n "${KUBECONFIG-}" ]; then remove_stand_in; fi
    if [ "$had_release" = no ] && [ -z "$operator_pid" ]; then remove_operator; fi
    if [ "$own" = yes ] && { [ "$was_up" = no ] || [ "${SHED_E2E_DOWN-}" = 1 ]; }; then
        "$cluster" down
    fi
    summary
    rm -rf -- "$work"
    exit "$status"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

show_operator() {
    say 'the operator said at last:'
    if [ -n "$operator_pid" ]; then
        tail -n 60 "$work/operator.log" >&2
    else
        kubectl -n shed-system get pods -o wide >&2
        kubectl -n shed-system logs -l app.kubernetes.io/instance=shed --tail=60 --prefix >&2
        kubectl -n shed-system logs -l app.kubernetes.io/instance=shed --tail=30 --previous >&2 2>/dev/null
    fi
}

# The CRD stays, as the chart says: deleting it would delete the jobs of others.
remove_operator() {
    "$("$cluster" tool helm)" uninstall shed --namespace shed-system --no-hooks --wait >/dev/null 2>&1 || true
    kubectl delete namespace shed-system --ignore-not-found --wait=false >/dev/null 2>&1 || true
}

# With it the operator takes a cluster for one with Kueue.
remove_stand_in() {
    kubectl delete crd standins.kueue.x-k8s.io --ignore-not-found --wait=false >/dev/null 2>&1 || true
}

summary() {
    echo
    echo 'end-to-end tests:'
    # Failures come last, where the end of a long log shows them.
    sort -t "$(printf '\t')" -k1,1r -k3,3 "$SHED_E2E_REPORT" |
        awk -F '\t' '{ printf "  %-9s %6.1f s  %s%s\n", $1, $2, $3, $1 == "ok" ? "" : "  (" $4 ")"; n[$1]++ }
            END { printf "%d ok, %d failed, %d left out\n", n["ok"], n["failed"], n["left out"] }'
}

bring_up() {
    "$cluster" status >/dev/null 2>&1 && was_up=yes
    if [ "$was_up" = yes ]; then
        "$cluster" up >&2
    else
        "$cluster" up --nodes "${SHED_E2E_NODES:-auto}" >&2
    fi
    eval "$("$cluster" env)"
}

# A run deletes the namespace and does not wait for its end. Nothing can be installed in it until then.
wait_for_the_end_of_an_earlier_run() {
    local phase
    phase=$(kubectl get namespace shed-system --ignore-not-found -o jsonpath='{.status.phase}')
    [ "$phase" = Terminating ] || return 0
    say "waiting until the namespace shed-system of an earlier run is gone"
    kubectl wait --for=delete namespace/shed-system --timeout=180s >&2
}

# On fake nodes no container runs, the operator's neither. A response without a node does not count:
# a cluster that is just coming up must not pass for one without real nodes.
has_fake_nodes_only() {
    local mark='{range .items[*]}node {.metadata.annotations.kwok\.x-k8s\.io/node}{"\n"}{end}'
    local nodes='' try
    for try in {1..30}; do
        nodes=$(kubectl get nodes -o jsonpath="$mark") && [ -n "$nodes" ] && break
        [ "$try" -lt 30 ] || { say "the cluster names no node"; exit 1; }
        sleep 1 # poll
    done
    ! grep -qx 'node ' <<<"$nodes"
}

start_on_this_machine() {
    kubectl apply --server-side --force-conflicts -f crds/deadlinejobs.yaml >&2
    local version
    version=$(kubectl version -o json | sed -n '/serverVersion/,$s/.*"gitVersion": "\(v[0-9.]*\).*/\1/p')
    "$("$cluster" tool helm)" template shed charts/shed --kube-version "$version" \
        --show-only templates/admissionpolicy.yaml |
        kubectl apply -f - >&2
    cargo build --locked --bin shed >&2
    SHED_E2E_OPERATOR_ADDRESS=127.0.0.1:$((18000 + RANDOM % 1000))
    export SHED_E2E_OPERATOR_ADDRESS
    HOSTNAME=replica-0 "${CARGO_TARGET_DIR:-target}/debug/shed" operator --agent-image localhost/shed:dev \
        --http-address "$SHED_E2E_OPERATOR_ADDRESS" >"$work/operator.log" 2>&1 &
    operator_pid=$!
    # The tests of the election freeze it.
    export SHED_E2E_OPERATOR_PID=$operator_pid
}

if [ "$own" = yes ]; then
    bring_up
else
    export KUBECONFIG=$SHED_KUBECONFIG
fi
# The chart is installed by the tests' own harness, which knows both kinds of cluster.
if has_fake_nodes_only; then
    start_on_this_machine
elif [ -n "$(kubectl -n shed-system get deployments -l app.kubernetes.io/instance=shed -o name)" ]; then
    had_release=yes
fi

if [ -z "$operator_pid" ]; then
    # The tests would do it too, but in silence.
    e2e/image.sh >/dev/null
    wait_for_the_end_of_an_earlier_run
fi
# Of the whole workspace, or the dependencies would be compiled once more with other features.
if [ $# -gt 0 ]; then
    cargo test --locked --workspace --test e2e --no-run
    cargo build --locked --quiet --workspace --bin shed-sim --bin shed
else
    # With the simulator, which the replay runs.
    cargo test --locked --quiet --workspace --no-run
fi
# A failure tells where and what; the way there leads through the test runner only.
export RUST_BACKTRACE=0
run_tests() {
    # Without the limit libtest takes as many as there are cores; these tests mostly wait.
    cargo test --locked --workspace --test e2e -- --test-threads "${SHED_E2E_THREADS:-6}" "$@" || {
        status=$?
        failed=yes
        exit "$status"
    }
}
if [ $# -gt 0 ]; then
    say "running the tests that were named"
    run_tests "$@"
else
    say "running the tests that share the operator"
    SHED_E2E_COMPANY=shared run_tests --skip recording:: --skip rights::
    # All of them at once, or a restart that some wait for would keep the others from beginning.
    say "running the tests that need few others, and those that restart the operator together"
    SHED_E2E_COMPANY=few SHED_E2E_THREADS=32 run_tests --skip recording:: --skip rights::
    # One at a time; the others clean up or wait for their turn.
    say "running the tests that run alone, as they fill the nodes, or change nodes or the operator"
    SHED_E2E_COMPANY=alone SHED_E2E_THREADS=3 run_tests --skip recording:: --skip rights::
    say "replaying what the operator recorded of them"
    run_tests recording:: --nocapture
    if [ -z "$operator_pid" ]; then
        say "running the commands of README, tutorials and how-to pages"
        e2e/docs-commands.py cluster
    fi
    if [ -z "$operator_pid" ] && [ "$own" = yes ]; then
        say "holding the operator's rights against what it did"
        run_tests rights:: --nocapture
        say "testing the chart as it is installed"
        e2e/chart-test.sh --cluster
        say "upgrading, uninstalling and installing the chart while a job runs"
        e2e/chart-test.sh --life-cycle
    fi
fi
if [ -n "${SHED_E2E_THEN-}" ]; then
    say "running $SHED_E2E_THEN"
    bash -euo pipefail -c "$SHED_E2E_THEN"
fi
