use std::sync::Arc;

use proptest::prelude::*;
use shed_core::fixtures::launch;
use shed_core::ids::{AttemptNumber, TaskIndex};
use shed_core::plan::{
    Alternative, CloneReport, ExpectedEnd, LaunchReason, Outcome, Refusal, RefusalReason, Trade,
};
use shed_core::snapshot::{AttemptKind, KillKind};

use super::*;
use crate::api::{
    AttemptRecord, AttemptState, Decimal, DecisionRecord, PocdPoint, RECORD_MAX, RetryRule, Verdict,
};
use crate::fixtures;
use crate::job::facts;
use crate::size;
use crate::validate::validate;

/// The longest name of a node.
const NAME_MAX: usize = 253;

/// A job of tasks whose records follow one another.
struct Case {
    view: JobView,
    ledger: Ledger,
    notices: Vec<Notice>,
    report: JobReport,
    pocd: f64,
    waiting: Option<&'static str>,
    old: Option<JobRecord>,
}

impl Case {
    fn new(tasks: u32, change: &str) -> Self {
        let job = fixtures::job(&format!("{{completions: {tasks}, {change}}}"));
        let view = JobView::new(
            Arc::new(validate(&job).unwrap()),
            Ledger::default(),
            Instant(0),
            Instant(0),
        );
        let mut case = Self {
            ledger: view.ledger.clone(),
            view,
            notices: Vec::new(),
            report: fixtures::report("u"),
            pocd: 0.9,
            waiting: None,
            old: None,
        };
        (0..tasks).for_each(|task| case.launch(task, AttemptKind::Original));
        case
    }

    fn launch(&mut self, task: u32, kind: AttemptKind) {
        let launch = launch(task, kind);
        let number = self.ledger.launch(&launch, self.view.now);
        self.notices.push(Notice::Launched {
            id: (task, number.0),
            launch,
        });
    }

    /// The attempt ends otherwise than as a winner.
    fn count(&mut self, id: (u32, u32), outcome: Outcome) {
        let (task, number) = (TaskIndex(id.0), AttemptNumber(id.1));
        let now = self.view.now;
        let kind = self
            .ledger
            .count(task, number, outcome, RetryRule::PROMPT, now);
        self.notices.push(Notice::Counted {
            id,
            kind: kind.unwrap(),
            outcome,
            uncommitted: false,
        });
    }

    fn win(&mut self, id: (u32, u32)) {
        let (task, number) = (TaskIndex(id.0), AttemptNumber(id.1));
        assert!(self.ledger.win(task, number, self.view.now, None));
        self.notices.push(Notice::Won {
            id,
            kind: AttemptKind::Original,
            resumed_from: 0.0,
        });
    }

    /// The record of a write now, after which nothing is new.
    fn write(&mut self) -> JobRecord {
        let facts = facts::facts(&self.view);
        let record = continued(
            Input {
                view: &self.view,
                facts: &facts,
                ledger: &self.ledger,
                notices: &self.notices,
                report: Some(&self.report),
                pocd: Some(Pocd::nearest(self.pocd)),
                waiting: self.waiting,
                old: self.old.as_ref(),
            },
            ATTEMPTS_MAX,
        );
        let record = fitted(record);
        assert!(size::bytes(&record) <= RECORD_MAX);
        // As the next leader reads it.
        let text = serde_json::to_string(&record).unwrap();
        self.old = Some(serde_json::from_str(&text).unwrap());
        assert_eq!(self.old.as_ref(), Some(&record));
        self.notices.clear();
        self.view.ledger = self.ledger.clone();
        self.view.now = Instant(self.view.now.0 + 10_000);
        record
    }
}

/// Task, number and state of each line.
fn lines(record: &JobRecord) -> Vec<(i32, i32, AttemptState)> {
    let lines = record.attempts.iter();
    lines.map(|it| (it.task, it.attempt, it.state)).collect()
}

/// Verdict, task and reason of each decision.
fn verdicts(record: &JobRecord) -> Vec<(Verdict, i32, &str)> {
    let decisions = record.decisions.iter();
    decisions
        .map(|it| (it.verdict, it.task, it.reason.as_str()))
        .collect()
}

