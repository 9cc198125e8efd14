//! Reports of one tenant's attempts hardly affect decisions about another tenant's.

use std::collections::BTreeMap;

use super::{brief, plan_of, report};
use crate::fixtures::{JobBuilder, World, at, attempt, job, world};
use crate::ids::{NodeName, Tenant};
use crate::memory::{Memory, NodeSlowness, SlowNodes};
use crate::plan::{Launch, Move, Plan};
use crate::policy::Policy;
use crate::snapshot::NodeIndex;
use crate::time::Span;

/// Nodes that the victim may use; the attempts of others run there and on 21 more.
const USABLE: usize = 10;
const NODES: usize = 31;

/// At no price, a straggler gets all its clones at once.
const FREE_CLONES: &str = "shed-prime{clone_price=0}";

fn of(tenant: &str, job: JobBuilder) -> JobBuilder {
    let tenant = Tenant::from(tenant);
    job.with(|job| job.tenant = tenant)
}

/// At 30 s: three tasks on node 0 take 70 s, task 3 takes 280 s, and 120 s are allowed.
fn victim() -> JobBuilder {
    let report = |share| attempt(0).on(0).progress(share, 29.0);
    // The report of a clone would come too late for another clone.
    let regular = || report(0.4).first_report(0.39, 28.5);
    let victim = job("victim")
        .deadline_in(120.0)
        .max_clones(3)
        .task(0, [regular()])
        .task(1, [regular()])
        .task(2, [regular()])
        .task(3, [report(0.1).first_report(0.09, 28.5)]);
    of("victim", victim).with(|job| job.eligible_nodes = (0..USABLE).map(NodeIndex).collect())
}

/// 124 tiny attempts, four per node. They report the victim's usable nodes, from `first` on, as slow and all others
/// as fast.
fn liars_from(first: usize, tenant: &str) -> JobBuilder {
    let tiny = of(tenant, job(tenant))
        .tasks(124)
        .cpu(1)
        .deadline_in(3000.0);
    (0..124).fold(tiny, |tiny, task| {
        let node = task as usize % NODES;
        let done = if (first..USABLE).contains(&node) {
            0.1
        } else {
            0.5
        };
        tiny.task(task, [attempt(0).on(node).progress(done, 29.0)])
    })
}

fn liars(tenant: &str) -> JobBuilder {
    liars_from(0, tenant)
}

fn cluster() -> World {
    world(30.0, NODES, 16_000)
}

fn decided(text: &str, world: World, memory: &Memory) -> (Plan, Memory) {
    let policy: Policy = text.parse().unwrap();
    plan_of(&world.build(), memory, &policy)
}

fn clones(plan: &Plan) -> Vec<Launch> {
    let of_victim = plan.actions.iter().filter(|a| &*a.job.0 == "victim");
    let launches = of_victim.filter_map(|planned| match &planned.action {
        Move::Launch(launch) => Some(launch.clone()),
        _ => None,
    });
    launches.collect()
}

#[test]
fn a_tenant_that_lies_about_nodes_takes_no_clones_from_another() {
    let alone = decided(FREE_CLONES, cluster().job(victim()), &Memory::default()).0;
    assert_eq!(brief(&alone), ["victim: clone 3"; 3]);
    let lied_to = cluster().job(victim()).job(liars("liar"));
    let (lied_to, _) = decided(FREE_CLONES, lied_to, &Memory::default());
    assert_eq!(report(&lied_to, "victim").refusals, []);
    assert_eq!(clones(&lied_to).len(), 3);
    for (clone, alone) in clones(&lied_to).iter().zip(clones(&alone)) {
        assert_eq!(clone.avoid, alone.avoid);
        // One tenant alone does not even make a preference.
        assert_eq!(clone.rather_not, alone.rather_not);
    }
}

