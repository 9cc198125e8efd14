//! Which clones gain their price, and which wait for a report.

use super::{Moves, NOTHING, World, attempt, brief, check, decided, ends_in, job, slots, steady};
use super::{table, world};
use crate::fixtures::{AttemptBuilder, JobBuilder};

pub(super) const CLONE: Moves<'static> = &["a: clone 0"];

/// Four tasks, due after 45 s, on eight slots. The first attempt of task 0 takes six times as long as the others, 120 s.
pub(super) fn one_straggler(now: f64, of_task: impl Fn(u32) -> Vec<AttemptBuilder>) -> World {
    let a = job("a").submitted(0.0).tasks(4).deadline_in(45.0);
    let a = a.ended_runs([18.0, 19.0, 20.0, 21.0, 22.0]);
    let a = (0..4).fold(a, |a, index| a.task(index, of_task(index)));
    world(now, 8, 1000).launch_overhead(1.0).job(a)
}

/// The first attempt of the task at 2 s: it has worked since its launch at 0 s.
pub(super) fn first_attempt(index: u32) -> AttemptBuilder {
    let seconds = if index == 0 { 120.0 } else { 20.0 };
    let attempt = attempt(0).launched(0.0).on(index as usize);
    attempt.progress(2.0 / seconds, 2.0)
}

#[test]
fn a_straggler_gets_a_single_clone_once_it_reports() {
    let silent = |index| vec![attempt(0).launched(0.0).on(index as usize)];
    for now in [0.1, 0.5, 1.0, 1.9] {
        check("shed-prime", one_straggler(now, silent), NOTHING);
    }
    let reported = |index| vec![first_attempt(index)];
    check("shed-prime", one_straggler(2.0, reported), CLONE);
    // The clone is silent for now, and the task gets no second one.
    let cloned = |index| {
        let clone = attempt(1).launched(2.0).on(4).pending();
        let clone = (index == 0).then_some(clone);
        std::iter::once(first_attempt(index)).chain(clone).collect()
    };
    for now in [2.0, 2.5, 3.0] {
        check("shed-prime", one_straggler(now, cloned), NOTHING);
    }
}

#[test]
fn a_pending_clone_and_a_launch_have_the_same_expected_start() {
    // The job's attempts started at once. Other jobs' pods took longer until their first reports.
    let cloned = |index| {
        let clone = attempt(1).launched(2.0).on(4).pending();
        let clone = (index == 0).then_some(clone);
        std::iter::once(first_attempt(index)).chain(clone).collect()
    };
    let pocd = |of_others: f64| {
        let world = one_straggler(2.5, cloned).launch_overhead(of_others);
        decided("shed-prime", world).report.jobs[0].pocd_before
    };
    assert!(pocd(1.0).is_some_and(|pocd| pocd > 0.9));
    assert_eq!(pocd(12.0), pocd(1.0));
}

/// A lost task, and clones of it that are in time with probability ½ each. Its first report came after that time.
fn coin(report: f64) -> World {
    let a = job("a").tasks(1).task(0, [lost(report)]);
    slots(9).job(of_coin(a))
}

fn of_coin(a: JobBuilder) -> JobBuilder {
    a.deadline_in(30.0 + 1.0 + 77.2).ended_runs([60.0; 4])
}

fn lost(report: f64) -> AttemptBuilder {
    // Progress is even from 1 s to 29 s.
    let lost = ends_in(0, 500.0).first_report((report - 1.0) / 529.0, report);
    lost.on(0)
}

#[test]
fn several_clones_are_launched_at_once_if_no_second_wave_fits() {
    let clones = |report| brief(&decided("shed-prime", coin(report))).len();
    // A clone launched at a report after 28 s would have 48 s for its work, and none takes less than 60 s.
    assert_eq!(clones(28.0), 5);
    // One launched at a report after 16 s is in time as the others were, so it waits.
    assert_eq!([5.0, 16.0, 18.0].map(clones), [1, 1, 5]);
}

