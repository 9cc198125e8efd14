//! Who gets a slot when slots are short: waiting tasks, or clones.

use super::{
    Moves, NOTHING, World, attempt, brief, check, decided, ends_in, job, slots, steady, table,
};
use crate::fixtures::JobBuilder;

const CLONE: Moves<'static> = &["a: clone 0"];
const ORIGINAL: Moves<'static> = &["b: original 0"];
const EVICTED: Moves<'static> = &["a: evict 0.1 for 0.0"];

/// A task that misses with a probability of 0.09: too little for a restart. A new attempt takes 51 s.
fn late() -> JobBuilder {
    // It ends in 60 s, give or take 6 s.
    let job = job("a").tasks(1).deadline_in(30.0 + 68.045);
    steady(job, 50.0).task(0, [ends_in(0, 60.0).on(0)])
}

/// Tasks that wait and take 51 s each.
fn waiting(tasks: u32) -> JobBuilder {
    steady(
        job("b").submitted(5.0).tasks(tasks).deadline_in(5000.0),
        50.0,
    )
}

#[test]
fn a_clone_with_half_again_the_value_density_is_launched_first() {
    // The clone gains 0.09, a task that waits one part of its job: 1.5 / 0.09 = 16.7 parts are equal.
    let text = "shed-prime";
    let one_free = |tasks| slots(2).job(late()).job(waiting(tasks));
    table(text, one_free, &[(15, ORIGINAL), (18, CLONE)]);
    // It must gain its price times 0.91, the probability that the task is in time without it: 0.099 pays.
    let cheap = "shed-prime{clone_price=0.095}";
    table(cheap, one_free, &[(18, CLONE)]);
    let dear = "shed-prime{clone_price=0.103}";
    table(dear, one_free, &[(18, ORIGINAL)]);
    // Unless slots are weighed, first attempts always come first.
    table(
        "shed-prime{weigh=off}",
        one_free,
        &[(1, ORIGINAL), (18, ORIGINAL)],
    );
    // A hopeless job that waits counts as nothing.
    let hopeless = slots(2).job(late()).job(waiting(1).deadline_in(26.0));
    check(text, hopeless, CLONE);
}

#[test]
fn the_job_of_the_highest_density_is_served_first() {
    let text = "shed-prime";
    let two = |tasks: u32, seconds: f64| {
        let b = job("b").submitted(5.0).tasks(tasks).deadline_in(900.0);
        let a = job("a").tasks(2).deadline_in(500.0);
        slots(1).job(steady(a, 50.0)).job(steady(b, seconds))
    };
    let a: Moves<'_> = &["a: original 0"];
    // One of two tasks for 51 s, against one of some.
    table(text, |tasks| two(tasks, 50.0), &[(1, ORIGINAL), (3, a)]);
    table(
        text,
        |seconds| two(2, seconds),
        &[(45.0, ORIGINAL), (55.0, a)],
    );
    // A job without a deadline has no value.
    let unbound = waiting(1).with(|job| job.deadline = None);
    let a_first = slots(1).job(steady(job("a").tasks(9), 500.0).deadline_in(900.0));
    check(text, a_first.job(unbound), a);
}

#[test]
fn a_stage_counts_as_if_its_run_held_a_slot_until_the_deadline() {
    let a: Moves<'_> = &["a: original 0"];
    let of = |is_stage: bool, due: f64| {
        let b = steady(job("b").submitted(5.0).tasks(1).deadline_in(due), 50.0);
        let b = b.with(|job| job.is_stage = is_stage);
        let a = steady(job("a").tasks(2).deadline_in(500.0), 50.0);
        slots(1).job(a).job(b)
    };
    // One of two tasks of 51 s, against one task, or a run with 70 or 120 s left.
    check("shed-prime", of(false, 145.0), ORIGINAL);
    check("shed-prime", of(true, 95.0), ORIGINAL);
    check("shed-prime", of(true, 145.0), a);
    // Its clones too: 68 s are left, instead of 51 s of work.
    let clone = |tasks| {
        let late = late().with(|job| job.is_stage = true);
        slots(2).job(late).job(waiting(tasks))
    };
    table("shed-prime", clone, &[(20, ORIGINAL), (24, CLONE)]);
}

