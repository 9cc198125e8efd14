//! Flags that describe one run: cluster, workload, attempts, policy.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use clap::Args;
use shed_core::ids::{NodeName, Tenant};
use shed_core::policy::{Order, ParsePolicyError, Policy};
use shed_core::resources::Resources;
use shed_core::snapshot::{OnMiss, Preemption};
use shed_core::time::Span;
use shed_record::InputError;

use super::values;
use super::{CliError, cluster, fault};
use crate::model::Model;
use crate::model::slowdown::Slowdowns;
use crate::policies;
use crate::settings::{
    Cluster, Delay, NodeSpec, Passes, Reports, Resuming, Settings, StageDeadlines,
};
use crate::tenants::{self, Tenants};
use crate::trace::cut::{Cut, Half};
use crate::trace::repeat::RUNS_MAX;
use crate::trace::setups::Setup;
use crate::trace::{self, Trace, recording};
use crate::workload::{self, Shaping};

/// The slowdown factors of a slot in its slow states.
const SLOW_FACTORS: [f64; 2] = [2.6, 12.0];

/// More than any attempt requests, and small enough to be summed over nodes.
const UNLIMITED: i64 = 1 << 50;

/// One run.
#[derive(Debug, Clone, Args)]
pub struct RunOptions {
    /// The trace: a file of a known format, gzip or plain, the folder of a recording, or a made-up
    /// workload such as setup:A{jobs=300} (the README lists them).
    #[arg(long, value_name = "FILE", visible_alias = "recording")]
    pub trace: PathBuf,
    /// A named experiment, such as google or pareto: a set of flags; flags given in addition take precedence.
    /// `shed-sim presets` lists all.
    #[arg(long, value_name = "NAME")]
    pub preset: Option<String>,
    #[command(flatten)]
    pub cut: CutOptions,
    /// The policy about clones, with parameters: shed-prime, shed-plus{xi=0.1,joint=off}, hadoop-ns, …
    #[arg(long, default_value = "shed-prime", value_parser = values::policy)]
    pub policy: String,
    /// The order of first attempts when capacity is short: lst (least slack), edf, fifo, capacity, drf, carbyne, tetris,
    /// srpt, svf or dollymp. Without --tenants, capacity is fifo. The policy's own `order` parameter takes precedence.
    #[arg(long, default_value = "lst")]
    pub order: Order,
    /// A file that the policy decides by, such as the networks that `shed-lab laser train` wrote, or
    /// none [default: none]; policies that read no file ignore it.
    #[arg(long, value_name = "FILE")]
    pub policy_file: Option<PathBuf>,
    /// Number of slots; each takes any one attempt.
    #[arg(long, value_name = "N")]
    pub slots: Option<u32>,
    /// Nodes with resources: a CSV with columns name, cpu, memory_mib, pods, speed, count; or
    /// setup:D, the 30 nodes of DollyMP's testbed.
    #[arg(long, value_name = "FILE", conflicts_with = "slots")]
    pub nodes: Option<PathBuf>,
    /// Changes of nodes: a CSV with columns node, at_s, factor (of speed; 0: lost until the next change).
    #[arg(long, value_name = "FILE", requires = "nodes")]
    pub node_changes: Option<PathBuf>,
    /// Slowness of machines: a file of quantiles like azure_vm_slowdown; each node takes samples from it.
    #[arg(long, value_name = "FILE", requires = "nodes")]
    pub slowdown: Option<PathBuf>,
    /// Each slot is slow in this share of its states, by a factor of 2.6 to 12.
    #[arg(long, value_name = "SHARE", conflicts_with = "nodes", value_parser = values::share)]
    pub slow_slots: Option<f64>,
    /// Mean time between two changes of a node's slowness, in seconds.
    #[arg(long, value_name = "S", default_value = "600", value_parser = values::seconds)]
    pub slowdown_period: Span,
    /// Scale arrivals so that the durations add up to this × slots × span of arrivals.
    #[arg(long, value_name = "X", value_parser = values::above_zero)]
    pub load: Option<f64>,
    /// k in: deadline = arrival + k × median task time × ⌈tasks / (fair share × slots)⌉.
    #[arg(long, value_name = "K", value_parser = values::above_zero)]
    pub deadline_factor: Option<f64>,
    /// The share of the slots that the deadline of a job assumes for it.
    #[arg(long, value_name = "F", default_value_t = 0.25, value_parser = values::share)]
    pub fair_share: f64,
    /// Multiply each job's k by e^u, u uniform in ±this.
    #[arg(long, value_name = "J", default_value_t = 0.0, value_parser = values::unit)]
    pub deadline_jitter: f64,
    /// The planner knows at a job's submission how long its tasks take: the trace's column expected_s, or else the
    /// median and the 90th percentile of the job's task times. Without this flag it learns that from reports.
    #[arg(long)]
    pub known_durations: bool,
    /// Each job becomes N runs, with arrivals and times drawn by the seed, and all runs of a job are one class. Deadlines
    /// count from the usual times along the run's longest chain of stages.
    #[arg(long, value_name = "N", requires = "load",
        value_parser = clap::value_parser!(u32).range(1..=i64::from(RUNS_MAX)))]
    pub repeat: Option<u32>,
    /// Leave the first N runs of each class out of the figures about jobs.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub skip_runs: usize,
    /// The deadline of a stage for the planner: run (that of its run), tail (the run's less the learned time that later
    /// stages take), flexible (the time left divided in proportion to usual times), graph (the run's less the usual
    /// times along the longest chain of later stages). Whether a run is in time depends on its own deadline alone.
    #[arg(long, value_enum, value_name = "RULE", default_value = "run")]
    pub stage_deadlines: StageDeadlines,
    /// Drop the fractions of seconds of all durations, as other simulators do.
    #[arg(long)]
    pub whole_seconds: bool,
    /// How long attempts take: trace, resample, pareto{beta=1.5}, lognormal{sigma=0.5}, recorded, or another model of
    /// docs/reference/simulator.md
    /// [default: trace; for a recording resample, for a made-up workload its own].
    #[arg(long, value_name = "MODEL")]
    pub attempt_model: Option<Model>,
    /// From an attempt's launch to its start: seconds, or a share of the job's median (5%).
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = values::delay)]
    pub launch_overhead: Delay,
    /// From an attempt's start to its first report.
    #[arg(long, value_name = "TIME", default_value = "3", value_parser = values::delay)]
    pub first_report: Delay,
    /// From report to report.
    #[arg(long, value_name = "TIME", default_value = "3", value_parser = values::delay)]
    pub report_every: Delay,
    /// Standard deviation of the relative error of reports; it shrinks as an attempt nears its end.
    #[arg(long, value_name = "SIGMA", default_value_t = 0.0, value_parser = values::unit)]
    pub report_noise: f64,
    /// Attempts report nothing.
    #[arg(long)]
    pub silent: bool,
    /// Where clones and retries begin: scratch, offset (as last reported at their
    /// launch), latest (as last reported at their start), checkpoint:SECONDS.
    #[arg(long, value_name = "HOW", default_value = "scratch", value_parser = values::resuming)]
    pub resume: Resuming,
    /// From a kill until what the attempt held is free, in seconds.
    #[arg(long, value_name = "S", default_value = "0", value_parser = values::seconds)]
    pub kill_latency: Span,
    /// From the end of an attempt that was not killed until what it held is free, in seconds.
    #[arg(long, value_name = "S", default_value = "0", value_parser = values::seconds)]
    pub release_latency: Span,
    /// The treatment of a job at its deadline: continue or fail.
    #[arg(long, value_name = "WHAT", default_value = "continue", value_parser = values::on_miss)]
    pub on_miss: OnMiss,
    /// The most clones of a task at a time.
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub max_clones: u32,
    /// Failures that a task may have before it has failed for good.
    #[arg(long, value_name = "N", default_value_t = 6)]
    pub backoff_limit_per_index: u32,
    /// Each job holds one more slot from its arrival to its end, for its job master as in MapReduce. Only with slots.
    #[arg(long)]
    pub job_masters: bool,
    /// Whether running first attempts may be preempted for more urgent ones: never, or when-checkpointed, if they can
    /// continue from a checkpoint.
    #[arg(long, value_name = "WHEN", default_value = "never", value_parser = values::preemption)]
    pub preemption: Preemption,
    /// The tenants that jobs belong to: trace (the column tenant, or else the job's id without its last number), or a
    /// number of tenants that are drawn by the seed [default: all jobs have one tenant].
    #[arg(long, value_name = "HOW")]
    pub tenants: Option<Tenants>,
    /// The weight of a tenant, which otherwise is 1; may be repeated.
    #[arg(long, value_name = "NAME=WEIGHT", value_parser = tenants::weight, requires = "tenants")]
    pub tenant_weight: Vec<(Tenant, f64)>,
    /// The planner takes all tenants for one: results by tenant, without shares.
    #[arg(long, requires = "tenants")]
    pub without_shares: bool,
    /// λ: the share of the cluster that attempts may use.
    #[arg(long, value_name = "L", default_value_t = 1.0, value_parser = values::share)]
    pub capacity_share: f64,
    /// The seed of all samples. `compare`, `sweep` and `size` take several: 0..20.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Look at every job after every event: the reference for the usual passes, and many times slower.
    #[arg(long)]
    pub full_passes: bool,
    /// Check every plan against the core's rules, and every shortcut against the full computation.
    #[arg(long)]
    pub check: bool,
}

