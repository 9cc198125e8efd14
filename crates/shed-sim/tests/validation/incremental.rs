//! Incremental passes against full ones, for every policy, order and kind of cluster.

use shed_core::ids::NodeName;
use shed_core::policy::{Order, Policy};
use shed_core::resources::Resources;
use shed_core::time::Span;
use shed_sim::outcome::Outcome;
use shed_sim::settings::{Cluster, Delay, NodeSpec, Passes, Resuming, Settings};
use shed_sim::trace::Job;

use crate::common::{on_slots, policy, run};
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

#[test]
fn incremental_least_slack_meets_about_as_many_deadlines() {
    let mut met = [0, 0];
    let mut differing = 0;
    for seed in 0..12 {
        let jobs = mixed(seed, 40, 12, 1.2);
        let of = |passes| {
            let settings = Settings {
                passes,
                launch_overhead: Delay::Fixed(Span(500)),
                ..on_slots(policy("hadoop-ns", Order::LeastSlack), 12)
            };
            run(&settings, &jobs)
        };
        let outcomes = [Passes::Full, Passes::Incremental].map(of);
        for (met, outcome) in met.iter_mut().zip(&outcomes) {
            *met += outcome.figures(Some(12)).jobs_met;
        }
        differing += u32::from(outcomes[0].totals.digest != outcomes[1].totals.digest);
    }
    let [full, incremental] = met;
    // Of 480 jobs. The passes are not the same, or nothing would be compared.
    assert!(full.abs_diff(incremental) <= 10, "{met:?}");
    assert!(differing > 0);
}