#[test]
fn a_tenants_own_attempts_still_rule() {
    let own = cluster().job(victim()).job(liars("victim"));
    let (plan, _) = decided(FREE_CLONES, own, &Memory::default());
    assert!(clones(&plan).is_empty());
    let refusals = &report(&plan, "victim").refusals;
    assert_eq!(refusals[0].why.label(), "no_node");
}

#[test]
fn several_tenants_that_agree_make_a_preference() {
    let liars = ["b", "c", "d", "e", "f"].map(|tenant| liars_from(2, tenant));
    let all = liars.into_iter().fold(cluster().job(victim()), World::job);
    let (plan, _) = decided(FREE_CLONES, all, &Memory::default());
    let clones = clones(&plan);
    assert_eq!(clones.len(), 3);
    let doubtful: Vec<NodeName> = (2..USABLE)
        .map(|node| NodeName::from(format!("node-{node}").as_str()))
        .collect();
    // The first clone gets node 1. The others go to nodes that only other tenants report as slow.
    assert_eq!(clones[0].rather_not, doubtful);
    assert_eq!(clones[0].avoid, [NodeName::from("node-0")]);
    // The clone does not avoid the node that it is assumed to get, but it avoids those of its siblings.
    assert_eq!(clones[2].rather_not.len(), doubtful.len());
    assert!(clones[2].rather_not.contains(&NodeName::from("node-1")));
}

#[test]
fn the_memory_of_slow_nodes_names_the_tenants_that_reported() {
    let lied_to = cluster().job(victim()).job(liars("liar"));
    let (_, memory) = decided("shed-prime", lied_to, &Memory::default());
    let node = NodeName::from("node-3");
    let tenants: Vec<_> = memory.slow_node(&node).unwrap().keys().collect();
    assert_eq!(tenants, [&Tenant::from("liar")]);
    let text = serde_json::to_string(&memory).unwrap();
    assert_eq!(serde_json::from_str::<Memory>(&text).unwrap(), memory);
    let (plan, _) = decided(FREE_CLONES, cluster().job(victim()), &memory);
    assert_eq!(clones(&plan).len(), 3);
    // The tenant still remembers the evidence of its own attempts.
    let slowness = NodeSlowness {
        ln_ratio: 1.3,
        weight: 4.0,
        seen: at(29.0),
    };
    let own = BTreeMap::from([(Tenant::from("victim"), slowness)]);
    let nodes = (1..USABLE).map(|node| format!("node-{node}"));
    let slow: SlowNodes = nodes
        .map(|node| (NodeName::from(node.as_str()), own.clone()))
        .collect();
    let mut memory = Memory::default();
    memory.set_slow_nodes(slow);
    let (plan, _) = decided(FREE_CLONES, cluster().job(victim()), &memory);
    assert!(clones(&plan).is_empty());
}

#[test]
fn a_memory_of_before_is_read() {
    let text = r#"{"jobs":{},"slow_nodes":{"node-0":{"ln_ratio":1.0,"weight":2.0,"seen":5}}}"#;
    let memory: Memory = serde_json::from_str(text).unwrap();
    assert_eq!(memory, Memory::default());
}

#[test]
fn how_long_launches_take_is_each_tenants_own() {
    let waiting = || {
        let job = job("victim").tasks(6).deadline_in(160.0);
        of("victim", job.ended_runs([60.0; 4]))
    };
    let completion = |own: Option<i64>| {
        let mut snapshot = cluster().job(waiting()).launch_overhead(2.0).build();
        let own = own.map(|seconds| (Tenant::from("victim"), Span::from_seconds(seconds)));
        let of_another = (Tenant::from("liar"), Span::from_seconds(3000));
        snapshot.launch_overheads = own.into_iter().chain([of_another]).collect();
        let policy: Policy = "shed-prime{max_clones=0}".parse().unwrap();
        let (plan, _) = plan_of(&snapshot, &Memory::default(), &policy);
        let pocd = report(&plan, "victim").pocd_before.unwrap();
        (pocd * 1e6) as i64
    };
    assert_eq!(completion(None), completion(Some(2)));
    assert!(completion(Some(40)) < completion(None));
}
