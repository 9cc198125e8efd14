//! Random histories of a ledger. Whatever happens, the object is at most as large as was committed
//! at the last launch, and that is at most the budget.

use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::Value;
use shed_agent::Units;

use super::*;
use crate::api::{QuarantineEntry, RetryRule};

const TASKS: u32 = 300;
/// Units of a task's input.
const TOTAL: u64 = u64::MAX - 1;
/// The ledger's table of kills at its longest.
const KILLS: usize = 3_200;
/// Bytes of a status without conditions, open tasks and lists.
const REST: usize = 1_600;

/// One thing that may happen to a job.
#[derive(Debug, Clone)]
enum Event {
    Launch(u32, u8, usize),
    Kill(u32, KillKind),
    Fail(u32),
    FailClone(u32),
    Win(u32),
    Give(u32),
    Disrupt(u32),
    Refuse(u32),
    Place(u32, usize),
    Grant(u32),
    Report(u32, usize),
    Divide(u32, u64),
    TakeOver(u32),
    Quarantine(bool),
    KillAll(KillKind),
    Later(i64),
}

fn kill() -> impl Strategy<Value = KillKind> {
    use KillKind::{Abandon, Evict, Preempt, Prune, Replace, Restart, Settle, Surplus};
    prop::sample::select(vec![
        Abandon, Evict, Preempt, Prune, Replace, Restart, Settle, Surplus,
    ])
}

fn event() -> impl Strategy<Value = Event> {
    let task = || 0..TASKS;
    prop_oneof![
        12 => (task(), 0u8..3, 0usize..80).prop_map(|(t, k, c)| Event::Launch(t, k, c)),
        4 => (task(), kill()).prop_map(|(t, kind)| Event::Kill(t, kind)),
        3 => task().prop_map(Event::Fail),
        1 => task().prop_map(Event::FailClone),
        3 => task().prop_map(Event::Win),
        1 => task().prop_map(Event::Give),
        3 => task().prop_map(Event::Disrupt),
        1 => task().prop_map(Event::Refuse),
        3 => (task(), 0..NODES).prop_map(|(t, n)| Event::Place(t, n)),
        2 => task().prop_map(Event::Grant),
        3 => (task(), 0usize..=256).prop_map(|(t, bytes)| Event::Report(t, bytes)),
        2 => (task(), 1..TOTAL).prop_map(|(t, at)| Event::Divide(t, at)),
        1 => task().prop_map(Event::TakeOver),
        1 => any::<bool>().prop_map(Event::Quarantine),
        1 => Just(Event::KillAll(KillKind::Suspend)),
        3 => (1i64..100_000_000).prop_map(Event::Later),
    ]
}

/// Text that takes most in JSON.
fn text(bytes: usize) -> String {
    "\u{1}".repeat(bytes)
}

impl World {
    fn first(&self, task: u32) -> Option<AttemptNumber> {
        let task = self.ledger.tasks.get(&task)?;
        task.attempts
            .first()
            .map(|attempt| AttemptNumber(attempt.number))
    }

    fn last(&self, task: u32) -> Option<AttemptNumber> {
        let task = self.ledger.tasks.get(&task)?;
        task.attempts
            .last()
            .map(|attempt| AttemptNumber(attempt.number))
    }

    fn ends(&mut self, task: u32, number: Option<AttemptNumber>, outcome: Outcome) {
        if let Some(number) = number {
            let (retries, now) = (RetryRule::PROMPT, self.now);
            let _ = self
                .ledger
                .count(TaskIndex(task), number, outcome, retries, now);
        }
    }

