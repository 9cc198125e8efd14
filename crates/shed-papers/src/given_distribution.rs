//! The Pareto distribution that the closed forms of the papers need. The user gives it, or it
//! approximates the job's own distribution.

use shed_core::estimate::distribution::{AttemptDistribution, Distribution};
use shed_core::estimate::pareto::ParetoDistribution;
use shed_core::round::JobView;
use shed_core::settings::Setting;

/// β of a distribution whose mean is its minimum.
const BETA_MAX: f64 = 1000.0;

/// A distribution that the user gives, as the papers do.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct GivenDistribution {
    /// t_min in seconds; 0: learned from the job's attempts.
    pub t_min: f64,
    /// β; 0: learned. At submission a job may have no data except the given parameters.
    pub beta: f64,
}

impl GivenDistribution {
    pub(crate) fn settings(&mut self) -> [Setting<'_>; 2] {
        [
            Setting::number("t_min", &mut self.t_min, 0.0, 1e6),
            Setting::number("beta", &mut self.beta, 0.0, 1000.0),
        ]
    }

    /// The job's distribution. None while it is unknown and not all parameters are given.
    pub(crate) fn of(&self, state: &JobView<'_>) -> Option<ParetoDistribution> {
        let learned = state.estimate.distribution.as_ref().map(as_pareto);
        let pick =
            |given: f64, learned: Option<f64>| if given > 0.0 { Some(given) } else { learned };
        Some(ParetoDistribution {
            t_min: pick(self.t_min, learned.map(|distribution| distribution.t_min))?,
            beta: pick(self.beta, learned.map(|distribution| distribution.beta))?,
        })
    }
}

/// The Pareto distribution with the same minimum and the same mean. If the minimum is 0, the 5th
/// percentile replaces it.
pub(crate) fn as_pareto(distribution: &Distribution) -> ParetoDistribution {
    if let Distribution::Pareto(pareto) = distribution {
        return *pareto;
    }
    let least = distribution.minimum();
    // ln 0.95.
    let t_min = if least > 0.0 {
        least
    } else {
        distribution.quantile(-0.051_293_294_387_550_58)
    };
    let excess = distribution.mean() - t_min;
    let beta = if excess > 0.0 {
        distribution.mean() / excess
    } else {
        BETA_MAX
    };
    let beta = if beta.is_finite() {
        beta.clamp(1.0, BETA_MAX)
    } else {
        1.0
    };
    ParetoDistribution { t_min, beta }
}
