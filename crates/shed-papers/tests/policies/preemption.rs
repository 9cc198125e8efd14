//! EDF and least slack with preemption: the order of service, and which attempts stop.

use shed_core::fixtures::{JobBuilder, World, attempt, brief, job, plan_of, world};
use shed_core::memory::Memory;
use shed_core::policy::Policy;
use shed_core::snapshot::Preemption;
use shed_papers::{Preempting, ServiceOrder};

use crate::speculators::policy;

/// In this order on a cluster that does not grow.
fn moves(by: &str, world: World) -> Vec<String> {
    let policy = Policy {
        surge_max: 0,
        ..policy(&format!("preemption{{by={by}}}"))
    };
    brief(&plan_of(&world.build(), &Memory::default(), &policy).0)
}

fn one_slot() -> World {
    world(100.0, 1, 1000).launch_overhead(1.0)
}

/// A job of one task that has run since 1 s, has 100 s to go, and may be preempted.
fn running(deadline: f64) -> JobBuilder {
    let half = attempt(0)
        .on(0)
        .launched(1.0)
        .progress(0.5, 100.0)
        .checkpoint(0.5);
    let long = job("long").tasks(1).resumes().deadline_in(deadline);
    let long = long.with(|job| job.rules.preemption = Preemption::WhenCheckpointed);
    long.task(0, [half])
}

/// A job of one task of 20 s that waits since 100 s.
fn waiting(deadline: f64) -> JobBuilder {
    let short = job("short").tasks(2).done([1]).ended_runs([20.0]);
    short.submitted(100.0).deadline_in(deadline)
}

const STOPS: [&str; 1] = ["long: preempt 0.0"];

#[test]
fn an_earlier_deadline_preempts_under_edf() {
    let edf = |long, short| moves("edf", one_slot().job(running(long)).job(waiting(short)));
    assert_eq!(edf(300.0, 190.0), STOPS);
    assert_eq!(edf(300.0, 210.0), [""; 0]);
    // Both would be late under admission, and neither under another order.
    assert_eq!(edf(205.0, 30.0), STOPS);
}

#[test]
fn less_slack_preempts_under_lst() {
    let lst = |long, short| moves("lst", one_slot().job(running(long)).job(waiting(short)));
    // The long job can wait 102 s, and the short one as long as it has beyond 20 s.
    assert_eq!(lst(300.0, 100.0), STOPS);
    assert_eq!(lst(300.0, 130.0), [""; 0]);
    // Of the 102 s of the long job, two launches would be lost.
    assert_eq!(lst(300.0, 119.0), STOPS);
    assert_eq!(lst(300.0, 121.0), [""; 0]);
}

#[test]
fn a_job_that_cannot_be_in_time_preempts_nothing() {
    let short = || waiting(10.0);
    let both = || one_slot().job(running(300.0)).job(short());
    assert_eq!(moves("lst", both()), [""; 0]);
    // EDF sees only the deadline.
    assert_eq!(moves("edf", both()), STOPS);
    let past = waiting(-1.0);
    assert_eq!(
        moves("edf", one_slot().job(running(300.0)).job(past)),
        [""; 0]
    );
}

#[test]
fn only_jobs_whose_users_allow_it_are_preempted() {
    let guarded = running(300.0).with(|job| job.rules.preemption = Preemption::Never);
    assert_eq!(
        moves("edf", one_slot().job(guarded).job(waiting(50.0))),
        [""; 0]
    );
    let lost = running(300.0).with(|job| job.tasks[0].attempts[0].checkpoint = None);
    assert_eq!(
        moves("edf", one_slot().job(lost).job(waiting(50.0))),
        [""; 0]
    );
}

#[test]
fn jobs_are_served_in_the_order_in_which_they_preempt() {
    // Of two jobs on one slot: the later one has more work left.
    let early = job("a")
        .tasks(2)
        .done([1])
        .ended_runs([10.0])
        .deadline_in(300.0);
    let late = || {
        job("b")
            .tasks(2)
            .done([1])
            .ended_runs([200.0])
            .deadline_in(400.0)
    };
    let both = || one_slot().job(early.clone()).job(late());
    assert_eq!(moves("edf", both()), ["a: original 0"]);
    assert_eq!(moves("lst", both()), ["b: original 0"]);
}

#[test]
fn the_order_is_a_parameter_and_no_clone_is_launched() {
    let lst = policy("preemption{by=lst}");
    let rule: Option<&Preempting> = lst.speculation.as_rule();
    assert_eq!(rule.map(|rule| rule.by), Some(ServiceOrder::Slack));
    assert_eq!(
        policy("preemption").to_string(),
        "preemption{by=edf,order=lst}"
    );
    let late = waiting(60.0).task(0, [attempt(0).launched(100.0).on(0)]);
    assert_eq!(moves("edf", world(140.0, 4, 1000).job(late)), [""; 0]);
}
