//! Verbs that ask the leader, through a forwarded port.

use serde_json::{Value, json};

use super::mock::{Answer, Apiserver, forbidden, not_found};

const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/shed-system/leases/shed";
const FORWARD: &str = "/api/v1/namespaces/shed-system/pods/shed-abc/portforward";
const JOB: &str = "/apis/shed.dev/v1alpha1/namespaces/team-a/deadlinejobs/nightly";

/// An apiserver whose leader answers each path by this function.
fn led(name: &str, leader: fn(&str) -> (u16, Value)) -> Apiserver {
    Apiserver::start(name, move |asked| match asked.path.as_str() {
        LEASE => Answer::Json(
            200,
            json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "shed"},
                "spec": {"holderIdentity": "shed-abc_1-1"}}),
        ),
        FORWARD => Answer::Forward(Box::new(leader)),
        JOB => Answer::Json(
            200,
            json!({"apiVersion": "shed.dev/v1alpha1", "kind": "DeadlineJob",
                "metadata": {"name": "nightly", "namespace": "team-a", "uid": "u",
                    "labels": {"shed.dev/class": "report"}},
                "spec": {"completions": 1, "idempotency": "Safe"}}),
        ),
        _ => not_found(),
    })
}

fn what_if(path: &str) -> (u16, Value) {
    let Some(query) = path.strip_prefix("/v1/whatif/team-a/nightly?") else {
        return (404, json!({"error": format!("no job for {path}")}));
    };
    let slots = if query == "slots=60" { 60 } else { 40 };
    let answer = json!({
        "time": "2030-01-31T04:09:58Z", "slots": slots, "pocd": "0.981", "clones": 3, "waiting": 0,
        "now": {"slots": 40, "pocd": "0.912", "clones": 1, "waiting": 8},
    });
    (200, answer)
}

#[test]
fn whatif_shows_both_predictions() {
    let mock = led("whatif", what_if);
    let text = mock.succeeds(&["whatif", "nightly", "--slots", "60"]);
    assert_eq!(
        text,
        "          POCD     SLOTS    CLONES   WAITING  ENDS AT\n\
         now       0.912    40       1        8        unknown\n\
         60 slots  0.981    60       3        0        unknown\n"
    );
    let text = mock.succeeds(&["whatif", "nightly", "--deadline", "2h", "-o", "json"]);
    let whole: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (&whole["pocd"], &whole["now"]["pocd"]),
        (&json!("0.981"), &json!("0.912"))
    );
    for (arguments, words) in [
        (
            ["whatif", "weekly", "--slots", "60"],
            "the operator answered: no job for /v1/whatif/team-a/weekly",
        ),
        (
            ["whatif", "nightly", "--deadline", "soon"],
            "--deadline soon: use an instant such as",
        ),
        (
            ["whatif", "../x", "--slots", "60"],
            "`../x` is not the name of a job",
        ),
    ] {
        let said = mock.fails(&arguments);
        assert!(said.contains(words), "{said}");
    }
}

fn history(path: &str) -> (u16, Value) {
    match path {
        "/v1/history/team-a?class=report" => {
            let class = json!({"class": "report", "runs": 23, "p50Seconds": 2460, "p95Seconds": 3480, "maxSeconds": 4200});
            (200, json!({ "classes": [class] }))
        }
        _ => (200, json!({"classes": []})),
    }
}

#[test]
fn a_deadline_is_suggested_by_the_class_of_a_job() {
    let mock = led("suggest", history);
    let text = mock.succeeds(&["suggest", "nightly"]);
    assert!(
        text.contains("class report: 23 runs, p50 41m00s, p95 58m00s, longest 1h10m"),
        "{text}"
    );
    assert!(
        text.contains("suggested deadline: 1h27m (p95 of the runs times 1.5)"),
        "{text}"
    );
    assert_eq!(mock.succeeds(&["suggest", "--class", "report"]), text);
    let said = mock.fails(&["suggest", "--class", "novel"]);
    assert!(
        said.contains("no run of class novel in namespace team-a is known"),
        "{said}"
    );
    let said = mock.fails(&["suggest", "--class", "report", "--factor", "0.5"]);
    assert!(
        said.contains("--factor 0.5: use a number from 1 to 100"),
        "{said}"
    );
}

#[test]
fn without_the_right_to_forward_ports_it_is_named() {
    let mock = Apiserver::start("no-forward", |asked| match asked.path.as_str() {
        LEASE => forbidden("no"),
        _ => not_found(),
    });
    let said = mock.fails(&["whatif", "nightly", "--slots", "60"]);
    assert!(
        said.contains("you may not get leases.coordination.k8s.io in namespace shed-system"),
        "{said}"
    );
}
