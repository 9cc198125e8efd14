//! The slot time of ended attempts, which a budget of clones requires.

use shed_core::snapshot::{JobSnapshot, SlotTime};
use shed_core::time::Span;

use super::*;
use crate::planner::observation;

/// A job of two tasks. Task 0 has an original, launched a minute ago, and a clone, launched half a minute ago. Both
/// run.
async fn racing(change: &str) -> (Apiserver, Process, Instant) {
    let spec = format!("{{completions: 2, parallelism: 1, {change}}}");
    let api = Apiserver::new(fixtures::job_of_age(90, &spec));
    let process = Process::start(&api);
    for kind in [AttemptKind::Original, AttemptKind::Clone] {
        process.plan(&api.job(), vec![launch(0, kind)]);
        process.look(&api).await.unwrap();
    }
    let now = Instant(clock::now().0 / 1000 * 1000);
    edit(&api, |job| {
        let status = job.status.as_mut().unwrap();
        let task = status.ledger.as_mut().unwrap().tasks.get_mut(&0).unwrap();
        for (attempt, seconds) in task.attempts.iter_mut().zip([60, 30]) {
            attempt.launched = now.plus(Span::from_seconds(-seconds));
        }
    });
    // The process that recorded the launches has crashed.
    let process = Process::start(&api);
    api.run((0, 0));
    api.run((0, 1));
    (api, process, now)
}

fn seen(process: &Process) -> JobSnapshot {
    let view = observation::view(&process.context.shared);
    view.snapshot.jobs.into_iter().next().unwrap()
}

fn seconds(own: i64, clones: i64) -> SlotTime {
    let [own, clones] = [own, clones].map(Span::from_seconds);
    SlotTime { own, clones }
}

#[tokio::test]
async fn the_slot_time_of_each_end_is_recorded_once_despite_a_crash() {
    let (api, process, now) = racing("speculation: {budget: 0.5}").await;
    let ago = |seconds: i64| now.plus(Span::from_seconds(-seconds));
    api.exit((0, 1), 0, ago(10));
    process.look(&api).await.unwrap();
    let spent = |api: &Apiserver| ledger(&json_of(api)).slot_time;
    assert_eq!(spent(&api), seconds(0, 20), "the clone that won");
    let process = Process::start(&api);
    api.exit((0, 0), 143, ago(5));
    process.look(&api).await.unwrap();
    assert_eq!(spent(&api), seconds(55, 20), "the loser");
    let process = Process::start(&api);
    process.look(&api).await.unwrap();
    assert_eq!(spent(&api), seconds(55, 20));
    assert_eq!(seen(&process).ended_slot_time, seconds(55, 20));
    assert_eq!(seen(&process).rules.clone_budget, Some(0.5));
}

#[tokio::test]
async fn without_a_budget_no_slot_time_is_recorded() {
    let (api, process, now) = racing("").await;
    api.exit((0, 1), 0, now);
    process.look(&api).await.unwrap();
    let recorded = ledger(&json_of(&api));
    assert_eq!(
        (recorded.counts.won, recorded.slot_time),
        (1, seconds(0, 0))
    );
}

fn json_of(api: &Apiserver) -> serde_json::Value {
    serde_json::to_value(&*api.job()).unwrap()
}
