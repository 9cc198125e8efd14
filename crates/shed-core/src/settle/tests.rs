mod abandon;
mod batch;
mod fence;
mod properties;
mod sizes;

use super::*;
use crate::fixtures::{AttemptBuilder, JobBuilder, at, attempt, job};
use crate::ids::TaskIndex;
use crate::plan_check::settle_check;

/// Checks that `settle` at `now` seconds returns exactly `expected`, and that the rules hold.
#[track_caller]
fn check(now: f64, builder: JobBuilder, expected: &[Settled]) {
    let job = builder.build();
    let actions = settle(at(now), &job);
    assert_eq!(settle_check(&job, &actions), []);
    assert_eq!(actions, expected);
}

/// The end of a job without attempts.
fn ended(conclusion: Conclusion) -> [Settled; 2] {
    [Settled::End(conclusion), Settled::Finish(conclusion)]
}

fn win(task: u32, number: u32, finished: f64) -> Settled {
    Settled::Win {
        task: TaskIndex(task),
        attempt: AttemptNumber(number),
        finished: at(finished),
    }
}

fn count(task: u32, number: u32, outcome: Outcome) -> Settled {
    Settled::Count {
        task: TaskIndex(task),
        attempt: AttemptNumber(number),
        outcome,
    }
}

fn kill(task: u32, number: u32, kind: KillKind, survivor: Option<u32>) -> Settled {
    Settled::Kill(Kill {
        task: TaskIndex(task),
        attempt: AttemptNumber(number),
        kind,
        survivor: survivor.map(AttemptNumber),
    })
}

fn fail_task(task: u32) -> Settled {
    Settled::FailTask {
        task: TaskIndex(task),
    }
}

#[test]
fn a_success_wins_and_its_siblings_die_in_the_same_pass() {
    check(
        30.0,
        job("a").task(
            1,
            [attempt(0), attempt(1).succeeded(29.0), attempt(2).pending()],
        ),
        &[
            win(1, 1, 29.0),
            kill(1, 0, KillKind::Settle, Some(1)),
            kill(1, 2, KillKind::Settle, Some(1)),
        ],
    );
}

#[test]
fn the_earliest_success_wins_then_the_lowest_number() {
    check(
        30.0,
        job("a").task(0, [attempt(0).succeeded(29.0), attempt(1).succeeded(28.0)]),
        &[win(0, 1, 28.0), count(0, 0, Outcome::Superseded)],
    );
    check(
        30.0,
        job("a").task(0, [attempt(3).succeeded(28.0), attempt(4).succeeded(28.0)]),
        &[win(0, 3, 28.0), count(0, 4, Outcome::Superseded)],
    );
}

#[test]
fn a_recorded_winner_stays_the_winner_whatever_ends_later() {
    let recorded = |attempts: Vec<AttemptBuilder>| {
        job("a").task_with(0, attempts, |task| task.winner = Some(AttemptNumber(2)))
    };
    check(
        30.0,
        recorded(vec![
            attempt(0).succeeded(3.0).killed(KillKind::Settle, 25.0),
            attempt(1).failed(29.0),
            attempt(3).lost(),
            attempt(4),
        ]),
        &[
            count(0, 0, Outcome::Superseded),
            count(0, 1, Outcome::Superseded),
            count(0, 3, Outcome::Superseded),
            kill(0, 4, KillKind::Settle, Some(2)),
        ],
    );
    check(30.0, recorded(vec![attempt(2).succeeded(3.0)]), &[]);
}

#[test]
fn a_success_before_the_stop_wins_while_no_other_has_won() {
    for kind in [
        KillKind::Prune,
        KillKind::Evict,
        KillKind::Suspend,
        KillKind::Replace,
        KillKind::Settle,
    ] {
        check(
            30.0,
            job("a").task(
                0,
                [attempt(0), attempt(1).succeeded(29.0).killed(kind, 30.0)],
            ),
            &[win(0, 1, 29.0), kill(0, 0, KillKind::Settle, Some(1))],
        );
    }
}

#[test]
fn an_exit_with_0_that_may_answer_the_kill_is_no_success() {
    // For any stamp, because a node's clock may be minutes behind.
    for finished in [1.0, 25.0, 27.0] {
        let answer = attempt(1).succeeded(finished).in_deletion();
        check(
            30.0,
            job("a").task(0, [attempt(0), answer.killed(KillKind::Prune, 25.9)]),
            &[count(0, 1, Outcome::Superseded)],
        );
    }
}

