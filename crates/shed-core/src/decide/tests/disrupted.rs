//! The consequences of disruptions: other nodes, and a time without clones.

use super::{brief, plan_of, product};
use crate::fixtures::{JobBuilder, World, at, attempt, job, world};
use crate::fixtures::{four_nodes as cluster, uneven};
use crate::ids::{NodeName, TaskIndex};
use crate::memory::Memory;
use crate::plan::{Launch, Move, Plan, RefusalReason};
use crate::policy::Policy;
use crate::snapshot::{AttemptKind, KillKind, NodeIndex};

fn launches(plan: &Plan) -> Vec<&Launch> {
    let actions = plan.actions.iter();
    let launches = actions.filter_map(|planned| match &planned.action {
        Move::Launch(launch) => Some(launch),
        _ => None,
    });
    launches.collect()
}

fn named(nodes: &[&str]) -> Vec<NodeName> {
    nodes.iter().map(|name| NodeName::from(*name)).collect()
}

fn decided(text: &str, world: World) -> Plan {
    let policy = Policy {
        surge_max: 0,
        ..text.parse().unwrap()
    };
    plan_of(&world.build(), &Memory::default(), &policy).0
}

#[test]
fn retries_avoid_nodes_that_disrupted_their_task() {
    let disrupted = job("a")
        .tasks(2)
        .task_with(0, [], |task| task.avoid = vec![NodeIndex(2)]);
    let stuck = disrupted.with(|job| job.avoid = vec![NodeIndex(0)]);
    let world = world(9.0, 3, 2000).job(stuck);
    let plan = plan_of(&world.build(), &Memory::default(), &product()).0;
    let [retry, original] = launches(&plan)[..] else {
        panic!("{plan:?}");
    };
    assert_eq!((retry.task, retry.kind), (TaskIndex(0), AttemptKind::Retry));
    assert_eq!(retry.avoid, named(&["node-0", "node-2"]));
    assert_eq!(original.avoid, named(&["node-0"]));
}

#[test]
fn a_node_to_avoid_is_used_where_no_other_has_capacity() {
    let stuck = job("a").tasks(3).with(|job| job.avoid = vec![NodeIndex(0)]);
    let world = world(9.0, 2, 1000).job(stuck);
    let plan = plan_of(&world.build(), &Memory::default(), &product()).0;
    assert_eq!(brief(&plan), ["a: original 0", "a: original 1"]);
}

#[test]
fn clones_avoid_nodes_that_disrupted_their_task_if_possible() {
    let task = |nodes: &[usize]| {
        let nodes: Vec<_> = nodes.iter().copied().map(NodeIndex).collect();
        uneven().with(|job| job.tasks[2].avoid = nodes)
    };
    let policy = "shed-prime{max_clones=1}";
    let avoided = |job: JobBuilder| {
        let plan = decided(policy, cluster().job(job));
        let [clone] = launches(&plan)[..] else {
            panic!("{plan:?}");
        };
        clone.avoid.clone()
    };
    // Node 2 has the attempt that the clone is meant to overtake.
    assert_eq!(avoided(task(&[])), named(&["node-2"]));
    assert_eq!(avoided(task(&[0])), named(&["node-0", "node-2"]));
    // All nodes have capacity, and the chosen one is not excluded.
    let nodes = cluster().build().nodes.len();
    let everywhere: Vec<usize> = (0..nodes).collect();
    assert_eq!(avoided(task(&everywhere)).len(), nodes - 1);
}

#[test]
fn a_task_whose_clone_was_disrupted_gets_no_other_for_a_while() {
    let rests = |text: &str, since: f64| {
        let disrupted = uneven().with(|job| job.tasks[2].clone_disrupted = Some(at(since)));
        let plan = decided(text, cluster().job(disrupted));
        let refusals = plan.report.jobs[0].refusals.iter();
        let rests = refusals.filter(|refusal| refusal.why == RefusalReason::Disrupted);
        (launches(&plan).is_empty(), rests.count() > 0)
    };
    // The job has 160 s, so that θ is 3 s beyond t_avg; the clock shows 30 s.
    assert_eq!(rests("shed-prime", 29.0), (true, true));
    assert_eq!(rests("shed-prime", 21.0), (true, true));
    assert_eq!(rests("shed-prime", 19.0), (false, false));
}

#[test]
fn a_task_is_retried_while_its_abandoned_attempt_holds_capacity() {
    let abandoned = attempt(0).on(0).killed(KillKind::Abandon, 5.0);
    let job = || {
        job("a")
            .tasks(1)
            .parallelism(1)
            .task(0, [abandoned.clone()])
    };
    let check = |world: World, expected: &[&str]| {
        let plan = plan_of(&world.job(job()).build(), &Memory::default(), &product()).0;
        assert_eq!(brief(&plan), expected);
    };
    check(world(9.0, 2, 1000).unusable(0), &["a: retry 0"]);
    check(world(9.0, 1, 1000), &[]);
    check(world(9.0, 2, 1000), &["a: retry 0"]);
}