    fn launch_one(&mut self, task: u32, kind: u8, bytes: usize) {
        if self.ledger.knows(task, u32::MAX) {
            return;
        }
        let kinds = [
            AttemptKind::Original,
            AttemptKind::Clone,
            AttemptKind::Retry,
        ];
        let durable = self.ledger.tasks.get(&task);
        let durable = durable.and_then(|task| task.resume.as_deref().cloned());
        let resume = match durable.filter(|_| bytes.is_multiple_of(2)) {
            // The retry resumes from the durable checkpoint.
            Some(point) => Some(point),
            None => (bytes > 0).then(|| ResumePoint {
                progress: 1.0 / 3.0,
                checkpoint: text(bytes).as_str().into(),
            }),
        };
        let avoid = (0..bytes % 7).map(|n| NodeName::from(&*node(n).name));
        let avoid = avoid.collect();
        self.launch([Launch {
            avoid,
            resume,
            ..launching(task, kinds[usize::from(kind)], None)
        }]);
    }

    fn divide(&mut self, task: u32, at: u64) {
        let at = Units {
            done: at,
            total: TOTAL,
        };
        let is_range = self.job.rules.resume == Resume::Range;
        if !is_range || self.ledger.knows(task, u32::MAX) {
            return;
        }
        let completions = self.job.rules.completions;
        if let Some(rest) = self.ledger.split(task, at, completions) {
            self.launch_one(rest, 1, 0);
        }
    }

    fn take_over(&mut self, task: u32) {
        let next = self.ledger.next_segment(task);
        let Some(next) = next.filter(|next| next.winner.is_none()) else {
            return;
        };
        let taken = next.index;
        self.ledger.take_over(task, taken);
        while let Some(number) = self.first(taken) {
            let at = TaskIndex(taken);
            self.ledger.kill(at, number, KillKind::Settle, self.now);
            self.ends(taken, Some(number), Outcome::Superseded);
        }
        self.ledger.fold();
    }

    fn happens(&mut self, event: Event) {
        let now = self.now;
        match event {
            Event::Launch(task, kind, bytes) => self.launch_one(task, kind, bytes),
            Event::Kill(task, kind) => {
                if let Some(number) = self.first(task) {
                    self.ledger.kill(TaskIndex(task), number, kind, now);
                }
            }
            Event::KillAll(kind) => self.kill_all(kind),
            Event::Later(ms) => {
                self.now = Instant((now.0 + ms).min(1_700_000_000_000 + 8_600_000_000));
            }
            Event::Give(task) => {
                if self.first(task).is_none() && self.ledger.tasks.contains_key(&task) {
                    self.ledger.failed.insert(TaskIndex(task));
                    self.ledger.fold();
                }
            }
            Event::Report(task, bytes) => {
                let point = ResumePoint {
                    progress: f64::from(task) / 7e3 + bytes as f64 / 3e3,
                    checkpoint: text(bytes).as_str().into(),
                };
                self.ledger.keep_checkpoint(TaskIndex(task), &point);
                self.bounds.keep_checkpoints(&mut self.ledger);
            }
            Event::Divide(task, at) => self.divide(task, at),
            Event::TakeOver(task) => self.take_over(task),
            Event::Quarantine(is) => {
                self.ledger.quarantine = is.then(|| QuarantineEntry {
                    reason: "ReconcilePanicked".to_owned(),
                    count: 99,
                    until: now,
                });
            }
            Event::Fail(task) => self.ends(task, self.first(task), Outcome::Failed),
            Event::FailClone(task) => self.ends(task, self.last(task), Outcome::CloneFailed),
            Event::Disrupt(task) => self.ends(task, self.first(task), Outcome::Disrupted),
            Event::Refuse(task) => {
                if let Some(number) = self.last(task) {
                    self.ledger.refuse(TaskIndex(task), number);
                }
            }
            Event::Win(task) => {
                if let Some(number) = self.first(task) {
                    let run = Some(Span(9_999_999_999));
                    self.ledger.win(TaskIndex(task), number, now, run);
                    self.ledger.fold();
                }
            }
            Event::Grant(task) if self.job.rules.idempotency == Idempotency::Fenced => {
                if let Some(number) = self.first(task) {
                    let _ = self.ledger.grant(task, number.0, now);
                }
            }
            Event::Place(task, on) if self.job.rules.idempotency != Idempotency::Safe => {
                if let Some(number) = self.first(task) {
                    self.ledger.place(task, number.0, &node(on));
                }
            }
            Event::Grant(_) | Event::Place(..) => {}
        }
    }

