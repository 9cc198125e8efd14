//! Texts about a batch/v1 Job. They name its annotations, not the fields of its companion. Pure.

use std::borrow::Cow;

/// Fields of a `DeadlineJob`, and the annotations that stand for them on a Job.
const NAMES: [(&str, &str); 12] = [
    ("spec.deadline.clockStart", "shed.dev/clock-start"),
    ("spec.deadline", "shed.dev/deadline"),
    ("spec.onMiss", "shed.dev/on-miss"),
    ("spec.idempotency", "shed.dev/idempotency"),
    ("spec.progress", "shed.dev/progress"),
    ("spec.resume", "shed.dev/resume"),
    ("spec.preemption", "shed.dev/preemption"),
    (
        "spec.speculation.maxClonesPerTask",
        "shed.dev/max-clones-per-task",
    ),
    ("spec.speculation.budget", "shed.dev/clone-budget"),
    ("spec.speculation", "shed.dev/speculation"),
    ("spec.targetPoCD", "shed.dev/target-pocd"),
    (
        "spec.expectedTaskDuration",
        "shed.dev/expected-task-duration",
    ),
];

/// The text with annotations in the place of fields.
pub fn by_annotations(text: &str) -> Cow<'_, str> {
    let mut words = Cow::Borrowed(text);
    for (field, annotation) in NAMES {
        let mut from = 0;
        while let Some(found) = words[from..].find(field) {
            let at = from + found;
            let end = at + path_length(&words[at..]);
            let rest = &words[at + field.len()..end];
            let is_whole = !words[..at].ends_with(is_path);
            if is_whole && (rest.is_empty() || rest.starts_with('.')) {
                words.to_mut().replace_range(at..end, annotation);
            }
            from = at + 1;
        }
    }
    words
}

/// Bytes of the path at the beginning of a text. A full stop behind it is not part of it.
fn path_length(text: &str) -> usize {
    let end = text.find(|one| !is_path(one)).unwrap_or(text.len());
    text[..end].trim_end_matches('.').len()
}

fn is_path(one: char) -> bool {
    one.is_ascii_alphanumeric() || ".[]".contains(one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_a_deadline_job_become_annotations() {
        for (text, expected) in [
            ("spec.onMiss is Fail", "shed.dev/on-miss is Fail"),
            ("set spec.deadline.within.", "set shed.dev/deadline."),
            ("spec.deadline.clock.timeZone: x", "shed.dev/deadline: x"),
            ("spec.deadline.clockStart: x", "shed.dev/clock-start: x"),
            (
                "spec.speculation.mode: Disabled and spec.speculation.budget",
                "shed.dev/speculation: Disabled and shed.dev/clone-budget",
            ),
            (
                "spec.deadlines, spec.template.spec.resume",
                "spec.deadlines, spec.template.spec.resume",
            ),
            ("spec.parallelism", "spec.parallelism"),
        ] {
            assert_eq!(by_annotations(text), expected);
        }
    }
}
