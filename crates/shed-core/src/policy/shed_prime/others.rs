//! What the other jobs show of one that has shown nothing: users of a cluster tend to give their
//! jobs so many times what a task takes.

use crate::decide::{JobState, Pass};
use crate::estimate::law::{AttemptLaw, Law};
use crate::estimate::log_normal::LogNormalLaw;
use crate::policy::shed_prime::judge::known_time;

/// What the time of a task is taken for while nothing at all is known, as a share of the time from
/// submission to deadline.
const SHARE_OF_LIMIT: f64 = 0.5;

/// Jobs of which a law is known before one is assumed of others.
const JOBS_MIN: usize = 3;

/// ln P(Z > 1), Z standard normal.
const LN_TAIL_OF_ONE: f64 = -1.841_021_645_009_264;

/// The time of a usual task over the time that its job was given, by the jobs that are there.
pub(super) fn usual_share(pass: &Pass<'_>) -> f64 {
    let shares = pass.jobs.iter().filter_map(|state| {
        let limit = limit(state)?;
        let share = known_time(state)? / limit;
        (share > 0.0 && share.is_finite()).then(|| libm::log(share))
    });
    let (mut sum, mut count) = (0.0, 0.0);
    for share in shares {
        sum += share;
        count += 1.0;
    }
    libm::exp((sum + libm::log(SHARE_OF_LIMIT)) / (count + 1.0))
}

pub(super) fn limit(state: &JobState<'_>) -> Option<f64> {
    let limit = state.job.deadline?.since(state.job.submitted).seconds();
    (limit > 0.0).then_some(limit)
}

/// Takes times for log-normal in jobs that have shown nothing: the median is the usual share of the
/// time that the job was given, and they spread as medians do among the others and times within each of
/// those. Attempts are hedged by it from their launch on. It ranks no job: tasks of one job are alike,
/// of which this law knows nothing, so that large jobs would seem to have no hope.
pub(super) fn assume(pass: &mut Pass<'_>, usual_share: f64) {
    let shown: Vec<Shown> = pass.jobs.iter().filter_map(Shown::of).collect();
    if shown.len() < JOBS_MIN {
        return;
    }
    let sigma = spread(&shown);
    let unknown = |state: &&mut JobState<'_>| state.estimate.law.is_none();
    for state in pass.jobs.iter_mut().filter(unknown) {
        let law = limit(state).and_then(|limit| {
            let mu = libm::log(usual_share * limit);
            LogNormalLaw::new(mu, sigma)
        });
        if let Some(law) = law {
            state.estimate.assume(Law::LogNormal(law));
        }
    }
}

/// What is known of a job's times.
struct Shown {
    /// ln(median time / time that the job was given).
    ln_share: f64,
    /// Standard deviation of ln T, read off the upper half.
    sigma: f64,
}

impl Shown {
    fn of(state: &JobState<'_>) -> Option<Self> {
        let law = state.estimate.own_law()?;
        let ln_median = libm::log(known_time(state)?);
        let shown = Self {
            ln_share: ln_median - libm::log(limit(state)?),
            sigma: libm::log(law.quantile(LN_TAIL_OF_ONE)) - ln_median,
        };
        (shown.ln_share.is_finite() && shown.sigma.is_finite()).then_some(shown)
    }
}

/// Of ln(time / time given) over all jobs: what medians differ, and times within each job.
fn spread(shown: &[Shown]) -> f64 {
    let count = shown.len() as f64;
    let mean = shown.iter().map(|one| one.ln_share).sum::<f64>() / count;
    let deviations = shown.iter().map(|one| one.ln_share - mean);
    let between = deviations.map(|d| d * d).sum::<f64>() / (count - 1.0);
    let within = shown.iter().map(|one| one.sigma * one.sigma).sum::<f64>() / count;
    libm::sqrt(between + within)
}
