use serde_json::json;

use super::text::render;
use super::*;
use crate::fixtures::{canvas, golden_widths, nightly, now};

/// As the listener of the leader serves them.
fn answer() -> Vec<JobSummary> {
    let jobs = json!([
        {"namespace": "team-b", "name": "hourly-ingest", "kind": "DeadlineJob", "phase": "Running",
         "deadline": "2030-01-31T08:10:00Z", "pocd": "0.997", "calibratedPoCD": "0.990", "slackSeconds": 610,
         "tasks": 400, "succeeded": 120, "active": 41, "clones": 0, "waiting": 239},
        {"namespace": "team-a", "name": "done", "kind": "Job", "phase": "Complete", "pocd": "1.000", "tasks": 1,
         "succeeded": 1, "active": 0, "clones": 0, "waiting": 0},
        {"namespace": "team-a", "name": "new-job", "kind": "Job", "phase": "Pending",
         "deadline": "2030-01-31T12:00:00Z", "tasks": 8, "succeeded": 0, "active": 0, "clones": 0, "waiting": 8},
        {"namespace": "team-a", "name": "nightly", "kind": "DeadlineJob", "phase": "Running",
         "deadline": "2030-01-31T08:00:00Z", "pocd": "0.413", "slackSeconds": -95, "tasks": 6, "succeeded": 2,
         "active": 4, "clones": 1, "waiting": 1, "risk": {"cause": "TasksStraggling", "task": 3, "node": "worker-2"}},
    ]);
    serde_json::from_value(jobs).unwrap()
}

fn shares() -> Vec<ShareSummary> {
    let shares = json!([
        {"namespace": "team-a", "weight": "3.000", "entitled": "0.750", "held": "0.500", "lent": "0.000",
         "owed": "0.250", "owedUntil": "2030-01-31T07:55:00Z"},
        {"namespace": "team-b", "weight": "1.000", "entitled": "0.250", "held": "0.500", "lent": "0.250",
         "owed": "0.000"},
    ]);
    serde_json::from_value(shares).unwrap()
}

#[test]
fn jobs_are_shown_by_risk_and_shares_after_them() {
    let view = TopView {
        jobs: by_risk(answer()),
        shares: shares(),
        has_namespaces: true,
        notes: Vec::new(),
    };
    let names: Vec<&str> = view.jobs.iter().map(|job| &*job.name).collect();
    assert_eq!(names, ["nightly", "hourly-ingest", "new-job"]);
    golden_widths("top", |canvas| render(&view, canvas, now()));
}

#[test]
fn a_job_from_its_status_has_the_same_columns() {
    let (mut job, record) = nightly();
    job.status.record = Some(serde_json::to_value(record).unwrap());
    let job = JobSummary::from(job);
    assert_eq!(job.risk.as_ref().unwrap().cause, "TasksStraggling");
    assert_eq!(
        (job.slack_seconds, job.waiting, job.clones),
        (Some(210), 1, 1)
    );
    let view = TopView {
        jobs: vec![job],
        notes: vec!["As you asked.".to_owned()],
        ..TopView::default()
    };
    let text = render(&view, canvas(200), now());
    assert!(
        text.starts_with("NAME ") && text.ends_with("\nAs you asked.\n"),
        "{text}"
    );
}

#[test]
fn ten_thousand_jobs_are_a_line_each() {
    let jobs = (0..10_000).map(|number| JobSummary {
        name: format!("job-{number}").into(),
        ..JobSummary::default()
    });
    let view = TopView {
        jobs: by_risk(jobs.collect()),
        ..TopView::default()
    };
    assert_eq!(render(&view, canvas(80), now()).lines().count(), 10_001);
}
