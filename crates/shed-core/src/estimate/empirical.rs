//! The empirical distribution: the observed times, with censoring (Kaplan–Meier), and a Pareto tail beyond.

use std::sync::Arc;

use crate::estimate::distribution::{AttemptDistribution, ln_share};
use crate::estimate::pareto::LN_CERTAIN;
use crate::estimate::sample::Sample;

/// The share of the longest ended attempts from which the tail's exponent is taken …
const TAIL_SHARE: f64 = 0.1;
/// … and at least this many of them.
const TAIL_COUNT_MIN: usize = 10;

/// The prior of the tail's exponent, and its weight in attempts: the shape of the papers' model runs.
const TAIL_PRIOR: (f64, f64) = (2.0, 2.0);

/// The largest exponent: a tail that falls by e within 0.1 % of a time.
const EXPONENT_MAX: f64 = 1000.0;

/// Bound of |ln of a factor on all times|, so that e to its power still is a float.
const LN_FACTOR_MAX: f64 = 700.0;

/// ln P(T > t) is a chain of straight lines over ln t: a Pareto distribution from each knot to the next, and one
/// without end after the last.
#[derive(Debug, Clone, PartialEq)]
pub struct EmpiricalDistribution {
    knots: Arc<[Knot]>,
    /// ln of the factor on all times.
    ln_factor: f64,
}

/// The start of a line.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Knot {
    ln_t: f64,
    ln_survival: f64,
    /// −d ln P(T > t) / d ln t up to the next knot; that of the last knot is the tail's.
    exponent: f64,
    /// ∫ P(T > t)/P(T > here) dt from here on.
    mean_residual: f64,
}

impl EmpiricalDistribution {
    /// Kaplan–Meier: each ended attempt takes its share of the probability of the attempts that had not ended or been
    /// censored before it. `None` if no attempt has ended.
    ///
    /// The steps become a chain through their middles. This keeps the mean, which upper or lower middles would shift.
    /// After the last ended attempt the tail is a Pareto tail with Hill's exponent of the longest tenth, shrunk.
    /// Larger ages, which steps cannot show, count in it.
    pub fn fit(sample: &Sample) -> Option<Self> {
        let mut middles = Vec::new();
        let mut ln_survival = LN_CERTAIN;
        let mut at_risk = sample.len() as f64;
        for seen in sample.observations() {
            if seen.ended {
                let ln_t = libm::log(seen.time);
                if middles.is_empty() {
                    middles.push((ln_t, LN_CERTAIN));
                }
                middles.push((ln_t, ln_survival + libm::log1p(-0.5 / at_risk)));
                // The last of all takes the rest, because no attempt follows it.
                ln_survival += libm::log1p(-1.0 / at_risk);
            }
            at_risk -= 1.0;
        }
        let last = middles.len().checked_sub(1)?;
        let mut knots: Vec<Knot> = Vec::with_capacity(middles.len());
        let mut behind: Option<Knot> = None;
        for (position, &(ln_t, ln_survival)) in middles.iter().enumerate().rev() {
            let knot = match behind {
                None => Knot::last(ln_t, ln_survival, tail_exponent(sample)),
                Some(next) => Knot::before(ln_t, ln_survival, &next),
            };
            // Of several knots at one time two matter. The last gives the further course, and the first of all states
            // that the minimum is surely exceeded. The knots between them have no effect.
            let is_last_of_its_time = behind.is_none_or(|next| next.ln_t > ln_t);
            if is_last_of_its_time || position == 0 || position == last {
                knots.push(knot);
            }
            behind = Some(knot);
        }
        knots.reverse();
        Some(Self {
            knots: knots.into(),
            ln_factor: 0.0,
        })
    }

    /// The exponent of the tail after the longest observed time.
    pub fn tail_exponent(&self) -> f64 {
        self.knots
            .last()
            .map_or(f64::INFINITY, |last| last.exponent)
    }

    /// ln of a time in the unit of the knots.
    fn ln_own(&self, t: f64) -> f64 {
        libm::log(t) - self.ln_factor
    }

    /// The line over `ln_t`, if that lies beyond the minimum.
    fn knot_at(&self, ln_t: f64) -> Option<&Knot> {
        let behind = self.knots.partition_point(|knot| knot.ln_t <= ln_t);
        self.knots.get(behind.checked_sub(1)?)
    }
}

