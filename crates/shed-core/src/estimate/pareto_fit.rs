//! A job's Pareto distribution, learned from attempts that have ended and from those that still run.

use serde::{Deserialize, Serialize};

use crate::estimate::pareto::ParetoDistribution;

/// The prior before any observation.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ShapePrior {
    /// The least time, above 0; used while no attempt has ended and none is predicted.
    pub t_min: f64,
    /// The shape, above 0, toward which the estimate is shrunk.
    pub beta: f64,
    /// The weight of the prior shape, in observations.
    pub pseudo_count: f64,
    /// The smallest total time predicted for an attempt that still runs, if one reports.
    pub smallest_predicted_total: Option<f64>,
}

impl ShapePrior {
    /// The shape that the papers' model runs use as their upper value, with the weight of eight observations.
    pub fn with_t_min(t_min: f64) -> Self {
        Self {
            t_min,
            beta: 2.0,
            pseudo_count: 8.0,
            smallest_predicted_total: None,
        }
    }
}

/// Fits the distribution to the total times of `ended` attempts and the present ages of `running` ones. Both are in
/// one unit of time, and those that are not positive and finite are ignored.
///
/// t_min is the smallest total observed or predicted, or else the prior's. β maximizes the likelihood `Π
/// β·t_min^β/t^(β+1) · Π (t_min/age)^β` with running attempts as censored from the right. This gives `β = d/S` with d
/// ended attempts and `S = Σ ln(t/t_min)` over ended and running alike. Without the censored ones the estimate would
/// treat all attempts as short, because the long ones are still running.
///
/// Shrinkage is the mean of the posterior under a Gamma prior of mean `prior.beta` that weighs `pseudo_count`
/// observations: `(d + c)/(S + c/β₀)`. When t_min is itself the smallest ended time, that attempt is no evidence for
/// the shape, so d counts only the others (the unbiased form).
pub fn fit(ended: &[f64], running_ages: &[f64], prior: &ShapePrior) -> ParetoDistribution {
    let usable = |time: &f64| time.is_finite() && *time > 0.0;
    let smallest_ended = ended
        .iter()
        .copied()
        .filter(usable)
        .fold(f64::INFINITY, f64::min);
    let predicted = prior
        .smallest_predicted_total
        .filter(usable)
        .unwrap_or(f64::INFINITY);
    let smallest = smallest_ended.min(predicted);
    let t_min = if smallest.is_finite() {
        smallest
    } else {
        prior.t_min
    };

    let count = ended.iter().filter(|time| usable(time)).count() as f64;
    // An ended attempt that set t_min has no excess and is no evidence for the shape.
    let informative = if smallest_ended <= predicted {
        (count - 1.0).max(0.0)
    } else {
        count
    };
    let ln_t_min = libm::log(t_min);
    let excess: f64 = ended
        .iter()
        .chain(running_ages)
        .filter(|time| usable(time))
        .map(|time| (libm::log(*time) - ln_t_min).max(0.0))
        .sum();

    let rate = excess + prior.pseudo_count / prior.beta;
    let beta = if rate > 0.0 {
        (informative + prior.pseudo_count) / rate
    } else {
        prior.beta
    };
    ParetoDistribution { t_min, beta }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRIOR: ShapePrior = ShapePrior {
        t_min: 120.0,
        beta: 2.0,
        pseudo_count: 8.0,
        smallest_predicted_total: None,
    };

    /// The quantiles of Pareto(120, β): a sample without chance.
    fn quantiles(beta: f64, count: u32) -> Vec<f64> {
        (0..count)
            .map(|rank| 1.0 - (f64::from(rank) + 0.5) / f64::from(count))
            .map(|tail| 120.0 * libm::pow(tail, -1.0 / beta))
            .collect()
    }

    #[test]
    fn without_observations_the_prior_is_returned() {
        let distribution = fit(&[], &[], &PRIOR);
        assert_eq!((distribution.t_min, distribution.beta), (120.0, 2.0));
    }

    #[test]
    fn many_ended_attempts_give_their_own_distribution() {
        for beta in [1.2, 1.5, 3.0] {
            let distribution = fit(&quantiles(beta, 5000), &[], &PRIOR);
            assert!(
                (distribution.beta / beta - 1.0).abs() < 0.02,
                "{beta}: {distribution:?}"
            );
            assert!((distribution.t_min / 120.0 - 1.0).abs() < 0.001);
        }
    }

    #[test]
    fn running_attempts_keep_the_tail_from_being_underestimated() {
        let times = quantiles(1.5, 5000);
        let ended: Vec<f64> = times.iter().copied().filter(|&t| t <= 200.0).collect();
        let ages = vec![200.0; times.len() - ended.len()];
        let censored = fit(&ended, &ages, &PRIOR);
        let naive = fit(&ended, &[], &PRIOR);
        assert!((censored.beta / 1.5 - 1.0).abs() < 0.02, "{censored:?}");
        assert!(naive.beta > 3.0, "{naive:?}");
    }

    #[test]
    fn few_observations_stay_near_the_prior() {
        let distribution = fit(&[100.0, 1000.0], &[], &PRIOR);
        assert_eq!(distribution.t_min, 100.0);
        assert!(
            distribution.beta > 1.3 && distribution.beta < 2.0,
            "{distribution:?}"
        );
    }

    #[test]
    fn attempts_younger_than_the_least_time_say_nothing() {
        assert_eq!(
            fit(&[150.0, 300.0], &[20.0, 90.0], &PRIOR),
            fit(&[150.0, 300.0], &[], &PRIOR)
        );
    }

    #[test]
    fn a_predicted_total_can_be_the_least_time() {
        let prior = ShapePrior {
            smallest_predicted_total: Some(80.0),
            ..PRIOR
        };
        assert_eq!(fit(&[150.0], &[], &prior).t_min, 80.0);
        assert_eq!(fit(&[], &[], &prior).t_min, 80.0);
    }

    #[test]
    fn useless_numbers_are_left_out() {
        let distribution = fit(&[f64::NAN, -3.0, 0.0, f64::INFINITY], &[f64::NAN], &PRIOR);
        assert_eq!((distribution.t_min, distribution.beta), (120.0, 2.0));
    }

    #[test]
    fn equal_times_give_a_finite_shape_even_without_a_prior() {
        let prior = ShapePrior {
            pseudo_count: 0.0,
            ..PRIOR
        };
        assert_eq!(fit(&[150.0, 150.0], &[], &prior).beta, 2.0);
    }
}
