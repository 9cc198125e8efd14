//! Jobs that shed only watches: the built-in controller runs them, and they have no companion. Their figures are
//! computed here by the operator's estimator, from the Jobs that the user may read.

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::ListParams;
use shed::adopt::{AdoptJobs, translate};
use shed::api::{JOBS_WATCH, LABEL_JOBS, Pocd};
use shed::clock;
use shed::cluster::watch_only::WatchOnlyJob;
use shed::completion_history::CompletionHistory;
use shed_core::decide::feasibility::TARGET_DEFAULT;
use shed_core::estimate::whole_run::RunEstimate;
use shed_core::time::Span;

use crate::access;
use crate::connection::Session;
use crate::jobs::PAGE;
use crate::model::{JobSpec, JobStatus, JobView};
use crate::{record, words};

/// The Job, if shed only watches it. Without the right to read the Namespace it is not known to be watched.
pub async fn view_of(session: &Session, job: &Job) -> anyhow::Result<Option<JobView>> {
    if !AdoptJobs::Managed.leaves(job) || !is_chosen(session).await {
        return Ok(None);
    }
    let earlier = list(session).await?;
    Ok(view(job, &earlier, Timestamp::now()))
}

/// The unfinished Jobs of the namespace, if shed only watches them.
pub async fn unfinished(session: &Session) -> anyhow::Result<Vec<JobView>> {
    if !is_chosen(session).await {
        return Ok(Vec::new());
    }
    let (jobs, now) = (list(session).await?, Timestamp::now());
    let open = jobs.iter().filter(|job| AdoptJobs::Managed.leaves(job));
    let views = open.filter_map(|job| view(job, &jobs, now));
    Ok(views.filter(|view| !view.is_finished()).collect())
}

async fn is_chosen(session: &Session) -> bool {
    let namespaces: Api<Namespace> = Api::all(session.client.clone());
    let read = namespaces.get_metadata_opt(&session.namespace).await;
    let labels = read.ok().flatten().and_then(|read| read.metadata.labels);
    labels.is_some_and(|labels| labels.get(LABEL_JOBS).is_some_and(|to| to == JOBS_WATCH))
}

pub async fn list(session: &Session) -> anyhow::Result<Vec<Job>> {
    let jobs: Api<Job> = Api::namespaced(session.client.clone(), &session.namespace);
    access::list(&jobs, &ListParams::default().limit(PAGE), usize::MAX).await
}

/// What is known of a Job, with the Jobs of its namespace.
pub fn view(job: &Job, all: &[Job], now: Timestamp) -> Option<JobView> {
    let watched = WatchOnlyJob::of(job)?;
    let (spec, status) = (job.spec.as_ref()?, job.status.clone().unwrap_or_default());
    let history = history(all);
    let class = watched.history_class();
    let runs = class.map_or_else(Vec::new, |class| history.seconds(&class));
    let (deadline, now) = (watched.deadline(&history), clock::instant(&now.into()));
    let estimate = watched.estimate(&runs, deadline, now);
    let estimate = estimate.filter(|_| watched.end.is_none());
    let expected = estimate.map(|it| now.plus(Span::from_seconds_f64(it.remaining)));
    let pocd = estimate.and_then(|estimate| estimate.pocd);
    Some(JobView {
        namespace: watched.namespace.to_string(),
        name: watched.name.to_string(),
        uid: watched.uid.to_string(),
        kind: "Job",
        class: watched.class.as_deref().map(str::to_owned),
        watched: Some(note(&watched, runs.len(), estimate)),
        spec: JobSpec {
            completions: translate::tasks(spec),
            parallelism: spec.parallelism,
            suspend: spec.suspend.unwrap_or(false),
            ..JobSpec::default()
        },
        status: JobStatus {
            phase: Some(phase(&watched).to_owned()),
            deadline: deadline.map(clock::time),
            start_time: status.start_time,
            completion_time: watched.end.map(|end| clock::time(end.at)),
            pocd: pocd.map(|pocd| Pocd::nearest(pocd).to_string()),
            estimated_completion_time: expected.map(clock::time),
            active: status.active.unwrap_or(0),
            terminating: status.terminating.unwrap_or(0),
            succeeded: status.succeeded.unwrap_or(0),
            ..JobStatus::default()
        },
        ..JobView::default()
    })
}

/// How long the Jobs of each class took.
fn history(jobs: &[Job]) -> CompletionHistory {
    let history = CompletionHistory::default();
    for job in jobs.iter().filter_map(WatchOnlyJob::of) {
        if let Some((class, completion)) = job.completion() {
            history.see(&job.uid, &class, completion);
        }
    }
    history
}

fn phase(job: &WatchOnlyJob) -> &'static str {
    match job.end {
        Some(end) if end.is_complete => "Complete",
        Some(_) => "Failed",
        None if job.run.running > 0 => "Running",
        None => "Pending",
    }
}

