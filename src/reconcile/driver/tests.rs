//! Every conversation that a reconcile has with the apiserver: the whole list of its calls.

mod annotations;
mod clocks;
mod clone_budget;
mod clone_stop;
mod computed_deadlines;
mod counts;
mod crash;
mod creation;
mod denied;
mod edits;
mod ends;
mod fence;
mod foreign;
mod isolation;
mod measures;
mod nodes;
mod range;
mod record;
mod refusals;
mod secrets;
mod size;
mod stale;
mod terminating_namespace;
mod unanswered;
mod words;
mod writes;

use std::sync::mpsc::RecvTimeoutError;

use super::*;
use crate::api;
use crate::clock;
use crate::fixtures;
use crate::reconcile::mock::{Apiserver, Fate, Process, launch, originals, pod_name};
use shed_core::ids::{AttemptNumber, TaskIndex};
use shed_core::snapshot::{AttemptKind, KillKind};

const WAITS: [&str; 0] = [];

/// Runs a conversation on a thread of its own. A conversation that does not end fails the test, and
/// does not hang it.
fn comes_to_an_end<F: Future<Output = ()>>(conversation: impl FnOnce() -> F + Send + 'static) {
    let (done, waiting) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().expect("a runtime");
        runtime.block_on(conversation());
        let _ = done.send(());
    });
    let waited = waiting.recv_timeout(std::time::Duration::from_secs(30));
    assert_ne!(waited, Err(RecvTimeoutError::Timeout), "no end");
    thread.join().expect("the conversation");
}

/// A job of two tasks, whose first attempts are running.
async fn two_running(change: &str) -> (Apiserver, Process) {
    let api = Apiserver::new(fixtures::job_of_age(
        60,
        &format!("{{completions: 2, {change}}}"),
    ));
    let process = Process::start(&api);
    process.plan(&api.job(), originals(2));
    process.look(&api).await.unwrap();
    api.run((0, 0));
    api.run((1, 0));
    process.look(&api).await.unwrap();
    api.said();
    (api, process)
}

/// A job of one task with an original and a clone, both running.
async fn race() -> (Apiserver, Process) {
    let api = Apiserver::new(fixtures::job_of_age(60, "completions: 1"));
    let process = Process::start(&api);
    for kind in [AttemptKind::Original, AttemptKind::Clone] {
        process.plan(&api.job(), vec![launch(0, kind)]);
        process.look(&api).await.unwrap();
    }
    api.run((0, 0));
    api.run((0, 1));
    process.look(&api).await.unwrap();
    api.said();
    (api, process)
}

/// The ledger of a job that was written.
fn ledger(put: &serde_json::Value) -> api::Ledger {
    let status: api::DeadlineJobStatus = serde_json::from_value(put["status"].clone()).unwrap();
    status.ledger.unwrap()
}

#[tokio::test]
async fn a_launch_is_in_the_ledger_before_any_pod_is_created() {
    let api = Apiserver::new(fixtures::job_of_age(0, ""));
    let process = Process::start(&api);
    let read = api.job();
    process.plan(&read, originals(4));
    process.look(&api).await.unwrap();
    let put = api.call("PUT job").body;
    assert_eq!(
        put["metadata"]["resourceVersion"], "7",
        "the one it was decided on"
    );
    let recorded = ledger(&put).tasks;
    assert_eq!(recorded.len(), 4);
    assert_eq!(recorded[&2].attempts[0].number, 0);
    let pod = api.call("POST pod 2-0");
    assert_eq!(pod.pod, pod_name(&read, (2, 0)));
    let metadata = &pod.body["metadata"];
    assert_eq!(metadata["finalizers"][0], api::ATTEMPT_FINALIZER);
    let owner = &metadata["ownerReferences"][0];
    assert_eq!(owner["uid"].as_str(), read.metadata.uid.as_deref());
    assert_eq!(
        (&owner["kind"], &owner["controller"]),
        (&"DeadlineJob".into(), &true.into())
    );
    let said = api.said();
    assert_eq!(said[..2], ["PUT job status", "POST pod 0-0"]);
    assert_eq!(said.len(), 5, "{said:?}");
    assert!(process.is_drained().await);
}

#[tokio::test]
async fn a_conflict_creates_no_pod_and_gives_the_slice_back() {
    let api = Apiserver::new(fixtures::job_of_age(0, ""));
    let process = Process::start(&api);
    let stale = api.job();
    edit(&api, |job| job.metadata.generation = Some(2));
    process.plan(&stale, originals(4));
    let error = process.reconcile(stale).await.unwrap_err();
    assert!(matches!(error, Error::Conflict), "{error}");
    assert_eq!(api.said(), ["PUT job status", "GET job"]);
    assert!(process.is_drained().await);
}

/// Another client writes to the job.
fn edit(api: &Apiserver, change: impl FnOnce(&mut DeadlineJob)) {
    let mut world = api.world.lock();
    world.version += 1;
    let version = world.version.to_string();
    let job = world.job.as_mut().unwrap();
    let spec = job.spec.clone();
    change(job);
    if job.spec != spec {
        job.metadata.generation = job.metadata.generation.map(|generation| generation + 1);
    }
    job.metadata.resource_version = Some(version);
}

