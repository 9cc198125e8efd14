//! Shares of tenants, under every policy and order.

use proptest::prelude::*;
use shed_core::decide::decide;
use shed_core::fixtures::world;
use shed_core::ids::Tenant;
use shed_core::memory::Memory;
use shed_core::plan::{JobReport, Move, Plan, PlannedMove};
use shed_core::plan_check::plan_check;
use shed_core::policy::{Order, Policy, Speculation};
use shed_core::snapshot::Snapshot;

use super::properties::{any_memory, any_policy, any_snapshot};

/// Gives the jobs to tenants, in turn.
fn among(mut snapshot: Snapshot, tenants: usize) -> Snapshot {
    for (at, job) in snapshot.jobs.iter_mut().enumerate() {
        job.tenant = Tenant::from(format!("t-{}", at % tenants).as_str());
    }
    snapshot.weights.insert(Tenant::from("absent"), 1.0);
    snapshot
}

fn weighted(mut snapshot: Snapshot, weights: [u32; 3]) -> Snapshot {
    let named = weights.iter().enumerate();
    let named = named.map(|(at, weight)| (format!("t-{at}"), f64::from(*weight)));
    let named = named.map(|(name, weight)| (Tenant::from(name.as_str()), weight));
    snapshot.weights = named.collect();
    snapshot
}

/// The same jobs on nodes that hold all their tasks with all clones.
fn roomy(snapshot: &Snapshot) -> Snapshot {
    let large = world(100.0, snapshot.nodes.len(), 10_000_000).build();
    Snapshot {
        nodes: large.nodes,
        ..snapshot.clone()
    }
}

/// The reports of all jobs. What is promised follows from the tenant's part by weight.
fn without_promises(plan: Plan) -> Vec<JobReport> {
    let mut jobs = plan.report.jobs;
    jobs.iter_mut().for_each(|job| job.feasibility = None);
    jobs
}

/// The policy with all capacity, so that what roomy nodes hold is within the shares.
fn without_limit(policy: Policy) -> Policy {
    Policy {
        capacity_share: 1.0,
        ..policy
    }
}

/// What is launched and stopped. Which nodes are slow is judged by the number of tenants that saw it.
fn without_avoided_nodes(plan: Plan) -> Vec<PlannedMove> {
    let mut actions = plan.actions;
    for planned in &mut actions {
        if let Move::Launch(launch) = &mut planned.action {
            launch.avoid.clear();
            launch.rather_not.clear();
        }
    }
    actions
}

fn any_weights() -> impl Strategy<Value = [u32; 3]> {
    [1..1000u32, 1..1000u32, 1..1000u32]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a_tenant_that_is_alone_has_no_share(
        snapshot in any_snapshot(),
        policy in any_policy(),
        memory in any_memory(),
        weights in any_weights(),
    ) {
        let snapshot = among(snapshot, 1);
        let (plan, after) = decide(&snapshot, memory.clone(), &policy);
        prop_assert!(plan.report.shares.is_empty());
        prop_assert!(plan.report.jobs.iter().all(|job| job.waiting_for_share == 0));
        let weighted = weighted(snapshot.clone(), weights);
        prop_assert_eq!(&decide(&weighted, memory, &policy), &(plan, after.clone()));
        // Nor does what it used before matter.
        let (again, _) = decide(&snapshot, after, &policy);
        prop_assert!(again.report.shares.is_empty());
    }

    #[test]
    fn within_shares_all_is_decided_as_without(
        snapshot in any_snapshot(),
        policy in any_policy(),
        memory in any_memory(),
        weights in any_weights(),
    ) {
        let (snapshot, policy) = (among(roomy(&snapshot), 3), without_limit(policy));
        let (plan, _) = decide(&snapshot, memory.clone(), &policy);
        let (weighted, _) = decide(&weighted(snapshot, weights), memory, &policy);
        prop_assert_eq!(&plan.actions, &weighted.actions);
        prop_assert_eq!(without_promises(plan), without_promises(weighted));
    }

    #[test]
    fn within_shares_first_attempts_are_those_of_one_tenant(
        snapshot in any_snapshot(),
        policy in any_policy(),
    ) {
        // The order by tenants is about tenants, and decisions on clones follow what each tenant's attempts show.
        let order = match policy.order {
            Order::Capacity => Order::Fifo,
            order => order,
        };
        let policy = Policy { order, speculation: Speculation::none(), ..without_limit(policy) };
        let (one, _) = decide(&among(roomy(&snapshot), 1), Memory::default(), &policy);
        let (three, _) = decide(&among(roomy(&snapshot), 3), Memory::default(), &policy);
        prop_assert_eq!(without_avoided_nodes(one), without_avoided_nodes(three));
    }

    #[test]
    fn plans_for_several_tenants_are_valid(
        snapshot in any_snapshot(),
        policy in any_policy(),
        memory in any_memory(),
        weights in any_weights(),
    ) {
        let snapshot = weighted(among(snapshot, 3), weights);
        let (plan, after) = decide(&snapshot, memory, &policy);
        prop_assert_eq!(plan_check(&snapshot, &policy, &plan), vec![]);
        let mut later = snapshot;
        later.now = shed_core::fixtures::at(160.0);
        let (plan, _) = decide(&later, after, &policy);
        prop_assert_eq!(plan_check(&later, &policy, &plan), vec![]);
    }
}
