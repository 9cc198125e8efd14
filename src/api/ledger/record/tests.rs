use super::*;
use shed_core::snapshot::SlotTime;

use crate::api::QuarantineEntry;

fn launch(task: u32, kind: AttemptKind) -> Launch {
    Launch {
        avoid: vec!["node-2".into()],
        ..shed_core::fixtures::launch(task, kind)
    }
}

fn written_and_read(ledger: &Ledger) -> Ledger {
    let status = DeadlineJobStatus {
        attempts: ledger.counts,
        ledger: Some(ledger.clone()),
        ..DeadlineJobStatus::default()
    };
    let text = serde_json::to_string(&status).unwrap();
    Ledger::from_status(Some(&serde_json::from_str(&text).unwrap())).unwrap()
}

fn race() -> Ledger {
    let mut ledger = Ledger::default();
    ledger.launch(&launch(3, AttemptKind::Original), Instant(1000));
    ledger.launch(&launch(3, AttemptKind::Clone), Instant(2000));
    ledger
}

#[test]
fn what_is_written_is_read_back() {
    let mut ledger = race();
    ledger.quarantine = Some(QuarantineEntry {
        reason: "ReconcilePanicked".to_owned(),
        count: 2,
        until: Instant(9000),
    });
    ledger.first_pass = Some(Instant(500));
    ledger.slot_time = SlotTime {
        own: Span(4000),
        clones: Span(1000),
    };
    ledger.keep_checkpoint(
        TaskIndex(3),
        &ResumePoint {
            progress: 0.4,
            checkpoint: "x".into(),
        },
    );
    ledger.kill(
        TaskIndex(3),
        AttemptNumber(1),
        KillKind::Prune,
        Instant(3000),
    );
    ledger.win(
        TaskIndex(3),
        AttemptNumber(0),
        Instant(5000),
        Some(Span(4000)),
    );
    assert_eq!(written_and_read(&ledger), ledger);
}

#[test]
fn numbers_are_never_used_twice_even_after_an_end() {
    let mut ledger = race();
    ledger.count(
        TaskIndex(3),
        AttemptNumber(1),
        Outcome::Superseded,
        RetryRule::PROMPT,
        Instant(0),
    );
    assert_eq!(
        ledger.launch(&launch(3, AttemptKind::Clone), Instant(0)),
        AttemptNumber(2)
    );
}

#[test]
fn an_attempt_is_counted_once_and_a_task_won_once() {
    let mut ledger = race();
    assert!(ledger.win(TaskIndex(3), AttemptNumber(1), Instant(9), None));
    assert!(!ledger.win(TaskIndex(3), AttemptNumber(0), Instant(8), None));
    let count = |ledger: &mut Ledger| {
        ledger.count(
            TaskIndex(3),
            AttemptNumber(0),
            Outcome::Superseded,
            RetryRule::PROMPT,
            Instant(9),
        )
    };
    assert_eq!(count(&mut ledger), Some(AttemptKind::Original));
    assert_eq!(count(&mut ledger), None);
    assert_eq!(
        (
            ledger.counts.won,
            ledger.counts.clone_wins,
            ledger.counts.superseded
        ),
        (1, 1, 1)
    );
    ledger.fold();
    assert!(ledger.tasks.is_empty());
    assert!(
        ledger.knows(3, 1),
        "a pod of a done task is still known as ours"
    );
}

#[test]
fn retries_back_off_exponentially_and_a_clones_failure_does_not() {
    let mut ledger = race();
    ledger.count(
        TaskIndex(3),
        AttemptNumber(1),
        Outcome::CloneFailed,
        RetryRule::PROMPT,
        Instant(0),
    );
    assert!(ledger.tasks[&3].retry_not_before.is_none());
    ledger.count(
        TaskIndex(3),
        AttemptNumber(0),
        Outcome::Failed,
        RetryRule::PROMPT,
        Instant(0),
    );
    let wait = |ledger: &Ledger| ledger.tasks[&3].retry_not_before;
    assert_eq!(wait(&ledger), Some(Instant(1000)));
    for number in 2..12 {
        ledger.launch(&launch(3, AttemptKind::Retry), Instant(0));
        ledger.count(
            TaskIndex(3),
            AttemptNumber(number),
            Outcome::Failed,
            RetryRule::PROMPT,
            Instant(0),
        );
    }
    assert_eq!(wait(&ledger), Some(Instant(60_000)));
}

#[test]
fn a_checkpoint_never_goes_back() {
    let mut ledger = race();
    for progress in [0.4, 0.2, 0.6, 0.5] {
        let checkpoint = progress.to_string().into();
        ledger.keep_checkpoint(
            TaskIndex(3),
            &ResumePoint {
                progress,
                checkpoint,
            },
        );
    }
    let kept = ledger.tasks[&3].resume.as_ref().unwrap();
    assert_eq!(&*kept.checkpoint, "0.6");
}

#[test]
fn a_ledger_without_a_form_is_read_and_a_newer_one_is_not() {
    let status = |ledger: serde_json::Value| -> DeadlineJobStatus {
        serde_json::from_value(serde_json::json!({"ledger": ledger})).unwrap()
    };
    let old = status(serde_json::json!({"revision": 3, "done": "0-2"}));
    let ledger = Ledger::from_status(Some(&old)).unwrap();
    assert_eq!(
        (ledger.revision, ledger.done.to_string()),
        (3, "0-2".to_owned())
    );
    assert_eq!(ledger.form, LEDGER_FORM);
    let newer = status(serde_json::json!({"form": LEDGER_FORM + 1, "done": ["0"]}));
    let error = Ledger::from_status(Some(&newer)).unwrap_err();
    assert_eq!(error, NewerForm(LEDGER_FORM + 1));
}

#[test]
fn the_slot_time_is_two_numbers_and_absent_where_there_is_none() {
    let ledger = race();
    let text = serde_json::to_string(&ledger).unwrap();
    assert!(!text.contains("slotTimeMs"), "{text}");
    let spent = Ledger {
        slot_time: SlotTime {
            own: Span(4000),
            clones: Span(1000),
        },
        ..ledger
    };
    let text = serde_json::to_string(&spent).unwrap();
    let expected = r#""slotTimeMs":{"own":4000,"clones":1000}"#;
    assert!(text.contains(expected), "{text}");
}