/// The part of the trace to run.
#[derive(Debug, Clone, Args)]
pub struct CutOptions {
    /// Only jobs with this number of tasks: LOW..HIGH, both included.
    #[arg(long, value_name = "RANGE", value_parser = values::range)]
    pub tasks: Option<RangeInclusive<usize>>,
    /// Only jobs whose median task takes at least this many seconds.
    #[arg(long, value_name = "S", default_value = "0", value_parser = values::seconds)]
    pub min_median: Span,
    /// Each stage is a job of its own and waits for no other.
    #[arg(long)]
    pub split_stages: bool,
    /// Only the first or the second half of the jobs: a design made on one half can be checked on the other.
    #[arg(long, value_enum, default_value = "both")]
    pub half: Half,
    /// Only this many consecutive jobs, from a random position that depends on the seed.
    #[arg(long, value_name = "N", value_parser = values::count)]
    pub window: Option<usize>,
}

impl CutOptions {
    fn cut(&self) -> Cut {
        Cut {
            split_stages: self.split_stages,
            tasks: self.tasks.clone(),
            min_median: self.min_median,
            half: self.half,
            window: self.window,
        }
    }
}

/// Reads a trace, or generates it if its name is that of a set-up.
pub fn read_trace(path: &Path, seed: u64) -> Result<Trace, CliError> {
    match setup(path)? {
        Some(setup) => Ok(setup.trace(seed)),
        None => Ok(trace::read(path)?),
    }
}

