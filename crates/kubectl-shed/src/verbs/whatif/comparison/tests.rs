use super::*;
use shed_core::fixtures::{JobBuilder, at, attempt, job, world};

/// Ten tasks that take 100 s each on two nodes of two slots; `done` of them have ended.
fn queued(key: &str) -> JobBuilder {
    let running = |node: usize| attempt(0).on(node).progress(0.5, 50.0);
    job(key)
        .tasks(10)
        .deadline_in(400.0)
        .ended_runs([100.0, 110.0, 95.0, 105.0])
        .task(0, [running(0)])
        .task(1, [running(1)])
}

fn snapshot(nodes: usize) -> Snapshot {
    world(50.0, nodes, 2000).job(queued("a")).build()
}

fn asked(snapshot: &Snapshot, change: Change) -> WhatIf {
    let (memory, policy) = (Memory::default(), Policy::default());
    what_if(
        snapshot.clone(),
        memory,
        &policy,
        &JobKey::from("a"),
        change,
    )
    .unwrap()
}

#[test]
fn a_later_deadline_and_more_slots_raise_pocd_and_less_lower_it() {
    let snapshot = snapshot(2);
    let pocd = |change| asked(&snapshot, change).then.pocd_after.unwrap();
    let today = asked(&snapshot, Change::Slots(4));
    assert_eq!(today.slots, 4);
    assert_eq!(today.now, today.then, "nothing has changed");
    let now = today.now.pocd_after.unwrap();
    assert!((0.01..0.99).contains(&now), "{now}");
    assert!(pocd(Change::Deadline(at(900.0))) > now);
    assert!(pocd(Change::Deadline(at(200.0))) < now);
    assert!(pocd(Change::Slots(10)) > now);
    assert!(pocd(Change::Slots(2)) < now);
}

#[test]
fn slots_are_those_of_a_cluster_of_that_size() {
    let small = snapshot(2);
    for nodes in [1_usize, 2, 3, 5] {
        let slots = u32::try_from(2 * nodes).unwrap();
        let like = asked(&small, Change::Slots(slots)).then;
        let real = asked(&snapshot(nodes.max(2)), Change::Slots(slots)).then;
        assert_eq!(like.waiting, real.waiting, "{nodes} nodes");
        assert_eq!(like.pocd_after, real.pocd_after, "{nodes} nodes");
    }
}

#[test]
fn others_and_the_share_of_the_capacity_count() {
    let policy = Policy {
        capacity_share: 0.5,
        ..Policy::default()
    };
    let snapshot = world(50.0, 4, 2000)
        .others(0, 1000)
        .job(queued("a"))
        .build();
    for slots in [1, 3, 4, 9] {
        let mut changed = snapshot.clone();
        let demand = changed.jobs[0].demand.clone();
        let before = usable(&changed, 0.5).times(&demand);
        assert_eq!(before, 4);
        if slots > before {
            grow(&mut changed, &demand, slots - before, 0.5);
        }
        let share = share_of(&changed, 0.5, &demand, slots);
        assert_eq!(usable(&changed, share).times(&demand), slots);
        let answer = what_if(
            snapshot.clone(),
            Memory::default(),
            &policy,
            &JobKey::from("a"),
            Change::Slots(slots),
        );
        assert!(answer.is_ok_and(|answer| answer.slots == 4));
    }
}

#[test]
fn the_new_slots_are_shared_with_other_jobs() {
    let both = world(50.0, 2, 2000).job(queued("a")).job(queued("b"));
    let both = asked(&both.build(), Change::Slots(8)).then;
    let alone = asked(&snapshot(2), Change::Slots(8)).then;
    assert!(both.pocd_after < alone.pocd_after);
}

#[test]
fn the_policy_acts_on_the_job() {
    let answer = asked(&snapshot(2), Change::Slots(4));
    assert!(answer.now.optimized && answer.then.optimized);
}

#[test]
fn a_job_without_facts_has_no_answer() {
    let answer = what_if(
        snapshot(2),
        Memory::default(),
        &Policy::default(),
        &JobKey::from("b"),
        Change::Slots(4),
    );
    assert_eq!(answer, Err(Unanswered::UnknownJob));
}
