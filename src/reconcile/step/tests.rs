use std::collections::BTreeMap;
use std::sync::Arc;

use shed_core::snapshot::OnMiss;

use super::*;
use crate::cluster::pod::{AttemptFacts, JobPods, Stage};
use crate::cluster::pod_end::EndFacts;
use crate::fixtures;
use crate::job::facts::{Trace, Traces, facts};
use crate::validate::{Learned, ValidatedJob, validate};

mod adopted;

/// A job with a ledger and pods, driven step by step as the driver does it.
struct World {
    job: ValidatedJob,
    ledger: Ledger,
    pods: JobPods,
    traces: Traces,
    now: Instant,
    facts_as_of: Instant,
    learned: Learned,
}

impl World {
    fn new(change: &str) -> Self {
        Self {
            job: validate(&fixtures::job(change)).unwrap(),
            ledger: Ledger::default(),
            pods: JobPods::new(),
            traces: Traces::new(),
            now: Instant(1000),
            facts_as_of: Instant(1000),
            learned: Learned::default(),
        }
    }

    fn step(&mut self, slice: &[Move]) -> Step {
        let job = Arc::new(self.job.clone());
        let view = JobView {
            pods: self.pods.clone(),
            traces: self.traces.clone(),
            facts_as_of: self.facts_as_of,
            ..JobView::new(job, self.ledger.clone(), self.now, self.now)
        };
        let step = step(Input {
            view: &view,
            facts: &facts(&view),
            slice,
            asking: &BTreeMap::new(),
            placements: &BTreeMap::new(),
            bounds: None,
            learned: self.learned,
        });
        self.ledger = step.ledger.clone();
        step
    }

    fn pod(&mut self, id: AttemptId, stage: Stage) {
        let terminal = matches!(stage, Stage::Succeeded { .. } | Stage::Failed { .. });
        let attempt = AttemptFacts {
            task: id.0,
            number: id.1,
            tracked: true,
            deleting: false,
            deleted: None,
            due: None,
            ip: None,
            stage,
            started: Some(Instant(1000)),
            begun: true,
            reached: None,
            failure: None,
            exited_with_0: false,
            crash_loop: None,
            ready: false,
            restarts: 0,
            is_gone: terminal,
            end: EndFacts::default(),
            annotations: None,
        };
        let pod = PodFacts {
            namespace: Arc::clone(&self.job.namespace),
            name: format!("pod-{}-{}", id.0, id.1).into(),
            uid: format!("uid-{}-{}", id.0, id.1),
            version: 0,
            node: Some(Arc::from("node-1")),
            requests: Arc::default(),
            scheduling: crate::cluster::scheduling::Scheduling::default(),
            terminal,
            is_leaving: false,
            identity: crate::cluster::identity::Identity::default(),
            attempt: Some(Box::new(attempt)),
            belongs: None,
        };
        self.pods.insert(id, Arc::new(pod));
        self.traces.insert(
            id,
            Trace {
                seen: true,
                ..Trace::default()
            },
        );
    }
}

fn launch(task: u32, kind: AttemptKind) -> Move {
    Move::Launch(shed_core::fixtures::launch(task, kind))
}

fn kill(task: u32, number: u32, kind: KillKind) -> Move {
    Move::Kill(Kill {
        task: TaskIndex(task),
        attempt: AttemptNumber(number),
        kind,
        survivor: None,
    })
}

fn names(pods: &[PodRef]) -> Vec<&str> {
    pods.iter().map(|pod| pod.name.as_str()).collect()
}

/// Task 0 has an original and a clone, both running.
fn race() -> World {
    let mut world = World::new("completions: 1");
    world.step(&[launch(0, AttemptKind::Original)]);
    world.pod((0, 0), Stage::Running);
    world.step(&[launch(0, AttemptKind::Clone)]);
    world.pod((0, 1), Stage::Running);
    world
}

#[test]
fn a_launch_is_recorded_in_the_same_step_that_asks_for_its_pod() {
    let mut world = World::new("");
    let step = world.step(&[launch(2, AttemptKind::Original)]);
    assert_eq!(step.creates, [(2, 0)]);
    assert!(step.ledger.attempt(2, 0).is_some());
}

#[test]
fn a_stopped_attempt_whose_pod_is_not_yet_shown_is_not_counted() {
    let mut world = World::new("");
    world.step(&[launch(0, AttemptKind::Original)]);
    world.pod((0, 0), Stage::Running);
    world.step(&[launch(0, AttemptKind::Clone)]);
    let trace = Trace {
        asked: Some(world.now),
        ..Trace::default()
    };
    world.traces.insert((0, 1), trace);
    world.step(&[kill(0, 1, KillKind::Prune)]);
    assert!(world.step(&[]).ledger.attempt(0, 1).is_some(), "it may run");
    world.pod((0, 1), Stage::Running);
    assert_eq!(names(&world.step(&[]).deletes), ["pod-0-1"]);
}

