//! The results of a run, and its figures.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use shed_core::plan::Outcome as Bucket;
use shed_core::snapshot::{AttemptKind, KillKind};
use shed_core::time::{Instant, Span};

use crate::tenants::{self, TenantFigures};
use crate::trace::Job;

/// The result of one job.
#[derive(Debug, Clone, PartialEq)]
pub struct JobOutcome {
    /// The job's name in the trace.
    pub id: Arc<str>,
    /// The class in which it recurs.
    pub class: Option<Arc<str>>,
    /// The tenant that it belongs to, if jobs have tenants.
    pub tenant: Option<Arc<str>>,
    /// When the job arrived.
    pub arrival: Instant,
    /// The job's deadline.
    pub deadline: Option<Instant>,
    /// When the job's result was known.
    pub ended: Option<Instant>,
    /// Whether every task was done.
    pub complete: bool,
}

impl JobOutcome {
    pub(crate) fn new(job: &Job) -> Self {
        Self {
            id: Arc::clone(&job.id),
            class: job.class.clone(),
            tenant: job.tenant.clone(),
            arrival: job.arrival,
            deadline: job.deadline.map(|deadline| job.arrival.plus(deadline)),
            ended: None,
            complete: false,
        }
    }

    /// From arrival to completion; absent for a job that was not completed.
    pub fn flowtime(&self) -> Option<Span> {
        let ended = self.ended.filter(|_| self.complete)?;
        Some(ended.since(self.arrival))
    }

    /// Whether the job was completed at or before its deadline; false without one.
    pub fn met(&self) -> bool {
        match (self.ended, self.deadline) {
            (Some(ended), Some(deadline)) => self.complete && ended <= deadline,
            _ => false,
        }
    }
}

/// The result of one attempt.
#[derive(Debug, Clone, PartialEq)]
pub struct AttemptOutcome {
    /// Position of its job in the trace.
    pub job: u32,
    /// Position of its stage in the job.
    pub stage: u32,
    /// Position of its task in the stage.
    pub task: u32,
    /// Its number among the task's attempts.
    pub number: u32,
    /// Why it was launched.
    pub kind: AttemptKind,
    /// Position of its node; absent on slots, and if it never got one.
    pub node: Option<u32>,
    /// When it was launched.
    pub launched: Instant,
    /// When the attempt took its slot, which it holds until its end; absent if it never got one.
    pub placed: Option<Instant>,
    /// When it started to process; absent if it never did.
    pub started: Option<Instant>,
    /// When it was gone.
    pub ended: Instant,
    /// The share of its task that was done when it began.
    pub begin: f64,
    /// Why it was killed; absent if it was not.
    pub kill: Option<KillKind>,
    /// The bucket of its end; absent for the winner.
    pub bucket: Option<Bucket>,
}

/// Sums over a run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Totals {
    /// Events taken from the queue.
    pub events: u64,
    /// Attempts launched.
    pub attempts: u64,
    /// Clones among them.
    pub clones: u64,
    /// Tasks that a clone won.
    pub clone_wins: u64,
    /// Tasks with a winner.
    pub tasks_done: u64,
    /// Attempts killed.
    pub kills: u64,
    /// Attempts that failed by themselves.
    pub failures: u64,
    /// Attempts that were evicted or lost.
    pub disruptions: u64,
    /// Stages with facts that the core rejects: they get no clones.
    pub refused: u64,
    /// Policies that panicked: a pass without clones each.
    pub panics: u64,
    /// Stages that a pass which ran out of work left unchanged, summed over passes.
    pub cut_short: u64,
    /// Time for which attempts held a node, in milliseconds.
    pub machine_ms: i64,
    /// The same of winners alone.
    pub useful_ms: i64,
    /// A number that two runs share only if they took the same actions at the same times.
    pub digest: u64,
}

impl Totals {
    /// One step in the manner of FNV-1a, on eight bytes.
    pub(crate) fn add_to_digest(&mut self, part: u64) {
        let mixed = (self.digest ^ part).wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.digest = mixed.wrapping_mul(0x0100_0000_01b3).rotate_left(23);
    }
}

/// The results of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// In the order of the trace.
    pub jobs: Vec<JobOutcome>,
    /// In the order of their ends; empty unless requested.
    pub attempts: Vec<AttemptOutcome>,
    /// Sums.
    pub totals: Totals,
}

