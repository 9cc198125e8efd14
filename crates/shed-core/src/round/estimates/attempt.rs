//! The estimate of one attempt: its rate, its end, and the probability that it misses the deadline.

use crate::estimate::distribution::{Distribution, Evidence};
use crate::estimate::log_tails::ln_normal_tail;
use crate::estimate::pareto::{LN_CERTAIN, LN_IMPOSSIBLE};
use crate::estimate::pocd::LiveAttempt;
use crate::estimate::progress::remaining_time;
use crate::ids::AttemptNumber;
use crate::snapshot::{AttemptKind, AttemptSnapshot, NodeIndex, Progress};
use crate::time::Instant;

/// One live attempt.
#[derive(Debug, Clone)]
pub struct AttemptEstimate {
    pub number: AttemptNumber,
    pub kind: AttemptKind,
    pub node: Option<NodeIndex>,
    /// Seconds since the attempt's launch.
    pub since_launch: f64,
    /// Seconds from the attempt's launch to its start, once it has started.
    pub start_up: Option<f64>,
    /// Seconds since the attempt started to process; negative while its start is expected later.
    pub age: f64,
    /// The share of the task that is done now, as far as known.
    pub progress: f64,
    /// The time of a whole task at the attempt's rate. It is absent until the attempt has reported an advance; until
    /// then all estimates follow from its age alone.
    pub total: Option<f64>,
    /// Expected time to the attempt's end.
    pub remaining: Option<f64>,
    /// The standard deviation of that time, in seconds, for a policy that takes reports as noisy.
    pub deviation: Option<f64>,
    /// ln P(the attempt does not end in time).
    pub ln_miss: f64,
    pub(super) start_progress: f64,
    /// Whether a report of the attempt has come, even one of no advance.
    pub(crate) has_progress: bool,
}

impl AttemptEstimate {
    /// The attempt's age for a whole task: a resumed attempt's age covers only a share of the task.
    pub(crate) fn whole_age(&self) -> f64 {
        self.age / (1.0 - self.start_progress)
    }

    /// Whether the attempt reports. Only its own reports count (pitfall 11): an attempt that was launched at a
    /// checkpoint has not reached the checkpoint before it reports so.
    pub fn reports(&self) -> bool {
        self.total.is_some()
    }

    /// The share of a task that the attempt has done itself.
    pub fn own_progress(&self) -> f64 {
        (self.progress - self.start_progress).max(0.0)
    }

    /// The attempt's progress after `seconds`, if it reports and does not end before.
    pub(super) fn progress_in(&self, seconds: f64) -> Option<f64> {
        let there = self.progress + seconds / self.total?;
        Some(there.min(1.0 - f64::EPSILON))
    }

    /// Seconds until the attempt starts, if it has not.
    pub(super) fn starts_in(&self) -> Option<f64> {
        (self.age < 0.0).then_some(-self.age)
    }

    /// Sets the progress at which the attempt will begin.
    pub(super) fn begin_at(&mut self, progress: f64) {
        self.start_progress = self.start_progress.max(progress);
        self.progress = self.start_progress;
    }

    pub(super) fn new(now: Instant, overhead: f64, attempt: &AttemptSnapshot) -> Self {
        let since_launch = now.since(attempt.launched).seconds().max(0.0);
        // An attempt that reports without a known start has started some time after its launch.
        let started = attempt
            .started
            .or(attempt.progress.map(|_| attempt.launched));
        let age = match started {
            Some(started) => now.since(started).seconds().max(0.0),
            None => age_before_start(overhead, since_launch),
        };
        let mut estimate = Self {
            number: attempt.number,
            kind: attempt.kind,
            node: attempt.node,
            since_launch,
            start_up: attempt
                .started
                .map(|at| at.since(attempt.launched).seconds().max(0.0)),
            age,
            progress: attempt.start_progress,
            total: None,
            remaining: None,
            deviation: None,
            ln_miss: LN_CERTAIN,
            start_progress: attempt.start_progress,
            has_progress: attempt.progress.is_some(),
        };
        if let (Some(progress), Some(started)) = (attempt.progress, started) {
            let base = Baseline::of(&progress, started, attempt.start_progress);
            let until_report = progress.last_at.since(base.at).seconds();
            let since_report = now.since(progress.last_at).seconds().max(0.0);
            estimate.extrapolate(progress.last, base.progress, until_report, since_report);
        }
        estimate
    }

