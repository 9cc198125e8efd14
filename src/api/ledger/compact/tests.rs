use serde_json::{Value, json};

use super::*;
use crate::api::Ledger;

fn at(ms: i64) -> Instant {
    Instant(1_700_000_000_000 + ms)
}

fn attempt(number: u32, kind: AttemptKind, launched: i64) -> AttemptEntry {
    AttemptEntry {
        number,
        kind,
        launched: at(launched),
        resume: None,
        avoid: Vec::new(),
        node: None,
        kill: None,
        killed_at: None,
        unknown: Vec::new(),
    }
}

fn task(index: u32, attempts: impl IntoIterator<Item = AttemptEntry>) -> TaskEntry {
    let attempts: Vec<_> = attempts.into_iter().collect();
    TaskEntry {
        index,
        next_attempt: attempts.last().map_or(0, |last| last.number + 1),
        attempts,
        ..TaskEntry::default()
    }
}

fn killed(kind: KillKind, since: i64, attempt: AttemptEntry) -> AttemptEntry {
    AttemptEntry {
        kill: Some(kind),
        killed_at: Some(at(since)),
        ..attempt
    }
}

fn point(progress: f64, checkpoint: &str) -> ResumePoint {
    ResumePoint {
        progress,
        checkpoint: checkpoint.into(),
    }
}

fn written(tasks: Vec<TaskEntry>) -> Value {
    let ledger = Ledger {
        tasks: tasks.into_iter().map(|task| (task.index, task)).collect(),
        ..Ledger::default()
    };
    serde_json::to_value(ledger).unwrap()["tasks"].take()
}

fn read(tasks: Value) -> Result<Vec<TaskEntry>, String> {
    let ledger = json!({"revision": 1, "tasks": tasks});
    let ledger = serde_json::from_value::<Ledger>(ledger);
    ledger
        .map(|ledger| ledger.tasks.into_values().collect())
        .map_err(|error| error.to_string())
}

/// A task with everything that an entry can hold.
fn full() -> TaskEntry {
    let node = NodeEntry {
        name: "node-1".to_owned(),
        boot: "b".to_owned(),
    };
    let resumed = AttemptEntry {
        resume: Some(Box::new(point(0.25, "a,b;c\n\"d\""))),
        avoid: vec!["node-2".to_owned(), "node-1".to_owned()],
        node: Some(Box::new(node)),
        ..killed(
            KillKind::JobEnd,
            70_000,
            attempt(4, AttemptKind::Clone, 50_000),
        )
    };
    TaskEntry {
        winner: Some(3),
        failures: 2,
        clone_failures: 1,
        disruptions: 5,
        clone_disrupted: Some(at(40_000)),
        retry_not_before: Some(at(60_000)),
        resume: Some(Box::new(point(0.25, "a,b;c\n\"d\""))),
        grant: Some(Box::new(GrantEntry {
            attempt: 3,
            token: 9,
            at: at(61_000),
        })),
        ..task(7, [attempt(3, AttemptKind::Retry, 45_000), resumed])
    }
}

#[test]
fn what_is_written_is_read_again() {
    let tasks = vec![
        task(0, [attempt(0, AttemptKind::Original, 0)]),
        full(),
        task(9, []),
    ];
    let written = written(tasks.clone());
    assert_eq!(written["points"].as_array().unwrap().len(), 1, "{written}");
    assert_eq!(read(written), Ok(tasks));
    assert_eq!(read(json!({})), Ok(Vec::new()));
}

#[test]
fn one_record_stops_a_whole_job() {
    let mut tasks: Vec<TaskEntry> = (0..10_000)
        .map(|index| task(index, [attempt(0, AttemptKind::Original, i64::from(index))]))
        .collect();
    let bytes = |tasks: &[TaskEntry]| written(tasks.to_vec()).to_string().len();
    let live = bytes(&tasks);
    assert!(live < 22 * tasks.len(), "{live} bytes");
    for task in &mut tasks {
        let attempt = task.attempts.remove(0);
        let kind = if task.index == 3 {
            KillKind::Settle
        } else {
            KillKind::Suspend
        };
        task.attempts.push(killed(kind, 99_000, attempt));
    }
    let stopped = bytes(&tasks);
    assert!(stopped - live < 200, "{} bytes more", stopped - live);
    assert_eq!(read(written(tasks.clone())), Ok(tasks.clone()));
    // An attempt that is launched later does not belong to it.
    tasks[5]
        .attempts
        .push(attempt(1, AttemptKind::Retry, 120_000));
    assert_eq!(read(written(tasks.clone())), Ok(tasks.clone()));
    let resumed = bytes(&tasks);
    assert!(
        resumed - stopped < 4 * tasks.len(),
        "{} bytes more",
        resumed - stopped
    );
}

#[test]
fn fields_of_a_newer_operator_stay_with_their_task_and_attempt() {
    let tasks = json!({"since": micro_time(at(0)), "lines": ["4,2,z77,f1;1r500,y,k0", "5,1;0o0"],
        "kills": ["JobEnd,9"]});
    let read = read(tasks).unwrap();
    assert_eq!(read[0].unknown, ["z77"]);
    assert_eq!(read[0].attempts[0].unknown, ["y"]);
    let again = written(read);
    assert_eq!(again["lines"], json!(["4,2,f1,z77;1r500,k0,y", "5,1;0o0"]));
}

#[test]
fn a_line_that_is_none_is_named() {
    for line in [
        "",
        "4",
        "4,x",
        "4,1;",
        "4,1;0q5",
        "4,1;0o",
        "4,1;0o5,k1",
        "4,1;0o5,k0",
        "4,1;0o5,n0",
        "4,1,p1",
        "4,1,",
        "4,1,é;",
    ] {
        let error = read(
            json!({"lines": ["1,0", line], "kills": ["Boredom,0"], "places": ["n"],
            "points": ["0.5,", "much,x"]}),
        )
        .unwrap_err();
        let expected = format!("invalid line 1 of the tasks: {line:?}");
        assert!(error.starts_with(&expected), "{line:?}: {error}");
    }
}
