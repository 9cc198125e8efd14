//! The additional rules of batch/v1 Job: ends before all tasks have ended, failures by rule, elastic jobs.

use super::*;
use crate::snapshot::{FailureRule, SuccessRule};

fn end(conclusion: Conclusion) -> Settled {
    Settled::End(conclusion)
}

fn succeeds_with(builder: JobBuilder, indexes: Option<&str>, count: Option<u32>) -> JobBuilder {
    let indexes = indexes.map(|text| text.parse().unwrap());
    builder.with(|job| {
        job.rules
            .ending
            .success
            .push(SuccessRule { indexes, count })
    })
}

#[test]
fn enough_winners_of_a_success_rule_end_the_job() {
    let won = |task| job("a").done([0]).task(task, [attempt(0).succeeded(29.0)]);
    let ends = |task, indexes, count| {
        let builder = succeeds_with(won(task), indexes, count).task(3, [attempt(0)]);
        let actions = settle(at(30.0), &builder.clone().build());
        assert_eq!(settle_check(&builder.build(), &actions), []);
        let kills = actions.contains(&kill(3, 0, KillKind::JobEnd, None));
        assert_eq!(kills, actions.contains(&end(Conclusion::SuccessPolicy)));
        kills
    };
    assert!(ends(1, Some("0-1"), None));
    assert!(!ends(2, Some("0-1"), None));
    assert!(ends(2, None, Some(2)));
    assert!(!ends(2, None, Some(3)));
    assert!(ends(2, Some("0,2-3"), Some(2)));
    assert!(!ends(1, Some("0,2-3"), Some(2)));
}

#[test]
fn a_job_whose_every_task_won_is_complete_despite_the_rules() {
    let builder = succeeds_with(job("a").done(0..3), None, Some(4))
        .task(3, [attempt(0).succeeded(29.0)])
        .with(|job| job.time_limit = Some(at(10.0)));
    let [end, finish] = ended(Conclusion::Complete);
    check(30.0, builder, &[win(3, 0, 29.0), end, finish]);
}

#[test]
fn failures_of_all_tasks_together_have_a_limit() {
    let failing = |before| {
        job("a")
            .with(|job| (job.failures, job.rules.ending.backoff_limit) = (before, Some(2)))
            .task(0, [attempt(0).failed(29.0)])
            .task(1, [attempt(0)])
    };
    check(30.0, failing(1), &[count(0, 0, Outcome::Failed)]);
    check(
        30.0,
        failing(2),
        &[
            count(0, 0, Outcome::Failed),
            end(Conclusion::BackoffLimit),
            kill(1, 0, KillKind::JobEnd, None),
        ],
    );
}

#[test]
fn tasks_that_fail_for_good_have_a_limit() {
    let failing = |max| {
        job("a")
            .backoff_limit_per_index(0)
            .failed([2])
            .with(|job| job.rules.ending.failed_tasks_max = Some(max))
            .task(0, [attempt(0).failed(29.0)])
    };
    let counted = [count(0, 0, Outcome::Failed), fail_task(0)];
    check(30.0, failing(2), &counted);
    let [one, two] = counted;
    let [end, finish] = ended(Conclusion::MaxFailedIndexes);
    check(30.0, failing(1), &[one, two, end, finish]);
}

#[test]
fn a_rule_fails_the_task_at_once_and_its_siblings_are_surplus() {
    let failed = attempt(0).failed(29.0).rule(FailureRule::FailTask);
    check(
        30.0,
        job("a").task(1, [failed, attempt(1)]),
        &[
            count(1, 0, Outcome::Failed),
            fail_task(1),
            kill(1, 1, KillKind::Surplus, None),
        ],
    );
    // The task's result is recorded, so its remaining attempts are stopped too.
    check(
        31.0,
        job("a").failed([1]).task(1, [attempt(1)]),
        &[kill(1, 1, KillKind::Surplus, None)],
    );
}

#[test]
fn a_rule_fails_the_job_at_once_unless_shed_killed_the_attempt() {
    let failed = || attempt(0).failed(29.0).rule(FailureRule::FailJob);
    check(
        30.0,
        job("a").task(1, [failed()]).task(2, [attempt(0)]),
        &[
            count(1, 0, Outcome::Failed),
            end(Conclusion::PodFailurePolicy),
            kill(2, 0, KillKind::JobEnd, None),
        ],
    );
    check(
        30.0,
        job("a").task(1, [failed().killed(KillKind::Prune, 20.0), attempt(1)]),
        &[count(1, 0, Outcome::Superseded)],
    );
}

#[test]
fn the_time_limit_ends_the_job_and_wakes_it() {
    let limited = || {
        job("a")
            .task(0, [attempt(0)])
            .with(|job| job.time_limit = Some(at(40.0)))
    };
    check(39.0, limited(), &[]);
    assert_eq!(settle_wake(at(39.0), &limited().build()), Some(at(40.0)));
    check(
        40.0,
        limited(),
        &[
            end(Conclusion::TimeLimit),
            kill(0, 0, KillKind::JobEnd, None),
        ],
    );
}

#[test]
fn tasks_beyond_lowered_completions_end_and_do_not_count() {
    let lowered = |attempt| {
        job("a")
            .tasks(2)
            .done([0])
            .task(1, [self::attempt(0)])
            .task(3, [attempt])
    };
    check(
        30.0,
        lowered(attempt(0)),
        &[kill(3, 0, KillKind::Surplus, None)],
    );
    for ended in [attempt(0).failed(29.0), attempt(0).succeeded(29.0)] {
        check(30.0, lowered(ended), &[count(3, 0, Outcome::Superseded)]);
    }
}

#[test]
fn the_tasks_launched_last_make_way_when_parallelism_is_lowered() {
    let running = |tasks| {
        job("a")
            .parallelism(tasks)
            .task(0, [attempt(0).launched(5.0)])
            .task(1, [attempt(0).launched(9.0), attempt(1).launched(20.0)])
            .task(2, [attempt(0).launched(7.0)])
            .task(3, [attempt(0).succeeded(29.0)])
    };
    let won = win(3, 0, 29.0);
    check(30.0, running(3), std::slice::from_ref(&won));
    check(
        30.0,
        running(1),
        &[
            won,
            kill(1, 0, KillKind::Surplus, None),
            kill(1, 1, KillKind::Surplus, None),
            kill(2, 0, KillKind::Surplus, None),
        ],
    );
}

#[test]
fn tasks_that_do_not_run_or_are_not_ready_are_surplus_first() {
    let running = |tasks| {
        job("a")
            .parallelism(tasks)
            .task(0, [attempt(0).launched(5.0).unready()])
            .task(1, [attempt(0).launched(5.0).pending()])
            .task(2, [attempt(0).launched(5.0)])
            .task(3, [attempt(0).launched(9.0)])
    };
    let surplus = |task| kill(task, 0, KillKind::Surplus, None);
    check(30.0, running(3), &[surplus(1)]);
    check(30.0, running(2), &[surplus(1), surplus(0)]);
    check(30.0, running(1), &[surplus(1), surplus(0), surplus(3)]);
}
