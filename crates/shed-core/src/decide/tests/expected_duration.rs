//! Jobs whose users expect a duration: it decides before the first report, and reports outweigh it.

use super::{brief, plan_of, product, report, unranked};
use crate::fixtures::{JobBuilder, World, at, attempt, job, world};
use crate::ids::JobClass;
use crate::memory::Memory;
use crate::policy::Policy;
use crate::snapshot::ExpectedDuration;
use crate::time::Span;

fn expects(job: JobBuilder, p50: f64, p90: Option<f64>) -> JobBuilder {
    let span = Span::from_seconds_f64;
    let expected = ExpectedDuration::new(span(p50), p90.map(span)).unwrap();
    job.with(|job| job.expected_duration = Some(expected))
}

fn moves(world: World, policy: &Policy) -> Vec<String> {
    let (plan, _) = plan_of(&world.build(), &Memory::default(), policy);
    brief(&plan)
}

/// At 10 s, a silent task that has 100 s.
fn silent() -> JobBuilder {
    job("a")
        .tasks(1)
        .deadline_in(110.0)
        .task(0, [attempt(0).on(0).launched(0.0)])
}

fn pocd(job: JobBuilder) -> Option<f64> {
    let snapshot = world(10.0, 1, 4000).job(job).build();
    let (plan, _) = plan_of(&snapshot, &Memory::default(), &Policy::default());
    report(&plan, "a").pocd_before
}

#[test]
fn an_expected_duration_gives_a_pocd_before_the_first_report() {
    assert_eq!(pocd(silent()), None);
    let short = pocd(expects(silent(), 60.0, None)).unwrap();
    let long = pocd(expects(silent(), 200.0, None)).unwrap();
    assert!(short > 0.95 && long < 0.05, "{short} {long}");
    let wide = pocd(expects(silent(), 90.0, Some(150.0))).unwrap();
    let narrow = pocd(expects(silent(), 90.0, Some(91.0))).unwrap();
    assert!(wide + 0.1 < narrow, "{wide} {narrow}");
}

#[test]
fn many_tasks_share_the_uncertainty_of_a_stated_duration() {
    let at_start = |tasks: u32, deadline: f64| {
        let job = job("a").tasks(tasks).deadline_in(deadline);
        let snapshot = world(0.0, 3, 100_000).job(expects(job, 600.0, None));
        let snapshot = snapshot.launch_overhead(5.0).build();
        let (plan, _) = plan_of(&snapshot, &Memory::default(), &Policy::default());
        report(&plan, "a").pocd_before.unwrap()
    };
    let [one, many] = [1, 300].map(|tasks| at_start(tasks, 800.0));
    assert!((0.8..0.85).contains(&one), "{one}");
    assert!((0.4..one).contains(&many), "{many}");
    // The last of the five values is 1.44 times the stated one, and no task differs much from it.
    assert!(at_start(300, 1500.0) > 0.95);
    assert!(at_start(300, 300.0) < 0.01);
}

#[test]
fn the_end_of_a_job_is_expected_before_its_first_report() {
    let snapshot = world(10.0, 1, 4000).job(expects(silent(), 60.0, None));
    let (plan, _) = plan_of(&snapshot.build(), &Memory::default(), &Policy::default());
    let end = report(&plan, "a").estimated_completion.unwrap();
    assert!(end > at(55.0) && end < at(70.0), "{end:?}");
}

#[test]
fn jobs_that_have_not_started_are_ordered_by_expected_slack() {
    let waiting = |key: &str, limit: f64| job(key).tasks(1).deadline_in(limit);
    let one_slot = |soon, late| world(0.0, 1, 1000).job(soon).job(late);
    let soon = || waiting("soon", 90.0);
    let late = || waiting("late", 120.0);
    for policy in [unranked(), product()] {
        assert_eq!(
            moves(one_slot(soon(), late()), &policy),
            ["soon: original 0"]
        );
    }
    let (soon, late) = (expects(soon(), 10.0, None), expects(late(), 50.0, None));
    let both = || one_slot(soon.clone(), late.clone());
    assert_eq!(moves(both(), &unranked()), ["late: original 0"]);
    // By value density the short task comes first.
    assert_eq!(moves(both(), &product()), ["soon: original 0"]);
}

#[test]
fn a_job_that_is_expected_to_take_too_long_is_served_last() {
    let lost = expects(job("lost").tasks(1).deadline_in(50.0), 200.0, None);
    let other = expects(job("other").tasks(1).deadline_in(500.0), 200.0, None);
    for policy in [unranked(), product()] {
        let one_slot = world(0.0, 1, 1000).job(lost.clone()).job(other.clone());
        assert_eq!(moves(one_slot, &policy), ["other: original 0"]);
    }
}

#[test]
fn three_reports_outweigh_an_expected_duration() {
    // At 50 s four tasks are half done, so they take 100 s each. Four others have not started.
    let reporting = |number: usize| attempt(0).on(number).progress(0.5, 50.0);
    let half_done = job("a")
        .tasks(8)
        .deadline_in(400.0)
        .task(0, [reporting(0)])
        .task(1, [reporting(1)])
        .task(2, [reporting(2)]);
    let snapshot = |job| world(50.0, 3, 1000).job(job).build();
    let of = |job| {
        let (plan, _) = plan_of(&snapshot(job), &Memory::default(), &Policy::default());
        let end = report(&plan, "a").estimated_completion.unwrap();
        end.since(at(50.0)).seconds()
    };
    let (unknown, wrong) = (of(half_done.clone()), of(expects(half_done, 1000.0, None)));
    assert!((wrong / unknown - 1.0).abs() < 0.1, "{unknown} {wrong}");
}

#[test]
fn an_expected_duration_replaces_the_history_of_the_class() {
    let etl = |job: JobBuilder| job.with(|job| job.class = Some(JobClass::from("etl")));
    // A job of the class took 1000 s per task, and is gone.
    let before = etl(job("before").done(0..4).ended_runs([1000.0; 4]));
    let (_, memory) = plan_of(
        &world(0.0, 4, 4000).job(before).build(),
        &Memory::default(),
        &product(),
    );
    let (_, memory) = plan_of(&world(1.0, 4, 4000).build(), &memory, &product());
    let pocd = |job, memory: &Memory| {
        let snapshot = world(10.0, 1, 4000).job(job).build();
        report(&plan_of(&snapshot, memory, &product()).0, "a").pocd_before
    };
    assert!(pocd(etl(silent()), &memory).unwrap() < 0.001);
    let expected = expects(silent(), 60.0, None);
    let without = pocd(expected.clone(), &Memory::default());
    assert_eq!(pocd(etl(expected), &memory), without);
}
