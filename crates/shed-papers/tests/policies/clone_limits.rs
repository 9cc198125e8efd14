//! Limits on clones that bind every policy: an administrator's stop, and the budget of the job.

use super::shed_plus::{cluster, plan, straggling};
use shed_core::fixtures::{
    JobBuilder, World, at, attempt, brief, four_nodes, plan_of, report, uneven,
};
use shed_core::ids::TaskIndex;
use shed_core::memory::Memory;
use shed_core::plan::{Plan, Refusal, RefusalReason};
use shed_core::policy::Policy;
use shed_core::snapshot::{AttemptKind, SlotTime, SpeculationMode};
use shed_core::time::Span;

fn stopped(job: JobBuilder) -> JobBuilder {
    job.with(|job| job.obstacles.clones_stopped = true)
}

/// The plan of the default policy.
fn plan_of_default(world: World) -> Plan {
    let policy = Policy {
        surge_max: 0,
        ..Policy::default()
    };
    plan_of(&world.build(), &Memory::default(), &policy).0
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
    let plan = plan_of_default(cluster(2).job(straggling()));
    assert!(brief(&plan).contains(&"a: clone 3".to_owned()), "{plan:?}");
    let plan = plan_of_default(cluster(2).job(stopped(straggling())));
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
fn a_clone_stop_spares_live_clones_and_first_attempts() {
    let clone = attempt(1).launched(28.0).on(2);
    let slow = attempt(0).on(1).progress(0.1, 30.0);
    let cloned = straggling().tasks(6).task(4, [slow, clone]);
    let plan = plan_of_default(cluster(4).job(stopped(cloned)));
    assert_eq!(brief(&plan), ["a: original 5"]);
}

const SPENT: Refusal = Refusal {
    task: TaskIndex(3),
    why: RefusalReason::JobBudget,
};

fn with_budget(job: JobBuilder, share: f64) -> Plan {
    plan(cluster(2).job(job.clone_budget(share)))
}

#[test]
fn a_straggler_gets_one_clone_whatever_the_budget() {
    let plan = with_budget(straggling(), 0.0);
    assert_eq!(
        (brief(&plan), refused(&plan)),
        (vec!["a: clone 3".into()], vec![SPENT])
    );
    let cloned = straggling().with(|job| {
        let mut clone = job.tasks[3].attempts[0].clone();
        (clone.number.0, clone.kind) = (1, AttemptKind::Clone);
        clone.progress = None;
        job.tasks[3].attempts.push(clone);
    });
    let plan = plan_of_default(cluster(2).job(cloned.clone_budget(0.0)));
    assert_eq!((brief(&plan), refused(&plan)), (vec![], vec![SPENT]));
}

#[test]
fn a_budget_limits_clones_to_a_share_of_the_own_slot_seconds() {
    let ample = with_budget(straggling(), 20.0);
    assert_eq!(brief(&ample), ["a: clone 3", "a: clone 3"]);
    let unlimited = plan(cluster(2).job(straggling()));
    assert_eq!(ample.actions, unlimited.actions);
    let figures = report(&ample, "a").clone_budget.unwrap();
    // Four attempts have run since 0 s. Three end 41 s from now, and one some 250 s from now.
    assert!(figures.own > 120.0 + 3.0 * 40.0 + 100.0, "{figures:?}");
    assert_eq!(figures.clones, 0.0);
    let enough = figures.granted / figures.own;
    for (share, clones) in [(enough * 1.001, 2), (enough * 0.999, 1)] {
        let plan = with_budget(straggling(), share);
        assert_eq!(plan.actions.len(), clones, "{share}");
    }
}

#[test]
fn ended_attempts_count_for_the_budget() {
    let ended = |own, clones| {
        let with_past = straggling().with(|job| {
            let spans = [own, clones].map(Span::from_seconds);
            job.ended_slot_time = SlotTime {
                own: spans[0],
                clones: spans[1],
            };
        });
        with_budget(with_past, 0.5).actions.len()
    };
    assert_eq!((ended(0, 0), ended(0, 1000)), (2, 1));
    assert_eq!(ended(3000, 1000), 2);
}

#[test]
fn a_job_without_a_budget_has_no_figures_of_it() {
    let plan = plan(cluster(2).job(straggling()));
    assert_eq!(report(&plan, "a").clone_budget, None);
}

#[test]
fn after_a_clone_was_disrupted_its_task_gets_no_other_for_theta() {
    // The job has 160 s, so that θ is 3 s beyond t_avg; the clock shows 30 s.
    for (since, rests) in [(29.0, true), (10.0, false)] {
        let disrupted = uneven().with(|job| job.tasks[2].clone_disrupted = Some(at(since)));
        let plan = plan(four_nodes().job(disrupted));
        let mut refusals = refused(&plan).into_iter();
        let is_refused = refusals.any(|refusal| refusal.why == RefusalReason::Disrupted);
        assert_eq!((plan.actions.is_empty(), is_refused), (rests, rests));
    }
}

#[test]
fn clones_stay_within_the_attempts_that_a_job_may_have() {
    let clones = |most| {
        let job = uneven().with(|job| job.obstacles.attempts_max = most);
        plan(four_nodes().job(job)).actions.len()
    };
    assert!(clones(None) > 1);
    assert_eq!((clones(Some(4)), clones(Some(3))), (1, 0));
}
