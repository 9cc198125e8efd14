use k8s_openapi::api::batch::v1::Job;
use kube::runtime::reflector::store::Writer;
use serde_json::{Value, json};

use super::*;
use crate::adopt::WatchedBatchJob;
use crate::cluster::Stores;
use crate::completion_history::Completion;
use crate::fixtures;
use crate::reconcile::mock::{Apiserver, Process};

/// A process that watches the Jobs of `team`, and what it has reported.
struct Watching {
    api: Apiserver,
    process: Process,
    writer: Writer<WatchedBatchJob>,
    reports: Reports,
}

impl Watching {
    fn begin() -> Self {
        Self::of(AdoptJobs::Managed, &[("team", LABEL_JOBS, JOBS_WATCH)])
    }

    fn of(mode: AdoptJobs, namespaces: &[(&str, &str, &str)]) -> Self {
        let api = Apiserver::new(fixtures::job(""));
        let (stores, writer) = Stores::for_tests(vec![], vec![], &[]).seeing_jobs(mode);
        stores.show_namespaces(namespaces);
        Self {
            process: Process::with_stores(&api, stores),
            api,
            writer,
            reports: Reports::default(),
        }
    }

    fn stores(&self) -> &Stores {
        &self.process.context.stores
    }

    fn show(&mut self, job: &Value) {
        let job: Job = serde_json::from_value(job.clone()).unwrap();
        let stores = Arc::clone(&self.process.context.stores);
        stores.show_batch_job(&mut self.writer, &job);
    }

    /// Five earlier runs of class `nightly` took 100 s each.
    fn teach(&self) {
        for number in 0..5 {
            let completion = Completion {
                at: Instant(number * 1000),
                took: Span(100_000),
            };
            let completions = self.stores().jobs.completions();
            completions.see("run", "team/nightly", completion);
        }
    }

    /// The calls of a look at this second.
    async fn look(&mut self, second: i64) -> Vec<String> {
        let context = Arc::clone(&self.process.context);
        self.reports.follow_choice(&context).await;
        self.reports.look(&context, Instant(second * 1000));
        self.process.send_events().await;
        let mut calls = self.api.said();
        calls.retain(|call| !call.contains("LIST"));
        calls
    }

    fn page(&self) -> String {
        self.process.context.metrics.page().unwrap()
    }

    /// The note of the last event, which is about a Job.
    fn note(&self) -> String {
        let world = self.api.world.lock();
        drop(world);
        let event = self.api.call("POST event").body;
        assert_eq!(event["regarding"]["kind"], "Job");
        assert_eq!(event["regarding"]["apiVersion"], "batch/v1");
        event["note"].as_str().unwrap().to_owned()
    }
}

/// A Job of the built-in controller that started at its creation, at second 0.
fn job(name: &str, annotations: Value) -> Value {
    let mut job = json!(fixtures::batch_job("completions: 10, parallelism: 10"));
    job["spec"]["managedBy"] = Value::Null;
    job["metadata"]["name"] = json!(name);
    job["metadata"]["uid"] = json!(format!("uid-of-{name}"));
    job["metadata"]["labels"] = json!({"shed.dev/class": "nightly"});
    job["metadata"]["annotations"] = annotations;
    job["status"] = json!({"startTime": "1970-01-01T00:00:00Z", "active": 10});
    job
}

fn ended(mut job: Value, type_: &str, at: &str) -> Value {
    job["status"]["conditions"] =
        json!([{"type": type_, "status": "True", "lastTransitionTime": at}]);
    if type_ == "Complete" {
        job["status"]["completionTime"] = json!(at);
    }
    job
}

fn due(deadline: &str) -> Value {
    json!({"shed.dev/deadline": deadline})
}

