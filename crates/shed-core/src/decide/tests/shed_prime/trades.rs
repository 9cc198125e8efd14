//! What a clone's report says about its gain, its price and the best alternative.

use super::{attempt, decided, ends_in, job, slots, steady};
use crate::fixtures::{JobBuilder, World};
use crate::ids::JobKey;
use crate::plan::{Alternative, CloneReport, Trade};

/// The reports of the clones that a pass launches.
fn clones(text: &str, world: World) -> Vec<CloneReport> {
    let plan = decided(text, world);
    let jobs = plan.report.jobs.into_iter();
    jobs.flat_map(|job| job.clones).collect()
}

/// What was weighed for the only clone.
fn trade(text: &str, world: World) -> Trade {
    let clones = clones(text, world);
    assert_eq!(clones.len(), 1, "{clones:?}");
    clones[0].trade.clone().unwrap()
}

fn is_close(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-3
}

/// A job of one task that misses with probability 0.05.
fn late(key: &str) -> JobBuilder {
    let a = job(key).tasks(1).deadline_in(30.0 + 46.58);
    steady(a, 20.0)
}

#[test]
fn a_clone_of_a_job_that_reports_nothing_has_no_alternative() {
    let a = job("a").tasks(1).deadline_in(30.0 + 1.0 + 77.2);
    let a = a.ended_runs([60.0; 4]).max_clones(1);
    let silent = a.silent().task(0, [attempt(0).launched(29.9).on(0)]);
    let found = trade("shed-prime{clone_price=0.1}", slots(3).job(silent));
    // Each attempt misses with a probability of about one half.
    assert!((found.gain - 0.25).abs() < 0.01, "{found:?}");
    // In half of the cases it is not needed.
    assert!((found.price - 0.05).abs() < 0.005, "{found:?}");
    assert_eq!(found.alternative, None);
}

#[test]
fn a_clone_of_a_straggler_could_wait_for_a_report_in_vain() {
    let a = late("a").task(0, [ends_in(0, 40.0).on(0)]);
    let found = trade("shed-prime", slots(3).job(a));
    assert!(is_close(found.gain, 0.05), "{found:?}");
    // In 95 of 100 cases it is not needed.
    assert!(is_close(found.price, 0.02 * 0.95), "{found:?}");
    let Some(Alternative::Wait { gain }) = found.alternative else {
        panic!("{found:?}");
    };
    // No report is awaited that a clone could follow.
    assert!(is_close(gain, 0.0), "{gain}");
}

#[test]
fn clones_for_which_capacity_is_missing_are_the_alternative() {
    let a = late("a").deadline_in(30.0 + 44.0);
    let a = a.task(0, [ends_in(0, 40.0).on(0)]);
    let b = late("b").task(0, [ends_in(0, 40.0).on(1)]);
    let found = trade("shed-prime{clone_price=0.01}", slots(3).job(a).job(b));
    assert!(found.gain > 0.1, "{found:?}");
    let Some(Alternative::Clones {
        job,
        clones,
        gain,
        price,
    }) = &found.alternative
    else {
        panic!("{found:?}");
    };
    assert_eq!((job, *clones), (&JobKey::from("b"), 1));
    assert!(
        is_close(*gain, 0.05) && is_close(*price, 0.0095),
        "{found:?}"
    );
}

#[test]
fn a_waiting_attempt_is_the_alternative_to_an_earlier_clone() {
    let a = job("a").tasks(1).deadline_in(30.0 + 68.045);
    let a = steady(a, 50.0).task(0, [ends_in(0, 60.0).on(0)]);
    let b = job("b").submitted(5.0).tasks(18).deadline_in(5000.0);
    let world = slots(2).job(a).job(steady(b, 50.0));
    let found = trade("shed-prime", world);
    let Some(Alternative::Attempt { job, gain }) = &found.alternative else {
        panic!("{found:?}");
    };
    assert_eq!(job, &JobKey::from("b"));
    // One of 18 tasks of a job that is certainly in time, and the clone has 1.5 times the density.
    assert!(is_close(*gain, 1.0 / 18.0), "{found:?}");
    assert!(
        found.gain >= 1.5 * gain && found.gain >= found.price,
        "{found:?}"
    );
}
