use super::*;
use crate::fixtures;
use crate::reconcile::mock::{Apiserver, Process};

#[tokio::test]
async fn an_unknown_value_is_reported_once_with_the_fix() {
    let api = Apiserver::new(fixtures::job(""));
    let process = Process::start(&api);
    let stores = &process.context.stores;
    let mut reported = Arc::default();
    stores.show_clone_stops(&[("team", "halt"), ("a", "stop")]);
    for _ in 0..2 {
        look(&process.context, &mut reported);
    }
    stores.show_clone_stops(&[("team", "halt")]);
    look(&process.context, &mut reported);
    process.send_events().await;
    let event = api.call("POST event").body;
    assert_eq!(event["regarding"]["kind"], "Namespace");
    assert_eq!(event["regarding"]["name"], "team");
    let note = event["note"].as_str().unwrap();
    assert!(
        note.contains("unknown value `halt`") && note.contains("use stop"),
        "{note}"
    );
    assert_eq!(api.said(), ["POST event UnknownAnnotationValue"]);
    stores.show_clone_stops(&[("team", "Stop")]);
    look(&process.context, &mut reported);
    process.send_events().await;
    assert_eq!(api.said().len(), 1, "another value");
}
