//! Training data of networks: the facts about tasks and jobs at τ_est, and their times.

use std::collections::{BTreeMap, BTreeSet};

use shed_core::ids::JobKey;
use shed_core::snapshot::{AttemptKind, JobSnapshot, Snapshot};
use shed_core::time::Instant;
use shed_papers::Laser;
use shed_papers::laser::{LaserJob, job_features, task_features};
use shed_record::schema::Ended;

/// One thing that was seen at τ_est.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// The sample's job. Samples of one job are all for training or all for the test.
    pub job: usize,
    /// Its features, in the core's order.
    pub features: Vec<f64>,
    /// The measured time, in seconds.
    pub time: f64,
}

/// All samples of some jobs.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Samples {
    /// Jobs that were seen at all.
    pub jobs: usize,
    /// Running tasks and their times from launch to end.
    pub task: Vec<Sample>,
    /// Jobs and their times from submission to completion.
    pub job: Vec<Sample>,
    /// Jobs and the machine time of all their attempts.
    pub machine: Vec<Sample>,
}

impl Samples {
    /// Adds the samples of other jobs.
    pub fn add(&mut self, other: Self) {
        let first = self.jobs;
        let moved = |samples: Vec<Sample>| {
            samples.into_iter().map(move |sample| Sample {
                job: sample.job + first,
                ..sample
            })
        };
        self.jobs += other.jobs;
        self.task.extend(moved(other.task));
        self.job.extend(moved(other.job));
        self.machine.extend(moved(other.machine));
    }
}

/// How many extra attempts a job's stragglers got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extra {
    /// As `Source::Drawn` of the policy with this seed decided, whether there was capacity or not.
    Drawn(u64),
    /// As observed: the most clones that a task got from τ_est on, less the one that replaces the
    /// original.
    Seen,
}

#[derive(Debug)]
struct SeenJob {
    submitted: Instant,
    completions: u32,
    /// At τ_est, and when that was. None: not there yet.
    at_tau_est: Option<(LaserJob, Instant)>,
    ended: Vec<(Ended, Instant)>,
}

/// Collects samples from passes and ends of attempts, in their order.
#[derive(Debug)]
pub struct Collector {
    laser: Laser,
    extra: Extra,
    seed: u64,
    now: Instant,
    jobs: BTreeMap<JobKey, SeenJob>,
}

impl Collector {
    /// For jobs at the policy's instants. `seed` generates the numbers that replace zeros.
    pub fn new(laser: Laser, extra: Extra, seed: u64) -> Self {
        Self {
            laser,
            extra,
            seed,
            now: Instant(0),
            jobs: BTreeMap::new(),
        }
    }

    /// A pass saw this.
    pub fn pass(&mut self, snapshot: &Snapshot) {
        self.now = snapshot.now;
        for job in &snapshot.jobs {
            if !self.jobs.contains_key(&job.key) {
                self.jobs.insert(job.key.clone(), SeenJob::new(job));
            }
            let Some(seen) = self.jobs.get_mut(&job.key) else {
                continue;
            };
            // The clock of a job may start with its first unsuspended pass.
            seen.submitted = job.submitted;
            if seen.at_tau_est.is_some() {
                continue;
            }
            let Some([tau_est, tau_kill]) = self.laser.instants.of(job) else {
                continue;
            };
            if job.submitted.plus(tau_est) <= snapshot.now {
                let view = LaserJob::of(snapshot, job, tau_kill);
                // While all its tasks wait for capacity the policy does not check it either.
                let view = view.filter(|view| !view.tasks.is_empty());
                seen.at_tau_est = view.map(|view| (view, snapshot.now));
            }
        }
    }

    /// An attempt was counted.
    pub fn ended(&mut self, ended: Ended) {
        let now = self.now;
        if let Some(job) = self.jobs.get_mut(&ended.job) {
            job.ended.push((ended, now));
        }
    }

    /// The samples, as far as jobs were seen from τ_est to their end.
    pub fn finish(self) -> Samples {
        let mut samples = Samples {
            jobs: self.jobs.len(),
            ..Samples::default()
        };
        for (number, job) in self.jobs.values().enumerate() {
            let Some((view, at)) = &job.at_tau_est else {
                continue;
            };
            let of_job = |features, time| Sample {
                job: number,
                features,
                time,
            };
            for task in &view.tasks {
                let ended = job.ended.iter().map(|(ended, _)| ended);
                let mut ended = ended.filter(|ended| ended.task == task.index);
                if let Some(time) = ended.find_map(whole_time) {
                    let features = task_features(self.seed, view, task);
                    samples.task.push(of_job(features, time));
                }
            }
            if let Some([time, machine]) = job.times() {
                let extra = match self.extra {
                    Extra::Drawn(seed) => self.laser.drawn_extra(seed, view),
                    Extra::Seen => job.extra_since(*at),
                };
                let features = job_features(self.seed, view, extra);
                samples.job.push(of_job(features.clone(), time));
                samples.machine.push(of_job(features, machine));
            }
        }
        samples
    }
}

/// From an original's launch to its end, in seconds. If it was stopped before, its last reported
/// rate is extrapolated.
fn whole_time(ended: &Ended) -> Option<f64> {
    if ended.kind != AttemptKind::Original || ended.start_progress > 0.0 {
        return None;
    }
    let since_launch = |at: Instant| at.since(ended.launched).seconds();
    if let (None, Some(finished)) = (ended.outcome, ended.finished) {
        return Some(since_launch(finished));
    }
    let (reached, at) = ended.reported?;
    let started = ended.started?;
    let processed = at.since(started).seconds() / reached;
    (reached > 0.0).then(|| since_launch(started) + processed)
}

impl SeenJob {
    fn new(job: &JobSnapshot) -> Self {
        Self {
            submitted: job.submitted,
            completions: job.rules.completions,
            at_tau_est: None,
            ended: Vec::new(),
        }
    }

    /// Its time and its machine time in seconds, if all its tasks were seen to be won.
    fn times(&self) -> Option<[f64; 2]> {
        let winners = self
            .ended
            .iter()
            .filter(|(ended, _)| ended.outcome.is_none());
        let won: BTreeSet<u32> = winners.clone().map(|(ended, _)| ended.task.0).collect();
        if won.len() != self.completions as usize {
            return None;
        }
        let last = winners.filter_map(|(ended, _)| ended.finished).max()?;
        let machine = self.ended.iter().map(|(ended, counted)| {
            let end = ended.finished.unwrap_or(*counted);
            end.since(ended.launched).seconds().max(0.0)
        });
        Some([last.since(self.submitted).seconds(), machine.sum()])
    }

    fn extra_since(&self, at: Instant) -> u32 {
        let mut clones: BTreeMap<u32, u32> = BTreeMap::new();
        for (ended, _) in &self.ended {
            if ended.kind == AttemptKind::Clone && ended.launched >= at {
                *clones.entry(ended.task.0).or_default() += 1;
            }
        }
        clones
            .values()
            .max()
            .copied()
            .unwrap_or(0)
            .saturating_sub(1)
    }
}
