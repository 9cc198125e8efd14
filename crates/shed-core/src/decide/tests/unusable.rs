//! Nodes that take no attempts: running attempts there are charged to these nodes alone.

use super::{brief, check, check_by, plan, plan_of, product, surging};
use crate::capacity::Capacity;
use crate::fixtures::uneven;
use crate::fixtures::{JobBuilder, World, attempt, job, world};
use crate::ids::{NodeName, Tenant};
use crate::memory::{Memory, NodeSlowness};
use crate::plan::Move;
use crate::policy::Policy;
use crate::snapshot::{KillKind, Node, NodeIndex, Preemption, Resume};

/// Three nodes of two slots, all full. Clones of a straggler run on the first two, another task of the same job on
/// the third, which takes no more attempts.
fn cordoned() -> World {
    world(9.0, 3, 2000).unusable(2).job(
        job("a")
            .tasks(3)
            .task(0, straggler())
            .task(1, one_on(2))
            .task(2, one_on(2))
            .with(|job| job.deadline = None),
    )
}

fn straggler() -> [crate::fixtures::AttemptBuilder; 4] {
    let clone = |number, node| attempt(number).on(node).launched(5.0).progress(0.27, 9.0);
    [
        attempt(0).on(0).progress(0.5, 9.0),
        clone(1, 0),
        clone(2, 1),
        clone(3, 1),
    ]
}

fn one_on(node: usize) -> [crate::fixtures::AttemptBuilder; 1] {
    [attempt(0).on(node).progress(0.5, 9.0)]
}

#[test]
fn attempts_on_a_cordoned_node_cost_no_clone_and_no_surge() {
    check(cordoned(), &[]);
    let snapshot = cordoned().build();
    let capacity = Capacity::new(&snapshot, 1.0);
    assert_eq!(capacity.surging, [0; 0]);
    assert_eq!(capacity.usable.get("cpu"), 4000);
    assert_eq!(
        capacity.used.get("cpu"),
        4000,
        "what runs apart uses nothing of it"
    );
    // The one pod beyond capacity is available to the waiting job.
    let large = job("b").tasks(1).cpu(9000);
    check_by(
        &surging(),
        cordoned().job(large),
        &["b: original 0 beyond capacity"],
    );
}

#[test]
fn a_healthy_nodes_capacity_is_used_while_another_is_cordoned() {
    let half_empty = world(9.0, 3, 2000)
        .unusable(2)
        .job(job("a").tasks(2).task(0, one_on(2)).task(1, one_on(2)));
    check(
        half_empty.job(job("b").tasks(5)),
        &[
            "b: original 0",
            "b: original 1",
            "b: original 2",
            "b: original 3",
        ],
    );
}

#[test]
fn a_taint_that_keeps_every_job_off_is_as_good_as_a_cordon() {
    let tainted = || {
        let first_two = |job: JobBuilder| {
            job.with(|job| job.eligible_nodes = [NodeIndex(0), NodeIndex(1)].into())
        };
        world(9.0, 3, 2000)
            .job(first_two(
                job("a").tasks(2).task(0, one_on(2)).task(1, one_on(2)),
            ))
            .job(first_two(job("b").tasks(5)))
    };
    check(
        tainted(),
        &[
            "b: original 0",
            "b: original 1",
            "b: original 2",
            "b: original 3",
        ],
    );
    let tolerant = job("c").tasks(1).done([0]).submitted(1.0);
    check(
        tainted().job(tolerant),
        &[
            "b: original 0",
            "b: original 1",
            "b: original 2",
            "b: original 3",
        ],
    );
}

#[test]
fn a_job_that_lists_an_unusable_node_gets_no_launch_there() {
    let lists_all = job("b").tasks(5).with(|job| {
        job.eligible_nodes = (0..2).map(NodeIndex).collect();
    });
    let cluster = world(9.0, 2, 2000).unusable(0).job(lists_all);
    check(cluster, &["b: original 0", "b: original 1"]);
}

#[test]
fn a_clone_on_an_unusable_node_makes_capacity_for_nobody() {
    let policy = Policy {
        capacity_share: 0.5,
        ..product()
    };
    // Usable are 2000 of the two healthy nodes, which the originals take.
    let pair = |node| [attempt(0).on(node), attempt(1).on(2)];
    let pairs = job("a").tasks(2).task(0, pair(0)).task(1, pair(1));
    let cluster = world(9.0, 3, 2000)
        .unusable(2)
        .job(pairs)
        .job(job("b").tasks(1));
    check_by(&policy, cluster, &[]);
}

