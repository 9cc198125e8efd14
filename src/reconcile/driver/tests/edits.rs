//! A specification that an edit makes invalid after the job has begun.

use serde_json::json;

use super::refusals::true_for;
use super::*;
use crate::adopt::AdoptJobs;
use crate::api::reason;
use crate::cluster::{Stores, WatchedJob};
use crate::planner::observation;

/// The zone of the deadline becomes one that does not exist.
fn misspell(api: &Apiserver) {
    edit(api, |job| {
        let clock = json!({"clock": {"time": "06:00", "timeZone": "Europe/Zuerich"}});
        job.spec.deadline = Some(serde_json::from_value(clock).unwrap());
    });
}

/// Reconciles until nothing is left to do.
async fn settle(api: &Apiserver, process: &Process) {
    for _ in 0..4 {
        process.look(api).await.unwrap();
    }
}

fn phase(api: &Apiserver) -> String {
    let status = api.job().status.clone().unwrap();
    status.phase.unwrap()
}

fn message(api: &Apiserver, type_: &str) -> String {
    let status = api.job().status.clone().unwrap();
    let mut conditions = status.conditions.into_iter();
    conditions.find(|one| one.type_ == type_).unwrap().message
}

fn finalizers(api: &Apiserver) -> usize {
    let of = |pod: &k8s_openapi::api::core::v1::Pod| {
        pod.metadata.finalizers.as_ref().map_or(0, Vec::len)
    };
    api.pods().iter().map(of).sum()
}

#[tokio::test]
async fn a_running_job_goes_on_by_its_last_valid_specification() {
    let (api, process) = two_running("deadline: {within: 1h}").await;
    let deadline = api.job().status.as_ref().unwrap().deadline.clone();
    misspell(&api);
    process.look(&api).await.unwrap();
    assert_eq!(api.said(), ["PUT job status", "POST event InvalidSpec"]);
    assert_eq!(
        api.condition(api::SPEC_INVALID),
        true_for(reason::INVALID_SPEC)
    );
    let message = message(&api, api::SPEC_INVALID);
    assert!(
        message.starts_with("spec.deadline.clock.timeZone: unknown time zone `Europe/Zuerich`"),
        "{message}"
    );
    assert!(message.contains("last valid specification"), "{message}");
    assert_eq!(
        (
            api.condition(api::FAILED),
            api.condition(api::FAILURE_TARGET)
        ),
        (None, None)
    );
    assert_eq!(phase(&api), "Running");
    let status = api.job().status.clone().unwrap();
    assert_eq!(
        (status.observed_generation, status.deadline),
        (Some(2), deadline)
    );
    // It still gets clones, and ends as any other.
    process.plan(&api.job(), vec![launch(0, AttemptKind::Clone)]);
    process.look(&api).await.unwrap();
    assert!(api.said().contains(&"POST pod 0-1".to_owned()));
    api.exit((0, 0), 0, clock::now());
    api.exit((1, 0), 0, clock::now());
    settle(&api, &process).await;
    api.kill_deleted();
    settle(&api, &process).await;
    assert_eq!((phase(&api), finalizers(&api)), ("Complete".to_owned(), 0));
    assert_eq!(api.condition(api::FAILED), None);
}

#[tokio::test]
async fn the_condition_goes_when_the_field_is_corrected() {
    let (api, process) = two_running("deadline: {within: 1h}").await;
    misspell(&api);
    process.look(&api).await.unwrap();
    api.said();
    process.look(&api).await.unwrap();
    assert_eq!(api.said(), WAITS, "reported once");
    edit(&api, |job| {
        job.spec.deadline = fixtures::job("deadline: {within: 2h}").spec.deadline;
    });
    process.look(&api).await.unwrap();
    assert_eq!(api.said(), ["PUT job status", "POST event SpecCorrected"]);
    let corrected = Some(("False".to_owned(), reason::SPEC_CORRECTED.to_owned()));
    assert_eq!(api.condition(api::SPEC_INVALID), corrected);
}

