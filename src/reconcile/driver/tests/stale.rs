//! Copies of the job that are older than its ledger.

use super::*;
use crate::cluster::{JobObject, Stores, WatchedJob};
use kube::runtime::watcher::Event;

/// Two running tasks, the first with a retry that the watch of pods shows. Also the job from before the retry.
async fn retried() -> (Apiserver, Process, Arc<DeadlineJob>) {
    let (api, process) = two_running("").await;
    api.exit((0, 0), 1, clock::now());
    process.look(&api).await.unwrap();
    let old = api.job();
    process.plan(&old, vec![launch(0, AttemptKind::Retry)]);
    process.look(&api).await.unwrap();
    assert!(api.said().contains(&"POST pod 0-1".to_owned()));
    process.context.stores.show(api.pods());
    (api, process, old)
}

#[tokio::test]
async fn a_pass_with_an_old_copy_deletes_no_retry() {
    let (api, process, old) = retried().await;
    // As the planner does, once the watch has caught up.
    let _ = process.context.job_memories.newest(&api.job());
    process.reconcile(old).await.unwrap();
    assert_eq!(api.said(), WAITS);
}

#[tokio::test]
async fn an_ended_retry_is_counted_before_it_is_released() {
    let (api, process, old) = retried().await;
    let _ = process.context.job_memories.newest(&api.job());
    api.run((0, 1));
    api.exit((0, 1), 0, clock::now());
    process.context.stores.show(api.pods());
    process.reconcile(old).await.unwrap();
    assert_eq!(api.said(), ["PUT job status", "PATCH pod 0-1"]);
}

#[tokio::test]
async fn a_pass_takes_what_the_watch_shows_after_its_wait() {
    let job = fixtures::job_of_age(0, "completions: 1");
    let api = Apiserver::new(job);
    let object = || JobObject::Read {
        job: WatchedJob::new((*api.job()).clone(), 0),
        unknown_fields: Vec::new(),
    };
    let (stores, mut writer) = Stores::of_objects(vec![object()], vec![]);
    let process = Process::with_stores(&api, Arc::clone(&stores));
    let dispatched = api.job();
    edit(&api, |job| job.spec.suspend = true);
    stores.apply_job_event(&mut writer, Event::Apply(object()));
    process.plan(&dispatched, originals(1));
    process.reconcile(dispatched).await.unwrap();
    assert_eq!(api.said(), ["PUT job status"], "no conflict, no launch");
}

/// A process that knows nothing but an old copy, as if its watch of jobs hung, or its machine had been paused.
fn of_the_past(api: &Apiserver, old: &Arc<DeadlineJob>) -> Process {
    let stores = Stores::for_tests(vec![(**old).clone()], api.pods(), &[]);
    Process::with_stores(api, stores)
}

#[tokio::test]
async fn a_pod_without_an_entry_stays_if_the_ledger_is_newer() {
    let (api, process, old) = retried().await;
    let behind = of_the_past(&api, &old);
    drop(process);
    let error = behind.reconcile(Arc::clone(&old)).await.unwrap_err();
    assert!(matches!(error, Error::Conflict), "{error}");
    assert_eq!(api.said(), ["GET job", "GET job"]);
    // The live read has shown the newer ledger.
    behind.reconcile(old).await.unwrap();
    assert_eq!(api.said(), WAITS);
}

#[tokio::test]
async fn a_recorded_stop_goes_on_though_the_ledger_is_newer() {
    let (api, process) = race().await;
    api.exit((0, 1), 0, clock::now());
    api.script(|call| match call.words.contains(" pod ") {
        true => Fate::Refused(500, "InternalError", "etcd is away"),
        false => Fate::Served,
    });
    process.look(&api).await.unwrap_err();
    let old = api.job();
    edit(&api, |job| job.spec.suspend = true);
    api.script(|_| Fate::Served);
    api.said();
    let error = of_the_past(&api, &old).reconcile(old).await.unwrap_err();
    assert!(matches!(error, Error::Conflict), "{error}");
    assert_eq!(api.said(), ["GET job", "GET job", "DELETE pod 0-0"]);
}

#[tokio::test]
async fn a_pod_without_an_entry_goes_with_its_job() {
    let (api, process, old) = retried().await;
    let behind = of_the_past(&api, &old);
    drop(process);
    api.world.lock().job = None;
    behind.reconcile(old).await.unwrap();
    let said = api.said();
    assert_eq!(said[..2], ["GET job", "DELETE pod 0-1"], "{said:?}");
}
