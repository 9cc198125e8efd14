#!/usr/bin/env bash
# Runs a command of the harness (e2e/src/bin/harness.rs) on a cluster of its own with fake nodes, next to any other, and
# takes that down again: e2e/on-kwok.sh COMMAND "OPTIONS OF UP" [OPTION...]
#
# Environment: SHED_PROGRAMS, the folder of the built programs; without it cargo builds them.
set -euo pipefail

name=$1
up=$2
shift 2
here=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
cluster=$here/cluster/cluster
cd "$here/.."

# Wrong names are reported before anything is built or brought up for them.
if [ -z "${SHED_PROGRAMS-}" ]; then
    cargo build --locked --quiet --package shed --package shed-e2e --bins
fi
harness=${SHED_PROGRAMS:-${CARGO_TARGET_DIR:-target}/debug}/harness
"$harness" "$name" --check "$@"
for option in "$@"; do
    case $option in -h | --help) exit 0 ;; esac
done

SHED_CLUSTER_STATE=${SHED_CAMPAIGN_STATE:-$(mktemp -d "${TMPDIR:-/tmp}/shed-$name.XXXXXX")}
export SHED_CLUSTER_STATE
unset SHED_KUBECONFIG SHED_ALLOW_EXISTING_CLUSTER
running=
finish() {
    status=$?
    trap - EXIT INT TERM
    # It takes its operators with it.
    [ -z "$running" ] || { kill "$running" && wait "$running"; } 2>/dev/null || true
    "$cluster" down >&2 || true
    rm -rf -- "$SHED_CLUSTER_STATE"
    exit "$status"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# shellcheck disable=SC2086
"$cluster" up --nodes kwok $up >&2
eval "$("$cluster" env)"
kubectl apply --server-side --force-conflicts -f crds/deadlinejobs.yaml >&2
# `kubectl wait` ends with an error while a definition has no condition at all yet.
served=no
for _ in $(seq 60); do
    if kubectl get deadlinejobs --all-namespaces >/dev/null 2>&1; then
        served=yes
        break
    fi
    sleep 1
done
[ "$served" = yes ] || {
    echo "$name: the apiserver does not serve DeadlineJobs after 60 s" >&2
    exit 1
}
# In the background, or the shell would heed no signal before the program has ended.
"$harness" "$name" "$@" &
running=$!
wait "$running"
