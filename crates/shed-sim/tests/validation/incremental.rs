//! Incremental passes against full ones, for every policy, order and kind of cluster.

use shed_core::ids::NodeName;
use shed_core::policy::{Order, Policy};
use shed_core::resources::Resources;
use shed_core::time::Span;
use shed_sim::outcome::Outcome;
use shed_sim::settings::{Cluster, Delay, NodeSpec, Passes, Resuming, Settings};
use shed_sim::trace::Job;

use crate::common::{on_slots, run};
use crate::engine::{mixed, speculating};

fn with(policy: Policy, cluster: Cluster) -> Settings {
    Settings {
        policy: Policy {
            surge_max: 0,
            ..policy
        },
        cluster,
        ..speculating(Order::Fifo, Resuming::Offset)
    }
}

/// A node for two attempts.
fn node(number: u32) -> NodeSpec {
    NodeSpec {
        name: NodeName::from(format!("node-{number}").as_str()),
        allocatable: Resources::from_pairs([("pods", 2)]),
        speed: 1.0,
        changes: Vec::new(),
        slowdowns: None,
    }
}

/// Clones and kills over all runs, as each plan keeps every rule and each task ends.
fn ended(outcome: &Outcome, jobs: &[Job]) -> [u64; 2] {
    let tasks: usize = jobs.iter().map(Job::tasks).sum();
    assert_eq!(outcome.totals.tasks_done, tasks as u64);
    [outcome.totals.clones, outcome.totals.kills]
}

#[test]
fn every_policy_keeps_every_rule_in_every_order_and_cluster() {
    let mut sums = [0, 0];
    for speculation in shed_papers::registry().all() {
        for (seed, order) in (0..).zip(Order::ALL) {
            let nodes = (0..6).map(node).collect();
            for cluster in [Cluster::Slots(12), Cluster::Nodes(nodes)] {
                let policy = Policy {
                    order,
                    speculation: speculation.clone(),
                    ..Policy::default()
                };
                let jobs = mixed(seed, 12, 12, 1.1);
                let sum = ended(&run(&with(policy, cluster), &jobs), &jobs);
                sums = [sums[0] + sum[0], sums[1] + sum[1]];
            }
        }
    }
    assert!(sums.iter().all(|&sum| sum > 100), "{sums:?}");
}

/// Deadlines met of 40 a seed, and whether the runs had the same outcome, with full passes and with the usual ones.
fn compared(policy: &Policy, seeds: u64) -> ([usize; 2], bool) {
    let mut met = [0, 0];
    let mut is_same = true;
    for seed in 0..seeds {
        let jobs = mixed(seed, 40, 12, 1.2);
        let of = |passes| {
            let settings = Settings {
                passes,
                launch_overhead: Delay::Fixed(Span(500)),
                ..on_slots(policy.clone(), 12)
            };
            run(&settings, &jobs)
        };
        let outcomes = [Passes::Full, Passes::Incremental].map(of);
        for (met, outcome) in met.iter_mut().zip(&outcomes) {
            *met += outcome.figures(Some(12)).jobs_met;
        }
        is_same &= outcomes[0].totals.digest == outcomes[1].totals.digest;
    }
    (met, is_same)
}

/// The policies that keep findings, and of how many of 160 deadlines they may differ. The leagues' cells hold what that
/// comes to: see docs/develop/bench-simulator.md.
const KEPT: [(&str, usize); 2] = [("hadoop-ns", 4), ("shed-prime", 5)];

#[test]
fn usual_passes_decide_as_full_ones_for_every_policy_and_order() {
    let mut differing = 0;
    for speculation in shed_papers::registry().all() {
        for order in Order::ALL {
            let name = speculation.name();
            let policy = Policy {
                surge_max: 0,
                order,
                speculation: speculation.clone(),
                ..Policy::default()
            };
            let allowed = KEPT.iter().find(|(kept, _)| *kept == name);
            let seeds = if allowed.is_some() { 4 } else { 1 };
            let ([full, usual], is_same) = compared(&policy, seeds);
            assert_eq!(allowed.is_none(), speculation.looks_at_all(), "{name}");
            match allowed {
                None => assert!(is_same, "{name} {order}: {full} {usual}"),
                Some((_, allowed)) => {
                    assert!(
                        full.abs_diff(usual) <= *allowed,
                        "{name} {order}: {full} {usual}"
                    );
                    differing += u32::from(!is_same);
                }
            }
        }
    }
    // Or nothing would be compared.
    assert!(differing > 0);
}
