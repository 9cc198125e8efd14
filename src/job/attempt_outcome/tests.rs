//! What an ended pod counts as, over every phase, exit code, reason and deletion, for each kind of job.
//! The expectation is batch/v1's rule, and what shed documents beyond it.

use std::fmt::Write;

use serde_json::json;
use shed_core::ids::{AttemptNumber, TaskIndex};
use shed_core::plan::{Outcome, Settled};
use shed_core::snapshot::AttemptKind;
use shed_core::time::Instant;

use super::*;
use crate::adopt::translate;
use crate::api::{ATTEMPT_FINALIZER, JOB_TRACKING_FINALIZER, Ledger};
use crate::clock;
use crate::cluster::pod::{JobPods, PodFacts};
use crate::fixtures;
use crate::job::facts::facts;
use crate::validate::validate;

/// How the pod counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Count {
    NotEnded,
    Success,
    Failure,
    Disruption,
}

/// The pod's main containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Containers {
    /// The status does not contain them.
    Absent,
    Running,
    /// They ended at 50 s with these codes.
    Ended(&'static [i32]),
}

/// A status of a pod. It is observed at 60 s.
#[derive(Debug, Clone, Copy)]
struct Case {
    phase: &'static str,
    containers: Containers,
    reason: Option<&'static str>,
    /// The reason of a DisruptionTarget of 45 s.
    disruption: Option<&'static str>,
    /// When a client requested its deletion.
    deleted: Option<i64>,
}

const PHASES: [&str; 5] = ["Pending", "Running", "Succeeded", "Failed", "Unknown"];
const CONTAINERS: [Containers; 6] = [
    Containers::Absent,
    Containers::Running,
    Containers::Ended(&[0]),
    Containers::Ended(&[3]),
    Containers::Ended(&[0, 0]),
    Containers::Ended(&[0, 3]),
];
/// Of the pod-level time limit, an eviction, a node's shutdown, a lost node, and by hand.
const REASONS: [Option<&str>; 6] = [
    None,
    Some("DeadlineExceeded"),
    Some("Evicted"),
    Some("Terminated"),
    Some("NodeLost"),
    Some("ByHand"),
];
const DISRUPTIONS: [Option<&str>; 3] =
    [None, Some("TerminationByKubelet"), Some("DeletionByPodGC")];
const DELETIONS: [Option<i64>; 3] = [None, Some(45), Some(55)];

fn cases() -> impl Iterator<Item = Case> {
    let phases = PHASES.into_iter();
    let cases = phases.flat_map(|phase| CONTAINERS.map(|containers| (phase, containers)));
    let cases = cases.flat_map(|case| REASONS.map(|reason| (case, reason)));
    let cases = cases.flat_map(|case| DISRUPTIONS.map(|disruption| (case, disruption)));
    cases.flat_map(|(((phase, containers), reason), disruption)| {
        DELETIONS.map(|deleted| Case {
            phase,
            containers,
            reason,
            disruption,
            deleted,
        })
    })
}

impl Case {
    /// The pod of a job whose pods have this finalizer.
    fn pod(&self, finalizer: &str) -> PodFacts {
        let time = |at: i64| clock::time(Instant(at * 1000));
        let states = match self.containers {
            Containers::Absent => vec![],
            Containers::Running => vec![json!({"running": {"startedAt": time(20)}})],
            Containers::Ended(codes) => {
                let ended = |code| json!({"terminated": {"exitCode": code, "startedAt": time(20), "finishedAt": time(50)}});
                codes.iter().map(ended).collect()
            }
        };
        let name = |number: usize| format!("task-{number}");
        let statuses = states.iter().enumerate().map(|(number, state)| {
            json!({"name": name(number), "ready": false, "restartCount": 0, "image": "i", "imageID": "i",
                "state": state})
        });
        let containers = (0..states.len().max(1)).map(|number| json!({"name": name(number)}));
        let conditions = self.disruption.map(|reason| {
            json!({"type": "DisruptionTarget", "status": "True", "reason": reason,
                "lastTransitionTime": time(45)})
        });
        let mut pod = json!({
            "metadata": {"name": "p", "namespace": "team", "uid": "u",
                "finalizers": [finalizer],
                "labels": {"shed.dev/job-uid": "j", "shed.dev/task": "3", "shed.dev/attempt": "0"}},
            "spec": {"nodeName": "n", "containers": containers.collect::<Vec<_>>()},
            "status": {"phase": self.phase, "reason": self.reason,
                "containerStatuses": statuses.collect::<Vec<_>>(),
                "conditions": conditions.into_iter().collect::<Vec<_>>()},
        });
        if let Some(at) = self.deleted {
            pod["metadata"]["deletionTimestamp"] = json!(time(at + 30));
            pod["metadata"]["deletionGracePeriodSeconds"] = json!(30);
        }
        PodFacts::from_pod(&serde_json::from_value(pod).unwrap(), Instant(60_000))
    }

