//! ESE: when to duplicate a running task, and how many copies a small new job gets (SCA/ESE §V and
//! §VI).

use crate::formulas::first_largest;
use crate::formulas::sca::{CloneJob, bisect};

/// σ*, the multiple of the mean time E\[x\] beyond which a task's remaining time makes a duplicate
/// worth its machine time. `None` for α ≤ 1, where the mean is infinite.
///
/// It minimizes equations (22)–(25), whose derivative at a = σE\[x\] is
/// `(a − 2·E[min(a, t_new)])·∫_a^∞ dF(t)/t`: the least a with a = 2·E\[min(a, t_new)\], whenever a
/// task is looked at. In units of t_min, s = 2(α − s^(1−α))/(α−1). Between 1/E\[x\] and 2.
pub fn straggler_factor(alpha: f64) -> Option<f64> {
    if alpha.is_nan() || alpha <= 1.0 {
        return None;
    }
    if alpha.is_infinite() {
        return Some(2.0);
    }
    let gains = |s: f64| s < 2.0 * (alpha - libm::pow(s, 1.0 - alpha)) / (alpha - 1.0);
    let s = bisect(1.0, 2.0 * alpha / (alpha - 1.0), gains);
    Some(s * (alpha - 1.0) / alpha)
}

/// Equation (21) with U = −E\[t\]: the copies of each task, 1 to `copies_max`, with the largest
/// [`CloneJob::utility`]; the fewest of equals.
pub fn best_whole_copies(job: &CloneJob, gamma: f64, copies_max: u32) -> u32 {
    let utilities = (1..=copies_max).map(|copies| (job.utility(f64::from(copies), gamma), copies));
    first_largest(utilities).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use crate::formulas::copies::fastest_mean;
    use shed_core::estimate::pareto::ParetoDistribution;

    use super::*;

    #[test]
    fn the_factor_balances_one_remaining_time_with_two_copies() {
        for alpha in [1.05, 1.5, 2.0, 3.0, 10.0] {
            let distribution = ParetoDistribution {
                t_min: 1.0,
                beta: alpha,
            };
            let a = straggler_factor(alpha).unwrap() * fastest_mean(&distribution, 1.0);
            let both = 1.0 + (1.0 - libm::pow(a, 1.0 - alpha)) / (alpha - 1.0);
            assert!((a / (2.0 * both) - 1.0).abs() < 1e-12);
        }
        assert_eq!(straggler_factor(f64::INFINITY), Some(2.0));
        assert_eq!(straggler_factor(1.0), None);
    }
}