/// Three slots, taken by a task that will miss, its clone and another job's task.
fn with_a_clone(deadline: f64, usual: f64) -> World {
    let late = [
        attempt(0).on(0).progress(0.1, 29.0),
        attempt(1).launched(28.0).on(1).pending(),
    ];
    let a = job("a").tasks(1).deadline_in(deadline).task(0, late);
    let b = job("b").submitted(20.0).tasks(1);
    let b = b.task(0, [attempt(0).on(2)]);
    slots(3).job(a.ended_runs([usual; 4])).job(b)
}

#[test]
fn a_clone_is_evicted_only_for_attempts_of_a_higher_density() {
    let waiting = |tasks: u32| {
        let job = job("c").submitted(25.0).tasks(tasks).deadline_in(100.0);
        job.ended_runs([20.0; 4])
    };
    // The clone saves a job within 50 s; each of ten tasks saves a tenth of one within 20 s.
    let useful = |tasks| with_a_clone(130.0, 50.0).job(waiting(tasks));
    table("shed-prime", useful, &[(10, NOTHING), (1, EVICTED)]);
    table("shed-prime{weigh=off}", useful, &[(10, EVICTED)]);
    // A job without a deadline can wait.
    let patient = waiting(1).with(|job| job.deadline = None);
    check(
        "shed-prime",
        with_a_clone(130.0, 50.0).job(patient),
        NOTHING,
    );
    // A useless clone is evicted for any first attempt.
    let useless = |tasks| with_a_clone(300.0, 400.0).job(waiting(tasks));
    table("shed-prime", useless, &[(10, EVICTED)]);
}

#[test]
fn a_clone_launched_at_this_instant_is_not_evicted() {
    let launched = |at: f64| {
        let pair = [
            ends_in(0, 20.0).on(0),
            attempt(1).launched(at).on(1).pending(),
        ];
        let a = steady(job("a").tasks(1).deadline_in(31.0 + 20.0), 400.0);
        let c = job("c").submitted(25.0).tasks(1).deadline_in(100.0);
        slots(2).job(a.task(0, pair)).job(steady(c, 20.0))
    };
    table("shed-prime", launched, &[(30.0, NOTHING), (29.0, EVICTED)]);
}

#[test]
fn clones_share_their_gain_over_their_remaining_slot_time() {
    // Clones of some number and age, and some tasks that wait. Each of those takes 20 s.
    let evicts = |(count, ago, tasks): (u32, f64, u32)| {
        let late = attempt(0).on(0).progress(0.1, 29.0);
        let clone = |number| attempt(number).launched(30.0 - ago).on(number as usize);
        let clones = (1..=count).map(|number| clone(number).pending());
        let a = job("a").tasks(1).deadline_in(130.0).ended_runs([50.0; 4]);
        let c = job("c").submitted(25.0).tasks(tasks).deadline_in(100.0);
        let world = slots(1 + count as usize).job(c.ended_runs([20.0; 4]));
        world.job(a.task(0, [late].into_iter().chain(clones)))
    };
    let one: Moves<'_> = &["a: evict 0.1 for 0.0"];
    let rows = [
        ((1, 2.0, 2), one),
        ((1, 2.0, 3), NOTHING),
        ((1, 20.0, 1), one),
        ((1, 20.0, 2), NOTHING),
        ((2, 2.0, 5), NOTHING),
        ((2, 20.0, 4), NOTHING),
    ];
    table("shed-prime", evicts, &rows);
    // Two clones are worth half as much each.
    for (ago, tasks) in [(2.0, 4), (20.0, 3)] {
        let moves = brief(&decided("shed-prime", evicts((2, ago, tasks))));
        assert!(
            moves.iter().any(|it| it.starts_with("a: evict")),
            "{moves:?}"
        );
    }
}

#[test]
fn pods_beyond_capacity_make_slots_short_as_well() {
    // They have no deadline and hence no value.
    let unbound = job("c")
        .submitted(25.0)
        .tasks(1)
        .with(|job| job.deadline = None);
    let surging = unbound.task(0, [attempt(0).pending()]);
    check(
        "shed-prime",
        with_a_clone(130.0, 50.0).job(surging),
        NOTHING,
    );
}
