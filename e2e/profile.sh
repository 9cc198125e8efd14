#!/usr/bin/env bash
# Draws flame graphs of CPU time as SVG files in target/profile.
#
#   e2e/profile.sh             both
#   e2e/profile.sh simulator   a run under shed-prime (SIM="--preset C --load 0.95 --seed 1" changes it)
#   e2e/profile.sh operator    200 jobs of ten tasks without clones, on a cluster of its own with fake nodes
#
# Needs perf of Linux. The programs are built with frame pointers in a folder of their own.
set -euo pipefail

here=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
cd "$here/.."
inferno=0.12.8
tools=${XDG_CACHE_HOME:-$HOME/.cache}/shed/inferno-$inferno
out=target/profile
build=$out/build
# Samples per second: a prime, so that they do not beat with timers.
frequency=499

what=("${@:-}")
[ -n "${what[0]}" ] || what=(simulator operator)
for name in "${what[@]}"; do
    case $name in
    simulator | operator) ;;
    *)
        echo "profile: unknown program '$name': choose simulator or operator" >&2
        exit 2
        ;;
    esac
done
command -v perf >/dev/null || {
    echo 'profile: perf is missing: install it (on Debian the package linux-perf)' >&2
    exit 1
}
[ -x "$tools/bin/inferno-flamegraph" ] || {
    echo 'profile: building the tools that draw (about a minute)' >&2
    cargo install --quiet --locked --root "$tools" --version "$inferno" inferno
}
mkdir -p "$out"

# `compile PACKAGE`
compile() {
    echo "profile: building $1" >&2
    RUSTFLAGS='-C force-frame-pointers=yes' CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_DEBUG=line-tables-only \
        CARGO_PROFILE_RELEASE_STRIP=none cargo build --locked --quiet --release --package "$1" --target-dir "$build"
}
# `draw NAME TITLE`
draw() {
    perf script --no-inline --input "$out/$1.data" 2>/dev/null | "$tools/bin/inferno-collapse-perf" >"$out/$1.folded"
    [ -s "$out/$1.folded" ] || {
        echo "profile: no samples of the $1: may this user use perf (kernel.perf_event_paranoid)?" >&2
        exit 1
    }
    "$tools/bin/inferno-flamegraph" --title "$2" "$out/$1.folded" >"$out/$1.svg"
    echo "$out/$1.svg: $(wc -l <"$out/$1.folded") different stacks"
}

simulator() {
    local run=${SIM:---preset C --load 0.95 --seed 1}
    compile shed-sim
    # shellcheck disable=SC2086
    perf record --quiet --freq "$frequency" -g --output "$out/simulator.data" -- \
        "$build/release/shed-sim" run $run --format json >/dev/null
    draw simulator "shed-sim run $run"
}

operator() {
    local bench pid
    compile shed
    rm -f "$out/runs.jsonl"
    e2e/bench-scale.sh --operator "$build/release/shed" --size 200x10 --kind disabled --repeat 1 \
        --results "$out/runs.jsonl" >&2 &
    bench=$!
    until pid=$(pgrep --full --newest "^$PWD/$build/release/shed operator"); do
        kill -0 "$bench" 2>/dev/null || {
            echo 'profile: the bench ended before its operator was seen' >&2
            exit 1
        }
        sleep 0.2
    done
    # Ends with the operator.
    perf record --quiet --freq "$frequency" -g --output "$out/operator.data" --pid "$pid" || true
    wait "$bench"
    draw operator 'shed operator, 200 jobs of ten tasks without clones'
}

for name in "${what[@]}"; do "$name"; done
