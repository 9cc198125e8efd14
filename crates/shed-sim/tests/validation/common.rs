//! Workloads in a few words, and runs that check every step.

use std::collections::BTreeMap;
use std::sync::Arc;

use shed_core::policy::{Order, Policy, Speculation};
use shed_core::time::{Instant, Span};
use shed_sim::engine::Engine;
use shed_sim::outcome::Outcome;
use shed_sim::settings::{Cluster, Settings};
use shed_sim::trace::{Demand, Job, Stage, Trace};

/// A job of one stage; times in milliseconds.
pub fn job(id: usize, arrival: i64, durations: &[i64]) -> Job {
    Job {
        id: Arc::from(format!("job{id}")),
        arrival: Instant(arrival),
        deadline: None,
        weight: 1.0,
        class: None,
        usual: None,
        tenant: None,
        expected: None,
        stages: vec![stage(durations, &[])],
    }
}

/// A stage behind others.
pub fn stage(durations: &[i64], parents: &[usize]) -> Stage {
    Stage {
        parents: parents.to_vec(),
        demand: Demand::default(),
        durations: durations.iter().map(|&ms| Span(ms)).collect(),
        recorded: BTreeMap::new(),
        usual: None,
    }
}

/// A policy by name and order.
pub fn policy(speculation: &str, order: Order) -> Policy {
    Policy {
        speculation: shed_papers::registry()
            .speculation(speculation)
            .expect("a known policy"),
        order,
        ..Policy::default()
    }
}

/// FIFO without clones.
pub fn fifo() -> Policy {
    Policy {
        speculation: Speculation::none(),
        order: Order::Fifo,
        ..Policy::default()
    }
}

/// A checked run on slots.
pub fn on_slots(policy: Policy, slots: u32) -> Settings {
    Settings {
        check: true,
        ..Settings::new(policy, Cluster::Slots(slots))
    }
}

/// Runs; every rule must hold.
pub fn run(settings: &Settings, jobs: &[Job]) -> Outcome {
    let trace = Trace {
        jobs: jobs.to_vec(),
    };
    match Engine::new(settings, &trace).run() {
        Ok(outcome) => outcome,
        Err(error) => panic!("{error}"),
    }
}

/// Flowtimes in milliseconds, in the order of the trace.
pub fn flowtimes(outcome: &Outcome) -> Vec<i64> {
    let jobs = outcome.jobs.iter();
    jobs.map(|job| job.flowtime().expect("a completed job").0)
        .collect()
}
