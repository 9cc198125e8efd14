//! Capacity that is kept for future jobs.

use super::{JobBuilder, World, attempt, brief, job, plan_of, report, steady, world};
use crate::ids::{JobKey, Tenant};
use crate::memory::{Arrival, Arrivals, Memory};
use crate::policy::Policy;
use crate::snapshot::ExpectedDuration;
use crate::time::{Instant, Span};

/// Headroom is off by default.
const RESERVE: &str = "shed-prime{reserve=on}";

/// Equal jobs that came lately. The last was submitted at 1000 s, which the clock shows.
#[derive(Debug, Clone, Copy)]
struct Came {
    count: usize,
    /// Seconds between two of them.
    gap: f64,
    /// The share of the cluster that each took, and for how many seconds.
    width: f64,
    seconds: f64,
    /// Seconds for which their tasks could wait.
    slack: f64,
}

/// Each took a tenth of the cluster for 20 s.
const CAME: Came = Came {
    count: 20,
    gap: 25.0,
    width: 0.1,
    seconds: 20.0,
    slack: 0.0,
};

impl Came {
    fn memory(self) -> Memory {
        let mut arrivals = Arrivals::default();
        for at in 0..self.count {
            let before = Span::from_seconds_f64(self.gap * at as f64);
            let submitted = Instant(1_000_000 - before.0);
            let arrival = Arrival {
                submitted,
                width: self.width,
                volume: self.width * self.seconds,
                hope: 1.0,
                slack: self.slack,
                has_run: true,
                is_launched: false,
                is_gone: true,
            };
            arrivals.note(
                &JobKey::from(&*format!("past-{at}")),
                &Tenant::from("default"),
                arrival,
            );
        }
        let mut memory = Memory::default();
        memory.set_arrivals(arrivals);
        memory
    }
}

/// A thousand slots.
fn cluster() -> World {
    world(1000.0, 10, 100_000).launch_overhead(1.0)
}

/// A job of one thousand tasks that hold their slots for 1001 s each.
fn long() -> JobBuilder {
    let job = job("long").submitted(999.0).tasks(1000);
    steady(job.deadline_in(9000.0), 1000.0)
}

fn launches(text: &str, memory: &Memory, world: World) -> usize {
    let policy = Policy {
        surge_max: 0,
        ..text.parse().unwrap()
    };
    let (plan, _) = plan_of(&world.build(), memory, &policy);
    let moves = brief(&plan);
    moves
        .iter()
        .filter(|it| it.starts_with("long: original"))
        .count()
}

/// Each row: what came, and the number of attempts that the long job starts with.
#[track_caller]
fn table(text: &str, job: &JobBuilder, rows: &[(Came, usize)]) {
    for (came, expected) in rows {
        let launched = launches(text, &came.memory(), cluster().job(job.clone()));
        assert_eq!(launched, *expected, "{text}, {came:?}");
    }
}

#[test]
fn headroom_is_the_mean_demand_and_some_deviations() {
    table(
        RESERVE,
        &long(),
        &[
            // Mean 0.08, deviation 0.0894. The density of the others is 500 times as high, so 0.01 is the risk.
            (CAME, 711),
            // Mean 0.2, deviation 0.0632, and a risk of 0.02: their density is 50 times as high.
            (
                Came {
                    count: 5,
                    gap: 100.0,
                    width: 0.02,
                    seconds: 1000.0,
                    ..CAME
                },
                670,
            ),
            // Jobs of three times the cluster vary by no more than the cluster.
            (
                Came {
                    count: 2,
                    width: 3.0,
                    seconds: 2.0,
                    ..CAME
                },
                615,
            ),
            // A demand beyond the cluster leaves one attempt.
            (Came { width: 0.9, ..CAME }, 1),
            // One arrival gives no rate.
            (Came { count: 1, ..CAME }, 1000),
        ],
    );
    table("shed-prime", &long(), &[(CAME, 1000)]);
    table("shed-prime{reserve=on,weigh=off}", &long(), &[(CAME, 1000)]);
    // A job without a deadline has no value, so the risk is the least one.
    let unbound = long().with(|job| job.deadline = None);
    table(RESERVE, &unbound, &[(CAME, 711)]);
}

#[test]
fn only_jobs_of_five_times_the_density_count() {
    // A part of the cluster for 1001 s is value_density one deadline: so is a fifth of that for the others.
    table(
        RESERVE,
        &long(),
        &[
            (
                Came {
                    width: 0.5,
                    seconds: 395.0,
                    ..CAME
                },
                1,
            ),
            (
                Came {
                    width: 0.5,
                    seconds: 405.0,
                    ..CAME
                },
                1000,
            ),
        ],
    );
}

#[test]
fn arrivals_count_for_as_long_as_an_attempt_holds_its_slot() {
    table(
        RESERVE,
        &long(),
        &[
            // Within 475 s: 20 jobs.
            (Came { gap: 25.0, ..CAME }, 711),
            // Within 95 s, which count as a quarter of 1001 s.
            (Came { gap: 5.0, ..CAME }, 561),
            // Over 1900 s: 11 of the jobs are recent enough.
            (Came { gap: 100.0, ..CAME }, 876),
        ],
    );
}