#[test]
fn an_answer_to_the_kill_at_the_deadline_turns_no_fate() {
    let answer = attempt(0).succeeded(59.0).in_deletion();
    check(
        70.0,
        job("a")
            .tasks(1)
            .stops_at_deadline()
            .facts_as_of(70.0)
            .ending(Conclusion::DeadlineExceeded)
            .task(0, [answer.killed(KillKind::JobEnd, 61.0)]),
        &[
            count(0, 0, Outcome::Superseded),
            Settled::Finish(Conclusion::DeadlineExceeded),
        ],
    );
}

#[test]
fn what_shed_killed_is_superseded_whatever_its_end() {
    check(
        30.0,
        job("a").task(
            0,
            [
                attempt(0),
                attempt(1).failed(20.0).killed(KillKind::Prune, 25.0),
                attempt(2).disrupted(20.0).killed(KillKind::Evict, 25.0),
                attempt(3).lost().killed(KillKind::Replace, 25.0),
            ],
        ),
        &[
            count(0, 1, Outcome::Superseded),
            count(0, 2, Outcome::Superseded),
            count(0, 3, Outcome::Superseded),
        ],
    );
}

#[test]
fn a_killed_attempt_that_is_not_gone_yet_is_left_alone() {
    check(
        30.0,
        job("a").task(0, [attempt(0), attempt(1).killed(KillKind::Prune, 25.0)]),
        &[],
    );
}

#[test]
fn disruptions_and_losses_spend_no_back_off() {
    check(
        30.0,
        job("a")
            .backoff_limit_per_index(0)
            .task(0, [attempt(0).disrupted(20.0)])
            .task(1, [attempt(0).lost()]),
        &[
            count(0, 0, Outcome::Disrupted),
            count(1, 0, Outcome::Disrupted),
        ],
    );
}

#[test]
fn a_failure_while_a_sibling_lives_spends_no_back_off() {
    check(
        30.0,
        job("a")
            .backoff_limit_per_index(0)
            .task(0, [attempt(0), attempt(1).failed(20.0)])
            .task(1, [attempt(0).failed(20.0), attempt(1)]),
        &[
            count(0, 1, Outcome::CloneFailed),
            count(1, 0, Outcome::CloneFailed),
        ],
    );
}

#[test]
fn two_failures_count_alike_seen_together_or_one_by_one() {
    check(
        30.0,
        job("a").task(0, [attempt(0).failed(25.0), attempt(1).failed(20.0)]),
        &[
            count(0, 0, Outcome::Failed),
            count(0, 1, Outcome::CloneFailed),
        ],
    );
}

#[test]
fn a_failure_beyond_the_back_off_limit_fails_the_task() {
    let failed_before = |failures| {
        job("a")
            .backoff_limit_per_index(2)
            .task_with(0, [attempt(0).failed(20.0)], move |task| {
                task.failures = failures;
            })
    };
    check(30.0, failed_before(1), &[count(0, 0, Outcome::Failed)]);
    check(
        30.0,
        failed_before(2),
        &[count(0, 0, Outcome::Failed), fail_task(0)],
    );
}

#[test]
fn a_task_cannot_fail_while_a_stopped_attempt_may_have_won() {
    let dying = attempt(1).killed(KillKind::Prune, 25.0);
    check(
        30.0,
        job("a")
            .backoff_limit_per_index(0)
            .task(0, [attempt(0).failed(20.0), dying]),
        &[count(0, 0, Outcome::Failed)],
    );
    // The next pass, when the attempt is gone, still has the facts to act.
    check(
        31.0,
        job("a").backoff_limit_per_index(0).task_with(
            0,
            [attempt(1).lost().killed(KillKind::Prune, 25.0)],
            |task| {
                task.failures = 1;
            },
        ),
        &[count(0, 1, Outcome::Superseded), fail_task(0)],
    );
}

#[test]
fn a_stuck_attempt_is_replaced_after_its_grace() {
    let stuck = || job("a").task(0, [attempt(0).stuck(10.0)]);
    check(14.9, stuck(), &[]);
    assert_eq!(settle_wake(at(14.9), &stuck().build()), Some(at(15.0)));
    check(15.0, stuck(), &[kill(0, 0, KillKind::Replace, None)]);
}

