//! Means of a task with several copies, and of a job of such tasks, under a Pareto distribution.
//!
//! Source: *SCA/ESE* (Infocom 2015), equations (13)–(15). Copies of a task are assumed to launch together, on equal
//! machines, with independent times. A shape of ∞ denotes times that do not vary.

use shed_core::estimate::pareto::ParetoDistribution;

/// Mean of the fastest of `copies` copies: `t_min·cα/(cα−1)`, ∞ when cα ≤ 1.
pub fn fastest_mean(distribution: &ParetoDistribution, copies: f64) -> f64 {
    let shape = copies * distribution.beta;
    if shape.is_infinite() {
        distribution.t_min
    } else if shape > 1.0 {
        distribution.t_min * (shape / (shape - 1.0))
    } else {
        f64::INFINITY
    }
}

/// Mean of the slowest of `tasks` tasks, each the fastest of `copies` copies: the mean time of a
/// job's one phase (SCA/ESE (13)–(15)).
///
/// With `b = 1/(αc)` it is `t_min·∏ k/(k−b)` over k = 1…tasks, ∞ when b ≥ 1. Convex in `copies`.
/// Costs one multiplication per task.
pub fn slowest_mean(distribution: &ParetoDistribution, tasks: u32, copies: f64) -> f64 {
    let b = 1.0 / (distribution.beta * copies);
    if b >= 1.0 {
        return f64::INFINITY;
    }
    let product: f64 = (1..=tasks).map(|k| stretch(k, b)).product();
    distribution.t_min * product
}

/// The derivative of [`slowest_mean`] by `copies`: `−E/(αc²)·Σ 1/(k−b)`; −∞ when b ≥ 1.
pub fn slowest_mean_slope(distribution: &ParetoDistribution, tasks: u32, copies: f64) -> f64 {
    let b = 1.0 / (distribution.beta * copies);
    if b >= 1.0 {
        return f64::NEG_INFINITY;
    }
    let (mut product, mut sum) = (1.0, 0.0);
    for k in 1..=tasks {
        product *= stretch(k, b);
        sum += 1.0 / (f64::from(k) - b);
    }
    -distribution.t_min * product * sum * b / copies
}

/// c·E\[min\], the mean machine time of a task with `copies` copies: all run until the first ends.
/// Convex in `copies`.
pub fn task_machine_time(distribution: &ParetoDistribution, copies: f64) -> f64 {
    copies * fastest_mean(distribution, copies)
}

/// The derivative of [`task_machine_time`] by `copies`: `t_min·αc(αc−2)/(αc−1)²`; −∞ when αc ≤ 1.
pub fn task_machine_time_slope(distribution: &ParetoDistribution, copies: f64) -> f64 {
    let shape = copies * distribution.beta;
    if shape <= 1.0 {
        return f64::NEG_INFINITY;
    }
    if shape.is_infinite() {
        return distribution.t_min;
    }
    let beyond = shape - 1.0;
    distribution.t_min * (shape / beyond) * ((shape - 2.0) / beyond)
}

fn stretch(k: u32, b: f64) -> f64 {
    let k = f64::from(k);
    k / (k - b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_do_not_vary_gain_nothing_from_copies() {
        let distribution = ParetoDistribution {
            t_min: 10.0,
            beta: f64::INFINITY,
        };
        assert_eq!(slowest_mean(&distribution, 400, 3.0), 10.0);
        assert_eq!(slowest_mean_slope(&distribution, 400, 3.0), 0.0);
        assert_eq!(task_machine_time_slope(&distribution, 3.0), 10.0);
    }

    #[test]
    fn the_slopes_are_those_of_their_means() {
        let step = 1e-5;
        for (beta, tasks, copies) in [(1.5, 1, 1.0), (2.0, 20, 2.5), (3.3, 300, 1.2)] {
            let distribution = ParetoDistribution { t_min: 7.0, beta };
            let central =
                |of: &dyn Fn(f64) -> f64| (of(copies + step) - of(copies - step)) / (2.0 * step);
            let slowest = central(&|copies| slowest_mean(&distribution, tasks, copies));
            let cost = central(&|copies| task_machine_time(&distribution, copies));
            let slope = slowest_mean_slope(&distribution, tasks, copies);
            assert!((slope / slowest - 1.0).abs() < 1e-6);
            assert!(
                (task_machine_time_slope(&distribution, copies) - cost).abs()
                    < 1e-6 * distribution.t_min
            );
        }
    }

    #[test]
    fn means_without_bound_are_infinite_and_their_slopes_too() {
        let distribution = ParetoDistribution {
            t_min: 1.0,
            beta: 0.5,
        };
        assert!(fastest_mean(&distribution, 2.0).is_infinite());
        assert!(slowest_mean(&distribution, 4, 2.0).is_infinite());
        assert_eq!(slowest_mean_slope(&distribution, 4, 2.0), f64::NEG_INFINITY);
        assert_eq!(
            task_machine_time_slope(&distribution, 2.0),
            f64::NEG_INFINITY
        );
        assert!(slowest_mean(&distribution, 4, 2.1).is_finite());
    }
}