#[test]
fn a_clone_is_expected_to_report_like_most_attempts_of_the_job() {
    // The straggler's own report came late.
    let a = of_coin(job("a").tasks(3)).task(0, [lost(28.0)]);
    let prompt = |index: usize| [ends_in(0, 30.0).first_report(0.0, 1.0).on(index)];
    let a = a.task(1, prompt(1)).task(2, prompt(2));
    assert_eq!(brief(&decided("shed-prime", slots(9).job(a))).len(), 1);
}

#[test]
fn equal_attempts_show_that_a_second_clone_would_be_in_time() {
    // The first job of its tenant: the prior fears that every second attempt straggles.
    let a = job("a").submitted(0.0).tasks(4).deadline_in(40.0);
    let a = (0..4).fold(a, |a, index| {
        let progress = if index == 0 { 0.05 } else { 0.4 };
        let attempt = attempt(0).launched(0.0).on(index as usize);
        a.task(
            index,
            [attempt
                .progress(progress, 9.0)
                .first_report(progress / 2.0, 5.0)],
        )
    });
    check(
        "shed-prime",
        world(9.0, 8, 1000).launch_overhead(1.0).job(a),
        CLONE,
    );
}

/// A task that ends in 40 s, give or take 4 s. A new attempt takes 21 s.
fn late(slack: f64) -> World {
    let a = job("a").tasks(1).deadline_in(30.0 + slack);
    slots(3).job(steady(a, 20.0).task(0, [ends_in(0, 40.0).on(0)]))
}

#[test]
fn a_clone_below_its_share_of_the_price_is_not_launched() {
    // The clone gains the task's miss m, and its price p counts with 1 − m. At p = 1 both are equal at m = ½.
    let rows = [(39.8, CLONE), (40.2, NOTHING)];
    table("shed-prime{clone_price=1}", late, &rows);
}

#[test]
fn a_clone_of_a_job_that_reports_nothing_has_the_same_price() {
    let of = |clone_price: f64| {
        let text = format!("shed-prime{{clone_price={clone_price}}}");
        let silent = |job: JobBuilder| job.silent().task(0, [attempt(0).launched(29.9).on(0)]);
        let a = job("a").tasks(1).deadline_in(30.0 + 1.0 + 77.2);
        let world = slots(3).job(silent(a.ended_runs([60.0; 4]).max_clones(1)));
        brief(&decided(&text, world)).len()
    };
    // Each attempt misses with probability ½, so a clone gains ¼ and is charged half of its price.
    assert_eq!([0.45, 0.55].map(of), [1, 0]);
}

#[test]
fn a_silent_attempt_is_awaited_while_later_clones_find_slots() {
    // Four of five attempts end within 108 s, and one in a hundred takes 300 s.
    let silent = |age: f64, taken: usize| {
        let now = 130.0;
        let a = job("a").tasks(1).deadline_in(now + 301.0).silent();
        let a = a.ended_runs([60.0; 4]).max_clones(1);
        let a = a.task(0, [attempt(0).launched(now - age).on(0)]);
        let world = world(now, 9, 1000).launch_overhead(1.0).job(a);
        let world = (1..=taken).fold(world, |world, node| world.others(node, 1000));
        brief(&decided("shed-prime{clone_price=0.005}", world)).len()
    };
    assert_eq!(silent(10.0, 0), 0, "a clone can follow");
    assert_eq!(silent(10.0, 7), 1, "another job may take the last slot");
    assert_eq!(silent(115.0, 0), 1, "it takes longer than most");
}

#[test]
fn a_price_per_slot_second_stops_long_clones_only() {
    // Two tasks that miss with probability 0.05, whose clones take 20 s and 200 s. Their prices are 0.001 · 20 · 0.95 =
    // 0.019, and ten times as much.
    let late = |seconds: f64| {
        let remaining = 2.0 * seconds;
        let slack = remaining + 1.645 * 0.1 * remaining;
        let a = job("a").tasks(1).deadline_in(30.0 + slack);
        slots(3).job(steady(a, seconds).task(0, [ends_in(0, remaining).on(0)]))
    };
    let text = "shed-prime{clone_price=0,slot_price=0.001}";
    table(text, late, &[(20.0, CLONE), (200.0, NOTHING)]);
    let text = "shed-prime{clone_price=0}";
    table(text, late, &[(20.0, CLONE), (200.0, CLONE)]);
}
