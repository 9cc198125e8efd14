//! Tasks whose input is divided between attempts (`resume: Range`).

use k8s_openapi::api::core::v1::Pod;
use shed_core::plan::Launch;
use shed_core::snapshot::ResumePoint;

use super::*;
use crate::api::{AttemptCounts, SegmentEntry};

/// A clone of task 0 that takes its input from this unit on.
fn clone_from(index: u32, at: &str) -> Move {
    let Move::Launch(plain) = launch(index, AttemptKind::Clone) else {
        panic!("a launch");
    };
    Move::Launch(Launch {
        resume: Some(ResumePoint {
            progress: 0.4,
            checkpoint: at.into(),
        }),
        ..plain
    })
}

/// A job of one task, whose original is at 20 of 100.
async fn at_20() -> (Apiserver, Process) {
    let spec = "{completions: 1, resume: Range, progress: {file: {}}}";
    let api = Apiserver::new(fixtures::job_of_age(60, spec));
    let process = Process::start(&api);
    process.plan(&api.job(), originals(1));
    process.look(&api).await.unwrap();
    api.run((0, 0));
    answers(&api, (0, 0), "20/100");
    process.look(&api).await.unwrap();
    api.said();
    (api, process)
}

fn answers(api: &Apiserver, id: AttemptId, answer: &str) {
    api.world.lock().answers.insert(id, answer.to_owned());
}

/// The same, divided at 40; the clone's pod is there, and runs if it should.
async fn divided(clone_runs: bool) -> (Apiserver, Process) {
    let (api, process) = at_20().await;
    process.plan(&api.job(), vec![clone_from(0, "40/100")]);
    process.look(&api).await.unwrap();
    if clone_runs {
        api.run((1, 0));
        process.look(&api).await.unwrap();
    }
    api.said();
    (api, process)
}

fn parts(api: &Apiserver) -> Vec<SegmentEntry> {
    let status = api.job().status.clone().unwrap();
    status.ledger.unwrap().segments.values().cloned().collect()
}

/// The segments that are not dropped, in the order of the input.
fn tiles(api: &Apiserver) -> Vec<(u64, u64)> {
    let mut tiles: Vec<_> = parts(api)
        .into_iter()
        .filter(|part| !part.dropped)
        .map(|part| (part.start, part.end))
        .collect();
    tiles.sort_unstable();
    tiles
}

fn variable(pod: &Pod, name: &str) -> Option<String> {
    let containers = &pod.spec.as_ref().unwrap().containers;
    let mut variables = containers[0].env.iter().flatten();
    variables.find(|found| found.name == name)?.value.clone()
}

fn pod(api: &Apiserver, id: AttemptId) -> Pod {
    let name = pod_name(&api.job(), id);
    api.world.lock().pods.get(&name).cloned().unwrap()
}

/// Ends everything that runs and must stop, until no more calls are made.
async fn to_rest(api: &Apiserver, process: &Process) -> AttemptCounts {
    for _ in 0..6 {
        process.look(api).await.unwrap();
        api.kill_deleted();
    }
    let status = api.job().status.clone().unwrap();
    let open = status.ledger.unwrap().tasks;
    assert!(
        open.values().all(|task| task.attempts.is_empty()),
        "{open:?}"
    );
    status.attempts
}

fn is_complete(api: &Apiserver) -> bool {
    let status = api.job().status.clone().unwrap();
    status.phase.as_deref() == Some("Complete") && status.completed_indexes == "0"
}

