//! EDF with admission control: which jobs are admitted, their order, and preemption.

use shed_core::decide::{Changed, Planner};
use shed_core::fixtures::{JobBuilder, World, attempt, brief, job, plan_of, world};
use shed_core::memory::Memory;
use shed_core::policy::Policy;
use shed_core::snapshot::{ExpectedDuration, Preemption};
use shed_core::time::Span;
use shed_papers::{Admitted, EdfAdmission};

use crate::speculators::{policy, remembered, remembering};

/// The policy on a cluster that does not grow.
fn edf() -> Policy {
    Policy {
        surge_max: 0,
        ..policy("edf-admission")
    }
}

fn decided(world: World, memory: &Memory) -> (Vec<String>, Memory) {
    let (plan, memory) = plan_of(&world.build(), memory, &edf());
    (brief(&plan), memory)
}

#[track_caller]
fn check(world: World, expected: &[&str]) {
    assert_eq!(decided(world, &Memory::default()).0, expected);
}

/// A job of one task that is expected to take this long. A launch takes 1 s.
pub fn known(key: &str, seconds: i64, deadline: f64) -> JobBuilder {
    let expected = ExpectedDuration::new(Span::from_seconds(seconds), None).unwrap();
    let job = job(key).tasks(1).deadline_in(deadline);
    job.with(|job| job.expected_duration = Some(expected))
}

fn slots(count: usize) -> World {
    world(0.0, count, 1000).launch_overhead(1.0)
}

fn is_admitted(memory: &Memory, key: &str) -> bool {
    remembered::<Admitted>(memory, key).0
}

#[test]
fn jobs_that_all_fit_are_served_by_deadline() {
    let two = slots(1)
        .job(known("a", 50, 200.0))
        .job(known("b", 50, 110.0));
    check(two, &["b: original 0"]);
}

#[test]
fn a_job_that_would_make_another_late_is_not_admitted() {
    // The first needs 51 s. The second would end after 102 s.
    let with_second = |deadline| {
        let second = known("b", 50, deadline).submitted(0.0);
        let two = slots(1).job(known("a", 50, 60.0)).job(second);
        decided(two, &Memory::default())
    };
    let (moves, memory) = with_second(101.0);
    assert_eq!(moves, ["a: original 0"]);
    assert!(is_admitted(&memory, "a") && !is_admitted(&memory, "b"));
    assert!(is_admitted(&with_second(103.0).1, "b"));
    // An earlier deadline does not help it.
    let (moves, memory) = with_second(55.0);
    assert_eq!(moves, ["a: original 0"]);
    assert!(!is_admitted(&memory, "b"));
}

#[test]
fn an_admitted_job_stays_admitted_while_it_can_be_in_time() {
    // `z` was submitted first but only `a` was admitted before.
    let memory = remembering(|admitted: &mut Admitted| admitted.0 = true);
    let two = |limit| {
        let first = known("z", 50, 60.0).submitted(-1.0);
        slots(1).job(first).job(known("a", 50, limit))
    };
    assert_eq!(decided(two(60.0), &memory).0, ["a: original 0"]);
    assert_eq!(decided(two(50.0), &memory).0, ["z: original 0"]);
    assert_eq!(decided(two(60.0), &Memory::default()).0, ["z: original 0"]);
}

#[test]
fn a_job_without_a_known_duration_is_served_last() {
    let unknown = || job("a").tasks(1).deadline_in(20.0);
    let two = slots(1).job(unknown()).job(known("b", 50, 500.0));
    check(two, &["b: original 0"]);
    // Its own times are as good as an expectation.
    let shown = unknown().ended_runs([10.0; 400]);
    let two = slots(1).job(shown).job(known("b", 50, 500.0));
    check(two, &["a: original 0"]);
}

#[test]
fn tasks_of_a_job_share_the_slots() {
    // Four tasks of 51 s take two rounds on two slots.
    let four = |deadline| {
        let four = slots(2).job(known("a", 50, deadline).tasks(4));
        is_admitted(&decided(four, &Memory::default()).1, "a")
    };
    assert!(four(103.0) && !four(101.0));
    // On four slots as well, if only two may run at a time.
    let narrow = |deadline| {
        let four = slots(4).job(known("a", 50, deadline).tasks(4).parallelism(2));
        is_admitted(&decided(four, &Memory::default()).1, "a")
    };
    assert!(narrow(103.0) && !narrow(101.0));
}

#[test]
fn attempts_yield_to_admitted_jobs_where_their_users_allow_it() {
    // At 100 s, an attempt that has 100 s to go holds the only slot.
    let running = |preemption: Preemption, deadline: f64| {
        let long = known("long", 200, deadline).submitted(-1.0).resumes();
        let attempt = attempt(0).on(0).progress(0.5, 99.0).checkpoint(0.5);
        let long = long
            .with(|job| job.rules.preemption = preemption)
            .task(0, [attempt]);
        let short = known("short", 20, 30.0).submitted(100.0);
        let one = world(100.0, 1, 1000).launch_overhead(1.0);
        decided(one.job(long).job(short), &Memory::default()).0
    };
    let allowed = Preemption::WhenCheckpointed;
    assert_eq!(running(allowed, 900.0), ["long: preempt 0.0"]);
    // A job that is late has nothing to lose.
    assert_eq!(running(allowed, 150.0), ["long: preempt 0.0"]);
    // The short job is not admitted if the other would then be late.
    assert_eq!(running(allowed, 215.0), [""; 0]);
    assert_eq!(running(Preemption::Never, 900.0), [""; 0]);
}

#[test]
fn it_launches_no_clones() {
    let late = known("a", 50, 60.0).task(0, [attempt(0).on(0).progress(0.1, 40.0)]);
    let world = world(45.0, 4, 1000).job(late);
    check(world, &[]);
    assert_eq!(
        policy("edf-admission").speculation.as_rule(),
        Some(&EdfAdmission)
    );
}

#[test]
fn each_pass_compares_what_all_jobs_need_then() {
    let mut snapshot = slots(1)
        .job(known("a", 50, 200.0))
        .job(known("b", 50, 1000.0))
        .build();
    let (mut planner, mut memory) = (Planner::default(), Memory::default());
    for _ in 0..2 {
        planner.decide(&snapshot, &mut memory, &edf(), Changed::Marked(&[false; 2]));
        assert!(planner.looked(snapshot.now).all(|looked| looked));
        snapshot.now = snapshot.now.plus(Span::from_seconds(1));
    }
}
