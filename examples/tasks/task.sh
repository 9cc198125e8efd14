#!/bin/sh
# Works on 40 units, reports progress, and continues from the checkpoint of an earlier attempt.
set -eu
units=40
unit=0
if [ -f "$SHED_RESUME_FILE.checkpoint" ]; then unit=$(cat "$SHED_RESUME_FILE.checkpoint"); fi
echo "begins at unit $unit"
while [ "$unit" -lt "$units" ]; do
    sleep "${STEP:-1}" # the work on one unit
    unit=$((unit + 1))
    echo "{\"progress\":\"$unit/$units\",\"checkpoint\":\"$unit\"}" > "$SHED_PROGRESS_FILE.new"
    mv "$SHED_PROGRESS_FILE.new" "$SHED_PROGRESS_FILE"
done
