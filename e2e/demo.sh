#!/usr/bin/env bash
# The demo from nothing to its result: builds Kubernetes and shed side by side, then runs the program `demo`.
#
#   e2e/demo.sh                 the same word count three times (REPEAT=10 repeats it)
#   e2e/demo.sh cron            a CronJob that must be done at a time of day
#
# Each step prints a line when it begins and when it ends, and at least every 15 s how far it is, also
# without a terminal.
set -euo pipefail

here=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
cd "$here/.."

# Seconds between two lines about a build.
every=10
# Steps of the program `demo` come after those of this script.
steps=7

# The program checks it too, but only after builds of minutes.
case ${REPEAT:-1} in
*[!0-9]* | 0)
    echo "demo: REPEAT=$REPEAT is not a number above 0: say for example REPEAT=10" >&2
    exit 1
    ;;
esac

for program in cargo go; do
    command -v "$program" >/dev/null 2>&1 || {
        echo "demo: $program is missing: docs/tutorials/rescued-straggler.md lists what the demo needs" >&2
        exit 1
    }
done

work=${CARGO_TARGET_DIR:-target}/demo-run
mkdir -p "$work"
SHED_DEMO_STARTED=$(date +%s)
export SHED_DEMO_STARTED

say() { printf '%7.1f s  %-8s  %s\n' "$(($(date +%s) - SHED_DEMO_STARTED))" demo "$*"; }

triple=$(rustc -vV | sed -n 's/^host: //p')
programs=${CARGO_TARGET_DIR:-target}/$triple/demo

# Static, because the operator's image has no C library; one build, so that both programs share what they
# are made of.
build_shed() {
    RUSTFLAGS="-C target-feature=+crt-static --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo" \
        CARGO_TERM_COLOR=never CARGO_TERM_PROGRESS_WHEN=always CARGO_TERM_PROGRESS_WIDTH=100 \
        cargo build --locked --profile demo --target "$triple" \
        --package shed --package shed-e2e --bin shed --bin demo
}

# Only the local cluster needs Kubernetes; on a cluster of the user's, helm installs the chart.
build_kubernetes() {
    if [ -n "${SHED_KUBECONFIG-}" ]; then e2e/cluster/cluster tool helm; else e2e/cluster/cluster tool kube; fi
}

# begin NAME FUNCTION: starts a build in the background, in a process group of its own; its output goes to a log.
begin() {
    set -m
    {
        began=$SECONDS
        if "$2" >"$work/$1.log" 2>&1 </dev/null; then
            echo "$((SECONDS - began))" >"$work/$1.seconds"
        else
            : >"$work/$1.failed"
        fi
    } &
    set +m
    groups+=("$!")
}

# The last line of a log that ends with a line break or a carriage return, without what cargo draws around it.
last_line() {
    tr '\r' '\n' <"$work/$1.log" | sed -e 's/^ *//' -e 's/\[[=> ]*\] //' -e '/^$/d' | tail -n 1 | cut -c 1-110
}

stop_builds() {
    for group in "${groups[@]}"; do kill -- "-$group" 2>/dev/null || true; done
}
trap 'stop_builds; exit 130' INT
trap 'stop_builds; exit 143' TERM

fail() {
    stop_builds
    echo "demo: building $1 failed:" >&2
    tr '\r' '\n' <"$work/$1.log" | grep -v '^ *Building \[' | tail -n 40 >&2
    exit 1
}

# has_ended NAME: reports the end of a build once; false while it runs.
has_ended() {
    [ ! -e "$work/$1.failed" ] || fail "$1"
    [ -e "$work/$1.seconds" ] || return 1
    [ ! -e "$work/$1.reported" ] || return 0
    say "step 1/$steps: built $1 in $(cat "$work/$1.seconds") s"
    : >"$work/$1.reported"
}

say "step 1/$steps: build Kubernetes (Go) and shed (Rust) side by side; the first time some 8 minutes on 2 cores"
rm -f "$work"/*.seconds "$work"/*.failed "$work"/*.reported
groups=()
begin Kubernetes build_kubernetes
begin shed build_shed
reported=$SECONDS
while :; do
    sleep 1
    running=()
    for name in Kubernetes shed; do has_ended "$name" || running+=("$name"); done
    [ "${#running[@]}" -gt 0 ] || break
    if [ $((SECONDS - reported)) -ge "$every" ]; then
        for name in "${running[@]}"; do say "step 1/$steps: $name: $(last_line "$name")"; done
        reported=$SECONDS
    fi
done

export SHED_BINARY=$PWD/$programs/shed
case $programs in /*) SHED_BINARY=$programs/shed ;; esac
exec "${SHED_BINARY%/shed}/demo" "$@"
