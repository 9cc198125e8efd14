//! Orders that choose nodes, and those that leave it to the cluster's scheduler.

use super::{plan_of, product};
use crate::fixtures::{JobBuilder, job, world};
use crate::ids::NodeName;
use crate::memory::Memory;
use crate::plan::Move;
use crate::policy::{Order, Policy};
use crate::resources::Resources;
use crate::snapshot::{NodeIndex, Snapshot};

const GIB: i64 = 1 << 30;

fn amounts(milli_cpu: i64, gib: i64) -> Resources {
    Resources::from_pairs([("cpu", milli_cpu), ("memory", gib * GIB)])
}

fn asking(key: &str, milli_cpu: i64, gib: i64) -> JobBuilder {
    let demand = amounts(milli_cpu, gib);
    job(key).with(|job| job.demand = demand)
}

/// Nodes of 8 cores and 8 GiB with this much free.
fn cluster(free: &[(i64, i64)], jobs: impl IntoIterator<Item = JobBuilder>) -> Snapshot {
    let mut world = world(30.0, free.len(), 0);
    for job in jobs {
        world = world.job(job);
    }
    let mut snapshot = world.build();
    for (node, &(milli_cpu, gib)) in snapshot.nodes.iter_mut().zip(free) {
        node.allocatable = amounts(8000, 8);
        node.free = amounts(milli_cpu, gib);
        node.used_by_others = amounts(8000 - milli_cpu, 8 - gib);
    }
    snapshot
}

/// `a 0 on node-1`, in the plan's order.
fn launches(order: Order, snapshot: &Snapshot) -> Vec<String> {
    let policy = Policy { order, ..product() };
    let (plan, _) = plan_of(snapshot, &Memory::default(), &policy);
    let launches = plan.actions.iter().map(|planned| match &planned.action {
        Move::Launch(launch) => {
            let node = launch.node.as_ref().map_or("any", |node| &*node.0);
            format!("{} {} on {node}", planned.job, launch.task)
        }
        other => panic!("{other:?}"),
    });
    launches.collect()
}

#[test]
fn only_orders_whose_papers_place_name_nodes() {
    let snapshot = cluster(&[(1000, 1), (8000, 8)], [asking("a", 1000, 1).tasks(2)]);
    for order in Order::ALL {
        let expected = match order {
            // Server by server, the lowest first.
            Order::Tetris | Order::DollyMp => ["a 0 on node-0", "a 1 on node-1"],
            _ => ["a 0 on any", "a 1 on any"],
        };
        assert_eq!(launches(order, &snapshot), expected, "{order}");
    }
}

#[test]
fn the_job_that_fits_a_node_best_goes_there() {
    // Both jobs have unknown times, so that fit alone decides. Shares of a node: `cpu` asks for
    // (1/2, 1/8) and `memory` for (1/8, 1/2); free are (1, 1/2) and (1/2, 1).
    let jobs = || {
        [
            asking("memory", 1000, 4).tasks(1),
            asking("cpu", 4000, 1).tasks(1),
        ]
    };
    let expected = ["cpu 0 on node-0", "memory 0 on node-1"];
    for order in [Order::Tetris, Order::DollyMp] {
        let other_way = cluster(&[(8000, 4), (4000, 8)], jobs());
        // 1/2 + 1/16 against 1/8 + 1/4; after that `memory` no longer fits on node 0.
        let narrow = cluster(&[(8000, 4), (1000, 8)], jobs());
        assert_eq!(launches(order, &narrow), expected, "{order}");
        assert_eq!(launches(order, &other_way)[0], expected[0], "{order}");
    }
}

#[test]
fn dollymp_fits_within_a_level_and_tetris_weighs_fit_and_work() {
    // `long` fits better, and has a hundred times the work.
    let short = asking("short", 1000, 1).tasks(1).ended_runs([5.0, 5.0]);
    let long = asking("long", 4000, 4).tasks(1).ended_runs([500.0, 500.0]);
    let snapshot = cluster(&[(4000, 4)], [long, short]);
    // Alignments 1/2 and 1/8; ε/p is twice their mean for the short job, about nothing for the
    // long one: 1/8 + 5/8 against 1/2.
    for order in [Order::DollyMp, Order::Tetris] {
        assert_eq!(launches(order, &snapshot), ["short 0 on node-0"], "{order}");
    }
}

#[test]
fn a_job_goes_to_its_own_nodes_alone() {
    let own = asking("a", 1000, 1).tasks(2);
    let own = own.with(|job| job.eligible_nodes = [NodeIndex(1)].into());
    let snapshot = cluster(&[(8000, 8), (2000, 2)], [own]);
    for order in [Order::DollyMp, Order::Tetris] {
        let expected = ["a 0 on node-1", "a 1 on node-1"];
        assert_eq!(launches(order, &snapshot), expected, "{order}");
    }
}

#[test]
fn a_named_node_is_not_one_to_avoid() {
    let again = asking("a", 1000, 1).tasks(1).task(0, []);
    let snapshot = cluster(&[(8000, 8)], [again]);
    let policy = Policy {
        order: Order::DollyMp,
        ..product()
    };
    let (plan, _) = plan_of(&snapshot, &Memory::default(), &policy);
    let Move::Launch(launch) = &plan.actions[0].action else {
        panic!("{plan:?}");
    };
    assert_eq!(launch.node, Some(NodeName::from("node-0")));
    assert!(launch.avoid.is_empty());
}