/// Hill's exponent with censoring, as the mean of the posterior under a Gamma prior.
fn tail_exponent(sample: &Sample) -> f64 {
    let ended = sample.ended_count();
    let count = ((ended as f64 * TAIL_SHARE).ceil() as usize).max(TAIL_COUNT_MIN);
    let count = count.min(ended.saturating_sub(1));
    let threshold = sample.ended().rev().nth(count).unwrap_or(f64::INFINITY);
    let ln_threshold = libm::log(threshold);
    let beyond = sample.observations().iter().rev();
    let beyond = beyond.take_while(|seen| seen.time > threshold);
    let excess: f64 = beyond.map(|seen| libm::log(seen.time) - ln_threshold).sum();
    let (prior, weight) = TAIL_PRIOR;
    ((count as f64 + weight) / (excess + weight / prior)).min(EXPONENT_MAX)
}

impl Knot {
    fn last(ln_t: f64, ln_survival: f64, exponent: f64) -> Self {
        let mean_residual = if exponent > 1.0 {
            libm::exp(ln_t) / (exponent - 1.0)
        } else {
            f64::INFINITY
        };
        Self {
            ln_t,
            ln_survival,
            exponent,
            mean_residual,
        }
    }

    fn before(ln_t: f64, ln_survival: f64, next: &Self) -> Self {
        let (width, fall) = (next.ln_t - ln_t, ln_survival - next.ln_survival);
        let knot = Self {
            ln_t,
            ln_survival,
            // A line without width is never evaluated.
            exponent: if width > 0.0 { fall / width } else { 0.0 },
            mean_residual: 0.0,
        };
        let line = knot.integral(0.0, width);
        Self {
            mean_residual: line + libm::exp(-fall) * next.mean_residual,
            ..knot
        }
    }

    /// ∫ P(T > t)/P(T > a) dt from a = e^(ln_t + `from`) over a width of `width` in ln t.
    fn integral(&self, from: f64, width: f64) -> f64 {
        // ∫ a·e^((1−α)u) du over 0 ≤ u ≤ width.
        let growth = (1.0 - self.exponent) * width;
        let mean_height = if growth.abs() < 1e-9 {
            1.0
        } else {
            libm::expm1(growth) / growth
        };
        libm::exp(self.ln_t + from) * width * mean_height
    }
}

impl AttemptDistribution for EmpiricalDistribution {
    fn ln_survival(&self, t: f64) -> f64 {
        if t <= 0.0 {
            return LN_CERTAIN;
        }
        let ln_t = self.ln_own(t);
        match self.knot_at(ln_t) {
            Some(knot) => knot.ln_survival - knot.exponent * (ln_t - knot.ln_t),
            None => LN_CERTAIN,
        }
    }

    fn ln_residual_survival(&self, age: f64, wait: f64) -> f64 {
        if wait <= 0.0 {
            return LN_CERTAIN;
        }
        if age <= 0.0 {
            return self.ln_survival(age + wait);
        }
        let (ln_age, ln_end) = (self.ln_own(age), self.ln_own(age + wait));
        match (self.knot_at(ln_age), self.knot_at(ln_end)) {
            (Some(here), Some(there)) if here.ln_t == there.ln_t => {
                -here.exponent * libm::log1p(wait / age)
            }
            _ => (self.ln_survival(age + wait) - self.ln_survival(age)).min(LN_CERTAIN),
        }
    }

    fn ln_density(&self, t: f64) -> f64 {
        let knot = (t > 0.0).then(|| self.knot_at(self.ln_own(t))).flatten();
        // An exponent of 0, where the survival is flat, also gives −∞.
        knot.map_or(f64::NEG_INFINITY, |knot| {
            self.ln_survival(t) + libm::log(knot.exponent) - libm::log(t)
        })
    }

    fn mean(&self) -> f64 {
        self.mean_residual(0.0)
    }

    fn mean_residual(&self, age: f64) -> f64 {
        let factor = libm::exp(self.ln_factor);
        let ln_age = if age > 0.0 {
            self.ln_own(age)
        } else {
            f64::NEG_INFINITY
        };
        let behind = self.knots.partition_point(|knot| knot.ln_t <= ln_age);
        let next = self.knots.get(behind);
        let here = behind.checked_sub(1).and_then(|here| self.knots.get(here));
        match (here, next) {
            (None, Some(first)) => (self.minimum() - age).max(0.0) + factor * first.mean_residual,
            (Some(here), Some(next)) => {
                let (from, width) = (ln_age - here.ln_t, next.ln_t - ln_age);
                let ln_survival = here.ln_survival - here.exponent * from;
                let rest = libm::exp(next.ln_survival - ln_survival) * next.mean_residual;
                factor * (here.integral(from, width) + rest)
            }
            (Some(last), None) if last.exponent > 1.0 => age / (last.exponent - 1.0),
            _ => f64::INFINITY,
        }
    }