#[tokio::test]
async fn edits_of_labels_do_not_keep_the_ledger_from_being_written() {
    let api = Apiserver::new(fixtures::job_of_age(0, "completions: 1"));
    let process = Process::start(&api);
    let stale = api.job();
    edit(&api, |job| {
        let label = ("team".to_owned(), "blue".to_owned());
        job.metadata.labels = Some([label].into());
    });
    process.plan(&stale, originals(1));
    process.reconcile(stale).await.unwrap();
    let said = api.said();
    assert_eq!(
        said,
        [
            "PUT job status",
            "GET job",
            "PUT job status",
            "POST pod 0-0"
        ]
    );
    assert!(api.job().metadata.labels.is_some(), "the edit stays");
}

#[tokio::test]
async fn what_a_conflict_has_shown_need_not_be_shown_by_the_watch() {
    let api = Apiserver::new(fixtures::job_of_age(0, "completions: 1"));
    let process = Process::start(&api);
    let stale = api.job();
    edit(&api, |job| job.spec.suspend = true);
    process.plan(&stale, originals(1));
    process.reconcile(Arc::clone(&stale)).await.unwrap_err();
    api.said();
    process.reconcile(stale).await.unwrap();
    assert_eq!(api.said(), ["PUT job status"]);
    let status = api.job().status.clone().unwrap();
    assert_eq!(status.phase.as_deref(), Some("Suspended"));
}

#[tokio::test]
async fn a_job_that_is_gone_is_no_conflict_to_try_again_at_once() {
    let api = Apiserver::new(fixtures::job_of_age(0, "completions: 1"));
    let process = Process::start(&api);
    let stale = api.job();
    api.world.lock().job = None;
    process.plan(&stale, originals(1));
    let error = process.reconcile(stale).await.unwrap_err();
    assert!(matches!(error, Error::Gone), "{error}");
    assert_eq!(api.said(), ["PUT job status"]);
}

#[tokio::test]
async fn a_ledger_that_cannot_be_written_creates_no_pod() {
    let api = Apiserver::new(fixtures::job_of_age(0, ""));
    let process = Process::start(&api);
    api.refuse("PUT job", 500, "InternalError", "etcd is away");
    process.plan(&api.job(), originals(4));
    let error = process.look(&api).await.unwrap_err();
    assert!(matches!(error, Error::Record(_)), "{error}");
    assert_eq!(api.said(), ["PUT job status"]);
    assert!(process.is_drained().await);
}

#[tokio::test]
async fn a_deposed_writer_cannot_roll_back_a_winner() {
    let (api, old) = race().await;
    let before = (api.job(), api.pods());
    api.exit((0, 1), 0, clock::now());
    Process::start(&api).look(&api).await.unwrap();
    api.said();
    // Its watches stand still, and it is about to launch.
    old.context.stores.show(before.1);
    old.plan(&before.0, vec![launch(0, AttemptKind::Clone)]);
    let error = old.reconcile(before.0).await.unwrap_err();
    assert!(matches!(error, Error::Conflict), "{error}");
    assert_eq!(api.said(), ["PUT job status", "GET job"]);
    assert_eq!(api.job().status.as_ref().unwrap().attempts.won, 1);
}

#[tokio::test]
async fn a_pod_that_a_slow_watch_does_not_show_is_not_created_again() {
    let api = Apiserver::new(fixtures::job_of_age(0, "completions: 1"));
    let process = Process::start(&api);
    process.plan(&api.job(), originals(1));
    let watched = api.job();
    process.reconcile(Arc::clone(&watched)).await.unwrap();
    assert_eq!(api.said(), ["PUT job status", "POST pod 0-0"]);
    process.reconcile(watched).await.unwrap();
    assert_eq!(api.said(), WAITS);
}

#[tokio::test]
async fn a_running_job_with_unchanged_facts_makes_no_call() {
    let (api, process) = two_running("").await;
    for _ in 0..3 {
        process.look(&api).await.unwrap();
    }
    assert_eq!(api.said(), WAITS);
}

#[tokio::test]
async fn a_job_that_is_being_deleted_launches_nothing() {
    let mut job = fixtures::job_of_age(0, "");
    job.metadata.deletion_timestamp = Some(clock::time(clock::now()));
    let api = Apiserver::new(job);
    let process = Process::start(&api);
    process.plan(&api.job(), originals(4));
    process.look(&api).await.unwrap();
    assert_eq!(api.said(), WAITS);
}

#[tokio::test]
async fn nothing_is_decided_before_the_first_lists_are_in() {
    let api = Apiserver::new(fixtures::job_of_age(0, ""));
    let stores = crate::cluster::Stores::of_jobs_alone(&[(*api.job()).clone()]);
    let process = Process::with_stores(&api, stores);
    process.plan(&api.job(), originals(4));
    process.reconcile(api.job()).await.unwrap();
    assert_eq!(api.said(), WAITS);
}