fn setup(path: &Path) -> Result<Option<Setup>, CliError> {
    let name = path.to_str().and_then(|name| name.strip_prefix("setup:"));
    name.map(str::parse).transpose().map_err(CliError::Usage)
}

/// A prepared run.
pub struct Prepared {
    /// The settings of the run.
    pub settings: Settings,
    /// The workload of the run.
    pub workload: Trace,
    /// The slots, for utilization.
    pub slots: Option<u32>,
}

impl RunOptions {
    /// Reads the files and checks that everything fits together.
    pub fn prepare(&self) -> Result<Prepared, CliError> {
        self.prepare_with(self.read_trace()?)
    }

    /// Reads the trace, or generates it.
    pub fn read_trace(&self) -> Result<Trace, CliError> {
        read_trace(&self.trace, self.seed)
    }

    /// The policy, with the order that it names or else that of `--order`.
    pub fn policy(&self) -> Result<Policy, CliError> {
        let fault = |error: ParsePolicyError| CliError::Usage(error.to_string());
        let policy = policies::known().parse(&self.policy, self.order);
        let policy = policy.map_err(fault)?;
        let Some(path) = self.file().filter(|_| policy.speculation.reads_files()) else {
            return Ok(policy);
        };
        let text = std::fs::read_to_string(path);
        let text = text.map_err(|error| InputError::of_file(path, error.to_string()))?;
        let name = path.display().to_string();
        policy.with_files(&[(name, text)].into()).map_err(fault)
    }

    /// The file of `--policy-file`.
    pub(super) fn file(&self) -> Option<&Path> {
        let path = self.policy_file.as_deref();
        path.filter(|path| *path != Path::new("none"))
    }

    /// Whether a file is given that the policy does not read.
    pub(super) fn has_unread_file(&self) -> Result<bool, CliError> {
        Ok(self.file().is_some() && !self.policy()?.speculation.reads_files())
    }

    /// The policy with all its parameters, as results name it.
    pub(super) fn policy_text(&self, policy: &Policy) -> String {
        match self.file().filter(|_| policy.speculation.reads_files()) {
            Some(file) => format!("{} by {}", policy.speculation, file.display()),
            None => policy.speculation.to_string(),
        }
    }

    /// The model that attempts follow.
    pub fn model(&self) -> Result<Model, CliError> {
        let own = match setup(&self.trace)? {
            Some(setup) => setup.model(),
            None if recording::is_one(&self.trace) => Model::Resample,
            None => Model::Trace,
        };
        Ok(self.attempt_model.unwrap_or(own))
    }

    /// The same for a trace that was read before.
    pub fn prepare_with(&self, trace: Trace) -> Result<Prepared, CliError> {
        let cluster = self.cluster()?;
        self.prepare_cut(self.cut(trace), cluster)
    }

    /// The part of the trace that is run.
    pub(super) fn cut(&self, trace: Trace) -> Trace {
        self.cut.cut().apply(trace, self.seed)
    }