    /// Spec 5.1, linear from `begin` on. The last report ages, so its predicted end stays and comes nearer. An
    /// attempt that has not ended at that time refutes the prediction. The last reported progress then counts as all
    /// the work done until now.
    fn extrapolate(&mut self, last: f64, begin: f64, until_report: f64, since_report: f64) {
        let last = if last > 1.0 { 1.0 } else { last };
        self.progress = last;
        let Some(at_report) = remaining_time(last, begin, until_report) else {
            return;
        };
        let (remaining, elapsed) = if last >= 1.0 || at_report > since_report {
            ((at_report - since_report).max(0.0), until_report)
        } else {
            let elapsed = until_report + since_report;
            let stale = remaining_time(last, begin, elapsed);
            (stale.unwrap_or(at_report), elapsed)
        };
        let total = elapsed / (last - begin);
        if !total.is_finite() || total <= 0.0 {
            return;
        }
        self.remaining = Some(remaining);
        self.total = Some(total);
        self.progress = (1.0 - remaining / total).clamp(last, 1.0);
    }

    /// Expects an attempt that has not started to start `launch_time` seconds after its launch.
    pub(super) fn expect_start(&mut self, launch_time: f64, distribution: &Distribution) {
        if self.start_up.is_none() && !self.has_progress {
            self.age = age_before_start(launch_time, self.since_launch);
            self.predict(distribution);
        }
    }

    /// Predicts the attempt's end by the job's distribution.
    pub(super) fn predict(&mut self, distribution: &Distribution) {
        self.remaining = Some(self.live().remaining(distribution));
    }

    /// Judges by the job's distribution: eq. 14 or its equivalent for an attempt that reports, the conditional
    /// distribution (spec 7.1) for a silent one.
    pub(super) fn judge(&mut self, distribution: &Distribution, slack: Option<f64>) {
        self.predict(distribution);
        if let Some(slack) = slack {
            self.assess(distribution, slack);
        }
    }

    /// The same by the error of the predicted time, where that is known.
    pub(super) fn assess(&mut self, distribution: &Distribution, slack: f64) {
        self.ln_miss = self.ln_miss_at(distribution, slack);
    }

    /// ln P(the attempt misses a deadline in `slack` seconds).
    pub(crate) fn ln_miss_at(&self, distribution: &Distribution, slack: f64) -> f64 {
        let predicted = self.remaining.filter(|_| self.reports());
        match predicted.zip(self.deviation) {
            Some((remaining, deviation)) => ln_miss_of(remaining, slack, deviation),
            None => self.ln_miss_within(distribution, slack),
        }
    }

    /// ln P(the attempt does not end within `slack` seconds).
    pub(crate) fn ln_miss_within(&self, distribution: &Distribution, slack: f64) -> f64 {
        self.live().ln_miss(distribution, slack)
    }

    /// The same given a value of what the job's tasks have in common. The rate of an attempt that reports is known, and
    /// tells all of it.
    pub(crate) fn ln_miss_given(&self, given: Option<&Distribution>, slack: f64) -> f64 {
        match given {
            Some(distribution) if !self.reports() => self.ln_miss_within(distribution, slack),
            _ => self.ln_miss,
        }
    }

    fn live(&self) -> LiveAttempt {
        let evidence = match (self.total, self.remaining) {
            (Some(_), Some(t_rem)) => Evidence::Predicted {
                phi: self.progress,
                t_rem,
            },
            _ => Evidence::Silent { age: self.age },
        };
        LiveAttempt {
            begin: self.start_progress,
            evidence,
        }
    }
}

/// The age of an attempt that starts `launch_time` seconds after its launch: minus the seconds until then, and 0 once it
/// is overdue.
fn age_before_start(launch_time: f64, since_launch: f64) -> f64 {
    -(launch_time - since_launch).max(0.0)
}

/// ln P(an attempt misses) that ends at about its predicted time. Eq. 14 gives it the spread of all attempts, but most
/// of that spread is in the attempt's rate, which is known.
fn ln_miss_of(remaining: f64, slack: f64, deviation: f64) -> f64 {
    if remaining <= 0.0 {
        LN_IMPOSSIBLE
    } else if slack <= 0.0 {
        LN_CERTAIN
    } else {
        let z = (slack - remaining) / deviation.max(f64::MIN_POSITIVE);
        if z.is_finite() {
            ln_normal_tail(z)
        } else if z > 0.0 {
            LN_IMPOSSIBLE
        } else {
            LN_CERTAIN
        }
    }
}

/// The point from which an attempt's rate is measured.
struct Baseline {
    at: Instant,
    progress: f64,
}

impl Baseline {
    /// The first report, as in [S+] (15), once at least half of the attempt's own work was done after it. When many
    /// pods start at once, the time until the first report is spent on starting and is no measure of the rate. Until
    /// then the baseline is the start (spec 5.1).
    fn of(progress: &Progress, started: Instant, start_progress: f64) -> Self {
        let before = progress.first - start_progress;
        let after = progress.last - progress.first;
        // An attempt may report less than the progress at which it should have begun.
        let is_own = before >= 0.0 && after > 0.0 && after >= before;
        if is_own && progress.last_at > progress.first_at {
            Self {
                at: progress.first_at,
                progress: progress.first,
            }
        } else {
            Self {
                at: started,
                progress: start_progress,
            }
        }
    }
}
