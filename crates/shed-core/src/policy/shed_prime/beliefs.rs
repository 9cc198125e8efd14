//! What is believed of attempts and jobs: when each attempt ends, what a new one could do, how
//! much slack a job has, and whether it still can be in time.

use std::f64::consts::LN_2;

use crate::estimate::law::AttemptLaw;
use crate::estimate::pocd::{ln_miss_of_launch, ln_task_pocd};
use crate::policy::ShedPrime;
use crate::policy::shed_prime::cross_job_prior::assume;
use crate::policy::shed_prime::feasible_set::mark;
use crate::policy::shed_prime::headroom::{follow, reserve};
use crate::policy::shed_prime::value_density::{is_short, worth};
use crate::round::{AttemptEstimate, JobView, Round, TaskEstimate};

/// New attempts of each task that a job's hope may rest on. Where all of `max_clones` counted,
/// jobs that only luck could save would be served first under overload, and take others along.
const DRAWS_HOPED_FOR: f64 = 2.0;

/// Jobs that cannot reach this PoCD are hopeless: they are served last and get no clone.
const MIN_POCD: f64 = 0.02;

/// What is believed of a new attempt of a job.
pub(super) struct Fresh<'p, 'a> {
    pub(super) state: &'p JobView<'a>,
    /// Seconds from a launch to the start of its work.
    overhead: f64,
}

impl<'p, 'a> Fresh<'p, 'a> {
    pub(super) fn of(state: &'p JobView<'a>) -> Self {
        Self {
            state,
            overhead: state.launch_time(),
        }
    }

    /// ln P(all tasks of the job are in time, with a few new attempts each).
    pub(super) fn ln_hope(&self) -> f64 {
        let tasks = &self.state.estimate.tasks;
        let running: f64 = tasks.iter().map(|task| self.ln_hope_of(task)).sum();
        match self.state.waiting_now() {
            0 => running,
            waiting => running + f64::from(waiting) * ln_task_pocd(self.ln_lost(0.0)),
        }
    }

    /// ln P(one of the task's attempts or of a few new ones is in time).
    pub(super) fn ln_hope_of(&self, task: &TaskEstimate<'_>) -> f64 {
        ln_task_pocd(task.ln_miss(|_| true) + self.ln_lost(task.clone_begin()))
    }

    /// ln P(a few new attempts that begin there all miss).
    fn ln_lost(&self, begin: f64) -> f64 {
        DRAWS_HOPED_FOR * libm::log1p(-self.chance(begin).min(1.0 - f64::EPSILON))
    }

    /// ln P(a few new attempts all miss that are launched so many seconds from now).
    pub(super) fn ln_lost_later(&self, wait: f64) -> f64 {
        let (Some(law), Some(slack)) = (&self.state.estimate.law, self.state.estimate.slack) else {
            return 0.0;
        };
        DRAWS_HOPED_FOR * ln_miss_of_launch(law, 0.0, slack - wait, self.overhead)
    }

    /// Seconds for which a new attempt that begins there holds its place.
    pub(super) fn holds(&self, begin: f64) -> f64 {
        self.overhead + task_time(self.state) * (1.0 - begin)
    }

    /// P(an attempt launched now that begins there is in time).
    pub(super) fn chance(&self, begin: f64) -> f64 {
        self.chance_where(begin, 1.0)
    }

    /// The same where attempts take that many times what they usually take.
    pub(super) fn chance_where(&self, begin: f64, slowness: f64) -> f64 {
        let estimate = &self.state.estimate;
        match (&estimate.law, estimate.slack) {
            (Some(law), Some(slack)) => {
                let law = law.scaled(slowness);
                -libm::expm1(ln_miss_of_launch(&law, begin, slack, self.overhead))
            }
            (_, Some(slack)) if slack <= 0.0 => 0.0,
            _ => 1.0,
        }
    }
}

/// Seconds from a launch to the start of its work: the mean over the attempts that are there, since
/// images and volumes differ from job to job.
pub(super) fn measured_overhead(state: &JobView<'_>) -> Option<f64> {
    let tasks = state.estimate.tasks.iter();
    let attempts = tasks.flat_map(|task| task.task.live());
    let (mut sum, mut count) = (0.0, 0.0);
    for attempt in attempts {
        if let Some(started) = attempt.started {
            sum += started.since(attempt.launched).seconds().max(0.0);
            count += 1.0;
        }
    }
    (count > 0.0).then(|| sum / count)
}

