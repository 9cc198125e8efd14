//! Which waiting jobs are served by slack: those that can all finish in time.

use super::{Moves, attempt, brief, check, decided, ends_in, job, slots, steady, table};
use crate::fixtures::JobBuilder;
use crate::snapshot::{ExpectedDuration, Preemption, SpeculationMode};
use crate::time::Span;

const LARGE: Moves<'static> = &["large: original 0"];
const SMALL: Moves<'static> = &["small: original 0"];

const TEXT: &str = "shed-prime{reserve=off}";

/// A task of 100 s that has to start within 9 s.
fn large() -> JobBuilder {
    steady(job("large").tasks(1).deadline_in(30.0 + 110.0), 100.0)
}

/// A task of 20 s with this much time left. It has the higher value density.
fn small(left: f64) -> JobBuilder {
    let job = job("small").submitted(5.0).tasks(1);
    steady(job.deadline_in(25.0 + left), 20.0)
}

#[test]
fn jobs_that_can_all_be_in_time_are_served_by_slack() {
    let one_slot = |left| slots(1).job(small(left)).job(large());
    // The small task can start after 101 s, and should within ¾ of what is left after its own 21 s.
    table(TEXT, one_slot, &[(153.0, SMALL), (158.0, LARGE)]);
    let off = "shed-prime{reserve=off,timely=off}";
    table(off, one_slot, &[(158.0, SMALL)]);
}

#[test]
fn an_expected_duration_needs_no_time_for_a_second_attempt() {
    let seconds = Span::from_seconds;
    // Nine of ten attempts take at most 23 s, 20 s · e^(1.28 · 0.3) = 29.4 s, or 80 s.
    let expects = |p90: Option<i64>| {
        let expected = ExpectedDuration::new(seconds(20), p90.map(seconds)).unwrap();
        move |left| {
            let job = job("small").submitted(5.0).tasks(1);
            let small = job.deadline_in(25.0 + left);
            let small = small.with(|job| job.expected_duration = Some(expected));
            slots(1).job(small).job(large())
        }
    };
    // The small task can start after 101 s, and a launch takes 1 s.
    table(TEXT, expects(Some(23)), &[(124.0, SMALL), (126.0, LARGE)]);
    table(TEXT, expects(None), &[(130.0, SMALL), (132.0, LARGE)]);
    // A wide expectation leaves time for a second attempt: ¾ of what is left, as in the test above.
    table(TEXT, expects(Some(80)), &[(153.0, SMALL), (158.0, LARGE)]);
}

#[test]
fn jobs_without_a_deadline_hold_no_slot_that_another_may_take() {
    let other = |preemption| {
        let other = job("other").tasks(1).with(|job| {
            job.deadline = None;
            job.rules.preemption = preemption;
        });
        let running = attempt(0).on(1).progress(0.1, 29.0).checkpoint(0.1);
        let other = other.resumes().task(0, [running]);
        // Two tasks must start within 9 s, and one slot is free.
        let jobs = slots(2).job(small(1000.0)).job(large().tasks(2));
        jobs.job(other)
    };
    let first = |preemption| brief(&decided(TEXT, other(preemption)))[0].clone();
    assert_eq!(first(Preemption::Never), SMALL[0]);
    let moves = brief(&decided(TEXT, other(Preemption::WhenCheckpointed)));
    assert!(moves.contains(&LARGE[0].to_owned()), "{moves:?}");
}

#[test]
fn an_infeasible_set_of_jobs_drops_the_lowest_value_density() {
    let third = steady(job("third").submitted(1.0).tasks(1).deadline_in(95.0), 50.0);
    let crowded = slots(1).job(small(400.0)).job(large()).job(third);
    check(TEXT, crowded, &["third: original 0"]);
}

#[test]
fn tasks_are_counted_with_the_clones_that_running_ones_have() {
    // A task runs with this many attempts, on slots that come free too late.
    let attempts = |count: u32| {
        let running = (0..count).map(|number| ends_in(number, 500.0).on(number as usize));
        let other = steady(job("other").tasks(1).deadline_in(5000.0), 500.0);
        let other = other
            .speculation(SpeculationMode::Disabled)
            .task(0, running);
        let world = slots(count as usize + 1);
        world.job(small(158.0)).job(large()).job(other)
    };
    // The useless clone is evicted for the large job.
    let evicted = &["other: evict 0.1 for 0.0", "small: original 0"];
    table(TEXT, attempts, &[(1, LARGE), (2, evicted)]);
}

