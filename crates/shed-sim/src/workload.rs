//! Trace → workload: whole seconds, load, deadlines, and whether the cluster can run it at all.
//! All of it is the same for every policy.

use shed_core::resources::Resources;
use shed_core::snapshot::ExpectedDuration;
use shed_core::time::{Instant, Span};

use crate::model::slowdown::Slowdowns;
use crate::random::{Purpose, Stream};
use crate::settings::Cluster;
use crate::trace::repeat::repeat;
use crate::trace::{Demand, Job, Trace};

/// The changes of a trace before it is run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shaping {
    /// Durations lose their fraction of a second, as in other simulators.
    pub whole_seconds: bool,
    /// Arrivals are scaled so that the originals' durations add up to this × slots × span. Each duration is that on a
    /// node with its slowness. If the trace has no arrivals, they are sampled.
    pub load: Option<f64>,
    /// k: deadlines are arrival + k × usual task time × ⌈tasks / (fair share × slots)⌉. A deadline in the trace takes
    /// precedence.
    pub deadline_factor: Option<f64>,
    /// f: the share of the slots that a job is assumed to get.
    pub fair_share: f64,
    /// Each job's k is multiplied by e^u, u uniform between −this and this.
    pub deadline_jitter: f64,
    /// Whether the expected duration of each job's tasks is known at its submission: the one that the trace has, or
    /// else the usual time of the job's tasks.
    pub known_durations: bool,
    /// Each job becomes this many runs, whose deadlines count from the usual times along their longest chain of stages:
    /// a stage takes its longest task, or its total time over the fair share of the slots if that is more.
    pub repeat: Option<u32>,
    /// The seed of the jitter, of sampled arrivals and of repeated runs.
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
            known_durations: false,
            repeat: None,
            seed: 0,
        }
    }
}

/// The error for a workload that cannot be run.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum WorkloadError {
    /// The cluster has no slots.
    #[error("the cluster has no slots; at least one is expected")]
    NoSlots,
    /// The trace has no task.
    #[error("the trace holds no task")]
    Empty,
    /// No node can hold a task.
    #[error(
        "job `{job}` asks for {} milli-cores and {} MiB per attempt, and no node of the cluster \
         has that much",
        .demand.cpu_milli.unwrap_or(0),
        .demand.memory_bytes.unwrap_or(0) >> 20
    )]
    TooLarge {
        /// The job.
        job: String,
        /// The task's demand.
        demand: Demand,
    },
}

/// The number of attempts that the cluster runs at a time: slots, or how often the smallest demand of the trace fits
/// its nodes.
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
pub fn shape(
    mut trace: Trace,
    shaping: &Shaping,
    cluster: &Cluster,
) -> Result<Trace, WorkloadError> {
    let slots = check(&trace, cluster)?;
    if shaping.whole_seconds {
        truncate(&mut trace);
    }
    let share = (shaping.fair_share * f64::from(slots)).max(1e-9);
    set_usual_times(&mut trace, share);
    if let Some(runs) = shaping.repeat {
        repeat(&mut trace, runs, shaping.seed);
    }
    if let Some(load) = shaping.load {
        let wanted = work(&trace, cluster, shaping.seed) / (load * f64::from(slots));
        scale_arrivals(&mut trace, wanted, shaping.seed);
    }
    if let Some(factor) = shaping.deadline_factor {
        set_deadlines(&mut trace, factor, shaping, share);
    }
    for job in &mut trace.jobs {
        let known = job.expected.or_else(|| own_quantiles(job));
        job.expected = known.filter(|_| shaping.known_durations);
    }
    Ok(trace)
}

/// Checks that the cluster can run the trace; returns the number of attempts that it runs at a time.
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