/// The risk, who runs the Job, and what the estimate is from, in sentences.
fn note(job: &WatchOnlyJob, runs: usize, estimate: Option<RunEstimate>) -> String {
    let mut sentences = vec![format!(
        "shed only watches this Job, because the namespace has the label {LABEL_JOBS}: {JOBS_WATCH}. The built-in \
         controller runs it."
    )];
    let target = job.terms.as_ref().ok().and_then(|terms| terms.target);
    let target = target.map_or(TARGET_DEFAULT, |target| target.min(TARGET_DEFAULT));
    let pocd = estimate.and_then(|estimate| estimate.pocd);
    if pocd.is_some_and(|pocd| pocd < target) {
        let risk = format!("The deadline is at risk, because PoCD is below {target}.");
        sentences.insert(0, risk);
    }
    let runs = words::count(runs, "completed Job", "completed Jobs");
    sentences.extend(match (&job.class, estimate, job.end) {
        (_, None, Some(_)) => None,
        (Some(class), Some(_), _) => Some(format!(
            "The estimate is from {runs} of class {class} and from shed.dev/expected-task-duration, if it is set."
        )),
        (None, Some(_), _) => {
            Some("The estimate is from shed.dev/expected-task-duration.".to_owned())
        }
        (_, None, None) => Some(
            "The estimate becomes known with the first completed Job of its class, or with \
             shed.dev/expected-task-duration."
                .to_owned(),
        ),
    });
    let fault = job.terms.as_ref().err();
    sentences.extend(fault.map(|fault| record::sentence(fault)));
    sentences.join(" ")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn job(name: &str, annotations: Value, status: Value) -> Job {
        let owner = json!([{"apiVersion": "batch/v1", "kind": "CronJob", "name": "nightly", "uid": "c", "controller": true}]);
        let metadata = json!({"name": name, "namespace": "team-a", "uid": name, "annotations": annotations,
            "creationTimestamp": "2030-01-31T07:00:00Z", "ownerReferences": owner});
        let template = json!({"spec": {"containers": []}});
        let spec = json!({"completions": 4, "parallelism": 4, "template": template});
        serde_json::from_value(json!({"metadata": metadata, "spec": spec, "status": status}))
            .unwrap()
    }

    fn completed(name: &str, minutes: u32) -> Job {
        let at = format!("2030-01-30T07:{minutes:02}:00Z");
        let condition =
            json!({"type": "Complete", "status": "True", "lastTransitionTime": at.clone()});
        let status = json!({"startTime": "2030-01-30T07:00:00Z", "completionTime": at, "conditions": [condition]});
        job(name, json!({}), status)
    }

    #[test]
    fn a_watched_job_has_an_estimate_from_earlier_jobs_of_its_class() {
        let now = "2030-01-31T07:10:00Z".parse().unwrap();
        let status = json!({"startTime": "2030-01-31T07:00:00Z", "active": 4});
        let running = job(
            "nightly-3",
            json!({"shed.dev/deadline": "1h"}),
            status.clone(),
        );
        let alone = view(&running, &[], now).unwrap();
        assert_eq!((alone.pocd(), alone.end()), (None, None));
        assert!(alone.deadline().is_some());
        let earlier = [completed("nightly-1", 20), completed("nightly-2", 22)];
        let known = view(&running, &earlier, now).unwrap();
        assert_eq!((known.kind, known.phase()), ("Job", "Running"));
        assert!(known.pocd().unwrap().value() > 0.8, "{known:?}");
        assert!(known.slack().unwrap() > 0, "{known:?}");
        let note = known.watched.unwrap();
        assert!(
            note.contains("from 2 completed Jobs of class nightly "),
            "{note}"
        );
        assert!(!note.contains("at risk"), "{note}");
        let late = "2030-01-31T07:59:50Z".parse().unwrap();
        let note = view(&running, &earlier, late).unwrap().watched.unwrap();
        assert!(
            note.starts_with("The deadline is at risk, because PoCD is below 0.9."),
            "{note}"
        );
        let mistyped = job("nightly-4", json!({"shed.dev/deadlin": "1h"}), status);
        let note = view(&mistyped, &[], now).unwrap().watched.unwrap();
        assert!(
            note.contains("nnotation shed.dev/deadlin: is unknown"),
            "{note}"
        );
    }

    #[test]
    fn an_ended_job_has_its_end_and_no_estimate() {
        let now = "2030-01-31T07:10:00Z".parse().unwrap();
        let ended = view(&completed("nightly-1", 20), &[], now).unwrap();
        assert!(ended.is_finished());
        assert_eq!((ended.pocd(), ended.phase()), (None, "Complete"));
        assert_eq!(ended.end().unwrap().to_string(), "2030-01-30T07:20:00Z");
    }
}
