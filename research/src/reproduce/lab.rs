//! Runs of the simulator for figures: one text of flags, every seed, measured by job.

use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};
use std::path::PathBuf;
use std::rc::Rc;

use clap::Parser;
use indicatif::ProgressBar;
use shed_core::snapshot::AttemptKind;
use shed_core::time::Span;

use super::findings::Sample;
use crate::LabError;
use shed_sim::cli::{CliError, Prepared, RunOptions};
use shed_sim::engine::Engine;
use shed_sim::outcome::Outcome;
use shed_sim::parallel::in_order;
use shed_sim::settings::Cluster;
use shed_sim::trace::{self, Demand, Trace};

/// Parameters of the runs for figures.
#[derive(Debug, Clone)]
pub struct Scale {
    /// The first seed.
    pub seed: u64,
    /// How many.
    pub seeds: u64,
    /// Times the jobs of each set-up.
    pub jobs: f64,
    /// The folder of traces that are not made up.
    pub traces: Option<PathBuf>,
    /// Number of concurrent runs; the results do not depend on it.
    pub threads: usize,
}

/// Result of a job. Seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct JobRun {
    /// Completed by its deadline.
    pub met: bool,
    /// Arrival to completion; absent if it was not completed.
    pub flow: Option<f64>,
    /// The first attempt's start to completion.
    pub running: Option<f64>,
    /// The times for which its attempts held capacity, each times the capacity: a slot, or on nodes
    /// cpu and memory, each as a share of the cluster's.
    pub held: f64,
    /// How many it has.
    pub tasks: usize,
}

/// Result of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// In the order of the workload.
    pub jobs: Vec<JobRun>,
    /// The share of slots held while jobs arrived, first to last; absent on nodes.
    pub utilisation: Option<f64>,
    /// The largest share of slots held at a time; absent on nodes.
    pub peak: Option<f64>,
    /// The share of slots held in each tenth of the time while jobs arrived, in order; NaN on nodes.
    pub tenths: [f64; 10],
    /// While jobs arrived, by fifths of the slots held; NaN on nodes.
    pub levels: [Level; 5],
    /// The time for which attempts held a place, summed.
    pub machine_seconds: f64,
    /// From the first arrival to the last end.
    pub makespan: f64,
    /// Tasks with a clone, over all tasks.
    pub cloned: f64,
}

/// The time in which a run held this number of slots.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Level {
    /// As a share of the time.
    pub time: f64,
    /// Mean number of active jobs then; NaN if there was no such time.
    pub active: f64,
}

impl Level {
    const UNKNOWN: Self = Self {
        time: f64::NAN,
        active: f64::NAN,
    };
}

impl Run {
    /// The share of jobs that met their deadline, in %.
    pub fn met(&self) -> f64 {
        self.share(|job| job.met)
    }

    /// The share of jobs for which `is` holds, in %.
    pub fn share(&self, is: impl Fn(&JobRun) -> bool) -> f64 {
        let count = self.jobs.iter().filter(|job| is(job)).count();
        100.0 * count as f64 / self.jobs.len() as f64
    }

    /// The share of jobs completed within `seconds` of their arrival, in %.
    pub fn within(&self, seconds: f64) -> f64 {
        self.share(|job| job.flow.is_some_and(|flow| flow <= seconds))
    }

    /// The mean time from arrival to completion of completed jobs.
    pub fn mean_flow(&self) -> f64 {
        let flows: Vec<f64> = self.jobs.iter().filter_map(|job| job.flow).collect();
        shed_sim::stats::mean(&flows)
    }

    /// Capacity that all jobs held; see [`JobRun::held`].
    pub fn resource(&self) -> f64 {
        self.jobs.iter().map(|job| job.held).sum()
    }

    /// Mean number of jobs in the system, from the first arrival to the last end.
    pub fn active_jobs(&self) -> f64 {
        let flows = self.jobs.iter().filter_map(|job| job.flow);
        flows.sum::<f64>() / self.makespan
    }

    /// The longest time from arrival to completion.
    pub fn longest_flow(&self) -> f64 {
        let flows = self.jobs.iter().filter_map(|job| job.flow);
        flows.fold(0.0, f64::max)
    }
}

