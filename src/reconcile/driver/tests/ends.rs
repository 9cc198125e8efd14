//! Attempts end, jobs end.

use serde_json::json;

use super::*;
use crate::cluster::Stores;

fn uid_of(api: &Apiserver, id: (u32, u32)) -> String {
    let name = pod_name(&api.job(), id);
    let world = api.world.lock();
    world.pods[&name].metadata.uid.clone().unwrap()
}

#[tokio::test]
async fn a_winner_and_the_stop_of_the_loser_are_one_write() {
    let (api, process) = race().await;
    api.exit((0, 1), 0, clock::now());
    process.look(&api).await.unwrap();
    let ledger = ledger(&api.call("PUT job").body);
    assert_eq!(ledger.done.to_string(), "0");
    assert_eq!(ledger.tasks[&0].winner, Some(1));
    assert_eq!(ledger.tasks[&0].attempts[0].kill, Some(KillKind::Settle));
    let delete = api.call("DELETE pod 0-0").body;
    assert_eq!(delete["preconditions"]["uid"], uid_of(&api, (0, 0)));
    let patch = api.call("PATCH pod 0-1").body;
    assert_eq!(patch["metadata"]["uid"], uid_of(&api, (0, 1)));
    assert_eq!(
        api.said(),
        [
            "PUT job status",
            "DELETE pod 0-0",
            "PATCH pod 0-1",
            "POST event CloneWon"
        ]
    );
}

#[tokio::test]
async fn a_pod_that_is_gone_or_replaced_needs_no_delete_or_release() {
    // A conflict alone does not prove a replaced pod, so the process reads it.
    for (code, reason, calls) in [(404, "NotFound", 4), (409, "Conflict", 6)] {
        let (api, process) = race().await;
        api.exit((0, 1), 0, clock::now());
        api.script(move |call| match &call.words {
            words if words.starts_with("GET pod") => Fate::Refused(404, "NotFound", "gone"),
            words if words.contains(" pod ") => Fate::Refused(code, reason, "not this one"),
            _ => Fate::Served,
        });
        process.look(&api).await.unwrap();
        assert_eq!(api.said().len(), calls);
    }
}

#[tokio::test]
async fn a_delete_that_fails_is_repeated_without_another_record() {
    let (api, process) = race().await;
    api.exit((0, 1), 0, clock::now());
    api.refuse("DELETE pod", 500, "InternalError", "etcd is away");
    let error = process.look(&api).await.unwrap_err();
    assert!(matches!(error, Error::Delete(_)), "{error}");
    api.said();
    api.script(|_| Fate::Served);
    process.look(&api).await.unwrap();
    assert_eq!(
        api.said(),
        ["DELETE pod 0-0"],
        "the winner was let go before"
    );
}

#[tokio::test]
async fn a_job_is_complete_once_its_losers_are_gone() {
    let (api, process) = race().await;
    api.exit((0, 1), 0, clock::now());
    process.look(&api).await.unwrap();
    assert_eq!(api.condition(api::COMPLETE), None, "the loser still ends");
    api.kill_deleted();
    api.said();
    process.look(&api).await.unwrap();
    assert_eq!(
        api.said(),
        ["PUT job status", "PATCH pod 0-0", "POST event Completed"]
    );
    assert_eq!(api.condition(api::COMPLETE).unwrap().0, "True");
    for _ in 0..2 {
        process.look(&api).await.unwrap();
    }
    assert_eq!(api.said(), WAITS);
}

/// The only pod, which is named as those of a Job, ends with 0.
pub(super) fn succeed(api: &Apiserver) {
    let at = clock::time(clock::now());
    let ended = json!({"exitCode": 0, "startedAt": at, "finishedAt": at});
    let status = json!({"phase": "Succeeded", "containerStatuses": [{"name": "task", "ready": false,
        "restartCount": 0, "image": "i", "imageID": "i", "state": {"terminated": ended}}]});
    let mut world = api.world.lock();
    let pod = world.pods.values_mut().next().expect("a pod");
    pod.status = serde_json::from_value(status).expect("status");
    let spec = pod.spec.as_mut().expect("a template");
    spec.node_name = Some("node-1".to_owned());
}

