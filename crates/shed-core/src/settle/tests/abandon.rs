//! Attempts whose node is out of reach.

use super::*;
use crate::snapshot::{AttemptKind, Grant};

fn abandoned(number: u32, seconds: f64) -> AttemptBuilder {
    attempt(number).killed(KillKind::Abandon, seconds)
}

#[test]
fn an_unreachable_attempt_is_abandoned_unless_copies_do_harm() {
    let lost = || job("a").task(0, [attempt(0).out_of_reach()]);
    check(30.0, lost(), &[kill(0, 0, KillKind::Abandon, None)]);
    check(30.0, lost().not_idempotent(), &[]);
    let waits = lost().with(|job| job.rules.replaces_when_gone = true);
    check(30.0, waits, &[]);
    check(
        30.0,
        lost().fenced(),
        &[kill(0, 0, KillKind::Abandon, None)],
    );
    let publishing = lost().fenced().with(|job| {
        let (attempt, at) = (AttemptNumber(0), at(20.0));
        job.tasks[0].grant = Some(Grant { attempt, at });
    });
    check(30.0, publishing, &[]);
}

#[test]
fn an_abandoned_attempt_wins_only_if_it_succeeded_before() {
    let retry = || attempt(1).kind(AttemptKind::Retry);
    let both = |first| job("a").task(0, [first, retry()]);
    // It had done its work before it was given up, and no other attempt has.
    check(
        30.0,
        both(abandoned(0, 20.0).succeeded(10.0)),
        &[win(0, 0, 10.0), kill(0, 1, KillKind::Settle, Some(0))],
    );
    // Its end may answer the deletion, or is a failure on a machine that was cut off.
    for ended in [
        abandoned(0, 20.0).succeeded(25.0).in_deletion(),
        abandoned(0, 20.0).failed(25.0),
    ] {
        check(30.0, both(ended), &[count(0, 0, Outcome::Disrupted)]);
    }
    check(
        30.0,
        job("a").task(
            0,
            [abandoned(0, 20.0).failed(25.0), retry().succeeded(29.0)],
        ),
        &[win(0, 1, 29.0), count(0, 0, Outcome::Superseded)],
    );
}

#[test]
fn a_task_that_failed_too_often_ignores_abandoned_attempts() {
    let spent = |first: AttemptBuilder| {
        let failed = attempt(1).kind(AttemptKind::Retry).failed(29.0);
        job("a").backoff_limit_per_index(0).task(0, [first, failed])
    };
    let failed = count(0, 1, Outcome::Failed);
    check(
        30.0,
        spent(abandoned(0, 20.0)),
        &[failed.clone(), fail_task(0)],
    );
    let pruned = attempt(0).killed(KillKind::Prune, 20.0);
    check(30.0, spent(pruned), &[failed]);
}

#[test]
fn a_job_ends_when_what_was_abandoned_is_gone_as_in_batch() {
    let ending = job("a").tasks(1).done([0]).ending(Conclusion::Complete);
    let waits = |first| ending.clone().task_with(0, [first], |_| ());
    check(30.0, waits(abandoned(0, 20.0)), &[]);
    let gone = waits(abandoned(0, 20.0).lost());
    let finish = Settled::Finish(Conclusion::Complete);
    check(30.0, gone, &[count(0, 0, Outcome::Disrupted), finish]);
}