#[test]
fn an_attempt_that_the_ledger_forgets_keeps_its_line() {
    use AttemptState::{Failed, Pending, Stopped, Won};
    let mut case = Case::new(3, "");
    let first = case.write();
    assert_eq!(
        lines(&first),
        [(0, 0, Pending), (1, 0, Pending), (2, 0, Pending)]
    );
    case.launch(1, AttemptKind::Clone);
    case.write();
    case.win((1, 1));
    case.count((2, 0), Outcome::Failed);
    case.write();
    case.count((1, 0), Outcome::Superseded);
    let last = case.write();
    let expected = [
        (0, 0, Pending),
        (1, 0, Stopped),
        (1, 1, Won),
        (2, 0, Failed),
    ];
    assert_eq!(lines(&last), expected);
    assert_eq!(last.omitted_attempts, 0);
    let ends: Vec<bool> = last
        .attempts
        .iter()
        .map(|it| it.end_time.is_some())
        .collect();
    assert_eq!(ends, [false, true, true, true]);
    assert_eq!(last.attempts[2].kind, AttemptKind::Clone);
}

#[test]
fn of_many_tasks_those_with_several_attempts_are_listed() {
    let mut case = Case::new(400, "");
    case.write();
    case.launch(333, AttemptKind::Clone);
    case.report.ends = vec![ExpectedEnd {
        task: TaskIndex(77),
        attempt: AttemptNumber(0),
        at: Instant(99_000),
    }];
    let record = case.write();
    let listed: Vec<_> = record
        .attempts
        .iter()
        .map(|it| (it.task, it.attempt))
        .collect();
    for id in [(77, 0), (333, 0), (333, 1)] {
        assert!(listed.contains(&id), "{listed:?}");
    }
    let omitted = usize::try_from(record.omitted_attempts).unwrap();
    assert_eq!(omitted + listed.len(), 401);
    let late = record.attempts.iter().find(|it| it.task == 77).unwrap();
    assert_eq!(late.estimated_end_time, Some(clock::time(Instant(99_000))));
    // They are also kept once they have ended, and 398 others after them.
    for id in [(333, 0), (333, 1)] {
        case.count(id, Outcome::Superseded);
    }
    case.write();
    (0..333).for_each(|task| case.win((task, 0)));
    let listed = lines(&case.write());
    assert!(
        listed.contains(&(333, 1, AttemptState::Stopped)),
        "{listed:?}"
    );
}

#[test]
fn a_refusal_that_repeats_is_one_decision() {
    let mut case = Case::new(4, "");
    let refuse = |why| {
        let task = TaskIndex(3);
        vec![Refusal { task, why }]
    };
    case.report.refusals = refuse(RefusalReason::Capacity);
    let first = case.write();
    for _ in 0..5 {
        assert_eq!(case.write().decisions, first.decisions);
    }
    assert_eq!(verdicts(&first), [(Verdict::Refused, 3, "Capacity")]);
    case.report.refusals = refuse(RefusalReason::NoNode);
    case.write();
    case.report.refusals = refuse(RefusalReason::Capacity);
    assert_eq!(case.write().decisions.len(), 2, "it alternates");
    case.report.refusals.clear();
    case.launch(3, AttemptKind::Clone);
    case.write();
    case.report.refusals = refuse(RefusalReason::Capacity);
    let again = case.write();
    let last: Vec<_> = verdicts(&again).split_off(2);
    let expected = [
        (Verdict::Granted, 3, "Admitted"),
        (Verdict::Refused, 3, "Capacity"),
    ];
    assert_eq!(last, expected);
}

