use std::sync::Arc;

use tokio::time::timeout;

use super::*;
use crate::api::DeadlineJob;
use crate::clock;
use crate::controller::mock::{Apiserver, Fate, Process, originals};
use crate::fixtures;
use crate::stores::Stores;

/// Two attempts run; then the job store shows `left` of the job.
async fn two_attempts(
    left: impl FnOnce(DeadlineJob) -> Option<DeadlineJob>,
) -> (Apiserver, Process) {
    let api = Apiserver::new(fixtures::job_of_age(60, "completions: 2"));
    let process = Process::start(&api);
    process.plan(&api.job(), originals(2));
    process.look(&api).await.unwrap();
    api.run((0, 0));
    api.run((1, 0));
    let job = left((*api.job()).clone());
    api.world().job.clone_from(&job);
    let stores = Stores::for_tests(job.into_iter().collect(), api.pods(), &[]);
    let process = Process::with_stores(&api, stores);
    api.said();
    (api, process)
}

fn being_deleted(mut job: DeadlineJob) -> Option<DeadlineJob> {
    job.metadata.deletion_timestamp = Some(clock::time(clock::now()));
    Some(job)
}

/// Lets it look once, or twice.
async fn looks(process: &Process, count: u32) {
    let time = PERIOD * (count - 1) + PERIOD / 2;
    let endless = timeout(time, run(Arc::clone(&process.context))).await;
    assert!(endless.is_err(), "it looks for ever");
}

#[tokio::test(start_paused = true)]
async fn pods_of_a_job_that_is_gone_are_let_go_and_not_deleted() {
    let (api, process) = two_attempts(|_| None).await;
    let uid = api.pods()[0].metadata.uid.clone().unwrap();
    looks(&process, 1).await;
    assert_eq!(api.call("PATCH pod 0-0").body["metadata"]["uid"], uid);
    assert_eq!(api.said(), ["PATCH pod 0-0", "PATCH pod 1-0"]);
    assert_eq!(api.pods().len(), 2, "an orphaning deletion keeps them");
    process.context.stores.show(api.pods());
    looks(&process, 1).await;
    assert!(api.said().is_empty(), "nothing is left to do");
}

#[tokio::test(start_paused = true)]
async fn pods_of_a_job_that_is_being_deleted_are_let_go() {
    let (api, process) = two_attempts(being_deleted).await;
    looks(&process, 1).await;
    assert_eq!(api.said(), ["PATCH pod 0-0", "PATCH pod 1-0"]);
}

#[tokio::test(start_paused = true)]
async fn pods_of_a_job_that_is_there_are_left_to_it() {
    let (api, process) = two_attempts(Some).await;
    looks(&process, 1).await;
    assert!(api.said().is_empty());
}

/// Two attempts run; then the job can't be read any more, as `leaving` says on its way out.
async fn two_attempts_of_an_unreadable(leaving: bool) -> (Apiserver, Process) {
    let (api, _) = two_attempts(Some).await;
    let mut job = (*api.job()).clone();
    if leaving {
        job.metadata.deletion_timestamp = Some(clock::time(clock::now()));
    }
    api.world().job = Some(job.clone());
    let unreadable = fixtures::object(&job, &[("/spec/onMiss", "Postpone".into())]);
    let (stores, _writer) = Stores::of_objects(vec![unreadable], api.pods());
    let process = Process::with_stores(&api, stores);
    (api, process)
}

#[tokio::test(start_paused = true)]
async fn pods_of_a_job_that_can_not_be_read_are_kept_and_hold_their_room() {
    let (api, process) = two_attempts_of_an_unreadable(false).await;
    looks(&process, 2).await;
    assert!(api.said().is_empty());
    let view = crate::planner::observe::view(&process.context);
    let held: usize = view.snapshot.jobs.iter().map(|job| job.tasks.len()).sum();
    assert_eq!(held, 2, "{:?}", view.snapshot.jobs);
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_job_that_is_being_deleted_lets_its_pods_go() {
    let (api, process) = two_attempts_of_an_unreadable(true).await;
    looks(&process, 1).await;
    assert_eq!(api.said(), ["PATCH pod 0-0", "PATCH pod 1-0"]);
}

#[tokio::test(start_paused = true)]
async fn pods_of_a_job_that_was_made_again_under_its_name_are_orphans() {
    let made_again = |mut job: DeadlineJob| {
        job.metadata.uid = Some("another".to_owned());
        job.status = None;
        Some(job)
    };
    let (api, process) = two_attempts(made_again).await;
    looks(&process, 1).await;
    assert_eq!(api.said(), ["PATCH pod 0-0", "PATCH pod 1-0"]);
}

#[tokio::test(start_paused = true)]
async fn a_release_that_fails_does_not_keep_the_others_and_is_tried_again() {
    let (api, process) = two_attempts(|_| None).await;
    let mut calls = 0;
    api.script(move |_| {
        calls += 1;
        match calls {
            1 => Fate::LostBefore,
            _ => Fate::Served,
        }
    });
    looks(&process, 1).await;
    assert_eq!(api.said(), ["PATCH pod 0-0", "PATCH pod 1-0"]);
    process.context.stores.show(api.pods());
    looks(&process, 1).await;
    assert_eq!(api.said(), ["PATCH pod 0-0"]);
}

#[tokio::test(start_paused = true)]
async fn what_is_remembered_of_a_job_goes_with_it() {
    let (api, process) = two_attempts(Some).await;
    let gone: Arc<str> = Arc::from("gone");
    process
        .context
        .memos
        .with(&gone, |memo| memo.pocd_written = Some(clock::now()));
    looks(&process, 1).await;
    process
        .context
        .memos
        .with(&gone, |memo| assert!(memo.pocd_written.is_none()));
    drop(api);
}
