//! The deadline that a job could keep.

use super::{plan_of, report};
use crate::fixtures::{JobBuilder, World, at, attempt, job, world};
use crate::memory::Memory;
use crate::plan::Feasibility;
use crate::policy::Policy;
use crate::snapshot::{ExpectedDuration, Snapshot};
use crate::time::Span;
use proptest::prelude::*;

/// Twelve tasks that have not begun. Others of the job have taken 20 to 30 s.
fn fresh(deadline: f64) -> JobBuilder {
    job("a")
        .tasks(16)
        .done(0..4)
        .ended_runs([20.0, 22.0, 25.0, 30.0])
        .deadline_in(deadline)
        .with(|job| job.asks_feasibility = true)
}

fn policy() -> Policy {
    Policy {
        surge_max: 0,
        ..Policy::default()
    }
}

fn cluster(cpus: i64) -> World {
    world(0.0, 4, cpus * 1000).launch_overhead(2.0)
}

fn answer(snapshot: &Snapshot) -> Option<Feasibility> {
    let (plan, _) = plan_of(snapshot, &Memory::default(), &policy());
    report(&plan, "a").feasibility
}

fn feasibility(world: World) -> Feasibility {
    answer(&world.build()).unwrap()
}

fn seconds(of: Feasibility) -> f64 {
    of.earliest.unwrap().since(at(0.0)).seconds()
}

#[test]
fn nobody_is_reported_who_does_not_ask() {
    let silent = fresh(100.0).with(|job| job.asks_feasibility = false);
    assert_eq!(answer(&cluster(1).job(silent).build()), None);
}

#[test]
fn an_infeasible_expected_duration_is_reported_before_launches() {
    let expected = ExpectedDuration::new(Span::from_seconds(100), None).unwrap();
    let untouched = |deadline| {
        let job = job("a").tasks(4).deadline_in(deadline);
        job.with(|job| job.asks_feasibility = true)
    };
    assert!(!feasibility(cluster(1).job(untouched(60.0))).is_known);
    let known = |deadline| untouched(deadline).with(|job| job.expected_duration = Some(expected));
    let short = feasibility(cluster(1).job(known(60.0)));
    assert!(short.is_known && short.pocd.unwrap() < 0.001, "{short:?}");
    // Nine of ten such jobs take at most 143.7 s for a usual task, 1.28 standard deviations of 0.283 above the median. Half
    // of these are in time if each of four tasks is with 0.843, one standard deviation of 0.1 above that.
    let earliest = seconds(short);
    assert!((earliest - 2.0 - 158.9).abs() < 1.5, "{earliest}");
    assert!(feasibility(cluster(1).job(known(earliest))).pocd.unwrap() > 0.89);
}

#[test]
fn the_earliest_feasible_deadline_just_reaches_the_target() {
    for target in [0.5, 0.9, 0.99] {
        let here = feasibility(cluster(1).job(fresh(60.0).target(target)));
        let (plan, _) = plan_of(
            &cluster(1).job(fresh(60.0)).build(),
            &Memory::default(),
            &policy(),
        );
        assert_eq!(here.pocd, report(&plan, "a").pocd_before);
        assert_eq!((here.width, here.target), (4, target));
        let earliest = seconds(here);
        let there = feasibility(cluster(1).job(fresh(earliest).target(target)));
        assert!(there.pocd.unwrap() >= target, "{there:?}");
        let sooner = feasibility(cluster(1).job(fresh(earliest * 0.99).target(target)));
        assert!(sooner.pocd.unwrap() < target, "{sooner:?}");
    }
}

#[test]
fn a_suspended_job_is_reported_what_it_could_do_if_it_were_not() {
    let running = feasibility(cluster(1).job(fresh(100.0)));
    let suspended = feasibility(cluster(1).job(fresh(100.0).suspended()));
    assert_eq!(running, suspended);
}

#[test]
fn a_job_that_waits_for_others_begins_a_mean_time_later() {
    let others = || {
        job("other")
            .submitted(-1.0)
            .tasks(4)
            .task(0, [attempt(0).on(0)])
            .task(1, [attempt(0).on(1)])
            .task(2, [attempt(0).on(2)])
            .task(3, [attempt(0).on(3)])
    };
    let alone = feasibility(cluster(1).job(fresh(100.0)));
    let behind = feasibility(cluster(1).job(others()).job(fresh(100.0)));
    assert_eq!((alone.width, behind.width), (4, 4));
    assert!(behind.pocd < alone.pocd);
    assert!(seconds(behind) > seconds(alone));
}

#[test]
fn without_times_a_deadline_or_a_node_what_can_be_said_is_said() {
    let unknown = feasibility(
        cluster(1).job(
            job("a")
                .never_launched()
                .with(|job| job.asks_feasibility = true),
        ),
    );
    assert!(!unknown.is_known && unknown.pocd.is_none() && unknown.earliest.is_none());
    let clock = feasibility(cluster(1).job(fresh(100.0).with(|job| job.deadline = None)));
    assert!(clock.pocd.is_none() && clock.earliest.is_some());
    let full = (0..4).fold(cluster(1), |world, node| world.others(node, 500));
    let nowhere = feasibility(full.job(fresh(1e6)));
    assert_eq!(
        (nowhere.pocd, nowhere.earliest, nowhere.width),
        (Some(0.0), None, 0)
    );
    let certain = feasibility(cluster(1).job(fresh(100.0).target(1.0)));
    assert_eq!(certain.earliest, None, "a heavy tail is never certain");
}

#[test]
fn a_pass_answers_only_so_many_and_the_first_always() {
    let large = |key: &str| {
        let large = fresh(100.0).tasks(100_000).parallelism(1);
        large.with(|job| job.key = key.into())
    };
    let snapshot = cluster(1).job(large("a")).job(large("b")).build();
    let (plan, _) = plan_of(&snapshot, &Memory::default(), &policy());
    assert!(report(&plan, "a").feasibility.is_some());
    assert!(report(&plan, "b").feasibility.is_none());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn more_capacity_is_never_later(cpus in 1i64..6, more in 1i64..6, target in 0.05..0.99f64) {
        let here = feasibility(cluster(cpus).job(fresh(60.0).target(target)));
        let there = feasibility(cluster(cpus + more).job(fresh(60.0).target(target)));
        prop_assert!(there.pocd.unwrap() >= here.pocd.unwrap() - 1e-12);
        prop_assert!(seconds(there) <= seconds(here) * 1.005 + 0.1);
    }
}
