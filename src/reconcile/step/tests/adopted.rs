//! Pods of a batch/v1 Job that are deleted.

use shed_core::snapshot::AttemptKind;

use super::*;
use crate::adopt::translate;
use crate::reconcile::job_status;
use crate::reconcile::mock::{launch, originals};

fn adopted(change: &str) -> World {
    let job = fixtures::batch_job(change);
    World {
        job: translate::validated(&fixtures::companion(&job), &job).unwrap(),
        ..World::new("")
    }
}

/// Another client deletes the attempt's pod, which runs on for its grace period.
fn delete(world: &mut World, id: AttemptId) {
    let pod = world.pods.get_mut(&id).map(Arc::make_mut).unwrap();
    let attempt = pod.attempt.as_mut().unwrap();
    attempt.deleting = true;
    attempt.deleted = Some(world.now);
    attempt.due = Some(world.now.plus(Span::from_seconds(30)));
}

/// A Job of one task whose first pod was deleted and whose second runs.
fn replaced() -> World {
    let mut world = adopted("completions: 1");
    world.step(&originals(1));
    world.pod((0, 0), Stage::Running);
    delete(&mut world, (0, 0));
    let step = world.step(&[]);
    assert_eq!(
        (step.ledger.counts.failed, step.ledger.tasks[&0].failures),
        (1, 1)
    );
    assert_eq!((step.deletes.len(), step.releases.len()), (0, 1));
    let step = world.step(&[launch(0, AttemptKind::Retry)]);
    assert_eq!(step.creates, [(0, 1)]);
    world.pod((0, 1), Stage::Running);
    world
}

#[test]
fn a_deleted_pod_counts_as_failed_and_as_terminating_at_once() {
    let mut world = replaced();
    let counts = job_status::count(&world.ledger, &world.pods);
    assert_eq!((counts.active, counts.terminating), (1, 1));
    // It ends: nothing is counted twice.
    let finished = Instant(9000);
    let disrupted = true;
    world.pod(
        (0, 0),
        Stage::Failed {
            finished,
            disrupted,
        },
    );
    let step = world.step(&[]);
    assert_eq!(step.ledger.counts.failed, 1);
    assert_eq!(job_status::count(&world.ledger, &world.pods).terminating, 0);
}

#[test]
fn a_job_is_complete_when_its_deleted_pods_have_ended_too() {
    let mut world = replaced();
    let finished = Instant(9000);
    world.pod((0, 1), Stage::Succeeded { finished });
    for _ in 0..2 {
        let step = world.step(&[]);
        assert_eq!(step.ledger.ending, Some(Conclusion::Complete));
        assert!(!step.ledger.finished, "a pod is terminating");
    }
    let disrupted = true;
    world.pod(
        (0, 0),
        Stage::Failed {
            finished,
            disrupted,
        },
    );
    assert!(world.step(&[]).ledger.finished);
    assert_eq!(
        (world.ledger.counts.won, world.ledger.counts.failed),
        (1, 1)
    );
}

#[test]
fn a_job_with_the_policy_failed_waits_until_the_pod_has_ended() {
    let mut world = adopted("completions: 1, podReplacementPolicy: Failed");
    world.step(&originals(1));
    world.pod((0, 0), Stage::Running);
    delete(&mut world, (0, 0));
    let step = world.step(&[launch(0, AttemptKind::Retry)]);
    assert_eq!((step.ledger.counts.failed, step.creates.len()), (0, 0));
}
