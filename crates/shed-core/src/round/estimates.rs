//! Facts and estimates of one job's attempts at the instant of the snapshot: when each is expected to end, and the
//! probability that it ends too late. Times are seconds from now.

mod attempt;
mod report_error;

use std::cell::OnceCell;
use std::f64::consts::LN_2;

use crate::round::job_distribution::Learner;
use smallvec::{SmallVec, smallvec};

use crate::estimate::distribution::{AttemptDistribution, Distribution};
use crate::estimate::log_normal::COMMON_CASES;
use crate::estimate::pocd::ln_mean;
use crate::ids::TaskIndex;
use crate::snapshot::{
    AttemptSnapshot, AttemptState, JobSnapshot, Resume, ResumePoint, TaskSnapshot,
};
use crate::time::Instant;

/// The median of fewer attempts is no reliable estimate of the usual time.
pub(crate) const REPORTS_MIN: usize = 3;

pub use attempt::AttemptEstimate;

/// One unfinished task with live attempts.
#[derive(Debug, Clone)]
pub struct TaskEstimate {
    pub index: TaskIndex,
    /// The attempts, never empty, ascending by number.
    pub attempts: SmallVec<[AttemptEstimate; 1]>,
    /// The progress of the resume point at which an attempt launched now would begin.
    resumed_at: Option<f64>,
    /// Seconds that an attempt launched now takes to start, if it begins where the others are by then.
    start_up: Option<f64>,
}

impl TaskEstimate {
    /// The progress at which an attempt that replaces all others begins, if launched now.
    pub fn begin(&self) -> f64 {
        self.resumed_at.unwrap_or(0.0)
    }

    /// The progress at which a clone launched now begins.
    pub fn clone_begin(&self) -> f64 {
        match self.start_up {
            Some(seconds) => self.lead_in(seconds),
            None => self.begin(),
        }
    }

    /// Eq. (16) of Shed+: the progress of the best attempt after `seconds`.
    fn lead_in(&self, seconds: f64) -> f64 {
        let there = self.attempts.iter().filter_map(|a| a.progress_in(seconds));
        there.fold(self.begin(), f64::max)
    }

    /// Attempts that have not started begin where the others will be by then.
    fn expect_begins(&mut self) {
        for at in 0..self.attempts.len() {
            let Some(waits) = self.attempts.get(at).and_then(AttemptEstimate::starts_in) else {
                continue;
            };
            let begin = self.lead_in(waits);
            if let Some(attempt) = self.attempts.get_mut(at) {
                attempt.begin_at(begin);
            }
        }
    }

    /// The attempt to keep: of those that report, the one with the earliest predicted end (pitfall 2: the one with
    /// the most progress may be the slow one).
    pub fn kept(&self) -> Option<&AttemptEstimate> {
        let reporting = self.attempts.iter().filter(|attempt| attempt.reports());
        reporting.min_by(|a, b| end(a).total_cmp(&end(b)))
    }

    /// Whether these are the task's live attempts.
    fn is_of(&self, task: &TaskSnapshot) -> bool {
        let numbers = self.attempts.iter().map(|attempt| attempt.number);
        numbers.eq(task.live().map(|attempt| attempt.number))
    }

    /// Expected time to the task's end: that of the kept attempt, or of the best silent one.
    pub fn remaining(&self) -> Option<f64> {
        match self.kept() {
            Some(kept) => kept.remaining,
            None => self
                .attempts
                .iter()
                .filter_map(|attempt| attempt.remaining)
                .min_by(f64::total_cmp),
        }
    }

    /// ln P(all attempts miss) over the attempts that `counts` selects.
    pub fn ln_miss(&self, counts: impl Fn(&AttemptEstimate) -> bool) -> f64 {
        self.ln_miss_given(None, 0.0, counts)
    }

    /// The same with `slack` seconds left, given a value of what the job's tasks have in common.
    pub(crate) fn ln_miss_given(
        &self,
        given: Option<&Distribution>,
        slack: f64,
        counts: impl Fn(&AttemptEstimate) -> bool,
    ) -> f64 {
        let counted = self.attempts.iter().filter(|attempt| counts(attempt));
        let each = counted.map(|attempt| attempt.ln_miss_given(given, slack));
        each.sum()
    }
}

