#!/usr/bin/env bash
# Prints what fake nodes cost a cluster that does nothing: CPU and memory of each of its processes, per number of nodes.
# It tells how many of them `make bench-large` can have on this machine.
# Each number has a cluster of its own, one after the other.
#
#   e2e/idle-nodes.sh [NODES...]      (default: 300 1000 5000)
#
# Environment: SHED_IDLE_SECONDS, how long each is measured (default: 60).
set -euo pipefail

usage() {
    sed -n '2,/^$/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
}
fail() {
    echo "idle-nodes: $*" >&2
    exit 2
}

for argument in "$@"; do
    case $argument in
    -h | --help) usage && exit 0 ;;
    *[!0-9]* | '' | 0*) fail "$argument is not a number of nodes: say for example e2e/idle-nodes.sh 300 1000" ;;
    esac
done
seconds=${SHED_IDLE_SECONDS:-60}
case $seconds in *[!0-9]* | '' | 0*) fail "SHED_IDLE_SECONDS=$seconds is not a number of seconds: say for example 60" ;; esac
[ $# -gt 0 ] || set -- 300 1000 5000

here=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
cluster=$here/cluster/cluster
# shellcheck source=e2e/own-cluster.sh
. "$here/own-cluster.sh"

# User and system time of a process in clock ticks. Its name, which may have spaces, ends with the last bracket.
ticks() {
    local stat fields
    stat=$(cat "/proc/$1/stat") || fail "process $1 of the cluster has ended: see $cluster logs"
    read -ra fields <<<"${stat##*) }"
    echo $((fields[11] + fields[12]))
}
# "NAME PID" of each process of the cluster.
processes() {
    local file pid
    for file in "$SHED_CLUSTER_STATE"/pids/*; do
        read -r pid _ <"$file"
        echo "${file##*/} $pid"
    done
}
resident() { awk '/^VmRSS/ {printf "%d", $2 / 1024}' "/proc/$1/status"; }

measure() {
    local nodes=$1 name pid hertz
    local -A before=()
    hertz=$(getconf CLK_TCK)
    while read -r name pid; do before[$name]=$(ticks "$pid"); done < <(processes)
    sleep "$seconds" # The time that is measured.
    while read -r name pid; do
        awk -v "nodes=$nodes" -v "name=$name" -v "memory=$(resident "$pid")" \
            -v "cores=$(($(ticks "$pid") - ${before[$name]}))" -v "per=$((hertz * seconds))" \
            'BEGIN {printf "| %d | %s | %.2f | %d |\n", nodes, name, cores / per, memory}'
    done < <(processes)
}

echo "| nodes | process | cores | memory MiB |"
echo "|---|---|---|---|"
for nodes in "$@"; do
    "$cluster" up --nodes kwok --count "$nodes" --max-pods 110 >&2
    sleep "$seconds" # New nodes are news to every component.
    measure "$nodes"
    "$cluster" down >&2
done