#[tokio::test]
async fn a_suspension_applies_though_another_field_is_invalid() {
    let (api, process) = two_running("deadline: {within: 1h}").await;
    misspell(&api);
    edit(&api, |job| job.spec.suspend = true);
    process.look(&api).await.unwrap();
    let deletes = api
        .said()
        .into_iter()
        .filter(|call| call.starts_with("DELETE pod"));
    assert_eq!(deletes.count(), 2);
    assert_eq!(phase(&api), "Suspended");
}

#[tokio::test]
async fn a_class_that_is_taken_away_does_not_fail_a_job() {
    let history = "deadline: {history: {quantile: max, factor: '2'}}";
    let mut job = fixtures::job_of_age(0, &format!("{{completions: 1, {history}}}"));
    job.metadata.labels = Some([(api::LABEL_CLASS.to_owned(), "nightly".to_owned())].into());
    let api = Apiserver::new(job);
    let process = Process::start(&api);
    process.plan(&api.job(), originals(1));
    process.look(&api).await.unwrap();
    api.run((0, 0));
    edit(&api, |job| job.metadata.labels = None);
    process.look(&api).await.unwrap();
    assert_eq!(
        api.condition(api::SPEC_INVALID),
        true_for(reason::INVALID_SPEC)
    );
    assert_eq!(api.condition(api::FAILED), None);
    api.exit((0, 0), 0, clock::now());
    settle(&api, &process).await;
    assert_eq!(phase(&api), "Complete");
}

#[tokio::test]
async fn a_leader_without_a_valid_specification_launches_nothing() {
    let (api, before) = two_running("deadline: {within: 1h}, completions: 3").await;
    let deadline = api.job().status.as_ref().unwrap().deadline.clone();
    // The last launch is recorded, and its pod is not created.
    api.refuse("POST pod", 500, "InternalError", "not now");
    before.plan(&api.job(), vec![launch(2, AttemptKind::Original)]);
    before.look(&api).await.unwrap_err();
    api.script(|_| Fate::Served);
    misspell(&api);
    api.said();
    let next = Process::start(&api);
    assert!(
        observation::view(&next.context.shared)
            .snapshot
            .jobs
            .iter()
            .all(|job| { &*job.key.0 != api.job().metadata.uid.as_deref().unwrap() })
    );
    next.plan(&api.job(), vec![launch(0, AttemptKind::Clone)]);
    next.look(&api).await.unwrap();
    assert_eq!(
        api.said(),
        ["PUT job status", "POST event ValidSpecUnknown"]
    );
    assert_eq!(
        api.condition(api::SPEC_INVALID),
        true_for(reason::VALID_SPEC_UNKNOWN)
    );
    assert_eq!(api.condition(api::FAILED), None);
    assert_eq!(api.job().status.as_ref().unwrap().deadline, deadline);
    // What runs ends by the ledger.
    api.exit((0, 0), 0, clock::now());
    api.exit((1, 0), 0, clock::now());
    settle(&api, &next).await;
    assert_eq!(api.job().status.as_ref().unwrap().succeeded, 2);
    assert_eq!(finalizers(&api), 0);
    let creates = api
        .said()
        .into_iter()
        .filter(|call| call.starts_with("POST pod"));
    assert_eq!(creates.count(), 0);
    // It goes on once it is corrected.
    edit(&api, |job| {
        job.spec.deadline = fixtures::job("deadline: {within: 1h}").spec.deadline;
    });
    next.look(&api).await.unwrap();
    assert!(api.said().contains(&"POST pod 2-0".to_owned()));
}

#[tokio::test]
async fn the_recorded_deadline_stops_a_job_of_unknown_specification() {
    let (api, _) = two_running("onMiss: Fail, deadline: {within: 70s}").await;
    misspell(&api);
    let next = Process::start(&api);
    next.context
        .clock
        .skip_for_tests(shed_core::time::Span::from_seconds(60));
    settle(&api, &next).await;
    assert_eq!(
        api.condition(api::FAILURE_TARGET),
        true_for(reason::DEADLINE_MISSED)
    );
    let deletes = api
        .said()
        .into_iter()
        .filter(|call| call.starts_with("DELETE pod"));
    assert!(deletes.count() >= 2);
}