/// What shed-prime believes of a job.
#[derive(Debug, Clone, Copy, Default)]
pub struct Belief {
    /// The median time of a task, as far as anything was seen of the job.
    pub(super) known_time: Option<f64>,
    /// ln P(all its tasks are in time, with a few new attempts each).
    pub(super) ln_hope: f64,
}

impl Belief {
    pub(super) fn of(job: &JobView<'_>) -> Self {
        Self {
            known_time: known_time(job),
            ln_hope: Fresh::of(job).ln_hope(),
        }
    }
}

/// Ranks every job, given its hope and the usual share of its time, and weighs them where capacity
/// is short.
pub(super) fn judge(pass: &mut Round<'_>, prime: &ShedPrime, ln_hopes: &[f64], usual: &[f64]) {
    for (state, usual) in pass.jobs.iter_mut().zip(usual) {
        state.usual_share = *usual;
    }
    rank(pass, ln_hopes);
    if prime.pool {
        assume(pass);
    }
    if prime.reserve {
        follow(pass);
    }
    if prime.weigh && is_short(pass) {
        let states = pass.jobs.iter().zip(ln_hopes);
        let worths = states.map(|(state, ln_hope)| worth(&Fresh::of(state), *ln_hope));
        let worths: Vec<_> = worths.collect();
        for (state, worth) in pass.jobs.iter_mut().zip(worths) {
            state.worth = Some(worth);
        }
        if prime.timely {
            mark(pass);
        }
        if prime.reserve {
            reserve(pass);
        }
    }
}

/// Ranks every job by its hope and its slack.
fn rank(pass: &mut Round<'_>, ln_hopes: &[f64]) {
    let ln_hope_min = libm::log(MIN_POCD);
    let jobs = pass.jobs.iter().zip(ln_hopes).zip(0..);
    let ranks = jobs.map(|((state, ln_hope), position)| {
        let slack = slack(pass, position, &Fresh::of(state));
        (*ln_hope < ln_hope_min, slack)
    });
    let ranks: Vec<_> = ranks.collect();
    for (state, rank) in pass.jobs.iter_mut().zip(ranks) {
        state.rank = Some(rank);
    }
}

/// The median time of a task, as far as anything was seen of the job.
pub(super) fn known_time(state: &JobView<'_>) -> Option<f64> {
    let median = state.estimate.own_law().map(|law| law.quantile(-LN_2));
    median.filter(|median| median.is_finite() && *median > 0.0)
}

/// The usual time of the job's tasks in seconds.
pub(super) fn task_time(state: &JobView<'_>) -> f64 {
    let by_limit = || state.limit().map_or(0.0, |limit| limit * state.usual_share);
    known_time(state).unwrap_or_else(by_limit)
}

/// Seconds that the task still needs, if what is best is done for it.
pub(super) fn remaining(task: &TaskEstimate<'_>, time: f64, overhead: f64) -> f64 {
    let end = |attempt: &AttemptEstimate| match attempt.remaining {
        Some(remaining) if attempt.reports() => remaining,
        // Of a silent one no more is known than of a new one.
        _ => (time - attempt.age).max(0.0),
    };
    let best = task.attempts.iter().map(end).fold(f64::INFINITY, f64::min);
    best.min(overhead + time * (1.0 - task.clone_begin()))
}

/// The job's slack in milliseconds.
fn slack(pass: &Round<'_>, position: usize, fresh: &Fresh<'_, '_>) -> i64 {
    let (state, overhead) = (fresh.state, fresh.overhead);
    let Some(slack) = state.estimate.slack else {
        return i64::MAX;
    };
    let time = task_time(state);
    let (mut work, mut longest) = (0.0, 0.0_f64);
    for task in &state.estimate.tasks {
        let remaining = remaining(task, time, overhead);
        work += remaining;
        longest = longest.max(remaining);
    }
    let waiting = f64::from(state.waiting_now());
    if waiting > 0.0 {
        work += waiting * (time + overhead);
        longest = longest.max(time + overhead);
    }
    let room = pass.capacity.times_usable(position);
    let width = f64::from(state.job.rules.parallelism.min(room).max(1));
    let slack = slack - longest.max(work / width);
    (slack * 1000.0) as i64
}
