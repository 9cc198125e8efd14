//! The page of the leader's answers against the types that the verbs read them with.

use serde_json::{Value, json};

use super::*;
use crate::record::JobAnswer;
use crate::verbs::explain::Plan;
use crate::verbs::nodes::NodesView;
use crate::verbs::suggest::History;
use crate::verbs::top::JobsAnswer;
use crate::verbs::whatif::Prediction;

const PAGE: &str = include_str!("../../../../docs/reference/leader-api.md");

/// The JSON example with this field at its root.
fn example(field: &str) -> Value {
    let blocks = PAGE.split("```json\n").skip(1);
    let blocks = blocks.map(|rest| rest.split("```").next().unwrap());
    let mut examples = blocks.map(|block| serde_json::from_str::<Value>(block).unwrap());
    examples.find(|one| one.get(field).is_some()).unwrap()
}

/// The fields of an answer that this type does not read.
fn unread<T: DeserializeOwned>(answer: &Value) -> Vec<String> {
    let mut unread = Vec::new();
    let note = |path: serde_ignored::Path<'_>| unread.push(path.to_string());
    serde_ignored::deserialize::<_, _, T>(answer, note).unwrap();
    unread
}

#[test]
fn the_verbs_read_every_documented_field_of_an_answer() {
    let whatif = example("slots");
    // `top` shows the slack instead of the end. `whatif` shows the deadline that the user gave.
    for (found, expected) in [
        (
            unread::<JobsAnswer>(&example("jobs")),
            &["jobs.0.estimatedCompletionTime", "time", "total"][..],
        ),
        (unread::<NodesView>(&example("nodes")), &["time"]),
        (unread::<Plan>(&example("text")), &[]),
        (unread::<Prediction>(&whatif), &["deadline", "now", "time"]),
        (unread::<Prediction>(&whatif["now"]), &["deadline"]),
        (
            unread::<History>(&example("classes")),
            &["classes.0.p90Seconds", "classes.0.p99Seconds"],
        ),
    ] {
        assert_eq!(found, expected);
    }
}

#[test]
fn the_record_of_one_job_is_read_from_the_answer_about_it() {
    let mut job = example("jobs")["jobs"][0].take();
    let record = json!({"time": "2030-01-31T04:10:00Z", "omittedAttempts": 3});
    job["record"] = record;
    let answer: JobAnswer = serde_json::from_value(job).unwrap();
    assert_eq!(answer.record.unwrap().omitted_attempts, 3);
}

#[test]
fn the_holder_is_a_pods_name_and_a_process() {
    assert_eq!(pod_of("shed-7d9f-x2_18ab-1"), "shed-7d9f-x2");
    assert_eq!(pod_of("shed-0"), "shed-0");
}
