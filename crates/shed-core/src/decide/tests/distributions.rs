//! The basis for judging jobs: each distribution, and the times of earlier jobs of their class.

use super::{plan_of, report};
use crate::estimate::distribution::DistributionKind;
use crate::estimate::fit::DistributionChoice;
use crate::fixtures::{JobBuilder, at, attempt, job, world};
use crate::ids::JobClass;
use crate::memory::Memory;
use crate::policy::Policy;
use crate::snapshot::Snapshot;

fn with_distribution(distribution: DistributionChoice) -> Policy {
    Policy {
        distribution,
        ..Policy::default()
    }
}

/// Twelve have ended and four run silently: only the distribution tells how long these will take.
fn mostly_ended() -> JobBuilder {
    let runs = [
        60.0, 62.0, 63.0, 65.0, 66.0, 68.0, 70.0, 73.0, 76.0, 80.0, 88.0, 95.0,
    ];
    let silent = |node| attempt(0).on(node);
    job("a")
        .tasks(16)
        .deadline_in(150.0)
        .done(0..12)
        .ended_runs(runs)
        .task(12, [silent(0)])
        .task(13, [silent(1)])
        .task(14, [silent(2)])
        .task(15, [silent(3)])
}

fn pocd(snapshot: &Snapshot, memory: &Memory, distribution: DistributionChoice) -> Option<f64> {
    let (plan, _) = plan_of(snapshot, memory, &with_distribution(distribution));
    report(&plan, "a").pocd_before
}

#[test]
fn each_distribution_has_its_own_pocd_and_best_is_one_of_them() {
    let snapshot = world(100.0, 4, 4000).job(mostly_ended()).build();
    let of = |distribution| pocd(&snapshot, &Memory::default(), distribution).unwrap();
    let always = DistributionKind::ALL.map(|kind| of(DistributionChoice::Always(kind)));
    for (position, pocd) in always.iter().enumerate() {
        assert!(*pocd > 0.0 && *pocd < 1.0, "{always:?}");
        assert!(!always[..position].contains(pocd), "{always:?}");
    }
    assert!(always.contains(&of(DistributionChoice::Best)));
}

#[test]
fn the_papers_distribution_is_read_unless_another_is_asked_for() {
    let snapshot = world(100.0, 4, 4000).job(mostly_ended()).build();
    let usual = plan_of(&snapshot, &Memory::default(), &Policy::default());
    let pareto = with_distribution(DistributionChoice::Always(DistributionKind::Pareto));
    assert_eq!(usual, plan_of(&snapshot, &Memory::default(), &pareto));
}

/// At 10 s, four silent tasks without any known time.
fn just_begun(class: Option<&str>) -> JobBuilder {
    let silent = |node| attempt(0).on(node);
    job("a")
        .deadline_in(200.0)
        .task(0, [silent(0)])
        .task(1, [silent(1)])
        .task(2, [silent(2)])
        .task(3, [silent(3)])
        .with(|job| job.class = class.map(JobClass::from))
}

/// The memory after a job of class `etl`, whose tasks took this long, has come and gone.
fn taught(runs: impl IntoIterator<Item = f64>) -> Memory {
    let before = job("before").done(0..4).ended_runs(runs);
    let before = before.with(|job| job.class = Some(JobClass::from("etl")));
    let policy = Policy::default();
    let there = world(0.0, 4, 4000).job(before).build();
    let (_, memory) = plan_of(&there, &Memory::default(), &policy);
    plan_of(&world(1.0, 4, 4000).build(), &memory, &policy).1
}

#[test]
fn a_job_of_a_known_class_has_a_pocd_without_observations() {
    let memory = taught([100.0, 104.0, 108.0, 120.0]);
    let snapshot = |class| world(10.0, 4, 4000).job(just_begun(class)).build();
    for distribution in DistributionChoice::ALL {
        let known = pocd(&snapshot(Some("etl")), &memory, distribution);
        assert!(
            known.is_some_and(|pocd| pocd > 0.1 && pocd < 1.0),
            "{known:?}"
        );
        assert_eq!(pocd(&snapshot(Some("other")), &memory, distribution), None);
        assert_eq!(pocd(&snapshot(None), &memory, distribution), None);
    }
}

#[test]
fn a_steady_class_promises_more_than_an_unsteady_one() {
    let snapshot = world(10.0, 4, 4000).job(just_begun(Some("etl"))).build();
    let of = |runs| pocd(&snapshot, &taught(runs), DistributionChoice::default()).unwrap();
    let steady = of([100.0, 101.0, 102.0, 103.0]);
    let unsteady = of([100.0, 300.0, 900.0, 2700.0]);
    assert!(steady > unsteady + 0.1, "{steady} {unsteady}");
}

#[test]
fn a_job_without_a_class_is_judged_as_if_there_were_no_history() {
    let memory = taught([100.0, 104.0, 108.0, 120.0]);
    let snapshot = world(100.0, 4, 4000).job(mostly_ended()).build();
    let distribution = DistributionChoice::default();
    assert_eq!(
        pocd(&snapshot, &memory, distribution),
        pocd(&snapshot, &Memory::default(), distribution)
    );
}

#[test]
fn a_completion_is_estimated_from_the_class_alone() {
    let memory = taught([100.0, 104.0, 108.0, 120.0]);
    let snapshot = world(10.0, 4, 4000).job(just_begun(Some("etl"))).build();
    let (plan, _) = plan_of(&snapshot, &memory, &Policy::default());
    let end = report(&plan, "a").estimated_completion.unwrap();
    assert!(end > at(100.0) && end < at(300.0), "{end:?}");
}
