//! The settings of a run, without its workload.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use shed_core::ids::{NodeName, Tenant};
use shed_core::policy::Policy;
use shed_core::resources::Resources;
use shed_core::snapshot::{OnMiss, Preemption};
use shed_core::time::{Instant, Span};

use crate::model::Model;
use crate::model::slowdown::Slowdowns;

/// One node.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeSpec {
    /// The node's name.
    pub name: NodeName,
    /// The amounts that attempts may use of it.
    pub allocatable: Resources,
    /// The node's speed; 1 is the speed that durations are given for.
    pub speed: f64,
    /// The node's changes, ascending by time.
    pub changes: Vec<NodeChange>,
    /// The process that changes its speed from the start on; `changes` then only determine when the node is lost and
    /// when it returns.
    pub slowdowns: Option<Slowdowns>,
}

/// A change of a node at an instant.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NodeChange {
    /// When.
    pub at: Instant,
    /// The factor of its speed; 0 means that the node is lost with all attempts on it until the next change.
    pub factor: f64,
}

/// Where attempts run.
#[derive(Debug, Clone, PartialEq)]
pub enum Cluster {
    /// This many slots, where each takes any one attempt: the papers' slots.
    Slots(u32),
    /// Nodes with resources, speeds and changes.
    Nodes(Vec<NodeSpec>),
}

/// A length of time, or a share of the job's median task time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Delay {
    /// The same for all.
    Fixed(Span),
    /// This share of the job's median task time.
    OfMedian(f64),
}

impl Delay {
    /// The time for a job with this median task time.
    pub fn of(self, median: Span) -> Span {
        match self {
            Self::Fixed(span) => span,
            Self::OfMedian(share) => Span((share * median.0 as f64).round() as i64),
        }
    }
}

/// Where clones and retries begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resuming {
    /// From zero.
    Scratch,
    /// Where the best attempt was when it last reported.
    Offset,
    /// Where the best attempt was when it last reported before the new one starts.
    Latest,
    /// At the best attempt's last checkpoint: one is written each time this much has passed.
    Checkpoint(Span),
}

/// The reports of attempts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reports {
    /// From the start of an attempt to its first report.
    pub first: Delay,
    /// From report to report.
    pub every: Delay,
    /// Standard deviation of the relative error of an attempt's own progress; it shrinks to zero
    /// as the attempt nears its end.
    pub noise: f64,
}

/// The deadline of a stage for the planner. The run's own deadline alone decides whether the run has met it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum StageDeadlines {
    /// That of the run.
    #[default]
    Run,
    /// That of the run, less the learned time that later stages take.
    Tail,
    /// The time until the run's deadline, divided over the stages in proportion to their usual times.
    Flexible,
    /// That of the run, less the usual times along the longest chain of later stages.
    Graph,
}

impl StageDeadlines {
    /// The rule's name.
    pub fn label(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Tail => "tail",
            Self::Flexible => "flexible",
            Self::Graph => "graph",
        }
    }
}

/// The jobs that a planner pass looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passes {
    /// Every job, after every event.
    Full,
    /// Those that have changed, and those that have asked for it.
    Incremental,
}

/// Settings of a run.
#[derive(Debug, Clone)]
pub struct Settings {
    /// One seed, one run.
    pub seed: u64,
    /// The policy: the order of first attempts and the clones.
    pub policy: Policy,
    /// Where attempts run.
    pub cluster: Cluster,
    /// How long attempts take.
    pub model: Model,
    /// From an attempt's launch to its start.
    pub launch_overhead: Delay,
    /// The reports of attempts; absent if they report nothing.
    pub reports: Option<Reports>,
    /// Where clones and retries begin.
    pub resuming: Resuming,
    /// From a kill until the attempt's capacity is free.
    pub kill_latency: Span,
    /// From the end of an attempt that was not killed until its capacity is free. Its job sees the end immediately.
    pub release_latency: Span,
    /// The treatment of a job at its deadline.
    pub on_miss: OnMiss,
    /// Failures that a task may have before it has failed for good.
    pub backoff_limit_per_index: u32,
    /// The most clones of a task.
    pub max_clones: u32,
    /// The deadlines of stages for the planner.
    pub stage_deadlines: StageDeadlines,
    /// Whether each job holds one more slot from its arrival to its end, for its job master as in MapReduce.
    pub job_masters: bool,
    /// Whether first attempts may be preempted.
    pub preemption: Preemption,
    /// The jobs that a planner pass looks at.
    pub passes: Passes,
    /// Whether the planner divides the capacity between the tenants that jobs have. If not, it takes them for one.
    pub shares: bool,
    /// The weights of tenants; others have the weight 1.
    pub weights: BTreeMap<Tenant, f64>,
    /// Checks every plan against the core's rules and every shortcut against the full computation.
    pub check: bool,
}

impl Settings {
    /// The simplest run: no overhead, exact reports every 3 s, deadlines that stop nothing.
    pub fn new(policy: Policy, cluster: Cluster) -> Self {
        Self {
            seed: 0,
            policy: Policy {
                surge_max: 0,
                ..policy
            },
            cluster,
            model: Model::Trace,
            launch_overhead: Delay::Fixed(Span(0)),
            reports: Some(Reports {
                first: Delay::Fixed(Span::from_seconds(3)),
                every: Delay::Fixed(Span::from_seconds(3)),
                noise: 0.0,
            }),
            resuming: Resuming::Scratch,
            kill_latency: Span(0),
            release_latency: Span(0),
            on_miss: OnMiss::Continue,
            backoff_limit_per_index: 6,
            max_clones: 5,
            stage_deadlines: StageDeadlines::Run,
            job_masters: false,
            preemption: Preemption::Never,
            passes: Passes::Incremental,
            shares: true,
            weights: BTreeMap::new(),
            check: false,
        }
    }
}