#[tokio::test]
async fn a_finished_job_is_left_alone() {
    let (api, process) = two_running("deadline: {within: 1h}, ttlSecondsAfterFinished: 3600").await;
    api.exit((0, 0), 0, clock::now());
    api.exit((1, 0), 0, clock::now());
    settle(&api, &process).await;
    assert_eq!(phase(&api), "Complete");
    let before = api.job().status.clone().unwrap();
    misspell(&api);
    api.said();
    for process in [process, Process::start(&api)] {
        settle(&api, &process).await;
        let after = api.job().status.clone().unwrap();
        let unchanged = api::DeadlineJobStatus {
            observed_generation: before.observed_generation,
            ledger: before.ledger.clone(),
            record: before.record.clone(),
            ..after.clone()
        };
        assert_eq!(unchanged, before);
        assert!(api.said().iter().all(|call| call == "PUT job status"));
    }
    // It rests, and is deleted at the end of its time to live.
    let job = Arc::unwrap_or_clone(api.job());
    let kept = WatchedJob::new(job, 0);
    let crate::cluster::Rest::Finished(finished) = &kept.skeleton().expect("a skeleton").rest
    else {
        panic!("{kept:?}");
    };
    assert!(finished.expiry.is_some());
}

#[tokio::test]
async fn a_form_of_the_deadline_of_a_newer_version_fails_no_job() {
    let (api, _) = two_running("deadline: {within: 1h}").await;
    // As after a roll-back: this version knows none of the deadline's fields.
    edit(&api, |job| {
        job.spec.deadline = Some(crate::api::Deadline::default())
    });
    let next = Process::start(&api);
    next.look(&api).await.unwrap();
    assert_eq!(
        api.condition(api::SPEC_INVALID),
        true_for(reason::VALID_SPEC_UNKNOWN)
    );
    assert_eq!(api.condition(api::FAILED), None);
}

/// An operator that finds this Job and its companion, which runs one attempt.
async fn adopting(annotation: (&str, &str)) -> (Apiserver, Process) {
    let template = "{metadata: {labels: {batch.kubernetes.io/controller-uid: job-uid}}, \
                    spec: {restartPolicy: Never, containers: [{name: task, image: task}]}}";
    let mut batch = fixtures::batch_job(&format!("completions: 1, template: {template}"));
    let mut companion = fixtures::companion(&batch);
    companion.metadata.generation = Some(1);
    let api = Apiserver::new(companion);
    let stores = |batch| {
        let stores = Stores::for_tests(vec![Arc::unwrap_or_clone(api.job())], api.pods(), &[]);
        stores.adopting(AdoptJobs::All, vec![batch])
    };
    let before = Process::with_stores(&api, stores(batch.clone()));
    before.plan(&api.job(), originals(1));
    before.look(&api).await.unwrap();
    let (name, value) = annotation;
    batch.metadata.annotations = Some([(name.to_owned(), value.to_owned())].into());
    api.said();
    let process = Process::with_stores(&api, stores(batch));
    (api, process)
}

#[tokio::test]
async fn a_running_job_with_an_invalid_annotation_goes_on() {
    for (annotation, words) in [
        (
            ("shed.dev/deadline", "soon"),
            "annotation shed.dev/deadline: invalid deadline `soon`",
        ),
        (
            ("shed.dev/idempotency", "None"),
            "annotation shed.dev/idempotency: cannot be changed",
        ),
    ] {
        let (api, process) = adopting(annotation).await;
        process.look(&api).await.unwrap();
        assert_eq!(
            api.condition(api::SPEC_INVALID),
            true_for(reason::INVALID_ANNOTATION)
        );
        let message = message(&api, api::SPEC_INVALID);
        assert!(message.starts_with(words), "{message}");
        let shown = api.call("PUT Job status").body["status"]["conditions"].to_string();
        assert!(
            shown.contains("SpecInvalid") && !shown.contains("AdoptionRefused"),
            "{shown}"
        );
        super::ends::succeed(&api);
        api.said();
        settle(&api, &process).await;
        assert_eq!(phase(&api), "Complete");
        let released = api
            .said()
            .into_iter()
            .filter(|call| call.starts_with("PATCH pod"));
        assert_eq!(released.count(), 1);
    }
}
