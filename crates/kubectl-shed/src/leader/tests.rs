//! The page of the leader's answers against the types that the verbs read them with.

use serde_json::Value;
use shed::leader_api::answers::{JobList, NodeList};

use super::*;

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
    assert_eq!(unread::<JobList>(&example("jobs")), [""; 0]);
    assert_eq!(unread::<NodeList>(&example("nodes")), [""; 0]);
}

#[test]
fn the_holder_is_a_pods_name_and_a_process() {
    assert_eq!(pod_of("shed-7d9f-x2_18ab-1"), "shed-7d9f-x2");
    assert_eq!(pod_of("shed-0"), "shed-0");
}
