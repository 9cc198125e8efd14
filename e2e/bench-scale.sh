#!/usr/bin/env bash
# Compares shed with the built-in Job controller on a cluster of its own with fake nodes for 11 000 pods. Options are
# those of the program: e2e/bench-scale.sh --help
set -euo pipefail
here=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
exec "$here/on-kwok.sh" bench-scale "--count ${SHED_BENCH_NODES:-100} --max-pods 110" "$@"