#[test]
fn all_arrivals_count_for_an_attempt_without_a_known_end() {
    let endless = job("long").submitted(999.0).tasks(1000);
    let endless = endless.with(|job| job.deadline = None);
    let rows = [
        // Over 1900 s: 20 jobs, whose tasks can wait for no longer than the attempt.
        (
            Came {
                gap: 100.0,
                slack: 500.0,
                ..CAME
            },
            875,
        ),
        // Within one second at least.
        (
            Came {
                gap: 0.0,
                count: 2,
                width: 0.001,
                ..CAME
            },
            969,
        ),
    ];
    table(RESERVE, &endless, &rows);
}

#[test]
fn arrivals_that_could_wait_count_less() {
    let could_wait = |slack| Came { slack, ..CAME };
    table(
        RESERVE,
        &long(),
        &[
            // Half of 1001 s: one eighth less.
            (could_wait(500.0), 736),
            (could_wait(2000.0), 818),
            // Four times 1001 s.
            (could_wait(4010.0), 1000),
        ],
    );
}

#[test]
fn one_attempt_of_a_job_is_always_allowed() {
    let crowded = Came { width: 0.9, ..CAME }.memory();
    let running = |tasks: u32| {
        let silent = attempt(0).launched(999.0).on(0);
        (0..tasks).fold(long(), |job, task| job.task(task, [silent.clone()]))
    };
    let rows: [(u32, usize); 3] = [(0, 1), (1, 0), (2, 0)];
    for (tasks, expected) in rows {
        let launched = launches(RESERVE, &crowded, cluster().job(running(tasks)));
        assert_eq!(launched, expected, "{tasks} run");
    }
}

#[test]
fn what_jobs_of_up_to_five_times_the_density_hold_is_taken_off() {
    // A hundred slots are held by a job of some tasks. The long job has a thousand such tasks.
    let held_by = |tasks: u32| {
        let silent = attempt(0).launched(999.0).on(0);
        let other = job("other").submitted(990.0).tasks(tasks).parallelism(100);
        let other = steady(other.deadline_in(9000.0), 1000.0);
        let other = (0..100).fold(other, |job, task| job.task(task, [silent.clone()]));
        launches(RESERVE, &CAME.memory(), cluster().job(long()).job(other))
    };
    assert_eq!([190, 210].map(held_by), [711, 611]);
}

#[test]
fn a_job_of_little_hope_counts_its_slots_but_not_its_arrival() {
    // A new attempt of a task takes more than 1000 s, and half of them more than 1287 s.
    let running = |running: u32| {
        let job = job("long").submitted(999.0).tasks(1000).deadline_in(2500.0);
        let silent = attempt(0).launched(999.0).on(0);
        let job = (0..running).fold(job.ended_runs([1000.0; 4]), |job, task| {
            job.task(task, [silent.clone()])
        });
        launches(RESERVE, &CAME.memory(), cluster().job(job))
    };
    assert_eq!([0, 100].map(running), [711, 611]);
}

#[test]
fn arrivals_are_noted_and_what_is_kept_back_is_reported() {
    let narrow = job("narrow").submitted(999.0).tasks(1000).parallelism(100);
    let narrow = steady(narrow.deadline_in(9000.0), 1000.0);
    let snapshot = cluster().job(long()).job(narrow).build();
    let policy: Policy = RESERVE.parse().unwrap();
    let (plan, after) = plan_of(&snapshot, &CAME.memory(), &policy);
    assert_eq!(report(&plan, "long").kept_back, 1000 - 611);
    let noted = |name: &str| {
        let mut noted = after.arrivals().iter();
        *noted
            .find(|(key, _)| **key == JobKey::from(name))
            .unwrap()
            .1
    };
    assert_eq!(noted("long").submitted, Instant(999_000));
    assert_eq!([noted("long").width, noted("narrow").width], [1.0, 0.1]);
}

/// The attempts that start in one pass of equal jobs with a stated duration of 600 s, one each 10 s.
fn starts_of_equal(jobs: u32, tasks: u32, deadline: f64) -> usize {
    let seconds = Span::from_seconds;
    let expected = ExpectedDuration::new(seconds(600), None).unwrap();
    let equal = (0..jobs).map(|number| {
        let job = job(&format!("equal-{number}")).tasks(tasks);
        let job = job.submitted(999.0 - 10.0 * f64::from(number));
        let job = job.with(|job| job.expected_duration = Some(expected));
        job.deadline_in(deadline)
    });
    let world = equal.fold(cluster(), World::job);
    let policy: Policy = RESERVE.parse().unwrap();
    brief(&plan_of(&world.build(), &Memory::default(), &policy).0).len()
}

#[test]
fn equal_jobs_do_not_keep_headroom_from_each_other() {
    assert_eq!(starts_of_equal(3, 300, 800.0), 900);
    // Hopeless ones neither.
    assert_eq!(starts_of_equal(3, 300, 300.0), 900);
    assert_eq!(starts_of_equal(20, 45, 300.0), 900);
}

#[test]
fn no_headroom_is_kept_for_or_by_a_job_that_no_node_can_hold() {
    let gpu = job("gpu").submitted(990.0).tasks(1).deadline_in(30.0);
    let gpu = gpu.with(|job| job.demand.set("gpu", 1));
    let launched = launches(RESERVE, &CAME.memory(), cluster().job(long()).job(gpu));
    assert_eq!(launched, 711);
}
