//! The same excerpt in the simulator.

use anyhow::{Context, Result};
use shed_core::ids::NodeName;
use shed_core::policy::{Order, Policy};
use shed_core::resources::Resources;
use shed_core::snapshot::{AttemptKind, Preemption};
use shed_core::time::Span;
use shed_sim::engine::Engine;
use shed_sim::outcome::{AttemptOutcome, Outcome};
use shed_sim::settings::{Cluster, Delay, NodeSpec, Passes, Reports, Resuming, Settings};
use shed_sim::trace::Trace;

use super::excerpt::MODEL;
use super::run_result::{AttemptResult, JobResult, RunResult};

/// The cluster and its delays, as they are in reality.
#[derive(Debug, Clone, PartialEq)]
pub struct Conditions {
    /// Names of the nodes; the simulator prefers the first among equally free ones.
    pub nodes: Vec<String>,
    /// The slow node.
    pub slow: String,
    /// How many times as long work takes there.
    pub slowness: f64,
    /// Attempts that a node holds.
    pub slots_per_node: u32,
    /// Whether shed may preempt first attempts.
    pub preempts: bool,
    /// From an attempt's launch to the start of its work, in seconds.
    pub launch_s: f64,
    /// From a kill until its slot is free, in seconds.
    pub kill_s: f64,
    /// From the end of an attempt's work until its slot is free, in seconds.
    pub release_s: f64,
    /// From the start of an attempt to its first report, and from one report to the next, in seconds.
    pub report_s: f64,
}

impl Conditions {
    /// As if nothing took time but work.
    pub fn without_delays(&self) -> Self {
        Self {
            launch_s: 0.0,
            kill_s: 0.0,
            release_s: 0.0,
            ..self.clone()
        }
    }

    /// As if a slot were free as soon as the work in it ends.
    pub fn with_slots_at_once(&self) -> Self {
        Self {
            release_s: 0.0,
            ..self.clone()
        }
    }
}

/// Runs the excerpt under a policy, as the operator would be given it.
pub fn run(
    workload: &Trace,
    conditions: &Conditions,
    policy: &str,
    seed: u64,
) -> Result<RunResult> {
    let policy = shed_papers::registry()
        .parse(policy, Order::default())
        .context("policy")?;
    let settings = settings(conditions, policy, seed);
    let outcome = Engine::new(&settings, workload).with_attempts().run()?;
    Ok(came(&outcome, conditions))
}

fn settings(conditions: &Conditions, policy: Policy, seed: u64) -> Settings {
    let report = Delay::Fixed(Span::from_seconds_f64(conditions.report_s));
    Settings {
        seed,
        model: MODEL,
        launch_overhead: Delay::Fixed(Span::from_seconds_f64(conditions.launch_s)),
        reports: Some(Reports {
            first: report,
            every: report,
            noise: 0.0,
        }),
        resuming: Resuming::Offset,
        kill_latency: Span::from_seconds_f64(conditions.kill_s),
        release_latency: Span::from_seconds_f64(conditions.release_s),
        preemption: if conditions.preempts {
            Preemption::WhenCheckpointed
        } else {
            Preemption::Never
        },
        passes: Passes::Full,
        ..Settings::new(policy, cluster(conditions))
    }
}

fn cluster(conditions: &Conditions) -> Cluster {
    let node = |name: &String| NodeSpec {
        name: NodeName::from(name.as_str()),
        allocatable: Resources::from_pairs([("pods", i64::from(conditions.slots_per_node))]),
        speed: if *name == conditions.slow {
            1.0 / conditions.slowness
        } else {
            1.0
        },
        changes: Vec::new(),
        slowdowns: None,
    };
    Cluster::Nodes(conditions.nodes.iter().map(node).collect())
}

fn came(outcome: &Outcome, conditions: &Conditions) -> RunResult {
    let jobs = outcome.jobs.iter().map(|job| JobResult {
        arrived: job.arrival.0 as f64 / 1000.0,
        within: job
            .deadline
            .map_or(0.0, |at| at.since(job.arrival).seconds()),
        done: job
            .ended
            .filter(|_| job.complete)
            .map(|at| at.0 as f64 / 1000.0),
        met: job.met(),
    });
    RunResult {
        jobs: jobs.collect(),
        attempts: outcome
            .attempts
            .iter()
            .map(|attempt| ran(attempt, conditions))
            .collect(),
    }
}

fn ran(attempt: &AttemptOutcome, conditions: &Conditions) -> AttemptResult {
    let ended = attempt.ended.0 as f64 / 1000.0;
    let node = attempt
        .node
        .and_then(|node| conditions.nodes.get(node as usize));
    AttemptResult {
        job: attempt.job as usize,
        task: attempt.task,
        number: attempt.number,
        clone: attempt.kind == AttemptKind::Clone,
        node: node.cloned(),
        launched: attempt.launched.0 as f64 / 1000.0,
        started: attempt.started.map(|at| at.0 as f64 / 1000.0),
        ended: attempt.started.map(|_| ended),
        killed: None,
        freed: if attempt.kill.is_none() {
            ended + conditions.release_s
        } else {
            ended
        },
        begin: attempt.begin,
        won: attempt.bucket.is_none(),
    }
}