    fn exited_with_0(&self) -> bool {
        matches!(self.containers, Containers::Ended([0] | [0, 0]))
    }

    /// The rule of batch/v1: the phase decides, and a pod that is being deleted has failed unless the
    /// Job waits for its end (`isPodFailed` and `getNewFinishedPods` of pkg/controller/job).
    fn by_batch(&self, waits_for_end: bool) -> Count {
        match self.phase {
            "Succeeded" => Count::Success,
            "Failed" => Count::Failure,
            _ if self.deleted.is_some() && !waits_for_end => Count::Failure,
            _ => Count::NotEnded,
        }
    }

    /// Whether its end may be a response to a request to stop. An end without a time is of 60 s.
    fn may_be_response(&self) -> bool {
        let ended = match self.containers {
            Containers::Ended(_) => 50,
            Containers::Absent | Containers::Running => 60,
        };
        let notice = self.disruption.map(|_| 45);
        self.deleted
            .into_iter()
            .chain(notice)
            .any(|asked| asked <= ended)
    }

    /// What shed documents beyond batch/v1: a success that may be such a response is a disruption.
    fn without_responses(&self, count: Count) -> Count {
        match count {
            Count::Success if self.may_be_response() => Count::Disruption,
            count => count,
        }
    }

    /// The rule of a DeadlineJob: as batch/v1, but an early success counts, and a disruption is no
    /// failure of the task.
    fn by_deadline_job(&self) -> Count {
        let is_disrupted = self.disruption.is_some()
            || self.deleted.is_some()
            || matches!(self.reason, Some("Evicted" | "Terminated" | "NodeLost"));
        let count = match self.by_batch(true) {
            Count::Failure if is_disrupted => Count::Disruption,
            Count::NotEnded if self.exited_with_0() => Count::Success,
            count => count,
        };
        self.without_responses(count)
    }
}

fn launched() -> Ledger {
    let mut ledger = Ledger::default();
    ledger.launch(
        &shed_core::fixtures::launch(3, AttemptKind::Original),
        Instant(10_000),
    );
    ledger
}

/// How shed counts the job's only attempt, by its pod and this ledger.
fn count(job: &ValidatedJob, ledger: &Ledger, pod: PodFacts) -> Count {
    let now = Instant(60_000);
    let view = JobView {
        pods: JobPods::from([((3, 0), Arc::new(pod))]),
        ..JobView::new(Arc::new(job.clone()), ledger.clone(), now, now)
    };
    let settled = shed_core::settle::settle(now, &facts(&view));
    let mut counts = settled.iter().filter_map(|action| match action {
        Settled::Win { .. } => Some(Count::Success),
        Settled::Count { outcome, .. } => Some(match outcome {
            Outcome::Failed => Count::Failure,
            Outcome::Disrupted => Count::Disruption,
            other => panic!("{other:?}"),
        }),
        _ => None,
    });
    counts.next().unwrap_or(Count::NotEnded)
}

fn adopted(change: &str, annotations: &str) -> ValidatedJob {
    let mut job = fixtures::batch_job(&format!("completions: 4, parallelism: 4 {change}"));
    job.metadata.annotations = serde_saphyr::from_str(annotations).unwrap();
    translate::validated(&fixtures::companion(&job), &job).unwrap()
}