#[tokio::test]
async fn an_adopted_job_is_complete_after_its_last_pod_is_let_go() {
    // The apiserver puts the label of the selector on the template.
    let template = "{metadata: {labels: {batch.kubernetes.io/controller-uid: job-uid}}, \
                    spec: {restartPolicy: Never, containers: [{name: task, image: task}]}}";
    let batch = fixtures::batch_job(&format!("completions: 1, template: {template}"));
    let api = Apiserver::new(fixtures::companion(&batch));
    let stores = Stores::for_tests(vec![Arc::unwrap_or_clone(api.job())], vec![], &[]);
    let stores = stores.adopting(crate::adopt::AdoptJobs::All, vec![batch]);
    let process = Process::with_stores(&api, stores);
    process.plan(&api.job(), originals(1));
    process.look(&api).await.unwrap();
    assert!(
        api.said().iter().any(|said| said == "PUT Job status"),
        "its start"
    );
    succeed(&api);
    api.refuse("PATCH pod", 500, "InternalError", "not now");
    let error = process.look(&api).await.unwrap_err();
    assert!(matches!(error, Error::Release(_)), "{error}");
    let said = api.said();
    assert!(
        !said.iter().any(|said| said == "PUT Job status"),
        "{said:?}"
    );
    api.script(|_| Fate::Served);
    process.look(&api).await.unwrap();
    let written = api.call("PUT Job status").body;
    assert_eq!(written["status"]["succeeded"], 1);
    let said = api.said();
    assert_eq!(said[0], "GET job", "the ledger is not written again");
    assert!(said[1].starts_with("PATCH pod"), "{said:?}");
    assert_eq!(said[2..], ["PUT Job status"]);
}

#[tokio::test]
async fn a_failure_is_counted_before_its_pod_is_let_go() {
    let (api, process) = two_running("").await;
    api.exit((0, 0), 3, clock::now());
    process.look(&api).await.unwrap();
    assert_eq!(api.said(), ["PUT job status", "PATCH pod 0-0"]);
    assert_eq!(api.job().status.as_ref().unwrap().attempts.failed, 1);
}

/// Its message.
fn message(api: &Apiserver, type_: &str) -> String {
    let status = api.job().status.clone().unwrap();
    let mut conditions = status.conditions.into_iter();
    conditions.find(|one| one.type_ == type_).unwrap().message
}

const IN_PLACE: &str = "backoffLimit: 2, template: {spec: {restartPolicy: OnFailure, \
                        containers: [{name: task, image: task}]}}";

#[tokio::test]
async fn a_crash_loop_is_reported_while_it_happens() {
    let (api, process) = two_running(IN_PLACE).await;
    api.crash((0, 0), 1);
    process.look(&api).await.unwrap();
    let reported = |status: &str, reason: &str| Some((status.to_owned(), reason.to_owned()));
    let crashes = reported("True", "ContainerCrashes");
    assert_eq!(api.condition(api::ATTEMPTS_BLOCKED), crashes);
    let words = message(&api, api::ATTEMPTS_BLOCKED);
    assert!(words.contains("exited with code 1"), "{words}");
    assert_eq!(api.pods().len(), 2, "the pod is left alone");
    api.run((0, 0));
    process.look(&api).await.unwrap();
    let over = reported("False", "AttemptsStarting");
    assert_eq!(api.condition(api::ATTEMPTS_BLOCKED), over);
}

#[tokio::test]
async fn restarts_at_the_limit_fail_the_job_and_are_named() {
    let (api, process) = two_running(IN_PLACE).await;
    api.crash((0, 0), 2);
    process.look(&api).await.unwrap();
    let reached = Some(("True".to_owned(), "BackoffLimitExceeded".to_owned()));
    assert_eq!(api.condition(api::FAILURE_TARGET), reached);
    let words = message(&api, api::FAILURE_TARGET);
    let expected =
        "the job has reached spec.backoffLimit: containers were restarted 2 times in place";
    assert_eq!(words, expected);
    let said = api.said();
    let deleted = said.iter().filter(|said| said.starts_with("DELETE pod"));
    assert_eq!(deleted.count(), 2, "{said:?}");
}

/// Two running attempts of a job whose deadline passed long enough ago for every earlier end to be
/// reported.
pub async fn overdue(change: &str) -> (Apiserver, Process) {
    let (api, process) = two_running(change).await;
    {
        let mut world = api.world.lock();
        let metadata = &mut world.job.as_mut().unwrap().metadata;
        metadata.creation_timestamp = Some(clock::time(Instant(clock::now().0 - 608_000)));
    }
    (api, process)
}

