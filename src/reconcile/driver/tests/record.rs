//! The job's record: what a rescue leaves in it, and that it causes no write.

use super::*;
use crate::api::{AttemptState, JobRecord, RECORD_MAX, Verdict};

fn record(api: &Apiserver) -> JobRecord {
    let status = api.job().status.clone().unwrap();
    status.record.expect("a record")
}

#[tokio::test]
async fn a_rescue_stays_readable_after_its_pods_are_gone() {
    let (api, process) = two_running("").await;
    process.plan(&api.job(), clones(1));
    process.look(&api).await.unwrap();
    let granted = record(&api).decisions;
    assert_eq!(granted.len(), 1);
    assert_eq!((granted[0].verdict, granted[0].task), (Verdict::Granted, 0));
    api.run((0, 1));
    api.exit((0, 1), 0, clock::now());
    process.look(&api).await.unwrap();
    api.kill_deleted();
    process.look(&api).await.unwrap();
    // The next leader continues it.
    let process = Process::start(&api);
    api.exit((1, 0), 0, clock::now());
    process.look(&api).await.unwrap();
    process.look(&api).await.unwrap();
    let status = api.job().status.clone().unwrap();
    assert_eq!(status.phase.as_deref(), Some("Complete"));
    let record = status.record.unwrap();
    let lines = record.attempts.iter();
    let lines: Vec<_> = lines.map(|it| (it.task, it.attempt, it.state)).collect();
    let expected = [
        (0, 0, AttemptState::Stopped),
        (0, 1, AttemptState::Won),
        (1, 0, AttemptState::Won),
    ];
    assert_eq!(lines, expected);
    for line in &record.attempts {
        assert_eq!(line.node.as_deref(), Some("node-1"));
        assert!(line.start_time.is_some() && line.end_time.is_some());
    }
    assert_eq!(record.omitted_attempts, 0);
    assert_eq!(record.decisions, granted);
    let last = record.pocd.last().map(|point| point.pocd);
    assert_eq!(last, Some(api::Pocd::MET));
    assert!(crate::size::bytes(&record) <= RECORD_MAX);
}

#[tokio::test]
async fn a_record_changed_by_another_client_causes_no_write() {
    let (api, process) = two_running("").await;
    let whole = record(&api);
    assert_eq!(whole.attempts.len(), 2);
    edit(&api, |job| {
        let record = job.status.as_mut().unwrap().record.as_mut().unwrap();
        record.attempts.clear();
        record.omitted_attempts = 9;
    });
    process.look(&api).await.unwrap();
    edit(&api, |job| job.status.as_mut().unwrap().record = None);
    process.look(&api).await.unwrap();
    assert_eq!(api.said(), WAITS);
    // The next write for another reason has it again.
    process.plan(&api.job(), clones(1));
    process.look(&api).await.unwrap();
    assert_eq!(record(&api).attempts.len(), 3);
}