#[tokio::test]
async fn parts_are_in_the_ledger_before_the_clone_has_a_pod() {
    let (api, process) = at_20().await;
    let original = pod(&api, (0, 0));
    assert_eq!(
        variable(&original, api::ENV_RANGE_START).as_deref(),
        Some("0")
    );
    assert_eq!(
        variable(&original, api::ENV_RANGE_END),
        None,
        "not known yet"
    );
    process.plan(&api.job(), vec![clone_from(0, "40/100"); 2]);
    process.look(&api).await.unwrap();
    let put = api.call("PUT job").body;
    let recorded = &put["status"]["ledger"]["segments"];
    assert_eq!(recorded[0]["end"], 40);
    assert_eq!(
        (&recorded[1]["start"], &recorded[1]["end"]),
        (&40.into(), &100.into())
    );
    let said = api.said();
    assert_eq!(said[0], "PUT job status");
    assert_eq!(
        said[said.len() - 3..],
        ["POST pod 1-0", "POST pod 1-1", "POST event CloneLaunched"]
    );
    let clone = pod(&api, (1, 0));
    assert_eq!(variable(&clone, api::ENV_INDEX).as_deref(), Some("0"));
    assert_eq!(
        variable(&clone, api::ENV_RANGE_START).as_deref(),
        Some("40")
    );
    assert_eq!(variable(&clone, api::ENV_RANGE_END).as_deref(), Some("100"));
    let host = clone.spec.unwrap().hostname;
    assert_eq!(
        host.as_deref(),
        Some("count-0"),
        "its task's, as batch/v1 says"
    );
    let labels = clone.metadata.labels.unwrap();
    assert_eq!(
        (&*labels[api::LABEL_INDEX], &*labels[api::LABEL_SEGMENT]),
        ("0", "1")
    );
}

#[tokio::test]
async fn a_task_is_done_when_its_winning_parts_tile_it() {
    let (api, process) = divided(true).await;
    api.exit_at((1, 0), "100/100");
    process.look(&api).await.unwrap();
    assert_eq!(api.job().status.as_ref().unwrap().succeeded, 0);
    api.exit_at((0, 0), "40/100\n");
    let counts = to_rest(&api, &process).await;
    assert!(is_complete(&api));
    assert_eq!((counts.won, counts.superseded, counts.failed), (2, 0, 0));
    assert_eq!(tiles(&api), [(0, 40), (40, 100)]);
    assert!(parts(&api).iter().all(|part| part.winner == Some(0)));
}

#[tokio::test]
async fn an_original_past_its_end_before_the_clone_starts_continues() {
    let (api, process) = divided(false).await;
    answers(&api, (0, 0), "45/100");
    process.look(&api).await.unwrap();
    assert_eq!(tiles(&api), [(0, 100)]);
    api.kill_deleted();
    api.exit_at((0, 0), "100/100");
    let counts = to_rest(&api, &process).await;
    assert!(is_complete(&api));
    assert_eq!((counts.won, counts.superseded, counts.failed), (1, 1, 0));
}

#[tokio::test]
async fn an_original_keeps_work_beyond_its_end_unless_another_won() {
    let (api, process) = divided(true).await;
    answers(&api, (0, 0), "45/100");
    process.look(&api).await.unwrap();
    assert_eq!(tiles(&api), [(0, 40), (40, 100)], "both run");
    api.exit_at((0, 0), "100/100");
    let counts = to_rest(&api, &process).await;
    assert!(is_complete(&api));
    assert_eq!((counts.won, counts.superseded), (1, 1));
    assert_eq!(tiles(&api), [(0, 100)]);

    let (api, process) = divided(true).await;
    api.exit_at((1, 0), "100/100");
    process.look(&api).await.unwrap();
    api.exit_at((0, 0), "100/100");
    process.look(&api).await.unwrap();
    assert!(!is_complete(&api), "its part was not done by itself");
    assert_eq!(api.job().status.as_ref().unwrap().attempts.failed, 1);
    process.plan(&api.job(), vec![launch(0, AttemptKind::Retry)]);
    process.look(&api).await.unwrap();
    let retry = pod(&api, (0, 1));
    assert_eq!(variable(&retry, api::ENV_RANGE_END).as_deref(), Some("40"));
    api.exit_at((0, 1), "40/100");
    to_rest(&api, &process).await;
    assert!(is_complete(&api));
    assert_eq!(tiles(&api), [(0, 40), (40, 100)]);
}

#[tokio::test]
async fn what_an_attempt_leaves_behind_is_a_part_of_its_own() {
    let (api, process) = divided(true).await;
    api.exit_at((0, 0), "30/100");
    process.look(&api).await.unwrap();
    assert_eq!(tiles(&api), [(0, 30), (30, 40), (40, 100)]);
    process.plan(&api.job(), vec![launch(2, AttemptKind::Original)]);
    process.look(&api).await.unwrap();
    assert_eq!(
        variable(&pod(&api, (2, 0)), api::ENV_RANGE_START).as_deref(),
        Some("30")
    );
    api.exit_at((2, 0), "40/100");
    api.exit_at((1, 0), "100/100");
    let counts = to_rest(&api, &process).await;
    assert!(is_complete(&api));
    assert_eq!((counts.won, counts.failed), (3, 0));
}