#[tokio::test]
async fn the_pods_are_read_live_before_the_deadline_stops_any() {
    let (api, process) = overdue("").await;
    process.look(&api).await.unwrap();
    let list = api.call("LIST pods").query;
    let uid = api.job().metadata.uid.clone().unwrap();
    assert!(
        list.contains("labelSelector=shed.dev%2Fjob-uid") && list.contains(&uid),
        "{list}"
    );
    let mut said = api.said();
    said[2..].sort();
    assert_eq!(
        said,
        [
            "LIST pods",
            "PUT job status",
            "DELETE pod 0-0",
            "DELETE pod 1-0"
        ]
    );
    // A late report of an attempt could still turn the miss.
    assert_eq!(api.condition(api::FAILURE_TARGET), None);
    assert_eq!(api.condition(api::DEADLINE_MISSED), None);
    process.look(&api).await.unwrap();
    assert_eq!(api.said(), ["PUT job status", "POST event DeadlineMissed"]);
    assert_eq!(
        api.condition(api::FAILURE_TARGET).unwrap().1,
        "DeadlineMissed"
    );
}

/// All pods of a large job in one answer would be decoded without a pause.
#[tokio::test]
async fn the_live_read_goes_through_every_page() {
    let (api, process) = overdue("").await;
    api.world.lock().page = 1;
    let in_time = Instant(clock::now().0 - 11_000);
    api.exit((1, 0), 0, in_time);
    process.reconcile(api.job()).await.unwrap();
    let said = api.said();
    let lists = said.iter().filter(|words| *words == "LIST pods");
    assert_eq!(lists.count(), 2, "{said:?}");
    // A pod that only the second page shows counts.
    assert_eq!(api.job().status.as_ref().unwrap().attempts.won, 1);
}

#[tokio::test]
async fn a_pod_seen_only_by_the_live_read_is_not_lost_to_a_late_watch() {
    let (api, _) = overdue("").await;
    let process = Process::start(&api);
    process.context.stores.show(vec![]);
    process.reconcile(api.job()).await.unwrap();
    api.said();
    process.reconcile(api.job()).await.unwrap();
    assert_eq!(api.said(), WAITS, "they are ending");
    assert_eq!(api.job().status.as_ref().unwrap().attempts.superseded, 0);
}

#[tokio::test]
async fn a_finish_in_time_that_only_the_live_read_shows_is_honoured() {
    let (api, process) = overdue("").await;
    let in_time = Instant(clock::now().0 - 11_000);
    api.exit((0, 0), 0, in_time);
    api.exit((1, 0), 0, in_time);
    // The stores still show both running.
    process.reconcile(api.job()).await.unwrap();
    let mut said = api.said();
    said[2..].sort();
    assert_eq!(
        said,
        [
            "LIST pods",
            "PUT job status",
            "PATCH pod 0-0",
            "PATCH pod 1-0",
            "POST event Completed"
        ]
    );
    assert_eq!(api.condition(api::SUCCESS_CRITERIA_MET).unwrap().0, "True");
    assert_eq!(api.condition(api::DEADLINE_MISSED), None);
    assert_eq!(api.condition(api::COMPLETE).unwrap().0, "True");
}

#[tokio::test]
async fn without_a_live_read_the_deadline_stops_nothing() {
    let (api, process) = overdue("").await;
    api.refuse("LIST", 500, "InternalError", "etcd is away");
    let error = process.look(&api).await.unwrap_err();
    assert!(matches!(error, Error::LiveRead(_)), "{error}");
    assert_eq!(api.said(), ["LIST pods"]);
}

#[tokio::test]
async fn a_miss_of_a_job_that_goes_on_is_recorded_and_nothing_dies() {
    let (api, process) = overdue("onMiss: Continue").await;
    process.look(&api).await.unwrap();
    let said = ["LIST pods", "PUT job status", "POST event DeadlineMissed"];
    assert_eq!(api.said(), said);
    process.look(&api).await.unwrap();
    assert_eq!(api.said(), WAITS);
}

#[tokio::test]
async fn a_finished_job_is_deleted_by_its_uid_after_its_ttl() {
    let (api, process) = two_running("ttlSecondsAfterFinished: 0").await;
    api.exit((0, 0), 0, clock::now());
    api.exit((1, 0), 0, clock::now());
    let job = api.job();
    process.look(&api).await.unwrap();
    let delete = api.call("DELETE job").body;
    assert_eq!(
        delete["preconditions"]["uid"].as_str(),
        job.metadata.uid.as_deref()
    );
    let mut said = api.said();
    said[1..3].sort();
    assert_eq!(
        said,
        [
            "PUT job status",
            "PATCH pod 0-0",
            "PATCH pod 1-0",
            "DELETE job",
            "POST event Completed"
        ]
    );
    assert!(api.world.lock().job.is_none());
    // The watch has not shown it yet. The pod is gone, as intended.
    process.reconcile(job).await.unwrap();
}

