//! A summary of one job that lets an executor omit the job from passes in which the optimizer would not run for it.
//! It has the present state of the job, and the time from which one of its tasks may turn out late. `decide` examines
//! every job in every pass, which a simulation of thousands of jobs cannot afford.

use crate::capacity::UnusableNodes;
use crate::ids::TaskIndex;
use crate::policy::ShedPlus;
use crate::policy::shed_plus::turn::has_new_straggler;
use crate::round::estimates::{JobEstimate, REPORTS_MIN, TaskEstimate, median_of};
use crate::round::job::JobView;
use crate::round::slow::LnRatios;
use crate::snapshot::JobSnapshot;
use crate::time::{Instant, Span};

/// The median is bounded by ranks that are this share of all times away from the middle.
const BANDS: [usize; 3] = [8, 32, usize::MAX];

/// Predictions are computed again in every pass, and differ in their last digits.
const ROUNDING: f64 = 1e-6;

/// How often the time before which no task is late is halved.
const HALVINGS: u32 = 12;

/// The state of a job.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Look {
    /// Whether the job's progress has reached ξ.
    pub has_reached_xi: bool,
    /// Whether a task turned out late since the last run of the optimizer.
    pub has_new_straggler: bool,
    /// A task that stays late while its attempt runs and `usual` holds, if there is one.
    pub stays_late: Option<TaskIndex>,
    /// Before this time no task that has reported since that run turns out late, while `usual` holds; absent if none
    /// ever does.
    pub late_from: Option<Instant>,
    /// The usual duration of the job's attempts.
    pub usual: Usual,
}

/// Bounds of the median by which attempts of a job are judged.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Usual {
    /// In seconds; absent while too few times are known to judge attempts by the median.
    median: Option<(f64, f64)>,
    /// The number of times that may come or go before the bounds fail.
    changes: usize,
}

/// An attempt with exact reports; in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Runner {
    /// Seconds for a whole task.
    pub total: f64,
    /// Seconds until the attempt's end.
    pub remaining: f64,
    /// The share of a task that the attempt has done itself.
    pub own: f64,
    /// Seconds since the attempt's start.
    pub age: f64,
}

/// Examines a job for which the optimizer ran at `last`.
pub fn look(
    now: Instant,
    overhead: Span,
    job: &JobSnapshot,
    last: Option<Instant>,
    plus: &ShedPlus,
) -> Look {
    let nodes = UnusableNodes::default();
    let rate_prior = plus.rate_prior();
    let mut state = JobView::new(now, overhead.seconds().max(0.0), job, &nodes);
    let runners = last.map_or_else(Vec::new, |last| runners(&state.estimate, last));
    let mut totals = state.estimate.totals();
    totals.sort_unstable_by(f64::total_cmp);
    let slack = state.estimate.slack.unwrap_or(f64::INFINITY);
    let late_from = |usual: Usual| {
        let times = runners.iter();
        let times = times.filter_map(|(_, runner)| usual.late_from(*runner, slack, rate_prior));
        times.min_by(f64::total_cmp)
    };
    let stays_late = |usual: Usual| {
        let mut late = runners.iter();
        let late = late.find(|(_, runner)| usual.stays_late(*runner, slack, rate_prior));
        late.map(|(task, _)| *task)
    };
    // Wide bounds hold longer, narrow ones are more precise.
    let mut seen = Look::default();
    for band in BANDS {
        let usual = Usual::of(&totals, totals.len() / band);
        let after = late_from(usual);
        seen.usual = usual;
        seen.stays_late = stays_late(usual);
        seen.late_from = after.map(|seconds| now.plus(Span((seconds * 1000.0) as i64)));
        if seen.stays_late.is_some() || after.is_none_or(|after| after > 0.0) {
            break;
        }
    }
    seen.has_reached_xi = state.estimate.progress >= plus.xi;
    if let Some(last) = last {
        if let Some(median) = median_of(&mut totals).filter(|_| rate_prior > 0.0) {
            let news = |task: &TaskEstimate| task.is_news_since(last);
            state
                .estimate
                .weigh_those(news, median, LnRatios::default(), rate_prior);
        }
        seen.has_new_straggler = has_new_straggler(&state, last);
    }
    seen
}

