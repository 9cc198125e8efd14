//! Estimates of attempts and jobs: when each attempt ends, how long a new one would take, how much slack a job has,
//! and whether it can still finish in time.

use std::cell::Cell;

use crate::estimate::distribution::{AttemptDistribution, Distribution};
use crate::estimate::pocd::{ln_miss_of_launch, ln_task_pocd};
use crate::policy::ShedPrime;
use crate::policy::shed_prime::PrimeDesk;
use crate::policy::shed_prime::cross_job_prior::assume;
use crate::policy::shed_prime::value_density::{is_short, worth};
use crate::round::{FURTHER_ATTEMPTS, JobView, TaskEstimate, ValueDensity};

/// Jobs that cannot reach this PoCD are hopeless: they are served last and get no clone.
const MIN_POCD: f64 = 0.02;

/// A launch is presumed to take at most this share of an expected duration.
const LAUNCH_SHARE: f64 = 0.1;

/// The estimate of a new attempt of a job.
pub(super) struct Fresh<'p, 'a> {
    pub(super) state: &'p JobView<'a>,
    /// See [`usual_share`].
    usual_share: f64,
    /// The job's distribution given a value of what its tasks have in common.
    given: Option<&'p Distribution>,
    /// Seconds from a launch to the start of its work.
    overhead: f64,
    /// The progress at which the last attempt asked for begins, and its [`Fresh::ln_lost`]. Most begin at zero.
    last_lost: Cell<Option<(f64, f64)>>,
}

impl<'p, 'a> Fresh<'p, 'a> {
    /// Of the job at `position`.
    pub(super) fn at(desk: &'p PrimeDesk<'_, 'a>, position: usize) -> Option<Self> {
        let state = desk.job(position)?;
        Some(Self::of(state, usual_share(desk, position)))
    }

    pub(super) fn of(state: &'p JobView<'a>, usual_share: f64) -> Self {
        Self {
            state,
            usual_share,
            given: None,
            overhead: state.launch_time(),
            last_lost: Cell::new(None),
        }
    }

    /// ln P(all tasks of the job are in time, with [`FURTHER_ATTEMPTS`] each). If all of `max_clones` counted, jobs that
    /// only luck could save would be served first under overload, and delay others.
    pub(super) fn ln_hope(&self) -> f64 {
        let (state, usual_share) = (self.state, self.usual_share);
        state.estimate.ln_mean(|given| {
            let given = given.filter(|_| state.estimate.slack.is_some());
            let fresh = Fresh::of(state, usual_share);
            Fresh { given, ..fresh }.ln_hope_given()
        })
    }

    fn ln_hope_given(&self) -> f64 {
        let tasks = &self.state.estimate.tasks;
        let running: f64 = tasks.iter().map(|task| self.ln_hope_of(task)).sum();
        match self.state.waiting_now() {
            0 => running,
            waiting => running + f64::from(waiting) * ln_task_pocd(self.ln_lost(0.0)),
        }
    }

    /// ln P(one of the task's attempts or of a few new ones is in time).
    pub(super) fn ln_hope_of(&self, task: &TaskEstimate) -> f64 {
        let slack = self.state.estimate.slack.unwrap_or(0.0);
        let ln_miss = task.ln_miss_given(self.given, slack, |_| true);
        ln_task_pocd(ln_miss + self.ln_lost(task.clone_begin()))
    }

    /// ln P(a few new attempts that begin there all miss).
    fn ln_lost(&self, begin: f64) -> f64 {
        if let Some((_, ln_lost)) = self.last_lost.get().filter(|(last, _)| *last == begin) {
            return ln_lost;
        }
        let ln_miss = libm::log1p(-self.chance(begin).min(1.0 - f64::EPSILON));
        let ln_lost = f64::from(FURTHER_ATTEMPTS) * ln_miss;
        self.last_lost.set(Some((begin, ln_lost)));
        ln_lost
    }

    /// ln P(a new attempt that is launched after `wait` seconds misses).
    pub(super) fn ln_miss_after(&self, wait: f64) -> f64 {
        let (Some(distribution), Some(slack)) =
            (&self.state.estimate.distribution, self.state.estimate.slack)
        else {
            return 0.0;
        };
        ln_miss_of_launch(distribution, 0.0, slack - wait, self.overhead)
    }

    /// Seconds that a new attempt may work which is launched after `wait` seconds.
    pub(super) fn time_after(&self, wait: f64) -> f64 {
        let slack = self.state.estimate.slack;
        slack.unwrap_or(f64::INFINITY) - wait - self.overhead
    }

    /// Seconds from a launch until that share of new attempts has ended; none without a distribution.
    pub(super) fn ended_by(&self, share: f64) -> Option<f64> {
        let distribution = self.state.estimate.distribution.as_ref()?;
        let end = self.overhead + distribution.quantile(libm::log1p(-share));
        end.is_finite().then_some(end)
    }

