use http::{Request, Response};
use kube::Client;
use kube::client::Body;

use super::*;
use crate::adopt::AdoptJobs;
use crate::api::OnMiss;
use crate::cluster::Stores;
use crate::fixtures;
use crate::reconcile::companion_failures::Failures;
use crate::reconcile::mock::{Apiserver, Process, SLOW_NAMESPACE, WEBHOOK_TIME, slow_webhook};
use crate::validate::template_extras::TemplateExtras;
use parking_lot::Mutex;
use tokio::time::timeout;

/// An apiserver that holds one Job and refuses companions with this answer. It keeps the status
/// that shed writes to the Job.
fn refusing(code: u16, message: &'static str) -> (Client, Arc<Mutex<Job>>) {
    refusing_field("", code, message)
}

/// The same for a fault of this field.
fn refusing_field(
    field: &'static str,
    code: u16,
    message: &'static str,
) -> (Client, Arc<Mutex<Job>>) {
    let held = Arc::new(Mutex::new(fixtures::batch_job("completions: 2")));
    let job = Arc::clone(&held);
    let (service, mut handle) = tower_test::mock::pair::<Request<Body>, Response<Body>>();
    tokio::spawn(async move {
        while let Some((request, respond)) = handle.next_request().await {
            let (head, body) = request.into_parts();
            let body = body.collect_bytes().await.expect("body");
            let is_status = head.uri.path().ends_with("/jobs/pi/status");
            let is_job = is_status || head.uri.path().ends_with("/jobs/pi");
            if is_status {
                *job.lock() = serde_json::from_slice(&body).expect("Job");
            }
            let (code, answer) = match is_job {
                true => (200, json!(&*job.lock())),
                false if code == 201 => (code, serde_json::from_slice(&body).expect("object")),
                false => (
                    code,
                    json!({"kind": "Status", "apiVersion": "v1", "metadata": {},
                    "status": "Failure", "message": message, "reason": "Forbidden", "code": code,
                    "details": {"causes": [{"field": field}]}}),
                ),
            };
            let answer = Body::from(answer.to_string().into_bytes());
            respond.send_response(
                Response::builder()
                    .status(code)
                    .body(answer)
                    .expect("answer"),
            );
        }
    });
    (Client::new(service, "default"), held)
}

fn said(job: &Mutex<Job>) -> Option<(String, String)> {
    let status = job.lock().status.clone()?;
    let mut conditions = status.conditions.into_iter().flatten();
    let found = conditions.find(|one| one.type_ == crate::api::ADOPTION_REFUSED)?;
    Some((
        found.reason.unwrap_or_default(),
        found.message.unwrap_or_default(),
    ))
}

#[tokio::test]
async fn a_failed_companion_creation_is_reported_from_the_second_on() {
    let api = Apiserver::new(fixtures::job(""));
    let mut process = Process::start(&api);
    for (code, message) in [
        (
            403,
            "exceeded quota: few, requested: count/deadlinejobs.shed.dev=1",
        ),
        (500, "failed calling webhook: no endpoints available"),
    ] {
        let (client, job) = refusing(code, message);
        let context = Arc::get_mut(&mut process.context).expect("nobody else has it");
        (context.client, context.companion_failures) = (client, Failures::default());
        let held = job.lock().clone();
        let wanted = translate::companion(&held).unwrap();
        let mut waits = Vec::new();
        for count in 1..8 {
            let action = create(&process.context, &held, &wanted).await.unwrap();
            waits.push(action);
            let reported = said(&job);
            assert_eq!(reported.is_some(), count > 1, "{reported:?}");
        }
        let seconds = [2, 4, 8, 16, 32, 60, 60];
        assert_eq!(
            waits,
            seconds.map(|wait| Wake::requeue(Duration::from_secs(wait)))
        );
        let (reason, words) = said(&job).unwrap();
        assert_eq!(reason, "CompanionCreationFailed");
        assert!(words.ends_with(message), "{words}");
    }
}

