//! The attempts that a run keeps, and those that it stops.

use super::{check, check_by, cluster, policy, straggling};
use shed_core::fixtures::{JobBuilder, attempt, job};

/// A task whose original is further, and whose clone is faster.
fn racing(deadline: f64) -> JobBuilder {
    job("a").tasks(1).deadline_in(deadline).task(
        0,
        [
            attempt(0).on(0).progress(0.2, 29.0),
            attempt(1).on(1).launched(20.0).progress(0.1, 29.0),
        ],
    )
}

#[test]
fn the_attempt_with_most_data_or_the_first_end_is_kept() {
    check(cluster(0).job(racing(400.0)), &["a: prune 0.1 for 0.0"]);
    let by_end = policy("shed-plus{keep=end}");
    check_by(
        &by_end,
        cluster(0).job(racing(400.0)),
        &["a: prune 0.0 for 0.1"],
    );
}

#[test]
fn a_straggler_that_is_kept_gets_new_clones() {
    let young = attempt(1).launched(26.0).on(0).pending();
    let raced = straggling().max_clones(1).with(move |job| {
        let other = shed_core::fixtures::job("x").task(3, [young.clone()]);
        let clone = other.build().tasks.remove(0).attempts.remove(0);
        job.tasks[3].attempts.push(clone);
    });
    check(
        cluster(3).job(raced),
        &["a: prune 3.1 for 3.0", "a: clone 3"],
    );
}

#[test]
fn a_task_of_silent_attempts_loses_none() {
    let silent = [attempt(0).on(0), attempt(1).on(1)];
    let job = straggling().tasks(5).task(4, silent);
    check(cluster(4).job(job), &["a: clone 3", "a: clone 3"]);
}
