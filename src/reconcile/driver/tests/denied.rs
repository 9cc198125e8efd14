//! Some writes of a step are denied, and the other writes still happen.

use super::*;

/// A job of two tasks: a clone has won the first, and the second must be launched.
async fn won_and_waiting() -> (Apiserver, Process) {
    let api = Apiserver::new(fixtures::job_of_age(60, "completions: 2"));
    let process = Process::start(&api);
    for kind in [AttemptKind::Original, AttemptKind::Clone] {
        process.plan(&api.job(), vec![launch(0, kind)]);
        process.look(&api).await.unwrap();
    }
    api.run((0, 0));
    api.run((0, 1));
    process.look(&api).await.unwrap();
    api.exit((0, 1), 0, clock::now());
    process.plan(&api.job(), vec![launch(1, AttemptKind::Original)]);
    api.said();
    (api, process)
}

#[tokio::test]
async fn a_denied_deletion_keeps_back_neither_releases_nor_creations() {
    let (api, process) = won_and_waiting().await;
    api.refuse("DELETE pod", 403, "Forbidden", "a policy forbids it");
    let error = process.look(&api).await.unwrap_err();
    assert!(matches!(error, Error::Delete(_)), "{error}");
    let writes = [
        "PUT job status",
        "DELETE pod 0-0",
        "PATCH pod 0-1",
        "POST pod 1-0",
        "POST event CloneWon",
        "POST event PodWriteRefused",
    ];
    assert_eq!(api.said(), writes);
    // It is tried again, the rest is done.
    process.look(&api).await.unwrap_err();
    assert_eq!(api.said(), ["DELETE pod 0-0"]);
}

#[tokio::test]
async fn a_denied_release_keeps_back_no_creation() {
    let (api, process) = won_and_waiting().await;
    api.refuse("PATCH pod", 403, "Forbidden", "a policy forbids it");
    let error = process.look(&api).await.unwrap_err();
    assert!(matches!(error, Error::Release(_)), "{error}");
    assert!(api.said().contains(&"POST pod 1-0".to_owned()));
}