fn end(attempt: &AttemptEstimate) -> f64 {
    attempt.remaining.unwrap_or(f64::INFINITY)
}

/// The estimate of one job.
#[derive(Debug, Clone, Default)]
pub struct JobEstimate {
    /// Seconds until the job's deadline.
    pub slack: Option<f64>,
    /// The distribution of the job's attempt durations; absent until a time was observed or predicted, unless the
    /// job's user expects one.
    pub distribution: Option<Distribution>,
    /// The standard deviation of ln of the factor that the job's tasks have in common, by an expected or an assumed
    /// distribution. Given that factor they are independent.
    common: f64,
    /// The standard deviation of the attempts' predicted remaining times, as a share of them, if they show it.
    pub(crate) report_error: Option<f64>,
    /// Whether that distribution comes from other jobs: it suffices to decide, but is not reported.
    pub is_assumed: bool,
    /// Mean duration of an attempt from zero, over ended and predicted ones.
    pub mean_run: Option<f64>,
    /// Unfinished tasks with live attempts, ascending.
    pub tasks: Vec<TaskEstimate>,
    /// Mean progress over all tasks, where a finished task counts 1 (A17).
    pub progress: f64,
    /// The number of live attempts.
    pub(crate) attempts: usize,
    /// See [`JobEstimate::left`].
    left: OnceCell<[f64; 2]>,
    /// See [`JobEstimate::own_median`].
    median: OnceCell<Option<f64>>,
    /// Seconds that ended attempts took for a whole task: recorded winners, and successes that `settle` has not
    /// recorded yet. Without those a job whose healthy attempts end together would for an instant be judged by its
    /// slow ones alone.
    pub(crate) ended: Vec<f64>,
}

impl JobEstimate {
    /// The estimate before any task is noted.
    pub(crate) fn new(now: Instant, job: &JobSnapshot) -> Self {
        let slack = job.deadline.map(|deadline| deadline.since(now).seconds());
        Self {
            slack,
            tasks: Vec::with_capacity(job.tasks.len()),
            ended: job.ended_runs.iter().map(|run| run.seconds()).collect(),
            ..Self::default()
        }
    }

    /// Notes one more task, in ascending order: the successes that `settle` has not recorded yet.
    pub(crate) fn note_ended(&mut self, task: &TaskSnapshot) {
        if task.winner.is_none() {
            let fresh = task.attempts.iter().filter_map(unrecorded_run);
            self.ended.extend(fresh);
        }
    }

    /// Notes one more unfinished task with live attempts, in ascending order.
    pub(crate) fn note_running(
        &mut self,
        now: Instant,
        overhead: f64,
        job: &JobSnapshot,
        task: &TaskSnapshot,
    ) {
        let estimate = |attempt| AttemptEstimate::new(now, overhead, attempt);
        let attempts = match task.attempts.as_slice() {
            [only] if only.lives() => smallvec![estimate(only)],
            _ => task.live().map(estimate).collect(),
        };
        let starts_late = job.rules.resume == Resume::Latest;
        let mut estimate = TaskEstimate {
            index: task.index,
            attempts,
            resumed_at: resume_point(job, task).map(|point| point.progress),
            start_up: starts_late.then_some(overhead),
        };
        if starts_late && estimate.attempts.len() > 1 {
            estimate.expect_begins();
        }
        self.add(estimate);
    }

    fn add(&mut self, task: TaskEstimate) {
        self.attempts += task.attempts.len();
        self.tasks.push(task);
    }

    /// Seconds that the running tasks still need: all together, and the one that needs most. Tasks without an estimate
    /// do not count.
    pub(crate) fn left(&self) -> [f64; 2] {
        *self.left.get_or_init(|| {
            let remaining = self.tasks.iter().filter_map(TaskEstimate::remaining);
            let known = remaining.filter(|remaining| remaining.is_finite());
            known.fold([0.0, 0.0], |[sum, longest], it| [sum + it, longest.max(it)])
        })
    }

