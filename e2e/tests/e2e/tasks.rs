//! Scripts of tasks that several tests share.

/// A task of `$units` units that reports each with a checkpoint, resumes at one, takes
/// `$slow` seconds per unit in the first attempt of task 0 and `$step` otherwise, and tells in
/// its termination message where it began. `$each` runs for each unit.
pub fn worker(units: u32, step: f64, slow: f64, each: &str) -> String {
    format!(
        r#"
first=1
if [ -f "$SHED_RESUME_FILE.checkpoint" ]; then first=$(cat "$SHED_RESUME_FILE.checkpoint"); fi
echo "from $first" > /dev/termination-log
step={step}
if [ "$JOB_COMPLETION_INDEX-$SHED_ATTEMPT" = 0-0 ]; then step={slow}; fi
for i in $(seq "$first" {units}); do
    sleep "$step"
    {each}
    echo "{{\"progress\":\"$i/{units}\",\"checkpoint\":\"$((i + 1))\"}}" > "$SHED_PROGRESS_FILE.new"
    mv "$SHED_PROGRESS_FILE.new" "$SHED_PROGRESS_FILE"
done
"#
    )
}

/// Where the worker says that it began.
pub fn first_unit(said: &str) -> Option<u32> {
    said.trim().strip_prefix("from ")?.parse().ok()
}
