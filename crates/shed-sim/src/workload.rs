//! Trace → workload: whole seconds, load, deadlines, and whether the cluster can run it at all.
//! All of it is the same for every policy.

use shed_core::resources::Resources;
use shed_core::time::{Instant, Span};

use crate::random::{Purpose, Stream};
use crate::settings::Cluster;
use crate::trace::{Demand, Job, Trace};

/// How a trace is changed before it is run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shaping {
    /// Durations lose their fraction of a second, as in other simulators.
    pub whole_seconds: bool,
    /// Arrivals are scaled so that the originals' durations add up to this × slots × span; where
    /// the trace knows no arrivals they are drawn.
    pub load: Option<f64>,
    /// k: deadlines are arrival + k × median task time × ⌈tasks / (fair share × slots)⌉. A
    /// deadline of the trace's own wins.
    pub deadline_factor: Option<f64>,
    /// f: the share of the slots that a job is taken to get.
    pub fair_share: f64,
    /// Each job's k is multiplied by e^u, u uniform between −this and this.
    pub deadline_jitter: f64,
    /// For the jitter, and for arrivals that are drawn.
    pub seed: u64,
}

impl Default for Shaping {
    fn default() -> Self {
        Self {
            whole_seconds: false,
            load: None,
            deadline_factor: None,
            fair_share: 0.25,
            deadline_jitter: 0.0,
            seed: 0,
        }
    }
}

/// Why a workload can't be run.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum WorkloadError {
    /// There is nowhere to run.
    #[error("the cluster has no slots; at least one is expected")]
    NoSlots,
    /// There is nothing to run.
    #[error("the trace holds no task")]
    Empty,
    /// A task that no node holds.
    #[error(
        "job `{job}` asks for {} milli-cores and {} MiB per attempt, and no node of the cluster \
         has that much",
        .demand.cpu_milli.unwrap_or(0),
        .demand.memory_bytes.unwrap_or(0) >> 20
    )]
    TooLarge {
        /// The job.
        job: String,
        /// What it asks for.
        demand: Demand,
    },
}

/// How many attempts the cluster runs at a time: slots, or how often the smallest demand of the
/// trace fits its nodes.
#[must_use]
pub fn slots(cluster: &Cluster, demand: &Resources) -> u32 {
    match cluster {
        Cluster::Slots(slots) => *slots,
        Cluster::Nodes(nodes) => nodes
            .iter()
            .map(|node| node.allocatable.times(demand))
            .fold(0, u32::saturating_add),
    }
}

/// Shapes a trace for a cluster.
///
/// # Errors
/// If the cluster can't run it, or the load can't be reached.
pub fn shape(
    mut trace: Trace,
    shaping: &Shaping,
    cluster: &Cluster,
) -> Result<Trace, WorkloadError> {
    let slots = check(&trace, cluster)?;
    if shaping.whole_seconds {
        truncate(&mut trace);
    }
    if let Some(load) = shaping.load {
        scale_arrivals(&mut trace, load, slots, shaping.seed);
    }
    if let Some(factor) = shaping.deadline_factor {
        set_deadlines(&mut trace, factor, shaping, slots);
    }
    Ok(trace)
}

/// Whether the cluster can run the trace; how many attempts it runs at a time.
///
/// # Errors
/// If it can't.
pub fn check(trace: &Trace, cluster: &Cluster) -> Result<u32, WorkloadError> {
    if trace.jobs.iter().all(|job| job.tasks() == 0) {
        return Err(WorkloadError::Empty);
    }
    if let Some(error) = too_large(trace, cluster) {
        return Err(error);
    }
    match slots(cluster, &median_demand(trace)) {
        0 => Err(WorkloadError::NoSlots),
        slots => Ok(slots),
    }
}

fn demand_of(demand: Demand) -> Resources {
    let mut resources = Resources::from_pairs([("pods", 1)]);
    for (name, amount) in [("cpu", demand.cpu_milli), ("memory", demand.memory_bytes)] {
        if let Some(amount) = amount.filter(|amount| *amount > 0) {
            resources.set(name, amount);
        }
    }
    resources
}

/// The demand of the median task, by cpu and then memory.
fn median_demand(trace: &Trace) -> Resources {
    let stages = trace.jobs.iter().flat_map(|job| &job.stages);
    let mut demands: Vec<(Demand, usize)> = stages
        .map(|stage| (stage.demand, stage.durations.len()))
        .collect();
    demands.sort_unstable();
    let half = demands.iter().map(|(_, count)| count).sum::<usize>() / 2;
    let mut passed = 0;
    let found = demands.iter().find(|(_, count)| {
        passed += count;
        passed > half
    });
    demand_of(found.map(|(demand, _)| *demand).unwrap_or_default())
}

fn too_large(trace: &Trace, cluster: &Cluster) -> Option<WorkloadError> {
    let Cluster::Nodes(nodes) = cluster else {
        return None;
    };
    for job in &trace.jobs {
        for stage in &job.stages {
            let demand = demand_of(stage.demand);
            if !nodes.iter().any(|node| node.allocatable.fits(&demand)) {
                return Some(WorkloadError::TooLarge {
                    job: job.id.to_string(),
                    demand: stage.demand,
                });
            }
        }
    }
    None
}

fn truncate(trace: &mut Trace) {
    let stages = trace.jobs.iter_mut().flat_map(|job| &mut job.stages);
    for duration in stages.flat_map(|stage| &mut stage.durations) {
        duration.0 = duration.0 / 1000 * 1000;
    }
}

/// Where all jobs arrive at once there is nothing to scale (the source knows no arrivals): they
/// are drawn, Poisson.
fn scale_arrivals(trace: &mut Trace, load: f64, slots: u32, seed: u64) {
    let durations = trace.jobs.iter().flat_map(Job::durations);
    let work: i64 = durations.map(|duration| duration.0).sum();
    let first = trace.jobs.first().map_or(Instant(0), |job| job.arrival);
    let last = trace.jobs.last().map_or(Instant(0), |job| job.arrival);
    let span = last.since(first).0;
    let wanted = work as f64 / (load * f64::from(slots));
    if span == 0 {
        let gap = wanted / trace.jobs.len() as f64;
        let mut stream = Stream::new(seed, Purpose::Workload, [2, 0, 0]);
        let mut at = 0.0;
        for job in &mut trace.jobs {
            job.arrival = Instant(at as i64);
            at += stream.exponential(gap);
        }
        return;
    }
    let factor = wanted / span as f64;
    for job in &mut trace.jobs {
        let scaled = (job.arrival.since(first).0 as f64 * factor).round();
        job.arrival = Instant(scaled as i64);
    }
}

fn set_deadlines(trace: &mut Trace, factor: f64, shaping: &Shaping, slots: u32) {
    let share = (shaping.fair_share * f64::from(slots)).max(1e-9);
    for (position, job) in trace.jobs.iter_mut().enumerate() {
        if job.deadline.is_some() {
            continue;
        }
        let jitter = if shaping.deadline_jitter > 0.0 {
            let thing = [position as u64, 0, 0];
            let mut stream = Stream::new(shaping.seed, Purpose::DeadlineJitter, thing);
            libm::exp(stream.between(-shaping.deadline_jitter, shaping.deadline_jitter))
        } else {
            1.0
        };
        let waves = (job.tasks() as f64 / share).ceil().max(1.0);
        let seconds = factor * jitter * job.median_duration().seconds() * waves;
        job.deadline = Some(Span::from_seconds_f64(seconds));
    }
}