    /// Seconds for which a new attempt that begins there holds its slot.
    pub(super) fn holds(&self, begin: f64) -> f64 {
        self.overhead + task_time(self.state, self.usual_share) * (1.0 - begin)
    }

    /// P(an attempt launched now that begins there is in time).
    pub(super) fn chance(&self, begin: f64) -> f64 {
        self.chance_where(begin, 1.0)
    }

    /// The same probability if attempts take `slowness` times as long as usual.
    pub(super) fn chance_where(&self, begin: f64, slowness: f64) -> f64 {
        let estimate = &self.state.estimate;
        match (
            self.given.or(estimate.distribution.as_ref()),
            estimate.slack,
        ) {
            (Some(distribution), Some(slack)) => {
                let distribution = distribution.scaled(slowness);
                -libm::expm1(ln_miss_of_launch(
                    &distribution,
                    begin,
                    slack,
                    self.overhead,
                ))
            }
            (_, Some(slack)) if slack <= 0.0 => 0.0,
            _ => 1.0,
        }
    }
}

/// Seconds from a launch to the start of its work: the mean over the job's attempts, because images and volumes
/// differ from job to job.
pub(super) fn measured_overhead(state: &JobView<'_>) -> Option<f64> {
    let tasks = state.estimate.tasks.iter();
    let attempts = tasks.flat_map(|task| &task.attempts);
    let (mut sum, mut count) = (0.0, 0.0);
    for start_up in attempts.filter_map(|attempt| attempt.start_up) {
        sum += start_up;
        count += 1.0;
    }
    (count > 0.0).then(|| sum / count)
}

/// The same before any attempt of a job with an expected duration has started. t_avg is a mean over all jobs, which a
/// few slow ones determine. Without this limit short jobs would seem hopeless before they have started.
pub(super) fn presumed_overhead(state: &JobView<'_>) -> Option<f64> {
    let expected = state.job.expected_duration?;
    Some(state.t_avg.min(LAUNCH_SHARE * expected.p50().seconds()))
}

/// shed-prime's estimate of a job.
#[derive(Debug, Clone, Default)]
pub struct Belief {
    /// The median time of a task, if any time of the job was observed or its user expects one.
    pub(super) known_time: Option<f64>,
    /// ln P(all tasks of the job are in time, with a few new attempts each).
    pub(super) ln_hope: f64,
    /// Mean seconds from the launch of one of its attempts to the first report.
    pub(super) report_time: Option<f64>,
    /// Seconds until the job's deadline.
    slack: Option<f64>,
    /// Seconds from a launch to the start of its work.
    overhead: f64,
    /// Tasks that could start now.
    waiting: f64,
    parallelism: u32,
    running: Running,
}

/// The remaining work of the running tasks.
#[derive(Debug, Clone)]
enum Running {
    /// In seconds, by the job's own times: the total, and the longest.
    Known([f64; 2]),
    /// For a job without any times yet.
    Unknown(Vec<TaskLeft>),
}

impl Default for Running {
    fn default() -> Self {
        Self::Known([0.0; 2])
    }
}

/// The remaining work of a task, without the usual time of a task.
#[derive(Debug, Clone, Copy)]
struct TaskLeft {
    /// Seconds until the first of the attempts that report ends; infinite without any.
    reported: f64,
    /// The age of the oldest silent attempt. It is estimated like a new one.
    oldest: Option<f64>,
    /// The progress at which a clone launched now begins.
    begin: f64,
}

impl TaskLeft {
    fn of(task: &TaskEstimate) -> Self {
        let (mut reported, mut oldest) = (f64::INFINITY, None::<f64>);
        for attempt in &task.attempts {
            match attempt.remaining {
                Some(remaining) if attempt.reports() => reported = reported.min(remaining),
                _ => oldest = Some(oldest.map_or(attempt.age, |age| age.max(attempt.age))),
            }
        }
        Self {
            reported,
            oldest,
            begin: task.clone_begin(),
        }
    }

    /// Seconds that the task still needs, given the best action for it.
    fn remaining(&self, time: f64, overhead: f64) -> f64 {
        let silent = self
            .oldest
            .map_or(f64::INFINITY, |age| (time - age).max(0.0));
        let best = self.reported.min(silent);
        best.min(overhead + time * (1.0 - self.begin))
    }
}

fn sums(tasks: impl Iterator<Item = TaskLeft>, time: f64, overhead: f64) -> [f64; 2] {
    let (mut work, mut longest) = (0.0, 0.0_f64);
    for task in tasks {
        let remaining = task.remaining(time, overhead);
        work += remaining;
        longest = longest.max(remaining);
    }
    [work, longest]
}

