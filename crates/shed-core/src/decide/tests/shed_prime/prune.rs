//! Which of several siblings are stopped.

use super::{
    AttemptBuilder, Change, Moves, NOTHING, World, attempt, changes, ends_in, job, slots, table,
};
use crate::fixtures::JobBuilder;
use crate::snapshot::SpeculationMode;

const PRUNED: Moves<'static> = &["a: prune 0.1 for 0.0"];

/// An attempt that ends in 27 s, and a sibling.
fn race(sibling: AttemptBuilder, slack: f64) -> JobBuilder {
    let kept = ends_in(0, 27.0).on(0);
    let job = job("a").tasks(1).deadline_in(30.0 + slack).max_clones(1);
    job.task(0, [kept, sibling.on(1)])
}

/// Launched this many seconds ago.
fn silent(seconds: f64) -> AttemptBuilder {
    attempt(1).launched(30.0 - seconds)
}

#[test]
fn a_sibling_that_evidently_loses_is_stopped() {
    // The kept attempt is in time with probability 0.87, so it alone is no reason to stop others.
    let race = |end| slots(2).job(race(ends_in(1, end), 30.0));
    // Both ends vary by a tenth. The sibling ends later with probability 0.99 from 37.8 s on: 2.326 deviations.
    table("shed-prime", race, &[(37.5, NOTHING), (38.1, PRUNED)]);
}

#[test]
fn the_oldest_attempt_stops_only_while_tasks_wait() {
    // The clone ends first, and the original later with probability 0.99.
    let race = |end| slots(2).job(race(ends_in(1, end), 30.0));
    table("shed-prime", race, &[(19.0, NOTHING)]);
    let wanted = |end| race(end).job(job("b").tasks(1).deadline_in(100.0));
    table("shed-prime", wanted, &[(19.0, &["a: prune 0.0 for 0.1"])]);
}

#[test]
fn siblings_of_an_attempt_that_is_nearly_safe_are_stopped() {
    // It misses with probability 0.01 if 33.28 s are left, because its end varies by a tenth of 27 s.
    let young = |slack| slots(2).job(race(silent(2.0), slack));
    let rows = [(33.2, NOTHING), (33.36, PRUNED)];
    table("shed-prime", young, &rows);
    // 0.001 are reached at 35.34 s, and twice the variation needs twice the time.
    let rows = [(35.2, NOTHING), (35.5, PRUNED)];
    table("shed-prime{miss_target=0.001}", young, &rows);
    let rows = [(39.4, NOTHING), (39.7, PRUNED)];
    table("shed-prime{spread=0.2}", young, &rows);
}

#[test]
fn a_silent_sibling_is_stopped_after_its_grace() {
    let launched = |overhead: f64| {
        move |ago| {
            let world = slots(2).launch_overhead(overhead);
            world.job(race(silent(ago), 30.0))
        }
    };
    // 10 s at least, or three launches.
    table(
        "shed-prime",
        launched(1.0),
        &[(9.9, NOTHING), (10.1, PRUNED)],
    );
    table(
        "shed-prime",
        launched(5.0),
        &[(14.9, NOTHING), (15.1, PRUNED)],
    );
    let patient = "shed-prime{grace=20}";
    table(patient, launched(1.0), &[(19.9, NOTHING), (20.1, PRUNED)]);
    // It is still needed if the reporting attempt is expected to be late.
    let slack = |slack| slots(2).job(race(silent(20.0), slack));
    table("shed-prime", slack, &[(26.9, NOTHING), (27.1, PRUNED)]);
}

#[test]
fn siblings_are_stopped_only_after_a_report_and_if_allowed() {
    let both_silent: Change = |job| job.with(|job| job.tasks[0].attempts[0].progress = None);
    let loser = race(ends_in(1, 100.0), 30.0);
    let cluster = |job: JobBuilder| -> World { slots(2).job(job) };
    changes(
        cluster,
        &loser,
        &[
            ("as it is", |job| job, PRUNED),
            ("fenced", JobBuilder::fenced, PRUNED),
            (
                "observed",
                |job| job.speculation(SpeculationMode::Observe),
                NOTHING,
            ),
            (
                "disabled",
                |job| job.speculation(SpeculationMode::Disabled),
                NOTHING,
            ),
            ("suspended", JobBuilder::suspended, NOTHING),
        ],
    );
    changes(
        cluster,
        &race(silent(20.0), 40.0),
        &[
            ("one reports", |job| job, PRUNED),
            ("none reports", both_silent, NOTHING),
        ],
    );
}
