//! The condition about stopped clones.

use super::*;
use crate::api::reason;

fn told(status: &str, reason: &str) -> Option<(String, String)> {
    Some((status.to_owned(), reason.to_owned()))
}

#[tokio::test]
async fn a_stop_of_clones_is_written_once_and_live_clones_continue() {
    let (api, process) = race().await;
    let stores = &process.context.shared.stores;
    stores.show_clone_stops(&[("team", "stop")]);
    process.look(&api).await.unwrap();
    assert_eq!(api.said(), ["PUT job status"], "no delete of the clone");
    let stopped = told("True", reason::NAMESPACE_ANNOTATION);
    assert_eq!(api.condition(api::CLONES_STOPPED), stopped);
    process.look(&api).await.unwrap();
    assert_eq!(api.said(), WAITS);
    stores.show_clone_stops(&[("shed", "stop")]);
    process.look(&api).await.unwrap();
    let stopped = told("True", reason::CLUSTER_ANNOTATION);
    assert_eq!(api.condition(api::CLONES_STOPPED), stopped);
    stores.show_clone_stops(&[("shed", "halt")]);
    process.look(&api).await.unwrap();
    let allowed = told("False", reason::CLONES_ALLOWED);
    assert_eq!(api.condition(api::CLONES_STOPPED), allowed);
    assert_eq!(api.said(), ["PUT job status", "PUT job status"]);
}
