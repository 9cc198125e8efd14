//! Limits on clones that bind every policy: an administrator's stop.

use super::shed_plus::{cluster, plan, straggling};
use super::{brief, plan_of, product, report};
use crate::fixtures::{JobBuilder, attempt};
use crate::ids::TaskIndex;
use crate::memory::Memory;
use crate::plan::{Plan, Refusal, RefusalReason};
use crate::snapshot::SpeculationMode;

fn stopped(job: JobBuilder) -> JobBuilder {
    job.with(|job| job.obstacles.clones_stopped = true)
}

/// The refusals in the report of the job.
fn refused(plan: &Plan) -> Vec<Refusal> {
    report(plan, "a").refusals.clone()
}

const WHY: Refusal = Refusal {
    task: TaskIndex(3),
    why: RefusalReason::Stopped,
};

#[test]
fn while_clones_are_stopped_every_policy_refuses_them() {
    let world = cluster(2).job(straggling()).build();
    let (plan, _) = plan_of(&world, &Memory::default(), &product());
    assert!(brief(&plan).contains(&"a: clone 3".to_owned()), "{plan:?}");
    let world = cluster(2).job(stopped(straggling())).build();
    let (plan, _) = plan_of(&world, &Memory::default(), &product());
    assert_eq!(brief(&plan), [""; 0]);
    assert!(refused(&plan).contains(&WHY), "{plan:?}");
    let plan = super::shed_plus::plan(cluster(2).job(stopped(straggling())));
    assert_eq!((brief(&plan), refused(&plan)), (vec![], vec![WHY]));
}

#[test]
fn stopped_clones_are_refused_on_paper_too() {
    let observing = straggling().speculation(SpeculationMode::Observe);
    let plan = plan(cluster(2).job(stopped(observing)));
    assert_eq!((brief(&plan), refused(&plan)), (vec![], vec![WHY]));
    assert!(report(&plan, "a").clones.is_empty());
}

#[test]
fn live_clones_and_first_attempts_go_on_while_new_clones_are_stopped() {
    let clone = attempt(1).launched(28.0).on(2);
    let slow = attempt(0).on(1).progress(0.3, 30.0);
    let cloned = straggling().tasks(6).task(4, [slow, clone]);
    let plan = plan(cluster(4).job(stopped(cloned)));
    assert_eq!(brief(&plan), ["a: original 5"]);
}
