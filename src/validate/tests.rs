use shed_core::snapshot::SpeculationMode;

use super::*;
use crate::fixtures::job;

fn refusal(change: &str) -> String {
    validate(&job(change)).unwrap_err().to_string()
}

#[test]
fn defaults_are_those_of_the_documentation() {
    let job = validate(&job("")).unwrap();
    assert_eq!(job.rules.parallelism, job.rules.completions);
    assert_eq!(job.rules.backoff_limit_per_index, 3);
    assert_eq!(job.rules.max_clones_per_task, 5);
    assert_eq!(job.rules.speculation, SpeculationMode::Enabled);
    assert_eq!(
        job.deadline,
        DeadlineRule::FromCreation(Span::from_seconds(600))
    );
}

#[test]
fn an_expected_duration_may_exceed_the_deadline() {
    let expected = |text: &str| validate(&job(text)).unwrap().expected_duration.unwrap();
    let long = expected("expectedTaskDuration: {p50: 100h}");
    assert_eq!(long.p50(), Span::from_seconds(360_000));
    assert_eq!(long.p90(), None);
    let both = expected("expectedTaskDuration: {p50: 1m30s, p90: 2m}");
    assert_eq!(both.p90(), Some(Span::from_seconds(120)));
    assert_eq!(validate(&job("")).unwrap().expected_duration, None);
}

#[test]
fn a_clock_that_starts_with_the_job_has_no_deadline_before() {
    let job = validate(&job("deadline: {within: 1h30m, clockStart: Start}")).unwrap();
    let mut ledger = Ledger::default();
    assert_eq!(job.deadline_by(&ledger), None);
    ledger.first_pass = Some(Instant(1000));
    assert_eq!(job.deadline_by(&ledger), Some(Instant(1000 + 5_400_000)));
}

#[test]
fn a_specification_may_fill_a_quarter_of_the_object() {
    let with = |bytes: usize| {
        let mut job = job("");
        let pod = job.spec.template.spec.as_mut().unwrap();
        pod.containers[0].args = Some(vec![String::new()]);
        let rest = size::bytes(&job.spec);
        let pod = job.spec.template.spec.as_mut().unwrap();
        pod.containers[0].args = Some(vec!["x".repeat(bytes - rest)]);
        validate(&job)
    };
    assert!(with(size::SPEC_MAX).is_ok());
    let said = with(size::SPEC_MAX + 1).unwrap_err().to_string();
    let whole = "the specification has 262145 bytes, which exceeds the limit of 262144; ";
    assert!(said.starts_with(whole), "{said}");
    let field = "spec.template.spec.containers[0].args[0] has ";
    assert!(said.contains(field), "{said}");
}

/// Each of these changes is refused with these words.
#[track_caller]
fn each_is_refused(changes: &[(&str, &str)]) {
    for (change, words) in changes {
        let refusal = refusal(change);
        assert!(refusal.contains(words), "{change}: {refusal}");
    }
}

#[test]
fn a_refusal_of_the_deadline_names_its_field() {
    each_is_refused(&[
        ("deadline: {within: soon}", "spec.deadline.within"),
        ("deadline: {}", "spec.deadline"),
        (
            "deadline: {within: 1h, clock: {time: '06:00', timeZone: UTC}}",
            "exactly one of",
        ),
        (
            "deadline: {clock: {time: '25:00', timeZone: Europe/Zurich}}",
            "spec.deadline.clock.time: invalid time `25:00`: use HH:MM",
        ),
        (
            "deadline: {clock: {time: '6:00', timeZone: Europe/Zurich}}",
            "use HH:MM from 00:00 to 23:59, such as 06:00",
        ),
        (
            "deadline: {clock: {time: '06:00', timeZone: Europe/Zürich}}",
            "spec.deadline.clock.timeZone: unknown time zone `Europe/Zürich`",
        ),
        (
            "deadline: {history: {quantile: p95, factor: '0'}}",
            "spec.deadline.history.factor: invalid factor `0`",
        ),
        (
            "deadline: {history: {quantile: p95, factor: '1.5'}}",
            "spec.deadline.history needs the label shed.dev/class",
        ),
    ]);
}

#[test]
fn a_refusal_of_a_number_names_its_field() {
    each_is_refused(&[
        ("completions: 0", "spec.completions"),
        (
            "speculation: {maxClonesPerTask: 21}",
            "spec.speculation.maxClonesPerTask",
        ),
        (
            "expectedTaskDuration: {p50: soon}",
            "spec.expectedTaskDuration.p50",
        ),
        (
            "expectedTaskDuration: {p50: 0s}",
            "spec.expectedTaskDuration.p50",
        ),
        (
            "expectedTaskDuration: {p50: 9000000h}",
            "spec.expectedTaskDuration.p50",
        ),
        (
            "expectedTaskDuration: {p50: 10m, p90: 9m}",
            "spec.expectedTaskDuration.p90",
        ),
        ("targetPoCD: 0", "spec.targetPoCD"),
        ("targetPoCD: 1.01", "spec.targetPoCD"),
        ("speculation: {budget: -0.1}", "spec.speculation.budget"),
        ("speculation: {budget: 20.5}", "spec.speculation.budget"),
    ]);
}

#[test]
fn a_refusal_of_progress_or_resume_names_its_field() {
    each_is_refused(&[
        ("progress: {}", "spec.progress"),
        (
            "progress: {file: {}, metric: {port: 80, name: done}}",
            "spec.progress",
        ),
        (
            "progress: {metric: {port: 0, name: done}}",
            "spec.progress.metric.port",
        ),
        (
            "progress: {httpGet: {port: 80, path: '@host/'}}",
            "spec.progress.httpGet.path",
        ),
        (
            "progress: {metric: {port: 80, name: done, path: '/a b'}}",
            "spec.progress.metric.path",
        ),
        (
            "{progress: {file: {}}, template: {spec: {hostNetwork: true, containers: [{name: a}]}}}",
            "hostNetwork",
        ),
        ("resume: Range", "spec.progress"),
        (
            "{resume: Range, progress: {httpGet: {port: 80}}}",
            "spec.progress",
        ),
        (
            "{resume: Range, progress: {file: {}}, idempotency: None}",
            "spec.idempotency",
        ),
        ("preemption: WhenCheckpointed", "spec.preemption"),
        ("idempotency: Fenced", "spec.idempotency"),
        (
            "{idempotency: Fenced, progress: {httpGet: {port: 80}}}",
            "spec.progress to {file: {}}",
        ),
    ]);
}

#[test]
fn a_refusal_of_the_template_names_its_field() {
    each_is_refused(&[
        (
            "template: {spec: {containers: []}}",
            "spec.template.spec.containers",
        ),
        (
            "template: {spec: {restartPolicy: Always, containers: [{name: a}]}}",
            "restartPolicy",
        ),
        (
            "template: {spec: {containers: [{name: shed-agent}]}}",
            "shed-agent",
        ),
    ]);
}

#[test]
fn a_class_is_that_of_the_label_within_the_namespace() {
    let class = |label: Option<&str>| {
        let mut job = job("");
        let labels = label.map(|label| (api::LABEL_CLASS.to_owned(), label.to_owned()));
        job.metadata.labels = Some(labels.into_iter().collect());
        validate(&job).unwrap().class
    };
    let namespace = job("").metadata.namespace.unwrap();
    let expected = format!("{namespace}/nightly");
    assert_eq!(class(Some("nightly")).as_deref(), Some(expected.as_str()));
    assert_eq!(class(Some("")), None);
    assert_eq!(class(None), None);
}
