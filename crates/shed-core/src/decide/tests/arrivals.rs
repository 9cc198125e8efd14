//! The jobs that count as arrivals: headroom is reserved for jobs that are likely to come again.

use super::unplaceable::{launches_of, snapshot_of};
use super::{plan, plan_of};
use crate::fixtures::{JobBuilder, World, attempt, job, world};
use crate::memory::Memory;
use crate::policy::Policy;
use crate::snapshot::ExpectedDuration;
use crate::time::Span;

/// Headroom is off by default.
const RESERVE: &str = "shed-prime{reserve=on}";

/// Jobs of another tenant that would leave the victim one attempt of eighty.
fn suspended(count: u32, tasks: u32) -> impl Iterator<Item = JobBuilder> {
    (0..count).map(move |number| {
        let job = job(&format!("s-{number:02}")).tasks(tasks).tenant("other");
        let job = job.submitted(f64::from(number)).deadline_in(60.0);
        job.ended_runs([]).suspended().never_launched()
    })
}

#[test]
fn suspended_jobs_reserve_nothing_nor_do_those_that_are_gone() {
    let policy: Policy = RESERVE.parse().unwrap();
    let eighty = || job("victim").tasks(80).submitted(29.0).deadline_in(3600.0);
    for (count, tasks) in [(16, 10), (4, 100)] {
        let resumed = |job: JobBuilder| job.with(|job| job.rules.suspend = false);
        let alone = plan(world(30.0, 1, 100_000).job(eighty()), &policy);
        assert_eq!(launches_of(&alone, "victim"), 80);
        let all = suspended(count, tasks).chain([eighty()]);
        let (plan, _) = plan_of(&snapshot_of(all, 100_000), &Memory::default(), &policy);
        assert_eq!(launches_of(&plan, "victim"), 80);
        // A job that may run is noted. A job withdrawn before it ran is forgotten.
        let all = suspended(count, tasks).map(resumed).chain([eighty()]);
        let (_, memory) = plan_of(&snapshot_of(all, 100_000), &Memory::default(), &policy);
        assert_eq!(memory.arrivals().iter().count(), count as usize + 1);
        for gone in [
            snapshot_of([eighty()], 100_000),
            snapshot_of(suspended(count, tasks).chain([eighty()]), 100_000),
        ] {
            let (plan, after) = plan_of(&gone, &memory, &policy);
            assert_eq!(launches_of(&plan, "victim"), 80);
            assert_eq!(after.arrivals().iter().count(), 1);
        }
    }
}

#[test]
fn hopeless_jobs_that_are_deleted_again_withhold_nothing() {
    let seconds = Span::from_seconds;
    let expected = ExpectedDuration::new(seconds(280), None).unwrap();
    // Some of them run, and all are due before they could end.
    let hopeless = |number: u32| {
        let job = job(&format!("h-{number:02}")).tasks(10).tenant("other");
        let job = job.submitted(f64::from(number) / 16.0).deadline_in(8.0);
        let job = job.with(|job| job.expected_duration = Some(expected));
        match number % 2 {
            0 => job,
            _ => job.task(0, [attempt(0).on(0)]),
        }
    };
    let all = || (0..16).map(hopeless);
    let memory = [1.0, 9.0].iter().fold(Memory::default(), |memory, &now| {
        remembered(now, all(), &memory)
    });
    let victim = job("victim").tasks(80).submitted(12.0).deadline_in(3600.0);
    let snapshot = world(12.0, 1, 100_000).job(victim).build();
    let (plan, after) = plan_of(&snapshot, &memory, &RESERVE.parse().unwrap());
    assert_eq!(launches_of(&plan, "victim"), 80);
    // A job that has run is remembered with what it was served: a tenth of the cluster for 12 s at most.
    let arrivals = after.arrivals().iter();
    let volumes: Vec<f64> = arrivals.map(|(_, arrival)| arrival.volume).collect();
    assert_eq!(volumes.len(), 9);
    let most_of = volumes.iter().filter(|volume| **volume <= 1.2);
    assert_eq!(most_of.count(), 8);
}

#[test]
fn what_has_run_is_remembered_as_having_come() {
    let policy: Policy = RESERVE.parse().unwrap();
    let ran = job("ran").tenant("other").task(0, [attempt(0).on(0)]);
    let (_, memory) = plan_of(&snapshot_of([ran], 9000), &Memory::default(), &policy);
    let (_, after) = plan_of(&snapshot_of([job("b")], 9000), &memory, &policy);
    assert_eq!(after.arrivals().iter().count(), 2);
}

/// What the memory has as the demand of the job: its width times the seconds that its tasks take.
fn volume(memory: &Memory, key: &str) -> f64 {
    let arrivals = memory.arrivals();
    let (_, arrival) = arrivals.iter().find(|(it, _)| **it == key.into()).unwrap();
    arrival.volume
}

/// The memory after a pass at `now` on a hundred slots.
fn remembered(now: f64, jobs: impl IntoIterator<Item = JobBuilder>, before: &Memory) -> Memory {
    let world = jobs.into_iter().fold(world(now, 1, 100_000), World::job);
    let (_, after) = plan_of(&world.build(), before, &RESERVE.parse().unwrap());
    after
}

/// More tasks than there are slots.
fn crowd() -> JobBuilder {
    job("crowd").tasks(200).deadline_in(3600.0)
}

#[test]
fn observed_demand_replaces_presumed_demand_without_a_shortage() {
    let new = || job("new").tenant("other").tasks(4).deadline_in(600.0);
    let presumed = remembered(20.0, [new(), crowd()], &Memory::default());
    // Four slots for half of the time that the user gave it.
    let volume_before = volume(&presumed, "new");
    assert!(volume_before > 10.0, "{volume_before}");
    let shown = new().ended_runs([1.0; 3]).task(3, [attempt(0).on(0)]);
    let volume_after = volume(&remembered(30.0, [shown], &presumed), "new");
    assert!(volume_after < 0.2, "{volume_after}");
}

#[test]
fn a_job_that_left_early_demanded_at_most_what_it_could_hold() {
    let ran = job("ran").tenant("other").submitted(10.0).tasks(2);
    let ran = ran.deadline_in(6000.0).task(0, [attempt(0).on(0)]);
    let presumed = remembered(20.0, [ran, crowd()], &Memory::default());
    let volume_before = volume(&presumed, "ran");
    assert!(volume_before > 10.0, "{volume_before}");
    // Two slots from 10 s to 30 s. Later passes know no more.
    let left = remembered(30.0, [crowd()], &presumed);
    let later = remembered(40.0, [crowd()], &left);
    assert_eq!(
        [&left, &later].map(|memory| volume(memory, "ran")),
        [0.4; 2]
    );
}
