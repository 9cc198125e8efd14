//! What no cluster of a shape can do, and how large a cluster can be of use.

use shed_core::time::Span;

use crate::model::Which;
use crate::settings::{Cluster, Settings};
use crate::trace::{Job, Trace};
use crate::workload::demand_of;

/// How many attempts of a task are drawn to find its shortest time.
pub const ATTEMPTS: u32 = 60;

/// Positions of jobs with a stage that fits no node of the cluster, not even an empty one.
pub fn without_node(trace: &Trace, cluster: &Cluster) -> Vec<usize> {
    let Cluster::Nodes(nodes) = cluster else {
        return Vec::new();
    };
    let fits = |job: &Job| {
        let mut demands = job.stages.iter().map(|stage| demand_of(stage.demand));
        demands.all(|demand| nodes.iter().any(|node| node.allocatable.fits(&demand)))
    };
    let jobs = trace.jobs.iter().enumerate();
    jobs.filter(|(_, job)| !fits(job))
        .map(|(at, _)| at)
        .collect()
}

/// Positions of jobs that are late even if each task starts as soon as it may, on the fastest node,
/// and takes the shortest time of [`ATTEMPTS`] attempts.
pub fn always_late(trace: &Trace, settings: &Settings) -> Vec<usize> {
    let fastest = fastest(&settings.cluster);
    let is_late = |(at, job): &(usize, &Job)| {
        let late = |attempts| {
            let shortest = critical_path(*at, job, settings, attempts).0 as f64 / fastest;
            job.deadline
                .is_some_and(|deadline| shortest > deadline.0 as f64)
        };
        // Most jobs are in time with their first attempts.
        late(1) && late(ATTEMPTS)
    };
    let jobs = trace.jobs.iter().enumerate();
    jobs.filter(is_late).map(|(at, _)| at).collect()
}

/// The most tasks that first attempts work on at a time if no task ever waits for capacity. More
/// capacity is of use to other attempts alone.
pub fn peak(trace: &Trace, settings: &Settings) -> u32 {
    let mut changes: Vec<(i64, i64)> = Vec::new();
    for (at, job) in trace.jobs.iter().enumerate() {
        let (tasks, begin) = (job.tasks() as i64, job.arrival.0);
        let lasts = critical_path(at, job, settings, 1).0.max(1);
        changes.extend([(begin, tasks), (begin + lasts, -tasks)]);
    }
    // At one instant, ends come first.
    changes.sort_unstable();
    let counts = changes.iter().scan(0_i64, |count, (_, change)| {
        *count += change;
        Some(*count)
    });
    u32::try_from(counts.max().unwrap_or(0)).unwrap_or(u32::MAX)
}

/// From the job's arrival to its end if no task waits for capacity.
fn critical_path(position: usize, job: &Job, settings: &Settings, attempts: u32) -> Span {
    let median = job.usual_duration();
    let launch = settings.launch_overhead.of(median);
    let mut ends: Vec<i64> = Vec::with_capacity(job.stages.len());
    for (stage, facts) in (0..).zip(&job.stages) {
        let parents = facts.parents.iter().filter_map(|&parent| ends.get(parent));
        let begin = parents.copied().max().unwrap_or(0);
        let shortest = |task: u32| {
            let times = (0..attempts).map(|attempt| {
                let which = Which {
                    job: position as u32,
                    stage,
                    task,
                    attempt,
                };
                settings
                    .model
                    .draw(settings.seed, job, median, which)
                    .work
                    .0
            });
            times.min().unwrap_or(0)
        };
        let longest = (0..facts.durations.len() as u32).map(shortest).max();
        ends.push(begin + longest.map_or(0, |time| launch.0 + time));
    }
    Span(ends.into_iter().max().unwrap_or(0))
}

/// The highest speed that a node ever has.
fn fastest(cluster: &Cluster) -> f64 {
    let Cluster::Nodes(nodes) = cluster else {
        return 1.0;
    };
    let speeds = nodes.iter().map(|node| {
        let factors = node.changes.iter().map(|change| change.factor);
        let slowness = node.slowdowns.as_ref().map_or(1.0, |states| states.least());
        node.speed * factors.fold(1.0, f64::max) / slowness.min(1.0)
    });
    speeds.fold(f64::MIN_POSITIVE, f64::max)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use shed_core::ids::NodeName;
    use shed_core::resources::Resources;
    use shed_core::time::Instant;

    use super::*;
    use crate::model::Model;
    use crate::policies;
    use crate::settings::NodeSpec;
    use crate::trace::{Demand, Stage};

    fn job(name: &str, arrival: i64, seconds: &[i64], deadline: i64, cores: i64) -> Job {
        Job {
            id: Arc::from(name),
            arrival: Instant(arrival * 1000),
            deadline: Some(Span::from_seconds(deadline)),
            weight: 1.0,
            class: None,
            usual: None,
            tenant: None,
            expected: None,
            stages: vec![Stage {
                demand: Demand {
                    cpu_milli: Some(cores * 1000),
                    memory_bytes: None,
                },
                durations: seconds.iter().map(|s| Span::from_seconds(*s)).collect(),
                ..Stage::default()
            }],
        }
    }

    fn cluster(cores: i64, speed: f64) -> Cluster {
        Cluster::Nodes(vec![NodeSpec {
            name: NodeName::from("n"),
            allocatable: Resources::from_pairs([("cpu", cores * 1000), ("pods", 110)]),
            speed,
            changes: Vec::new(),
            slowdowns: None,
        }])
    }

    fn settings(cluster: Cluster) -> Settings {
        let policy = policies::known().parse("hadoop-ns", Default::default());
        Settings::new(policy.expect("a policy"), cluster)
    }

    #[test]
    fn jobs_that_no_capacity_helps_are_reported_from_others() {
        let trace = Trace {
            jobs: vec![
                job("in time", 0, &[10, 20], 20, 1),
                job("late", 0, &[10, 21], 20, 1),
                job("large", 0, &[1], 20, 9),
            ],
        };
        let of = |cluster: Cluster, model| {
            let settings = Settings {
                model,
                ..settings(cluster)
            };
            always_late(&trace, &settings)
        };
        assert_eq!(of(Cluster::Slots(9), Model::Trace), [1]);
        // The task of 21 s may take 10 s next time.
        assert_eq!(of(Cluster::Slots(9), Model::Resample), [0; 0]);
        assert_eq!(of(cluster(8, 2.0), Model::Trace), [0; 0]);
        assert_eq!(of(cluster(8, 0.9), Model::Trace), [0, 1]);
        assert_eq!(without_node(&trace, &cluster(8, 1.0)), [2]);
        assert_eq!(without_node(&trace, &Cluster::Slots(1)), [0; 0]);
    }

    #[test]
    fn the_peak_counts_jobs_that_overlap() {
        let trace = Trace {
            jobs: vec![
                job("a", 0, &[10, 10], 20, 1),
                job("b", 9, &[1, 1, 1], 20, 1),
                job("c", 10, &[5; 4], 20, 1),
            ],
        };
        assert_eq!(peak(&trace, &settings(Cluster::Slots(1))), 5);
    }
}
