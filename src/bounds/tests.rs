use proptest::prelude::*;
use shed_core::ids::{AttemptNumber, NodeName, TaskIndex};
use shed_core::plan::{LaunchReason, Outcome};
use shed_core::snapshot::{Conclusion, KillKind, ResumePoint};
use shed_core::time::{Instant, Span};

use super::*;
use crate::api::{DeadlineJobStatus, NodeEntry};
use crate::fixtures;
use crate::validate::{RetryRule, validate};

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
    book: Book,
    now: Instant,
}

impl World {
    fn new(completions: u32, change: &str) -> Self {
        let owner = fixtures::job(&format!("{{completions: {completions}{change}}}"));
        let job = validate(&owner).unwrap();
        Self {
            bounds: Bounds::of(&owner, &job, node_bytes(), 0),
            owner,
            job,
            book: Book::default(),
            now: Instant(1_700_000_000_000),
        }
    }

    /// The object as it would be written.
    fn bytes(&self) -> usize {
        let total = self.job.rules.completions;
        let mut owner = self.owner.clone();
        owner.status = Some(DeadlineJobStatus {
            completed_indexes: self.book.done_tasks(total).to_string(),
            failed_indexes: self.book.failed_tasks(total).to_string(),
            ledger: Some(self.book.to_ledger()),
            ..DeadlineJobStatus::default()
        });
        size::bytes(&owner)
    }

    /// Launches what fits of that, and says how much did.
    fn launch(&mut self, launches: impl IntoIterator<Item = Launch>) -> usize {
        let actions: Vec<_> = launches.into_iter().map(Action::Launch).collect();
        let fitting = self.bounds.fitting(&self.book, &actions).unwrap_or(actions);
        for launch in fitting.iter().filter_map(launch) {
            self.book.launch(launch, self.now);
        }
        fitting.len()
    }

    fn kill_all(&mut self, kind: KillKind) {
        let attempts = self.book.tasks.values().flat_map(|task| {
            let attempts = task.attempts.iter();
            attempts.map(|attempt| (TaskIndex(task.index), AttemptNumber(attempt.number)))
        });
        for (task, number) in attempts.collect::<Vec<_>>() {
            self.book.kill(task, number, kind, self.now);
        }
    }
}