/// The runs of one set-up, by seed.
#[derive(Debug, Clone)]
pub struct Runs(pub Rc<Vec<Run>>);

impl Runs {
    /// A measure of each.
    pub fn sample(&self, of: impl Fn(&Run) -> f64) -> Sample {
        Sample(self.0.iter().map(of).collect())
    }

    /// The share of deadlines met, in %.
    pub fn met(&self) -> Sample {
        self.sample(Run::met)
    }

    /// The share of slots held while jobs arrived, in %.
    pub fn held(&self) -> Sample {
        self.sample(|run| 100.0 * run.utilisation.unwrap_or(f64::NAN))
    }

    /// The mean flow time in seconds.
    pub fn flow(&self) -> Sample {
        self.sample(Run::mean_flow)
    }

    /// The time in which that share of the jobs of all seeds is done, by one of a job's times; NaN
    /// of none.
    pub fn time_of(&self, share: f64, of: impl Fn(&JobRun) -> Option<f64>) -> f64 {
        let jobs = self.0.iter().flat_map(|run| &run.jobs);
        let mut times: Vec<f64> = jobs.filter_map(of).collect();
        times.sort_by(f64::total_cmp);
        let at = (share * times.len() as f64) as usize;
        let time = times.get(at.min(times.len().saturating_sub(1)));
        time.copied().unwrap_or(f64::NAN)
    }

    /// The same of both, seed by seed.
    pub fn against(&self, other: &Self, of: impl Fn(&Run, &Run) -> f64) -> Sample {
        let pairs = self.0.iter().zip(other.0.iter());
        Sample(pairs.map(|(a, b)| of(a, b)).collect())
    }
}

/// Flags of `shed-sim run`.
#[derive(Debug, Parser)]
#[command(no_binary_name = true)]
struct Flags {
    #[command(flatten)]
    options: RunOptions,
}

/// Parses flags of `shed-sim run`, separated by blanks.
pub(super) fn options(flags: &str) -> Result<RunOptions, LabError> {
    let parsed = Flags::try_parse_from(flags.split_whitespace());
    let parsed = parsed.map_err(|error| LabError::usage(format!("{flags}: {error}")))?;
    Ok(parsed.options)
}

/// Runs figures. Runs with the same flags are not repeated.
pub struct Lab<'a> {
    scale: Scale,
    bar: &'a ProgressBar,
    done: BTreeMap<String, Runs>,
    traces: BTreeMap<PathBuf, Trace>,
}

impl<'a> Lab<'a> {
    /// With nothing run yet.
    pub fn new(scale: Scale, bar: &'a ProgressBar) -> Self {
        Self {
            scale,
            bar,
            done: BTreeMap::new(),
            traces: BTreeMap::new(),
        }
    }

    /// Its parameters.
    pub fn scale(&self) -> &Scale {
        &self.scale
    }

    /// That many jobs, scaled; at least 3.
    pub fn jobs(&self, jobs: u32) -> u32 {
        (f64::from(jobs) * self.scale.jobs).round().max(3.0) as u32
    }

    /// The path of a trace as flags take it; none if the folder of traces is not known or lacks it.
    pub fn trace(&self, file: &str) -> Option<String> {
        let path = self.scale.traces.as_ref()?.join(file);
        path.is_file().then(|| path.display().to_string())
    }

    /// Runs the flags of `shed-sim run`, separated by blanks, on every seed.
    pub fn run(&mut self, flags: &str) -> Result<Runs, LabError> {
        if let Some(runs) = self.done.get(flags) {
            return Ok(runs.clone());
        }
        let parsed = options(flags)?;
        let is_made_up = parsed.trace.to_string_lossy().starts_with("setup:");
        let trace = if is_made_up {
            None
        } else {
            Some(match self.traces.entry(parsed.trace.clone()) {
                Entry::Occupied(known) => &*known.into_mut(),
                Entry::Vacant(new) => &*new.insert(trace::read(&parsed.trace)?),
            })
        };
        self.bar.set_message(flags.to_owned());
        let runs = on_seeds(&parsed, trace, &self.scale, self.bar);
        let runs = runs.map_err(|error| match error {
            LabError::Cli(CliError::Run(error)) => LabError::Figure {
                flags: flags.to_owned(),
                error,
            },
            other => other,
        });
        let runs = Runs(Rc::new(runs?));
        self.done.insert(flags.to_owned(), runs.clone());
        Ok(runs)
    }
}

