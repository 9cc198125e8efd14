//! Distributions with a given mean and standard deviation.

use crate::estimate::law::{Law, LawKind};
use crate::estimate::log_normal::LogNormalLaw;
use crate::estimate::speedup::pareto_from_moments;
use crate::estimate::weibull::WeibullLaw;

/// Halvings of the range of Weibull shapes: below the spacing of floats.
const HALVINGS: u32 = 60;

/// The distribution of that kind with this mean and standard deviation, as DollyMP derives its Pareto distribution
/// from them ([`pareto_from_moments`]). `None` if one of them is not finite, the mean is not positive or the
/// deviation is negative. It is `None` for the empirical distribution too, which two numbers do not determine.
pub fn from_moments(kind: LawKind, mean: f64, deviation: f64) -> Option<Law> {
    if !(mean > 0.0 && mean.is_finite() && deviation >= 0.0 && deviation.is_finite()) {
        return None;
    }
    // ln(E[T²]/E[T]²).
    let ratio = deviation / mean;
    let spread = libm::log1p(ratio * ratio);
    match kind {
        LawKind::Pareto => Some(pareto_from_moments(mean, deviation).into()),
        LawKind::LogNormal => {
            let law = LogNormalLaw::new(libm::log(mean) - 0.5 * spread, spread.sqrt());
            law.map(Law::from)
        }
        LawKind::Weibull => {
            let shape = weibull_shape(spread);
            let ln_scale = libm::log(mean) - libm::lgamma(1.0 + 1.0 / shape);
            WeibullLaw::new(ln_scale, shape).map(Law::from)
        }
        LawKind::Empirical => None,
    }
}

/// The k with ln(Γ(1 + 2/k)/Γ(1 + 1/k)²) = `spread`, which falls in k; without such a k, the nearer end of the range.
fn weibull_shape(spread: f64) -> f64 {
    let (mut low, mut high) = (WeibullLaw::SHAPE_MIN, WeibullLaw::SHAPE_MAX);
    for _ in 0..HALVINGS {
        let middle = (low * high).sqrt();
        let of = |moment: f64| libm::lgamma(1.0 + moment / middle);
        if of(2.0) - 2.0 * of(1.0) > spread {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low * high).sqrt()
}