fn launching(task: u32, kind: AttemptKind, checkpoint: Option<String>) -> Launch {
    Launch {
        task: TaskIndex(task),
        kind,
        resume: checkpoint.map(|checkpoint| ResumePoint {
            progress: 1.0 / 3.0,
            checkpoint: checkpoint.as_str().into(),
        }),
        avoid: Vec::new(),
        rather_not: Vec::new(),
        node: None,
        surge: false,
        reason: LaunchReason::Admitted,
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

/// The bar: 100 000 tasks, 10 000 of them live, whatever becomes of them.
#[test]
fn a_job_of_100_000_tasks_may_have_10_000_live_ones() {
    let mut world = World::new(100_000, "");
    assert!(world.bounds.further(&world.book) >= 10_000);
    // Every other index ends, so that no two stand together: half of these fail.
    let scattered: Vec<u32> = (0..80_000).step_by(2).collect();
    for (position, index) in scattered.iter().enumerate() {
        let list = match position % 2 {
            0 => &mut world.book.done,
            _ => &mut world.book.failed,
        };
        list.insert(TaskIndex(*index));
    }
    let launched = world.launch((80_000..90_000).map(original));
    assert_eq!(launched, 10_000);
    world.now = world.now.plus(Span::from_seconds(90 * 86_400));
    world.kill_all(KillKind::JobEnd);
    world.book.ending = Some(Conclusion::FailedIndexes);
    let bytes = world.bytes();
    assert!(bytes <= OBJECT_MAX, "{bytes}");
}

#[test]
fn five_thousand_live_tasks_have_room_for_clones_with_checkpoints() {
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
    assert_eq!(world.bounds.further(&world.book), 0);
    let kill = Action::Kill(shed_core::plan::Kill {
        task: TaskIndex(3),
        attempt: AttemptNumber(0),
        kind: KillKind::Evict,
        survivor: None,
    });
    let actions = [Action::Launch(original(99_999)), kill.clone()];
    assert_eq!(
        world.bounds.fitting(&world.book, &actions),
        Some(vec![kill])
    );
    // Room comes free with each task that ends.
    let (task, number) = (TaskIndex(0), AttemptNumber(0));
    assert!(world.book.win(task, number, world.now, None));
    world.book.fold();
    assert_eq!(world.bounds.further(&world.book), 1);
}

/// One thing that may happen to a job.
#[derive(Debug, Clone)]
enum Event {
    Launch(u32, u8, usize),
    Kill(u32, KillKind),
    Fail(u32),
    Win(u32),
    Give(u32),
    Disrupt(u32),
    Place(u32, usize),
    Grant(u32),
    KillAll(KillKind),
    Later(i64),
}

fn event(tasks: u32) -> impl Strategy<Value = Event> {
    let task = move || 0..tasks;
    prop_oneof![
        6 => (task(), 0u8..3, 0usize..80).prop_map(|(t, k, c)| Event::Launch(t, k, c)),
        1 => task().prop_map(|t| Event::Kill(t, KillKind::Evict)),
        2 => task().prop_map(Event::Fail),
        2 => task().prop_map(Event::Win),
        1 => task().prop_map(Event::Give),
        2 => task().prop_map(Event::Disrupt),
        2 => (task(), 0..NODES).prop_map(|(t, n)| Event::Place(t, n)),
        1 => task().prop_map(Event::Grant),
        1 => Just(Event::KillAll(KillKind::Suspend)),
        1 => (1i64..8_000_000_000).prop_map(Event::Later),
    ]
}

impl World {
    fn first(&self, task: u32) -> Option<AttemptNumber> {
        let task = self.book.tasks.get(&task)?;
        task.attempts
            .first()
            .map(|attempt| AttemptNumber(attempt.number))
    }

    fn happens(&mut self, event: Event) {
        let now = self.now;
        let ended = |book: &mut Book, task: u32, number, outcome| {
            let _ = book.count(TaskIndex(task), number, outcome, RetryRule::PROMPT, now);
        };
        match event {
            Event::Launch(task, kind, bytes) => {
                if self.book.knows(task, u32::MAX) {
                    return;
                }
                let kind = [
                    AttemptKind::Original,
                    AttemptKind::Clone,
                    AttemptKind::Retry,
                ][usize::from(kind)];
                let checkpoint = (bytes > 0).then(|| "\u{1}".repeat(bytes));
                let avoid = (0..bytes % 7)
                    .map(|n| NodeName::from(&*node(n).name))
                    .collect();
                self.launch([Launch {
                    avoid,
                    ..launching(task, kind, checkpoint)
                }]);
            }
            Event::Kill(task, kind) => {
                if let Some(number) = self.first(task) {
                    self.book.kill(TaskIndex(task), number, kind, now);
                }
            }
            Event::KillAll(kind) => self.kill_all(kind),
            Event::Later(ms) => {
                self.now = Instant((now.0 + ms).min(1_700_000_000_000 + 8_600_000_000))
            }
            Event::Give(task) => {
                if self.first(task).is_none() && self.book.tasks.contains_key(&task) {
                    self.book.failed.insert(TaskIndex(task));
                    self.book.fold();
                }
            }
            Event::Fail(task)
            | Event::Win(task)
            | Event::Disrupt(task)
            | Event::Grant(task)
            | Event::Place(task, _) => {
                let Some(number) = self.first(task) else {
                    return;
                };
                match event {
                    Event::Fail(_) => ended(&mut self.book, task, number, Outcome::Failed),
                    Event::Disrupt(_) => ended(&mut self.book, task, number, Outcome::Disrupted),
                    Event::Place(_, on) => self.book.place(task, number.0, &node(on)),
                    Event::Grant(_) => drop(self.book.grant(task, number.0, now)),
                    _ => {
                        self.book.win(TaskIndex(task), number, now, None);
                        self.book.fold();
                    }
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Whatever happens to a job, its object is at most what was committed when it launched last, and
    /// that is at most the budget.
    #[test]
    fn no_reachable_ledger_is_larger_than_was_committed(
        idempotency in prop_oneof![Just("Safe"), Just("None"), Just("Fenced")],
        events in prop::collection::vec(event(40), 0..400),
    ) {
        let agent = ", progress: {file: {}}";
        let mut world = World::new(40, &format!(", idempotency: {idempotency}{agent}"));
        let mut least = usize::MAX;
        for event in events {
            let launches = matches!(event, Event::Launch(..));
            world.happens(event);
            let committed = world.bounds.committed(&world.book);
            prop_assert!(committed <= OBJECT_MAX);
            if launches {
                least = committed;
            } else {
                // A checkpoint is the task's too, once its attempt is gone.
                prop_assert!(committed <= least, "{committed} after {least}");
            }
            let bytes = world.bytes();
            prop_assert!(bytes + 20_000 <= committed, "{bytes} of {committed}");
        }
    }
}
