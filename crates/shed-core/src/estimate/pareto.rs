//! The Pareto law of attempt times and the probability that one attempt misses its deadline.

use serde::{Deserialize, Serialize};

/// ln of a probability of 1: the attempt surely misses.
pub const LN_CERTAIN: f64 = 0.0;
/// ln of a probability of 0: the attempt surely is in time.
pub const LN_IMPOSSIBLE: f64 = f64::NEG_INFINITY;

/// P(T > t) = (t_min / t)^β for t ≥ t_min, and 1 below: the law of an attempt's execution time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ParetoLaw {
    /// The least time an attempt takes, in the caller's unit of time.
    pub t_min: f64,
    /// The shape β: small for a heavy tail. The mean is finite only above 1.
    pub beta: f64,
}

/// What is known of an attempt that runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Evidence {
    /// It reports: `phi` of its work is done, 0…1.
    Progress {
        /// The share done.
        phi: f64,
    },
    /// It never reported; `age` is the time since it started to process.
    Silent {
        /// Time since processing started, in the law's unit.
        age: f64,
    },
}

impl ParetoLaw {
    /// ln of the probability that an attempt of which `evidence` is known does not end within
    /// `slack`. Shed, Shed+ Theorem 2 for one that reports, Pareto memory for a silent one.
    #[must_use]
    pub fn ln_miss(&self, evidence: Evidence, slack: f64) -> f64 {
        match evidence {
            Evidence::Progress { phi } => ln_miss(phi, self.t_min, slack, self.beta),
            Evidence::Silent { age } => ln_miss_silent(age, self.t_min, slack, self.beta),
        }
    }
}

/// ln of [`miss`]; in `[-∞, 0]`, never NaN.
#[must_use]
pub fn ln_miss(phi: f64, t_min: f64, slack: f64, beta: f64) -> f64 {
    if phi >= 1.0 {
        return LN_IMPOSSIBLE;
    }
    if slack <= 0.0 {
        return LN_CERTAIN;
    }
    ln_power((1.0 - phi) * t_min / slack, beta)
}

/// The probability that one attempt with share `1 - phi` still to do does not end within
/// `slack`: its remaining time is Pareto((1−φ)·t_min, β) (Shed+ (7)), so it is
/// `((1−φ)·t_min / slack)^β`. With φ = 0 and slack = D this is the miss of a new attempt.
///
/// The order of the cases matters: done is done, even after the deadline (φ ≥ 1 → 0); then no
/// time left is a miss (slack ≤ 0 → 1); then a least time above the slack (→ 1); then a law
/// without a tail (β = ∞ → 0). What is no number, and β ≤ 0, counts as a miss.
#[must_use]
pub fn miss(phi: f64, t_min: f64, slack: f64, beta: f64) -> f64 {
    libm::exp(ln_miss(phi, t_min, slack, beta))
}

/// ln of the probability that an attempt which has processed for `age` without ever reporting
/// does not end within `slack`: P(T > age + slack | T > age).
///
/// A Pareto time keeps its shape when it is known to exceed `age`: it is Pareto(max(age, t_min),
/// β), hence `(max(age, t_min) / (age + slack))^β`, and 1 while `age + slack` ≤ t_min.
/// A negative `age` stands for an attempt that starts to process only later.
#[must_use]
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
    fn a_new_attempt_misses_with_the_tail_of_the_law() {
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
        let law = ParetoLaw {
            t_min: 120.0,
            beta: 1.7,
        };
        assert_eq!(
            law.ln_miss(Evidence::Silent { age: 0.0 }, 500.0),
            law.ln_miss(Evidence::Progress { phi: 0.0 }, 500.0)
        );
    }

    #[test]
    fn the_older_a_silent_attempt_is_the_likelier_it_misses() {
        let older = ln_miss_silent(300.0, 120.0, 100.0, 1.7);
        let younger = ln_miss_silent(200.0, 120.0, 100.0, 1.7);
        assert!(older > younger);
        assert_eq!(ln_miss_silent(50.0, 120.0, 70.0, 1.7), LN_CERTAIN);
    }
}
