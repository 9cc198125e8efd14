//! The Pareto distribution of attempt durations and the probability that one attempt misses its deadline.

use serde::{Deserialize, Serialize};

use crate::estimate::distribution::AttemptDistribution;
use crate::estimate::progress::{BETA_MAX, beta_from_remaining};

/// ln of a probability of 1: the attempt surely misses.
pub const LN_CERTAIN: f64 = 0.0;
/// ln of a probability of 0: the attempt surely is in time.
pub const LN_IMPOSSIBLE: f64 = f64::NEG_INFINITY;

/// P(T > t) = (t_min / t)^β for t ≥ t_min, and 1 below: the distribution of an attempt's execution time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ParetoDistribution {
    /// The least time an attempt takes, in the caller's unit of time.
    pub t_min: f64,
    /// The shape β: small for a heavy tail. The mean is finite only above 1.
    pub beta: f64,
}

impl AttemptDistribution for ParetoDistribution {
    fn ln_survival(&self, t: f64) -> f64 {
        ln_miss(0.0, self.t_min, t, self.beta)
    }

    fn ln_residual_survival(&self, age: f64, wait: f64) -> f64 {
        ln_miss_silent(age, self.t_min, wait, self.beta)
    }

    fn ln_density(&self, t: f64) -> f64 {
        if t >= self.t_min && self.t_min > 0.0 && self.beta > 0.0 && self.beta.is_finite() {
            libm::log(self.beta / t) + self.ln_survival(t)
        } else {
            f64::NEG_INFINITY
        }
    }

    fn mean(&self) -> f64 {
        self.mean_residual(0.0)
    }

    fn mean_residual(&self, age: f64) -> f64 {
        let Self { t_min, beta } = *self;
        if beta.is_infinite() {
            (t_min - age).max(0.0)
        } else if beta <= 1.0 {
            f64::INFINITY
        } else if age >= t_min {
            age / (beta - 1.0)
        } else {
            t_min * beta / (beta - 1.0) - age
        }
    }

    fn quantile(&self, ln_tail: f64) -> f64 {
        if ln_tail >= 0.0 {
            self.t_min
        } else if self.beta > 0.0 {
            // The product in logs, which avoids 0·∞.
            libm::exp(libm::log(self.t_min) - ln_tail / self.beta)
        } else {
            f64::INFINITY
        }
    }

    fn scaled(&self, share: f64) -> Self {
        Self {
            t_min: if share < 0.0 { 0.0 } else { share * self.t_min },
            ..*self
        }
    }

    fn minimum(&self) -> f64 {
        self.t_min
    }

    /// [S+] (14) changes the shape and not the scale.
    fn predicted(&self, phi: f64, t_rem: f64) -> Self {
        let beta = beta_from_remaining(Some(t_rem), phi, self.t_min, BETA_MAX);
        Self {
            // Without β all is done.
            beta: beta.unwrap_or(BETA_MAX),
            ..self.scaled(1.0 - phi)
        }
    }
}

/// ln of the probability that one attempt with share `1 - phi` still to do does not end within
/// `slack`: its remaining time is Pareto((1−φ)·t_min, β) (Shed+ (7)), so the probability is
/// `((1−φ)·t_min / slack)^β`. With φ = 0 and slack = D this is the miss of a new attempt. In `[-∞, 0]`, never NaN.
///
/// The order of the cases matters. A finished attempt is in time, even after the deadline (φ ≥ 1 → −∞). Next, without
/// any time left it misses (slack ≤ 0 → 0), as it does with a least time above the slack (→ 0). A distribution
/// without a tail is in time (β = ∞ → −∞). NaN and β ≤ 0 count as a miss.
pub fn ln_miss(phi: f64, t_min: f64, slack: f64, beta: f64) -> f64 {
    if phi >= 1.0 {
        return LN_IMPOSSIBLE;
    }
    if slack <= 0.0 {
        return LN_CERTAIN;
    }
    ln_power((1.0 - phi) * t_min / slack, beta)
}

/// ln of the probability that an attempt which has processed for `age` without ever reporting
/// does not end within `slack`: P(T > age + slack | T > age).
///
/// A Pareto time keeps its shape when it is known to exceed `age`: it is Pareto(max(age, t_min), β), hence `(max(age,
/// t_min) / (age + slack))^β`, and 1 while `age + slack` ≤ t_min. A negative `age` denotes an attempt that starts to
/// process later.
pub fn ln_miss_silent(age: f64, t_min: f64, slack: f64, beta: f64) -> f64 {
    let reach = age + slack;
    if slack <= 0.0 || reach <= 0.0 {
        return LN_CERTAIN;
    }
    ln_power(age.max(t_min) / reach, beta)
}

