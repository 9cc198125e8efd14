//! Jobs and records for tests, and files with the expected text.

use std::path::PathBuf;

use jiff::Timestamp;
use serde_json::{Value, json};
use shed::api::JobRecord;

use crate::model::JobView;
use crate::output::Canvas;

/// The widths that every verb is tested at.
pub const WIDTHS: [usize; 3] = [40, 80, 200];

/// The time of all tests.
pub fn now() -> Timestamp {
    "2030-01-31T07:40:00Z".parse().unwrap()
}

/// A canvas without colors.
pub fn canvas(width: usize) -> Canvas {
    Canvas {
        width,
        color: false,
        wide: false,
    }
}

/// A job with these tasks and this status.
pub fn job(completions: i32, status: Value) -> JobView {
    JobView {
        namespace: "team-a".to_owned(),
        name: "nightly".to_owned(),
        kind: "DeadlineJob",
        spec: serde_json::from_value(json!({"completions": completions, "idempotency": "Safe"}))
            .unwrap(),
        status: serde_json::from_value(status).unwrap(),
        ..JobView::default()
    }
}

/// A job of six tasks at risk, with a straggler, its clone, and a clone that won.
pub fn nightly() -> (JobView, JobRecord) {
    let message = "a few tasks are far behind the others: task 3 with PoCD 0.713; move the deadline, or add capacity for clones";
    let status = json!({
        "phase": "Running", "deadline": "2030-01-31T08:00:00Z", "startTime": "2030-01-31T07:00:00Z",
        "pocd": "0.713", "calibratedPoCD": "0.680", "estimatedCompletionTime": "2030-01-31T07:56:30Z",
        "completionRange": {"p50": "2030-01-31T07:56:40Z", "p90": "2030-01-31T07:58:10Z"},
        "active": 4, "clones": 1, "succeeded": 2,
        "conditions": [
            {"type": "DeadlineAtRisk", "status": "True", "reason": "TasksStraggling", "message": message,
             "lastTransitionTime": "2030-01-31T07:30:00Z"},
            {"type": "DeadlineFeasible", "status": "True", "reason": "TargetReachable", "message": "PoCD 0.94",
             "lastTransitionTime": "2030-01-31T07:01:00Z"},
        ],
    });
    (job(6, status), record())
}

fn record() -> JobRecord {
    let pocd = [
        ("07:05", "0.950"),
        ("07:15", "0.930"),
        ("07:25", "0.610"),
        ("07:30", "0.420"),
        ("07:38", "0.713"),
    ];
    let pocd =
        pocd.map(|(time, pocd)| json!({"time": format!("2030-01-31T{time}:00Z"), "pocd": pocd}));
    let time = |clock: &str| json!(format!("2030-01-31T{clock}Z"));
    serde_json::from_value(json!({
        "time": time("07:39:30"), "pocd": pocd,
        "attempts": [
            {"task": 0, "attempt": 0, "kind": "Original", "node": "worker-1", "startTime": time("07:00:10"),
             "endTime": time("07:31:00"), "state": "Won"},
            {"task": 1, "attempt": 0, "kind": "Original", "node": "worker-2", "startTime": time("07:00:12"),
             "endTime": time("07:36:10"), "progress": "0.640", "state": "Stopped"},
            {"task": 1, "attempt": 1, "kind": "Clone", "node": "worker-1", "startTime": time("07:20:00"),
             "endTime": time("07:36:00"), "resumedFrom": "0.250", "state": "Won"},
            {"task": 2, "attempt": 0, "kind": "Original", "node": "worker-3", "startTime": time("07:00:09"),
             "endTime": time("07:10:00"), "progress": "0.200", "state": "Failed"},
            {"task": 2, "attempt": 1, "kind": "Retry", "node": "worker-3", "startTime": time("07:10:12"),
             "progress": "0.830", "state": "Running", "estimatedEndTime": time("07:45:40")},
            {"task": 3, "attempt": 0, "kind": "Original", "node": "worker-2", "startTime": time("07:00:12"),
             "progress": "0.420", "resumePoint": "0.400", "state": "Running", "estimatedEndTime": time("08:33:00")},
            {"task": 3, "attempt": 1, "kind": "Clone", "node": "worker-4", "startTime": time("07:31:30"),
             "progress": "0.580", "resumedFrom": "0.300", "state": "Running", "estimatedEndTime": time("07:56:30")},
            {"task": 4, "attempt": 0, "kind": "Original", "state": "Pending"},
        ],
        "omittedAttempts": 0,
        "decisions": [
            {"time": time("07:20:00"), "task": 1, "verdict": "Granted", "reason": "Straggler", "gain": "0.310",
             "price": "0.020", "alternative": "wait for the next report, gain 0.004"},
            {"time": time("07:26:00"), "task": 3, "verdict": "Refused", "reason": "Capacity"},
            {"time": time("07:31:30"), "task": 3, "verdict": "Granted", "reason": "Straggler", "gain": "0.290",
             "price": "0.020"},
            {"time": time("07:36:10"), "task": 1, "verdict": "Stopped", "reason": "Prune", "price": "0.003"},
        ],
        "waiting": {"reason": "InsufficientCapacity", "tasks": 1},
    }))
    .unwrap()
}