    /// The tasks with several attempts.
    pub fn cloned(&self) -> impl Iterator<Item = &TaskEstimate> {
        // Most jobs have none.
        let tasks = match self.attempts > self.tasks.len() {
            true => self.tasks.as_slice(),
            false => &[],
        };
        tasks.iter().filter(|task| task.attempts.len() > 1)
    }

    /// Forgets the tasks, which are noted again, and returns their estimates.
    pub(crate) fn begin_again(&mut self, job: &JobSnapshot) -> Vec<TaskEstimate> {
        self.attempts = 0;
        self.left = OnceCell::new();
        self.ended.clear();
        self.ended
            .extend(job.ended_runs.iter().map(|run| run.seconds()));
        let capacity = self.tasks.len();
        std::mem::replace(&mut self.tasks, Vec::with_capacity(capacity))
    }

    /// Notes one more unfinished task with live attempts, in ascending order, with the estimates of an earlier look
    /// for the attempts that had one.
    pub(crate) fn note_known(
        &mut self,
        now: Instant,
        overhead: f64,
        (job, task): (&JobSnapshot, &TaskSnapshot),
        known: Option<TaskEstimate>,
    ) {
        let known = match known {
            Some(known) if known.is_of(task) => return self.add(known),
            known => known,
        };
        self.note_running(now, overhead, job, task);
        let (distribution, slack) = (self.distribution.as_ref(), self.slack);
        let attempts = self.tasks.last_mut().into_iter();
        for attempt in attempts.flat_map(|task| &mut task.attempts) {
            let mut past = known.iter().flat_map(|task| &task.attempts);
            match (
                past.find(|past| past.number == attempt.number),
                distribution,
            ) {
                (Some(past), _) => attempt.clone_from(past),
                (None, Some(distribution)) => attempt.judge(distribution, slack),
                (None, None) => attempt.remaining = None,
            }
        }
    }

    /// Sums the progress once all tasks are noted.
    pub(crate) fn add_up_progress(&mut self, job: &JobSnapshot) {
        let mut reported = 0.0;
        for task in &self.tasks {
            let furthest = task.attempts.iter().filter(|attempt| attempt.reports());
            reported += furthest.map(|a| a.progress).fold(0.0, f64::max);
        }
        let total = f64::from(job.rules.completions.max(1));
        self.progress = (f64::from(job.done.len()) + reported) / total;
    }

    /// Learns the job's distribution and judges each attempt by it.
    pub(crate) fn judge(&mut self, job: &JobSnapshot, learner: &Learner<'_>) {
        if let Some(usual) = learner.usual_report_error(job) {
            report_error::weigh(job, self, usual);
        }
        if let Some(learned) = learner.learn(job, self) {
            (self.distribution, self.mean_run) =
                (Some(learned.distribution), Some(learned.mean_run));
            self.has_in_common(job, learned.common);
            self.median = OnceCell::new();
        }
        let attempts = self.tasks.iter_mut().flat_map(|task| &mut task.attempts);
        for attempt in attempts {
            match &self.distribution {
                Some(distribution) => attempt.predict(distribution),
                None => attempt.remaining = None,
            }
        }
    }

    /// Estimates each attempt's probability of a miss. An attempt that reports is judged by the error of its predicted
    /// time, if there is one. One that has not started is expected to start after the same time as an attempt that is
    /// launched now: else a clone would seem to be later than expected as soon as it was launched.
    pub(crate) fn assess(&mut self, launch_time: Option<f64>) {
        let (Some(distribution), Some(slack)) = (&self.distribution, self.slack) else {
            return;
        };
        let attempts = self.tasks.iter_mut().flat_map(|task| &mut task.attempts);
        for attempt in attempts {
            if let Some(launch_time) = launch_time {
                attempt.expect_start(launch_time, distribution);
            }
            attempt.assess(distribution, slack);
        }
    }

    /// The task, if it is unfinished and has live attempts.
    pub fn running(&self, index: TaskIndex) -> Option<&TaskEstimate> {
        let at = self.tasks.binary_search_by_key(&index, |t| t.index);
        self.tasks.get(at.ok()?)
    }

    /// The distribution from the job's own times or its user's expectation.
    pub fn own_distribution(&self) -> Option<&Distribution> {
        self.distribution.as_ref().filter(|_| !self.is_assumed)
    }

