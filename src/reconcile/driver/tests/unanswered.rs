//! Writes of the ledger that are carried out and not answered.

use super::*;
use crate::reconcile::mock::Call;

/// The next write of the ledger is carried out, and its answer is lost.
fn lose_an_answer(api: &Apiserver) {
    let mut is_lost = false;
    api.script(move |call: &Call| {
        if call.words != "PUT job status" || std::mem::replace(&mut is_lost, true) {
            Fate::Served
        } else {
            Fate::LostAfter
        }
    });
}

/// A job of one task with a distant deadline, and the calls until its attempt runs.
async fn running() -> (Apiserver, Process) {
    let api = Apiserver::new(fixtures::job_of_age(60, "completions: 1"));
    let process = Process::start(&api);
    process.plan(&api.job(), originals(1));
    process.look(&api).await.unwrap();
    api.run((0, 0));
    process.look(&api).await.unwrap();
    api.said();
    (api, process)
}

fn count(process: &Process, series: &str) -> f64 {
    let page = process.context.metrics.page().unwrap();
    let line = page.lines().find(|line| line.starts_with(series));
    let value = line.and_then(|line| line.rsplit(' ').next()?.parse().ok());
    value.unwrap_or(0.0)
}

#[tokio::test]
async fn the_effect_of_an_unanswered_write_is_reported_once_it_shows() {
    let (api, process) = running().await;
    api.exit((0, 0), 0, clock::now());
    lose_an_answer(&api);
    process.look(&api).await.unwrap_err();
    assert_eq!(api.said(), ["PUT job status"]);
    for _ in 0..3 {
        process.look(&api).await.unwrap();
    }
    let said = api.said();
    let events: Vec<_> = said
        .iter()
        .filter(|words| words.contains("event"))
        .collect();
    assert_eq!(events, ["POST event Completed"], "{said:?}");
    assert_eq!(process.deadlines(&api), [1, 0, 0]);
    let won = "shed_attempts_finished_total{kind=\"original\",outcome=\"won\"}";
    assert_eq!(
        count(&process, won),
        1.0,
        "{}",
        process.context.metrics.page().unwrap()
    );
    assert!(process.memory(&api.job()).reconcile.unanswered.is_empty());
}

#[tokio::test]
async fn a_write_that_was_not_carried_out_is_announced_when_it_is() {
    let (api, process) = running().await;
    api.exit((0, 0), 0, clock::now());
    api.refuse("PUT job", 500, "InternalError", "etcd is away");
    process.look(&api).await.unwrap_err();
    api.script(|_| Fate::Served);
    for _ in 0..3 {
        process.look(&api).await.unwrap();
    }
    let said = api.said();
    let events = said.iter().filter(|words| words.contains("event"));
    assert_eq!(events.count(), 1, "{said:?}");
    assert_eq!(process.deadlines(&api), [1, 0, 0]);
}

#[tokio::test]
async fn launches_of_an_unanswered_write_count_despite_a_conflict() {
    let (api, process) = running().await;
    let stale = api.job();
    lose_an_answer(&api);
    process.plan(&stale, vec![launch(0, AttemptKind::Clone)]);
    process.reconcile(Arc::clone(&stale)).await.unwrap_err();
    // The watch is behind, and so is the next write.
    process.plan(&stale, vec![launch(0, AttemptKind::Clone)]);
    let error = process.reconcile(stale).await.unwrap_err();
    assert!(matches!(error, Error::Conflict), "{error}");
    process.look(&api).await.unwrap();
    let launched = "shed_attempts_launched_total{kind=\"clone\"}";
    assert_eq!(count(&process, launched), 1.0);
    assert_eq!(api.job().status.as_ref().unwrap().attempts.clones, 1);
}
