use serde_json::json;
use tokio::time::timeout;

use super::*;
use crate::cluster::Stores;
use crate::fixtures;
use crate::reconcile::mock::{Apiserver, Process};

/// The reports about a job with these values, after two equal checks.
async fn said_of(changes: &[(&str, serde_json::Value)]) -> (Vec<String>, String, String) {
    let job = fixtures::job("");
    let api = Apiserver::new(job.clone());
    let (stores, _writer) = Stores::of_objects(vec![fixtures::object(&job, changes)], vec![]);
    let process = Process::with_stores(&api, stores);
    let looks = timeout(PERIOD * 3 / 2, run(Arc::clone(&process.context))).await;
    assert!(looks.is_err(), "it never stops polling");
    process.send_events().await;
    let note = api.call("POST event").body["note"]
        .as_str()
        .unwrap()
        .to_owned();
    (api.said(), note, process.context.metrics.page().unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_job_that_can_not_be_read_is_named_once_with_field_and_fix() {
    let (said, note, page) = said_of(&[("/spec/onMiss", json!("Postpone"))]).await;
    assert_eq!(said, ["POST event Unreadable"]);
    let field = "spec.onMiss: unknown variant `Postpone`, expected `Fail` or `Continue`";
    assert!(
        note.starts_with(field) && note.contains("or change the field"),
        "{note}"
    );
    assert!(page.contains("shed_jobs_undecodable 1\n"), "{page}");
    assert!(
        page.contains("shed_reconcile_errors_total{reason=\"undecodable\"} 1\n"),
        "{page}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_field_that_is_not_heeded_is_named_and_counts_for_no_error() {
    let (said, note, page) = said_of(&[("/spec/novel", json!({"depth": 2}))]).await;
    assert_eq!(said, ["POST event UnknownField"]);
    assert!(
        note.starts_with("spec.novel: unknown") && note.contains("remove it"),
        "{note}"
    );
    assert!(page.contains("shed_jobs_undecodable 0\n"), "{page}");
}

#[tokio::test]
async fn an_idle_look_visits_nothing() {
    let job = fixtures::job("");
    let api = Apiserver::new(job.clone());
    let object = fixtures::object(&job, &[("/spec/novel", json!(1))]);
    let (stores, _writer) = Stores::of_objects(vec![object], vec![]);
    let process = Process::with_stores(&api, stores);
    let (mut reported, mut seen) = (BTreeMap::new(), None);
    let stores = &process.context.stores;
    stores.visits();
    look(&process.context, &mut reported, &mut seen).await;
    assert_eq!(stores.visits(), 1);
    look(&process.context, &mut reported, &mut seen).await;
    assert_eq!(stores.visits(), 0);
    process.send_events().await;
    assert_eq!(api.said().len(), 1);
}
