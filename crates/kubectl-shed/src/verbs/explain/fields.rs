//! Names of settings: fields of a `DeadlineJob`, annotations of a batch/v1 Job. Pure.

/// Longer names stand before their beginnings.
const ANNOTATIONS: [(&str, &str); 8] = [
    (
        "spec.speculation.maxClonesPerTask",
        "shed.dev/max-clones-per-task",
    ),
    ("spec.speculation.budget", "shed.dev/clone-budget"),
    ("spec.speculation.mode", "shed.dev/speculation"),
    ("spec.targetPoCD", "shed.dev/target-pocd"),
    ("spec.idempotency", "shed.dev/idempotency"),
    ("spec.preemption", "shed.dev/preemption"),
    ("spec.deadline", "shed.dev/deadline"),
    ("spec.resume", "shed.dev/resume"),
];

/// The text with the names that the settings have in a job of this kind.
pub fn named(kind: &str, text: &str) -> String {
    if kind != "Job" {
        return text.to_owned();
    }
    ANNOTATIONS
        .iter()
        .fold(text.to_owned(), |text, (field, annotation)| {
            text.replace(field, &format!("the annotation {annotation}"))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_a_job_are_annotations_that_shed_reads() {
        let text = "set spec.speculation.mode to Enabled";
        assert_eq!(named("DeadlineJob", text), text);
        assert_eq!(
            named("Job", text),
            "set the annotation shed.dev/speculation to Enabled"
        );
        let page = include_str!("../../../../../docs/reference/adopted-jobs.md");
        for (_, annotation) in ANNOTATIONS {
            assert!(page.contains(&format!("`{annotation}`")), "{annotation}");
        }
    }
}