    /// The median time of a task by that distribution, if it is finite and above 0.
    pub(crate) fn own_median(&self) -> Option<f64> {
        *self.median.get_or_init(|| {
            let median = self
                .own_distribution()
                .map(|distribution| distribution.quantile(-LN_2));
            median.filter(|median| median.is_finite() && *median > 0.0)
        })
    }

    /// ln of the probability that is `ln_of` the job's distribution: the mean over what its tasks have in common, given
    /// the distribution in each case. `None` if they have nothing in common.
    pub(crate) fn ln_mean(&self, ln_of: impl Fn(Option<&Distribution>) -> f64) -> f64 {
        match &self.distribution {
            Some(Distribution::LogNormal(distribution)) if self.common > 0.0 => {
                let distributions = distribution.given_common(self.common);
                ln_mean(distributions.map(|distribution| ln_of(Some(&distribution.into()))))
            }
            _ => ln_of(None),
        }
    }

    /// The share of the variance of ln T that differs from task to task. A clone changes nothing about the rest.
    pub(crate) fn own_share(&self) -> f64 {
        match &self.distribution {
            Some(Distribution::LogNormal(distribution)) => {
                1.0 - (self.common / distribution.sigma()).powi(2)
            }
            _ => 1.0,
        }
    }

    /// The number of cases in that mean.
    pub(crate) fn cases(&self) -> u64 {
        if self.common > 0.0 { COMMON_CASES } else { 1 }
    }

    /// Mean duration of an attempt from zero, in that case.
    pub(crate) fn mean_run_given(&self, given: Option<&Distribution>) -> Option<f64> {
        let both = given.zip(self.distribution.as_ref());
        let ratio = both.map_or(1.0, |(given, whole)| given.mean() / whole.mean());
        self.mean_run.map(|mean| mean * ratio)
    }

    /// A single task has nothing in common with others.
    fn has_in_common(&mut self, job: &JobSnapshot, common: f64) {
        self.common = match job.rules.completions {
            0 | 1 => 0.0,
            _ => common,
        };
    }

    /// Assumes this distribution for a job without times of its own.
    pub(crate) fn assume(&mut self, job: &JobSnapshot, distribution: Distribution, common: f64) {
        self.has_in_common(job, common);
        let attempts = self.tasks.iter_mut().flat_map(|task| &mut task.attempts);
        for attempt in attempts {
            attempt.judge(&distribution, self.slack);
        }
        (self.distribution, self.is_assumed) = (Some(distribution), true);
        self.median = OnceCell::new();
    }

    /// Seconds of a whole task, predicted or ended.
    pub(crate) fn shown_times(&self) -> impl Iterator<Item = f64> {
        let attempts = self.tasks.iter().flat_map(|task| &task.attempts);
        let predicted = attempts.filter_map(|attempt| attempt.total);
        predicted.chain(self.ended.iter().copied())
    }

    /// The usual time of a whole task, absent with too few times. Winners count, because the attempts on healthy
    /// nodes end first. Otherwise the remaining attempts would be measured by themselves.
    pub(crate) fn median_total(&self) -> Option<f64> {
        let mut totals: Vec<f64> = self.shown_times().collect();
        if totals.len() < REPORTS_MIN {
            return None;
        }
        let middle = totals.len() / 2;
        let (_, median, _) = totals.select_nth_unstable_by(middle, f64::total_cmp);
        Some(*median).filter(|median| *median > 0.0)
    }
}

/// The resume point at which an attempt launched now begins.
pub(crate) fn resume_point<'a>(
    job: &JobSnapshot,
    task: &'a TaskSnapshot,
) -> Option<&'a ResumePoint> {
    match job.rules.resume {
        Resume::None => None,
        Resume::Checkpoint | Resume::Latest | Resume::Range => task.best_resume_point(),
    }
}

fn unrecorded_run(attempt: &AttemptSnapshot) -> Option<f64> {
    let AttemptState::Succeeded { finished } = attempt.state else {
        return None;
    };
    let started = attempt.started.filter(|_| attempt.kill.is_none())?;
    let seconds = finished.since(started).seconds() / (1.0 - attempt.start_progress);
    (seconds > 0.0 && seconds.is_finite()).then_some(seconds)
}