/// One run per seed, in the order of the seeds.
fn on_seeds(
    options: &RunOptions,
    trace: Option<&Trace>,
    scale: &Scale,
    bar: &ProgressBar,
) -> Result<Vec<Run>, LabError> {
    let numbers: Vec<u64> = (0..scale.seeds).collect();
    in_order(&numbers, scale.threads, |&number| {
        let options = RunOptions {
            seed: scale.seed.saturating_add(number),
            ..options.clone()
        };
        let run = once(&options, trace);
        bar.tick();
        run
    })
}

fn once(options: &RunOptions, trace: Option<&Trace>) -> Result<Run, LabError> {
    let prepared = match trace {
        None => options.prepare()?,
        Some(trace) => options.prepare_with(trace.clone())?,
    };
    let engine = Engine::new(&prepared.settings, &prepared.workload).with_attempts();
    Ok(measure(&engine.run()?, &prepared))
}

fn measure(outcome: &Outcome, prepared: &Prepared) -> Run {
    let workload = &prepared.workload.jobs;
    let jobs = outcome.jobs.iter().zip(workload);
    let mut jobs: Vec<JobRun> = jobs
        .map(|(ended, job)| JobRun {
            met: ended.met(),
            flow: ended.flowtime().map(Span::seconds),
            running: None,
            held: 0.0,
            tasks: job.tasks(),
        })
        .collect();
    let total = total(&prepared.settings.cluster);
    let mut cloned = BTreeSet::new();
    let mut first_start: Vec<Option<i64>> = vec![None; jobs.len()];
    for attempt in &outcome.attempts {
        if attempt.kind == AttemptKind::Clone {
            cloned.insert((attempt.job, attempt.stage, attempt.task));
        }
        let at = attempt.job as usize;
        let stage = workload
            .get(at)
            .and_then(|job| job.stages.get(attempt.stage as usize));
        if let (Some(job), Some(stage), Some(placed)) = (jobs.get_mut(at), stage, attempt.placed) {
            job.held += share_of(stage.demand, total) * attempt.ended.since(placed).seconds();
        }
        if let (Some(first), Some(started)) = (first_start.get_mut(at), attempt.started) {
            *first = Some(first.map_or(started.0, |known| known.min(started.0)));
        }
    }
    for ((job, ended), start) in jobs.iter_mut().zip(&outcome.jobs).zip(&first_start) {
        let done = ended.ended.filter(|_| ended.complete);
        let running = done.zip(*start).map(|(end, start)| end.0 - start);
        job.running = running.map(|ms| Span(ms).seconds());
    }
    let tasks: usize = jobs.iter().map(|job| job.tasks).sum();
    let slots = prepared.slots.map(f64::from);
    let held = slots.map(|slots| Occupancy::of(outcome, slots));
    let arrivals = || outcome.jobs.iter().map(|job| job.arrival.0);
    let [first, last] = [arrivals().min(), arrivals().max()].map(Option::unwrap_or_default);
    Run {
        utilisation: held.as_ref().map(|held| held.mean(first, last)),
        peak: held.as_ref().map(Occupancy::peak),
        tenths: held
            .as_ref()
            .map_or([f64::NAN; 10], |held| held.tenths(first, last)),
        levels: held
            .as_ref()
            .map_or([Level::UNKNOWN; 5], |held| held.levels(first, last)),
        machine_seconds: outcome.totals.machine_ms as f64 / 1000.0,
        makespan: outcome.span().seconds(),
        cloned: cloned.len() as f64 / tasks.max(1) as f64,
        jobs,
    }
}

/// Cpu and memory of all nodes; absent on slots.
fn total(cluster: &Cluster) -> Option<[f64; 2]> {
    let Cluster::Nodes(nodes) = cluster else {
        return None;
    };
    let sum = |name: &str| {
        nodes
            .iter()
            .map(|node| node.allocatable.get(name) as f64)
            .sum()
    };
    Some(["cpu", "memory"].map(sum))
}