/// The figures of a run, as written by `--format json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Jobs of the workload.
    pub jobs: usize,
    /// Jobs with a deadline.
    pub jobs_with_deadline: usize,
    /// Jobs completed at or before their deadline.
    pub jobs_met: usize,
    /// Jobs whose tasks were all done.
    pub jobs_completed: usize,
    /// `jobs_met` over `jobs_with_deadline`; absent without deadlines.
    pub pocd: Option<f64>,
    /// Mean time from arrival to completion, of completed jobs, in seconds.
    pub mean_flowtime_s: Option<f64>,
    /// Median of the same.
    pub p50_flowtime_s: Option<f64>,
    /// 90th percentile of the same.
    pub p90_flowtime_s: Option<f64>,
    /// 99th percentile of the same.
    pub p99_flowtime_s: Option<f64>,
    /// Time for which attempts held a slot.
    pub machine_seconds: f64,
    /// The part of it that was not a winner's.
    pub machine_seconds_wasted: f64,
    /// Tasks with a winner.
    pub tasks: u64,
    /// Attempts launched.
    pub attempts: u64,
    /// Clones among them.
    pub clones: u64,
    /// Tasks that a clone won.
    pub clone_wins: u64,
    /// Attempts killed.
    pub kills: u64,
    /// Attempts that failed by themselves.
    pub failures: u64,
    /// Attempts that were evicted or lost.
    pub disruptions: u64,
    /// Stages with facts that the core rejects, such as a demand that no node can hold: they get no clones.
    #[serde(default)]
    pub refused: u64,
    /// Policies that panicked: a pass without clones each.
    #[serde(default)]
    pub panics: u64,
    /// Stages that a pass which ran out of work left unchanged, summed over passes.
    #[serde(default)]
    pub cut_short: u64,
    /// Machine time over slots × time from the first arrival to the last end; absent if the capacity has no single
    /// measure.
    pub utilisation: Option<f64>,
    /// Events taken from the queue.
    pub events: u64,
    /// The same for two runs that took the same actions at the same times, in hexadecimal.
    pub digest: String,
    /// The figures of each tenant, if jobs have tenants.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tenants: Vec<TenantFigures>,
}

impl Outcome {
    /// From the first arrival to the last end.
    pub fn span(&self) -> Span {
        let first = self.jobs.iter().map(|job| job.arrival).min();
        let last = self.jobs.iter().filter_map(|job| job.ended).max();
        match (first, last) {
            (Some(first), Some(last)) => last.since(first),
            _ => Span(0),
        }
    }

    /// The jobs but for the first ones of each class, in the order of the trace. Jobs without a class are all there.
    fn jobs_behind(&self, first: usize) -> Vec<&JobOutcome> {
        let mut seen: BTreeMap<Arc<str>, usize> = BTreeMap::new();
        let mut is_behind = |job: &&JobOutcome| {
            let Some(class) = job.class.clone() else {
                return true;
            };
            let seen = seen.entry(class).or_default();
            *seen += 1;
            *seen > first
        };
        self.jobs.iter().filter(|job| is_behind(job)).collect()
    }

    /// The figures, with the utilization of `slots` slots.
    pub fn figures(&self, slots: Option<u32>) -> Figures {
        self.figures_behind(0, slots)
    }

    /// The same, where the figures about jobs leave out the first jobs of each class.
    pub fn figures_behind(&self, first: usize, slots: Option<u32>) -> Figures {
        let jobs = self.jobs_behind(first);
        let flowtimes = jobs.iter().filter_map(|job| job.flowtime());
        let mut flowtimes: Vec<i64> = flowtimes.map(|span| span.0).collect();
        flowtimes.sort_unstable();
        let with_deadline = jobs.iter().filter(|job| job.deadline.is_some());
        let with_deadline = with_deadline.count();
        let met = jobs.iter().filter(|job| job.met()).count();
        let totals = &self.totals;
        let capacity = slots.map(|slots| f64::from(slots) * self.span().0 as f64);
        Figures {
            jobs: jobs.len(),
            jobs_with_deadline: with_deadline,
            jobs_met: met,
            jobs_completed: flowtimes.len(),
            pocd: (with_deadline > 0).then(|| met as f64 / with_deadline as f64),
            mean_flowtime_s: mean(&flowtimes).map(|ms| ms / 1000.0),
            p50_flowtime_s: percentile(&flowtimes, 50),
            p90_flowtime_s: percentile(&flowtimes, 90),
            p99_flowtime_s: percentile(&flowtimes, 99),
            machine_seconds: totals.machine_ms as f64 / 1000.0,
            machine_seconds_wasted: (totals.machine_ms - totals.useful_ms) as f64 / 1000.0,
            tasks: totals.tasks_done,
            attempts: totals.attempts,
            clones: totals.clones,
            clone_wins: totals.clone_wins,
            kills: totals.kills,
            failures: totals.failures,
            disruptions: totals.disruptions,
            refused: totals.refused,
            panics: totals.panics,
            cut_short: totals.cut_short,
            utilisation: capacity
                .filter(|capacity| *capacity > 0.0)
                .map(|capacity| totals.machine_ms as f64 / capacity),
            events: totals.events,
            digest: format!("{:016x}", totals.digest),
            tenants: tenants::figures(&self.jobs),
        }
    }
}

fn mean(sorted_ms: &[i64]) -> Option<f64> {
    let sum: i128 = sorted_ms.iter().map(|&ms| i128::from(ms)).sum();
    (!sorted_ms.is_empty()).then(|| sum as f64 / sorted_ms.len() as f64)
}

/// The value at position ⌊p·n⌋ of n sorted values, in seconds.
fn percentile(sorted_ms: &[i64], percent: usize) -> Option<f64> {
    let at = (sorted_ms.len() * percent / 100).min(sorted_ms.len().checked_sub(1)?);
    sorted_ms.get(at).map(|&ms| ms as f64 / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_a_value_that_occurred() {
        let times: Vec<i64> = (1..=10).map(|second| second * 1000).collect();
        assert_eq!(percentile(&times, 50), Some(6.0));
        assert_eq!(percentile(&times, 99), Some(10.0));
        assert_eq!(percentile(&[], 50), None);
        assert_eq!(mean(&times), Some(5500.0));
    }
}