#[test]
fn an_unplaceable_clone_is_stopped_while_a_sibling_lives() {
    let given_up = |number| kill(0, number, KillKind::Replace, None);
    let waits = |number| attempt(number).unplaceable();
    let pair = job("a").task(0, [attempt(0), waits(1)]);
    check(30.0, pair, &[given_up(1)]);
    // The original waits too: one of them has to.
    let all_wait = job("a").task(0, [waits(0), waits(1), waits(2)]);
    check(30.0, all_wait, &[given_up(1), given_up(2)]);
    let orphans = job("a").task(0, [waits(1), waits(2)]);
    check(30.0, orphans, &[]);
    let alone = job("a").task(0, [waits(0)]);
    check(30.0, alone, &[]);
}

#[test]
fn clones_beyond_the_quota_are_stopped() {
    let run = |number: u32, progress| attempt(number).progress(progress, 29.0);
    let two = |admitted: u32| {
        let job = job("a").tasks(3).done([2]).admitted(admitted);
        job.task(0, [run(0, 0.2), run(1, 0.5)])
            .task(1, [run(0, 0.6), run(1, 0.4), run(2, 0.1)])
    };
    let surplus = |task, number, survivor| kill(task, number, KillKind::Surplus, Some(survivor));
    // The last wave: with one task done, two attempts are admitted.
    let all = [surplus(1, 2, 0), surplus(0, 0, 1), surplus(1, 1, 0)];
    check(30.0, two(3), &all);
    check(30.0, two(2), &all);
    let mut suspended = two(3).suspended().build();
    let killed = settle(at(30.0), &suspended);
    assert_eq!(killed.len(), 5, "each for the suspension, and once");
    suspended.admitted = None;
    assert_eq!(settle(at(30.0), &suspended), killed);
    check(30.0, two(3).with(|job| job.admitted = None), &[]);
    // Its only attempts stay, however few are admitted.
    let first = job("a")
        .tasks(2)
        .admitted(1)
        .task(0, [attempt(0)])
        .task(1, [attempt(0)]);
    check(30.0, first, &[]);
}

#[test]
fn the_attempt_that_may_publish_survives_the_quota() {
    let pair = [
        attempt(0).progress(0.9, 29.0),
        attempt(1).progress(0.2, 29.0),
    ];
    let job = job("a").tasks(1).fenced().admitted(1);
    let job = job.task_with(0, pair, |task| {
        task.grant = Some(crate::snapshot::Grant {
            attempt: AttemptNumber(1),
            at: at(28.0),
        });
    });
    check(30.0, job, &[kill(0, 0, KillKind::Surplus, Some(1))]);
}

#[test]
fn a_suspended_job_loses_its_attempts_but_not_its_success() {
    check(
        30.0,
        job("a")
            .suspended()
            .task(0, [attempt(0), attempt(1).stuck(0.0)])
            .task(1, [attempt(0).succeeded(29.0)]),
        &[
            win(1, 0, 29.0),
            kill(0, 0, KillKind::Suspend, None),
            kill(0, 1, KillKind::Suspend, None),
        ],
    );
}

#[test]
fn the_last_win_completes_the_job() {
    check(
        30.0,
        job("a")
            .tasks(2)
            .done([0])
            .task(1, [attempt(0).succeeded(29.0), attempt(1)]),
        &[
            win(1, 0, 29.0),
            Settled::End(Conclusion::Complete),
            kill(1, 1, KillKind::Settle, Some(0)),
        ],
    );
    // Nothing remains, so the end is final at once.
    check(0.0, job("empty").tasks(0), &ended(Conclusion::Complete));
}

#[test]
fn a_job_whose_tasks_ended_with_one_failed_has_failed_indexes() {
    check(
        30.0,
        job("a")
            .tasks(3)
            .backoff_limit_per_index(0)
            .done([0])
            .failed([1])
            .task(2, [attempt(0).failed(29.0)]),
        &[
            count(2, 0, Outcome::Failed),
            fail_task(2),
            Settled::End(Conclusion::FailedIndexes),
            Settled::Finish(Conclusion::FailedIndexes),
        ],
    );
}

#[test]
fn a_hard_deadline_ends_the_job_once_facts_reach_beyond_it() {
    let running = || {
        job("a")
            .stops_at_deadline()
            .task(0, [attempt(0), attempt(1)])
    };
    check(70.0, running().facts_as_of(60.9), &[]);
    check(
        61.0,
        running().facts_as_of(61.0),
        &[
            Settled::End(Conclusion::DeadlineExceeded),
            kill(0, 0, KillKind::JobEnd, None),
            kill(0, 1, KillKind::JobEnd, None),
        ],
    );
    check(
        61.0,
        running().facts_as_of(61.0).suspended(),
        &[
            Settled::End(Conclusion::DeadlineExceeded),
            kill(0, 0, KillKind::JobEnd, None),
            kill(0, 1, KillKind::JobEnd, None),
        ],
    );
}