/// Demand of an attempt: cpu and memory, each as a share of the cluster's; 1 on slots.
fn share_of(demand: Demand, total: Option<[f64; 2]>) -> f64 {
    let Some(total) = total else {
        return 1.0;
    };
    let asked = [demand.cpu_milli, demand.memory_bytes].map(|amount| amount.unwrap_or(0) as f64);
    asked
        .iter()
        .zip(total)
        .map(|(asked, all)| asked / all)
        .sum()
}

/// How many slots were held when, and how many jobs were active.
struct Occupancy {
    /// Instants in milliseconds, ascending, with the changes of slots and jobs at each.
    changes: Vec<(i64, i64, i64)>,
    slots: f64,
}

impl Occupancy {
    fn of(outcome: &Outcome, slots: f64) -> Self {
        let mut changes = Vec::new();
        for attempt in &outcome.attempts {
            if let Some(placed) = attempt.placed {
                changes.push((placed.0, 1, 0));
                changes.push((attempt.ended.0, -1, 0));
            }
        }
        for job in &outcome.jobs {
            changes.push((job.arrival.0, 0, 1));
            if let Some(ended) = job.ended {
                changes.push((ended.0, 0, -1));
            }
        }
        changes.sort_unstable();
        Self { changes, slots }
    }

    /// Calls `each` with the slots held, the active jobs and the duration of every interval within [from, to].
    fn intervals(&self, from: i64, to: i64, mut each: impl FnMut(i64, i64, i64)) {
        let (mut held, mut active, mut since) = (0, 0, from);
        for &(at, slots, jobs) in &self.changes {
            let now = at.clamp(from, to);
            each(held, active, now - since);
            since = now;
            held += slots;
            active += jobs;
        }
    }

    /// The mean share within [from, to].
    fn mean(&self, from: i64, to: i64) -> f64 {
        let mut sum = 0.0;
        self.intervals(from, to, |held, _, duration| {
            sum += held as f64 * duration as f64;
        });
        sum / (self.slots * (to - from).max(1) as f64)
    }

    fn tenths(&self, from: i64, to: i64) -> [f64; 10] {
        std::array::from_fn(|tenth| {
            let at = |tenth: usize| from + (to - from) * tenth as i64 / 10;
            self.mean(at(tenth), at(tenth + 1))
        })
    }

    fn levels(&self, from: i64, to: i64) -> [Level; 5] {
        let mut sums = [[0.0; 2]; 5];
        self.intervals(from, to, |held, active, duration| {
            let fifth = (5.0 * held as f64 / self.slots) as usize;
            let [time, jobs] = &mut sums[fifth.min(4)];
            *time += duration as f64;
            *jobs += active as f64 * duration as f64;
        });
        sums.map(|[time, jobs]| Level {
            time: time / (to - from).max(1) as f64,
            active: jobs / time,
        })
    }

    fn peak(&self) -> f64 {
        let mut held = 0;
        let held = self.changes.iter().map(|(_, slots, _)| {
            held += slots;
            held
        });
        held.max().unwrap_or(0) as f64 / self.slots
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn occupancy_is_weighed_by_time_within_the_interval() {
        let held = Occupancy {
            changes: vec![
                (0, 0, 1),
                (0, 1, 0),
                (10, 0, 2),
                (10, 1, 0),
                (20, -1, 0),
                (40, -1, -1),
            ],
            slots: 4.0,
        };
        // 1 slot for 10, 2 for 10, 1 for 20: 50 of 4 × 40.
        assert!((held.mean(0, 40) - 50.0 / 160.0).abs() < 1e-12);
        assert!((held.mean(10, 20) - 0.5).abs() < 1e-12);
        assert!((held.peak() - 0.5).abs() < 1e-12);
        let tenths = held.tenths(0, 40);
        assert_eq!([tenths[0], tenths[3], tenths[9]], [0.25, 0.5, 0.25]);
        // A quarter of the slots is in the second fifth, a half in the third.
        let levels = held.levels(0, 40);
        assert_eq!([levels[1].time, levels[2].time], [0.75, 0.25]);
        assert_eq!(levels[2].active, 3.0);
        assert!((levels[1].active - 70.0 / 30.0).abs() < 1e-12);
        assert!(levels[4].active.is_nan());
    }
}
