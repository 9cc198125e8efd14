use prometheus_client::metrics::counter::Counter;

use super::*;
use crate::api;
use crate::controller::mock::{Apiserver, Process};
use crate::fixtures;
use crate::lease::fence::Fence;
use crate::restored::doubt::Doubt;

/// A poll of the apiserver's job that does not end.
fn stuck(api: &Apiserver) -> Stuck {
    Stuck {
        job: Some(api.job()),
        term: Term {
            writes: Fence::new(None, Counter::default()),
            doubt: Doubt::new(),
        },
    }
}

async fn end_on_a_thread(api: &Apiserver, stuck: Stuck) {
    let client = api.client.clone();
    let ending = move || note_and_log(&stuck, || Ok(client));
    tokio::task::spawn_blocking(ending).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_leader_leaves_the_job_alone_whose_poll_did_not_end() {
    let api = Apiserver::new(fixtures::job_of_age(0, ""));
    end_on_a_thread(&api, stuck(&api)).await;
    assert_eq!(api.said(), ["GET job", "PUT job status"]);
    let expected = ("True".to_owned(), "ReconcileStuck".to_owned());
    assert_eq!(api.condition(api::QUARANTINED), Some(expected));
    let next = Process::start(&api);
    next.plan(&api.job(), vec![]);
    for _ in 0..3 {
        next.look(&api).await.unwrap();
    }
    // Who found it out could not say so any more.
    assert_eq!(api.said(), ["POST event ReconcileStuck"]);
    let page = next.context.metrics.page().unwrap();
    let counted = r#"shed_reconcile_crashes_total{reason="stuck"} 1"#;
    assert!(page.contains(counted), "{page}");
    assert!(next.is_drained().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_note_that_is_refused_does_not_keep_the_process_from_ending() {
    let api = Apiserver::new(fixtures::job_of_age(0, ""));
    api.refuse("PUT job", 500, "InternalError", "etcd is away");
    end_on_a_thread(&api, stuck(&api)).await;
    assert_eq!(api.said(), ["GET job", "PUT job status"]);
    assert_eq!(api.condition(api::QUARANTINED), None);
}

#[test]
fn a_poll_that_is_about_no_single_job_is_noted_on_none() {
    let of_planner = Stuck {
        job: None,
        term: Term {
            writes: Fence::new(None, Counter::default()),
            doubt: Doubt::new(),
        },
    };
    note_and_log(&of_planner, || panic!("a client is made"));
}
