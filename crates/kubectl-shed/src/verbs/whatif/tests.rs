use serde_json::{Value, json};
use shed::cluster::pod::PodFacts;
use shed_core::snapshot::AttemptKind;

use super::*;

fn now() -> Timestamp {
    "2030-01-31T08:00:00Z".parse().unwrap()
}

#[test]
fn a_deadline_is_an_instant_or_a_duration_from_now() {
    let read = |text| instant(text, now()).map(|found| found.to_string());
    assert_eq!(read("90m").unwrap(), "2030-01-31T09:30:00Z");
    assert_eq!(
        read("2030-01-31T10:00:00+01:00").unwrap(),
        "2030-01-31T09:00:00Z"
    );
    for (text, words) in [
        ("soon", "use an instant such as"),
        ("-5m", "use an instant such as"),
        ("2029-01-01T00:00:00Z", "is over"),
    ] {
        assert!(
            read(text).unwrap_err().to_string().contains(words),
            "{text}"
        );
    }
}

#[test]
fn both_predictions_are_shown() {
    let figures = |slots, pocd, clones, waiting| Prediction {
        slots,
        pocd: Some(Pocd::nearest(pocd)),
        clones,
        waiting,
        ..Prediction::default()
    };
    let mut answer = Answer {
        time: now().into(),
        then: Prediction {
            estimated_completion_time: Some(Time("2030-01-31T09:00:00Z".parse().unwrap())),
            ..figures(60, 0.949, 3, 0)
        },
        now: figures(40, 0.62, 1, 4),
    };
    let table = "           POCD  SLOTS  CLONES  WAITING  ENDS AT\n\
         now       0.620     40       1        4  unknown\n\
         60 slots  0.949     60       3        0  2030-01-31 09:00:00Z (in 1h00m)\n";
    let text = answer.text("60 slots", now());
    assert_eq!(text.strip_prefix(table), Some(ALONE));
    answer.then.is_cut_short = true;
    assert!(answer.text("60 slots", now()).ends_with(CUT_SHORT));
}

/// Since the tasks began.
const MINUTES: i64 = 20;

/// A job of 8 tasks with 4 attempts, whose deadline is in 25 minutes. The record has three attempts at half of their
/// work, and the one of task 3 at a tenth.
fn nightly() -> Facts {
    let spec = json!({"completions": 8, "idempotency": "Safe", "deadline": {"at": "2030-01-31T08:25:00Z"},
        "progress": {"file": {}}, "template": {"spec": {"containers": [{"name": "task", "image": "i"}]}}});
    let object: DeadlineJob = serde_json::from_value(json!({"apiVersion": "shed.dev/v1alpha1", "kind": "DeadlineJob",
        "metadata": {"name": "nightly", "namespace": "team-a", "uid": "u", "creationTimestamp": "2030-01-31T07:39:00Z"},
        "spec": spec}))
    .unwrap();
    let job = validate::validate(&object).unwrap();
    let now = clock::instant(&now().into());
    let began = Instant(now.0 - MINUTES * 60_000);
    let mut ledger = Ledger::default();
    for task in 0..4 {
        ledger.launch(
            &shed_core::fixtures::launch(task, AttemptKind::Original),
            began,
        );
    }
    ledger.started = Some(began);
    let attempts = (0..4).map(|task| {
        let progress = if task == 3 { "0.100" } else { "0.500" };
        json!({"task": task, "attempt": 0, "kind": "Original", "state": "Running", "progress": progress,
            "startTime": clock::time(began)})
    });
    let attempts: Vec<Value> = attempts.collect();
    let record = json!({"time": clock::time(now), "attempts": attempts});
    let record: JobRecord = serde_json::from_value(record).unwrap();
    let seen = record
        .attempts
        .iter()
        .map(|one| (one.clone(), pod(one, began)));
    let seen = seen.collect();
    observed(
        Facts::new(Arc::new(job), ledger, now, now),
        Some(record),
        seen,
    )
}

fn pod(attempt: &shed::api::AttemptRecord, began: Instant) -> PodFacts {
    let (task, number) = (attempt.task.unsigned_abs(), attempt.attempt.unsigned_abs());
    let name = shed::pod_names::attempt_pod("nightly", "u", task, number);
    let pod = json!({
        "metadata": {"name": name, "namespace": "team-a", "uid": format!("{task}-{number}"),
            "ownerReferences": [{"apiVersion": "shed.dev/v1alpha1", "kind": "DeadlineJob", "name": "nightly", "uid": "u",
                "controller": true}]},
        "spec": {"nodeName": format!("worker-{task}"), "containers": [{"name": "task"}]},
        "status": {"phase": "Running", "containerStatuses": [{"name": "task", "image": "", "imageID": "", "ready": true,
            "restartCount": 0, "state": {"running": {"startedAt": clock::time(began)}}}]},
    });
    PodFacts::from_pod(&serde_json::from_value(pod).unwrap(), began)
}

fn predicted(change: Change, slots: u32) -> Answer {
    let facts = nightly();
    let now = facts.now;
    let job = SingleJob::new(facts::facts(&facts), slots);
    predict(job, now, change).unwrap()
}

fn pocd(prediction: &Prediction) -> f64 {
    prediction.pocd.unwrap().value()
}

#[test]
fn a_later_deadline_raises_pocd() {
    let later = clock::instant(&"2030-01-31T18:00:00Z".parse::<Timestamp>().unwrap().into());
    let answer = predicted(Change::Deadline(later), 8);
    assert!(pocd(&answer.now) < 0.5, "{answer:?}");
    assert!(pocd(&answer.then) > 0.9, "{answer:?}");
    assert_eq!((answer.now.slots, answer.then.slots), (8, 8));
    assert_eq!(answer.then.deadline, Some(clock::time(later)));
}

#[test]
fn tasks_wait_for_fewer_slots() {
    let answer = predicted(Change::Slots(4), 8);
    assert_eq!(
        (answer.now.waiting, answer.then.waiting),
        (0, 4),
        "{answer:?}"
    );
    let more = predicted(Change::Slots(8), 4);
    assert_eq!((more.now.waiting, more.then.waiting), (4, 0), "{more:?}");
    assert_eq!((more.now.slots, more.then.slots), (4, 8));
}
