//! What a run depends on, beside its workload.

use shed_core::ids::NodeName;
use shed_core::policy::Policy;
use shed_core::resources::Resources;
use shed_core::snapshot::{OnMiss, Preemption};
use shed_core::time::{Instant, Span};

use crate::model::Model;
use crate::model::slowdown::Slowdowns;

/// One node.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeSpec {
    /// Its name.
    pub name: NodeName,
    /// What attempts may use of it.
    pub allocatable: Resources,
    /// How fast it is; 1 is the speed that durations are given for.
    pub speed: f64,
    /// What becomes of it, ascending by time.
    pub changes: Vec<NodeChange>,
    /// What makes it slow and fast, from the start on; then `changes` say when it is lost and
    /// when it is back.
    pub slowdowns: Option<Slowdowns>,
}

/// From an instant on a node is different.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NodeChange {
    /// When.
    pub at: Instant,
    /// Its speed times this; 0 means that it is lost with all that runs on it, until the next
    /// change.
    pub factor: f64,
}

/// Where attempts run.
#[derive(Debug, Clone, PartialEq)]
pub enum Cluster {
    /// So many places, each of which takes any one attempt: the papers' slots.
    Slots(u32),
    /// Nodes with resources, speeds and a fate.
    Nodes(Vec<NodeSpec>),
}

/// A length of time, or a share of the job's median task time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Delay {
    /// The same for all.
    Fixed(Span),
    /// That share of the job's median task time.
    OfMedian(f64),
}

impl Delay {
    /// For a job with that median task time.
    #[must_use]
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

/// What attempts tell.
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

/// Which jobs a planner pass looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passes {
    /// Every job, after every event: as the operator.
    Full,
    /// The same actions, by shortcuts where there are exact ones.
    Exact,
    /// Shortcuts also where results differ: see `engine::passes`; `engine::exact` makes them all
    /// but needless.
    Fast,
}

/// Settings of a run.
#[derive(Debug, Clone)]
pub struct Settings {
    /// One seed, one run.
    pub seed: u64,
    /// Who is first, who gets clones.
    pub policy: Policy,
    /// Where attempts run.
    pub cluster: Cluster,
    /// How long attempts take.
    pub model: Model,
    /// From an attempt's launch to its start.
    pub launch_overhead: Delay,
    /// What attempts tell; absent: nothing.
    pub reports: Option<Reports>,
    /// Where clones and retries begin.
    pub resuming: Resuming,
    /// From a kill until what the attempt held is free.
    pub kill_latency: Span,
    /// From the end of an attempt that was not killed until what it held is free. Its job knows of the
    /// end at once.
    pub release_latency: Span,
    /// What happens to a job at its deadline.
    pub on_miss: OnMiss,
    /// Failures that a task may have before it has failed for good.
    pub backoff_limit: u32,
    /// The most clones of a task.
    pub max_clones: u32,
    /// Whether first attempts may make way.
    pub preemption: Preemption,
    /// Which jobs a planner pass looks at.
    pub passes: Passes,
    /// Checks every plan against the core's rules and every shortcut against the long way.
    pub check: bool,
}

impl Settings {
    /// The plainest run: no overhead, exact reports every 3 s, deadlines that stop nothing.
    #[must_use]
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
            backoff_limit: 6,
            max_clones: 5,
            preemption: Preemption::Never,
            passes: Passes::Exact,
            check: false,
        }
    }
}
