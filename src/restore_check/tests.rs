use std::sync::Arc;
use std::time::Duration;

use shed_core::snapshot::AttemptKind;
use tokio::time::timeout;

use super::*;
use crate::fixtures;
use crate::reconcile::Error;
use crate::reconcile::mock::{Apiserver, Process, launch, originals};

/// A process that has launched its first attempt, its watches up to date.
async fn begun() -> (Apiserver, Process) {
    let api = Apiserver::new(fixtures::job_of_age(5, "completions: 1"));
    let process = Process::start(&api);
    process.plan(&api.job(), originals(1));
    process.look(&api).await.unwrap();
    process.context.stores.show(api.pods());
    api.said();
    (api, process)
}

fn check(process: &Process) -> RestoreCheck {
    RestoreCheck {
        client: process.context.client.clone(),
        shared: Arc::clone(&process.context.shared),
    }
}

/// Whether a first look shows that the store was put back.
async fn is_found(process: &Process) -> bool {
    let mut last = [(); 3].map(|()| LastLook::default());
    went_back(&check(process), &mut last).await
}

/// Whether the watches or the answers have shown it.
async fn is_shown(process: &Process) -> bool {
    let restored = process.context.stores.restored();
    timeout(Duration::from_millis(20), restored).await.is_ok()
}

#[tokio::test]
async fn the_counter_that_goes_back_is_noticed() {
    let api = Apiserver::new(fixtures::job(""));
    let process = Process::start(&api);
    // Each list is one version newer than the one before, from 101 on. Each look lists jobs, the job, and pods.
    for (seen, expected) in [("103", false), ("106", false), ("110", true)] {
        let mut pod = Pod::default();
        pod.metadata.resource_version = Some(seen.to_owned());
        process.context.stores.show(vec![pod]);
        assert_eq!(is_found(&process).await, expected, "{seen}");
    }
    assert_eq!(
        api.said(),
        ["LIST jobs", "LIST jobs", "LIST pods"].repeat(3)
    );
}

#[tokio::test]
async fn versions_of_two_resources_are_not_compared() {
    let api = Apiserver::new(fixtures::job_of_age(5, "completions: 1"));
    // As with --etcd-servers-overrides for pods.
    api.world.lock().pods_apart = 1_000_000;
    let process = Process::start(&api);
    process.plan(&api.job(), originals(1));
    process.look(&api).await.unwrap();
    api.run((0, 0));
    process.look(&api).await.unwrap();
    process.plan(&api.job(), vec![launch(0, AttemptKind::Clone)]);
    process.look(&api).await.unwrap();
    let newest = process.context.stores.newest_version(Versioned::Pods);
    assert!(newest > 1_000_000);
    assert!(!is_shown(&process).await);
    assert!(!is_found(&process).await);
    // Of the pods alone it is noticed, too.
    api.world.lock().pods_apart = 999_000;
    assert!(is_found(&process).await);
}

#[tokio::test]
async fn versions_that_went_forward_are_no_restore() {
    let (_api, process) = begun().await;
    assert!(!is_found(&process).await);
    assert!(!is_shown(&process).await);
}

#[tokio::test]
async fn a_deleted_pod_that_is_back_is_a_restore() {
    let (api, process) = begun().await;
    process.context.stores.show_deleted(api.pods().remove(0));
    assert!(is_found(&process).await);
    // One of the same name.
    for pod in api.world.lock().pods.values_mut() {
        pod.metadata.uid = Some("another".to_owned());
    }
    assert!(!is_found(&process).await);
}

#[tokio::test(start_paused = true)]
async fn a_missing_pod_that_stays_in_view_is_a_restore() {
    for goes in [true, false] {
        let (api, process) = begun().await;
        let check = check(&process);
        let noticed = tokio::spawn(async move { noticed(&check).await });
        let pods = std::mem::take(&mut api.world.lock().pods);
        assert_eq!(pods.len(), 1);
        tokio::time::sleep(PERIOD * 2).await;
        if goes {
            process.context.stores.show(vec![]);
        }
        assert!(!noticed.is_finished(), "a watch may begin again late");
        tokio::time::sleep(MISSING_PATIENCE + PERIOD).await;
        assert_eq!(noticed.is_finished(), !goes);
    }
}

#[tokio::test]
async fn an_older_job_or_pod_is_a_restore() {
    let (api, process) = begun().await;
    // The own write of the ledger counts, though no watch has shown it.
    api.world
        .lock()
        .job
        .as_mut()
        .unwrap()
        .metadata
        .resource_version = Some("7".to_owned());
    assert!(is_found(&process).await);

    let (api, process) = begun().await;
    for pod in api.world.lock().pods.values_mut() {
        pod.metadata.resource_version = Some("8".to_owned());
    }
    assert!(is_found(&process).await);
}

#[tokio::test]
async fn what_was_newest_at_the_last_look_is_looked_at_again() {
    let (api, process) = begun().await;
    let mut last = [(); 3].map(|()| LastLook::default());
    assert!(!went_back(&check(&process), &mut last).await);
    // After the restore the counter has caught up, and another pod is the newest.
    let shown = api.pods().remove(0);
    let (mut restored, mut other) = (shown.clone(), shown.clone());
    restored.metadata.resource_version = Some("8".to_owned());
    other.metadata.name = Some("other-1-0".to_owned());
    other.metadata.uid = Some("other".to_owned());
    let newest = api.world.lock().version.to_string();
    other.metadata.resource_version = Some(newest);
    let name = |pod: &Pod| pod.metadata.name.clone().unwrap();
    for pod in [&restored, &other] {
        api.world.lock().pods.insert(name(pod), pod.clone());
    }
    process.context.stores.show(vec![shown, other]);
    assert!(went_back(&check(&process), &mut last).await);
}

#[tokio::test]
async fn an_own_write_counts_for_the_counter() {
    let (api, process) = begun().await;
    // Without a job only the counter shows the restore.
    api.world.lock().job = None;
    api.world.lock().pods.clear();
    api.world.lock().version = 99;
    assert!(is_found(&process).await);
}

#[tokio::test]
async fn a_list_or_a_notice_of_an_older_object_is_a_restore() {
    let (api, process) = begun().await;
    let stores = &process.context.stores;
    stores.show(api.pods());
    assert!(!is_shown(&process).await);
    let mut older = api.pods();
    older[0].metadata.resource_version = Some("8".to_owned());
    stores.show(older);
    assert!(is_shown(&process).await);
}

#[tokio::test]
async fn an_answer_from_the_past_is_a_restore() {
    let api = Apiserver::new(fixtures::job_of_age(5, "completions: 1"));
    let process = Process::start(&api);
    let mut newer = (*api.job()).clone();
    newer.metadata.resource_version = Some("5000".to_owned());
    let stores = &process.context.stores;
    stores.note_version(Versioned::DeadlineJobs, &newer.metadata);
    process.reconcile(api.job()).await.unwrap();
    assert!(is_shown(&process).await);
}

#[tokio::test]
async fn a_live_job_from_the_past_is_a_restore() {
    let (api, process) = begun().await;
    // Its own ledger is not in the store any more.
    {
        let mut world = api.world.lock();
        let job = world.job.as_mut().unwrap();
        job.metadata.resource_version = Some("7".to_owned());
        job.status = None;
    }
    api.run((0, 0));
    api.exit((0, 0), 0, crate::clock::now());
    let error = process.look(&api).await.unwrap_err();
    assert!(matches!(error, Error::Conflict), "{error}");
    assert!(is_shown(&process).await);
}
