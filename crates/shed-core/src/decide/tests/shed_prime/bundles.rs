//! Clones after the first attempts are served: who gets how many.

use super::{
    Moves, NOTHING, World, attempt, brief, cluster, decided, ends_in, job, report, slots, steady,
    table, world,
};
use crate::fixtures::JobBuilder;
use crate::plan::RefusalReason;
use crate::policy::Policy;
use crate::snapshot::Resume;

const CLONE: Moves<'static> = &["a: clone 0"];

/// A task that ends in 40 s. A new attempt takes 21 s.
fn late(key: &str, tasks: u32, slack: f64) -> JobBuilder {
    let job = job(key).tasks(tasks).deadline_in(30.0 + slack);
    let of_task = |job: JobBuilder, index| {
        let node = index as usize + if key == "a" { 0 } else { 4 };
        job.task(index, [ends_in(0, 40.0).on(node)])
    };
    (0..tasks).fold(steady(job, 20.0), of_task)
}

#[test]
fn a_clone_requires_a_large_enough_miss_and_gain() {
    let left = |slack| slots(8).job(late("a", 1, slack));
    // The end varies by 4 s. The task misses with probability 0.01 if 49.305 s are left.
    let rows = [(49.25, CLONE), (49.35, NOTHING)];
    table("shed-prime{clone_price=0}", left, &rows);
    // A miss of 0.001 is reached at 52.36 s.
    let rows = [(52.3, CLONE), (52.4, NOTHING)];
    table("shed-prime{clone_price=0,miss_target=0.001}", left, &rows);
    // The clone is in time, so it gains the task's miss m. It must gain its price p times 1 − m: m ≥ p / (1 + p).
    // At a price of 0.02 that is a miss of 0.0196, or 2.062 deviations of 4 s: 48.248 s.
    let rows = [(48.2, CLONE), (48.3, NOTHING)];
    table("shed-prime", left, &rows);
    table("shed-prime{miss_target=0.001}", left, &rows);
    // At a price of 0.1 it is a miss of 0.0909, or 1.335 deviations: 45.341 s.
    let rows = [(45.29, CLONE), (45.39, NOTHING)];
    table("shed-prime{clone_price=0.1}", left, &rows);
}

