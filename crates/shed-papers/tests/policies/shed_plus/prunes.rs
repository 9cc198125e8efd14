//! The attempts that a run keeps, and those that it stops.

use super::{check, check_by, check_refused, cluster, policy, shed_plus, straggling};
use shed_core::decide::decide;
use shed_core::fixtures::{JobBuilder, at, attempt, brief, job};
use shed_core::memory::Memory;
use shed_core::plan::RefusalReason;

#[test]
fn the_attempt_with_the_earliest_predicted_end_is_kept() {
    // The original is further, the clone is four times as fast.
    let racing = job("a").tasks(1).deadline_in(100.0).task(
        0,
        [
            attempt(0).on(0).progress(0.2, 29.0),
            attempt(1).on(1).launched(20.0).progress(0.19, 29.0),
        ],
    );
    check(cluster(4).job(racing), &["a: prune 0.0 for 0.1"]);
}

#[test]
fn a_close_race_is_run_to_its_end() {
    let racing = job("a").tasks(1).deadline_in(100.0).task(
        0,
        [
            attempt(0).on(0).progress(0.5, 29.0),
            attempt(1).on(1).progress(0.49, 29.0),
        ],
    );
    check(cluster(4).job(racing), &[]);
}

#[test]
fn a_clone_that_is_still_starting_up_stays_and_counts() {
    let started = |since: f64| {
        straggling().max_clones(1).with(move |job| {
            let mut young = job.tasks[3].attempts[0].clone();
            young.number = shed_core::ids::AttemptNumber(1);
            young.kind = shed_core::snapshot::AttemptKind::Clone;
            young.launched = at(since);
            young.started = None;
            young.progress = None;
            job.tasks[3].attempts.push(young);
        })
    };
    check_refused(cluster(4).job(started(25.0)), RefusalReason::Maximum);
    // Silent for long, but the original would not make it alone.
    check_refused(cluster(4).job(started(5.0)), RefusalReason::Maximum);
    let relaxed = |since| started(since).deadline_in(400.0);
    check(cluster(4).job(relaxed(25.0)), &[]);
    check(cluster(4).job(relaxed(5.0)), &["a: prune 3.1 for 3.0"]);
}

#[test]
fn a_silent_original_is_pruned_for_a_clone_surely_in_time() {
    let hung = |deadline| {
        let clone = attempt(1).on(1).launched(10.0).progress(0.3, 29.0);
        cluster(4).job(
            job("a")
                .tasks(1)
                .deadline_in(deadline)
                .task(0, [attempt(0).on(0), clone]),
        )
    };
    check(hung(100.0), &["a: prune 0.0 for 0.1"]);
    let late = decide(&hung(70.0).build(), Memory::default(), &shed_plus()).0;
    assert!(!brief(&late).iter().any(|action| action.contains("prune")));
}

/// The same with a clone of task 3 that was launched 4 s ago and has not reported.
fn with_a_young_clone() -> JobBuilder {
    straggling().with(|job| {
        let young =
            shed_core::fixtures::job("x").task(3, [attempt(1).launched(26.0).on(0).pending()]);
        let clone = young.build().tasks.remove(0).attempts.remove(0);
        job.tasks[3].attempts.push(clone);
    })
}

#[test]
fn as_printed_a_run_keeps_the_fastest_and_launches_new_clones() {
    let text = |variant| format!("shed-plus{{max_clones=1,variant={variant}}}");
    let crowded = || cluster(3).job(with_a_young_clone());
    check_by(&policy(&text("tuned")), crowded(), &[]);
    let anew = ["a: prune 3.1 for 3.0", "a: clone 3"];
    check_by(&policy(&text("printed")), crowded(), &anew);
}
