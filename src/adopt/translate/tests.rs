use super::*;
use crate::fixtures;

fn job(change: &str) -> Job {
    fixtures::batch_job(change)
}

fn read(job: &Job) -> ValidatedJob {
    let companion = fixtures::companion(job);
    validated(&companion, job).unwrap()
}

#[test]
fn a_companion_belongs_to_its_job_and_says_so() {
    let job = job("");
    let companion = companion(&job).unwrap();
    let owner = &companion.metadata.owner_references.as_ref().unwrap()[0];
    assert_eq!((owner.kind.as_str(), owner.name.as_str()), ("Job", "pi"));
    assert_eq!(owner.controller, Some(true));
    assert!(companion.spec.is_companion() && companion.spec.is_ours());
    let labels = companion.metadata.labels.unwrap();
    let expected = [
        (api::LABEL_BATCH_JOB_NAME, "pi"),
        (api::LABEL_NO_BACKUP, "true"),
    ];
    let expected = expected.map(|(key, value)| (key.to_owned(), value.to_owned()));
    assert_eq!(labels, expected.into());
    let name = companion.metadata.name.unwrap();
    let mut again = job.clone();
    again.metadata.uid = Some("another".to_owned());
    assert!(name.starts_with("pi-"));
    assert_ne!(
        companion_name(&again),
        Some(name),
        "made again, it gets a ledger of its own"
    );
}

#[test]
fn a_job_without_annotations_gets_no_clone_and_no_sidecar() {
    let read = read(&job("completions: 3"));
    assert_eq!(read.deadline, crate::validate::DeadlineRule::Never);
    assert_eq!(
        read.rules.speculation,
        shed_core::snapshot::SpeculationMode::Disabled
    );
    assert!(read.progress.is_none());
    assert!(read.adopted.unwrap().plain);
}

#[test]
fn limits_are_those_of_batch_v1() {
    let plain = read(&job("completions: 3"));
    assert_eq!((plain.rules.completions, plain.rules.parallelism), (3, 1));
    assert_eq!(plain.rules.ending.backoff_limit, Some(6));
    assert_eq!(
        plain.rules.backoff_limit_per_index, 2_147_483_647,
        "no limit per task"
    );
    let per_index = "completions: 3, completionMode: Indexed, backoffLimitPerIndex: 1, \
                     backoffLimit: 2147483647";
    let per_index = read(&job(per_index));
    assert_eq!(per_index.rules.backoff_limit_per_index, 1);
    assert!(per_index.adopted.unwrap().per_index);
    let none = read(&job("completions: 0, parallelism: 0"));
    assert_eq!((none.rules.completions, none.rules.parallelism), (0, 0));
}

#[test]
fn without_a_deadline_a_job_backs_off_as_batch_v1_does() {
    let waits = |job: &Job, failures| {
        let retries = read(job).retries;
        (retries.wait(failures).seconds(), retries.whole_job)
    };
    let plain = job("completions: 3");
    assert_eq!(waits(&plain, 1), (10.0, true));
    assert_eq!(waits(&plain, 3), (40.0, true));
    assert_eq!(waits(&plain, 99), (600.0, true));
    let per_index = job("completions: 3, completionMode: Indexed, backoffLimitPerIndex: 1");
    assert_eq!(waits(&per_index, 1), (10.0, false));
    let mut urgent = plain;
    let deadline = [("shed.dev/deadline".to_owned(), "5m".to_owned())];
    urgent.metadata.annotations = Some(deadline.into());
    assert_eq!(waits(&urgent, 1), (1.0, false));
}

#[test]
fn a_work_queue_has_a_task_for_each_pod_that_may_run() {
    let queue = read(&job("parallelism: 4"));
    assert_eq!(queue.rules.completions, 4);
    assert!(queue.adopted.unwrap().work_queue);
    assert_eq!(
        read(&job("parallelism: 0")).rules.completions,
        1,
        "it is paused, not complete"
    );
}

#[test]
fn policies_are_read_as_they_are_written() {
    let policies = "completions: 2, completionMode: Indexed, \
        podFailurePolicy: {rules: [{action: Ignore, onPodConditions: [{type: DisruptionTarget, status: 'True'}]}, \
            {action: FailJob, onExitCodes: {operator: In, values: [42]}}]}, \
        successPolicy: {rules: [{succeededIndexes: '0,1', succeededCount: 1}]}, \
        podReplacementPolicy: Failed";
    let job = read(&job(policies));
    assert_eq!(job.failure_rules.len(), 2);
    assert_eq!(job.rules.ending.success.len(), 1);
    assert!(job.rules.replaces_when_gone);
}

