#!/usr/bin/env bash
# Runs many tasks while nodes, leaders and connections fail, on a cluster of its own with as many fake nodes as --nodes
# says. Options are those of the program: e2e/bench-large.sh --help
set -euo pipefail
here=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
nodes=50
earlier=
for option in "$@"; do
    case $option in --nodes=*) nodes=${option#*=} ;; esac
    [ "$earlier" != --nodes ] || nodes=$option
    earlier=$option
done
exec "$here/on-kwok.sh" bench-large "--count $nodes --max-pods 110" "$@"
