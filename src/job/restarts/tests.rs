use std::sync::Arc;

use shed_core::ids::{AttemptNumber, TaskIndex};
use shed_core::snapshot::{AttemptKind, KillKind};
use shed_core::time::Instant;

use super::*;
use crate::adopt::translate;
use crate::cluster::pod::{AttemptId, PodFacts};
use crate::fixtures;
use crate::validate::validate;

fn adopted(change: &str) -> ValidatedJob {
    let job = fixtures::batch_job(change);
    translate::validated(&fixtures::companion(&job), &job).unwrap()
}

fn own(change: &str) -> ValidatedJob {
    validate(&fixtures::job(&format!("{{{change}}}"))).unwrap()
}

/// A template whose containers are restarted in place, and a limit.
fn in_place(limit: u32) -> String {
    format!(
        "backoffLimit: {limit}, completions: 4, template: {{spec: {{restartPolicy: OnFailure, \
         containers: [{{name: c, image: i}}]}}}}"
    )
}

/// An attempt whose container was restarted this often.
fn pod(id: AttemptId, phase: &str, restarts: u32) -> (AttemptId, Arc<PodFacts>) {
    let yaml = format!(
        "{{metadata: {{labels: {{shed.dev/job-uid: d, shed.dev/task: '{}', shed.dev/attempt: '{}'}}}}, \
         spec: {{containers: [{{name: c}}]}}, status: {{phase: {phase}, containerStatuses: \
         [{{name: c, restartCount: {restarts}, ready: true, image: i, imageID: i}}]}}}}",
        id.0, id.1
    );
    let pod = serde_saphyr::from_str(&yaml).unwrap();
    (id, Arc::new(PodFacts::from_pod(&pod, Instant(0))))
}

fn launched(tasks: &[u32]) -> Ledger {
    let mut ledger = Ledger::default();
    for &task in tasks {
        let launch = shed_core::fixtures::launch(task, AttemptKind::Original);
        ledger.launch(&launch, Instant(0));
    }
    ledger
}

#[test]
fn restarts_count_against_the_limit_of_both_kinds_of_job() {
    let ledger = launched(&[0, 1]);
    let pods =
        |restarts| JobPods::from([pod((0, 0), "Running", 1), pod((1, 0), "Pending", restarts)]);
    for job in [adopted(&in_place(3)), own(&in_place(3))] {
        let at = |restarts| {
            let pods = pods(restarts);
            (
                at_limit(&job, &ledger, &pods),
                failures(&job, &ledger, &pods),
            )
        };
        assert_eq!(at(1), (None, 0));
        assert_eq!(at(2), (Some(3), 4), "beyond the limit");
    }
    for never in ["backoffLimit: 3, completions: 4", "completions: 4"] {
        assert_eq!(failures(&adopted(never), &ledger, &pods(7)), 0);
        assert_eq!(failures(&own(never), &ledger, &pods(7)), 0);
    }
    let (none, ready) = (adopted(&in_place(0)), launched(&[1]));
    assert_eq!(at_limit(&none, &ready, &pods(0)), None);
    assert_eq!(at_limit(&none, &ready, &pods(1)), Some(1));
}

#[test]
fn pods_that_ended_or_that_shed_stops_do_not_count() {
    let job = own(&in_place(3));
    let mut ledger = launched(&[0, 1]);
    let pods = JobPods::from([pod((0, 0), "Failed", 3), pod((1, 0), "Running", 3)]);
    assert_eq!(at_limit(&job, &ledger, &pods), Some(3));
    ledger.kill(TaskIndex(1), AttemptNumber(0), KillKind::Prune, Instant(1));
    assert_eq!(at_limit(&job, &ledger, &pods), None);
}

#[test]
fn of_a_tasks_copies_the_one_with_the_fewest_restarts_counts() {
    let job = own(&in_place(3));
    let ledger = launched(&[0, 0]);
    let pods = |clone| JobPods::from([pod((0, 0), "Running", 5), pod((0, 1), "Running", clone)]);
    assert_eq!(at_limit(&job, &ledger, &pods(2)), None);
    assert_eq!(at_limit(&job, &ledger, &pods(4)), Some(4));
}
