use serde_json::json;
use shed::api::DecisionRecord;

use super::text::render;
use super::*;
use crate::fixtures::{canvas, golden_widths, job, nightly, now};

fn explanation(task: Option<i32>) -> Explanation {
    let (job, record) = nightly();
    Explanation::new(
        StatusView {
            job,
            record: Some(record),
            notes: Vec::new(),
        },
        task,
    )
}

#[test]
fn every_decision_has_its_reason_and_what_would_change_it() {
    let explanation = explanation(None);
    golden_widths("explain", |canvas| render(&explanation, canvas, now()));
}

#[test]
fn one_task_is_shown_alone() {
    let explanation = explanation(Some(3));
    golden_widths("explain-task", |canvas| render(&explanation, canvas, now()));
    let text = render(&explanation, canvas(80), now());
    assert!(!text.contains("task 1 "), "{text}");
}

#[test]
fn each_refusal_of_the_core_has_words_of_its_own() {
    // The reasons that the operator writes are the names of the core's variants.
    let names = [
        "Capacity",
        "NoNode",
        "Hopeless",
        "Maximum",
        "CloneFailures",
        "Disrupted",
        "NotIdempotent",
        "Observe",
        "Budget",
        "Work",
        "Target",
        "Stopped",
        "JobBudget",
        "Queue",
    ];
    let mut seen = std::collections::BTreeSet::new();
    for name in names {
        let decision = json!({"time": "2030-01-31T07:00:00Z", "task": 0, "verdict": "Refused", "reason": name});
        let decision: DecisionRecord = serde_json::from_value(decision).unwrap();
        let reason = reasons::of(&decision);
        assert!(reason.why != name && reason.advice.is_some(), "{name}");
        assert!(seen.insert(reason.why), "{name}");
    }
}

#[test]
fn a_reason_of_a_newer_operator_is_shown_as_it_is() {
    let decision =
        json!({"time": "2030-01-31T07:00:00Z", "task": 0, "verdict": "Stopped", "reason": "Novel"});
    let decision: DecisionRecord = serde_json::from_value(decision).unwrap();
    assert_eq!(reasons::of(&decision).why, "Novel");
}

#[test]
fn settings_that_forbid_clones_are_named_with_their_field() {
    let status = json!({"phase": "Running", "deadline": "2030-01-31T08:00:00Z", "pocd": "0.950"});
    let mut job = job(3, status);
    let limits = |job: &crate::model::JobView| -> String {
        settings::limits(job, None)
            .into_iter()
            .map(|limit| limit.why + "\n")
            .collect()
    };
    assert_eq!(limits(&job), "");
    job.spec.idempotency = "None".to_owned();
    job.spec.speculation.mode = "Disabled".to_owned();
    job.spec.speculation.max_clones_per_task = 0;
    job.spec.target_pocd = Some(0.9);
    job.spec.suspend = true;
    let said = limits(&job);
    for field in [
        "spec.idempotency",
        "spec.speculation.mode",
        "maxClonesPerTask",
        "PoCD 0.950",
        "spec.suspend",
    ] {
        assert!(said.contains(field), "{field}\n{said}");
    }
    job.status.phase = Some("Complete".to_owned());
    assert_eq!(limits(&job), "the job has finished (Complete)\n");
}

#[test]
fn a_job_that_a_backup_restored_says_why_it_waits() {
    let condition = json!({"type": "Suspended", "status": "True", "reason": "RestoredWithoutStatus",
        "message": "restore the status too", "lastTransitionTime": "2030-01-31T08:00:00Z"});
    let job = job(3, json!({"phase": "Suspended", "conditions": [condition]}));
    let limits = settings::limits(&job, None);
    assert_eq!(limits[0].why, "restore the status too");
}

#[test]
fn advice_about_a_job_names_its_annotations() {
    let (mut job, record) = nightly();
    job.kind = "Job";
    job.spec.speculation.max_clones_per_task = 0;
    let status = StatusView {
        job,
        record: Some(record),
        notes: Vec::new(),
    };
    let explanation = Explanation::new(status, None);
    let advice = explanation
        .limits
        .iter()
        .filter_map(|limit| limit.advice.clone());
    let advice: Vec<String> = advice.collect();
    assert!(
        advice.contains(&"raise the annotation shed.dev/max-clones-per-task".to_owned()),
        "{advice:?}"
    );
}
