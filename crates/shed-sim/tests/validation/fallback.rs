//! Broken policies, invalid facts and too much work: each task still gets its one attempt, and each event is counted.

use shed_core::decide::decide;
use shed_core::ids::NodeName;
use shed_core::memory::Memory;
use shed_core::plan::Plan;
use shed_core::policy::{Order, Policy, Speculation};
use shed_core::resources::Resources;
use shed_core::snapshot::Snapshot;
use shed_core::time::Instant;
use shed_sim::engine::Engine;
use shed_sim::settings::{Cluster, NodeChange, NodeSpec, Resuming, Settings};
use shed_sim::trace::{Demand, Job, Trace};

use crate::common::{fifo, job, run};
use crate::engine::{mixed, speculating};

fn tasks(jobs: &[Job]) -> u64 {
    jobs.iter().map(Job::tasks).sum::<usize>() as u64
}

/// Panics for every policy that speculates.
fn panicking(snapshot: &Snapshot, memory: Memory, policy: &Policy) -> (Plan, Memory) {
    assert_eq!(policy.speculation, Speculation::none(), "on purpose");
    decide(snapshot, memory, policy)
}

#[test]
fn a_policy_that_panics_costs_its_clones_alone() {
    let settings = speculating(Order::LeastSlack, Resuming::Offset);
    let jobs = mixed(6, 50, 12, 0.6);
    let trace = Trace { jobs: jobs.clone() };
    let engine = Engine::new(&settings, &trace).deciding_by(panicking);
    let outcome = engine.run().expect("a run");
    assert!(outcome.totals.panics > 0);
    assert_eq!(outcome.totals.tasks_done, tasks(&jobs));
    assert_eq!(outcome.totals.clones, 0);
    assert_eq!(run(&settings, &jobs).totals.panics, 0);
}

#[test]
fn passes_without_work_cost_clones_alone() {
    let mut settings = speculating(Order::LeastSlack, Resuming::Offset);
    let jobs = mixed(6, 50, 12, 0.6);
    let all = run(&settings, &jobs).totals;
    assert_eq!((all.cut_short, all.refused), (0, 0));
    settings.policy.work_max = 0;
    let none = run(&settings, &jobs).totals;
    assert!(none.cut_short > 0);
    assert_eq!((none.clones, none.tasks_done), (0, tasks(&jobs)));
}

#[test]
fn a_demand_that_no_node_can_hold_is_refused_until_one_can() {
    let node = |name: &str, cpu: i64| NodeSpec {
        name: NodeName::from(name),
        allocatable: Resources::from_pairs([("cpu", cpu), ("pods", 10)]),
        speed: 1.0,
        changes: Vec::new(),
        slowdowns: None,
    };
    let change = |at: i64, factor: f64| NodeChange {
        at: Instant(at),
        factor,
    };
    let large = NodeSpec {
        changes: vec![change(500, 0.0), change(5000, 1.0)],
        ..node("large", 4000)
    };
    let nodes = vec![node("small", 1000), large];
    let mut wide = job(0, 1000, &[2000]);
    wide.stages[0].demand = Demand {
        cpu_milli: Some(3000),
        ..Demand::default()
    };
    let settings = Settings {
        check: true,
        ..Settings::new(fifo(), Cluster::Nodes(nodes))
    };
    let outcome = run(&settings, &[wide, job(1, 1000, &[1000])]);
    assert_eq!(outcome.totals.refused, 1);
    let ends: Vec<Option<Instant>> = outcome.jobs.iter().map(|job| job.ended).collect();
    assert_eq!(ends, [Some(Instant(7000)), Some(Instant(2000))]);
}
