//! LASER §III: the expected times of SRQuant, its utility, and the rule by which SRQuant and LASER
//! choose the number of extra attempts.
//!
//! At `tau_est` every task whose estimated time exceeds the deadline is stopped and replaced by r +
//! 1 attempts that resume from its progress. At `tau_kill` the one with the most progress is kept.

use crate::formulas::copies::fastest_mean;
use shed_core::estimate::pareto::{ParetoDistribution, ln_miss};
use shed_core::estimate::pocd::{ln_task_pocd, probability};

/// A job as SRQuant sees it at `tau_est`. Times in seconds from the job's submission.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SrQuantJob {
    /// The distribution of an attempt's time.
    pub distribution: ParetoDistribution,
    /// D, the deadline.
    pub deadline: f64,
    /// When stragglers are judged and resumed.
    pub tau_est: f64,
    /// When the slower resumed attempts are killed.
    pub tau_kill: f64,
    /// φ, the mean progress of the tasks at `tau_est`, 0…1.
    pub phi_est: f64,
    /// N, the tasks.
    pub tasks: u32,
}

/// The mean time of resumed attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SlowMean {
    /// Equation (8) as printed. It is the mean of max(W, t_min), W being the fastest of the
    /// resumed attempts.
    #[default]
    Printed,
    /// The mean of W itself.
    Exact,
}

/// The logarithm of the utility.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogBase {
    /// ln.
    #[default]
    Natural,
    /// log₁₀.
    Ten,
}

/// The value of PoCD against machine time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Price {
    /// θ·C, the price of a machine second.
    pub theta_c: f64,
    /// R_min, the PoCD below which the job is worth nothing.
    pub r_min: f64,
    /// The logarithm.
    pub log: LogBase,
}

impl Default for Price {
    /// The values of LASER's experiments.
    fn default() -> Self {
        Self {
            theta_c: 1e-4,
            r_min: 0.1,
            log: LogBase::Natural,
        }
    }
}

impl Price {
    /// U = ln(R − R_min) − θC·E(T), equation (9); −∞ when R ≤ R_min.
    pub fn utility(&self, ln_pocd: f64, machine_time: f64) -> f64 {
        let ln_gain = if self.r_min > 0.0 {
            let gain = probability(ln_pocd) - self.r_min;
            if gain > 0.0 {
                libm::log(gain)
            } else {
                f64::NEG_INFINITY
            }
        } else {
            // Without a floor the logarithm itself is exact where R underflows.
            ln_pocd
        };
        let value = match self.log {
            LogBase::Natural => ln_gain,
            LogBase::Ten => ln_gain / std::f64::consts::LN_10,
        };
        value - priced(self.theta_c, machine_time)
    }
}

/// Free capacity costs nothing, even if the expected time is infinite.
fn priced(theta_c: f64, machine_time: f64) -> f64 {
    if theta_c > 0.0 {
        theta_c * machine_time
    } else {
        0.0
    }
}

impl SrQuantJob {
    /// ln of the PoCD with `extra` extra attempts, equation (3): a task misses when the original
    /// does and all `extra` + 1 resumed attempts do.
    pub fn ln_pocd(&self, extra: u32) -> f64 {
        if self.tasks == 0 {
            return 0.0;
        }
        let ParetoDistribution { t_min, beta } = self.distribution;
        let resumed = ln_miss(self.phi_est, t_min, self.deadline - self.tau_est, beta);
        let ln_task_miss = self.ln_late() + (f64::from(extra) + 1.0) * resumed;
        f64::from(self.tasks) * ln_task_pocd(ln_task_miss)
    }

    /// P(T > D) = (t_min/D)^β, equation (5): the share of tasks that are late on their own.
    pub fn p_late(&self) -> f64 {
        probability(self.ln_late())
    }

    fn ln_late(&self) -> f64 {
        ln_miss(
            0.0,
            self.distribution.t_min,
            self.deadline,
            self.distribution.beta,
        )
    }

    /// E\[T | T ≤ D\], equation (6) in a form that stands β near 1; 0 when no task is in time.
    pub fn fast_mean(&self) -> f64 {
        let ParetoDistribution { t_min, beta } = self.distribution;
        if self.p_late() >= 1.0 {
            return 0.0;
        }
        if beta.is_infinite() {
            return t_min;
        }
        let ell = libm::log(self.deadline / t_min);
        let in_time = -libm::expm1(-beta * ell);
        let excess = 1.0 - beta;
        let integral = if excess.abs() > 0.0 {
            libm::expm1(excess * ell) / excess
        } else {
            ell
        };
        t_min * beta * integral / in_time
    }

