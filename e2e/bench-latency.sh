#!/usr/bin/env bash
# Measures how long shed takes to act, on a cluster of its own with fake nodes for 11 000 pods. Options are those of the
# program: e2e/bench-latency.sh --help
set -euo pipefail
here=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
exec "$here/on-kwok.sh" bench-latency "--count ${SHED_BENCH_NODES:-100} --max-pods 110 --audit-pod-status" "$@"