#[tokio::test]
async fn a_part_is_divided_again_and_again() {
    let (api, process) = divided(true).await;
    answers(&api, (1, 0), "50/100");
    process.plan(&api.job(), vec![clone_from(1, "70/100")]);
    process.look(&api).await.unwrap();
    assert_eq!(tiles(&api), [(0, 40), (40, 70), (70, 100)]);
    api.exit_at((0, 0), "40/100");
    api.exit_at((1, 0), "70/100");
    api.exit_at((2, 0), "100/100");
    let counts = to_rest(&api, &process).await;
    assert!(is_complete(&api));
    assert_eq!((counts.won, counts.clone_wins), (3, 2));
}

#[tokio::test]
async fn an_end_that_nobody_tells_is_no_end_of_a_part() {
    let (api, process) = divided(true).await;
    api.exit((0, 0), 0, clock::now());
    process.look(&api).await.unwrap();
    assert_eq!(api.job().status.as_ref().unwrap().attempts.failed, 1);
    // An undivided task never received a stop point, so its exit code is enough, as in any job.
    let (api, process) = at_20().await;
    api.exit((0, 0), 0, clock::now());
    to_rest(&api, &process).await;
    assert!(is_complete(&api));
}

/// The same, and the clone's segment has failed for good: four exits, as `backoffLimitPerIndex`
/// allows 3.
async fn part_failed() -> (Apiserver, Process) {
    let (api, process) = divided(true).await;
    for number in 0..4 {
        api.exit((1, number), 1, clock::now());
        process.plan(&api.job(), vec![launch(1, AttemptKind::Retry)]);
        process.look(&api).await.unwrap();
    }
    let status = api.job().status.clone().unwrap();
    assert_eq!((status.attempts.failed, &*status.failed_indexes), (4, "0"));
    api.said();
    (api, process)
}

#[test]
fn an_original_that_did_a_failed_segment_completes_its_task() {
    comes_to_an_end(async || {
        let (api, process) = part_failed().await;
        api.exit_at((0, 0), "100/100");
        let counts = to_rest(&api, &process).await;
        assert!(is_complete(&api));
        assert_eq!((counts.won, counts.failed), (1, 4));
        assert_eq!(tiles(&api), [(0, 100)]);
        assert_eq!(api.job().status.as_ref().unwrap().failed_indexes, "");
    });
}

#[tokio::test]
async fn a_failed_segment_stays_failed_until_an_original_has_done_it() {
    let (api, process) = part_failed().await;
    answers(&api, (0, 0), "45/100");
    process.look(&api).await.unwrap();
    assert_eq!(tiles(&api), [(0, 40), (40, 100)]);
    assert_eq!(api.job().status.as_ref().unwrap().failed_indexes, "0");
    // It ends before the end after all, which is not the end of a segment.
    api.exit_at((0, 0), "70/100");
    process.look(&api).await.unwrap();
    assert_eq!(tiles(&api), [(0, 40), (40, 100)]);
    assert_eq!(api.job().status.as_ref().unwrap().attempts.failed, 5);
}

#[tokio::test]
async fn a_division_survives_a_crash_at_every_call() {
    crash::survives(at_20, &[clone_from(0, "40/100")], 2).await;
}

#[tokio::test]
async fn going_beyond_survives_a_crash_at_every_call() {
    let begin = async || {
        let (api, process) = divided(true).await;
        api.exit_at((0, 0), "100/100");
        (api, process)
    };
    crash::survives(begin, &[], 5).await;
    let begin = async || {
        let (api, process) = divided(false).await;
        answers(&api, (0, 0), "45/100");
        (api, process)
    };
    crash::survives(begin, &[], 3).await;
}

#[test]
fn doing_what_has_failed_behind_survives_a_crash_at_every_call() {
    comes_to_an_end(async || {
        let begin = async || {
            let (api, process) = part_failed().await;
            api.exit_at((0, 0), "100/100");
            (api, process)
        };
        crash::survives(begin, &[], 3).await;
    });
}

#[tokio::test]
async fn ending_before_survives_a_crash_at_every_call() {
    let begin = async || {
        let (api, process) = divided(true).await;
        api.exit_at((0, 0), "30/100");
        (api, process)
    };
    crash::survives(begin, &[launch(2, AttemptKind::Original)], 3).await;
}