    /// The machine time of a replaced task, equation (8): up to `tau_est` the original, then
    /// `extra` attempts until `tau_kill`, and the attempt that is kept. ∞ when its mean is.
    pub fn slow_mean(&self, extra: u32, reading: SlowMean) -> f64 {
        let ParetoDistribution { t_min, beta } = self.distribution;
        let extra = f64::from(extra);
        let shape = beta * (extra + 1.0);
        let spent = self.tau_est + extra * (self.tau_kill - self.tau_est);
        if shape <= 1.0 {
            return f64::INFINITY;
        }
        let rest = (1.0 - self.phi_est).max(0.0);
        spent
            + match reading {
                SlowMean::Printed => t_min * libm::pow(rest, shape) / (shape - 1.0) + t_min,
                SlowMean::Exact => rest * fastest_mean(&self.distribution, extra + 1.0),
            }
    }

    /// E(T), the machine time of the job, equation (4).
    pub fn machine_time(&self, extra: u32, reading: SlowMean) -> f64 {
        let p_late = self.p_late();
        let weighted = |weight: f64, mean: f64| if weight > 0.0 { weight * mean } else { 0.0 };
        let fast = weighted(1.0 - p_late, self.fast_mean());
        let slow = weighted(p_late, self.slow_mean(extra, reading));
        f64::from(self.tasks) * (fast + slow)
    }

    /// U(r), equation (9), with the printed machine time.
    pub fn utility(&self, extra: u32, price: &Price) -> f64 {
        let machine_time = self.machine_time(extra, SlowMean::Printed);
        price.utility(self.ln_pocd(extra), machine_time)
    }

    /// LASER Algorithm 1: the number of extra attempts, at most `extra_max`, with the largest
    /// utility; the least of equals, and 0 when none has a utility above −∞.
    pub fn best_extra(&self, price: &Price, extra_max: u32) -> u32 {
        first_best((0..=extra_max).map(|extra| self.utility(extra, price)))
    }
}

/// Predictions of LASER's networks for one number of extra attempts. Seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prediction {
    /// T̂, the job's time.
    pub job_time: f64,
    /// M̂, the machine time of all its attempts.
    pub machine_time: f64,
}

/// LASER Algorithm 2: U(r) = 1{T̂(r) ≤ D} − θC·M̂(r).
pub fn laser_utility(prediction: &Prediction, deadline: f64, theta_c: f64) -> f64 {
    let in_time = if prediction.job_time <= deadline {
        1.0
    } else {
        0.0
    };
    in_time - priced(theta_c, prediction.machine_time)
}

/// LASER Algorithm 2: the number of extra attempts with the largest utility, given a prediction
/// for 0, 1, … extra attempts; the least of equals.
pub fn laser_best_extra(predictions: &[Prediction], deadline: f64, theta_c: f64) -> u32 {
    first_best(
        predictions
            .iter()
            .map(|prediction| laser_utility(prediction, deadline, theta_c)),
    )
}

/// The position of the first utility that is strictly larger than all before it; 0 when none is
/// above −∞.
pub(super) fn first_best(utilities: impl Iterator<Item = f64>) -> u32 {
    let mut best = (0, f64::NEG_INFINITY);
    for (extra, utility) in (0..).zip(utilities) {
        if utility > best.1 {
            best = (extra, utility);
        }
    }
    best.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(tau_est: f64) -> SrQuantJob {
        SrQuantJob {
            distribution: ParetoDistribution {
                t_min: 60.0,
                beta: 1.7,
            },
            deadline: 250.0,
            tau_est,
            tau_kill: 200.0,
            phi_est: 0.4,
            tasks: 10,
        }
    }

    #[test]
    fn the_fast_mean_is_that_of_the_truncated_distribution() {
        // Midpoint rule over the density on [t_min, D].
        let ParetoDistribution { t_min, beta } = job(120.0).distribution;
        let steps = 200_000;
        let width = (250.0 - t_min) / f64::from(steps);
        let (mut mass, mut moment) = (0.0, 0.0);
        for step in 0..steps {
            let time = t_min + (f64::from(step) + 0.5) * width;
            let density = beta / time * libm::pow(t_min / time, beta);
            mass += density * width;
            moment += time * density * width;
        }
        assert!((job(120.0).fast_mean() - moment / mass).abs() < 1e-6);
    }

    #[test]
    fn without_a_price_an_infinite_machine_time_does_not_matter() {
        let mut heavy = job(120.0);
        heavy.distribution.beta = 0.9;
        let free = Price {
            theta_c: 0.0,
            ..Price::default()
        };
        assert!(heavy.utility(0, &free).is_finite());
        assert!(heavy.utility(0, &Price::default()).is_infinite());
    }

    #[test]
    fn a_job_that_cannot_be_in_time_gets_no_extra_attempts() {
        let mut late = job(120.0);
        late.distribution.t_min = 300.0;
        assert_eq!(late.best_extra(&Price::default(), 5), 0);
        assert_eq!(late.fast_mean(), 0.0);
    }

    #[test]
    fn times_that_do_not_vary_are_their_own_mean() {
        let mut fixed = job(120.0);
        fixed.distribution.beta = f64::INFINITY;
        assert_eq!(fixed.fast_mean(), 60.0);
        assert_eq!(fixed.ln_pocd(0), 0.0);
        assert_eq!(fixed.machine_time(0, SlowMean::Exact), 600.0);
    }
}
