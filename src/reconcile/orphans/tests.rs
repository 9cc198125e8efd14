use std::collections::HashMap;
use std::sync::Arc;

use k8s_openapi::api::batch::v1::Job;
use tokio::time::timeout;

use super::*;
use crate::adopt::AdoptJobs;
use crate::api::DeadlineJob;
use crate::clock;
use crate::fixtures;
use crate::reconcile::mock::{
    Apiserver, Fate, Process, SLOW_NAMESPACE, WEBHOOK_TIME, originals, slow_webhook,
};

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
    api.world.lock().job.clone_from(&job);
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
    assert!(endless.is_err(), "it never stops polling");
}

#[tokio::test(start_paused = true)]
async fn pods_of_a_job_that_is_gone_are_let_go_and_not_deleted() {
    let (api, process) = two_attempts(|_| None).await;
    let uid = api.pods()[0].metadata.uid.clone().unwrap();
    looks(&process, 1).await;
    assert_eq!(api.call("PATCH pod 0-0").body["metadata"]["uid"], uid);
    assert_eq!(api.said(), ["GET job", "PATCH pod 0-0", "PATCH pod 1-0"]);
    assert_eq!(api.pods().len(), 2, "an orphaning deletion keeps them");
    process.context.stores.show(api.pods());
    looks(&process, 1).await;
    assert!(api.said().is_empty(), "nothing is left to do");
}

