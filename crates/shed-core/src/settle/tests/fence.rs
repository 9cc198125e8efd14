//! The winner when only one attempt may publish.

use super::*;
use crate::snapshot::{Grant, TaskSnapshot};

fn granted(number: u32, seconds: f64) -> impl FnOnce(&mut TaskSnapshot) {
    move |task| {
        task.grant = Some(Grant {
            attempt: AttemptNumber(number),
            at: at(seconds),
        });
    }
}

#[test]
fn the_granted_attempt_wins_at_the_time_of_its_grant() {
    check(
        30.0,
        job("a").fenced().task_with(
            0,
            [
                attempt(0).succeeded(20.0),
                attempt(1).succeeded(29.0),
                attempt(2),
            ],
            granted(1, 25.0),
        ),
        &[
            win(0, 1, 25.0),
            count(0, 0, Outcome::Superseded),
            kill(0, 2, KillKind::Settle, Some(1)),
        ],
    );
}

#[test]
fn who_ends_without_having_asked_has_not_done_the_task() {
    check(
        30.0,
        job("a").fenced().task(0, [attempt(0).succeeded(20.0)]),
        &[count(0, 0, Outcome::Failed)],
    );
    check(
        30.0,
        job("a")
            .fenced()
            .task(0, [attempt(0).succeeded(20.0), attempt(1)]),
        &[count(0, 0, Outcome::CloneFailed)],
    );
    check(
        30.0,
        job("a")
            .fenced()
            .task_with(0, [attempt(0).failed(20.0), attempt(1)], granted(0, 15.0)),
        &[count(0, 0, Outcome::CloneFailed)],
    );
}

#[test]
fn nobody_is_killed_for_a_grant_alone() {
    check(
        30.0,
        job("a")
            .fenced()
            .task_with(0, [attempt(0), attempt(1)], granted(1, 25.0)),
        &[],
    );
}

#[test]
fn a_commit_grant_before_the_deadline_meets_it() {
    let job = || job("a").fenced().tasks(1).stops_at_deadline();
    let publishing = |as_of| {
        job()
            .facts_as_of(as_of)
            .task_with(0, [attempt(0)], granted(0, 59.0))
    };
    check(62.0, publishing(62.0), &[]);
    check(
        70.0,
        job()
            .facts_as_of(70.0)
            .task_with(0, [attempt(0).succeeded(69.0)], granted(0, 59.0)),
        &[
            win(0, 0, 59.0),
            Settled::End(Conclusion::Complete),
            Settled::Finish(Conclusion::Complete),
        ],
    );
    // The wait for the attempt is limited.
    check(
        120.0,
        publishing(120.0),
        &[
            Settled::End(Conclusion::DeadlineExceeded),
            kill(0, 0, KillKind::JobEnd, None),
        ],
    );
}

#[test]
fn the_wait_for_publishing_ends_at_an_instant_of_its_own() {
    let publishing = job("a")
        .fenced()
        .tasks(1)
        .stops_at_deadline()
        .facts_as_of(62.0)
        .task_with(0, [attempt(0)], granted(0, 59.0))
        .build();
    assert_eq!(settle_wake(at(62.0), &publishing), Some(at(120.0)));
    assert_eq!(settle_wake(at(50.0), &publishing), Some(at(60.0)));
}

#[test]
fn the_deadline_stops_a_job_that_has_more_to_do_than_publish() {
    let job = job("a")
        .fenced()
        .tasks(2)
        .stops_at_deadline()
        .facts_as_of(62.0)
        .task_with(0, [attempt(0)], granted(0, 59.0))
        .task(1, [attempt(0)]);
    check(
        62.0,
        job,
        &[
            Settled::End(Conclusion::DeadlineExceeded),
            kill(0, 0, KillKind::JobEnd, None),
            kill(1, 0, KillKind::JobEnd, None),
        ],
    );
}

#[test]
fn a_grant_after_the_deadline_is_late() {
    check(
        70.0,
        job("a")
            .fenced()
            .tasks(1)
            .stops_at_deadline()
            .facts_as_of(60.5)
            .task_with(0, [attempt(0).succeeded(60.0)], granted(0, 60.5)),
        &[count(0, 0, Outcome::Late)],
    );
}

#[test]
fn who_publishes_is_left_to_when_the_job_is_suspended() {
    let suspended = || {
        job("a")
            .fenced()
            .suspended()
            .task_with(0, [attempt(0), attempt(1)], granted(1, 25.0))
            .task(1, [attempt(0)])
    };
    check(
        30.0,
        suspended(),
        &[
            kill(0, 0, KillKind::Suspend, None),
            kill(1, 0, KillKind::Suspend, None),
        ],
    );
    // The wait is limited.
    let publishing = || {
        job("a")
            .fenced()
            .suspended()
            .task_with(0, [attempt(1)], granted(1, 25.0))
    };
    let built = publishing().with(|job| job.deadline = None).build();
    assert_eq!(settle_wake(at(30.0), &built), Some(at(85.0)));
    check(85.0, publishing(), &[kill(0, 1, KillKind::Suspend, None)]);
}

#[test]
fn who_publishes_is_left_to_when_parallelism_is_lowered() {
    let running = || {
        job("a")
            .fenced()
            .parallelism(1)
            .task(0, [attempt(0).launched(5.0)])
            .task_with(1, [attempt(0).launched(9.0)], granted(0, 25.0))
    };
    check(30.0, running(), &[kill(0, 0, KillKind::Surplus, None)]);
    check(85.0, running(), &[kill(1, 0, KillKind::Surplus, None)]);
}
