//! Fits of every distribution to a sample with running attempts, and the choice between them.

use crate::estimate::distribution::{Distribution, DistributionKind};
use crate::estimate::empirical::EmpiricalDistribution;
use crate::estimate::pareto::ParetoDistribution;
use crate::estimate::progress::BETA_MAX;
use crate::estimate::sample::Sample;

mod choice;
mod log_normal;
mod weibull;

pub use choice::{Candidate, DistributionChoice, FitReport, fit};

/// The distribution of that kind with the largest likelihood, given that running attempts exceed their ages. `None`
/// if no attempt has ended.
///
/// The scale grows with the times and shapes do not: the fit of c times the sample is the distribution of c·T.
pub fn max_likelihood(kind: DistributionKind, sample: &Sample) -> Option<Distribution> {
    match kind {
        DistributionKind::Pareto => pareto(sample).map(Distribution::from),
        DistributionKind::LogNormal => log_normal::fit(sample).map(Distribution::from),
        DistributionKind::Weibull => weibull::fit(sample).map(Distribution::from),
        DistributionKind::Empirical => EmpiricalDistribution::fit(sample).map(Distribution::from),
    }
}

/// t_min is the least ended time. β = d/S with d ended attempts and S = Σ ln(t/t_min) over ended and running ones
/// beyond it; it is at most [`BETA_MAX`]. [`crate::estimate::pareto_fit::fit`] is the same with a prior. It does not count
/// the attempt that set t_min in d, so that β is unbiased.
fn pareto(sample: &Sample) -> Option<ParetoDistribution> {
    let t_min = sample.ended().next()?;
    let ln_t_min = libm::log(t_min);
    let beyond = sample.observations().iter();
    let excess: f64 = beyond
        .map(|seen| (libm::log(seen.time) - ln_t_min).max(0.0))
        .sum();
    let beta = if excess > 0.0 {
        (sample.ended_count() as f64 / excess).min(BETA_MAX)
    } else {
        BETA_MAX
    };
    Some(ParetoDistribution { t_min, beta })
}

#[cfg(test)]
mod tests;