#[tokio::test]
async fn what_the_schema_refuses_waits_for_a_change_of_the_job() {
    let api = Apiserver::new(fixtures::job(""));
    let mut process = Process::start(&api);
    let message =
        "DeadlineJob.shed.dev \"pi-1\" is invalid: spec.progress.periodSeconds: Invalid value: 0";
    for (field, expected) in [
        ("spec.progress.periodSeconds", Wake::await_change()),
        // A policy denies it, which may change without the Job.
        ("", Wake::requeue(ERROR_WAIT)),
    ] {
        let (client, job) = refusing_field(field, 422, message);
        let context = Arc::get_mut(&mut process.context).expect("the only owner");
        (context.client, context.companion_failures) = (client, Failures::default());
        let held = job.lock().clone();
        let wanted = translate::companion(&held).unwrap();
        let created = create(&process.context, &held, &wanted).await.unwrap();
        assert_eq!(created, expected);
        let reported = said(&job);
        assert_eq!(reported.is_some(), !field.is_empty());
        if let Some((reason, words)) = reported {
            assert_eq!(reason, "InvalidAnnotation");
            assert!(
                words.contains("shed.dev/progress: Invalid value: 0"),
                "{words}"
            );
        }
    }
}

/// The Job with one annotation more.
fn annotate(job: &Job, name: &str, value: &str) -> Job {
    let mut job = job.clone();
    let annotations = job.metadata.annotations.get_or_insert_default();
    annotations.insert(format!("shed.dev/{name}"), value.to_owned());
    job
}

#[tokio::test]
async fn adoption_is_one_event_of_a_job_with_a_deadline() {
    for (answer, deadline, events) in [
        (201, "10m", vec!["POST event Adopted"]),
        (201, "", vec![]),
        // Another process has created it.
        (409, "10m", vec![]),
    ] {
        let api = Apiserver::new(fixtures::job(""));
        let mut process = Process::start(&api);
        let (client, held) = refusing(answer, "it exists");
        let plain = held.lock().clone();
        let job = match deadline {
            "" => plain,
            deadline => annotate(&plain, "deadline", deadline),
        };
        *held.lock() = job.clone();
        let wanted = translate::companion(&job).unwrap();
        let context = Arc::get_mut(&mut process.context).expect("the only owner");
        context.client = client;
        let created = create(&process.context, &job, &wanted).await;
        assert_eq!(created.unwrap(), Wake::await_change());
        process.send_events().await;
        assert_eq!(api.said(), events);
    }
}

#[tokio::test]
async fn a_running_job_keeps_what_happens_at_its_deadline() {
    let api = Apiserver::new(fixtures::job(""));
    let mut process = Process::start(&api);
    let (client, job) = refusing(500, "no patches today");
    Arc::get_mut(&mut process.context)
        .expect("the only owner")
        .client = client;
    let job = annotate(&job.lock(), "deadline", "10m");
    let mut found = fixtures::companion(&job);
    found.spec.on_miss = OnMiss::Fail;
    let wanted = translate::companion(&job).unwrap();
    assert_eq!(wanted.spec.on_miss, OnMiss::Continue);
    let kept = change(&process.context, &job, &found, wanted).await;
    assert_eq!(kept.unwrap(), Wake::await_change(), "no call");
    let job = annotate(&job, "on-miss", "Continue");
    let wanted = translate::companion(&job).unwrap();
    let changed = change(&process.context, &job, &found, wanted).await;
    assert!(changed.is_err(), "the patch was sent");
}

