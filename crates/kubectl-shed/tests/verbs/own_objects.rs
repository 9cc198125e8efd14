//! `whatif` and `suggest`, from the job's own objects.

use serde_json::{Value, json};
use shed::api::Ledger;
use shed_core::snapshot::Conclusion;
use shed_core::time::Instant;

use super::mock::{Answer, Apiserver, Asked, not_found};

const JOBS: &str = "/apis/shed.dev/v1alpha1/namespaces/team-a/deadlinejobs";
const PODS: &str = "/api/v1/namespaces/team-a/pods";
const MINUTE: i64 = 60_000;
/// 2029-12-31T23:00:00Z
const BEGAN: i64 = 1_893_452_400_000;

fn job(name: &str, ledger: Value, phase: &str) -> Value {
    json!({"apiVersion": "shed.dev/v1alpha1", "kind": "DeadlineJob",
        "metadata": {"name": name, "namespace": "team-a", "uid": name, "creationTimestamp": "2029-12-31T23:00:00Z",
            "labels": {"shed.dev/class": "report"}},
        "spec": {"completions": 2, "idempotency": "Safe", "deadline": {"at": "2199-01-31T08:00:00Z"},
            "expectedTaskDuration": {"p50": "10m"},
            "template": {"spec": {"containers": [{"name": "task", "image": "i"}]}}},
        "status": {"phase": phase, "ledger": ledger}})
}

/// A completed job of the class that took this number of minutes.
fn completed(minutes: i64) -> Value {
    let ledger = Ledger {
        finished: true,
        ending: Some(Conclusion::Complete),
        first_pass: Some(Instant(BEGAN)),
        last_win: Some(Instant(BEGAN + minutes * MINUTE - 1000)),
        ..Ledger::default()
    };
    let ledger = serde_json::to_value(ledger).unwrap();
    job(&format!("report-{minutes}"), ledger, "Complete")
}

fn list(items: Vec<Value>) -> Answer {
    Answer::Json(
        200,
        json!({"apiVersion": "v1", "kind": "List", "metadata": {}, "items": items}),
    )
}

/// An unfinished job, and completed ones of its class that took 1 to 20 minutes.
fn cluster(asked: &Asked) -> Answer {
    match asked.path.as_str() {
        JOBS if asked.query.contains("shed.dev%2Fclass%3Dreport") => {
            let mut jobs: Vec<Value> = (1..=20).map(completed).collect();
            jobs.push(job("nightly", json!({}), "Running"));
            list(jobs)
        }
        JOBS => list(vec![]),
        PODS => list(vec![]),
        path => match path.strip_prefix(JOBS) {
            Some("/nightly") => Answer::Json(200, job("nightly", json!({}), "Running")),
            Some("/report-3") => Answer::Json(200, completed(3)),
            _ => not_found(),
        },
    }
}

#[test]
fn whatif_is_answered_from_the_jobs_own_objects() {
    let mock = Apiserver::start("whatif", cluster);
    let text = mock.succeeds(&["whatif", "nightly", "--slots", "1"]);
    assert!(text.contains("1 slots"), "{text}");
    assert!(
        text.contains("It does not show what the change does to other jobs."),
        "{text}"
    );
    let text = mock.succeeds(&["whatif", "nightly", "--deadline", "2h", "-o", "json"]);
    let whole: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (&whole["slots"], &whole["now"]["slots"]),
        (&json!(2), &json!(2))
    );
    assert!(whole["pocd"].is_string(), "{whole}");
    for (arguments, words) in [
        (
            ["whatif", "weekly", "--slots", "60"],
            "named weekly in namespace team-a",
        ),
        (
            ["whatif", "report-3", "--slots", "60"],
            "the job has finished (Complete)",
        ),
        (
            ["whatif", "nightly", "--deadline", "soon"],
            "--deadline soon: use an instant such as",
        ),
    ] {
        let said = mock.fails(&arguments);
        assert!(said.contains(words), "{said}");
    }
    let asked = mock.asked();
    assert!(
        asked
            .iter()
            .all(|asked| !asked.path.contains("shed-system")),
        "{asked:?}"
    );
}

#[test]
fn a_deadline_is_suggested_by_the_class_of_a_job() {
    let mock = Apiserver::start("suggest", cluster);
    let text = mock.succeeds(&["suggest", "nightly"]);
    assert!(
        text.contains("class report: 20 runs, p50 10m00s, p95 19m00s, longest 20m00s"),
        "{text}"
    );
    assert!(
        text.contains("suggested deadline: 29m (p95 of the runs times 1.5)"),
        "{text}"
    );
    assert_eq!(mock.succeeds(&["suggest", "--class", "report"]), text);
    let said = mock.fails(&["suggest", "--class", "novel"]);
    assert!(
        said.contains("namespace team-a has no completed job of class novel"),
        "{said}"
    );
    let said = mock.fails(&["suggest", "--class", "report", "--factor", "0.5"]);
    assert!(
        said.contains("--factor 0.5: use a number from 1 to 100"),
        "{said}"
    );
}
