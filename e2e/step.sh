#!/usr/bin/env bash
# Runs one step of `make test` under a headline, and says how long it took.
set -euo pipefail
title=$1
shift
started=$SECONDS
printf '\n== %s\n' "$title"
if "$@"; then
  printf '== %s: ok after %d s\n' "$title" $((SECONDS - started))
else
  status=$?
  printf '== %s: FAILED after %d s\n' "$title" $((SECONDS - started))
  exit "$status"
fi
