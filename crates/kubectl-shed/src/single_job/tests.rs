use super::*;
use shed_core::fixtures::{at, attempt, job, world};

/// Ten tasks that take 100 s each. Two run, and four have ended.
fn queued(slots: u32) -> SingleJob {
    let running = || attempt(0).on(0).progress(0.5, 50.0);
    let job = job("a")
        .tasks(10)
        .deadline_in(400.0)
        .ended_runs([100.0, 110.0, 95.0, 105.0])
        .task(0, [running()])
        .task(1, [running()]);
    let mut job = world(50.0, 1, 2000).job(job).build().jobs.remove(0);
    job.demand = Resources::from_pairs([("pods", 1)]);
    SingleJob::new(job, slots)
}

fn report(alone: &SingleJob) -> JobReport {
    alone.report(at(50.0)).unwrap()
}

#[test]
fn a_later_deadline_and_more_slots_raise_pocd_and_less_lower_it() {
    let today = queued(4);
    let pocd = |change| report(&today.changed(change)).pocd_after.unwrap();
    let now = report(&today);
    assert_eq!(now, report(&today.changed(Change::Slots(4))));
    let now = now.pocd_after.unwrap();
    assert!((0.01..0.99).contains(&now), "{now}");
    assert!(pocd(Change::Deadline(at(900.0))) > now);
    assert!(pocd(Change::Deadline(at(200.0))) < now);
    assert!(pocd(Change::Slots(10)) > now);
    assert!(pocd(Change::Slots(2)) < now);
}

#[test]
fn live_attempts_may_hold_more_than_the_slots() {
    assert_eq!(queued(1).slots, 2);
    let few = report(&queued(4).changed(Change::Slots(1)));
    assert_eq!(few.waiting, 8, "no slot is free");
    assert!(few.clones.is_empty());
}

#[test]
fn the_policy_acts_on_the_job() {
    assert!(report(&queued(4)).optimized);
}