#[tokio::test]
async fn an_invalid_specification_fails_the_job_once_without_a_pod() {
    let template = "template: {spec: {restartPolicy: Always, containers: [{name: a}]}}";
    let api = Apiserver::new(fixtures::job_of_age(0, template));
    let process = Process::start(&api);
    process.plan(&api.job(), originals(4));
    process.look(&api).await.unwrap();
    assert_eq!(api.said(), ["PUT job status", "POST event InvalidSpec"]);
    let failed = api.condition(api::FAILED).unwrap();
    assert_eq!(failed, ("True".to_owned(), "InvalidSpec".to_owned()));
    process.look(&api).await.unwrap();
    assert_eq!(api.said(), WAITS);
}

#[tokio::test]
async fn a_lost_event_is_no_reason_to_repeat_a_step() {
    let (api, process) = two_running("").await;
    api.script(|call| match call.words.contains(" event ") {
        true => Fate::LostBefore,
        false => Fate::Served,
    });
    process.plan(&api.job(), vec![launch(0, AttemptKind::Clone)]);
    process.look(&api).await.unwrap();
    assert_eq!(
        api.said(),
        ["PUT job status", "POST pod 0-1", "POST event CloneLaunched"]
    );
}

#[tokio::test]
async fn a_preference_of_the_plan_goes_with_the_pod_that_it_launches() {
    let (api, process) = two_running("").await;
    let Move::Launch(mut clone) = launch(0, AttemptKind::Clone) else {
        panic!("no launch");
    };
    clone.rather_not = vec!["node-7".into()];
    process.plan(&api.job(), vec![Move::Launch(clone)]);
    process.look(&api).await.unwrap();
    let pod = api.call("POST pod 0-1").body;
    let preferred = pod.pointer(
        "/spec/affinity/nodeAffinity/preferredDuringSchedulingIgnoredDuringExecution/0/preference\
         /matchFields/0/values/0",
    );
    assert_eq!(preferred, Some(&"node-7".into()));
    assert!(!api.job().status.as_ref().is_some_and(|status| {
        let text = serde_json::to_string(status).unwrap();
        text.contains("node-7")
    }));
}

/// The bodies of the events that were written, and the words of those calls.
fn events(api: &Apiserver) -> Vec<(String, serde_json::Value)> {
    let world = api.world.lock();
    let calls = world
        .calls
        .iter()
        .filter(|call| call.words.contains(" event "));
    calls
        .map(|call| (call.words.clone(), call.body.clone()))
        .collect()
}

/// Clones of the first task, as a policy plans them to reach `count` attempts.
fn clones(count: usize) -> Vec<Move> {
    let Move::Launch(clone) = launch(0, AttemptKind::Clone) else {
        panic!("no launch");
    };
    let finding = shed_core::plan::Finding::Copies { copies: 9 };
    let reason = shed_core::plan::LaunchReason::Rule {
        finding,
        pocd_before: None,
        pocd_after: None,
    };
    vec![Move::Launch(shed_core::plan::Launch { reason, ..clone }); count]
}

#[tokio::test]
async fn a_burst_of_clones_is_one_event_and_the_next_burst_another() {
    let (api, process) = two_running("").await;
    process.plan(&api.job(), clones(3));
    process.look(&api).await.unwrap();
    process.plan(&api.job(), clones(1));
    process.look(&api).await.unwrap();
    let events = events(&api);
    assert!(
        events
            .iter()
            .all(|(words, _)| words == "POST event CloneLaunched")
    );
    let reported = |number: usize, field: &str| events[number].1.pointer(field).cloned();
    let note = |number| reported(number, "/note").unwrap().to_string();
    assert!(
        note(0).contains("shed started 3 clones, of task 0"),
        "{}",
        note(0)
    );
    for (number, attempt) in [1, 4].into_iter().enumerate() {
        let name = pod_name(&api.job(), (0, attempt));
        assert_eq!(reported(number, "/related/name"), Some(name.into()));
        assert_eq!(reported(number, "/related/kind"), Some("Pod".into()));
    }
    assert!(
        note(1).contains(&pod_name(&api.job(), (0, 4))),
        "{}",
        note(1)
    );
}

#[tokio::test]
async fn a_job_with_many_bursts_of_clones_writes_few_events() {
    let (api, process) = two_running("").await;
    for _ in 0..18 {
        process.plan(&api.job(), clones(1));
        process.look(&api).await.unwrap();
    }
    assert_eq!(events(&api).len(), 10);
    // Its end is still reported.
    for id in [(0, 0), (1, 0)] {
        api.exit(id, 0, clock::now());
    }
    process.look(&api).await.unwrap();
    api.kill_deleted();
    process.look(&api).await.unwrap();
    let last = events(&api).pop().map(|(words, _)| words);
    assert_eq!(last.as_deref(), Some("POST event Completed"));
}
