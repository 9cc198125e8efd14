//! The order of jobs and nodes in the snapshot does not matter, whatever the policy, the order of first attempts and
//! the distribution.

use proptest::prelude::*;
use shed_core::decide::decide;
use shed_core::memory::Memory;
use shed_core::plan::{JobReport, Launch, Move, Plan};
use shed_core::policy::{Order, Policy};
use shed_core::snapshot::{NodeIndex, Snapshot};

use super::properties::{NODES, any_memory, any_policy, any_snapshot};

/// The snapshot with its jobs and nodes in another order.
fn reordered(snapshot: &Snapshot, jobs: &[usize], nodes: &[usize]) -> Snapshot {
    let mut other = snapshot.clone();
    let jobs = jobs.iter().filter_map(|&at| snapshot.jobs.get(at));
    other.jobs = jobs.cloned().collect();
    other.nodes = nodes.iter().map(|&at| snapshot.nodes[at].clone()).collect();
    let moved = |node: NodeIndex| {
        let place = nodes.iter().position(|&at| at == node.0);
        NodeIndex(place.unwrap())
    };
    for job in &mut other.jobs {
        let mut eligible: Vec<NodeIndex> = job.eligible_nodes.iter().map(|&n| moved(n)).collect();
        eligible.sort_unstable();
        job.eligible_nodes = eligible.into();
        let attempts = job.tasks.iter_mut().flat_map(|task| &mut task.attempts);
        for attempt in attempts {
            attempt.node = attempt.node.map(moved);
        }
    }
    other
}

/// Nodes whose free capacities all differ, whatever attempts end on them: all demands are multiples of half a core, and
/// only the first node's number is odd.
fn without_ties(mut snapshot: Snapshot) -> Snapshot {
    for (node, milli_cpu) in snapshot.nodes.iter_mut().zip([1, 2, 4]) {
        let taken = |amounts: &mut shed_core::resources::Resources, by: i64| {
            amounts.set("cpu", amounts.get("cpu") + by);
        };
        let milli_cpu = milli_cpu - node.used_by_others.get("cpu") % 2;
        taken(&mut node.used_by_others, milli_cpu);
        taken(&mut node.free, -milli_cpu);
    }
    snapshot
}

fn launch(launch: &Launch) -> String {
    let mut avoid: Vec<&str> = launch.avoid.iter().map(|name| &*name.0).collect();
    avoid.sort_unstable();
    let from = launch.resume.as_ref().map(|point| point.progress);
    let (task, kind, surge) = (launch.task, launch.kind.label(), launch.surge);
    format!(
        "{kind} {task} from {from:?} not {avoid:?} on {:?} {surge}",
        launch.node
    )
}

/// Actions, unordered, without the figures of their reasons, because sums of floats depend on the order to the last
/// bit.
fn actions(plan: &Plan) -> Vec<String> {
    let actions = plan.actions.iter().map(|planned| match &planned.action {
        Move::Launch(action) => format!("{} {}", planned.job, launch(action)),
        other => format!("{} {other:?}", planned.job),
    });
    let mut actions: Vec<String> = actions.collect();
    actions.sort();
    actions
}

/// The reports of all jobs, unordered.
fn reports(plan: &Plan) -> Vec<String> {
    let report = |job: &JobReport| {
        let mut refusals: Vec<String> = job.refusals.iter().map(|r| format!("{r:?}")).collect();
        refusals.sort();
        let (optimized, stragglers) = (job.optimized, &job.stragglers);
        format!(
            "{} {optimized} {stragglers:?} {refusals:?} {}",
            job.key, job.waiting
        )
    };
    let mut reports: Vec<String> = plan.report.jobs.iter().map(report).collect();
    reports.sort();
    reports
}

fn shuffled(count: usize) -> impl Strategy<Value = Vec<usize>> {
    Just((0..count).collect::<Vec<usize>>()).prop_shuffle()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn the_order_of_jobs_and_nodes_in_the_snapshot_does_not_matter(
        snapshot in any_snapshot(),
        policy in any_policy(),
        memory in any_memory(),
        jobs in shuffled(5),
        nodes in shuffled(NODES),
    ) {
        let snapshot = without_ties(snapshot);
        // These two go node by node: a node's position is its number.
        let nodes = match policy.order {
            Order::Tetris | Order::DollyMp => (0..NODES).collect(),
            _ => nodes,
        };
        let other = reordered(&snapshot, &jobs, &nodes);
        let plan = |snapshot: &Snapshot, memory: &Memory, policy: &Policy| {
            decide(snapshot, memory.clone(), policy).0
        };
        let (one, other) = (plan(&snapshot, &memory, &policy), plan(&other, &memory, &policy));
        prop_assert_eq!(actions(&one), actions(&other));
        prop_assert_eq!(reports(&one), reports(&other));
        prop_assert_eq!(one.report.next_pass, other.report.next_pass);
    }
}
