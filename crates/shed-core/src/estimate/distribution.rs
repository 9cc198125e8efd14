//! The distribution of attempt durations, as every policy reads it.

use crate::estimate::empirical::EmpiricalDistribution;
use crate::estimate::log_normal::LogNormalDistribution;
use crate::estimate::pareto::{LN_CERTAIN, LN_IMPOSSIBLE, ParetoDistribution};
use crate::estimate::weibull::WeibullDistribution;

/// The facts about an attempt.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Evidence {
    /// `phi` of the attempt's work is done, 0…1, and its further speed is a new sample. This is the papers' model of
    /// every attempt, and that of one that is launched now.
    Progress {
        /// The share done.
        phi: f64,
    },
    /// `phi` of the attempt's work is done, and its rate gives a mean remaining time of `t_rem`.
    Predicted {
        /// The share done.
        phi: f64,
        /// Expected remaining time, in the distribution's unit.
        t_rem: f64,
    },
    /// The attempt never reported. `age` is the time since it started to process, negative for one that starts later.
    Silent {
        /// Time since processing started, in the distribution's unit.
        age: f64,
    },
}

/// The distribution of the time T that an attempt takes for a whole task, in seconds or any one unit.
///
/// Probabilities are natural logarithms in `[-∞, 0]`. No method returns NaN for a finite argument, and survival never
/// rises with time. The fastest of n independent attempts survives with n times the ln survival of one.
pub trait AttemptDistribution: Sized {
    /// ln P(T > t); 0 up to the minimum.
    fn ln_survival(&self, t: f64) -> f64;

    /// ln P(T > age + wait | T > age). If `wait` or the end of the wait is at or before 0, survival is certain. It is
    /// also certain at an age that is impossible under the distribution. Such an age refutes the distribution, which
    /// then gives no reason to expect a near end.
    fn ln_residual_survival(&self, age: f64, wait: f64) -> f64;

    /// ln of the density at `t`; −∞ where the density is 0.
    fn ln_density(&self, t: f64) -> f64;

    /// E\[T\]; infinite for a tail too heavy to have one.
    fn mean(&self) -> f64;

    /// E[T − age | T > age].
    fn mean_residual(&self, age: f64) -> f64;

    /// The time that is exceeded with probability e^`ln_tail`: the median for −ln 2.
    fn quantile(&self, ln_tail: f64) -> f64;

    /// The distribution of `share`·T: that of an attempt which has this share of a task to do. A negative share
    /// counts as 0.
    fn scaled(&self, share: f64) -> Self;

    /// The largest time that is surely exceeded, or 0.
    fn minimum(&self) -> f64;

    /// The distribution of the remaining time of an attempt that has done `phi` and at its rate needs `t_rem` more.
    /// It is this distribution, scaled to that mean. Without a finite mean it is that of the remaining share.
    fn predicted(&self, phi: f64, t_rem: f64) -> Self {
        let mean = self.mean();
        let share = if mean > 0.0 && mean.is_finite() && t_rem.is_finite() {
            t_rem / mean
        } else {
            1.0 - phi
        };
        self.scaled(share)
    }

    /// ln P(an attempt with this `evidence` does not end within `slack`).
    ///
    /// The order of the cases matters. A finished attempt is in time, even after the deadline. Next, without any time
    /// left it misses. Otherwise the distribution decides. \[S\] and \[S+\] Theorem 2 apply to `Progress`, \[S+\]
    /// (14) and its equivalent for other distributions to `Predicted`, and the conditional distribution to `Silent`.
    fn ln_miss(&self, evidence: Evidence, slack: f64) -> f64 {
        let remaining = match evidence {
            Evidence::Progress { phi } | Evidence::Predicted { phi, .. } if phi >= 1.0 => {
                return LN_IMPOSSIBLE;
            }
            _ if slack <= 0.0 => return LN_CERTAIN,
            Evidence::Silent { age } => return self.ln_residual_survival(age, slack),
            Evidence::Progress { phi } => self.scaled(1.0 - phi),
            Evidence::Predicted { phi, t_rem } => self.predicted(phi, t_rem),
        };
        remaining.ln_survival(slack)
    }
}

/// The family of a distribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DistributionKind {
    /// [`ParetoDistribution`].
    Pareto,
    /// [`LogNormalDistribution`].
    LogNormal,
    /// [`WeibullDistribution`].
    Weibull,
    /// [`EmpiricalDistribution`].
    Empirical,
}

impl DistributionKind {
    /// All families.
    pub const ALL: [Self; 4] = [
        Self::Pareto,
        Self::LogNormal,
        Self::Weibull,
        Self::Empirical,
    ];

    /// The name in settings and reports.
    pub fn label(self) -> &'static str {
        match self {
            Self::Pareto => "pareto",
            Self::LogNormal => "log-normal",
            Self::Weibull => "weibull",
            Self::Empirical => "empirical",
        }
    }
}