#[tokio::test(start_paused = true)]
async fn pods_of_a_job_that_the_watch_does_not_show_yet_stay() {
    let (api, _) = two_attempts(Some).await;
    let stores = Stores::for_tests(vec![], api.pods(), &[]);
    let process = Process::with_stores(&api, stores);
    looks(&process, 1).await;
    assert_eq!(api.said(), ["GET job"]);
    api.refuse("GET job", 500, "InternalError", "etcd is away");
    looks(&process, 1).await;
    assert_eq!(api.said(), ["GET job"], "an error decides nothing");
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

/// Two attempts run; then the job becomes undecodable, and is being deleted if `leaving`.
async fn two_attempts_of_an_unreadable(leaving: bool) -> (Apiserver, Process) {
    let (api, _) = two_attempts(Some).await;
    let mut job = (*api.job()).clone();
    if leaving {
        job.metadata.deletion_timestamp = Some(clock::time(clock::now()));
    }
    api.world.lock().job = Some(job.clone());
    let unreadable = fixtures::object(&job, &[("/spec/onMiss", "Postpone".into())]);
    let (stores, _writer) = Stores::of_objects(vec![unreadable], api.pods());
    let process = Process::with_stores(&api, stores);
    (api, process)
}

#[tokio::test(start_paused = true)]
async fn pods_of_an_unreadable_job_are_kept_and_hold_capacity() {
    let (api, process) = two_attempts_of_an_unreadable(false).await;
    process
        .context
        .stores
        .show_nodes(&[fixtures::node("node-1", 8)]);
    looks(&process, 2).await;
    assert!(api.said().is_empty());
    let view = crate::planner::observation::view(&process.context.shared);
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
    assert_eq!(api.said(), ["GET job", "PATCH pod 0-0", "PATCH pod 1-0"]);
}

#[tokio::test(start_paused = true)]
async fn a_failed_release_blocks_no_other_and_is_retried() {
    let (api, process) = two_attempts(|_| None).await;
    let mut calls = 0;
    api.script(move |_| {
        calls += 1;
        match calls {
            2 => Fate::LostBefore,
            _ => Fate::Served,
        }
    });
    looks(&process, 1).await;
    assert_eq!(api.said(), ["GET job", "PATCH pod 0-0", "PATCH pod 1-0"]);
    process.context.stores.show(api.pods());
    looks(&process, 1).await;
    assert_eq!(api.said(), ["GET job", "PATCH pod 0-0"]);
}

#[tokio::test(start_paused = true)]
async fn what_is_remembered_of_a_job_goes_with_it() {
    let (api, process) = two_attempts(Some).await;
    let gone: Arc<str> = Arc::from("gone");
    process
        .context
        .job_memories
        .with(&gone, |memory| memory.reconcile.too_large_reported = true);
    looks(&process, 1).await;
    process.context.job_memories.with(&gone, |memory| {
        assert!(!memory.reconcile.too_large_reported)
    });
    drop(api);
}

/// A pod of the job's namespace that has shed's finalizer and is not an attempt, with this change.
/// Returns whether it is released while the job stays, and once the job is gone.
async fn let_go(change: impl Fn(&mut Pod)) -> [bool; 2] {
    let mut outcomes = Vec::new();
    for stays in [true, false] {
        let (api, process) = two_attempts(|job| stays.then_some(job)).await;
        let mut pod = api.pods().swap_remove(0);
        pod.metadata.name = Some("stray-9-9".to_owned());
        pod.metadata.uid = Some("stray".to_owned());
        change(&mut pod);
        api.world
            .lock()
            .pods
            .insert("stray-9-9".to_owned(), pod.clone());
        process.context.stores.show(vec![pod]);
        looks(&process, 1).await;
        let said = api.said();
        outcomes.push(said.last().is_some_and(|words| words == "PATCH pod 9-9"));
    }
    [outcomes[0], outcomes[1]]
}

fn delete(pod: &mut Pod) {
    pod.metadata.deletion_timestamp = Some(clock::time(clock::now()));
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_is_found_without_labels() {
    let bare = |pod: &mut Pod| {
        pod.metadata.labels = None;
        pod.metadata.owner_references = None;
    };
    assert_eq!(let_go(bare).await, [true, true]);
    // A copy that the job controls: deleting the job, or the copy, is not to hang.
    assert_eq!(
        let_go(|pod| pod.metadata.labels = None).await,
        [false, true]
    );
    assert_eq!(let_go(delete).await, [true, true]);
}

#[tokio::test(start_paused = true)]
async fn an_unlabeled_attempt_is_released_only_after_its_job_is_gone() {
    for (stays, said) in [
        (true, vec![]),
        (false, vec!["GET job", "PATCH pod 0-0", "PATCH pod 1-0"]),
    ] {
        let (api, process) = two_attempts(|job| stays.then_some(job)).await;
        for pod in api.world.lock().pods.values_mut() {
            pod.metadata.labels = None;
        }
        process.context.stores.show(api.pods());
        looks(&process, 1).await;
        assert_eq!(api.said(), said);
    }
}

/// The finalizer of batch/v1, in place of shed's.
fn of_batch(pod: &mut Pod) {
    pod.metadata.finalizers = Some(vec![crate::api::JOB_TRACKING_FINALIZER.to_owned()]);
}

fn owned_by_a_job(pod: &mut Pod) {
    of_batch(pod);
    let owner = crate::adopt::translate::owner_reference("pi", "job-uid");
    pod.metadata.owner_references = Some(vec![owner]);
}

#[tokio::test(start_paused = true)]
async fn what_the_built_in_controller_counts_by_is_left_to_it() {
    assert_eq!(let_go(owned_by_a_job).await, [false, false]);
    let deleted = |pod: &mut Pod| {
        owned_by_a_job(pod);
        delete(pod);
    };
    assert_eq!(let_go(deleted).await, [false, false]);
    // Orphaned on purpose, with the label of a deleted job. No controller counts it any more.
    let orphaned = |pod: &mut Pod| {
        of_batch(pod);
        pod.metadata.owner_references = None;
    };
    assert_eq!(let_go(orphaned).await, [false, true]);
    let bare = |pod: &mut Pod| {
        orphaned(pod);
        pod.metadata.labels = None;
    };
    assert_eq!(let_go(bare).await, [false, false]);
}

/// Whether a pod of a batch/v1 Job is let go: with its companion there or not, as the stores of Jobs are.
async fn job_pod_let_go(
    companion_stays: bool,
    deleting: bool,
    adopting: impl FnOnce(Arc<Stores>, Job) -> Arc<Stores>,
) -> bool {
    let job = fixtures::batch_job("completions: 1");
    let companion = fixtures::companion(&job);
    let api = Apiserver::new(companion.clone());
    let mut pod = fixtures::job_pod(&job);
    if deleting {
        delete(&mut pod);
    }
    api.world.lock().job = companion_stays.then(|| companion.clone());
    let companions = companion_stays.then_some(companion).into_iter();
    let stores = Stores::for_tests(companions.collect(), vec![pod.clone()], &[]);
    let process = Process::with_stores(&api, adopting(stores, job));
    api.world
        .lock()
        .pods
        .insert(pod.metadata.name.clone().unwrap(), pod);
    looks(&process, 1).await;
    let said = api.said();
    said.iter().any(|words| words.starts_with("PATCH"))
}

#[tokio::test(start_paused = true)]
async fn pods_of_jobs_are_let_go_where_nobody_counts_by_them() {
    let ours = |stores: Arc<Stores>, job| stores.adopting(AdoptJobs::Managed, vec![job]);
    let gone = |stores: Arc<Stores>, _| stores.adopting(AdoptJobs::Managed, vec![]);
    let theirs = |stores: Arc<Stores>, mut job: Job| {
        job.spec.as_mut().unwrap().managed_by = None;
        stores.adopting(AdoptJobs::Managed, vec![job])
    };
    let off = |stores: Arc<Stores>, _| stores;
    assert!(!job_pod_let_go(true, false, ours).await);
    assert!(
        job_pod_let_go(false, false, ours).await,
        "its ledger is lost"
    );
    for deleting in [true, false] {
        assert!(!job_pod_let_go(false, deleting, theirs).await);
        assert!(!job_pod_let_go(true, deleting, theirs).await);
        assert!(!job_pod_let_go(true, deleting, off).await);
        assert_eq!(job_pod_let_go(false, deleting, off).await, deleting);
        assert_eq!(job_pod_let_go(true, deleting, gone).await, deleting);
        assert_eq!(job_pod_let_go(false, deleting, gone).await, deleting);
    }
}

#[tokio::test(start_paused = true)]
async fn many_orphans_of_a_namespace_are_released_together() {
    let many = u32::try_from(AT_ONCE).unwrap() + 40;
    let change = format!("completions: {many}");
    let api = Apiserver::new(fixtures::job_of_age(60, &change));
    let process = Process::start(&api);
    process.plan(&api.job(), originals(many));
    for _ in 0..many.div_ceil(100) {
        process.look(&api).await.unwrap();
    }
    let there = api.pods();
    api.world.lock().job = None;
    let stores = Stores::for_tests(Vec::new(), there.clone(), &[]);
    let process = Process::with_stores(&api, stores);
    api.said();
    looks(&process, 1).await;
    assert_eq!(api.said().len(), 1 + AT_ONCE.min(there.len()), "one read");
}

#[tokio::test(start_paused = true)]
async fn an_idle_look_visits_nothing() {
    let (api, process) = two_attempts(Some).await;
    let (context, mut seen) = (&process.context, None);
    look(context, &mut seen);
    context.stores.visits();
    look(context, &mut seen);
    assert_eq!(context.stores.visits(), 0);
    context.stores.show(api.pods());
    look(context, &mut seen);
    assert!(context.stores.visits() > 0, "something has changed");
    assert!(api.said().is_empty());
}

#[tokio::test(start_paused = true)]
async fn orphans_of_a_slow_namespace_delay_no_other_release() {
    let (api, _) = two_attempts(Some).await;
    let mut pods = api.pods();
    pods[0].metadata.namespace = Some(SLOW_NAMESPACE.to_owned());
    let stores = Stores::for_tests(vec![], pods[..1].to_vec(), &[]);
    let mut process = Process::with_stores(&api, Arc::clone(&stores));
    let (client, released) = slow_webhook(HashMap::new());
    let context = Arc::get_mut(&mut process.context).expect("the only owner");
    context.client = client;
    let mut looks = std::pin::pin!(run(Arc::clone(&process.context)));
    assert!(timeout(PERIOD * 3, &mut looks).await.is_err());
    // Another namespace gets an orphan while the first release is under way.
    stores.show(pods);
    assert!(timeout(PERIOD * 3 / 2, &mut looks).await.is_err());
    let once = released.lock().clone();
    assert!(!once.is_empty() && once.iter().all(|namespace| namespace == "team"));
    assert!(timeout(WEBHOOK_TIME, &mut looks).await.is_err());
    let slow = |namespace: &&String| *namespace == SLOW_NAMESPACE;
    assert_eq!(released.lock().iter().filter(slow).count(), 1);
}
