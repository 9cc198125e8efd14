#!/usr/bin/env bash
# Runs `kubectl shed` as a person would: in a terminal of 40 and of 200 columns, in a pipe, and in a terminal that goes away.
#
#   e2e/kubectl-shed-tmux.sh NAMESPACE JOB    with the current kubeconfig; the job should have attempts
#
# KUBECTL_SHED is the program; absent: target/debug/kubectl-shed.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ "$#" != 2 ]; then
  sed -n '2,6s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
namespace=$1 job=$2
shed=${KUBECTL_SHED:-${CARGO_TARGET_DIR:-target}/debug/kubectl-shed}
socket=shed-$$
work=$(mktemp -d)
trap 'tmux -L "$socket" kill-server 2>/dev/null || true; rm -rf "$work"' EXIT

fail() {
  echo "failed: $1" >&2
  exit 1
}

# Runs a command in a terminal and prints what it shows. The command's exit code is in $work/code.
in_terminal() {
  local columns=$1
  shift
  rm -f "$work/code"
  tmux -L "$socket" new-session -d -s run -x "$columns" -y 60 \
    "$* ; echo \$? >'$work/code'; sleep 60"
  for _ in $(seq 100); do
    [ -s "$work/code" ] && break
    sleep 0.2
  done
  tmux -L "$socket" capture-pane -p -t run >"$work/shown"
  tmux -L "$socket" capture-pane -pe -t run >"$work/colored"
  tmux -L "$socket" kill-session -t run
  [ "$(cat "$work/code")" = 0 ] || fail "$* at $columns columns: $(cat "$work/shown")"
}

for columns in 40 200; do
  for verb in status explain timeline; do
    in_terminal "$columns" "$shed" "$verb" "$job" -n "$namespace"
    grep -q "${job:0:10}" "$work/shown" || fail "$verb at $columns columns does not name the job"
    echo "== $verb, $columns columns"
    sed -e :a -e '/^\n*$/{$d;N;ba' -e '}' "$work/shown"
  done
  in_terminal "$columns" "$shed" status "$job" -n "$namespace"
  grep -q $'\033\[' "$work/colored" || fail "a terminal gets no colors"
  in_terminal "$columns" NO_COLOR=1 "$shed" status "$job" -n "$namespace"
  ! grep -q $'\033\[[0-9;]*[1-9]m' "$work/colored" || fail "NO_COLOR is not respected"
done

# A watch draws again, and ends with its terminal.
tmux -L "$socket" new-session -d -s watch -x 100 -y 30 "echo \$\$ >'$work/pid'; exec '$shed' top -n '$namespace' --watch"
sleep 5
tmux -L "$socket" capture-pane -p -t watch >"$work/shown"
grep -qE "NAME|No unfinished jobs" "$work/shown" || fail "top --watch shows nothing"
watcher=$(cat "$work/pid")
tmux -L "$socket" kill-session -t watch
for _ in $(seq 50); do
  [ -d "/proc/$watcher" ] || break
  sleep 0.1
done
[ ! -d "/proc/$watcher" ] || fail "top --watch outlives its terminal"

# A pipe gets neither colors nor a second drawing, and may close early.
"$shed" status "$job" -n "$namespace" --watch >"$work/piped"
! grep -q $'\033' "$work/piped" || fail "a pipe gets colors"
"$shed" explain "$job" -n "$namespace" 2>"$work/errors" | head -n 1 >/dev/null
[ ! -s "$work/errors" ] || fail "a closed pipe: $(cat "$work/errors")"
echo "kubectl shed: terminals of 40 and 200 columns, a pipe, a terminal that goes away"