#[test]
fn a_creation_that_no_view_shows_for_long_never_was() {
    let mut world = World::new("");
    world.step(&[launch(0, AttemptKind::Original)]);
    world.pod((0, 0), Stage::Running);
    world.step(&[launch(0, AttemptKind::Clone)]);
    let trace = Trace {
        asked: Some(Instant(world.now.0 - CREATION_SEEN_WITHIN.0)),
        ..Trace::default()
    };
    world.traces.insert((0, 1), trace);
    world.step(&[kill(0, 1, KillKind::Prune)]);
    assert_eq!(world.step(&[]).ledger.counts.superseded, 1);
}

#[test]
fn only_a_restart_stops_the_only_attempt_of_a_task() {
    let mut alone = World::new("completions: 1");
    alone.step(&[launch(0, AttemptKind::Original)]);
    alone.pod((0, 0), Stage::Running);
    assert!(
        alone
            .step(&[kill(0, 0, KillKind::Prune)])
            .notices
            .is_empty()
    );
    let step = alone.step(&[kill(0, 0, KillKind::Restart)]);
    assert_eq!(names(&step.deletes), ["pod-0-0"]);
    let step = race().step(&[kill(0, 0, KillKind::Restart)]);
    assert!(step.notices.is_empty(), "a sibling came in between");
}

#[test]
fn a_pod_that_a_crash_kept_from_being_created_is_created_later() {
    let mut world = World::new("");
    world.step(&[launch(2, AttemptKind::Original)]);
    assert_eq!(
        world.step(&[]).creates,
        [(2, 0)],
        "nothing was seen of it: again"
    );
    world.traces.insert(
        (2, 0),
        Trace {
            created: Some(world.now),
            ..Trace::default()
        },
    );
    assert!(
        world.step(&[]).creates.is_empty(),
        "acknowledged: the view is behind"
    );
}

#[test]
fn a_pod_that_vanished_is_a_disruption_and_not_created_again() {
    let mut world = World::new("");
    world.step(&[launch(2, AttemptKind::Original)]);
    world.pod((2, 0), Stage::Running);
    world.pods.clear();
    let step = world.step(&[]);
    assert!(step.creates.is_empty());
    assert_eq!(step.ledger.counts.disrupted, 1);
}

#[test]
fn the_winner_and_the_stop_of_the_loser_are_one_record() {
    let mut world = race();
    world.pod(
        (0, 1),
        Stage::Succeeded {
            finished: Instant(5000),
        },
    );
    let step = world.step(&[]);
    assert_eq!(step.ledger.counts.clone_wins, 1);
    assert_eq!(
        step.ledger.attempt(0, 0).unwrap().kill,
        Some(KillKind::Settle)
    );
    assert_eq!(names(&step.deletes), ["pod-0-0"]);
    assert_eq!(
        names(&step.releases),
        ["pod-0-1"],
        "the winner is counted, its pod may go"
    );
    assert!(!step.ledger.finished, "the loser is not gone yet");
}

#[test]
fn a_loser_that_exits_with_0_later_is_superseded() {
    let mut world = race();
    world.pod(
        (0, 1),
        Stage::Succeeded {
            finished: Instant(5000),
        },
    );
    world.step(&[]);
    world.pod(
        (0, 0),
        Stage::Succeeded {
            finished: Instant(6000),
        },
    );
    let step = world.step(&[]);
    assert_eq!(
        (step.ledger.counts.won, step.ledger.counts.superseded),
        (1, 1)
    );
    assert!(names(&step.releases).contains(&"pod-0-0"));
    assert!(step.ledger.finished && step.ledger.ending == Some(Conclusion::Complete));
}

#[test]
fn nothing_changes_once_everything_is_settled() {
    let mut world = race();
    world.pod(
        (0, 1),
        Stage::Succeeded {
            finished: Instant(5000),
        },
    );
    world.pod(
        (0, 0),
        Stage::Failed {
            finished: Instant(6000),
            disrupted: false,
        },
    );
    world.step(&[]);
    world.step(&[]);
    let before = world.ledger.clone();
    world.pods.clear();
    let step = world.step(&[]);
    assert_eq!(step.ledger, before);
    assert!(step.creates.is_empty() && step.deletes.is_empty() && step.releases.is_empty());
    assert!(step.notices.is_empty());
}

