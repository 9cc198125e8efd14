#!/usr/bin/env bash
# Runs one step of `make test` under a headline, and says how long it took.
#
#   e2e/step.sh TITLE [--budget MINUTES] COMMAND…
#   e2e/step.sh --begin       forgets the steps of an earlier run
#   e2e/step.sh --summary     a table of the steps since then, with their budgets
#
# A budget is what a step may take on two cores with cold caches. One that took longer is pointed
# out and fails nothing: a busy machine is no fault of the code.
set -euo pipefail
steps=${SHED_STEPS:-${CARGO_TARGET_DIR:-$(dirname -- "${BASH_SOURCE[0]}")/../target}/steps.tsv}
mkdir -p "$(dirname -- "$steps")"

summary() {
  awk -F '\t' '
    BEGIN { printf "\n%-44s %8s %8s\n", "step", "minutes", "budget" }
    {
      printf "%-44s %8.1f %8s%s\n", $1, $2 / 60, $3, ($3 != "" && $2 > 60 * $3) ? "  over budget" : ""
      seconds += $2
      budget += $3
    }
    END { printf "%-44s %8.1f %8d\n", "all", seconds / 60, budget }' "$steps"
}

case ${1-} in
--begin)
  : >"$steps"
  exit
  ;;
--summary)
  summary
  exit
  ;;
esac
[ $# -ge 2 ] || {
  echo "usage: ${0##*/} TITLE [--budget MINUTES] COMMAND… | --begin | --summary" >&2
  exit 2
}
title=$1 budget=
shift
if [ "${1-}" = --budget ]; then
  budget=$2
  shift 2
fi
started=$SECONDS
printf '\n== %s\n' "$title"
status=0
"$@" || status=$?
took=$((SECONDS - started))
printf '%s\t%s\t%s\n' "$title" "$took" "$budget" >>"$steps"
if [ "$status" = 0 ]; then
  printf '== %s: ok after %d s\n' "$title" "$took"
else
  printf '== %s: FAILED after %d s\n' "$title" "$took"
  summary
  exit "$status"
fi