#[test]
fn the_slot_of_an_overdue_silent_attempt_is_not_counted_on() {
    let silent = || attempt(0).launched(0.0).on(0);
    let held = |attempt| {
        let overdue = job("overdue").tasks(1).deadline_in(2000.0);
        let overdue = overdue.ended_runs([5.0, 5.0, 10.0, 80.0]);
        let world = slots(2).job(overdue.task(0, [attempt]));
        world.job(small(50.0)).job(large())
    };
    check(TEXT, held(silent()), SMALL);
    // An attempt that reports its near end is left alone.
    check(TEXT, held(silent().progress(0.99, 29.5)), LARGE);
}

#[test]
fn only_slots_that_come_free_for_others_are_counted_on() {
    // Two tasks must start within 6 s: one in the free slot, one when another task has ended.
    let world = |tasks, end| {
        let other = job("other").tasks(1).deadline_in(9000.0);
        let other = other.task(0, [ends_in(0, end).on(1)]);
        let cluster = slots(2).job(small(1000.0)).job(large().tasks(tasks));
        cluster.job(other)
    };
    check(TEXT, world(2, 5.0), LARGE);
    // The slot on an unusable node does not come free, and the attempt there takes none of the others.
    check(TEXT, world(2, 5.0).unusable(1), SMALL);
    check(TEXT, world(1, 500.0).unusable(1), LARGE);
    // A pod that no scheduler places holds no slot.
    let unplaced = job("other").task(0, [attempt(0).unplaceable()]);
    let cluster = slots(1).job(small(1000.0)).job(large());
    check(TEXT, cluster.job(unplaced), LARGE);
}

#[test]
fn a_job_that_starts_at_once_is_in_time_unless_it_is_hopeless() {
    // Half of all tasks take longer than 129 s.
    let left = |left| {
        let large = job("large").tasks(1).deadline_in(30.0 + left);
        slots(1)
            .job(small(1000.0))
            .job(large.ended_runs([100.0; 4]))
    };
    table(TEXT, left, &[(115.0, LARGE), (101.0, SMALL)]);
}

#[test]
fn a_silent_attempt_is_expected_to_take_as_long_as_usual() {
    // A quarter of the time that jobs were given, by the jobs of the other tenant: see `cross_job_prior`.
    let given = |given| {
        let other = job("other").tasks(1).tenant("t").deadline_in(given);
        let other = other.task(0, [attempt(0).on(1)]);
        // The second of two tasks must start within 25 s.
        let large = large().tasks(2).deadline_in(30.0 + 134.0);
        slots(2).job(small(1000.0)).job(large).job(other)
    };
    // It has run for 29 s. If that is longer than usual it is expected to take as long again.
    table(
        TEXT,
        given,
        &[(190.0, LARGE), (230.0, SMALL), (100.0, SMALL)],
    );
}

#[test]
fn up_to_1024_slots_are_examined_one_by_one() {
    // One slot is free, two come free after 5 s, the others later. Three tasks must start within 6 s.
    let slots_in_all = |count: usize| {
        let ends = |index| if index < 2 { 5.0 } else { 300.0 };
        let world = slots(count).job(small(1000.0)).job(large().tasks(3));
        let all: Vec<usize> = (0..count - 1).collect();
        all.chunks(64).fold(world, |world, part| {
            let name = format!("other-{}", part[0]);
            let other = job(&name).tasks(part.len() as u32).deadline_in(9000.0);
            let tasks = part.iter().zip(0..);
            let other = tasks.fold(other, |job, (&at, index)| {
                job.task(index, [ends_in(0, ends(at)).on(at)])
            });
            world.job(other)
        })
    };
    table(TEXT, slots_in_all, &[(1024, LARGE), (1025, SMALL)]);
}

#[test]
fn up_to_64_slots_of_a_job_are_examined_one_by_one() {
    // As above, with groups of three from 129 tasks on.
    let slots_of_one = |count: usize| {
        let ends = |index| if index < 2 { 5.0 } else { 300.0 };
        let other = job("other").tasks(count as u32).deadline_in(9000.0);
        let other = (0..count).fold(other, |job, index| {
            job.task(index as u32, [ends_in(0, ends(index)).on(index)])
        });
        let world = slots(count + 1);
        let world = world.job(small(1000.0)).job(large().tasks(3));
        world.job(other)
    };
    table(TEXT, slots_of_one, &[(128, LARGE), (129, SMALL)]);
}

#[test]
fn a_schedule_has_one_hundred_thousand_steps() {
    let waiting = |tasks: u32| {
        let large = job("large").tasks(tasks).deadline_in(300_000.0);
        let small = job("small").submitted(5.0).tasks(1).deadline_in(900_000.0);
        let world = slots(1).launch_overhead(0.0);
        world.job(steady(large, 1.0)).job(steady(small, 1.0))
    };
    table(TEXT, waiting, &[(99_999, LARGE), (100_000, SMALL)]);
}
