//! The Weibull distribution: exponential with shape 1, lighter-tailed above, heavier-tailed below.

use crate::estimate::distribution::{AttemptDistribution, ln_share};
use crate::estimate::log_tails::{lower_gamma_scaled, upper_gamma_scaled};
use crate::estimate::pareto::LN_CERTAIN;

/// P(T > t) = exp(−(t/λ)^k).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WeibullDistribution {
    ln_scale: f64,
    shape: f64,
}

impl WeibullDistribution {
    /// The shapes that a distribution may have; the largest is that of times which agree to about 1 %.
    pub const SHAPE_MIN: f64 = 0.01;
    /// See [`Self::SHAPE_MIN`].
    pub const SHAPE_MAX: f64 = 100.0;

    /// The distribution with ln λ and shape k, the latter clamped to its range; `None` unless both are finite.
    pub fn new(ln_scale: f64, shape: f64) -> Option<Self> {
        (ln_scale.is_finite() && shape.is_finite()).then(|| Self {
            ln_scale,
            shape: shape.clamp(Self::SHAPE_MIN, Self::SHAPE_MAX),
        })
    }

    /// ln λ, where λ is the time that e^−1 of the attempts exceed.
    pub fn ln_scale(&self) -> f64 {
        self.ln_scale
    }

    /// k.
    pub fn shape(&self) -> f64 {
        self.shape
    }

    /// ln (t/λ)^k.
    fn ln_hazard_sum(&self, t: f64) -> f64 {
        self.shape * (libm::log(t) - self.ln_scale)
    }
}

impl AttemptDistribution for WeibullDistribution {
    fn ln_survival(&self, t: f64) -> f64 {
        if t > 0.0 {
            -libm::exp(self.ln_hazard_sum(t))
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
        let until_now = libm::exp(self.ln_hazard_sum(age));
        if until_now.is_infinite() {
            return LN_CERTAIN;
        }
        let growth = self.shape * libm::log1p(wait / age);
        if growth < 1.0 {
            -until_now * libm::expm1(growth)
        } else {
            until_now - libm::exp(self.ln_hazard_sum(age + wait))
        }
    }

    fn ln_density(&self, t: f64) -> f64 {
        if t > 0.0 {
            let ln_hazard_sum = self.ln_hazard_sum(t);
            libm::log(self.shape) + ln_hazard_sum - libm::exp(ln_hazard_sum) - libm::log(t)
        } else {
            f64::NEG_INFINITY
        }
    }

    /// λ·Γ(1 + 1/k).
    fn mean(&self) -> f64 {
        libm::exp(self.ln_scale + libm::lgamma(1.0 + 1.0 / self.shape))
    }

    /// (λ/k)·e^x·Γ(1/k, x) with x = (age/λ)^k.
    fn mean_residual(&self, age: f64) -> f64 {
        let mean = self.mean();
        if age <= 0.0 {
            return mean - age;
        }
        let x = libm::exp(self.ln_hazard_sum(age));
        let s = 1.0 / self.shape;
        if x.is_infinite() {
            0.0
        } else if x >= s + 1.0 {
            age * s * upper_gamma_scaled(s, x)
        } else if mean.is_infinite() {
            f64::INFINITY
        } else {
            (mean * libm::exp(x) - age * s * lower_gamma_scaled(s, x)).max(0.0)
        }
    }

    fn quantile(&self, ln_tail: f64) -> f64 {
        if ln_tail < 0.0 {
            libm::exp(self.ln_scale + libm::log(-ln_tail) / self.shape)
        } else {
            0.0
        }
    }

    fn scaled(&self, share: f64) -> Self {
        Self {
            ln_scale: self.ln_scale + ln_share(share),
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

    fn distribution(shape: f64) -> WeibullDistribution {
        WeibullDistribution::new(libm::log(100.0), shape).unwrap()
    }

    #[test]
    fn with_shape_one_it_is_exponential_and_has_no_memory() {
        let distribution = distribution(1.0);
        assert!((distribution.mean() / 100.0 - 1.0).abs() < 1e-14);
        for age in [1e-6, 1.0, 99.0, 200.0, 201.0, 5000.0] {
            assert!(
                (distribution.mean_residual(age) / 100.0 - 1.0).abs() < 1e-10,
                "{age}"
            );
            assert!((distribution.ln_residual_survival(age, 50.0) + 0.5).abs() < 1e-11);
        }
    }

    #[test]
    fn with_shape_two_its_mean_is_that_of_rayleigh() {
        let mean = 50.0 * std::f64::consts::PI.sqrt();
        assert!((distribution(2.0).mean() / mean - 1.0).abs() < 1e-14);
    }

    #[test]
    fn both_halves_of_the_mean_residual_meet() {
        for shape in [0.05, 0.3, 0.7, 1.5, 4.0, 80.0] {
            let distribution = distribution(shape);
            let border = 100.0 * libm::pow(1.0 + 1.0 / shape, 1.0 / shape);
            let (before, after) = (border * (1.0 - 1e-9), border * (1.0 + 1e-9));
            let (left, right) = (
                distribution.mean_residual(before),
                distribution.mean_residual(after),
            );
            assert!((left / right - 1.0).abs() < 1e-6, "{shape}: {left} {right}");
        }
    }

    #[test]
    fn an_age_that_the_distribution_holds_for_impossible_refutes_it() {
        assert_eq!(
            distribution(100.0).ln_residual_survival(1e9, 1.0),
            LN_CERTAIN
        );
    }

    #[test]
    fn nonsense_is_refused() {
        assert_eq!(WeibullDistribution::new(f64::INFINITY, 1.0), None);
        assert_eq!(WeibullDistribution::new(0.0, f64::NAN), None);
        assert_eq!(WeibullDistribution::new(0.0, 0.0).unwrap().shape(), 0.01);
    }
}