#[test]
fn a_late_job_continues_unless_its_annotation_says_fail() {
    let on_miss = |annotations: &[(&str, &str)]| {
        let mut job = job("completions: 2");
        let annotations = annotations.iter();
        let annotations = annotations.map(|&(key, value)| (key.to_owned(), value.to_owned()));
        job.metadata.annotations = Some(annotations.collect());
        companion(&job).unwrap().spec.on_miss
    };
    let deadline = ("shed.dev/deadline", "10m");
    assert_eq!(on_miss(&[deadline]), api::OnMiss::Continue);
    for (word, expected) in [
        ("Fail", api::OnMiss::Fail),
        ("Continue", api::OnMiss::Continue),
    ] {
        assert_eq!(on_miss(&[deadline, ("shed.dev/on-miss", word)]), expected);
    }
}

#[test]
fn annotations_reach_the_job_through_its_companion() {
    let mut job = job("completions: 2");
    let annotations = [
        ("shed.dev/deadline", "10m"),
        ("shed.dev/idempotency", "Safe"),
        ("shed.dev/progress", "file"),
    ];
    let annotations = annotations.map(|(key, value)| (key.to_owned(), value.to_owned()));
    job.metadata.annotations = Some(annotations.into());
    let read = read(&job);
    let created = read.created;
    let deadline = read
        .deadline
        .instant(created, &crate::api::Ledger::default());
    assert_eq!(
        deadline,
        Some(created.plus(shed_core::time::Span::from_seconds(600)))
    );
    assert_eq!(
        read.rules.speculation,
        shed_core::snapshot::SpeculationMode::Enabled
    );
    assert!(read.progress.is_some() && !read.adopted.unwrap().plain);
}

/// A Job that a CronJob created ten minutes late.
fn late(deadline: &str, label: Option<&str>) -> Job {
    let mut job = job("completions: 2");
    let metadata = &mut job.metadata;
    metadata.creation_timestamp = serde_json::from_value("2026-01-15T01:10:00Z".into()).ok();
    let annotations = [
        ("shed.dev/deadline", deadline),
        (crate::adopt::SCHEDULED, "2026-01-15T01:00:00Z"),
    ];
    let annotations = annotations.map(|(key, value)| (key.to_owned(), value.to_owned()));
    metadata.annotations = Some(annotations.into());
    let class = label.map(|label| (api::LABEL_CLASS.to_owned(), label.to_owned()));
    metadata.labels = Some(class.into_iter().collect());
    metadata.owner_references = Some(vec![OwnerReference {
        kind: "CronJob".to_owned(),
        ..owner_reference("nightly", "cron-uid")
    }]);
    job
}

#[test]
fn a_late_start_of_a_cron_job_does_not_move_the_deadline() {
    for (deadline, expected) in [
        ("5h", "2026-01-15T06:00:00Z"),
        ("06:00 Europe/Zurich", "2026-01-15T05:00:00Z"),
        // Between the scheduled time and the creation.
        ("02:05 Europe/Zurich", "2026-01-15T01:05:00Z"),
        ("02:00 Europe/Zurich", "2026-01-16T01:00:00Z"),
    ] {
        let read = read(&late(deadline, None));
        let due = read.deadline_by(&crate::api::Ledger::default()).unwrap();
        assert_eq!(crate::clock::rfc3339(due), expected, "{deadline}");
        assert!(read.created > read.counts_from);
    }
}

#[test]
fn the_class_is_the_label_or_else_the_cron_job() {
    let class = |job: &Job| {
        let labels = companion(job).unwrap().metadata.labels.unwrap();
        labels.get(api::LABEL_CLASS).cloned()
    };
    let mut by_hand = late("5h", None);
    by_hand.metadata.owner_references = None;
    let mut of_another = late("5h", None);
    of_another.metadata.owner_references.as_mut().unwrap()[0].controller = None;
    for (job, expected) in [
        (late("5h", None), Some("nightly")),
        (late("5h", Some("reports")), Some("reports")),
        (late("5h", Some("")), None),
        (by_hand, None),
        (of_another, None),
    ] {
        assert_eq!(class(&job).as_deref(), expected, "{:?}", job.metadata);
    }
}

#[test]
fn a_deadline_by_history_needs_the_class_of_the_job() {
    let text = "history(p95)*1.5";
    let mut by_hand = late(text, None);
    by_hand.metadata.owner_references = None;
    for job in [by_hand, late(text, Some(""))] {
        let refused = companion(&job).unwrap_err().to_string();
        assert!(
            refused.starts_with("annotation shed.dev/deadline: history needs the label"),
            "{refused}"
        );
    }
    let read = read(&late(text, None));
    assert!(matches!(
        read.deadline,
        crate::validate::DeadlineRule::History(_)
    ));
    let clones = read.rules.speculation;
    assert_eq!(
        clones,
        shed_core::snapshot::SpeculationMode::Disabled,
        "it does not say Safe"
    );
}
