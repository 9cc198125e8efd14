//! The log-normal distribution: ln T is normal.

use crate::estimate::distribution::{AttemptDistribution, ln_share};
use crate::estimate::log_tails::{
    ln_normal_tail, ln_normal_tail_ratio, mills_ratio_quotient, normal_tail_quantile,
};
use crate::estimate::pareto::LN_CERTAIN;

/// ln √(2π).
const LN_SQRT_2PI: f64 = 0.918_938_533_204_672_7;

/// The number of values of a common factor.
pub(crate) const COMMON_CASES: u64 = COMMON.len() as u64;

/// The quantiles of 0.1, 0.3, 0.5, 0.7 and 0.9 of the standard normal distribution.
const COMMON: [f64; 5] = [
    -1.281_551_565_544_600_4,
    -0.524_400_512_708_040_7,
    0.0,
    0.524_400_512_708_040_7,
    1.281_551_565_544_600_4,
];

/// P(T > t) = P(Z > (ln t − μ)/σ), Z standard normal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LogNormalDistribution {
    mu: f64,
    sigma: f64,
}

impl LogNormalDistribution {
    /// The spreads of ln T that a distribution may have: from times that agree to a per mille to times that differ by
    /// more than floats can.
    pub const SIGMA_MIN: f64 = 1e-3;
    /// See [`Self::SIGMA_MIN`].
    pub const SIGMA_MAX: f64 = 100.0;

    /// The distribution with mean `mu` and standard deviation `sigma` of ln T, the latter clamped to its range;
    /// `None` unless both are finite.
    pub fn new(mu: f64, sigma: f64) -> Option<Self> {
        (mu.is_finite() && sigma.is_finite()).then(|| Self {
            mu,
            sigma: sigma.clamp(Self::SIGMA_MIN, Self::SIGMA_MAX),
        })
    }

    /// Mean of ln T; e to its power is the median time.
    pub fn mu(&self) -> f64 {
        self.mu
    }

    /// Standard deviation of ln T.
    pub fn sigma(&self) -> f64 {
        self.sigma
    }

    /// The distributions of C·U at equally likely values of C, if this is that of T = C·U and ln C has the standard
    /// deviation `common`.
    pub(crate) fn given_common(&self, common: f64) -> [Self; COMMON.len()] {
        let own = libm::sqrt((self.sigma * self.sigma - common * common).max(0.0));
        COMMON.map(|z| Self {
            mu: self.mu + common * z,
            sigma: own.max(Self::SIGMA_MIN),
        })
    }

    fn z(&self, t: f64) -> f64 {
        (libm::log(t) - self.mu) / self.sigma
    }
}

impl AttemptDistribution for LogNormalDistribution {
    fn ln_survival(&self, t: f64) -> f64 {
        if t > 0.0 {
            ln_normal_tail(self.z(t))
        } else {
            LN_CERTAIN
        }
    }

    fn ln_residual_survival(&self, age: f64, wait: f64) -> f64 {
        if wait <= 0.0 {
            return LN_CERTAIN;
        }
        if age <= 0.0 {
            return self.ln_survival(age + wait);
        }
        let step = libm::log1p(wait / age) / self.sigma;
        ln_normal_tail_ratio(self.z(age), step).min(LN_CERTAIN)
    }

    fn ln_density(&self, t: f64) -> f64 {
        if t > 0.0 {
            let z = self.z(t);
            -0.5 * z * z - LN_SQRT_2PI - libm::log(self.sigma) - libm::log(t)
        } else {
            f64::NEG_INFINITY
        }
    }

    fn mean(&self) -> f64 {
        libm::exp(self.mu + 0.5 * self.sigma * self.sigma)
    }

    /// E[T | T > a] = e^(μ+σ²/2)·P(Z > z−σ)/P(Z > z) with z = (ln a − μ)/σ.
    fn mean_residual(&self, age: f64) -> f64 {
        if age <= 0.0 {
            return self.mean() - age;
        }
        let z = self.z(age);
        if z >= self.sigma {
            // The same with a factored out, which keeps precision in the far tail.
            return age * (mills_ratio_quotient(z, self.sigma) - 1.0).max(0.0);
        }
        let ln_ratio = ln_normal_tail(z - self.sigma) - ln_normal_tail(z);
        let mean_beyond = libm::exp(self.mu + 0.5 * self.sigma * self.sigma + ln_ratio);
        (mean_beyond - age).max(0.0)
    }

    fn quantile(&self, ln_tail: f64) -> f64 {
        libm::exp(self.mu + self.sigma * normal_tail_quantile(ln_tail))
    }

    fn scaled(&self, share: f64) -> Self {
        Self {
            mu: self.mu + ln_share(share),
            ..*self
        }
    }

    fn minimum(&self) -> f64 {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::LN_2;

    fn distribution() -> LogNormalDistribution {
        LogNormalDistribution::new(libm::log(100.0), 0.8).unwrap()
    }

    #[test]
    fn its_moments_are_those_of_the_formulas() {
        let distribution = distribution();
        assert!((distribution.quantile(-LN_2) / 100.0 - 1.0).abs() < 1e-14);
        assert!((distribution.mean() / (100.0 * libm::exp(0.32)) - 1.0).abs() < 1e-14);
    }

    #[test]
    fn both_forms_of_the_mean_residual_meet() {
        let distribution = distribution();
        let border = 100.0 * libm::exp(0.64);
        let (before, after) = (border * (1.0 - 1e-9), border * (1.0 + 1e-9));
        let (left, right) = (
            distribution.mean_residual(before),
            distribution.mean_residual(after),
        );
        assert!((left / right - 1.0).abs() < 1e-8, "{left} {right}");
    }

    #[test]
    fn the_remaining_time_of_an_old_log_normal_attempt_grows() {
        let distribution = distribution();
        assert!(distribution.mean_residual(1e4) > distribution.mean_residual(1e3));
        assert!(distribution.mean_residual(1e3) > distribution.mean_residual(300.0));
    }

    #[test]
    fn spreads_are_brought_into_their_range_and_nonsense_is_refused() {
        assert_eq!(LogNormalDistribution::new(0.0, 0.0).unwrap().sigma(), 1e-3);
        assert_eq!(LogNormalDistribution::new(f64::NAN, 1.0), None);
        assert_eq!(LogNormalDistribution::new(0.0, f64::INFINITY), None);
    }
}