#[test]
fn a_granted_clone_outlives_any_number_of_refusals() {
    let mut case = Case::new(1000, "");
    case.launch(5, AttemptKind::Clone);
    case.report.clones = vec![CloneReport {
        task: TaskIndex(5),
        pocd_gain: 0.5,
        cost_slot_seconds: 60.0,
        trade: Some(Trade {
            gain: 0.12,
            price: 0.02,
            alternative: Some(Alternative::Attempt {
                job: "secret/uid".into(),
                gain: 0.01,
            }),
        }),
    }];
    case.write();
    for begin in 0..40 {
        let tasks = (0..25).map(|task| TaskIndex(begin * 25 + task));
        let why = RefusalReason::Capacity;
        case.report.refusals = tasks.map(|task| Refusal { task, why }).collect();
        case.write();
    }
    let record = case.old.unwrap();
    let granted: Vec<_> = record
        .decisions
        .iter()
        .filter(|it| it.verdict == Verdict::Granted)
        .collect();
    let [granted] = granted[..] else {
        panic!("{granted:?}");
    };
    let figures = [granted.gain, granted.price].map(|figure| figure.unwrap().to_string());
    assert_eq!(figures, ["0.120", "0.020"]);
    let other = granted.alternative.as_deref();
    assert_eq!(other, Some("waiting attempt of another job, gain 0.010"));
}

#[test]
fn a_clone_without_a_price_has_the_gain_of_its_reason() {
    let mut case = Case::new(2, "");
    case.write();
    let mut clone = launch(1, AttemptKind::Clone);
    clone.reason = LaunchReason::Straggler {
        pocd_before: 0.25,
        pocd_after: 0.75,
    };
    let launch = clone;
    case.notices.push(Notice::Launched { id: (1, 1), launch });
    let kind = KillKind::Prune;
    case.notices.push(Notice::Killed { id: (0, 0), kind });
    let kind = KillKind::JobEnd;
    case.notices.push(Notice::Killed { id: (1, 0), kind });
    let record = case.write();
    let expected = [
        (Verdict::Granted, 1, "Straggler"),
        (Verdict::Stopped, 0, "Prune"),
    ];
    assert_eq!(verdicts(&record), expected);
    assert_eq!(record.decisions[0].gain, Some(Decimal::nearest(0.5)));
    assert_eq!(record.decisions[0].price, None);
}

#[test]
fn a_job_that_observes_has_its_clones_as_observed_decisions() {
    let mut case = Case::new(2, "speculation: {mode: Observe}");
    case.report.clones = vec![CloneReport {
        task: TaskIndex(1),
        pocd_gain: 0.3,
        cost_slot_seconds: 9.0,
        trade: None,
    }];
    case.report.refusals = vec![Refusal {
        task: TaskIndex(1),
        why: RefusalReason::Observe,
    }];
    case.write();
    let record = case.write();
    assert_eq!(verdicts(&record), [(Verdict::Observed, 1, "Observe")]);
}

#[test]
fn tasks_that_wait_are_counted_with_their_reason() {
    let mut case = Case::new(5, "");
    case.count((4, 0), Outcome::Failed);
    assert_eq!(case.write().waiting, None);
    case.waiting = Some("InsufficientCapacity");
    let waiting = case.write().waiting.unwrap();
    assert_eq!(
        (waiting.reason.as_str(), waiting.tasks),
        ("InsufficientCapacity", 1)
    );
}

#[test]
fn a_curve_keeps_its_ends_and_its_turns() {
    let mut case = Case::new(1, "");
    for step in 0..300 {
        case.pocd = match step {
            0..100 => 0.9,
            100 => 0.2,
            _ => 0.5 + 0.4 * f64::from(step % 7) / 100.0,
        };
        case.write();
    }
    let curve = case.old.unwrap().pocd;
    assert!(curve.len() <= 32, "{}", curve.len());
    let seconds = |point: &PocdPoint| clock::instant(&point.time).0 / 1000;
    assert!(curve.is_sorted_by_key(seconds));
    let at = |second: i64| {
        let found = curve.iter().find(|point| seconds(point) == second);
        found.map(|point| point.pocd.to_string())
    };
    assert_eq!(at(0).as_deref(), Some("0.900"));
    assert_eq!(at(990).as_deref(), Some("0.900"), "before the fall");
    assert_eq!(at(1000).as_deref(), Some("0.200"));
    assert_eq!(at(500), None, "nothing changed");
    assert!(at(2990).is_some(), "the last one");
}

#[test]
fn a_straight_curve_is_two_points() {
    let mut case = Case::new(1, "");
    for _ in 0..10 {
        case.write();
    }
    assert_eq!(case.old.unwrap().pocd.len(), 2);
}

fn time() -> impl Strategy<Value = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time> {
    (0i64..4_000_000_000).prop_map(|seconds| clock::time(Instant(seconds * 1000)))
}

