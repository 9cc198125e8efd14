//! Lone attempts that are given up for a new one.

use super::{
    Change, Moves, NOTHING, World, attempt, brief, changes, cluster, decided, ends_in, job,
    plan_of, report, slots, steady, table, uneven,
};
use crate::fixtures::JobBuilder;
use crate::ids::{NodeName, Tenant};
use crate::memory::{Memory, Restarts};
use crate::policy::Policy;
use crate::snapshot::{KillKind, SpeculationMode};
use crate::time::Instant;

const RESTARTED: Moves<'static> = &["a: restart 0.0"];

/// An attempt that ends in 50 s, in a job whose tasks take 20 s.
fn lone(slack: f64) -> JobBuilder {
    let job = job("a").tasks(1).deadline_in(30.0 + slack);
    steady(job, 20.0).task(0, [ends_in(0, 50.0).on(0)])
}

#[test]
fn an_attempt_is_restarted_if_a_new_one_is_likelier_by_a_tenth() {
    let full = |slack| slots(1).job(lone(slack));
    // It is in time with probability 0.9 if 56.4 s are left. A new one is sure to be.
    table("shed-prime", full, &[(56.2, RESTARTED), (56.6, NOTHING)]);
    // Half of its slowness is assumed to stay: a new one takes 1 s and 20 s · √(79/20).
    table("shed-prime", full, &[(39.0, NOTHING), (42.0, RESTARTED)]);
}

#[test]
fn attempts_are_restarted_only_without_a_free_slot() {
    let free = |slots_in_all| slots(slots_in_all).job(lone(50.0));
    table("shed-prime", free, &[(1, RESTARTED), (2, &["a: clone 0"])]);
    // A free slot that another job waits for counts as taken.
    let waiting = steady(job("b").tasks(1).deadline_in(60.0), 20.0);
    let arrival = |slots_in_all| slots(slots_in_all).job(lone(50.0)).job(waiting.clone());
    let both = ["a: restart 0.0", "b: original 0"];
    assert_eq!(brief(&decided("shed-prime", arrival(2))), both);
    // A job that arrives while there is capacity for its tasks and a clone takes nothing from anyone.
    let launched = ["b: original 0", "a: clone 0"];
    assert_eq!(brief(&decided("shed-prime", arrival(3))), launched);
}

#[test]
fn attempts_are_restarted_only_where_the_user_allows_it() {
    let cluster = |job: JobBuilder| -> World { slots(1).job(job) };
    let silent: Change = |job| job.with(|job| job.tasks[0].attempts[0].progress = None);
    changes(
        cluster,
        &lone(50.0),
        &[
            ("as it is", |job| job, RESTARTED),
            ("fenced", JobBuilder::fenced, RESTARTED),
            ("not idempotent", JobBuilder::not_idempotent, NOTHING),
            (
                "observed",
                |job| job.speculation(SpeculationMode::Observe),
                NOTHING,
            ),
            (
                "disabled",
                |job| job.speculation(SpeculationMode::Disabled),
                NOTHING,
            ),
            (
                "without a deadline",
                |job| job.with(|job| job.deadline = None),
                NOTHING,
            ),
            ("silent", silent, NOTHING),
            (
                "held up",
                |job| job.with(|job| job.obstacles.no_node = true),
                NOTHING,
            ),
        ],
    );
    // On an unusable node the slot would be lost.
    let cordoned = slots(2).unusable(0).job(lone(50.0));
    assert_eq!(
        brief(&decided("shed-prime", cordoned.others(1, 1000))),
        NOTHING
    );
}

#[test]
fn attempts_of_a_hopeless_job_are_not_restarted() {
    // A new attempt of each task is in time with probability ½, so a job of 20 tasks is hopeless.
    let tasks = |tasks| {
        let job = job("a").tasks(tasks).deadline_in(30.0 + 1.0 + 77.2);
        let late = ends_in(0, 500.0);
        slots(1).job(job.ended_runs([60.0; 4]).task(0, [late]))
    };
    table("shed-prime", tasks, &[(5, RESTARTED), (20, NOTHING)]);
}