impl Belief {
    pub(super) fn of(job: &JobView<'_>) -> Self {
        let (known_time, overhead) = (known_time(job), job.launch_time());
        let tasks = job.estimate.tasks.iter().map(TaskLeft::of);
        Self {
            known_time,
            report_time: report_time(job),
            // Hope does not depend on the usual time.
            ln_hope: Fresh::of(job, 1.0).ln_hope(),
            slack: job.estimate.slack,
            overhead,
            waiting: f64::from(job.waiting_now()),
            parallelism: job.job.rules.parallelism,
            running: match known_time {
                Some(time) => Running::Known(sums(tasks, time, overhead)),
                None => Running::Unknown(tasks.collect()),
            },
        }
    }

    /// Whether the job is hopeless, and its slack in milliseconds, with `slots` slots. `usual_share` is the usual
    /// task time as a share of the `limit` of a job without any times.
    pub(super) fn rank(&self, limit: Option<f64>, usual_share: f64, slots: u32) -> (bool, i64) {
        let by_limit = || limit.map_or(0.0, |limit| limit * usual_share);
        let time = self.known_time.unwrap_or_else(by_limit);
        let is_hopeless = self.ln_hope < libm::log(MIN_POCD);
        let slack = self.slack.map_or(i64::MAX, |slack| {
            let work = self.work(time, slots);
            ((slack - work) * 1000.0) as i64
        });
        (is_hopeless, slack)
    }

    /// Seconds until the job ends on `slots` slots.
    fn work(&self, time: f64, slots: u32) -> f64 {
        let [mut work, mut longest] = match &self.running {
            Running::Known(sums) => *sums,
            Running::Unknown(tasks) => sums(tasks.iter().copied(), time, self.overhead),
        };
        if self.waiting > 0.0 {
            work += self.waiting * (time + self.overhead);
            longest = longest.max(time + self.overhead);
        }
        let width = f64::from(self.parallelism.min(slots).max(1));
        longest.max(work / width)
    }
}

/// Weighs the jobs where capacity is short.
pub(super) fn weigh(desk: &mut PrimeDesk<'_, '_>, prime: &ShedPrime) {
    if prime.pool {
        assume(desk);
    }
    if !prime.weigh || !is_short(desk) {
        return;
    }
    let positions = 0..desk.jobs().len();
    let worths: Vec<_> = positions.map(|at| worth_of_job(desk, at)).collect();
    for (position, worth) in worths.into_iter().enumerate() {
        if let Some(worth) = worth {
            desk.set_value_density(position, worth);
        }
    }
}

fn worth_of_job(desk: &PrimeDesk<'_, '_>, position: usize) -> Option<ValueDensity> {
    let fresh = Fresh::at(desk, position)?;
    Some(worth(&fresh, desk.belief(position)?.ln_hope))
}

/// The usual time of a task of the job while nothing of it is known, as a share of the time that it was given.
pub(super) fn usual_share(desk: &PrimeDesk<'_, '_>, position: usize) -> f64 {
    desk.place(position).map_or(1.0, |usual| usual.task)
}

/// Seconds from the launch of one of the job's attempts to its first report: the median, which a straggler's own late
/// report does not change.
fn report_time(state: &JobView<'_>) -> Option<f64> {
    let attempts = state.job.tasks.iter().flat_map(|task| &task.attempts);
    let mut times: Vec<f64> = attempts
        .filter_map(|attempt| {
            let first = attempt.progress?.first_at;
            Some(first.since(attempt.launched).seconds())
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times.get(times.len().saturating_sub(1) / 2).copied()
}

/// Seconds from the launch of an attempt of the job to its first report: what the job's own attempts took, or else the
/// usual share of the time that the job was given. It is at most t_avg, which is a mean over all jobs.
pub(super) fn time_to_report(desk: &PrimeDesk<'_, '_>, position: usize) -> f64 {
    let Some(state) = desk.job(position) else {
        return 0.0;
    };
    let own = desk.belief(position).and_then(|belief| belief.report_time);
    own.unwrap_or_else(|| {
        let share = desk.place(position).and_then(|usual| usual.report);
        let usual = share.zip(state.limit()).map(|(share, limit)| share * limit);
        usual.map_or(state.t_avg, |usual| usual.min(state.t_avg))
    })
}

/// The median time of a task, if any time of the job was observed or its user expects one.
pub(super) fn known_time(state: &JobView<'_>) -> Option<f64> {
    state.estimate.own_median()
}

/// The usual time of the job's tasks in seconds.
pub(super) fn task_time(state: &JobView<'_>, usual_share: f64) -> f64 {
    let by_limit = || state.limit().map_or(0.0, |limit| limit * usual_share);
    known_time(state).unwrap_or_else(by_limit)
}

/// Seconds that the task still needs, given the best action for it.
pub(super) fn remaining(task: &TaskEstimate, time: f64, overhead: f64) -> f64 {
    TaskLeft::of(task).remaining(time, overhead)
}