    /// The same as [`Self::prepare_with`] for a trace that was cut, on that cluster.
    pub(super) fn prepare_cut(&self, trace: Trace, cluster: Cluster) -> Result<Prepared, CliError> {
        let slots = match cluster {
            Cluster::Slots(slots) => Some(slots),
            Cluster::Nodes(_) => self.slots,
        };
        let trace = self.with_tenants(trace);
        let shaped = workload::shape(trace, &self.shaping(), &cluster);
        let workload = shaped.map_err(|error| fault::of_workload(error, &self.trace, &cluster))?;
        Ok(Prepared {
            settings: self.settings(self.policy()?, cluster, self.model()?),
            workload,
            slots,
        })
    }

    /// Without the flag, all jobs have one tenant, whatever the trace says.
    fn with_tenants(&self, mut trace: Trace) -> Trace {
        match self.tenants {
            Some(tenants) => tenants.name(&mut trace, self.seed),
            None => trace.jobs.iter_mut().for_each(|job| job.tenant = None),
        }
        trace
    }

    /// Checks that the files of the cluster and the model are valid, and that the cluster can run the trace, if that
    /// was read before.
    pub fn check(&self, trace: Option<&Trace>) -> Result<(), CliError> {
        self.model()?;
        self.policy()?;
        let cluster = self.cluster()?;
        match trace.map(|trace| workload::check(trace, &cluster)) {
            Some(Err(error)) => Err(fault::of_workload(error, &self.trace, &cluster)),
            Some(Ok(_)) | None => Ok(()),
        }
    }

    pub(super) fn cluster(&self) -> Result<Cluster, CliError> {
        if self.job_masters && (self.nodes.is_some() || self.slow_slots.is_some()) {
            let needs = "--job-masters needs --slots, without --nodes and --slow-slots";
            return Err(CliError::Usage(needs.into()));
        }
        match (&self.nodes, self.slots) {
            (Some(path), _) => self.nodes(path).map(Cluster::Nodes),
            (None, Some(slots)) if self.slow_slots.is_some() => {
                Ok(Cluster::Nodes(self.nodes_of_one(slots)))
            }
            (None, Some(slots)) => Ok(Cluster::Slots(slots)),
            (None, None) => Err(CliError::Usage("--slots or --nodes is needed".into())),
        }
    }

    /// Slots as nodes that each take one attempt of any demand.
    fn nodes_of_one(&self, slots: u32) -> Vec<NodeSpec> {
        let share = self.slow_slots.unwrap_or(0.0);
        let states = Slowdowns::of_states(share, SLOW_FACTORS, self.slowdown_period);
        let node = |number: u32| NodeSpec {
            name: NodeName::from(format!("slot-{number}").as_str()),
            allocatable: Resources::from_pairs([
                ("pods", 1),
                ("cpu", UNLIMITED),
                ("memory", UNLIMITED),
            ]),
            speed: 1.0,
            changes: Vec::new(),
            slowdowns: Some(states.clone()),
        };
        (0..slots).map(node).collect()
    }

    fn nodes(&self, path: &Path) -> Result<Vec<NodeSpec>, CliError> {
        let mut nodes = cluster::read(path)?;
        if let Some(path) = &self.node_changes {
            cluster::read_changes(path, &mut nodes)?;
        }
        if let Some(path) = &self.slowdown {
            let slowdowns = Slowdowns::read(path, self.slowdown_period)?;
            for node in &mut nodes {
                node.slowdowns = Some(slowdowns.clone());
            }
        }
        Ok(nodes)
    }

    fn shaping(&self) -> Shaping {
        Shaping {
            whole_seconds: self.whole_seconds,
            load: self.load,
            deadline_factor: self.deadline_factor,
            fair_share: self.fair_share,
            deadline_jitter: self.deadline_jitter,
            known_durations: self.known_durations,
            repeat: self.repeat,
            seed: self.seed,
        }
    }

    fn settings(&self, policy: Policy, cluster: Cluster, model: Model) -> Settings {
        let reports = Reports {
            first: self.first_report,
            every: self.report_every,
            noise: self.report_noise,
        };
        Settings {
            seed: self.seed,
            policy: Policy {
                capacity_share: self.capacity_share,
                surge_max: 0,
                ..policy
            },
            cluster,
            model,
            launch_overhead: self.launch_overhead,
            reports: (!self.silent).then_some(reports),
            resuming: self.resume,
            kill_latency: self.kill_latency,
            release_latency: self.release_latency,
            on_miss: self.on_miss,
            backoff_limit_per_index: self.backoff_limit_per_index,
            max_clones: self.max_clones,
            stage_deadlines: self.stage_deadlines,
            job_masters: self.job_masters,
            preemption: self.preemption,
            passes: match self.full_passes {
                true => Passes::Full,
                false => Passes::Incremental,
            },
            shares: !self.without_shares,
            weights: self.tenant_weight.iter().cloned().collect(),
            check: self.check,
        }
    }
}