#[test]
fn a_new_attempt_begins_at_the_checkpoint() {
    let checkpoint = |progress| {
        let late = ends_in(0, 50.0).on(0).checkpoint(progress);
        let job = job("a").tasks(1).deadline_in(30.0 + 30.0).resumes();
        slots(1).job(steady(job, 20.0).task(0, [late]))
    };
    // A whole task takes 41 s, and half of one 21 s.
    table(
        "shed-prime",
        checkpoint,
        &[(0.0, NOTHING), (0.5, RESTARTED)],
    );
}

#[test]
fn a_restart_relies_on_no_survivor_and_is_remembered() {
    let snapshot = slots(1).job(lone(50.0)).build();
    let policy = "shed-prime".parse().unwrap();
    let (plan, after) = plan_of(&snapshot, &Memory::default(), &policy);
    let kill = &report(&plan, "a").kills[0];
    assert_eq!((kill.kind, kill.survivor), (KillKind::Restart, None));
    let awaits = |memory: &Memory, at| memory.restarts().awaits(&tenant(), &node(0), at, 0.0);
    assert!(awaits(&after, snapshot.now));
    // It is forgotten with the node.
    let mut gone = slots(1).job(lone(50.0)).build();
    gone.nodes[0].name = NodeName::from("another");
    let (_, after) = plan_of(&gone, &after, &policy);
    assert!(!awaits(&after, snapshot.now));
}

/// The memory after this many slow attempts were replaced, on the same node, by attempts of this ratio.
fn followed_by(count: usize, ln_ratio: f64) -> Memory {
    let mut restarts = Restarts::default();
    for _ in 0..count {
        restarts.give_up(&tenant(), &node(0), Instant(0), 2.0);
        restarts.note(&tenant(), &node(0), ln_ratio);
    }
    let mut memory = Memory::default();
    memory.set_restarts(restarts);
    memory
}

/// The tenant of jobs that name none.
fn tenant() -> Tenant {
    job("a").build().tenant
}

fn node(number: usize) -> NodeName {
    slots(3).build().nodes[number].name.clone()
}

#[test]
fn nodes_where_slowness_was_seen_to_stay_get_no_restart() {
    let policy = Policy {
        surge_max: 0,
        ..("shed-prime".parse().unwrap())
    };
    let full = slots(1).job(lone(50.0)).build();
    let rows: [(usize, f64, Moves<'_>); 3] = [
        (0, 0.0, RESTARTED),
        (10, 0.0, RESTARTED),
        (10, 2.0, NOTHING),
    ];
    for (count, ln_ratio, expected) in rows {
        let memory = followed_by(count, ln_ratio);
        let moves = brief(&plan_of(&full, &memory, &policy).0);
        assert_eq!(moves, expected, "{count} times {ln_ratio}");
    }
}

#[test]
fn an_attempt_after_a_restart_counts_once_it_shows_its_speed() {
    let policy: Policy = "shed-prime".parse().unwrap();
    let usual = |node| ends_in(0, 31.0).on(node);
    let before = Restarts::default().kept(&tenant());
    let kept_after = |given_up: f64, launched: f64| {
        let a = steady(job("a").tasks(2).deadline_in(1000.0), 60.0);
        let slow = attempt(1).launched(launched).on(0).progress(0.01, 29.5);
        let seen = cluster().job(a.task(0, [usual(1)]).task(1, [slow])).build();
        let mut restarts = Restarts::default();
        restarts.give_up(&tenant(), &node(0), crate::fixtures::at(given_up), 1.5);
        let mut memory = Memory::default();
        memory.set_restarts(restarts);
        let (_, after) = plan_of(&seen, &memory, &policy);
        after.restarts().kept(&tenant()) - before
    };
    // It has shown its speed after a tenth of 60 s. It starts 1 s after its launch.
    for (given_up, launched, learns) in [
        (5.0, 10.0, true),
        (5.0, 22.7, true),
        (5.0, 23.3, false),
        // An attempt that ran there at the same time is no evidence.
        (20.0, 10.0, false),
    ] {
        let learned = kept_after(given_up, launched);
        assert_eq!(learned > 1e-12, learns, "{given_up} {launched}: {learned}");
    }
}

#[test]
fn a_straggler_among_regular_tasks_is_restarted() {
    let waiting = job("b").submitted(20.0).tasks(2).deadline_in(500.0);
    let crowded = slots(3).job(uneven()).job(waiting);
    assert_eq!(brief(&decided("shed-prime", crowded)), ["a: restart 7.0"]);
}