/// The attempts that have reported since then.
fn runners(estimate: &JobEstimate, last: Instant) -> Vec<(TaskIndex, Runner)> {
    let news = estimate
        .tasks
        .iter()
        .filter(|task| task.is_news_since(last));
    let runner = |task: &TaskEstimate| {
        let kept = task.kept()?;
        let runner = Runner {
            total: kept.total?,
            remaining: kept.remaining?,
            own: kept.own_progress(),
            age: kept.age,
        };
        Some((task.index, runner))
    };
    news.filter_map(runner).collect()
}

impl Usual {
    /// From all times, ascending: bounds of the median after `changes` changes.
    fn of(totals: &[f64], changes: usize) -> Self {
        let count = totals.len();
        if count < REPORTS_MIN {
            return Self {
                median: None,
                changes: 0,
            };
        }
        // If few times remain after the changes, there may be no median at all.
        let changes = changes.min(count - REPORTS_MIN);
        let at = |rank: usize| totals.get(rank).copied().unwrap_or(f64::INFINITY);
        let low = (count / 2).checked_sub(changes).map_or(0.0, at);
        let high = at(count / 2 + changes);
        Self {
            median: Some((low * (1.0 - ROUNDING), high * (1.0 + ROUNDING))),
            changes,
        }
    }

    /// Counts `changes` of times that came or went; false if the bounds no longer hold.
    pub fn outlives(&mut self, changes: usize) -> bool {
        let left = self.changes.checked_sub(changes);
        self.changes = left.unwrap_or(0);
        left.is_some()
    }

    /// Seconds from now before which the attempt is not expected to miss a deadline that far off; absent if it never
    /// is. As printed (`prior` 0), an attempt is late if it ends later. Otherwise the job's median counts at first,
    /// and it counts less as the attempt progresses.
    pub fn late_from(&self, runner: Runner, slack: f64, prior: f64) -> Option<f64> {
        let may_be_late = |after: f64| {
            let later = Runner {
                remaining: runner.remaining - after,
                own: runner.own + after / runner.total,
                age: runner.age + after,
                ..runner
            };
            let most = later.remaining * self.factor(later, prior);
            // A factor that is not a number gives no bound.
            most.is_nan() || most >= (slack - after) * (1.0 - ROUNDING) - ROUNDING
        };
        if may_be_late(0.0) {
            return Some(0.0);
        }
        if runner.remaining <= slack {
            // The attempt comes nearer to its end, and the median weighs less and less.
            return None;
        }
        let (mut before, mut after) = (0.0, slack);
        for _ in 0..HALVINGS {
            let middle = (before + after) / 2.0;
            if may_be_late(middle) {
                after = middle;
            } else {
                before = middle;
            }
        }
        Some(before)
    }

    /// Whether the attempt misses the deadline by its own rate and by the median, from now on.
    fn stays_late(&self, runner: Runner, slack: f64, prior: f64) -> bool {
        let least = match self.median.filter(|_| prior > 0.0) {
            Some((low, high)) if low < runner.total => {
                let own = runner.own.max(runner.age / high);
                libm::pow(low / runner.total, prior / (own + prior))
            }
            _ => 1.0,
        };
        runner.remaining > slack && runner.remaining * least > slack + ROUNDING
    }

    /// The largest factor by which the median lengthens the remaining time.
    fn factor(&self, runner: Runner, prior: f64) -> f64 {
        let Some((low, high)) = self.median.filter(|_| prior > 0.0) else {
            return 1.0;
        };
        let weighs_against = if high < runner.total { low } else { high };
        let own = runner.own.max(runner.age / weighs_against);
        libm::pow(high / runner.total, prior / (own + prior))
    }
}