#[tokio::test]
async fn a_job_at_risk_has_one_event_and_its_series() {
    let mut watching = Watching::begin();
    watching.teach();
    watching.show(&job("report", due("4m")));
    assert_eq!(watching.look(0).await, [""; 0]);
    let series =
        r#"{job_class="nightly",job_kind="WatchedJob",job_name="report",job_namespace="team"}"#;
    let page = watching.page();
    for line in [
        format!("shed_job_deadline_timestamp_seconds{series} 240"),
        format!("shed_job_tasks{series} 10"),
        format!("shed_job_attempts_live{series} 10"),
        "shed_watched_jobs_unfinished 1".to_owned(),
        r#"shed_jobs_pocd{at_most="0.9",job_namespace="team"} 0"#.to_owned(),
    ] {
        assert!(page.contains(&line), "{line}\n{page}");
    }
    assert!(page.contains(&format!(
        "shed_job_expected_completion_timestamp_seconds{series} 10"
    )));
    // It is older than all runs before it.
    let first = watching.look(200).await;
    assert_eq!(first, ["POST event DeadlineAtRisk"]);
    assert_eq!(watching.look(205).await, [""; 0], "it is said once");
    let page = watching.page();
    assert!(page.contains(r#"shed_jobs_pocd{at_most="0.9",job_namespace="team"} 1"#));
}

#[tokio::test]
async fn the_events_name_deadline_expected_end_and_basis() {
    let mut watching = Watching::begin();
    watching.teach();
    let both = json!({"shed.dev/deadline": "90s", "shed.dev/expected-task-duration": "100s"});
    watching.show(&job("report", both));
    let context = Arc::clone(&watching.process.context);
    watching.reports.look(&context, Instant(0));
    watching.process.send_events().await;
    let note = watching.note();
    for words in [
        "PoCD is 0.",
        ", below 0.9: the expected end is 1970-01-01T00:0",
        "and the deadline is 1970-01-01T00:01:30Z; estimated from shed.dev/expected-task-duration and 5 earlier runs \
         of class nightly; shed only watches this Job",
    ] {
        assert!(note.contains(words), "{note}");
    }
    watching.reports.look(&context, Instant(91_000));
    watching.process.send_events().await;
    let note = watching.note();
    let words = "the deadline 1970-01-01T00:01:30Z passed: 0 of 10 tasks are complete, and the Job continues";
    assert!(note.starts_with(words), "{note}");
    let reasons = ["POST event DeadlineAtRisk", "POST event DeadlineMissed"];
    assert_eq!(watching.api.said(), reasons);
}

#[tokio::test]
async fn the_end_of_a_job_at_risk_closes_its_warning() {
    for (type_, at, words) in [
        (
            "Complete",
            "1970-01-01T00:01:20Z",
            "the Job completed at 1970-01-01T00:01:20Z, before its deadline 1970-01-01T00:01:30Z",
        ),
        (
            "Complete",
            "1970-01-01T00:02:00Z",
            "the Job completed at 1970-01-01T00:02:00Z, after its deadline 1970-01-01T00:01:30Z",
        ),
        (
            "Failed",
            "1970-01-01T00:01:20Z",
            "the Job failed at 1970-01-01T00:01:20Z, before its deadline 1970-01-01T00:01:30Z",
        ),
    ] {
        let mut watching = Watching::begin();
        watching.teach();
        let report = job("report", due("90s"));
        watching.show(&report);
        assert_eq!(watching.look(0).await, ["POST event DeadlineAtRisk"]);
        watching.show(&ended(report, type_, at));
        let context = Arc::clone(&watching.process.context);
        watching.reports.look(&context, Instant(200_000));
        watching.process.send_events().await;
        assert_eq!(watching.note(), words);
        let said = watching.api.said();
        assert_eq!(said, ["POST event JobEnded"]);
        assert_eq!(watching.look(205).await, [""; 0], "it is said once");
    }
}

#[tokio::test]
async fn a_risk_ends_above_the_upper_threshold_only() {
    let mut watching = Watching::begin();
    watching.teach();
    watching.show(&job("report", due("100s")));
    assert_eq!(watching.look(0).await, ["POST event DeadlineAtRisk"]);
    // The deadline moves; PoCD is between the two thresholds, then above both.
    let pocd = |watching: &Watching| {
        let page = watching.page();
        let line = page
            .lines()
            .find(|line| line.starts_with("shed_job_pocd{"))
            .unwrap();
        line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()
    };
    watching.show(&job("report", due("130s")));
    assert_eq!(watching.look(0).await, [""; 0]);
    assert!(
        (0.9..0.95).contains(&pocd(&watching)),
        "{}",
        pocd(&watching)
    );
    watching.show(&job("report", due("10m")));
    assert_eq!(watching.look(0).await, ["POST event OnTrack"]);
    assert!(pocd(&watching) > 0.95);
}

#[tokio::test]
async fn what_is_unknown_is_said_once_with_how_it_becomes_known() {
    let mut watching = Watching::begin();
    watching.show(&job("report", due("10m")));
    let mut without_class = job("other", due("10m"));
    without_class["metadata"]["labels"] = Value::Null;
    watching.show(&without_class);
    watching.show(&job("none", Value::Null));
    watching.show(&job("history", due("history(p95)*1.5")));
    let mut first = watching.look(0).await;
    first.sort();
    let unknown = "POST event DurationsUnknown";
    assert_eq!(first, ["POST event DeadlineUnknown", unknown, unknown]);
    assert_eq!(watching.look(10).await, [""; 0]);
    assert!(!watching.page().contains("shed_job_pocd{"));
    watching.teach();
    assert_eq!(
        watching.look(20).await,
        [""; 0],
        "now it is known, and high"
    );
    let page = watching.page();
    assert!(page.contains("shed_job_pocd{"));
    // Three have the class, and one of them no deadline. The fourth has no class.
    assert_eq!(
        page.matches("shed_job_expected_completion_timestamp_seconds{")
            .count(),
        3
    );
    assert_eq!(
        page.matches("shed_job_deadline_timestamp_seconds{").count(),
        3
    );
}

#[tokio::test]
async fn a_wrong_annotation_is_reported_on_the_job() {
    let mut watching = Watching::begin();
    watching.show(&job("report", due("soon")));
    assert_eq!(watching.look(0).await, ["POST event InvalidAnnotation"]);
    assert_eq!(watching.look(5).await, [""; 0]);
    watching.show(&job("report", due("10 min")));
    // Another fault: the apiserver has one event for both.
    let second = watching.look(10).await;
    assert!(
        second.len() == 1 && second[0].starts_with("PATCH"),
        "{second:?}"
    );
    watching.show(&job("report", due("10m")));
    assert_eq!(watching.look(15).await, ["POST event DurationsUnknown"]);
}

#[tokio::test]
async fn an_end_counts_once_and_scores_the_predictions() {
    let mut watching = Watching::begin();
    watching.teach();
    let names = ["met", "missed", "failed"];
    for name in names {
        watching.show(&job(name, due("10m")));
    }
    watching.look(0).await;
    watching.show(&ended(
        job("met", due("10m")),
        "Complete",
        "1970-01-01T00:01:00Z",
    ));
    watching.show(&ended(
        job("missed", due("10m")),
        "Complete",
        "1970-01-01T00:10:01Z",
    ));
    watching.show(&ended(
        job("failed", due("10m")),
        "Failed",
        "1970-01-01T00:01:00Z",
    ));
    for second in [700, 705] {
        assert_eq!(watching.look(second).await, [""; 0]);
    }
    let page = watching.page();
    for outcome in names {
        let line = format!(
            r#"shed_watched_deadlines_total{{job_namespace="team",outcome="{outcome}"}} 1"#
        );
        assert!(page.contains(&line), "{line}\n{page}");
    }
    let scored = r#"shed_prediction_squared_error_count{passed="0",prediction="watched"} 3"#;
    assert!(page.contains(scored), "{page}");
    assert!(
        !page.contains("job_kind=\"WatchedJob\""),
        "their series are gone"
    );
    assert!(watching.stores().watch_only.all().is_empty() && watching.reports.jobs.is_empty());
}

#[tokio::test]
async fn nothing_is_left_of_a_namespace_that_is_no_longer_chosen() {
    let mut watching = Watching::begin();
    watching.show(&job("report", due("10m")));
    watching.look(0).await;
    assert_eq!(watching.reports.jobs.len(), 1);
    watching
        .stores()
        .show_namespaces(&[("team", LABEL_JOBS, "run")]);
    watching.look(5).await;
    let left = (watching.reports.jobs.len(), watching.reports.listed.len());
    assert_eq!(left, (0, 0));
    assert!(!watching.page().contains("job_kind=\"WatchedJob\""));
}

#[tokio::test]
async fn a_namespace_that_is_chosen_later_is_listed_once() {
    let mut watching = Watching::of(AdoptJobs::Managed, &[]);
    let report = job("report", due("10m"));
    watching.show(&report);
    watching.api.world.lock().batch = Some(serde_json::from_value(report).unwrap());
    watching.look(0).await;
    assert!(watching.reports.jobs.is_empty());
    watching
        .stores()
        .show_namespaces(&[("team", LABEL_JOBS, JOBS_WATCH)]);
    let context = Arc::clone(&watching.process.context);
    for _ in 0..2 {
        watching.reports.follow_choice(&context).await;
    }
    assert_eq!(watching.api.said(), ["LIST Jobs"]);
    assert_eq!(watching.stores().watch_only.all().len(), 1);
}

#[tokio::test]
async fn a_list_that_fails_is_tried_again() {
    let mut watching = Watching::begin();
    watching.api.refuse("LIST Jobs", 403, "Forbidden", "no");
    let context = Arc::clone(&watching.process.context);
    for _ in 0..2 {
        watching.reports.follow_choice(&context).await;
    }
    assert_eq!(watching.api.said(), ["LIST Jobs"; 2]);
}

#[tokio::test]
async fn a_choice_that_has_no_effect_is_reported_once() {
    for (mode, words) in [
        (AdoptJobs::All, "shed runs these Jobs"),
        (AdoptJobs::None, "shed sees no Jobs"),
    ] {
        let mut watching = Watching::of(mode, &[("team", LABEL_JOBS, JOBS_WATCH)]);
        let context = Arc::clone(&watching.process.context);
        for _ in 0..2 {
            watching.reports.follow_choice(&context).await;
        }
        watching.process.send_events().await;
        let event = watching.api.call("POST event").body;
        assert_eq!(event["regarding"]["kind"], "Namespace");
        assert!(event["note"].as_str().unwrap().contains(words), "{event}");
        assert_eq!(watching.api.said(), ["POST event UnknownLabelValue"]);
    }
}

/// 5 000 Jobs of ten namespaces are at risk at once.
#[tokio::test]
async fn five_thousand_jobs_at_risk_are_one_event_each() {
    let names: Vec<String> = (0..10).map(|number| format!("team-{number}")).collect();
    let chosen: Vec<_> = names
        .iter()
        .map(|name| (&**name, LABEL_JOBS, JOBS_WATCH))
        .collect();
    let mut watching = Watching::of(AdoptJobs::Managed, &chosen);
    for number in 0..5000 {
        let annotations =
            json!({"shed.dev/deadline": "90s", "shed.dev/expected-task-duration": "100s"});
        let mut job = job(&format!("job-{number}"), annotations);
        job["metadata"]["namespace"] = json!(names[number % names.len()]);
        watching.show(&job);
    }
    let context = Arc::clone(&watching.process.context);
    watching.reports.listed = names.iter().map(|name| Arc::from(&**name)).collect();
    let mut sent = Vec::new();
    while sent.len() < 5000 {
        watching.reports.look(&context, Instant(0));
        watching.process.send_events().await;
        let calls = watching.api.said();
        assert!(
            (1..=EVENTS_MAX_OF_ALL).contains(&calls.len()),
            "{}",
            calls.len()
        );
        sent.extend(calls);
    }
    assert!(sent.iter().all(|call| call == "POST event DeadlineAtRisk"));
    watching.reports.look(&context, Instant(1000));
    watching.process.send_events().await;
    assert_eq!(watching.api.said(), [""; 0]);
    let page = watching.page();
    assert!(page.contains("shed_watched_jobs_unfinished 5000"));
    assert!(
        page.contains(r#"shed_events_dropped_total{reason="queue_full"} 0"#),
        "{page}"
    );
    assert_eq!(page.matches("shed_job_pocd{").count(), 500);
    watching.stores().watch_only.retain(|_| false);
    watching.reports.look(&context, Instant(2000));
    assert!(watching.reports.jobs.is_empty());
    assert!(watching.page().contains("shed_watched_jobs_unfinished 0"));
}
