#!/usr/bin/env bash
# Measures an operator at scale on a cluster of its own with fake nodes for 11 000 pods. Options are
# those of the program: e2e/scale.sh --help
set -euo pipefail
here=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
exec "$here/on-kwok.sh" scale "--count ${SHED_SCALE_NODES:-100} --max-pods 110" "$@"
