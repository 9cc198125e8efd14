//! Estimates of nodes and of the rates of attempts, and the nodes that clones go to.

use super::{check, cluster, launches, plan, shed_plus, straggling};
use shed_core::fixtures::{JobBuilder, World, at, attempt, brief, job, plan_of, report, world};
use shed_core::ids::{NodeName, Tenant};
use shed_core::memory::Memory;
use shed_core::plan::{Refusal, RefusalReason};
use shed_core::snapshot::NodeIndex;
use shed_core::time::{Instant, Span};

/// The same with a second slow task on node 3: two witnesses mark the node as slow.
fn slow_node() -> JobBuilder {
    let slow = attempt(0).on(3).progress(0.1, 29.0);
    straggling().tasks(5).task(4, [slow])
}

#[test]
fn a_retry_avoids_slow_nodes_and_a_first_attempt_does_not() {
    // Node 3 has the most free capacity, and attempts there take four times the usual time.
    let cluster = || {
        let world = world(30.0, 4, 4000).others(0, 2000);
        world.others(1, 2000).others(2, 2000)
    };
    let next = slow_node().tasks(6).max_clones(0).deadline_in(600.0);
    let launched = plan(cluster().job(next));
    assert_eq!(brief(&launched), ["a: original 5"]);
    assert!(launches(&launched)[0].avoid.is_empty());
    let again = slow_node()
        .tasks(6)
        .max_clones(0)
        .deadline_in(600.0)
        .task(5, []);
    let launched = plan(cluster().job(again));
    assert_eq!(brief(&launched), ["a: retry 5"]);
    assert_eq!(launches(&launched)[0].avoid, [NodeName::from("node-3")]);
}

#[test]
fn a_clone_keeps_off_the_node_of_its_sibling_and_off_slow_ones() {
    let plan = plan(cluster(12).job(straggling()));
    let names = |nodes: &[NodeName]| nodes.iter().map(NodeName::to_string).collect::<String>();
    let kept_off: Vec<(String, String)> = launches(&plan)
        .iter()
        .map(|launch| (names(&launch.avoid), names(&launch.rather_not)))
        .collect();
    // Node 3 has the slow original. The scheduler chooses the node for a clone of this plan.
    let expected = [
        ("node-3", ""),
        ("node-3", "node-0"),
        ("node-3", "node-0node-1"),
        // No other node has capacity.
        ("", "node-0node-1node-2"),
        ("", "node-0node-1node-2"),
    ];
    assert_eq!(
        kept_off,
        expected.map(|(avoid, rather_not)| (avoid.into(), rather_not.into()))
    );
}

#[test]
fn a_clone_joins_its_sibling_only_if_no_other_node_has_capacity() {
    // All attempts run on node 3, so there is no evidence against it; node 0 has no capacity.
    let regular = || attempt(0).on(3).progress(0.4, 29.0);
    let together = || {
        job("a")
            .deadline_in(160.0)
            .max_clones(1)
            .task(0, [regular()])
            .task(1, [regular()])
            .task(2, [regular()])
            .task(3, [attempt(0).on(3).progress(0.1, 29.0)])
            .with(|job| job.eligible_nodes = [0, 3].map(NodeIndex).into())
    };
    let world = || world(30.0, 4, 5000).others(0, 5000);
    check(world().job(together()), &["a: clone 3"]);
    let launched = plan(world().job(together()));
    assert_eq!(launched.report.capacity.used_after.get("cpu"), 5000);
}

#[test]
fn no_clone_goes_to_a_node_believed_slow() {
    let eligible = slow_node().with(|job| job.eligible_nodes = [0, 3].map(NodeIndex).into());
    // One slot is left, and it is there.
    let plan = plan(world(30.0, 4, 5000).others(0, 4000).job(eligible));
    assert_eq!(brief(&plan), [""; 0]);
    let first = Refusal {
        task: shed_core::ids::TaskIndex(3),
        why: RefusalReason::NoNode,
    };
    assert_eq!(report(&plan, "a").refusals[0], first);
}

/// When node 3 was last seen slow, as a pass over the cluster remembers it.
fn node_3_seen_slow(cluster: World, memory: &Memory) -> (Memory, Option<Instant>) {
    let (_, after) = plan_of(&cluster.build(), memory, &shed_plus());
    let by_tenant = after.slow_node(&NodeName::from("node-3"));
    let seen = by_tenant.map(|slow| slow[&Tenant::from("default")].seen);
    (after, seen)
}

#[test]
fn a_slow_node_is_remembered_when_nothing_runs_there_any_more() {
    let (memory, seen) = node_3_seen_slow(cluster(12).job(straggling()), &Memory::default());
    assert_eq!(seen, Some(at(30.0)));
    let (memory, seen) = node_3_seen_slow(world(100.0, 4, 4000), &memory);
    assert_eq!(seen, Some(at(30.0)));
    assert_eq!(node_3_seen_slow(world(900.0, 4, 4000), &memory).1, None);
}

#[test]
fn much_work_clears_a_slow_node_but_a_first_report_does_not() {
    let (memory, _) = node_3_seen_slow(cluster(12).job(slow_node()), &Memory::default());
    // Node 3 now does as well as the others.
    let even = |progress: f64| {
        let job = (0..8).fold(
            job("b").tasks(8).submitted(30.0).deadline_in(160.0),
            |job, task| {
                let number = task as usize % 4;
                job.task(
                    task,
                    [attempt(0)
                        .launched(30.0)
                        .on(number)
                        .progress(progress, 39.0)],
                )
            },
        );
        world(40.0, 4, 12000).job(job)
    };
    let avoided = |progress: f64| {
        let again = even(progress).job(job("c").submitted(30.0).tasks(1).task(0, []));
        let (plan, _) = plan_of(&again.build(), &memory, &shed_plus());
        let slow = NodeName::from("node-3");
        launches(&plan)
            .iter()
            .any(|launch| launch.avoid.contains(&slow))
    };
    assert!(avoided(0.01));
    assert!(!avoided(0.6));
    assert_eq!(node_3_seen_slow(even(0.01), &memory).1, Some(at(30.0)));
    assert_eq!(node_3_seen_slow(even(0.6), &memory).1, None);
}

#[test]
fn a_node_is_seen_slow_though_only_slow_attempts_are_left() {
    let slow = |number| attempt(0).on(number).progress(0.1, 29.0);
    let left = job("a")
        .deadline_in(160.0)
        .task(0, [slow(3)])
        .task(1, [slow(3)])
        .task(2, [slow(3)])
        .with(|job| job.ended_runs = vec![Span::from_seconds(70); 5]);
    let (_, seen) = node_3_seen_slow(cluster(12).job(left), &Memory::default());
    assert_eq!(seen, Some(at(30.0)));
}

#[test]
fn a_start_among_many_does_not_count_against_an_attempts_rate() {
    // 18 s to the first 2 %, then 4 % per second: it will be done in 12 s, not in 14.
    let late_starter = attempt(0)
        .on(0)
        .progress(0.5, 30.0)
        .first_report(0.02, 18.0);
    let plan = plan(cluster(1).job(job("a").tasks(1).deadline_in(60.0).task(0, [late_starter])));
    let expected = report(&plan, "a").estimated_completion;
    assert_eq!(expected, Some(at(30.0 + 12.5)));
}