/// `β·ln(base)` for a ratio and a shape; a ratio of 1 or more, β ≤ 0 and NaN are certain misses.
fn ln_power(base: f64, beta: f64) -> f64 {
    if base < 1.0 && beta > 0.0 {
        if base > 0.0 {
            beta * libm::log(base)
        } else {
            LN_IMPOSSIBLE
        }
    } else {
        LN_CERTAIN
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::distribution::Evidence;

    fn miss(phi: f64, t_min: f64, slack: f64, beta: f64) -> f64 {
        libm::exp(ln_miss(phi, t_min, slack, beta))
    }

    #[test]
    fn a_finished_attempt_is_in_time_even_after_the_deadline() {
        assert_eq!(miss(1.0, 120.0, -50.0, 2.0), 0.0);
        assert_eq!(ln_miss(1.0, 120.0, -50.0, 2.0), LN_IMPOSSIBLE);
    }

    #[test]
    fn without_slack_an_unfinished_attempt_surely_misses() {
        assert_eq!(miss(0.5, 120.0, 0.0, 2.0), 1.0);
        assert_eq!(miss(0.5, 120.0, -1.0, f64::INFINITY), 1.0);
    }

    #[test]
    fn a_least_remaining_time_of_exactly_the_slack_surely_misses() {
        assert_eq!(miss(0.5, 120.0, 60.0, f64::INFINITY), 1.0);
        assert_eq!(miss(0.5, 120.0, 60.001, f64::INFINITY), 0.0);
    }

    #[test]
    fn a_new_attempt_misses_with_the_tail_of_the_distribution() {
        assert!((miss(0.0, 120.0, 500.0, 2.0) - 0.0576).abs() < 1e-15);
    }

    #[test]
    fn what_is_no_number_counts_as_a_miss() {
        for (phi, t_min, slack, beta) in [
            (f64::NAN, 120.0, 500.0, 2.0),
            (0.0, f64::NAN, 500.0, 2.0),
            (0.0, 120.0, f64::NAN, 2.0),
            (0.0, 120.0, 500.0, f64::NAN),
            (0.0, f64::INFINITY, f64::INFINITY, 2.0),
            (f64::NEG_INFINITY, 0.0, 500.0, 2.0),
            (0.0, 120.0, 500.0, 0.0),
        ] {
            assert_eq!(miss(phi, t_min, slack, beta), 1.0);
        }
    }

    #[test]
    fn a_silent_attempt_that_has_just_started_misses_like_a_new_one() {
        let distribution = ParetoDistribution {
            t_min: 120.0,
            beta: 1.7,
        };
        assert_eq!(
            distribution.ln_miss(Evidence::Silent { age: 0.0 }, 500.0),
            distribution.ln_miss(Evidence::Progress { phi: 0.0 }, 500.0)
        );
    }

    #[test]
    fn the_older_a_silent_attempt_is_the_likelier_it_misses() {
        let older = ln_miss_silent(300.0, 120.0, 100.0, 1.7);
        let younger = ln_miss_silent(200.0, 120.0, 100.0, 1.7);
        assert!(older > younger);
        assert_eq!(ln_miss_silent(50.0, 120.0, 70.0, 1.7), LN_CERTAIN);
        // It starts only after the deadline.
        assert_eq!(ln_miss_silent(-100.0, 120.0, 50.0, 1.7), LN_CERTAIN);
    }

    #[test]
    fn the_density_equals_the_formula_and_is_zero_elsewhere() {
        let of = |t_min, beta, t| ParetoDistribution { t_min, beta }.ln_density(t);
        let wanted = libm::log(1.7 / 200.0) + 1.7 * libm::log(120.0 / 200.0);
        assert!((of(120.0, 1.7, 200.0) - wanted).abs() < 1e-14);
        for (t_min, beta, t) in [
            (120.0, 1.7, 119.0),
            (120.0, 0.0, 200.0),
            (120.0, f64::INFINITY, 200.0),
            (0.0, 1.7, 0.0),
        ] {
            assert_eq!(of(t_min, beta, t), f64::NEG_INFINITY, "{t_min} {beta} {t}");
        }
    }

    #[test]
    fn times_that_do_not_vary_end_at_the_least_time() {
        let distribution = ParetoDistribution {
            t_min: 10.0,
            beta: f64::INFINITY,
        };
        assert_eq!(distribution.mean_residual(3.0), 7.0);
        assert_eq!(distribution.mean_residual(30.0), 0.0);
        assert_eq!(distribution.minimum(), 10.0);
        assert_eq!(distribution.scaled(-0.5).minimum(), 0.0);
    }
}
