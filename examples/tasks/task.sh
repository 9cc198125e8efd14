#!/bin/sh
# Works on 40 units, reports progress, and continues from the checkpoint of an earlier attempt.
# Without shed it does the same work from the start.
set -eu
units=40
unit=0
checkpoint=${SHED_RESUME_FILE:-/dev/null}.checkpoint
if [ -f "$checkpoint" ]; then unit=$(cat "$checkpoint"); fi
echo "begins at unit $unit"
while [ "$unit" -lt "$units" ]; do
    sleep "${STEP:-1}" # the work on one unit
    unit=$((unit + 1))
    if [ -n "${SHED_PROGRESS_FILE:-}" ]; then
        echo "{\"progress\":\"$unit/$units\",\"checkpoint\":\"$unit\"}" > "$SHED_PROGRESS_FILE.new"
        mv "$SHED_PROGRESS_FILE.new" "$SHED_PROGRESS_FILE"
    fi
done
