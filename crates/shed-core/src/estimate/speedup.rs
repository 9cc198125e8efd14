//! The gain of task copies under a Pareto distribution: the fit from mean and standard deviation, the speedup h(r),
//! and the means of the fastest copy and of a job's slowest task.
//!
//! Sources: *DollyMP* (ICPP 2022), equations (2) and (3); *SCA/ESE* (Infocom 2015), equations (13)–(15). Copies of a
//! task are assumed to launch together, on equal machines, with independent times. A shape of ∞ denotes times that do
//! not vary.

use crate::estimate::compare::at_most;
use crate::estimate::pareto::ParetoLaw;

/// The Pareto distribution with this mean and standard deviation, in the unit of both (DollyMP §5, which only states
/// that a Pareto distribution is fitted).
///
/// `σ/θ = 1/√(α(α−2))` gives `α = 1 + √(1 + (θ/σ)²)` and `t_min = θ(α−1)/α`. The shape is above 2 for any data,
/// because the distribution has a standard deviation only there. With this fit two copies gain less than a factor
/// 1.5; heavier tails need a fit by likelihood. A standard deviation of 0 gives times that do not vary.
pub fn pareto_from_moments(mean: f64, std: f64) -> ParetoLaw {
    if std <= 0.0 {
        return ParetoLaw {
            t_min: mean,
            beta: f64::INFINITY,
        };
    }
    let beta = 1.0 + libm::hypot(1.0, mean / std);
    ParetoLaw {
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

/// Mean of the fastest of `copies` copies: `t_min·cα/(cα−1)`, ∞ when cα ≤ 1.
pub fn fastest_mean(law: &ParetoLaw, copies: f64) -> f64 {
    let shape = copies * law.beta;
    if shape.is_infinite() {
        law.t_min
    } else if shape > 1.0 {
        law.t_min * (shape / (shape - 1.0))
    } else {
        f64::INFINITY
    }
}

/// Mean of the slowest of `tasks` tasks, each the fastest of `copies` copies: the mean time of a
/// job's one phase (SCA/ESE (13)–(15)).
///
/// With `b = 1/(αc)` it is `t_min·∏ k/(k−b)` over k = 1…tasks, ∞ when b ≥ 1. Convex in `copies`.
/// Costs one multiplication per task.
pub fn slowest_mean(law: &ParetoLaw, tasks: u32, copies: f64) -> f64 {
    let b = 1.0 / (law.beta * copies);
    if b >= 1.0 {
        return f64::INFINITY;
    }
    let product: f64 = (1..=tasks).map(|k| stretch(k, b)).product();
    law.t_min * product
}

/// The derivative of [`slowest_mean`] by `copies`: `−E/(αc²)·Σ 1/(k−b)`; −∞ when b ≥ 1.
pub fn slowest_mean_slope(law: &ParetoLaw, tasks: u32, copies: f64) -> f64 {
    let b = 1.0 / (law.beta * copies);
    if b >= 1.0 {
        return f64::NEG_INFINITY;
    }
    let (mut product, mut sum) = (1.0, 0.0);
    for k in 1..=tasks {
        product *= stretch(k, b);
        sum += 1.0 / (f64::from(k) - b);
    }
    -law.t_min * product * sum * b / copies
}

/// c·E\[min\], the mean machine time of a task with `copies` copies: all run until the first ends.
/// Convex in `copies`.
pub fn task_machine_time(law: &ParetoLaw, copies: f64) -> f64 {
    copies * fastest_mean(law, copies)
}

/// The derivative of [`task_machine_time`] by `copies`: `t_min·αc(αc−2)/(αc−1)²`; −∞ when αc ≤ 1.
pub fn task_machine_time_slope(law: &ParetoLaw, copies: f64) -> f64 {
    let shape = copies * law.beta;
    if shape <= 1.0 {
        return f64::NEG_INFINITY;
    }
    if shape.is_infinite() {
        return law.t_min;
    }
    let beyond = shape - 1.0;
    law.t_min * (shape / beyond) * ((shape - 2.0) / beyond)
}

fn stretch(k: u32, b: f64) -> f64 {
    let k = f64::from(k);
    k / (k - b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fit_has_the_mean_and_the_spread_that_were_given() {
        for (mean, std) in [(10.0, 5.0), (1.0, 1.0), (3.0, 6.0), (40.0, 0.001)] {
            let ParetoLaw { t_min, beta } = pareto_from_moments(mean, std);
            let fitted_mean = t_min * beta / (beta - 1.0);
            // beta − 2 keeps few digits where the spread is small.
            let fitted_std = fitted_mean / (beta * (beta - 2.0)).sqrt();
            assert!((fitted_mean / mean - 1.0).abs() < 1e-12);
            assert!((fitted_std / std - 1.0).abs() < 1e-6);
        }
    }

    #[test]
    fn times_that_do_not_vary_gain_nothing_from_copies() {
        let law = pareto_from_moments(10.0, 0.0);
        assert_eq!(law.t_min, 10.0);
        assert_eq!(speedup(law.beta, 7.0), Some(1.0));
        assert_eq!(slowest_mean(&law, 400, 3.0), 10.0);
        assert_eq!(slowest_mean_slope(&law, 400, 3.0), 0.0);
        assert_eq!(task_machine_time_slope(&law, 3.0), 10.0);
    }

    #[test]
    fn two_copies_cost_less_machine_time_than_one_below_a_shape_of_one_and_a_half() {
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

    #[test]
    fn the_slopes_are_those_of_their_means() {
        let step = 1e-5;
        for (beta, tasks, copies) in [(1.5, 1, 1.0), (2.0, 20, 2.5), (3.3, 300, 1.2)] {
            let law = ParetoLaw { t_min: 7.0, beta };
            let central =
                |of: &dyn Fn(f64) -> f64| (of(copies + step) - of(copies - step)) / (2.0 * step);
            let slowest = central(&|copies| slowest_mean(&law, tasks, copies));
            let cost = central(&|copies| task_machine_time(&law, copies));
            let slope = slowest_mean_slope(&law, tasks, copies);
            assert!((slope / slowest - 1.0).abs() < 1e-6);
            assert!((task_machine_time_slope(&law, copies) - cost).abs() < 1e-6 * law.t_min);
        }
    }

    #[test]
    fn means_without_bound_are_infinite_and_their_slopes_too() {
        let law = ParetoLaw {
            t_min: 1.0,
            beta: 0.5,
        };
        assert!(fastest_mean(&law, 2.0).is_infinite());
        assert!(slowest_mean(&law, 4, 2.0).is_infinite());
        assert_eq!(slowest_mean_slope(&law, 4, 2.0), f64::NEG_INFINITY);
        assert_eq!(task_machine_time_slope(&law, 2.0), f64::NEG_INFINITY);
        assert!(slowest_mean(&law, 4, 2.1).is_finite());
    }
}
