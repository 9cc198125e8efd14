use serde_json::{Value, json};

use super::text::render;
use super::*;
use crate::fixtures::{canvas, golden_widths, now};

const RUN: &str = "etl-20300131";

/// The companion of a Job that is a stage of the run.
fn stage(name: &str, created: &str, change: Value) -> LenientJob {
    let job = format!("{RUN}-{name}");
    let owner = json!([{"apiVersion": "batch/v1", "kind": "Job", "name": job, "uid": name, "controller": true}]);
    let mut object = json!({
        "apiVersion": "shed.dev/v1alpha1", "kind": "DeadlineJob",
        "metadata": {
            "name": shed::adopt::translate::companion_name_of(&job, name), "namespace": "team-a",
            "creationTimestamp": format!("2030-01-31T{created}Z"), "ownerReferences": owner,
            "labels": {"shed.dev/class": format!("etl-{name}")},
            "annotations": {"shed.dev/workflow": RUN, "shed.dev/workflow-deadline": "1h"},
        },
        "spec": {"completions": 4, "idempotency": "Safe"}, "status": {},
    });
    merge(&mut object, change);
    serde_json::from_value(object).unwrap()
}

fn merge(object: &mut Value, change: Value) {
    match change {
        Value::Object(fields) => fields
            .into_iter()
            .for_each(|(key, value)| merge(&mut object[key], value)),
        value => *object = value,
    }
}

fn time(clock: &str) -> String {
    format!("2030-01-31T{clock}Z")
}

fn extract() -> LenientJob {
    let status = json!({"phase": "Complete", "startTime": time("07:00:05"), "completionTime": time("07:31:00"),
        "workflow": {"run": RUN, "deadline": time("08:00:00"), "pocd": "0.980"}});
    stage("extract", "07:00:00", json!({"status": status}))
}

fn transform() -> LenientJob {
    let run = json!({"run": RUN, "deadline": time("08:00:00"), "pocd": "0.713", "stageDeadline": time("07:48:00"),
        "estimatedCompletionTime": time("07:58:30"), "overrun": {"stage": "etl-extract", "seconds": 660}});
    let status = json!({"phase": "Running", "startTime": time("07:31:12"),
        "estimatedCompletionTime": time("07:46:00"), "workflow": run});
    stage("transform", "07:31:05", json!({"status": status}))
}

/// The last stage, which the reconciler has not looked at.
fn load(status: Value) -> LenientJob {
    let last = json!({"annotations": {"shed.dev/workflow-last": "true"}});
    stage(
        "load",
        "07:47:00",
        json!({"metadata": last, "status": status}),
    )
}

fn seen(own: Vec<LenientJob>, all: &[Job]) -> WorkflowView {
    view(RUN, own, all, now()).unwrap()
}

/// Objects that are listed are not always in the order of their creation.
#[test]
fn a_run_is_shown_with_its_stages() {
    let view = seen(vec![transform(), extract()], &[]);
    golden_widths("workflow", |canvas| render(&view, canvas, now()));
    assert_eq!(view.slack_seconds, Some(90));
}

#[test]
fn an_open_stage_without_a_status_hides_no_figures() {
    let view = seen(vec![extract(), transform(), load(json!({}))], &[]);
    assert_eq!((view.slack_seconds, view.stages.len()), (Some(90), 3));
    assert!(!view.is_complete);
    assert_eq!(view.stages[2].phase, "New");
}

#[test]
fn of_stages_at_the_same_time_the_one_most_at_risk_counts() {
    let change = json!({"status": {"phase": "Running", "workflow": {"run": RUN, "deadline": time("08:00:00"), "pocd": "0.500"}}});
    let other = stage("report", "07:32:00", change);
    let view = seen(vec![other.clone(), transform()], &[]);
    assert_eq!(view.pocd.map(Pocd::value), Some(0.5));
    let view = seen(vec![transform(), other], &[]);
    assert_eq!(view.pocd.map(Pocd::value), Some(0.5));
}