#[test]
fn a_stale_slice_launches_nothing_that_no_longer_makes_sense() {
    let mut world = race();
    let again = world.step(&[launch(0, AttemptKind::Original)]);
    assert!(again.creates.is_empty(), "the task has live attempts");
    world.pod(
        (0, 0),
        Stage::Succeeded {
            finished: Instant(5000),
        },
    );
    let late = world.step(&[launch(0, AttemptKind::Clone)]);
    assert!(
        late.creates.is_empty(),
        "the task was won in this very step"
    );
}

#[test]
fn a_stale_prune_never_kills_the_last_attempt() {
    let mut world = race();
    world.pod(
        (0, 1),
        Stage::Failed {
            finished: Instant(5000),
            disrupted: false,
        },
    );
    let prune = Move::Kill(Kill {
        task: TaskIndex(0),
        attempt: AttemptNumber(0),
        kind: KillKind::Prune,
        survivor: Some(AttemptNumber(1)),
    });
    let step = world.step(&[prune]);
    assert!(step.deletes.is_empty());
    assert_eq!(
        step.ledger.counts.clone_failed, 1,
        "the clone failed while the original lived"
    );
}

#[test]
fn a_pod_that_nobody_recorded_is_deleted_and_let_go() {
    let mut world = World::new("");
    world.pod((3, 7), Stage::Running);
    let step = world.step(&[]);
    assert_eq!(names(&step.deletes), ["pod-3-7"]);
    assert_eq!(names(&step.releases), ["pod-3-7"]);
    assert!(matches!(step.notices[..], [Notice::Unrecorded { .. }]));
}

#[test]
fn the_deadline_stops_only_on_facts_that_reach_beyond_it() {
    let mut world = race();
    assert_eq!(world.job.rules.on_miss, OnMiss::Fail);
    world.now = Instant(700_000);
    assert!(world.step(&[]).deletes.is_empty(), "the view is old");
    world.facts_as_of = world.now;
    let step = world.step(&[]);
    assert_eq!(step.ledger.ending, Some(Conclusion::DeadlineExceeded));
    assert_eq!(names(&step.deletes), ["pod-0-0", "pod-0-1"]);
}

#[test]
fn a_suspended_job_starts_no_attempt_and_no_clock() {
    let mut world = World::new("{suspend: true, deadline: {within: 10m, clockStart: Start}}");
    let step = world.step(&[launch(0, AttemptKind::Original)]);
    assert!(step.creates.is_empty());
    assert_eq!(step.ledger.first_pass, None);
    world.job.rules.suspend = false;
    world.now = Instant(50_000);
    assert_eq!(world.step(&[]).ledger.first_pass, Some(Instant(50_000)));
}

const POLICY: &str = "podFailurePolicy: {rules: [
  {action: Ignore, onPodConditions: [{type: DisruptionTarget, status: 'True'}]},
  {action: FailIndex, onExitCodes: {operator: In, values: [3]}},
  {action: FailJob, onExitCodes: {containerName: task, operator: In, values: [42]}}]}";

/// A pod of task 0 or 1 that ended with this code, as the apiserver shows it.
fn fail(world: &mut World, id: AttemptId, code: i32) {
    let stage = Stage::Failed {
        finished: Instant(2000),
        disrupted: false,
    };
    world.pod(id, stage);
    let status = format!(
        "{{status: {{containerStatuses: [{{name: task, state: {{terminated: {{exitCode: {code}}}}}}}]}}}}"
    );
    let failure = crate::cluster::failure::Failure::of(&serde_saphyr::from_str(&status).unwrap());
    let mut pod = (*world.pods[&id]).clone();
    pod.attempt.as_mut().unwrap().failure = Some(Box::new(failure));
    world.pods.insert(id, Arc::new(pod));
}

fn two_of(change: &str) -> World {
    let mut world = World::new(&format!("completions: 2\n{change}"));
    world.step(&[
        launch(0, AttemptKind::Original),
        launch(1, AttemptKind::Original),
    ]);
    world.pod((0, 0), Stage::Running);
    world.pod((1, 0), Stage::Running);
    world.now = Instant(3000);
    world
}

#[test]
fn a_rule_that_fails_the_job_names_the_pod_for_good() {
    let mut world = two_of(POLICY);
    fail(&mut world, (0, 0), 42);
    let step = world.step(&[]);
    assert_eq!(step.ledger.ending, Some(Conclusion::PodFailurePolicy));
    let note = step.ledger.ending_note.clone().unwrap();
    assert!(
        note.contains("pod-0-0") && note.contains("exited with code 42"),
        "{note}"
    );
    assert_eq!(names(&step.deletes), ["pod-1-0"]);
    world.pods.clear();
    assert_eq!(world.step(&[]).ledger.ending_note, Some(note));
}

