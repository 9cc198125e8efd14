#!/usr/bin/env bash
# Runs the fault campaign on a cluster of its own with fake nodes. Options are those of the program:
# e2e/campaign.sh --help
set -euo pipefail
here=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
exec "$here/on-kwok.sh" campaign "" "$@"