    fn quantile(&self, ln_tail: f64) -> f64 {
        let behind = self
            .knots
            .partition_point(|knot| knot.ln_survival >= ln_tail);
        let here = behind.checked_sub(1).and_then(|here| self.knots.get(here));
        let Some(knot) = here else {
            return self.minimum();
        };
        let fall = knot.ln_survival - ln_tail;
        let ln_t = if fall > 0.0 && knot.exponent > 0.0 {
            let end = self
                .knots
                .get(behind)
                .map_or(f64::INFINITY, |next| next.ln_t);
            (knot.ln_t + fall / knot.exponent).min(end)
        } else {
            knot.ln_t
        };
        libm::exp(ln_t + self.ln_factor)
    }

    fn scaled(&self, share: f64) -> Self {
        Self {
            knots: Arc::clone(&self.knots),
            ln_factor: (self.ln_factor + ln_share(share)).clamp(-LN_FACTOR_MAX, LN_FACTOR_MAX),
        }
    }

    fn minimum(&self) -> f64 {
        let first = self.knots.first();
        first.map_or(0.0, |first| libm::exp(first.ln_t + self.ln_factor))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::pareto::ParetoDistribution;

    fn fit(ended: &[f64], running: &[f64]) -> EmpiricalDistribution {
        EmpiricalDistribution::fit(&Sample::new(ended, running)).unwrap()
    }

    fn survival(distribution: &EmpiricalDistribution, t: f64) -> f64 {
        libm::exp(distribution.ln_survival(t))
    }

    #[test]
    fn without_censoring_it_passes_through_the_middles_of_the_steps() {
        let distribution = fit(&[4.0, 1.0, 2.0, 3.0], &[]);
        let points = [
            (0.999, 1.0),
            (1.0, 0.875),
            (2.0, 0.625),
            (3.0, 0.375),
            (4.0, 0.125),
        ];
        for (t, wanted) in points {
            assert!((survival(&distribution, t) - wanted).abs() < 1e-14, "{t}");
        }
        assert!(survival(&distribution, 2.5) < 0.625 && survival(&distribution, 2.5) > 0.375);
        assert!((distribution.minimum() - 1.0).abs() < 1e-15);
    }

    #[test]
    fn censored_attempts_share_their_probability_with_longer_ones() {
        // Kaplan–Meier by hand: 1, 3/4, 1/2, and 0 after 4, which takes the share of two.
        let distribution = fit(&[1.0, 2.0, 4.0], &[2.5]);
        assert!((survival(&distribution, 2.0) - 0.625).abs() < 1e-14);
        assert!((survival(&distribution, 4.0) - 0.25).abs() < 1e-14);
    }

    #[test]
    fn equal_times_fall_at_once() {
        let distribution = fit(&[10.0, 10.0, 10.0, 10.0, 20.0], &[]);
        assert!((survival(&distribution, 10.0) - 0.3).abs() < 1e-14);
        assert!((survival(&distribution, 20.0) - 0.1).abs() < 1e-14);
        assert_eq!(distribution.ln_survival(9.999), LN_CERTAIN);
        assert!((distribution.quantile(libm::log(0.7)) - 10.0).abs() < 1e-12);
        assert!(distribution.mean() > 10.0 && distribution.mean() < 30.0);
    }

    #[test]
    fn the_tail_learns_from_ages_beyond_the_last_end() {
        let short = fit(&[1.0, 1.1, 1.2, 1.3], &[]);
        let long = fit(&[1.0, 1.1, 1.2, 1.3], &[50.0, 60.0]);
        assert!(long.tail_exponent() < short.tail_exponent());
        assert!(long.ln_survival(100.0) > short.ln_survival(100.0));
    }

    #[test]
    fn its_mean_is_that_of_the_distribution_that_it_was_drawn_from() {
        let pareto = ParetoDistribution {
            t_min: 10.0,
            beta: 3.0,
        };
        let sample = Sample::default().with_pseudo_attempts(&pareto, 4000);
        let distribution = EmpiricalDistribution::fit(&sample).unwrap();
        assert!(
            (distribution.mean() / pareto.mean() - 1.0).abs() < 0.01,
            "{}",
            distribution.mean()
        );
        for age in [5.0, 12.0, 40.0, 1e4] {
            let (got, wanted) = (distribution.mean_residual(age), pareto.mean_residual(age));
            assert!(
                (got / wanted - 1.0).abs() < 0.05,
                "{age}: {got}, not {wanted}"
            );
        }
    }

    #[test]
    fn the_mean_residual_is_the_integral_of_the_residual_survival() {
        let distribution = fit(&[3.0, 5.0, 5.0, 5.5, 6.0, 9.0], &[4.0, 9.5]).scaled(2.0);
        for age in [0.0, 7.0, 10.0, 17.0, 30.0] {
            let (steps, end) = (400_000, 60_000.0);
            let width = end / f64::from(steps);
            let inside: f64 = (0..steps)
                .map(|i| (f64::from(i) + 0.5) * width)
                .map(|wait| width * libm::exp(distribution.ln_residual_survival(age, wait)))
                .sum();
            let tail = distribution.mean_residual(age + end)
                * libm::exp(distribution.ln_residual_survival(age, end));
            let wanted = inside + tail;
            let got = distribution.mean_residual(age);
            assert!(
                (got / wanted - 1.0).abs() < 1e-3,
                "{age}: {got}, not {wanted}"
            );
        }
    }

    #[test]
    fn the_density_is_the_slope_of_the_survival() {
        let distribution = fit(&[1.0, 2.0, 3.0, 4.0], &[]).scaled(2.0);
        for t in [2.5, 5.0, 7.0, 30.0] {
            let step = 1e-6 * t;
            let slope = (survival(&distribution, t - step) - survival(&distribution, t + step))
                / (2.0 * step);
            let got = libm::exp(distribution.ln_density(t));
            assert!((got / slope - 1.0).abs() < 1e-6, "{t}: {got}, not {slope}");
        }
        for t in [-1.0, 0.0, 1.9] {
            assert_eq!(distribution.ln_density(t), f64::NEG_INFINITY);
        }
    }

    #[test]
    fn residual_survival_is_the_quotient_of_two_survivals() {
        let distribution = fit(&[1.0, 2.0, 3.0, 4.0], &[]);
        for (age, wait) in [(2.6, 0.5), (2.6, 1.1), (1.2, 0.1), (1.5, 1.0), (5.0, 9.0)] {
            let wanted = survival(&distribution, age + wait) / survival(&distribution, age);
            let got = libm::exp(distribution.ln_residual_survival(age, wait));
            assert!((got - wanted).abs() < 1e-12, "{age} {wait}: {got}");
        }
        // Within a line a short wait keeps its precision.
        let hazard = libm::exp(distribution.ln_density(2.5) - distribution.ln_survival(2.5));
        let got = distribution.ln_residual_survival(2.5, 1e-12);
        assert!((got / (-1e-12 * hazard) - 1.0).abs() < 1e-9, "{got}");
    }

    #[test]
    fn quantiles_are_the_times_of_their_survivals() {
        let distribution = fit(&[1.0, 2.0, 3.0, 4.0], &[]).scaled(3.0);
        for t in [3.0, 4.0, 6.0, 8.0, 11.0, 12.0, 50.0] {
            let got = distribution.quantile(distribution.ln_survival(t));
            assert!((got / t - 1.0).abs() < 1e-12, "{t}: {got}");
        }
        assert!((distribution.quantile(libm::log(0.9)) / 3.0 - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_tail_is_a_shrunk_hill_estimate_of_the_longest_tenth() {
        let lengths: Vec<f64> = (1..=200).map(|i| f64::from(i * i)).collect();
        let sample = Sample::new(&lengths, &[50_000.0]);
        let beyond = [&lengths[180..], &[50_000.0]].concat();
        let excess: f64 = beyond.iter().map(|t| libm::log(t / lengths[179])).sum();
        let wanted = (20.0 + 2.0) / (excess + 2.0 / 2.0);
        let got = EmpiricalDistribution::fit(&sample).unwrap().tail_exponent();
        assert!((got / wanted - 1.0).abs() < 1e-12, "{got}, not {wanted}");
    }

    #[test]
    fn a_tail_too_heavy_for_a_mean_has_none() {
        let distribution = fit(&[1.0, 2.0], &[1e6; 5]);
        assert!(distribution.tail_exponent() < 1.0);
        for age in [0.0, 1.5, 5.0] {
            assert_eq!(distribution.mean_residual(age), f64::INFINITY);
        }
    }

    #[test]
    fn equal_times_take_no_more_capacity_than_two_of_them() {
        let knots = |count| fit(&vec![10.0; count], &[]).knots.len();
        assert_eq!(knots(2), knots(1000));
    }

    #[test]
    fn without_an_end_there_is_no_distribution() {
        assert_eq!(EmpiricalDistribution::fit(&Sample::new(&[], &[5.0])), None);
    }
}