#[test]
fn a_rule_that_fails_the_task_spares_its_back_off() {
    let mut world = two_of(POLICY);
    fail(&mut world, (0, 0), 3);
    let step = world.step(&[]);
    assert_eq!(step.ledger.failed.to_string(), "0");
    assert_eq!(step.ledger.counts.failed, 1);
    assert!(step.ledger.ending.is_none());
    // No rule is about this one: it counts, and is tried again.
    fail(&mut world, (1, 0), 1);
    let step = world.step(&[]);
    assert_eq!(
        (step.ledger.failed.len(), step.ledger.counts.failed),
        (1, 2)
    );
}

#[test]
fn chosen_indexes_are_all_there_is_to_do() {
    let mut world = World::new("indexes: '1'");
    let step = world.step(&[
        launch(0, AttemptKind::Original),
        launch(1, AttemptKind::Original),
    ]);
    assert_eq!(step.creates, [(1, 0)]);
    let finished = Instant(2000);
    world.pod((1, 0), Stage::Succeeded { finished });
    let step = world.step(&[]);
    assert_eq!(step.ledger.ending, Some(Conclusion::Complete));
    assert_eq!(step.ledger.done.to_string(), "1");
}

#[test]
fn numbers_of_a_task_beyond_lowered_completions_are_not_reused() {
    let mut world = two_of("");
    world.job.rules.completions = 1;
    let step = world.step(&[launch(1, AttemptKind::Clone)]);
    assert_eq!(names(&step.deletes), ["pod-1-0"]);
    assert!(step.creates.is_empty());
    world.pods.remove(&(1, 0));
    let step = world.step(&[]);
    assert_eq!(step.ledger.counts.superseded, 1);
    world.job.rules.completions = 2;
    assert_eq!(
        world.step(&[launch(1, AttemptKind::Retry)]).creates,
        [(1, 1)]
    );
}

#[test]
fn the_time_limit_restarts_after_a_suspension() {
    let mut world = two_of("activeDeadlineSeconds: 10");
    assert_eq!(world.step(&[]).ledger.active_since, Some(Instant(1000)));
    world.job.rules.suspend = true;
    assert_eq!(world.step(&[]).ledger.active_since, None);
    world.pods.clear();
    world.job.rules.suspend = false;
    world.now = Instant(8000);
    assert_eq!(world.step(&[]).ledger.active_since, Some(Instant(8000)));
    world.now = Instant(17_999);
    assert_eq!(world.step(&[]).ledger.ending, None);
    world.now = Instant(18_000);
    assert_eq!(world.step(&[]).ledger.ending, Some(Conclusion::TimeLimit));
}

#[test]
fn a_replacement_can_wait_until_the_last_attempt_is_gone() {
    let mut world = two_of("podReplacementPolicy: Failed");
    let stuck = Stage::Stuck {
        reason: "ErrImagePull".into(),
        message: String::new(),
    };
    world.pod((0, 0), stuck);
    world.traces.entry((0, 0)).or_default().stuck_since = Some(Instant(1000));
    world.now = Instant(9000);
    let step = world.step(&[]);
    assert_eq!(names(&step.deletes), ["pod-0-0"]);
    assert_eq!(world.step(&[launch(0, AttemptKind::Retry)]).creates, []);
    world.pods.remove(&(0, 0));
    world.step(&[]);
    assert_eq!(
        world.step(&[launch(0, AttemptKind::Retry)]).creates,
        [(0, 1)]
    );
}

#[test]
fn a_clone_of_a_task_without_a_live_attempt_is_not_launched() {
    let mut world = World::new("completions: 1");
    let step = world.step(&[launch(0, AttemptKind::Clone)]);
    assert!(step.creates.is_empty());
}

#[test]
fn a_task_that_failed_for_good_has_no_winner_any_more() {
    let mut world = two_of(POLICY);
    world.step(&[launch(0, AttemptKind::Clone)]);
    world.pod((0, 1), Stage::Running);
    fail(&mut world, (0, 0), 3);
    let step = world.step(&[]);
    assert_eq!(step.ledger.failed.to_string(), "0");
    // It had ended well before it was killed, but the watch had not shown that.
    let finished = Instant(1500);
    world.pod((0, 1), Stage::Succeeded { finished });
    let step = world.step(&[]);
    assert_eq!(
        (step.ledger.done.len(), step.ledger.counts.superseded),
        (0, 1)
    );
}
