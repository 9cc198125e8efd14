use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use super::*;
use crate::api;
use crate::fixtures;
use crate::lease::write_gate::WriteGate;
use crate::metrics::loose_counter;
use crate::reconcile::mock::{Apiserver, Process};
use crate::watchdog::{self, Polls, Term, Watch};

/// A poll that is about no single job, in a term that may write.
fn nowhere() -> Stuck {
    Stuck {
        job: None,
        term: Term {
            writes: WriteGate::new(None, loose_counter()),
        },
    }
}

/// A poll of the apiserver's job that does not end.
fn stuck(api: &Apiserver) -> Stuck {
    Stuck {
        job: Some(api.job()),
        ..nowhere()
    }
}

async fn end_on_a_thread(api: &Apiserver, stuck: Stuck) {
    let client = api.client.clone();
    let ending = move || note_and_log(&stuck, &Clock::for_tests(), || Ok(client));
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
    // The process that found it could no longer post the event.
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
    note_and_log(&nowhere(), &Clock::new(), || panic!("a client is made"));
}

const CHILD: &str = "SHED_TEST_STUCK_CHILD";

/// The process that the next test starts: its only thread is caught, and its apiserver is away.
#[test]
fn child_with_a_poll_that_does_not_end() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let config = Config::new("http://127.0.0.1:1".parse().unwrap());
    let polls = Arc::new(Polls::default());
    let tick = Duration::from_millis(2);
    let clock = Clock::new();
    watchdog::start(&polls, tick, move |stuck| end(&config, &clock, &stuck)).unwrap();
    let Stuck { term, .. } = nowhere();
    let job = Some(Arc::new(fixtures::job("")));
    let _poll = Watch::new(polls, term).begin(job);
    loop {
        std::hint::spin_loop();
    }
}

#[test]
fn a_process_exits_with_its_own_code_even_if_no_job_is_noted() {
    let this = "operator::stuck_poll::tests::child_with_a_poll_that_does_not_end";
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", this, "--test-threads=1"])
        .env(CHILD, "1")
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let patience = 2 * END_MAX;
    let began = Instant::now();
    let ended = loop {
        if let Some(ended) = child.try_wait().unwrap() {
            break ended;
        }
        if began.elapsed() > patience {
            child.kill().unwrap();
        }
        thread::sleep(Duration::from_millis(50));
    };
    assert_eq!(ended.code(), Some(EXIT_CODE), "{ended}");
}