    /// The bytes of the table of kills.
    fn kill_bytes(&self) -> usize {
        let ledger = serde_json::to_value(self.ledger.clone()).unwrap();
        let kills = ledger.pointer("/tasks/kills");
        kills.map_or(0, |kills: &Value| kills.to_string().len())
    }
}

/// Nothing but a launch, a checkpoint, a division or a quarantine may make more of an object.
fn may_grow(event: &Event) -> bool {
    matches!(
        event,
        Event::Launch(..) | Event::Report(..) | Event::Divide(..) | Event::Quarantine(_)
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn no_reachable_ledger_is_larger_than_was_committed(
        kind in prop_oneof![
            Just("idempotency: Safe, resume: Checkpoint"),
            Just("idempotency: None, resume: Checkpoint"),
            Just("idempotency: Fenced, resume: Checkpoint"),
            Just("idempotency: Safe, resume: Range"),
        ],
        // In the second case not all checkpoints fit.
        (completions, spec) in prop_oneof![Just((TASKS, 0)), Just((100_000, size::SPEC_MAX))],
        events in prop::collection::vec(event(), 0..1_200),
    ) {
        let change = format!(", progress: {{file: {{}}}}, {kind}");
        let mut world = World::of(completions, &change, spec);
        let mut least = usize::MAX;
        for (position, event) in events.into_iter().enumerate() {
            let grows = may_grow(&event);
            let is_stop = matches!(event, Event::KillAll(_));
            world.happens(event);
            let committed = world.bounds.committed(&world.ledger);
            prop_assert!(committed <= OBJECT_MAX);
            if grows {
                least = committed;
            } else {
                prop_assert!(committed <= least, "{committed} after {least}");
            }
            if position % 64 != 0 && !is_stop {
                continue;
            }
            let kills = world.kill_bytes();
            prop_assert!(kills <= KILLS);
            let others = STATUS - CONDITIONS - REST;
            let bytes = world.bytes() - kills;
            prop_assert!(bytes + CONDITIONS + others <= committed, "{bytes} of {committed}");
        }
    }
}

/// The digest of the ledgers that [`ledgers_of_drawn_histories_keep_their_bytes`] writes. Operators
/// of different versions read each other's ledgers, so it changes only with the ledger's format
/// version.
const WRITTEN: u32 = 0xa962_0f52;

#[test]
fn ledgers_of_drawn_histories_keep_their_bytes() {
    let mut runner = TestRunner::deterministic();
    let histories = prop::collection::vec(event(), 300);
    let mut digests = Vec::new();
    for kind in [
        "idempotency: Safe, resume: Checkpoint",
        "idempotency: None, resume: Checkpoint",
        "idempotency: Fenced, resume: Checkpoint",
        "idempotency: Safe, resume: Range",
    ] {
        let mut world = World::new(TASKS, &format!(", progress: {{file: {{}}}}, {kind}"));
        let events = histories.new_tree(&mut runner).unwrap().current();
        for (position, event) in events.into_iter().enumerate() {
            world.happens(event);
            let now = Some(world.now);
            match position {
                20 => world.ledger.first_pass = now,
                40 => world.ledger.keep_time(true, world.now),
                280 => world.ledger.ending = Some(Conclusion::PodFailurePolicy),
                290 => world.ledger.ending_note = Some("pod p failed".to_owned()),
                299 => (world.ledger.finished, world.ledger.ended) = (true, now),
                _ => {}
            }
            let text = serde_json::to_string(&world.status()).unwrap();
            let read: DeadlineJobStatus = serde_json::from_str(&text).unwrap();
            assert_eq!(serde_json::to_string(&read).unwrap(), text);
            digests.extend(crate::pod_names::fnv1a(text.as_bytes()).to_be_bytes());
        }
    }
    let written = crate::pod_names::fnv1a(&digests);
    assert_eq!(written, WRITTEN, "{written:#x}");
}