#[test]
fn a_soft_deadline_ends_nothing() {
    let late = || job("a").task(0, [attempt(0)]).facts_as_of(99.0);
    check(99.0, late(), &[]);
    check(
        99.0,
        late().task(1, [attempt(0).succeeded(70.0)]),
        &[win(1, 0, 70.0)],
    );
}

#[test]
fn a_finish_in_time_that_is_seen_after_the_deadline_counts() {
    check(
        70.0,
        job("a")
            .stops_at_deadline()
            .tasks(1)
            .facts_as_of(70.0)
            .task(0, [attempt(0).succeeded(60.0), attempt(1)]),
        &[
            win(0, 0, 60.0),
            Settled::End(Conclusion::Complete),
            kill(0, 1, KillKind::Settle, Some(0)),
        ],
    );
}

#[test]
fn a_finish_after_a_hard_deadline_is_late_and_no_win() {
    check(
        60.5,
        job("a")
            .stops_at_deadline()
            .facts_as_of(60.5)
            .task(0, [attempt(0).succeeded(60.001), attempt(1)]),
        &[count(0, 0, Outcome::Late)],
    );
}

#[test]
fn a_deadline_before_the_submission_ends_the_job_at_once() {
    let past = || {
        job("a")
            .submitted(100.0)
            .deadline_in(-1.0)
            .stops_at_deadline()
            .facts_as_of(100.0)
    };
    check(
        100.0,
        past().never_launched(),
        &ended(Conclusion::DeadlineInPast),
    );
    // Facts of the job that extend to its submission also extend beyond such a deadline.
    check(100.0, past(), &ended(Conclusion::DeadlineExceeded));
    let soft = past()
        .never_launched()
        .with(|job| job.rules.on_miss = OnMiss::Continue);
    check(100.0, soft, &[]);
}

#[test]
fn an_ending_job_stops_its_attempts_and_then_finishes() {
    let ending = || {
        job("a")
            .stops_at_deadline()
            .facts_as_of(70.0)
            .ending(Conclusion::DeadlineExceeded)
    };
    check(
        70.0,
        ending().task(0, [attempt(0), attempt(1).killed(KillKind::JobEnd, 25.0)]),
        &[kill(0, 0, KillKind::JobEnd, None)],
    );
    check(
        70.0,
        ending().task(0, [attempt(0).failed(65.0).killed(KillKind::JobEnd, 25.0)]),
        &[
            count(0, 0, Outcome::Superseded),
            Settled::Finish(Conclusion::DeadlineExceeded),
        ],
    );
    check(
        70.0,
        job("b").ending(Conclusion::Complete).done(0..4),
        &[Settled::Finish(Conclusion::Complete)],
    );
}

#[test]
fn late_evidence_turns_a_missed_deadline_into_a_complete_job() {
    let ending = |finished| {
        job("a")
            .tasks(2)
            .done([0])
            .stops_at_deadline()
            .facts_as_of(70.0)
            .ending(Conclusion::DeadlineExceeded)
            .task(
                1,
                [attempt(0)
                    .succeeded(finished)
                    .killed(KillKind::JobEnd, 61.0)],
            )
    };
    check(
        70.0,
        ending(60.0),
        &[win(1, 0, 60.0), Settled::Finish(Conclusion::Complete)],
    );
    check(
        70.0,
        ending(61.0),
        &[
            count(1, 0, Outcome::Superseded),
            Settled::Finish(Conclusion::DeadlineExceeded),
        ],
    );
}

#[test]
fn settle_wakes_at_the_deadline_and_again_until_facts_pass_it() {
    let hard = |facts| job("a").stops_at_deadline().facts_as_of(facts).build();
    assert_eq!(settle_wake(at(30.0), &hard(30.0)), Some(at(60.0)));
    assert_eq!(settle_wake(at(60.0), &hard(60.0)), Some(at(61.0)));
    // Facts lag behind: not in a hot loop.
    assert_eq!(settle_wake(at(80.0), &hard(60.0)), Some(at(81.0)));
    let ending = job("a").ending(Conclusion::Complete).build();
    assert_eq!(settle_wake(at(30.0), &ending), None);
}
