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
        "ledger": {"revision": 3, "novel": "x", "tasks": {
            "since": "2026-01-01T00:00:00.000000Z", "novel": true, "lines": ["4,1;0o0,z1", "9,2,z2"]}},
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
    ledger.tasks.pop_first();
    ledger.tasks.insert(0, crate::api::TaskEntry::default());
    let new = written(&status);
    assert_eq!(new["novel"], json!({"depth": [1, 2]}));
    assert_eq!(new["attempts"]["novelties"], 7);
    assert_eq!(new["ledger"]["novel"], "x");
    assert_eq!(new["ledger"]["tasks"]["novel"], true);
    assert_eq!(new["ledger"]["tasks"]["lines"], json!(["0,0", "9,2,z2"]));
    assert_eq!(new["active"], 1, "what is known is what was decided");
}

#[test]
fn statuses_that_differ_only_in_unknown_fields_are_not_equal() {
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
    for pointer in ["", "/attempts", "/ledger", "/ledger/tasks"] {
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
    status["ledger"]["tasks"]["lines"][0] = json!("4,1;0twin");
    let error = read::<DeadlineJobStatus>(&status).unwrap_err();
    let expected = "ledger.tasks: invalid line 0 of the tasks: \"4,1;0twin\"";
    assert!(error.contains(expected), "{error}");
    let passed_over = spec(("/template/spec", json!({"containers": [], "novel": 1}))).unwrap();
    assert_eq!(passed_over, ["template.spec.novel"]);
}

/// Nothing could be kept in an entry that has no name. Of the job's record nothing unknown is kept.
#[test]
fn entries_of_every_list_of_objects_in_the_status_have_a_name() {
    let mut crd = serde_json::to_value(DeadlineJob::crd()).unwrap();
    let pointer = "/spec/versions/0/schema/openAPIV3Schema/properties/status";
    let status = crd.pointer_mut(pointer).unwrap();
    let record = status["properties"]
        .as_object_mut()
        .unwrap()
        .remove("record");
    assert!(record.is_some());
    let mut lists = 0;
    let mut open = vec![&*status];
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
    assert_eq!(lists, 2, "conditions, parts");
}

#[test]
fn a_difference_says_what_changed_and_nothing_of_the_rest() {
    let from = json!({"a": 1, "b": {"c": 2, "d": 3}, "list": [1, 2], "gone": {"x": 1}});
    let to = json!({"a": 1, "b": {"c": 4, "d": 3}, "list": [2], "new": {"y": 1}});
    let expected = json!({"b": {"c": 4}, "list": [2], "gone": null, "new": {"y": 1}});
    assert_eq!(difference(&from, &to), expected);
    assert_eq!(difference(&to, &to), json!({}));
}