pub(crate) fn demand_of(demand: Demand) -> Resources {
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

/// The total time of the originals, in milliseconds. Each starts on a node of its own, whose slowness differs from
/// those in the run, because arrivals must not reveal these.
fn work(trace: &Trace, cluster: &Cluster, seed: u64) -> f64 {
    let nodes = match cluster {
        Cluster::Slots(_) => &[][..],
        Cluster::Nodes(nodes) => nodes,
    };
    let states: Vec<&Slowdowns> = nodes.iter().filter_map(|n| n.slowdowns.as_ref()).collect();
    let durations = trace.jobs.iter().flat_map(Job::durations).enumerate();
    let taken = durations.map(|(number, duration)| match states.len() {
        0 => duration,
        count => {
            let node = u32::try_from(nodes.len() + number).unwrap_or(u32::MAX);
            states[number % count].taken(seed, node, duration)
        }
    });
    taken.map(|span| span.0 as f64).sum()
}

/// Scales the arrivals to `wanted` milliseconds. If all jobs arrive at once, the source has no arrivals, so they are
/// sampled as Poisson.
fn scale_arrivals(trace: &mut Trace, wanted: f64, seed: u64) {
    let first = trace.jobs.first().map_or(Instant(0), |job| job.arrival);
    let last = trace.jobs.last().map_or(Instant(0), |job| job.arrival);
    let span = last.since(first).0;
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

/// The usual time of the job's tasks, and the time that nine of ten of them do not exceed.
fn own_quantiles(job: &Job) -> Option<ExpectedDuration> {
    let usual = job.usual_duration();
    let mut times: Vec<Span> = job.durations().collect();
    times.sort_unstable();
    let p90 = times.get((times.len() * 9).div_ceil(10).checked_sub(1)?);
    ExpectedDuration::new(usual, p90.map(|p90| usual.max(*p90))).ok()
}

/// How often tasks fill the share of the slots that a job is assumed to get.
fn waves(tasks: usize, share: f64) -> f64 {
    (tasks as f64 / share).ceil().max(1.0)
}

/// A stage takes at least as long as its longest task, and as its tasks take one after the other on the slots that its
/// job is assumed to get.
fn set_usual_times(trace: &mut Trace, share: f64) {
    for stage in trace.jobs.iter_mut().flat_map(|job| &mut job.stages) {
        let total: f64 = stage.durations.iter().map(|span| span.seconds()).sum();
        let longest = stage.durations.iter().max().copied().unwrap_or(Span(0));
        let of_share = Span::from_seconds_f64(total / share.max(1.0));
        stage.usual = Some(longest.max(of_share));
    }
}

fn set_deadlines(trace: &mut Trace, factor: f64, shaping: &Shaping, share: f64) {
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
        let path = || job.paths().into_iter().max().unwrap_or(Span(0));
        let seconds = match shaping.repeat {
            Some(_) => factor * jitter * path().seconds(),
            None => factor * jitter * job.usual_duration().seconds() * waves(job.tasks(), share),
        };
        job.deadline = Some(Span::from_seconds_f64(seconds));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::NodeSpec;
    use crate::trace::setups::Setup;
    use shed_core::ids::NodeName;

    fn nodes(slowdowns: Option<Slowdowns>) -> Cluster {
        let node = |number: u32| NodeSpec {
            name: NodeName::from(format!("n{number}").as_str()),
            allocatable: Resources::from_pairs([("pods", 1)]),
            speed: 1.0,
            changes: Vec::new(),
            slowdowns: slowdowns.clone(),
        };
        Cluster::Nodes((0..10).map(node).collect())
    }

    fn span_of(cluster: &Cluster) -> f64 {
        let trace = "C".parse::<Setup>().map(|setup| setup.trace(1));
        let shaping = Shaping {
            load: Some(0.8),
            ..Shaping::default()
        };
        let shaped = shape(trace.unwrap_or_default(), &shaping, cluster).unwrap();
        shaped.jobs.last().map_or(0.0, |job| job.arrival.0 as f64)
    }

    #[test]
    fn slow_nodes_are_part_of_the_load() {
        let slow = |share, period| {
            let states = Slowdowns::of_states(share, [4.0, 4.0], Span::from_seconds(period));
            span_of(&nodes(Some(states))) / span_of(&nodes(None))
        };
        // States that outlast every task: a half take four times as long, so the mean factor is 2.5.
        assert!((slow(0.5, 1_000_000) - 2.5).abs() < 0.1);
        assert!((slow(1.0, 600) - 4.0).abs() < 1e-3);
        // States that are short against tasks: half of the time at a quarter of the speed.
        assert!((slow(0.5, 1) - 1.6).abs() < 0.05);
    }

    #[test]
    fn durations_are_known_only_if_the_run_asks_for_it() {
        let expected = |known_durations, given: Option<i64>| {
            let mut trace = "C"
                .parse::<Setup>()
                .map(|setup| setup.trace(1))
                .unwrap_or_default();
            trace.jobs.truncate(1);
            trace.jobs[0].expected =
                given.and_then(|s| ExpectedDuration::new(Span::from_seconds(s), None).ok());
            let usual = trace.jobs[0].usual_duration();
            let shaping = Shaping {
                known_durations,
                ..Shaping::default()
            };
            let shaped = shape(trace, &shaping, &Cluster::Slots(138)).unwrap();
            (shaped.jobs[0].expected.map(|known| known.p50()), usual)
        };
        assert_eq!(expected(false, Some(50)).0, None);
        assert_eq!(expected(true, Some(50)).0, Some(Span::from_seconds(50)));
        let (known, usual) = expected(true, None);
        assert_eq!(known, Some(usual));
    }

    #[test]
    fn the_quantiles_of_a_job_are_those_of_its_tasks() {
        let trace = "C".parse::<Setup>().map(|setup| setup.trace(1));
        let mut job = trace.unwrap_or_default().jobs.remove(0);
        job.usual = None;
        let p90 = |seconds: &[i64]| {
            let mut job = job.clone();
            job.stages[0].durations = seconds.iter().map(|s| Span::from_seconds(*s)).collect();
            own_quantiles(&job).map(|known| (known.p50().0 / 1000, known.p90().map(|s| s.0 / 1000)))
        };
        assert_eq!(p90(&[7]), Some((7, Some(7))));
        assert_eq!(p90(&[5, 9]), Some((7, Some(9))));
        let ten = [1, 1, 1, 1, 2, 2, 2, 2, 3, 90];
        assert_eq!(p90(&ten), Some((2, Some(3))));
        assert_eq!(p90(&[]), None);
    }

    #[test]
    fn deadlines_count_from_the_distribution_where_it_is_known() {
        let trace = "A".parse::<Setup>().map(|setup| setup.trace(1));
        let shaping = Shaping {
            deadline_factor: Some(1.5),
            ..Shaping::default()
        };
        let shaped = shape(trace.unwrap_or_default(), &shaping, &Cluster::Slots(138)).unwrap();
        // 120 s · 2^(1/1.5) · 1.5
        let expected = Some(Span::from_seconds_f64(
            120.0 * libm::pow(2.0, 1.0 / 1.5) * 1.5,
        ));
        assert!(shaped.jobs.iter().all(|job| job.deadline == expected));
    }
}
