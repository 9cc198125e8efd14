//! The gain of task copies under a Pareto distribution: the fit from mean and standard deviation, and the speedup
//! h(r).
//!
//! Sources: *DollyMP* (ICPP 2022), equations (2) and (3); *SCA/ESE* (Infocom 2015). Copies of a task are assumed to
//! launch together, on equal machines, with independent times. A shape of ∞ denotes times that do not vary.

use shed_core::estimate::compare::at_most;
use shed_core::estimate::pareto::ParetoDistribution;

/// The Pareto distribution with this mean and standard deviation, in the unit of both (DollyMP §5, which only states
/// that a Pareto distribution is fitted).
///
/// `σ/θ = 1/√(α(α−2))` gives `α = 1 + √(1 + (θ/σ)²)` and `t_min = θ(α−1)/α`. The shape is above 2 for any data,
/// because the distribution has a standard deviation only there. With this fit two copies gain less than a factor
/// 1.5; heavier tails need a fit by likelihood. A standard deviation of 0 gives times that do not vary.
pub fn pareto_from_moments(mean: f64, std: f64) -> ParetoDistribution {
    if std <= 0.0 {
        return ParetoDistribution {
            t_min: mean,
            beta: f64::INFINITY,
        };
    }
    let beta = 1.0 + libm::hypot(1.0, mean / std);
    ParetoDistribution {
        t_min: mean * (1.0 - 1.0 / beta),
        beta,
    }
}

/// h(r) = (α − 1/r)/(α − 1), the factor by which `copies` copies shorten the mean of a task
/// (DollyMP (3)); 1 for one copy, increasing and strictly concave.
///
/// `None` where the mean is infinite (α ≤ 1) or there is less than one copy.
pub fn speedup(alpha: f64, copies: f64) -> Option<f64> {
    if !(alpha > 1.0 && copies >= 1.0) {
        return None;
    }
    // As printed it is ∞/∞ for a shape of ∞; this is the same quotient.
    Some(1.0 + (1.0 - 1.0 / copies) / (alpha - 1.0))
}

/// R = α/(α − 1), which no number of copies reaches. `None` for α ≤ 1.
pub fn speedup_limit(alpha: f64) -> Option<f64> {
    speedup(alpha, f64::INFINITY)
}

/// r/h(r), the machine time of `copies` copies over that of one; `None` for α ≤ 1.
///
/// At two copies it is the factor 4(α−1)/(2α−1) of SCA/ESE Theorem 1, below 1 when α < 1.5.
pub fn machine_time_ratio(alpha: f64, copies: f64) -> Option<f64> {
    speedup(alpha, copies).map(|gain| copies / gain)
}

/// r_j(l) = min{r : 2^l·h(r) ≥ e}, the least copies that reduce an effective time of `time` to `limit` (DollyMP
/// Corollary 4.1, with `limit` = 2^l).
///
/// `None` when no number of copies does (`time/limit` ≥ R), or α ≤ 1.
pub fn least_copies(alpha: f64, time: f64, limit: f64) -> Option<u32> {
    let needed = time / limit;
    if at_most(needed, 1.0) && alpha > 1.0 {
        return Some(1);
    }
    let reach = speedup_limit(alpha)?;
    if at_most(reach, needed) {
        return None;
    }
    // h(r) ≥ x  ⇔  1/r ≤ α − x(α−1). The quotient is only a first guess: the definition decides.
    let guess = (1.0 / (alpha - needed * (alpha - 1.0))).floor() - 1.0;
    let mut copies = guess.max(1.0);
    while copies < f64::from(u32::MAX) {
        if at_most(needed, speedup(alpha, copies)?) {
            return Some(copies as u32);
        }
        copies += 1.0;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fit_has_the_mean_and_the_spread_that_were_given() {
        for (mean, std) in [(10.0, 5.0), (1.0, 1.0), (3.0, 6.0), (40.0, 0.001)] {
            let ParetoDistribution { t_min, beta } = pareto_from_moments(mean, std);
            let fitted_mean = t_min * beta / (beta - 1.0);
            // beta − 2 keeps few digits where the spread is small.
            let fitted_std = fitted_mean / (beta * (beta - 2.0)).sqrt();
            assert!((fitted_mean / mean - 1.0).abs() < 1e-12);
            assert!((fitted_std / std - 1.0).abs() < 1e-6);
        }
    }

    #[test]
    fn times_that_do_not_vary_gain_nothing_from_copies() {
        let distribution = pareto_from_moments(10.0, 0.0);
        assert_eq!(distribution.t_min, 10.0);
        assert_eq!(speedup(distribution.beta, 7.0), Some(1.0));
    }

    #[test]
    fn two_copies_cost_less_machine_time_below_a_shape_of_1_5() {
        assert!(machine_time_ratio(1.49, 2.0).unwrap() < 1.0);
        assert!(machine_time_ratio(1.51, 2.0).unwrap() > 1.0);
        assert_eq!(machine_time_ratio(1.0, 2.0), None);
        assert_eq!(speedup(2.0, 0.5), None);
    }

    #[test]
    fn the_least_copies_are_the_first_that_reach_the_limit() {
        for alpha in [1.2, 2.0, 2.5, 4.0] {
            for time in [3.0, 8.0, 8.1, 11.9, 15.9, 16.0, 60.0] {
                let reaches = |r: &u32| {
                    speedup(alpha, f64::from(*r)).is_some_and(|gain| at_most(time, 8.0 * gain))
                };
                let scanned = (1..10_000).find(reaches);
                assert_eq!(least_copies(alpha, time, 8.0), scanned);
            }
        }
        for alpha in [0.5, 1.0] {
            assert_eq!(least_copies(alpha, 3.0, 8.0), None);
        }
    }
}
