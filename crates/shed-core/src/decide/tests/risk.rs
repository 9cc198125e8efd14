//! The main cause of a job's risk.

use super::{attempt, job, plan, product, report, world};
use crate::fixtures::{AttemptBuilder, JobBuilder};
use crate::ids::{NodeName, TaskIndex};
use crate::risk::{Risk, RiskCause};
use crate::snapshot::SpeculationMode;

/// The attempt of a task that takes 70 s; it is 30 s now.
fn regular(node: usize) -> AttemptBuilder {
    attempt(0).on(node).progress(0.4, 29.0)
}

/// Three tasks will take 70 s.
fn three_regular(deadline: f64) -> JobBuilder {
    job("a")
        .speculation(SpeculationMode::Observe)
        .deadline_in(deadline)
        .task(0, [regular(0)])
        .task(1, [regular(1)])
        .task(2, [regular(2)])
}

fn risk(job: JobBuilder, milli_cpu: i64) -> Option<Risk> {
    let plan = plan(world(30.0, 4, milli_cpu).job(job), &product());
    report(&plan, "a").risk.clone()
}

fn of_task(cause: RiskCause, task: u32, node: &str, failures: u32) -> Option<Risk> {
    Some(Risk {
        cause,
        task: Some(TaskIndex(task)),
        node: Some(NodeName::from(node)),
        failures,
    })
}

/// The fourth task will take 280 s.
fn slow() -> AttemptBuilder {
    attempt(0).on(3).progress(0.1, 29.0)
}

#[test]
fn a_straggler_is_named_with_its_node() {
    let job = three_regular(160.0).task(3, [slow()]);
    assert_eq!(
        risk(job, 1000),
        of_task(RiskCause::Straggler, 3, "node-3", 0)
    );
}

#[test]
fn a_job_that_is_slow_as_a_whole_has_no_straggler() {
    let risk = risk(three_regular(50.0), 1000).unwrap();
    assert_eq!(risk.cause, RiskCause::Slow);
}

#[test]
fn tasks_that_wait_are_named_without_a_node() {
    // Four slots, and a fifth task that can't start before the deadline.
    let job = three_regular(90.0).task(3, [regular(3)]).tasks(9);
    let expected = Risk {
        cause: RiskCause::Waiting,
        task: None,
        node: None,
        failures: 0,
    };
    assert_eq!(risk(job, 1000), Some(expected));
}

#[test]
fn a_task_that_failed_before_counts_as_a_restart() {
    let job = three_regular(160.0).task_with(3, [slow()], |task| task.failures = 2);
    assert_eq!(
        risk(job, 1000),
        of_task(RiskCause::Restarts, 3, "node-3", 2)
    );
    // Other failures of a job that is slow as a whole do not count.
    let job = three_regular(50.0).task_with(3, [regular(3)], |task| task.failures = 1);
    assert_eq!(risk(job, 1000).unwrap().cause, RiskCause::Slow);
}

#[test]
fn a_task_that_failed_for_good_has_a_cause_of_its_own() {
    let risk = risk(three_regular(160.0).tasks(4).failed([3]), 1000).unwrap();
    assert_eq!(
        (risk.cause, risk.task),
        (RiskCause::Failed, Some(TaskIndex(3)))
    );
}

#[test]
fn a_job_without_a_deadline_has_neither_pocd_nor_risk() {
    let reported = |job: JobBuilder| {
        let plan = plan(world(30.0, 4, 1000).job(job), &product());
        let report = report(&plan, "a");
        (report.pocd_before, report.pocd_after, report.risk.clone())
    };
    let running = three_regular(160.0).tasks(4);
    assert!(reported(running.clone()).1.is_some());
    for job in [
        running.clone(),
        running.failed([3]),
        job("a").tasks(2).done([0]).failed([1]),
    ] {
        assert_eq!(reported(job.without_deadline()), (None, None, None));
    }
}

#[test]
fn a_silent_task_is_one_that_should_report() {
    let silent = attempt(0).on(3);
    let job = three_regular(100.0).task(3, [silent]);
    assert_eq!(
        risk(job.clone(), 1000).map(|risk| risk.cause),
        Some(RiskCause::Silent)
    );
    let cause = risk(job.silent(), 1000).map(|risk| risk.cause);
    assert_ne!(cause, Some(RiskCause::Silent));
}

#[test]
fn a_job_that_is_not_at_risk_has_no_cause() {
    assert_eq!(risk(three_regular(600.0).tasks(3), 1000), None);
}