/// A job of 400 tasks. Its record lists this number of live attempts and leaves out 12.
pub fn big(live: usize) -> (JobView, JobRecord) {
    let attempts = (0..live).map(|task| {
        json!({
            "task": task, "attempt": 0, "kind": "Original", "node": format!("worker-{}", task % 7),
            "startTime": "2030-01-31T07:00:00Z", "state": "Running",
            "progress": format!("{:.3}", 0.05 + 0.9 * task as f64 / live as f64),
            "estimatedEndTime": format!("2030-01-31T{:02}:{:02}:00Z", 8 - task / 60 % 2, 59 - task % 60),
        })
    });
    let attempts: Vec<Value> = attempts.collect();
    let record =
        json!({"time": "2030-01-31T07:39:00Z", "attempts": attempts, "omittedAttempts": 12});
    let status = json!({
        "phase": "Running", "deadline": "2030-01-31T09:30:00Z", "pocd": "0.997",
        "estimatedCompletionTime": "2030-01-31T08:59:00Z", "active": live + 12, "succeeded": 250, "failed": 1,
    });
    (job(400, status), serde_json::from_value(record).unwrap())
}

/// A job of 10 000 tasks with its whole record: of 180 live tasks some have not started or not reported, and a few are
/// stragglers, two of them with a clone.
pub fn huge() -> (JobView, JobRecord) {
    let attempt = |task: usize| {
        let mut attempt = json!({"task": task, "attempt": 0, "kind": "Original", "state": "Running",
            "node": format!("worker-{:03}", task * 7 % 180), "startTime": "2030-01-31T07:10:00Z"});
        match task % 180 {
            0..15 => attempt["state"] = json!("Pending"),
            15..25 => {}
            // Tasks that began with the others and have done a part of their work.
            place @ 25..34 => {
                attempt["progress"] = json!(format!("0.{}50", 1 + place % 3));
                let minute = 20 + place;
                attempt["estimatedEndTime"] = json!(format!("2030-01-31T08:{minute}:00Z"));
            }
            place => attempt["progress"] = json!(format!("{:.3}", 0.52 + 0.0026 * place as f64)),
        }
        attempt
    };
    let mut attempts: Vec<Value> = (6200..6380).map(attempt).collect();
    let straggles = |one: &&mut Value| one.get("estimatedEndTime").is_some();
    let stragglers = attempts.iter_mut().filter(straggles).take(2);
    let clones: Vec<Value> = stragglers
        .map(|one| {
            let mut clone = one.clone();
            clone["attempt"] = json!(1);
            clone["kind"] = json!("Clone");
            clone["startTime"] = json!("2030-01-31T07:37:00Z");
            clone["progress"] = json!("0.300");
            clone["resumedFrom"] = json!("0.250");
            clone["estimatedEndTime"] = json!("2030-01-31T08:02:00Z");
            clone
        })
        .collect();
    attempts.extend(clones);
    let waiting = json!({"reason": "InsufficientCapacity", "tasks": 3617});
    let record = json!({"time": "2030-01-31T07:39:30Z", "attempts": attempts, "omittedAttempts": 0, "waiting": waiting});
    let status = json!({
        "phase": "Running", "deadline": "2030-01-31T09:30:00Z", "pocd": "0.912", "succeeded": 6200, "failed": 3,
        "estimatedCompletionTime": "2030-01-31T09:12:00Z", "active": 182, "clones": 2,
    });
    (job(10_000, status), serde_json::from_value(record).unwrap())
}

fn golden_path(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    folder.join(name)
}

/// Compares the text with its file in `tests/golden`. `SHED_GOLDEN=write` writes the file.
#[track_caller]
pub fn golden(name: &str, text: &str) {
    let path = golden_path(name);
    if std::env::var("SHED_GOLDEN").is_ok_and(|value| value == "write") {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
    }
    let wanted = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        wanted == text,
        "{name} differs (SHED_GOLDEN=write writes it):\n{text}"
    );
}

/// Compares the text at every width, and checks that no line is wider.
#[track_caller]
pub fn golden_widths(name: &str, render: impl Fn(Canvas) -> String) {
    for width in WIDTHS {
        let text = render(canvas(width));
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(
            widest.unwrap_or(0) <= width,
            "{name} at {width} columns:\n{text}"
        );
        golden(&format!("{name}-{width}.txt"), &text);
    }
}

const REFERENCE: &str = "../../docs/reference/kubectl-shed.md";

/// The page with the expected text in each block that a comment names.
fn with_outputs(page: &str) -> String {
    let mut written = String::new();
    let mut lines = page.split_inclusive('\n');
    while let Some(line) = lines.next() {
        written.push_str(line);
        let name = line
            .strip_prefix("<!-- golden: ")
            .and_then(|rest| rest.strip_suffix(" -->\n"));
        let Some(name) = name else { continue };
        let text = std::fs::read_to_string(golden_path(name)).unwrap();
        written.push_str(&format!("```\n{text}```\n"));
        let mut fences = 0;
        while fences < 2 {
            fences += usize::from(lines.next().unwrap().starts_with("```"));
        }
    }
    written
}

#[test]
fn the_reference_shows_the_tested_outputs() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(REFERENCE);
    let page = std::fs::read_to_string(&path).unwrap();
    let wanted = with_outputs(&page);
    if std::env::var("SHED_GOLDEN").is_ok_and(|value| value == "write") {
        std::fs::write(&path, &wanted).unwrap();
        return;
    }
    assert!(
        page == wanted,
        "an output differs (SHED_GOLDEN=write cargo test -p kubectl-shed, twice)"
    );
    assert!(wanted.matches("<!-- golden: ").count() >= 6);
}
