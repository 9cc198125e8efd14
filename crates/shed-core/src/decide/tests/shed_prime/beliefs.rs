//! How attempts and jobs are judged: ends, hope, slack, and the next judgement.

use super::{
    Moves, NOTHING, check, cluster, decided, findings, job, report, slots, steady, table, uneven,
};
use crate::fixtures::{JobBuilder, at};
use crate::plan::Finding;
use crate::snapshot::ExpectedDuration;
use crate::time::Span;

#[test]
fn an_attempt_is_judged_by_its_own_rate_not_by_the_spread() {
    // 252 s are left, and the clock shows 130 s: without a clone the task is lost, and its job with it. At a price, the
    // clones after the first would wait for its report.
    let plan = decided("shed-prime{clone_price=0}", cluster().job(uneven()));
    let [Finding::Late { miss }, ..] = findings(&plan)[..] else {
        panic!("{plan:?}");
    };
    assert!(miss > 0.999, "{miss}");
    let job = report(&plan, "a");
    assert!(job.pocd_before.unwrap() < 0.001);
    assert!(job.pocd_after.unwrap() > 0.9, "{job:?}");
    let gains: f64 = job.clones.iter().map(|clone| clone.pocd_gain).sum();
    assert!((gains - (job.pocd_after.unwrap() - job.pocd_before.unwrap())).abs() < 1e-9);
    // With 300 s there is nothing to do.
    check(
        "shed-prime",
        cluster().job(uneven().deadline_in(400.0)),
        NOTHING,
    );
}

/// A job whose new attempts are in time with probability ½: their median is left after the launch.
fn coin(tasks: u32) -> JobBuilder {
    // The distribution of four agreeing times has its median at 1.2867 times 60 s.
    let job = job("a").tasks(tasks).ended_runs([60.0; 4]);
    job.deadline_in(30.0 + 1.0 + 77.2)
}

const A: Moves<'static> = &["a: original 0"];
const B: Moves<'static> = &["b: original 0"];

#[test]
fn a_job_is_hopeless_below_a_chance_of_one_in_fifty() {
    let other = || steady(job("b").tasks(1).submitted(5.0).deadline_in(900.0), 500.0);
    let served_first = |tasks| slots(1).job(coin(tasks)).job(other());
    // Two attempts of each task count, which are in time with ¾: 0.75¹³ = 0.024 and 0.75¹⁴ = 0.018.
    let text = "shed-prime{weigh=off}";
    table(text, served_first, &[(13, A), (14, B)]);
    // A hopeless job runs where there is a slot, and gets no clones.
    check("shed-prime", slots(2).job(coin(1).deadline_in(31.0)), A);
}

#[test]
fn a_stated_duration_is_one_uncertainty_of_all_tasks() {
    let expected = ExpectedDuration::new(Span::from_seconds(600), None).unwrap();
    let other = || steady(job("b").tasks(1).submitted(5.0).deadline_in(9000.0), 500.0);
    let stated = |left: f64| {
        let job = job("a").tasks(300).deadline_in(30.0 + left);
        let job = job.with(|job| job.expected_duration = Some(expected));
        slots(1).job(job).job(other())
    };
    // One of 300 independent tasks would take twice as long. The last quantile of five is at 0.9 of the duration.
    table("shed-prime{weigh=off}", stated, &[(800.0, A), (300.0, B)]);
}

#[test]
fn without_weighing_the_least_slack_is_served_first() {
    let a = || steady(job("a").tasks(1).deadline_in(30.0 + 71.0), 50.0);
    // Slack of 20 s: 71 s are left, and the task takes 51 s.
    let other = |left: f64, tasks: u32| {
        let b = job("b")
            .tasks(tasks)
            .submitted(1.0)
            .deadline_in(29.0 + left);
        slots(1).job(a()).job(steady(b, 20.0))
    };
    let text = "shed-prime{weigh=off}";
    table(text, |left| other(left, 1), &[(40.5, B), (41.5, A)]);
    // Three tasks need three waves on one slot.
    table(text, |left| other(left, 3), &[(82.5, B), (83.5, A)]);
}

#[test]
fn a_job_is_judged_again_after_a_part_of_its_task_time() {
    let job = || job("a").tasks(1).deadline_in(500.0);
    // A task of 49 s: 4 % of it, at most ten intervals.
    let known = super::ends_in(0, 20.0).on(0);
    let silent = crate::fixtures::attempt(0).on(0);
    let rows = [
        ("shed-prime", &known, 31.96),
        ("shed-prime{interval=0.1}", &known, 31.0),
        ("shed-prime", &silent, 33.0),
        ("shed-prime{interval=7}", &silent, 37.0),
    ];
    for (text, attempt, next) in rows {
        let running = slots(1).job(job().task(0, [attempt.clone()]));
        let plan = decided(text, running);
        assert_eq!(plan.report.next_pass, Some(at(next)), "{text}");
    }
}

#[test]
fn a_late_job_of_which_nothing_runs_is_rarely_judged() {
    // At 30 s. No slot is left for the job's other task.
    let next = |deadline: f64, attempts: &[_]| {
        let job = job("a").tasks(2).deadline_in(deadline);
        let job = match attempts {
            [] => job,
            some => job.task(0, some.iter().cloned()),
        };
        let plan = decided("shed-prime", slots(attempts.len()).job(job));
        plan.report.next_pass.unwrap()
    };
    let waits = slots(0).job(job("a").tasks(2).without_deadline());
    let plan = decided("shed-prime", waits);
    assert_eq!(plan.report.next_pass, Some(at(630.0)));
    let runs = [super::ends_in(0, 20.0).on(0)];
    assert_eq!(next(10.0, &[]), at(630.0));
    assert!(next(10.0, &runs) < at(60.0));
    assert!(next(40.0, &[]) < at(60.0));
}

#[test]
fn long_launches_of_others_do_not_make_a_short_job_hopeless() {
    // Over all jobs a launch took 100 s.
    let one_slot = |seconds: i64| {
        let expected = ExpectedDuration::new(Span::from_seconds(seconds), None).unwrap();
        let short = job("short").tasks(1).deadline_in(30.0 + 60.0);
        let short = short.with(|job| job.expected_duration = Some(expected));
        let other = steady(job("other").tasks(1).deadline_in(5000.0), 2000.0);
        let slots = slots(1).launch_overhead(100.0);
        slots.job(short).job(other)
    };
    // With a tenth of 40 s for its launch it is in time, and of 200 s it is not.
    let moves: [(i64, Moves<'_>); 2] =
        [(40, &["short: original 0"]), (200, &["other: original 0"])];
    table("shed-prime", one_slot, &moves);
}
