//! The distribution of attempt durations that a user expects, and what a job's own attempts make of it.

use crate::estimate::distribution::{AttemptDistribution, Distribution, DistributionKind};
use crate::estimate::fit::max_likelihood;
use crate::estimate::log_normal::LogNormalDistribution;
use crate::estimate::sample::{Observation, Sample};
use crate::snapshot::ExpectedDuration;

/// The 90th percentile of the standard normal distribution.
pub(super) const Z90: f64 = 1.281_551_565_544_600_4;

/// Standard deviation of ln T for a user who gives only one duration: tasks of one job differ.
const SPREAD: f64 = 0.3;

/// The least standard deviation of ln T, whatever the quantiles. It equals shed-prime's spread of a predicted
/// remaining time: no statement is more certain than a report.
const SPREAD_MIN: f64 = 0.1;

/// The share of the standard deviation of ln T that differs from task to task. The rest is one error of the
/// expectation, common to all tasks of the job.
const OWN_SHARE: f64 = 1.0 / 3.0;

/// ln P(T > t) at the quantile of one in a thousand: ln 0.999.
const LN_EARLY: f64 = -0.001_000_500_333_583_533_5;

/// The log-normal distribution with the quantiles that the user expects; `None` if they are no positive numbers.
pub fn distribution(expected: &ExpectedDuration) -> Option<LogNormalDistribution> {
    let mu = libm::log(expected.p50().seconds());
    let sigma = match expected.p90() {
        Some(p90) => (libm::log(p90.seconds()) - mu) / Z90,
        None => SPREAD,
    };
    LogNormalDistribution::new(mu, sigma.max(SPREAD_MIN))
}

/// The standard deviation of ln of the factor that all tasks of a job with this expected distribution have in common.
pub fn common(distribution: &Distribution) -> f64 {
    let Distribution::LogNormal(distribution) = distribution else {
        return 0.0;
    };
    let own = (OWN_SHARE * distribution.sigma()).max(SPREAD_MIN);
    libm::sqrt((distribution.sigma() * distribution.sigma() - own * own).max(0.0))
}

/// The same after the job's own attempts: `times` that ended or predict their end, and the `ages` of silent ones. The
/// expectation counts as two attempts, so three reports outweigh it. Without any of them it is unchanged.
pub fn updated(expected: &ExpectedDuration, times: &[f64], ages: &[f64]) -> Option<Distribution> {
    let prior = distribution(expected)?;
    let own = Sample::new(times, ages);
    // An attempt that is younger than any duration of the distribution is no evidence, and most attempts are.
    let soonest = prior.quantile(LN_EARLY);
    let counts = |seen: &&Observation| seen.ended || seen.time > soonest;
    let own: Vec<Observation> = own.observations().iter().filter(counts).copied().collect();
    if own.is_empty() {
        return Some(prior.into());
    }
    // Two attempts a standard deviation away from the median have the mean and the spread of the expectation.
    let pseudo = [-1.0, 1.0].map(|side| Observation {
        time: libm::exp(prior.mu() + side * prior.sigma()),
        ended: true,
    });
    let sample = Sample::from_observations(own.into_iter().chain(pseudo));
    let fitted = max_likelihood(DistributionKind::LogNormal, &sample);
    Some(fitted.unwrap_or_else(|| prior.into()))
}

#[cfg(test)]
mod tests {
    use std::f64::consts::LN_2;

    use super::*;
    use crate::time::Span;

    fn median(distribution: &Distribution) -> f64 {
        distribution.quantile(-LN_2)
    }

    fn expected(p50: i64, p90: Option<i64>) -> ExpectedDuration {
        let seconds = Span::from_seconds;
        ExpectedDuration::new(seconds(p50), p90.map(seconds)).unwrap()
    }

    fn median_after(times: &[f64], ages: &[f64]) -> f64 {
        median(&updated(&expected(100, None), times, ages).unwrap())
    }

    #[test]
    fn the_quantiles_are_those_of_the_user() {
        let distribution = distribution(&expected(100, Some(150))).unwrap();
        let high = distribution.quantile(libm::log(0.1));
        assert!((high - 150.0).abs() < 1e-6, "{high}");
        assert!((median(&distribution.into()) - 100.0).abs() < 1e-6);
    }

    #[test]
    fn no_statement_is_more_certain_than_a_report() {
        let sigma = |p90| distribution(&expected(100, p90)).unwrap().sigma();
        assert_eq!(sigma(Some(100)), SPREAD_MIN);
        assert_eq!(sigma(None), SPREAD);
    }

    #[test]
    fn reports_outweigh_the_expectation() {
        let one = median_after(&[400.0], &[]);
        let three = median_after(&[400.0; 3], &[]);
        let many = median_after(&[400.0; 30], &[]);
        assert!(100.0 < one && one < 200.0, "{one}");
        assert!(200.0 < three && three < many, "{three} {many}");
        assert!(360.0 < many && many < 400.0, "{many}");
    }

    #[test]
    fn silent_attempts_count_once_they_are_late() {
        assert!((median_after(&[], &[30.0; 9]) - 100.0).abs() < 1e-9);
        let late = median_after(&[], &[500.0; 3]);
        assert!(late > 200.0, "{late}");
    }
}
