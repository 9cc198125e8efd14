use super::*;
use crate::api::{ANNOTATION_CLONES, LABEL_SHARE};
use crate::fixtures;
use crate::reconcile::mock::{Apiserver, Process};

#[tokio::test]
async fn an_invalid_value_is_reported_once_with_the_fix() {
    let api = Apiserver::new(fixtures::job(""));
    let process = Process::start(&api);
    let stores = &process.context.stores;
    let mut reported = Arc::default();
    let halt = ("team", ANNOTATION_CLONES, "halt");
    stores.show_namespaces(&[halt, ("a", ANNOTATION_CLONES, "stop")]);
    for _ in 0..2 {
        look(&process.context, &mut reported);
    }
    stores.show_namespaces(&[halt]);
    look(&process.context, &mut reported);
    process.send_events().await;
    let event = api.call("POST event").body;
    assert_eq!(event["regarding"]["kind"], "Namespace");
    assert_eq!(event["regarding"]["name"], "team");
    let note = event["note"].as_str().unwrap();
    assert!(
        note.contains("invalid value `halt`") && note.contains("use stop"),
        "{note}"
    );
    assert_eq!(api.said(), ["POST event UnknownAnnotationValue"]);
    stores.show_namespaces(&[("team", ANNOTATION_CLONES, "Stop")]);
    look(&process.context, &mut reported);
    process.send_events().await;
    assert_eq!(api.said().len(), 1, "another value");
}

#[tokio::test]
async fn an_invalid_share_is_reported_on_its_namespace() {
    let api = Apiserver::new(fixtures::job(""));
    let process = Process::start(&api);
    let mut reported = Arc::default();
    process
        .context
        .stores
        .show_namespaces(&[("team", LABEL_SHARE, "0")]);
    look(&process.context, &mut reported);
    process.send_events().await;
    let event = api.call("POST event").body;
    assert_eq!(
        (&event["type"], &event["reason"]),
        (&"Warning".into(), &"UnknownLabelValue".into())
    );
    let note = event["note"].as_str().unwrap();
    let words =
        "label shed.dev/share: invalid value `0`: the weight is 1: use a number from 0.001 to 1000";
    assert!(note.starts_with(words), "{note}");
}

#[tokio::test]
async fn a_metric_shows_that_settings_cannot_be_read() {
    let api = Apiserver::new(fixtures::job(""));
    let process = Process::start(&api);
    let stores = &process.context.stores;
    let mut reported = Arc::default();
    let mut unreadable = || {
        look(&process.context, &mut reported);
        process.context.metrics.shares.settings_unreadable.get()
    };
    stores.show_namespaces(&[]);
    assert_eq!(unreadable(), 0);
    stores.hide_namespaces();
    assert_eq!(unreadable(), 1);
}
