//! Mantri: duplicate a task when a copy launched now probably ends in less than half of what
//! remains, so that the duplicate is expected to save machine time (SCA/ESE §II).
//!
//! In general form, for a task with c running copies: when P(t_rem > (c+1)/c·t_new) > δ.
//! [`crate::policy::Mantri`] implements Mantri's kills and restarts.

use crate::formulas::quadrature::integrate_unit;
use shed_core::estimate::compare::is_less;
use shed_core::estimate::pareto::ParetoDistribution;

/// When Mantri duplicates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mantri {
    /// δ, the probability that has to be exceeded. 0.25.
    pub delta: f64,
    /// The most copies of a task, the original included. 3.
    pub copies_max: u32,
}

impl Default for Mantri {
    fn default() -> Self {
        Self {
            delta: 0.25,
            copies_max: 3,
        }
    }
}

impl Mantri {
    /// Whether a task with `copies` running copies is duplicated, given the `probability` that the
    /// duplicate pays: [`pays_known`] or [`pays_blind`].
    pub fn duplicates(&self, probability: f64, copies: u32) -> bool {
        copies < self.copies_max && is_less(self.delta, probability)
    }

    /// The remaining time above which a task with `copies` running copies is duplicated:
    /// `(c+1)/c·t_min·(1−δ)^(−1/α)`, for a remaining time that is known.
    pub fn threshold(&self, distribution: &ParetoDistribution, copies: u32) -> f64 {
        burden(copies) * distribution.t_min * libm::pow(1.0 - self.delta, -1.0 / distribution.beta)
    }
}

/// (c+1)/c: how much longer than a new copy the rest must be.
fn burden(copies: u32) -> f64 {
    let copies = f64::from(copies.max(1));
    (copies + 1.0) / copies
}

/// P(t_rem > (c+1)/c·t_new) for a known remaining time: `1 − (t_min/y)^α` with
/// `y = t_rem·c/(c+1)`, 0 when y ≤ t_min.
pub fn pays_known(distribution: &ParetoDistribution, t_rem: f64, copies: u32) -> f64 {
    let y = t_rem / burden(copies);
    if y > distribution.t_min {
        1.0 - libm::pow(distribution.t_min / y, distribution.beta)
    } else {
        0.0
    }
}

/// P(t_rem > (c+1)/c·t_new) when only the `age` of the task is known: the mean over a new copy's
/// time w of `(max(t_min, age)/(age + (c+1)·w/c))^α`. 0 for times that do not vary.
///
/// With w = t_min·u^(−1/α) it is an integral over u in (0, 1).
pub fn pays_blind(distribution: &ParetoDistribution, age: f64, copies: u32) -> f64 {
    if distribution.beta.is_infinite() {
        return 0.0;
    }
    integrate_unit(|u| pays_blind_at(distribution, age, copies, u))
}

/// No less than [`pays_blind`], for a tiny part of its work: it settles most cases.
pub fn pays_blind_at_most(distribution: &ParetoDistribution, age: f64, copies: u32) -> f64 {
    if distribution.beta.is_infinite() {
        return 0.0;
    }
    // The integrand rises with u: an upper sum.
    let parts = [0.25, 0.5, 0.75, 1.0];
    let sum: f64 = parts
        .map(|u| pays_blind_at(distribution, age, copies, u))
        .iter()
        .sum();
    sum / 4.0
}

/// The integrand of [`pays_blind`].
fn pays_blind_at(distribution: &ParetoDistribution, age: f64, copies: u32, u: f64) -> f64 {
    let ParetoDistribution { t_min, beta } = *distribution;
    let fresh = t_min * libm::pow(u, -1.0 / beta);
    libm::pow(age.max(t_min) / (age + burden(copies) * fresh), beta)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distribution(beta: f64) -> ParetoDistribution {
        ParetoDistribution { t_min: 7.0, beta }
    }

    #[test]
    fn a_duplicate_of_a_new_task_pays_with_a_known_probability() {
        for beta in [1.1, 2.0, 3.5] {
            let expected = libm::pow(2.0, -beta) / 2.0;
            assert!((pays_blind(&distribution(beta), 0.0, 1) - expected).abs() < 1e-13);
        }
    }

    #[test]
    fn the_quick_bound_is_never_below_the_probability_and_near_it() {
        for beta in [1.1, 1.6, 2.0, 3.5] {
            for age in [0.0, 3.0, 7.0, 20.0, 300.0] {
                let (exact, most) = (
                    pays_blind(&distribution(beta), age, 1),
                    pays_blind_at_most(&distribution(beta), age, 1),
                );
                assert!(
                    exact <= most && most < exact + 0.2,
                    "{beta} {age}: {exact} {most}"
                );
            }
        }
    }

    #[test]
    fn only_a_known_rest_beyond_the_threshold_is_duplicated() {
        let mantri = Mantri::default();
        for copies in 1..3 {
            let threshold = mantri.threshold(&distribution(2.0), copies);
            let pays = |t_rem: f64| pays_known(&distribution(2.0), t_rem, copies);
            assert!(mantri.duplicates(pays(threshold * 1.001), copies));
            assert!(!mantri.duplicates(pays(threshold * 0.999), copies));
        }
    }

    #[test]
    fn a_task_never_has_more_copies_than_allowed() {
        assert!(!Mantri::default().duplicates(1.0, 3));
    }

    #[test]
    fn fixed_times_are_duplicated_when_a_new_copy_surely_pays() {
        let fixed = distribution(f64::INFINITY);
        assert_eq!(pays_known(&fixed, 14.1, 1), 1.0);
        assert_eq!(pays_known(&fixed, 14.0, 1), 0.0);
        assert_eq!(pays_blind(&fixed, 100.0, 1), 0.0);
        assert_eq!(Mantri::default().threshold(&fixed, 1), 14.0);
    }
}
