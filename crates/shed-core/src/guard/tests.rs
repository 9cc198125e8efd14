use std::cell::Cell;

use super::*;
use crate::decide::decide;
use crate::fixtures::{JobBuilder, attempt, job, world};
use crate::plan::Move;
use crate::plan_check::plan_check;
use crate::time::Span;

/// At 30 s three tasks are on time, and task 2 will be very late.
fn straggling(key: &str) -> JobBuilder {
    let regular = |node| attempt(0).on(node).progress(0.4, 29.0);
    job(key)
        .tasks(5)
        .deadline_in(160.0)
        .task(0, [regular(0)])
        .task(1, [regular(1)])
        .task(2, [attempt(0).on(0).progress(0.1, 29.0)])
}

fn cluster() -> Snapshot {
    let jobs = [straggling("a"), straggling("b")];
    let [a, b] = jobs;
    world(30.0, 2, 16000).job(a).job(b).build()
}

fn policy() -> Policy {
    "shed-prime{clone_price=0,order=edf}".parse().unwrap()
}

/// `a: original 3`, `b: clone 2`.
fn launches(guarded: &Passed<'_>) -> Vec<String> {
    let violations = plan_check(&guarded.snapshot, &policy(), &guarded.plan);
    assert_eq!(violations, []);
    let launches = guarded
        .plan
        .actions
        .iter()
        .map(|planned| match &planned.action {
            Move::Launch(launch) => {
                format!("{}: {} {}", planned.job, launch.kind.label(), launch.task)
            }
            other => panic!("{other:?}"),
        });
    let mut launches: Vec<String> = launches.collect();
    // Clones rotate over the jobs.
    let mut seen = BTreeSet::new();
    launches.retain(|launch| seen.insert(launch.clone()));
    launches
}

const FIRST_ATTEMPTS: [&str; 4] = [
    "a: original 3",
    "a: original 4",
    "b: original 3",
    "b: original 4",
];

#[test]
fn a_sound_pass_is_that_of_decide() {
    let snapshot = cluster();
    let (guarded, memory) = decide_guarded_by(&snapshot, Memory::default(), &policy(), decide);
    let expected = decide(&snapshot, Memory::default(), &policy());
    assert_eq!((&guarded.plan, memory), (&expected.0, expected.1));
    assert_eq!((guarded.panics, guarded.faults.len()), (0, 0));
    let launches = launches(&guarded);
    assert_eq!(launches[..4], FIRST_ATTEMPTS);
    assert_eq!(launches[4..], ["a: clone 2", "b: clone 2"]);
}

#[test]
fn when_the_policy_panics_each_task_gets_one_attempt() {
    let snapshot = cluster();
    let (guarded, _) =
        decide_guarded_by(&snapshot, Memory::default(), &policy(), |s, m, policy| {
            assert_eq!(policy.speculation, Speculation::none(), "on purpose");
            assert_eq!(policy.order, Order::EarliestDeadline);
            decide(s, m, policy)
        });
    assert_eq!(guarded.panics, 1);
    assert_eq!(launches(&guarded), FIRST_ATTEMPTS);
}

#[test]
fn when_the_order_panics_first_attempts_go_by_submission() {
    let snapshot = cluster();
    let (guarded, _) =
        decide_guarded_by(&snapshot, Memory::default(), &policy(), |s, m, policy| {
            assert_eq!(policy.order, Order::Fifo, "on purpose");
            decide(s, m, policy)
        });
    assert_eq!(guarded.panics, 2);
    assert_eq!(launches(&guarded), FIRST_ATTEMPTS);
}

#[test]
fn when_all_panics_nothing_is_done_and_nothing_forgotten() {
    let snapshot = cluster();
    let (_, memory) = decide(&snapshot, Memory::default(), &policy());
    let tries = Cell::new(0);
    let (guarded, after) = decide_guarded_by(&snapshot, memory.clone(), &policy(), |_, _, _| {
        tries.set(tries.get() + 1);
        panic!("on purpose")
    });
    assert_eq!((guarded.panics, tries.get()), (3, 3));
    assert_eq!(guarded.plan, Plan::default());
    assert_eq!(after, memory);
}

#[test]
fn a_job_with_wrong_facts_gets_no_clones_but_others_do() {
    let wrong = straggling("a").with(|job| job.tasks[0].attempts[0].start_progress = f64::NAN);
    let snapshot = world(30.0, 2, 16000)
        .job(wrong)
        .job(straggling("b"))
        .build();
    let (guarded, _) = decide_guarded_by(&snapshot, Memory::default(), &policy(), decide);
    let launches = launches(&guarded);
    assert_eq!(launches[..4], FIRST_ATTEMPTS);
    assert_eq!(launches[4..], ["b: clone 2"]);
    let faults: Vec<String> = guarded.faults.iter().map(Fault::to_string).collect();
    let expected = ["a: tasks[0].attempts[0].start_progress is not in [0, 1)"];
    assert_eq!(faults, expected);
}

/// The jobs that a planner's pass without news looks at, right after one in which this many policies panicked.
fn looks_after(panics: u32) -> usize {
    let snapshot = cluster();
    let (mut planner, mut memory) = (GuardedPlanner::default(), Memory::default());
    planner.decide_again(&snapshot, &mut memory, &policy(), Changed::All, panics);
    let later = Snapshot {
        now: snapshot.now.plus(Span(1)),
        ..snapshot
    };
    let marked = [false, false];
    let changed = Changed::Marked(&marked);
    let passed = planner.decide(&later, &mut memory, &policy(), changed);
    assert_eq!(passed.plan.report.jobs.len(), 2);
    planner.planner().looked(later.now).filter(|it| *it).count()
}

#[test]
fn a_pass_after_a_panic_looks_at_every_job() {
    let looks: Vec<usize> = (0..=3).map(looks_after).collect();
    assert_eq!(looks, [0, 2, 2, 2]);
}
