#!/usr/bin/env bash
# Sees each alert fire and resolve on a real Prometheus, and asks it the dashboards' queries, on a cluster of its own
# with fake nodes. Options are those of the program: e2e/monitoring.sh --help
set -euo pipefail
here=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
prometheus=$("$here/cluster/cluster" tool prometheus | tail -n 1)
exec "$here/on-kwok.sh" monitoring "--count 10 --max-pods 110" --prometheus "$prometheus" "$@"
