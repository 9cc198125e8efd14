# Sourced by scripts that measure: a cluster of their own, next to any other, that goes when the script ends.
# It needs `cluster`, the program. Each `up` and `down` is the script's.
# shellcheck shell=bash
SHED_CLUSTER_STATE=$(mktemp -d "${TMPDIR:-/tmp}/shed-$(basename -- "$0" .sh).XXXXXX")
export SHED_CLUSTER_STATE
finish() {
    status=$?
    trap - EXIT INT TERM
    "${cluster:?}" down >&2 || true
    rm -rf -- "$SHED_CLUSTER_STATE"
    exit "$status"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
