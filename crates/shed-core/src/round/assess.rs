//! How a policy overrides the estimate of a job's attempts.

use crate::estimate::pareto::{LN_CERTAIN, LN_IMPOSSIBLE};
use crate::estimate::special::ln_normal_tail;
use crate::round::JobView;

/// How the attempts of a job are judged, for a policy with a better estimate than the distribution of the job's
/// attempt durations.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Assessment {
    /// Seconds from a launch to the start of its work; absent: t_avg.
    pub launch_time: Option<f64>,
    /// The standard deviation of the predicted remaining time of an attempt that reports, as a share of that time. If
    /// absent, eq. 14 gives the probability of a miss.
    pub spread: Option<f64>,
}

impl JobView<'_> {
    /// Judges the attempts as the policy assesses them.
    pub(crate) fn assess(&mut self, assessment: Assessment) {
        self.overhead = assessment.launch_time;
        if let Some((spread, slack)) = assessment.spread.zip(self.estimate.slack) {
            self.spread(spread, slack);
        }
    }

    /// An attempt that reports ends at about its predicted time. Eq. 14 gives it the spread of all attempts, but most
    /// of that spread is in the attempt's rate, which is known.
    fn spread(&mut self, spread: f64, slack: f64) {
        let tasks = self.estimate.tasks.iter_mut();
        for attempt in tasks.flat_map(|task| &mut task.attempts) {
            if attempt.reports()
                && let Some(remaining) = attempt.remaining
            {
                attempt.ln_miss = ln_miss(remaining, slack, spread);
            }
        }
    }
}

fn ln_miss(remaining: f64, slack: f64, spread: f64) -> f64 {
    if remaining <= 0.0 {
        LN_IMPOSSIBLE
    } else if slack <= 0.0 {
        LN_CERTAIN
    } else {
        let deviation = (remaining * spread).max(f64::MIN_POSITIVE);
        let z = (slack - remaining) / deviation;
        if z.is_finite() {
            ln_normal_tail(z)
        } else if z > 0.0 {
            LN_IMPOSSIBLE
        } else {
            LN_CERTAIN
        }
    }
}