fn decimal() -> impl Strategy<Value = Option<Decimal>> {
    prop::option::of((0.0..1e12f64).prop_map(Decimal::nearest))
}

fn attempt() -> impl Strategy<Value = AttemptRecord> {
    use AttemptState::{Disrupted, Failed, Late, Pending, Running, Stopped, Won};
    let states = vec![Pending, Running, Won, Stopped, Failed, Disrupted, Late];
    let kinds = vec![
        AttemptKind::Original,
        AttemptKind::Clone,
        AttemptKind::Retry,
    ];
    let of_kind = (prop::sample::select(kinds), prop::sample::select(states));
    let times = [(); 3].map(|()| prop::option::of(time()));
    let figures = [(); 3].map(|()| decimal());
    // The longest names, and text that JSON must escape.
    let node = prop_oneof![
        Just("n".repeat(NAME_MAX)),
        Just("\u{1}\"".repeat(NAME_MAX)),
        "[a-z]{1,9}"
    ];
    let id = (0..i32::MAX, 0..3i32);
    (id, of_kind, prop::option::of(node), times, figures).prop_map(
        |((task, attempt), (kind, state), node, times, figures)| {
            let [start_time, end_time, estimated_end_time] = times;
            let [progress, resumed_from, resume_point] = figures;
            AttemptRecord {
                task,
                attempt,
                kind,
                node,
                start_time,
                end_time,
                progress,
                resumed_from,
                resume_point,
                estimated_end_time,
                state,
            }
        },
    )
}

fn decision() -> impl Strategy<Value = DecisionRecord> {
    use Verdict::{Granted, Observed, Refused, Stopped};
    let verdicts = vec![Granted, Refused, Stopped, Observed];
    let words = || "[ -~]{0,300}";
    let figures = [(); 2].map(|()| decimal());
    let verdict = prop::sample::select(verdicts);
    let words = (words(), prop::option::of(words()));
    (time(), 0..i32::MAX, verdict, words, figures).prop_map(
        |(time, task, verdict, (reason, alternative), [gain, price])| DecisionRecord {
            time,
            task,
            verdict,
            reason,
            gain,
            price,
            alternative,
        },
    )
}

fn record() -> impl Strategy<Value = JobRecord> {
    let point = (time(), 0.0..1.0f64).prop_map(|(time, pocd)| PocdPoint {
        time,
        pocd: Pocd::nearest(pocd),
    });
    (
        time(),
        prop::collection::vec(point, 0..33),
        prop::collection::vec(attempt(), 0..=ATTEMPTS_MAX),
        prop::collection::vec(decision(), 0..17),
        0..i32::MAX,
    )
        .prop_map(
            |(time, pocd, attempts, decisions, omitted_attempts)| JobRecord {
                time,
                pocd,
                attempts,
                omitted_attempts,
                decisions,
                waiting: Some(WaitingRecord {
                    reason: "InsufficientCapacity".to_owned(),
                    tasks: i32::MAX,
                }),
            },
        )
}

proptest! {
    #[test]
    fn a_fitted_record_is_within_its_bound_and_counts_what_it_omits(record in record()) {
        let fits = size::bytes(&record) + 10 <= RECORD_MAX;
        let new = fitted(record.clone());
        prop_assert!(size::bytes(&new) <= RECORD_MAX);
        let left_out = record.attempts.len() - new.attempts.len();
        let omitted = record.omitted_attempts.saturating_add(count(left_out));
        prop_assert_eq!(new.omitted_attempts, omitted);
        if fits {
            prop_assert_eq!(new, record);
        } else {
            // Nothing is put in or moved.
            let mut old = record.attempts.iter();
            prop_assert!(new.attempts.iter().all(|line| old.any(|one| one == line)));
            let mut old = record.decisions.iter();
            prop_assert!(new.decisions.iter().all(|line| old.any(|one| one == line)));
        }
    }

    #[test]
    fn a_record_by_another_client_is_continued_within_the_bound(record in record()) {
        let mut case = Case::new(3, "");
        case.old = Some(record);
        case.launch(1, AttemptKind::Clone);
        // It checks the bound.
        case.write();
    }
}
