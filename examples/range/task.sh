#!/bin/sh
# A task whose input can be divided while it runs (spec.resume: Range). A unit is
# a line of $INPUT; the lines from where the attempt begins up to where it stops go
# to one file of $OUT, named after them. $STEP is how long a line takes.
set -eu
total=$(wc -l < "$INPUT")
start=${SHED_RANGE_START:-0}
unit=$start
end=${SHED_RANGE_END:-$total}
part=$OUT/.${SHED_ATTEMPT_ID:-$JOB_COMPLETION_INDEX}

# Where the attempt stops may change until it is there. What is behind it already
# is no order any more: it goes on to the end that it had.
look() {
    if [ -s "${SHED_STOP_FILE:-}" ]; then
        stop=$(cat "$SHED_STOP_FILE")
        if [ "$stop" -ge "$unit" ]; then end=$stop; fi
    fi
}

report() {
    if [ -z "${SHED_PROGRESS_FILE:-}" ]; then return; fi # without shed
    echo "$unit/$total" > "$SHED_PROGRESS_FILE.new"
    mv "$SHED_PROGRESS_FILE.new" "$SHED_PROGRESS_FILE"
}

: > "$part"
look
while [ "$unit" -lt "$end" ]; do
    sleep "$STEP"
    sed -n "$((unit + 1))p" "$INPUT" >> "$part"
    unit=$((unit + 1))
    report
    look
done
# In one piece, and only now: the last report says where the part ends.
mv "$part" "$OUT/$JOB_COMPLETION_INDEX.$start-$unit"
