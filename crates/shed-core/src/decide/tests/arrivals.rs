//! The jobs that count as arrivals: headroom is reserved for jobs that are likely to come again.

use super::unplaceable::{launches_of, snapshot_of};
use super::{plan, plan_of};
use crate::fixtures::{JobBuilder, attempt, job, world};
use crate::memory::Memory;
use crate::policy::Policy;

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
    let policy: Policy = "shed-prime".parse().unwrap();
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
fn what_has_run_is_remembered_as_having_come() {
    let policy: Policy = "shed-prime".parse().unwrap();
    let ran = job("ran").tenant("other").task(0, [attempt(0).on(0)]);
    let (_, memory) = plan_of(&snapshot_of([ran], 9000), &Memory::default(), &policy);
    let (_, after) = plan_of(&snapshot_of([job("b")], 9000), &memory, &policy);
    assert_eq!(after.arrivals().iter().count(), 2);
}
