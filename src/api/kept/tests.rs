use serde_json::{Value, json};

use super::*;
use crate::api::{DeadlineJob, DeadlineJobSpec};
use kube::CustomResourceExt;

/// A status as a newer operator leaves it: a field more in each part of it.
fn of_newer_operator() -> Value {
    json!({
        "phase": "Running", "active": 2, "novel": {"depth": [1, 2]},
        "attempts": {"originals": 2, "novelties": 7},
        "conditions": [{"type": "Novel", "status": "True", "reason": "R", "message": "m",
            "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        "ledger": {"revision": 3, "novel": "x", "tasks": [
            {"index": 4, "nextAttempt": 1, "attempts": [
                {"number": 0, "kind": "Original", "launched": "2026-01-01T00:00:00.000000Z", "novel": 1}]},
            {"index": 9, "nextAttempt": 2, "novel": true},
        ]},
    })
}

fn status() -> DeadlineJobStatus {
    serde_json::from_value(of_newer_operator()).unwrap()
}

fn written(status: &DeadlineJobStatus) -> Value {
    serde_json::to_value(status).unwrap()
}

#[test]
fn what_a_newer_operator_wrote_is_written_again_at_its_place() {
    let mut status = status();
    status.active = 1;
    let ledger = status.ledger.as_mut().unwrap();
    // Entries move when others come and go.
    ledger.tasks.remove(0);
    ledger.tasks.insert(0, crate::api::TaskEntry::default());
    let new = written(&status);
    assert_eq!(new["novel"], json!({"depth": [1, 2]}));
    assert_eq!(new["attempts"]["novelties"], 7);
    assert_eq!(new["ledger"]["novel"], "x");
    assert_eq!(new["ledger"]["tasks"][0].get("novel"), None);
    assert_eq!(new["ledger"]["tasks"][1]["novel"], true);
    assert_eq!(new["active"], 1, "what is known is what was decided");
}

#[test]
fn an_attempts_field_goes_with_the_attempt_and_no_other_gets_it() {
    let mut status = status();
    assert_eq!(
        written(&status)["ledger"]["tasks"][0]["attempts"][0]["novel"],
        1
    );
    let tasks = &mut status.ledger.as_mut().unwrap().tasks;
    tasks[0].attempts[0].number = 1;
    let attempt = &written(&status)["ledger"]["tasks"][0]["attempts"][0];
    assert_eq!(attempt.get("novel"), None, "{attempt}");
}

#[test]
fn two_statuses_that_differ_only_in_what_is_unknown_are_not_alike() {
    let mut value = of_newer_operator();
    value["novel"] = json!("another");
    let other: DeadlineJobStatus = serde_json::from_value(value).unwrap();
    assert_ne!(other, status());
    let again: DeadlineJobStatus = serde_json::from_value(written(&other)).unwrap();
    assert_eq!(again, other);
}

#[test]
fn of_a_known_status_nothing_is_unknown() {
    let mut value = of_newer_operator();
    for pointer in [
        "",
        "/attempts",
        "/ledger",
        "/ledger/tasks/1",
        "/ledger/tasks/0/attempts/0",
    ] {
        let fields = value.pointer_mut(pointer).unwrap().as_object_mut().unwrap();
        fields.retain(|name, _| !name.starts_with("novel"));
    }
    let status: DeadlineJobStatus = serde_json::from_value(value).unwrap();
    assert!(status.unknown.is_empty(), "{:?}", status.unknown);
}

#[test]
fn a_ledger_in_a_newer_form_is_not_read_whatever_is_in_it() {
    let value = json!({"ledger": {"form": LEDGER_FORM + 1, "revision": "r7", "tasks": {"0": 1}}});
    let status: DeadlineJobStatus = serde_json::from_value(value).unwrap();
    assert_eq!(status.ledger.unwrap().form, LEDGER_FORM + 1);
}

#[test]
fn what_can_not_be_read_is_named_with_its_field() {
    let spec = |change: (&str, Value)| {
        let mut spec = serde_json::to_value(&crate::fixtures::job("").spec).unwrap();
        *spec.pointer_mut(change.0).unwrap() = change.1;
        read::<DeadlineJobSpec>(&spec).map(|(_, passed_over)| passed_over)
    };
    let error = spec(("/onMiss", json!("Postpone"))).unwrap_err();
    let expected = ".onMiss: unknown variant `Postpone`, expected `Fail` or `Continue`";
    assert_eq!(error, expected);
    let error = spec(("/completions", json!("4"))).unwrap_err();
    assert!(
        error.starts_with(".completions: invalid type: string"),
        "{error}"
    );
    let error = read::<DeadlineJobSpec>(&json!({})).unwrap_err();
    assert!(error.starts_with(": missing field"), "{error}");
    let mut status = of_newer_operator();
    status["ledger"]["tasks"][0]["attempts"][0]["kind"] = json!("Twin");
    let error = read::<DeadlineJobStatus>(&status).unwrap_err();
    assert!(
        error.contains("ledger.tasks[0].attempts[0].kind: unknown variant `Twin`"),
        "{error}"
    );
    let passed_over = spec(("/template/spec", json!({"containers": [], "novel": 1}))).unwrap();
    assert_eq!(passed_over, ["template.spec.novel"]);
}

/// Nothing could be kept in an entry that has no name.
#[test]
fn entries_of_every_list_of_objects_in_the_status_have_a_name() {
    let crd = serde_json::to_value(DeadlineJob::crd()).unwrap();
    let pointer = "/spec/versions/0/schema/openAPIV3Schema/properties/status";
    let mut lists = 0;
    let mut open = vec![crd.pointer(pointer).unwrap()];
    while let Some(schema) = open.pop() {
        let fields = schema.get("properties").and_then(Value::as_object);
        open.extend(fields.into_iter().flat_map(|fields| fields.values()));
        let Some(entry) = schema
            .get("items")
            .filter(|entry| entry.get("properties").is_some())
        else {
            continue;
        };
        lists += 1;
        let required = entry["required"].as_array().unwrap();
        assert!(
            NAMES.iter().any(|name| required.contains(&json!(name))),
            "{entry}"
        );
        open.push(entry);
    }
    assert_eq!(lists, 4, "conditions, tasks, attempts, parts");
}

#[test]
fn a_difference_says_what_changed_and_nothing_of_the_rest() {
    let from = json!({"a": 1, "b": {"c": 2, "d": 3}, "list": [1, 2], "gone": {"x": 1}});
    let to = json!({"a": 1, "b": {"c": 4, "d": 3}, "list": [2], "new": {"y": 1}});
    let expected = json!({"b": {"c": 4}, "list": [2], "gone": null, "new": {"y": 1}});
    assert_eq!(difference(&from, &to), expected);
    assert_eq!(difference(&to, &to), json!({}));
}