#[test]
fn what_dies_on_an_unusable_node_leaves_no_capacity() {
    let dying = attempt(1).on(1).launched(5.0).killed(KillKind::Evict, 8.0);
    let dies = |unusable: bool| {
        let clones = [
            attempt(0).on(0),
            dying.clone(),
            attempt(2).on(0).launched(6.0),
        ];
        let nodes = world(9.0, 2, 2000).job(job("b").tasks(1));
        let nodes = if unusable {
            nodes.unusable(1)
        } else {
            nodes.others(1, 1000)
        };
        nodes.job(job("a").tasks(1).task(0, clones).submitted(1.0))
    };
    let only_the_healthy = |world: World| {
        let mut snapshot = world.build();
        for job in &mut snapshot.jobs {
            job.eligible_nodes = [NodeIndex(0), NodeIndex(1)].into();
        }
        brief(&plan_of(&snapshot, &Memory::default(), &product()).0)
    };
    assert_eq!(
        only_the_healthy(dies(false)),
        [""; 0],
        "the launch waits for the dying one's capacity"
    );
    assert_eq!(only_the_healthy(dies(true)), ["a: evict 0.2 for 0.0"]);
}

#[test]
fn no_launch_avoids_an_unusable_node_for_being_slow() {
    let slow = |unusable: bool| {
        let slow = NodeSlowness {
            ln_ratio: 1.2,
            weight: 4.0,
            seen: crate::fixtures::at(9.0),
        };
        let mut memory = Memory::default();
        let by_tenant = [(Tenant::from("default"), slow)].into();
        memory.set_slow_nodes([(NodeName::from("node-1"), by_tenant)].into());
        let again = job("a").tasks(1).task(0, []);
        let cluster = world(9.0, 2, 2000).job(again);
        let cluster = if unusable {
            cluster.unusable(1)
        } else {
            cluster
        };
        let (plan, after) = plan_of(&cluster.build(), &memory, &product());
        assert!(after.slow_node(&NodeName::from("node-1")).is_some());
        let Move::Launch(launch) = &plan.actions[0].action else {
            panic!("{plan:?}");
        };
        launch.avoid.clone()
    };
    assert_eq!(slow(false), [NodeName::from("node-1")]);
    assert_eq!(slow(true), []);
}

/// Full healthy nodes, and work with a checkpoint that has time on node 1.
pub(super) fn patient() -> JobBuilder {
    let long = |node| attempt(0).on(node).progress(0.3, 29.0).checkpoint(0.3);
    job("a")
        .tasks(2)
        .deadline_in(1000.0)
        .with(|job| job.rules.resume = Resume::Checkpoint)
        .task(0, [long(0)])
        .task(1, [long(1)])
        .with(|job| job.rules.preemption = Preemption::WhenCheckpointed)
}

#[test]
fn an_attempt_on_an_unusable_node_is_not_preempted() {
    let urgent = job("b").tasks(1).submitted(25.0).deadline_in(35.0);
    let urgent = || urgent.clone().ended_runs([20.0; 4]);
    let cluster = || world(30.0, 2, 1000).job(patient()).job(urgent());
    assert_eq!(brief(&plan(cluster(), &product())), ["a: preempt 1.0"]);
    assert_eq!(
        brief(&plan(cluster().unusable(1), &product())),
        ["a: preempt 0.0"]
    );
    assert_eq!(
        brief(&plan(cluster().unusable(0).unusable(1), &product())),
        [""; 0]
    );
}

#[test]
fn a_lone_attempt_on_an_unusable_node_is_not_restarted() {
    let cluster = || {
        let waiting = job("b").submitted(20.0).tasks(2).deadline_in(500.0);
        world(30.0, 3, 1000).job(uneven()).job(waiting)
    };
    let restarts = ["a: restart 7.0"];
    assert_eq!(brief(&plan(cluster(), &product())), restarts);
    let elsewhere = (0..3).filter(|&node| node != 2);
    for node in elsewhere {
        assert_eq!(brief(&plan(cluster().unusable(node), &product())), restarts);
    }
    assert_eq!(brief(&plan(cluster().unusable(2), &product())), [""; 0]);
}

#[test]
fn a_node_of_an_older_recording_is_usable() {
    let before = r#"{"name": "a", "allocatable": {}, "free": {}, "used_by_others": {}}"#;
    let node: Node = serde_json::from_str(before).unwrap();
    assert!(node.usable);
    let text = serde_json::to_string(&node).unwrap();
    assert!(!text.contains("usable"), "{text}");
    let cordoned = Node {
        usable: false,
        ..node
    };
    let text = serde_json::to_string(&cordoned).unwrap();
    assert_eq!(serde_json::from_str::<Node>(&text).unwrap(), cordoned);
}