#[tokio::test]
async fn a_suspended_companion_is_read_when_an_annotation_changes() {
    let job = annotate(&fixtures::batch_job("suspend: true"), "deadline", "10m");
    let mut found = fixtures::companion(&job);
    // Fixed when the Job was adopted.
    found.spec.on_miss = OnMiss::Fail;
    found.spec.completions = 7;
    let api = Apiserver::new(found.clone());
    let process = Process::start(&api);
    let skeleton = Skeleton {
        metadata: found.metadata.clone(),
        is_companion: true,
        version: Default::default(),
        rest: Rest::Suspended {
            due: None,
            settings: Some(CompanionSettings::of(&found.spec)),
        },
    };
    let wanted = |job: &Job| translate::companion(job).unwrap();
    let same = change_at_rest(&process.context, &job, &skeleton, wanted(&job)).await;
    assert_eq!(same.unwrap(), Wake::await_change());
    assert!(api.said().is_empty());
    for (name, value) in [("deadline", "20m"), ("on-miss", "Continue")] {
        let job = annotate(&job, name, value);
        let changed = change_at_rest(&process.context, &job, &skeleton, wanted(&job)).await;
        let said = api.said();
        assert_eq!(
            said.first().map(String::as_str),
            Some("GET job"),
            "{said:?}"
        );
        assert!(
            said.iter().any(|call| call.starts_with("PATCH")),
            "{said:?} {changed:?}"
        );
    }
}

#[tokio::test]
async fn a_job_whose_pods_are_one_unit_gets_no_companion() {
    let api = Apiserver::new(fixtures::job(""));
    let (client, job) = refusing(500, "no companion is wanted");
    let held = job.lock().clone();
    let stores = Stores::for_tests(vec![], vec![], &[]);
    let stores = stores.adopting(AdoptJobs::All, vec![held.clone()]);
    let mut extras = TemplateExtras::default();
    extras.grouping = Some("scheduling.resourceClaims");
    let jobs = stores.jobs.batch().expect("Jobs");
    jobs.template_extras.note(&held.metadata, extras);
    let mut process = Process::with_stores(&api, stores);
    let context = Arc::get_mut(&mut process.context).expect("the only owner");
    context.client = client;
    let looked = look(Arc::new(held), Arc::clone(&process.context)).await;
    assert_eq!(looked.unwrap(), Wake::await_change());
    let (reason, words) = said(&job).expect("it is reported");
    assert_eq!(reason, "GangScheduling");
    assert!(
        words.starts_with("spec.scheduling.resourceClaims: "),
        "{words}"
    );
}

/// A Job of this name and namespace.
fn job_in(namespace: &str, name: &str) -> Job {
    let mut job = fixtures::batch_job("completions: 2");
    job.metadata.namespace = Some(namespace.to_owned());
    job.metadata.name = Some(name.to_owned());
    job.metadata.uid = Some(format!("{namespace}-{name}"));
    job
}

#[tokio::test(start_paused = true)]
async fn companions_of_a_slow_namespace_delay_no_other() {
    let slow = (0..40).map(|number| job_in(SLOW_NAMESPACE, &format!("pi-{number}")));
    let jobs: Vec<Job> = slow.chain([job_in("other", "pi")]).collect();
    let path = |job: &Job| {
        let (namespace, name) = (&job.metadata.namespace, &job.metadata.name);
        let (namespace, name) = (namespace.as_deref().unwrap(), name.as_deref().unwrap());
        format!("/apis/batch/v1/namespaces/{namespace}/jobs/{name}")
    };
    let (client, created) = slow_webhook(jobs.iter().map(|job| (path(job), json!(job))).collect());
    let stores = Stores::for_tests(vec![], vec![], &[]);
    let stores = stores.adopting(AdoptJobs::All, jobs.clone());
    let api = Apiserver::new(fixtures::job(""));
    let mut process = Process::with_stores(&api, stores);
    let context = Arc::get_mut(&mut process.context).expect("the only owner");
    context.client = client;
    let (touched, named) = mpsc::unbounded_channel();
    for job in &jobs {
        touched.send(ObjectRef::from_obj(job)).unwrap();
    }
    let mut looks = std::pin::pin!(run(Arc::clone(&process.context), named));
    assert!(timeout(WEBHOOK_TIME / 2, &mut looks).await.is_err());
    assert_eq!(*created.lock(), ["other"]);
    assert!(timeout(WEBHOOK_TIME * 4, &mut looks).await.is_err());
    assert_eq!(created.lock().len(), jobs.len());
}
