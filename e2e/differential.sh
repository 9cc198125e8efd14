#!/usr/bin/env bash
# Runs random Jobs under the built-in Job controller and under shed, on a cluster of its own with fake nodes. Options are those of the program:
# e2e/differential.sh --help
set -euo pipefail
here=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
exec "$here/on-kwok.sh" differential "" "$@"
