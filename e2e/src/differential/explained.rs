//! The differences from the built-in controller that are meant. docs/reference/adopted-jobs.md has the same table.

use std::collections::BTreeSet;

use serde_json::Value;

use super::case::{Act, Case};
use super::outcome::{Outcome, POD_SHAPES, STATUS_OF_DELETED};
use super::view::members;

/// A difference in one field that is meant.
#[derive(Debug)]
pub struct Row {
    /// The field of the outcome.
    pub field: &'static str,
    /// What differs, and why, as the page says it.
    pub reason: &'static str,
    /// Whether it explains the field of these two outcomes, the built-in controller's first.
    pub holds: fn(&Case, &Outcome, &Outcome) -> bool,
}

/// All of them.
pub const ROWS: &[Row] = &[
    Row {
        field: "failed",
        reason: "Of a Job that failed, the built-in controller also counts the pods that it stopped for that. shed \
            counts pods that failed by themselves.",
        holds: |case, builtin, shed| {
            let more = builtin.number("failed") - shed.number("failed");
            let both = builtin.has("Failed=True") && shed.has("Failed=True");
            both && (1..=most_pods(case)).contains(&more)
        },
    },
    Row {
        field: "conditions",
        reason: "The built-in controller completes a suspended work queue with a succeeded pod. shed completes \
            it after it is resumed, because its other pods were stopped.",
        holds: |case, builtin, shed| {
            let is_queue = case.spec["completions"].is_null() && case.acts.contains(&Act::Suspend);
            is_queue
                && builtin.has("Complete=True")
                && shed.has("Complete=True")
                && shed.has("Suspended=")
        },
    },
    Row {
        field: POD_SHAPES,
        reason: "A pod that replaces one whose end does not count prefers other nodes than that one's. It lacks the \
            annotation `batch.kubernetes.io/job-index-ignored-failure-count`, by which the built-in controller \
            computes how long it waits.",
        holds: |_, builtin, shed| without_replacement(builtin) == without_replacement(shed),
    },
    Row {
        field: STATUS_OF_DELETED,
        reason: "shed no longer writes the status of a Job that is being deleted, and lets its pods go. The built-in \
            controller counts them, and may end the Job. It matters only while a finalizer of another program holds \
            the Job.",
        holds: |_, builtin, shed| {
            let status = |outcome: &Outcome| outcome.fields.get(STATUS_OF_DELETED).cloned();
            status(shed)
                .zip(status(builtin))
                .is_some_and(|(own, other)| is_before(&own, &other))
        },
    },
    Row {
        field: "failedIndexes",
        reason: "The built-in controller forgets the failures of an index that was suspended. shed has them in its \
            ledger.",
        holds: |case, builtin, shed| {
            let indexes = |outcome: &Outcome| {
                let list = outcome.fields.get("failedIndexes");
                members(list.and_then(Value::as_str))
            };
            case.acts.contains(&Act::Suspend) && indexes(shed) > indexes(builtin)
        },
    },
    Row {
        field: "podsLeft",
        reason: "shed ends a Job at the first of several ends, and stops the pods whose ends it has not seen yet. The \
            built-in controller waits for a second, and sees all of them.",
        holds: |case, builtin, shed| {
            let ends = |act: &Act| matches!(act, Act::EndAll { .. });
            let left = |outcome: &Outcome| {
                let pods = outcome.fields.get("podsLeft").and_then(Value::as_array);
                pods.cloned().unwrap_or_default()
            };
            let (mut others, own) = (left(builtin), left(shed));
            let take = |pod| {
                let at = others.iter().position(|other| other == pod);
                at.map(|at| others.remove(at)).is_some()
            };
            let is_over =
                |outcome: &Outcome| outcome.has("Failed=True") || outcome.has("Complete=True");
            let both = is_over(builtin) && is_over(shed);
            both && case.acts.iter().any(ends) && own.iter().all(take)
        },
    },
    Row {
        field: "stuck",
        reason: POLICY_ON_STOPPED,
        holds: |case, builtin, shed| {
            let is_stuck =
                |outcome: &Outcome| outcome.fields.get("stuck") == Some(&Value::Bool(true));
            !case.spec["podFailurePolicy"].is_null() && is_stuck(builtin) && !is_stuck(shed)
        },
    },
    Row {
        field: "conditions",
        reason: POLICY_ON_STOPPED,
        holds: |_, builtin, _| {
            builtin.has("FailureTarget=True PodFailurePolicy") && !builtin.has("Failed=True")
        },
    },
];

const POLICY_ON_STOPPED: &str = "The built-in controller applies the failure policy to pods that it stopped for a \
    suspension or a lower parallelism. Such a Job then has `FailureTarget` and never fails.";

const IGNORED_FAILURES: &str = "batch.kubernetes.io/job-index-ignored-failure-count";

/// Pods without what a controller adds to one that replaces another whose end does not count.
fn without_replacement(outcome: &Outcome) -> BTreeSet<String> {
    let shapes = outcome.fields.get(POD_SHAPES).and_then(Value::as_array);
    let texts = shapes.into_iter().flatten().filter_map(Value::as_str);
    let without = texts.filter_map(|text| {
        let mut shape: Value = serde_json::from_str(text).ok()?;
        shape["spec"].as_object_mut()?.remove("affinity");
        shape["annotations"]
            .as_object_mut()?
            .remove(IGNORED_FAILURES);
        Some(shape.to_string())
    });
    without.collect()
}

/// Whether a status of a Job that is being deleted is one that came before the other.
fn is_before(own: &Value, other: &Value) -> bool {
    let number = |status: &Value, name: &str| status[name].as_i64();
    let grows = |name: &&str| number(own, name) <= number(other, name);
    let conditions = |status: &Value| status["conditions"].as_array().cloned().unwrap_or_default();
    let later = conditions(other);
    own["startTime"] == other["startTime"]
        && own["uncounted"] == other["uncounted"]
        && ["succeeded", "failed"].iter().all(grows)
        && conditions(own)
            .iter()
            .all(|condition| later.contains(condition))
}

/// The highest parallelism of a case.
fn most_pods(case: &Case) -> i64 {
    let edits = case.acts.iter().filter_map(|act| match act {
        Act::Parallelism { to } | Act::Completions { to } => Some(i64::from(*to)),
        _ => None,
    });
    let own = case.spec["parallelism"].as_i64().unwrap_or(1);
    edits.fold(own, i64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::repository;

    /// More would be another controller.
    const MOST_ROWS: usize = 12;

    #[test]
    fn the_page_has_the_same_table() {
        let page = repository().join("docs/reference/adopted-jobs.md");
        let page = std::fs::read_to_string(page).unwrap();
        let (_, table) = page
            .split_once("### Differences that the test of random Jobs knows")
            .unwrap();
        let reported: Vec<&str> = table
            .lines()
            .skip_while(|line| !line.starts_with("|--"))
            .skip(1)
            .take_while(|line| line.starts_with('|'))
            .collect();
        let meant: Vec<String> = ROWS
            .iter()
            .map(|row| format!("| `{}` | {} |", row.field, row.reason))
            .collect();
        assert_eq!(reported, meant);
        assert!(ROWS.len() <= MOST_ROWS);
    }
}