#[test]
fn a_run_is_complete_with_its_marked_stage() {
    let mut done = transform();
    let status = done.status.as_mut().unwrap();
    status.phase = Some("Complete".to_owned());
    let ended = |phase, run| {
        let status = json!({"phase": phase, "startTime": time("07:47:10"), "completionTime": time("07:57:00"),
            "workflow": {"run": run, "deadline": time("08:00:00"), "pocd": "0.990"}});
        seen(vec![extract(), done.clone(), load(status)], &[])
    };
    let view = ended("Complete", RUN);
    assert!(view.is_complete);
    assert_eq!(view.slack_seconds, Some(180));
    let text = render(&view, canvas(80), now());
    assert!(
        text.contains("\nComplete     07:57:00Z: slack 3m00s\n"),
        "{text}"
    );
    assert!(!text.contains("PoCD"), "{text}");
    assert!(!ended("Running", RUN).is_complete);
    // The annotation of a job was changed.
    assert_eq!(ended("Complete", "etl-1").slack_seconds, Some(180));
}

#[test]
fn a_failed_stage_has_its_end() {
    let failed = json!([{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "",
        "lastTransitionTime": time("07:35:00")}]);
    let failed = stage(
        "transform",
        "07:31:05",
        json!({"status": {"phase": "Failed", "conditions": failed}}),
    );
    let view = seen(vec![extract(), failed], &[]);
    let text = render(&view, canvas(80), now());
    assert!(text.contains("Failed               07:35:00Z"), "{text}");
}

#[test]
fn a_run_without_figures_names_what_is_missing() {
    let mut first = stage("extract", "07:00:00", json!({}));
    let text = |job: &LenientJob| render(&seen(vec![job.clone()], &[]), canvas(120), now());
    let new = text(&first);
    assert!(
        new.contains("not known yet: no operator has read the jobs"),
        "{new}"
    );
    assert!(
        new.contains("PoCD         unknown until 3 earlier runs of the class have ended"),
        "{new}"
    );
    let annotations = first.metadata.annotations.as_mut().unwrap();
    annotations.remove(ANNOTATION_WORKFLOW_DEADLINE);
    let none = text(&first);
    assert!(
        none.contains("none: no job has the annotation shed.dev/workflow-deadline"),
        "{none}"
    );
}

fn job(name: &str, run: &str) -> Job {
    let metadata = json!({"name": name, "namespace": "team-a", "uid": name, "creationTimestamp": time("07:31:05"),
        "annotations": {"shed.dev/workflow": run}, "labels": {"shed.dev/class": "etl-transform"}});
    let spec =
        json!({"completions": 1, "parallelism": 1, "template": {"spec": {"containers": []}}});
    let status = json!({"active": 1, "startTime": time("07:31:06")});
    serde_json::from_value(json!({"metadata": metadata, "spec": spec, "status": status})).unwrap()
}

#[test]
fn jobs_that_shed_does_not_run_are_stages_too() {
    // The Job of the companion counts once.
    let jobs = [
        job("extract", RUN),
        job("transform", RUN),
        job("other", "etl-1"),
    ];
    let view = seen(vec![extract()], &jobs);
    let stages: Vec<_> = view
        .stages
        .iter()
        .map(|stage| (&*stage.name, &*stage.phase))
        .collect();
    assert_eq!(
        stages,
        [
            ("etl-20300131-extract", "Complete"),
            ("transform", "Running")
        ]
    );
    assert!(
        view.notes[0].starts_with("shed does not run transform. "),
        "{:?}",
        view.notes
    );
}

#[test]
fn a_name_without_jobs_is_an_error_that_names_similar_runs() {
    let names = view(
        "etl-20300130",
        vec![extract(), transform()],
        &[job("other", "nightly")],
        now(),
    );
    let names = names.unwrap_err();
    assert_eq!(names, [RUN, "nightly"]);
    assert_eq!(
        no_job("etl-20300130", "team-a", &names).to_string(),
        "no job in namespace team-a has the annotation shed.dev/workflow: etl-20300130; did you mean etl-20300131?"
    );
    let none = no_job("etl-1", "team-a", &[]).to_string();
    assert!(none.ends_with("; check the namespace (-n)"), "{none}");
}
