//! The condition about stopped clones.

use super::*;
use crate::api::reason;

fn reported(status: &str, reason: &str) -> Option<(String, String)> {
    Some((status.to_owned(), reason.to_owned()))
}

#[tokio::test]
async fn a_stop_of_clones_is_written_once_and_live_clones_continue() {
    let (api, process) = race().await;
    let stores = &process.context.stores;
    stores.show_clone_stops(&[("team", "stop")]);
    process.look(&api).await.unwrap();
    assert_eq!(api.said(), ["PUT job status"], "no delete of the clone");
    let stopped = reported("True", reason::NAMESPACE_ANNOTATION);
    assert_eq!(api.condition(api::CLONES_STOPPED), stopped);
    process.look(&api).await.unwrap();
    assert_eq!(api.said(), WAITS);
    stores.show_clone_stops(&[("shed", "stop")]);
    process.look(&api).await.unwrap();
    let stopped = reported("True", reason::CLUSTER_ANNOTATION);
    assert_eq!(api.condition(api::CLONES_STOPPED), stopped);
    stores.show_clone_stops(&[("shed", "halt")]);
    process.look(&api).await.unwrap();
    let allowed = reported("False", reason::CLONES_ALLOWED);
    assert_eq!(api.condition(api::CLONES_STOPPED), allowed);
    assert_eq!(api.said(), ["PUT job status", "PUT job status"]);
}

#[tokio::test]
async fn a_clone_planned_before_a_clone_stop_is_not_launched_after_it() {
    let api = Apiserver::new(fixtures::job_of_age(60, "completions: 2"));
    let process = Process::start(&api);
    process.plan(&api.job(), originals(1));
    process.look(&api).await.unwrap();
    api.run((0, 0));
    api.said();
    let stores = &process.context.stores;
    stores.show_clone_stops(&[("team", "stop")]);
    let slice = [(1, AttemptKind::Original), (0, AttemptKind::Clone)];
    let slice = slice.map(|(task, kind)| launch(task, kind)).to_vec();
    process.plan(&api.job(), slice.clone());
    process.look(&api).await.unwrap();
    assert_eq!(api.said(), ["PUT job status", "POST pod 1-0"]);
    assert!(process.is_drained().await);
    stores.show_clone_stops(&[]);
    process.plan(&api.job(), slice);
    process.look(&api).await.unwrap();
    assert_eq!(
        api.said(),
        ["PUT job status", "POST pod 0-1", "POST event CloneLaunched"]
    );
}
