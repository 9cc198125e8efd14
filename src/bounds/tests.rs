use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use shed_core::ids::{AttemptNumber, NodeName, TaskIndex};
use shed_core::plan::Outcome;
use shed_core::snapshot::{Conclusion, KillKind, ResumePoint};
use shed_core::time::{Instant, Span};

use super::*;
use crate::api::{DeadlineJobStatus, NodeEntry};
use crate::fixtures;
use crate::validate::validate;

mod histories;
mod whole;

const NODES: usize = 200;

fn node(number: usize) -> NodeEntry {
    NodeEntry {
        name: format!("node-{number:03}.example.internal"),
        boot: "01234567-89ab-cdef-0123-456789abcdef".to_owned(),
    }
}

fn node_bytes() -> usize {
    let nodes = (0..NODES).map(node);
    nodes
        .map(|node| node.name.len() + node.boot.len() + 4)
        .sum()
}

struct World {
    owner: DeadlineJob,
    job: ValidatedJob,
    bounds: Bounds,
    ledger: Ledger,
    now: Instant,
}

impl World {
    fn new(completions: u32, change: &str) -> Self {
        Self::of(completions, change, 0)
    }

    /// With a specification of this many bytes.
    fn of(completions: u32, change: &str, bytes: usize) -> Self {
        let owner = fixtures::job(&format!("{{completions: {completions}{change}}}"));
        let owner = padded(owner, bytes);
        let job = validate(&owner).unwrap();
        Self {
            bounds: Bounds::of(&owner, &job, node_bytes(), 0),
            owner,
            job,
            ledger: Ledger::default(),
            now: Instant(1_700_000_000_000),
        }
    }

    /// The object as it would be written.
    fn bytes(&self) -> usize {
        let mut owner = self.owner.clone();
        owner.status = Some(self.status());
        size::bytes(&owner)
    }

    fn status(&self) -> DeadlineJobStatus {
        let total = self.job.rules.completions;
        DeadlineJobStatus {
            completed_indexes: self.ledger.done_tasks(total).to_string(),
            failed_indexes: self.ledger.failed_tasks(total).to_string(),
            ledger: Some(self.ledger.clone()),
            ..DeadlineJobStatus::default()
        }
    }

    /// Launches as many of these as fit, and returns their number.
    fn launch(&mut self, launches: impl IntoIterator<Item = Launch>) -> usize {
        let actions: Vec<_> = launches.into_iter().map(Move::Launch).collect();
        let fitting = self
            .bounds
            .fitting(&self.ledger, &actions)
            .unwrap_or(actions);
        for launch in fitting.iter().filter_map(launch) {
            self.ledger.launch(launch, self.now);
        }
        fitting.len()
    }

    fn kill_all(&mut self, kind: KillKind) {
        let attempts = self.ledger.tasks.values().flat_map(|task| {
            let attempts = task.attempts.iter();
            attempts.map(|attempt| (TaskIndex(task.index), AttemptNumber(attempt.number)))
        });
        for (task, number) in attempts.collect::<Vec<_>>() {
            self.ledger.kill(task, number, kind, self.now);
        }
    }
}

/// The job, padded with an argument until its specification has this many bytes.
fn padded(mut job: DeadlineJob, bytes: usize) -> DeadlineJob {
    let own = size::bytes(&job.spec) + r#","args":[""]"#.len();
    if let Some(missing) = bytes.checked_sub(own) {
        let pod = job.spec.template.spec.as_mut().unwrap();
        pod.containers[0].args = Some(vec!["x".repeat(missing)]);
    }
    job
}

fn launching(task: u32, kind: AttemptKind, checkpoint: Option<String>) -> Launch {
    Launch {
        resume: checkpoint.map(|checkpoint| ResumePoint {
            progress: 1.0 / 3.0,
            checkpoint: checkpoint.as_str().into(),
        }),
        ..shed_core::fixtures::launch(task, kind)
    }
}

fn original(task: u32) -> Launch {
    launching(task, AttemptKind::Original, None)
}

#[test]
fn lists_of_single_indexes_are_counted() {
    let written = |completions: u32| (0..completions).map(|i| i.to_string().len() + 1).sum();
    for completions in [0, 1, 9, 10, 11, 1000, 100_000] {
        let expected: usize = written(completions);
        assert_eq!(lists(completions), expected, "{completions}");
    }
}

/// The requirement: 100 000 tasks, 10 000 of them live, whatever happens to them.
#[test]
fn a_job_of_100_000_tasks_may_have_10_000_live_ones() {
    let mut world = World::new(100_000, "");
    assert!(world.bounds.further(&world.ledger) >= 10_000);
    // Every other index ends, so that no two stand together: half of these fail.
    let scattered: Vec<u32> = (0..80_000).step_by(2).collect();
    for (position, index) in scattered.iter().enumerate() {
        let list = match position % 2 {
            0 => &mut world.ledger.done,
            _ => &mut world.ledger.failed,
        };
        list.insert(TaskIndex(*index));
    }
    let launched = world.launch((80_000..90_000).map(original));
    assert_eq!(launched, 10_000);
    world.now = world.now.plus(Span::from_seconds(90 * 86_400));
    world.kill_all(KillKind::JobEnd);
    world.ledger.ending = Some(Conclusion::FailedIndexes);
    let bytes = world.bytes();
    assert!(bytes <= OBJECT_MAX, "{bytes}");
}

#[test]
fn five_thousand_live_tasks_leave_headroom_for_clones() {
    let mut world = World::new(5_000, ", progress: {file: {}}, resume: Checkpoint");
    assert_eq!(world.launch((0..5_000).map(original)), 5_000);
    let point = |task: u32| Some(format!("{task:064}"));
    let clones = (0..5_000).map(|task| launching(task, AttemptKind::Clone, point(task)));
    let launched = world.launch(clones);
    assert!(launched >= 2_000, "{launched}");
    assert!(world.bytes() <= OBJECT_MAX);
}

#[test]
fn what_does_not_fit_waits_and_kills_do_not() {
    let mut world = World::new(100_000, "");
    let launched = world.launch((0..100_000).map(original));
    assert!(launched < 100_000, "{launched}");
    assert_eq!(world.bounds.further(&world.ledger), 0);
    let kill = Move::Kill(shed_core::plan::Kill {
        task: TaskIndex(3),
        attempt: AttemptNumber(0),
        kind: KillKind::Evict,
        survivor: None,
    });
    let actions = [Move::Launch(original(99_999)), kill.clone()];
    assert_eq!(
        world.bounds.fitting(&world.ledger, &actions),
        Some(vec![kill])
    );
    // Each task that ends frees capacity.
    let (task, number) = (TaskIndex(0), AttemptNumber(0));
    assert!(world.ledger.win(task, number, world.now, None));
    world.ledger.fold();
    assert_eq!(world.bounds.further(&world.ledger), 1);
}
