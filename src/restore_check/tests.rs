use std::sync::Arc;
use std::time::Duration;

use shed_core::snapshot::AttemptKind;
use tokio::time::timeout;

use super::*;
use crate::fixtures;
use crate::reconcile::mock::{Apiserver, Fate, Process, launch, originals};

const LISTS: [&str; 2] = ["LIST jobs", "LIST pods"];

/// A process that has launched its first attempts, its watches up to date.
async fn begun() -> (Apiserver, Process) {
    let api = Apiserver::new(fixtures::job_of_age(5, "completions: 1"));
    let process = Process::start(&api);
    process.plan(&api.job(), originals(1));
    process.look(&api).await.unwrap();
    process.context.shared.stores.show(api.pods());
    api.said();
    (api, process)
}

#[tokio::test]
async fn the_counter_that_goes_back_is_noticed() {
    let api = Apiserver::new(fixtures::job(""));
    let process = Process::start(&api);
    // Each list is one version newer than the one before, from 101 on.
    for (seen, expected) in [("102", false), ("104", false), ("107", true)] {
        let mut pod = Pod::default();
        pod.metadata.resource_version = Some(seen.to_owned());
        process.context.shared.stores.show(vec![pod]);
        assert_eq!(
            counter_went_back(&check(&process)).await,
            expected,
            "{seen}"
        );
    }
    assert_eq!(api.said(), LISTS.repeat(3));
}

#[tokio::test]
async fn versions_of_two_resources_are_not_compared() {
    let api = Apiserver::new(fixtures::job_of_age(5, "completions: 1"));
    // As with --etcd-servers-overrides for pods.
    api.world().pods_apart = 1_000_000;
    let process = Process::start(&api);
    process.plan(&api.job(), originals(1));
    process.look(&api).await.unwrap();
    api.run((0, 0));
    process.look(&api).await.unwrap();
    process.plan(&api.job(), vec![launch(0, AttemptKind::Clone)]);
    process.look(&api).await.unwrap();
    assert!(
        process
            .context
            .shared
            .stores
            .newest_version(Versioned::Pods)
            > 1_000_000
    );
    let no_doubt = process.context.doubt.settled();
    timeout(Duration::from_millis(20), no_doubt).await.unwrap();
    assert!(!counter_went_back(&check(&process)).await);
    assert!(!went_back(&process).await);
    // Of the pods alone it is noticed, too.
    api.world().pods_apart = 999_000;
    assert!(counter_went_back(&check(&process)).await);
    assert!(went_back(&process).await);
}

fn check(process: &Process) -> RestoreCheck {
    RestoreCheck {
        client: process.context.client.clone(),
        doubt: Arc::clone(&process.context.doubt),
        shared: Arc::clone(&process.context.shared),
    }
}

/// Whether lists show that the store was put back.
async fn went_back(process: &Process) -> bool {
    compare(&check(process)).await.unwrap() == Compared::Older
}

#[tokio::test]
async fn versions_that_went_forward_are_no_restore() {
    let (api, process) = begun().await;
    assert!(!went_back(&process).await);
    assert_eq!(api.said(), LISTS);
}

#[tokio::test]
async fn what_was_seen_to_go_and_is_back_is_a_restore_though_the_counter_has_caught_up() {
    let (api, process) = begun().await;
    process.context.shared.stores.show(vec![]);
    assert!(went_back(&process).await);

    // A pod that no watch has shown yet.
    let newer = api.world().version.to_string();
    for pod in api.world().pods.values_mut() {
        pod.metadata.resource_version = Some(newer.clone());
    }
    assert!(!went_back(&process).await);
}

#[tokio::test(start_paused = true)]
async fn what_lists_lack_must_go_from_view_or_the_store_was_put_back() {
    for goes in [true, false] {
        let (api, process) = begun().await;
        let check = check(&process);
        let noticed = tokio::spawn(async move { noticed(&check).await });
        let pods = std::mem::take(&mut api.world().pods);
        process.context.doubt.raise();
        process.context.doubt.settled().await;
        assert_eq!(pods.len(), 1);
        if goes {
            process.context.shared.stores.show(vec![]);
        }
        tokio::time::sleep(MISSING_PATIENCE - Duration::from_secs(1)).await;
        assert!(!noticed.is_finished(), "a watch may begin again late");
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(noticed.is_finished(), !goes);
    }
}

#[tokio::test]
async fn an_older_job_or_pod_is_a_restore_though_the_counter_has_caught_up() {
    let (api, process) = begun().await;
    // The own write of the ledger counts, though no watch has shown it.
    api.world().job.as_mut().unwrap().metadata.resource_version = Some("7".to_owned());
    assert!(went_back(&process).await);

    let (api, process) = begun().await;
    for pod in api.world().pods.values_mut() {
        pod.metadata.resource_version = Some("8".to_owned());
    }
    assert!(went_back(&process).await);
}

#[tokio::test]
async fn an_own_write_counts_for_the_counter() {
    let (api, process) = begun().await;
    // Without a job only the counter shows the restore.
    api.world().job = None;
    api.world().pods.clear();
    api.world().version = 99;
    assert!(went_back(&process).await);
}

#[tokio::test(start_paused = true)]
async fn after_a_watch_broke_nothing_is_done_until_lists_were_read() {
    let (api, process) = begun().await;
    let check = check(&process);
    let noticed = tokio::spawn(async move { noticed(&check).await });
    api.script(|_| Fate::LostBefore);
    process.context.doubt.raise();
    let pass = process.reconcile(api.job());
    assert!(timeout(Duration::from_secs(1), pass).await.is_err());
    assert!(api.said().iter().all(|call| call == "LIST jobs"));
    api.script(|_| Fate::Served);
    process.reconcile(api.job()).await.unwrap();
    assert!(!noticed.is_finished());
}

#[tokio::test(start_paused = true)]
async fn after_a_restore_nothing_is_done_any_more() {
    let (api, process) = begun().await;
    let check = check(&process);
    let noticed = tokio::spawn(async move { noticed(&check).await });
    api.world().version = 50;
    process.context.doubt.raise();
    let pass = process.reconcile(api.job());
    assert!(timeout(Duration::from_secs(1), pass).await.is_err());
    assert!(noticed.is_finished());
    assert_eq!(api.said(), ["LIST jobs"]);
}

#[tokio::test]
async fn an_answer_from_the_past_raises_doubt() {
    let api = Apiserver::new(fixtures::job_of_age(5, "completions: 1"));
    let process = Process::start(&api);
    let mut newer = (*api.job()).clone();
    newer.metadata.resource_version = Some("5000".to_owned());
    let stores = &process.context.shared.stores;
    stores.note_version(Versioned::DeadlineJobs, &newer.metadata);
    process.reconcile(api.job()).await.unwrap();
    assert_eq!(process.context.doubt.arisen().await, 1);
}