/// A distribution of any family. Cheap to clone.
#[derive(Debug, Clone, PartialEq)]
pub enum Distribution {
    /// Heavy tail, sharp least time: the papers' distribution.
    Pareto(ParetoDistribution),
    /// ln T is normal: multiplied effects.
    LogNormal(LogNormalDistribution),
    /// Exponential and lighter or heavier.
    Weibull(WeibullDistribution),
    /// The observed times, with a tail beyond.
    Empirical(EmpiricalDistribution),
}

impl Distribution {
    /// The distribution's family.
    pub fn kind(&self) -> DistributionKind {
        match self {
            Self::Pareto(_) => DistributionKind::Pareto,
            Self::LogNormal(_) => DistributionKind::LogNormal,
            Self::Weibull(_) => DistributionKind::Weibull,
            Self::Empirical(_) => DistributionKind::Empirical,
        }
    }
}

/// Calls a method of the distribution, whatever its family.
macro_rules! delegate {
    ($self:ident, $distribution:ident => $call:expr) => {
        match $self {
            Distribution::Pareto($distribution) => $call,
            Distribution::LogNormal($distribution) => $call,
            Distribution::Weibull($distribution) => $call,
            Distribution::Empirical($distribution) => $call,
        }
    };
}

impl AttemptDistribution for Distribution {
    fn ln_survival(&self, t: f64) -> f64 {
        delegate!(self, distribution => distribution.ln_survival(t))
    }

    fn ln_residual_survival(&self, age: f64, wait: f64) -> f64 {
        delegate!(self, distribution => distribution.ln_residual_survival(age, wait))
    }

    fn ln_density(&self, t: f64) -> f64 {
        delegate!(self, distribution => distribution.ln_density(t))
    }

    fn mean(&self) -> f64 {
        delegate!(self, distribution => distribution.mean())
    }

    fn mean_residual(&self, age: f64) -> f64 {
        delegate!(self, distribution => distribution.mean_residual(age))
    }

    fn quantile(&self, ln_tail: f64) -> f64 {
        delegate!(self, distribution => distribution.quantile(ln_tail))
    }

    fn scaled(&self, share: f64) -> Self {
        delegate!(self, distribution => distribution.scaled(share).into())
    }

    fn minimum(&self) -> f64 {
        delegate!(self, distribution => distribution.minimum())
    }

    fn predicted(&self, phi: f64, t_rem: f64) -> Self {
        delegate!(self, distribution => distribution.predicted(phi, t_rem).into())
    }
}

impl From<ParetoDistribution> for Distribution {
    fn from(distribution: ParetoDistribution) -> Self {
        Self::Pareto(distribution)
    }
}

impl From<LogNormalDistribution> for Distribution {
    fn from(distribution: LogNormalDistribution) -> Self {
        Self::LogNormal(distribution)
    }
}

impl From<WeibullDistribution> for Distribution {
    fn from(distribution: WeibullDistribution) -> Self {
        Self::Weibull(distribution)
    }
}

impl From<EmpiricalDistribution> for Distribution {
    fn from(distribution: EmpiricalDistribution) -> Self {
        Self::Empirical(distribution)
    }
}

/// ln of a share of a task, always finite; NaN counts as a very large share.
pub(crate) fn ln_share(share: f64) -> f64 {
    let finite = if share < f64::MAX {
        share.max(f64::MIN_POSITIVE)
    } else {
        f64::MAX
    };
    libm::log(finite)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prediction_brings_the_distribution_to_its_mean() {
        let distribution = LogNormalDistribution::new(3.0, 0.5).unwrap();
        let predicted = distribution.predicted(0.25, 50.0);
        assert!((predicted.mean() / 50.0 - 1.0).abs() < 1e-12);
        assert_eq!(predicted.sigma(), distribution.sigma());
    }

    #[test]
    fn a_distribution_without_a_usable_mean_is_scaled_to_the_rest() {
        let distribution = LogNormalDistribution::new(3.0, 0.5).unwrap();
        assert_eq!(
            distribution.predicted(0.25, f64::INFINITY),
            distribution.scaled(0.75)
        );
        // Means of 0 and of ∞ in floating point.
        for mu in [-2000.0, 2000.0] {
            let distribution = LogNormalDistribution::new(mu, 0.5).unwrap();
            assert_eq!(
                distribution.predicted(0.25, 50.0),
                distribution.scaled(0.75),
                "{mu}"
            );
        }
    }

    #[test]
    fn what_is_done_is_in_time_under_any_distribution() {
        let distributions: [Distribution; 2] = [
            LogNormalDistribution::new(3.0, 0.5).unwrap().into(),
            WeibullDistribution::new(3.0, 0.5).unwrap().into(),
        ];
        for distribution in distributions {
            let done = distribution.ln_miss(Evidence::Progress { phi: 1.0 }, -5.0);
            assert_eq!(done, LN_IMPOSSIBLE);
            let (phi, t_rem) = (1.0, 3.0);
            let done = distribution.ln_miss(Evidence::Predicted { phi, t_rem }, -5.0);
            assert_eq!(done, LN_IMPOSSIBLE);
            assert_eq!(distribution.minimum(), 0.0);
        }
    }
}