fn own(change: &str) -> ValidatedJob {
    validate(&fixtures::job(change)).unwrap()
}

/// Compares all cases, and lists those that differ.
fn compare(job: &ValidatedJob, expected: impl Fn(&Case) -> Count) {
    let finalizer = match job.adopted {
        Some(_) => JOB_TRACKING_FINALIZER,
        None => ATTEMPT_FINALIZER,
    };
    let ledger = launched();
    let (mut wrong, mut counts) = (String::new(), Vec::new());
    for case in cases() {
        let (found, expected) = (count(job, &ledger, case.pod(finalizer)), expected(&case));
        counts.push(expected);
        if found != expected {
            writeln!(wrong, "{case:?}: {found:?}, expected {expected:?}").unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(counts.contains(&Count::Success) && counts.contains(&Count::NotEnded));
}

#[test]
fn pods_of_a_plain_job_count_as_in_batch() {
    compare(&adopted("", "{}"), |case| case.by_batch(false));
    let waits = adopted(", podReplacementPolicy: Failed", "{}");
    compare(&waits, |case| case.by_batch(true));
}

#[test]
fn with_annotations_an_exit_on_sigterm_is_no_result() {
    let with_deadline = adopted("", "{shed.dev/deadline: 10m}");
    compare(&with_deadline, |case| {
        case.without_responses(case.by_batch(false))
    });
    let safe = adopted("", "{shed.dev/deadline: 10m, shed.dev/idempotency: Safe}");
    compare(&safe, |case| case.without_responses(case.by_batch(true)));
}

#[test]
fn pods_of_a_deadline_job_count_as_its_page_states() {
    compare(&own(""), Case::by_deadline_job);
}

/// Without proof that such a pod is gone, no other attempt of its task may start.
#[test]
fn with_idempotency_none_a_failed_pod_waits_for_proof() {
    let is_proven = |case: &Case| matches!(case.containers, Containers::Ended(_));
    compare(&own("idempotency: None"), |case| {
        match case.by_deadline_job() {
            Count::Failure | Count::Disruption | Count::Success if !is_proven(case) => {
                Count::NotEnded
            }
            count => count,
        }
    });
}

/// The task has published by then: a second attempt would publish once more.
#[test]
fn a_recorded_grant_stands_whatever_the_phase() {
    let fenced = own("{idempotency: Fenced, progress: {file: {}}}");
    let mut ledger = launched();
    let failed = |codes: &'static [i32]| Case {
        phase: "Failed",
        containers: Containers::Ended(codes),
        reason: Some("DeadlineExceeded"),
        disruption: None,
        deleted: None,
    };
    let count_of =
        |ledger: &Ledger, codes| count(&fenced, ledger, failed(codes).pod(ATTEMPT_FINALIZER));
    assert_eq!(count_of(&ledger, &[0]), Count::Failure);
    ledger.grant(3, 0, Instant(30_000)).unwrap();
    assert_eq!(count_of(&ledger, &[0]), Count::Success);
    assert_eq!(count_of(&ledger, &[3]), Count::Failure);
}

/// An early success counts from its record on. Before that the phase Failed takes it back.
#[test]
fn an_early_success_is_final_once_it_is_recorded() {
    let job = own("");
    let early = |phase| Case {
        phase,
        containers: Containers::Ended(&[0]),
        reason: None,
        disruption: None,
        deleted: None,
    };
    let observed = early("Running").pod(ATTEMPT_FINALIZER);
    let mut ledger = launched();
    assert_eq!(count(&job, &ledger, observed.clone()), Count::Success);
    let collected = early("Failed").pod(ATTEMPT_FINALIZER).after(&observed);
    assert_eq!(count(&job, &ledger, collected.clone()), Count::Failure);
    let (task, first) = (TaskIndex(3), AttemptNumber(0));
    assert!(ledger.win(task, first, Instant(50_000), None));
    assert_eq!(count(&job, &ledger, collected), Count::NotEnded);
    assert!(ledger.done.contains(task));
}