#[tokio::test]
async fn a_finished_job_lives_until_its_time_is_over() {
    let (api, process) = two_running("ttlSecondsAfterFinished: 60").await;
    api.exit((0, 0), 0, clock::now());
    api.exit((1, 0), 0, clock::now());
    for _ in 0..3 {
        process.look(&api).await.unwrap();
    }
    assert_eq!(api.condition(api::COMPLETE).unwrap().0, "True");
    assert!(!api.said().contains(&"DELETE job".to_owned()));
}

#[tokio::test]
async fn a_suspended_job_stops_attempts_and_resumes_with_new_numbers() {
    let (api, process) = two_running("").await;
    edit(&api, |job| job.spec.suspend = true);
    process.look(&api).await.unwrap();
    let mut said = api.said();
    said[1..].sort();
    assert_eq!(said, ["PUT job status", "DELETE pod 0-0", "DELETE pod 1-0"]);
    api.kill_deleted();
    process.look(&api).await.unwrap();
    api.said();
    edit(&api, |job| job.spec.suspend = false);
    process.plan(&api.job(), vec![launch(0, AttemptKind::Retry)]);
    process.look(&api).await.unwrap();
    assert_eq!(api.said(), ["PUT job status", "POST pod 0-1"]);
}

/// A pod with the job's labels and a number that was never given out, running.
fn stray(api: &Apiserver) {
    let mut world = api.world.lock();
    let mut pod = world.pods.values().next().cloned().expect("a pod");
    let name = pod.metadata.name.take().unwrap();
    let name = format!("{}7", name.trim_end_matches('0'));
    let labels = pod.metadata.labels.as_mut().unwrap();
    labels.insert(api::LABEL_ATTEMPT.to_owned(), "7".to_owned());
    pod.metadata.name = Some(name.clone());
    pod.metadata.uid = Some("stray".to_owned());
    world.pods.insert(name, pod);
}

#[tokio::test]
async fn an_unrecorded_pod_is_reported_deleted_and_released_once() {
    let (api, process) = two_running("").await;
    stray(&api);
    process.look(&api).await.unwrap();
    assert_eq!(
        api.said(),
        [
            "GET job",
            "DELETE pod 0-7",
            "PATCH pod 0-7",
            "POST event UnrecordedAttempt"
        ]
    );
    process.look(&api).await.unwrap();
    assert_eq!(api.said(), WAITS, "its containers are ending");
}

/// The attempt has been unable to pull its image for longer than the grace.
fn stick(api: &Apiserver, process: &Process, id: (u32, u32)) {
    api.stick(id, "ImagePullBackOff");
    let uid: Arc<str> = api.job().metadata.uid.as_deref().unwrap().into();
    process.context.job_memories.with(&uid, |memory| {
        let trace = memory.planned.traces.entry(id).or_default();
        trace.stuck_since = Some(Instant(clock::now().0 - 6000));
    });
}

#[tokio::test]
async fn an_attempt_that_cannot_start_is_replaced_after_a_wait() {
    let api = Apiserver::new(fixtures::job_of_age(60, "completions: 1"));
    let process = Process::start(&api);
    process.plan(&api.job(), originals(1));
    process.look(&api).await.unwrap();
    api.said();
    stick(&api, &process, (0, 0));
    process.look(&api).await.unwrap();
    assert_eq!(
        api.said(),
        [
            "PUT job status",
            "DELETE pod 0-0",
            "POST event ImagePullFailed",
            "POST event AttemptReplaced"
        ]
    );
    let backoff = process.planned(&api.job()).backoff.expect("a wait");
    assert!(backoff.until.since(clock::now()).seconds() > 8.0);
}

#[tokio::test]
async fn a_replacement_that_was_not_recorded_does_not_double_the_wait() {
    let (api, process) = two_running("").await;
    stick(&api, &process, (0, 0));
    stick(&api, &process, (1, 0));
    api.refuse("PUT job", 409, "Conflict", "changed");
    for _ in 0..3 {
        process.look(&api).await.unwrap_err();
    }
    api.script(|_| Fate::Served);
    process.look(&api).await.unwrap();
    assert_eq!(
        process.planned(&api.job()).backoff.expect("a wait").count,
        1
    );
}

#[tokio::test]
async fn attempts_that_get_stuck_one_after_the_other_make_one_wait() {
    let (api, process) = two_running("").await;
    for id in [(0, 0), (1, 0)] {
        stick(&api, &process, id);
        process.look(&api).await.unwrap();
    }
    assert!(api.said().contains(&"DELETE pod 1-0".to_owned()));
    assert_eq!(
        process.planned(&api.job()).backoff.expect("a wait").count,
        1
    );
}
