//! When the optimizer runs, and for which jobs.

use super::{cluster, policy, shed_plus, straggling};
use shed_core::fixtures::{JobBuilder, World, at, attempt, brief, job, plan_of, report, world};
use shed_core::ids::JobKey;
use shed_core::memory::{JobMemory, Memory};
use shed_core::policy::PolicyState;
use shed_core::snapshot::SpeculationMode;

/// Job `a` took part in a run then.
fn ran_at(seconds: f64) -> Memory {
    let mut memory = Memory::default();
    remember(&mut memory, "a", &format!("ran={}", at(seconds).0));
    memory
}

fn remember(memory: &mut Memory, key: &str, transient: &str) {
    let key = JobKey::from(key);
    memory.set(key.clone(), JobMemory::default());
    let state = PolicyState {
        transient: transient.to_owned(),
        ..PolicyState::default()
    };
    memory.set_state(key, state);
}

#[test]
fn the_optimizer_runs_at_progress_xi_and_then_every_theta() {
    let cases = [
        (0.3, Memory::default(), true, at(30.0 + 10.85)),
        (0.3, ran_at(20.0), false, at(20.0 + 10.85)),
        (0.3, ran_at(19.15), true, at(30.0 + 10.85)),
    ];
    for (xi, memory, runs, next) in cases {
        let policy = policy(&format!("shed-plus{{xi={xi}}}"));
        let snapshot = cluster(2).job(straggling()).build();
        let (plan, _) = plan_of(&snapshot, &memory, &policy);
        assert_eq!(plan.actions.is_empty(), !runs, "{xi} {memory:?}");
        assert_eq!(plan.report.next_pass, Some(next));
    }
}

#[test]
fn the_first_run_is_when_the_progress_reaches_xi() {
    // Three tasks do 40 % in 30 s, one 10 %: 32.5 % at 30 s, and 1.0833 % each second.
    let snapshot = || cluster(2).job(straggling()).build();
    let policy = policy("shed-plus{xi=0.5}");
    let (plan, memory) = plan_of(&snapshot(), &Memory::default(), &policy);
    assert!(plan.actions.is_empty());
    let next = plan.report.next_pass.unwrap();
    assert!(next > at(44.0) && next < at(47.0), "{next:?}");
    let mut then = snapshot();
    then.now = next;
    let (plan, _) = plan_of(&then, &memory, &policy);
    assert!(!plan.actions.is_empty());
}

#[test]
fn a_clock_that_went_back_does_not_put_the_optimizer_off() {
    let snapshot = cluster(2).job(straggling()).build();
    let (plan, _) = plan_of(&snapshot, &ran_at(500.0), &shed_plus());
    assert_eq!(plan.report.next_pass, Some(at(30.0 + 10.85)));
}

#[test]
fn the_measured_launch_overhead_lengthens_theta() {
    let snapshot = cluster(2).launch_overhead(60.0).job(straggling()).build();
    let (plan, _) = plan_of(&snapshot, &ran_at(20.0), &shed_plus());
    assert_eq!(plan.report.next_pass, Some(at(20.0 + 65.0)));
}

#[test]
fn without_its_floor_theta_is_a_share_of_the_deadline() {
    let snapshot = cluster(2).launch_overhead(60.0).job(straggling()).build();
    let policy = policy("shed-plus{theta_floor=off}");
    let (plan, _) = plan_of(&snapshot, &ran_at(25.0), &policy);
    assert_eq!(plan.report.next_pass, Some(at(25.0 + 8.0)));
}

/// A job of one slow task, with a clone that has not reported where it `has_clone`.
fn late(key: &str, node: usize, has_clone: bool) -> JobBuilder {
    let slow = attempt(0).on(node).progress(0.1, 29.0);
    let clone = attempt(1).launched(26.0).on(node).pending();
    let job = job(key).tasks(1).deadline_in(160.0);
    let job = job.ended_runs([70.0]);
    match has_clone {
        true => job.task(0, [slow, clone]),
        false => job.task(0, [slow]),
    }
}

/// Job `a` ran a moment ago and has a clone; job `b` has reached ξ.
fn two() -> (World, Memory) {
    let jobs = world(30.0, 2, 2000);
    let jobs = jobs.job(late("a", 0, true)).job(late("b", 1, false));
    (jobs, ran_at(29.0))
}

#[test]
fn a_job_that_reaches_xi_has_the_clones_of_all_decided_again() {
    let (jobs, memory) = two();
    let (plan, after) = plan_of(&jobs.build(), &memory, &shed_plus());
    // One slot is free, and one comes free with the clone of `a`: one for each.
    assert_eq!(brief(&plan), ["a: prune 0.1 for 0.0", "a: clone 0"]);
    let owed = |key: &str| after.state(&JobKey::from(key)).unwrap().transient.clone();
    assert_eq!(owed("b"), format!("ran={};owed=0:1", at(30.0).0));
    assert_eq!(owed("a"), format!("ran={}", at(30.0).0));
}

#[test]
fn a_job_that_observes_has_no_clones_of_others_decided_again() {
    let jobs = world(30.0, 2, 2000).job(late("a", 0, true));
    let observes = late("b", 1, false).speculation(SpeculationMode::Observe);
    let (plan, after) = plan_of(&jobs.job(observes).build(), &ran_at(29.0), &shed_plus());
    assert_eq!(brief(&plan), [""; 0]);
    assert_eq!(report(&plan, "b").clones.len(), 1);
    let ran = |key: &str| after.state(&JobKey::from(key)).unwrap().transient.clone();
    assert_eq!(ran("a"), format!("ran={}", at(29.0).0));
    assert_eq!(ran("b"), format!("ran={}", at(30.0).0));
}

#[test]
fn jobs_with_runs_of_their_own_leave_each_other_alone() {
    let (jobs, memory) = two();
    let (plan, _) = plan_of(&jobs.build(), &memory, &policy("shed-plus{joint=off}"));
    assert_eq!(brief(&plan), ["b: clone 0"]);
}

#[test]
fn a_clone_whose_slot_was_taken_is_launched_once_it_is_free() {
    let memory = || {
        let mut memory = Memory::default();
        remember(&mut memory, "a", &format!("ran={};owed=0:2", at(29.0).0));
        memory
    };
    let job = || late("a", 0, false);
    let full = world(30.0, 1, 1000).job(job()).build();
    let (plan, after) = plan_of(&full, &memory(), &shed_plus());
    assert_eq!(brief(&plan), [""; 0]);
    assert_eq!(report(&plan, "a").refusals, []);
    let free = world(30.0, 3, 1000).job(job()).build();
    let (plan, _) = plan_of(&free, &after, &shed_plus());
    assert_eq!(brief(&plan), ["a: clone 0", "a: clone 0"]);
}