#[test]
fn the_job_whose_clones_gain_most_each_is_served_first() {
    // One straggler in one job, two in the other, and some free slots.
    let slacks = |a, b| {
        move |free: usize| {
            let world = slots(6 + free).others(1, 1000);
            let world = world.others(2, 1000).others(3, 1000);
            world.job(late("a", 1, a)).job(late("b", 2, b))
        }
    };
    let text = "shed-prime{max_clones=1}";
    let all: Moves<'_> = &["a: clone 0", "b: clone 0", "b: clone 1"];
    // With 27 s left all three are lost: each ends in time with probability 0.0006. One clone of two gains less than
    // its price, 0.05 · 0.02, and two gain half as much each.
    let rows = [(0, NOTHING), (1, CLONE), (2, CLONE), (3, all)];
    table(text, slacks(27.0, 27.0), &rows);
    // With 35 s left one clone of two gains a tenth, so it takes the slot that is left.
    let rows: [(usize, Moves<'_>); 2] = [(2, &["a: clone 0", "b: clone 0"]), (3, all)];
    table(text, slacks(27.0, 35.0), &rows);
    // With 42 s left the first job is in time with probability 0.7. Two clones of the other job gain half each.
    let rows: [(usize, Moves<'_>); 1] = [(2, &["b: clone 0", "b: clone 1"])];
    table(text, slacks(42.0, 35.0), &rows);
}

/// A lost task whose clones are in time with probability ½ each.
fn coin() -> JobBuilder {
    let job = job("a")
        .tasks(1)
        .deadline_in(30.0 + 1.0 + 77.2)
        .max_clones(20);
    // It reports for the first time after 28 s, so the report of a clone would come too late for another clone.
    let late = ends_in(0, 500.0).first_report(27.0 / 529.0, 28.0).on(0);
    job.ended_runs([60.0; 4]).task(0, [late])
}

#[test]
fn a_task_gets_five_clones() {
    let clones = |text: &str, job: JobBuilder| brief(&decided(text, slots(20).job(job))).len();
    // The fifth of them gains 1/32, and its price is 0.02 · (1 − 1/16) = 0.019. The sixth would gain 1/64.
    assert_eq!(clones("shed-prime", coin()), 5);
    assert_eq!(clones("shed-prime{max_clones=20}", coin()), 5);
    // At half the price the sixth gains its price too, and the seventh does not.
    let cheap = "shed-prime{clone_price=0.01}";
    assert_eq!(clones(cheap, coin()), 5);
    let cheap = "shed-prime{clone_price=0.01,max_clones=20}";
    assert_eq!(clones(cheap, coin()), 6);
    assert_eq!(clones("shed-prime{max_clones=3}", coin()), 3);
    // The job's user sets another limit.
    assert_eq!(clones("shed-prime", coin().max_clones(4)), 4);
    assert_eq!(clones("shed-prime", coin().target(0.8)), 3);
    assert_eq!(clones("shed-prime", coin().not_idempotent()), 0);
}

/// A silent attempt that was launched this many seconds ago. A launch takes 10 s until the first report.
fn silent(ago: f64) -> World {
    silent_due(80.0, ago)
}

/// The same with this deadline in seconds after the submission.
fn silent_due(deadline: f64, ago: f64) -> World {
    let job = job("a").tasks(1).submitted(0.0).deadline_in(deadline);
    let job = job.ended_runs([30.0, 40.0, 40.0, 60.0]);
    let attempt = attempt(0).launched(30.0 - ago).on(1);
    slots(3).launch_overhead(10.0).job(job.task(0, [attempt]))
}

#[test]
fn a_silent_attempt_is_hedged_if_a_rescue_would_come_too_late() {
    // With 58 s left the attempt misses with probability 0.2204. The clones that could follow its report in 5.1 s would
    // miss with probability 0.1394. A clone now misses with 0.2618, and those after its own report in 10 s with 0.2528.
    // So it gains 0.2204 · (0.1394 − 0.2618 · 0.2528) = 0.0161, and its price is 0.02 · 0.7796 = 0.0156. With 59 s left
    // the gain is 0.0132 and the price 0.0157.
    let always = "shed-prime{max_clones=1}";
    let at_launch = |deadline| silent_due(deadline, 4.9);
    table(always, at_launch, &[(88.0, CLONE), (89.0, NOTHING)]);
    // Once the report is overdue, no later look shows more, so the clone is launched at once.
    let overdue = |deadline| silent_due(deadline, 30.1);
    table(always, overdue, &[(88.0, CLONE), (100.0, CLONE)]);
}

#[test]
fn a_silent_attempt_is_hedged_at_its_launch_and_when_overdue() {
    let always = "shed-prime{max_clones=1}";
    // Just launched for half of the time to its first report, overdue after three such times.
    let rows = [(4.9, CLONE), (5.1, NOTHING), (29.9, NOTHING), (30.1, CLONE)];
    table(always, silent, &rows);
    let overdue = "shed-prime{max_clones=1,hedge=silent}";
    table(
        overdue,
        silent,
        &[(4.9, NOTHING), (29.9, NOTHING), (30.1, CLONE)],
    );
    let never = "shed-prime{max_clones=1,hedge=never}";
    table(
        never,
        silent,
        &[(4.9, NOTHING), (29.9, NOTHING), (30.1, NOTHING)],
    );
    let grace = "shed-prime{max_clones=1,hedge=silent,grace=33}";
    table(grace, silent, &[(32.9, NOTHING), (33.1, CLONE)]);
}

#[test]
fn a_job_that_never_reports_is_hedged_at_any_time_unless_never() {
    let job = |ago| {
        let silent = silent(ago).build().jobs.remove(0);
        slots(3).launch_overhead(10.0).job(job("a").with(|job| {
            *job = silent;
            job.reports_progress = false;
        }))
    };
    let rows = [(4.9, CLONE), (15.0, CLONE)];
    table("shed-prime{max_clones=1}", job, &rows);
    table("shed-prime{max_clones=1,hedge=silent}", job, &rows);
    let never = "shed-prime{max_clones=1,hedge=never}";
    table(never, job, &[(4.9, NOTHING), (15.0, NOTHING)]);
}

#[test]
fn a_clone_is_expected_to_begin_where_the_original_will_be() {
    let late = attempt(0).on(0).progress(0.2, 29.0);
    let a = |resume| {
        let job = job("a").tasks(1).deadline_in(150.0).task(0, [late.clone()]);
        let job = job.ended_runs([100.0; 8]);
        job.with(|job| job.rules.resume = resume)
    };
    let pocd = |resume| {
        let plan = decided("shed-prime", cluster().job(a(resume)).launch_overhead(28.0));
        report(&plan, "a").pocd_after.unwrap()
    };
    // It starts 28 s later, at 0.4 instead of 0.2.
    let (at_launch, at_start) = (pocd(Resume::Checkpoint), pocd(Resume::Latest));
    assert!(at_start > at_launch, "{at_launch} {at_start}");
}

#[test]
fn a_bundle_has_ten_thousand_clones_at_most() {
    // All tasks of the job are lost, so only a clone of each gains anything.
    let refusals = |tasks: u32| {
        let slow = |index: u32| ends_in(0, 500.0).on(index as usize % 200);
        let a = steady(job("a").tasks(tasks).deadline_in(330.0), 200.0);
        let a = (0..tasks).fold(a, |job, index| job.task(index, [slow(index)]));
        let policy = Policy {
            // Work for the search, and for one clone.
            work_max: 2 * u64::from(tasks) + 1,
            ..("shed-prime{clone_price=0.000001}".parse().unwrap())
        };
        let snapshot = world(30.0, 200, 200_000)
            .launch_overhead(1.0)
            .job(a)
            .build();
        let (plan, _) = crate::decide::decide(&snapshot, crate::memory::Memory::default(), &policy);
        let refusals = &report(&plan, "a").refusals;
        let by_work = refusals.iter().filter(|it| it.why == RefusalReason::Work);
        (brief(&plan).len(), by_work.count())
    };
    assert_eq!(refusals(10_000), (1, 1));
    assert_eq!(refusals(10_001), (0, 0));
}

#[test]
fn a_late_or_hopeless_job_gets_no_clones() {
    let late = |slack| slots(3).job(late("a", 1, 30.0).deadline_in(30.0 + slack));
    let rows = [
        (-10.0, NOTHING),
        (0.0, NOTHING),
        (1.0, NOTHING),
        (41.0, CLONE),
    ];
    table("shed-prime", late, &rows);
    // All tasks are lost, and clones of each are in time with probability ½.
    let clones = |tasks: u32| {
        let job = job("a").tasks(tasks).deadline_in(30.0 + 1.0 + 77.2);
        let slow = |index: u32| ends_in(0, 500.0).on(index as usize);
        let job = (0..tasks).fold(job.ended_runs([60.0; 4]), |job, index| {
            job.task(index, [slow(index)])
        });
        let policy = "shed-prime{clone_price=0,max_clones=1}";
        brief(&decided(policy, slots(40).job(job))).len()
    };
    assert_eq!([5, 20].map(clones), [5, 0]);
}
