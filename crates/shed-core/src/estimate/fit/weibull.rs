//! The Weibull distribution of the largest likelihood.

use crate::estimate::sample::Sample;
use crate::estimate::weibull::WeibullDistribution;

/// A safeguarded Newton needs about ten.
const STEPS_MAX: u32 = 100;

/// For given k the best λ has λ^k = Σ t^k / d over all attempts, where d have ended. This leaves one equation in k,
/// `A(k) − 1/k − m = 0`. A is the mean of ln t weighted by t^k over all attempts, and m the mean of ln t over the
/// ended. Its left side rises with k, so it has at most one root. Without a root in the range, the nearer end is
/// used. `None` if no attempt has ended.
pub(super) fn fit(sample: &Sample) -> Option<WeibullDistribution> {
    let ended = sample.ended_count() as f64;
    let ln_max = libm::log(sample.observations().last()?.time);
    if ended == 0.0 {
        return None;
    }
    let all = sample.observations().iter();
    let logs: Vec<f64> = all.map(|seen| libm::log(seen.time) - ln_max).collect();
    let mean = sample.ended().map(|t| libm::log(t) - ln_max).sum::<f64>() / ended;

    let (mut low, mut high) = (
        WeibullDistribution::SHAPE_MIN,
        WeibullDistribution::SHAPE_MAX,
    );
    let mut shape = 1.0;
    for _ in 0..STEPS_MAX {
        let weighted = Weighted::new(&logs, shape);
        let value = weighted.mean - 1.0 / shape - mean;
        if value > 0.0 {
            high = shape;
        } else {
            low = shape;
        }
        let slope = weighted.variance + 1.0 / (shape * shape);
        let newton = shape - value / slope;
        let next = if newton > low && newton < high {
            newton
        } else {
            (low * high).sqrt()
        };
        let moved = (next - shape).abs();
        shape = next;
        if moved <= 1e-13 * shape {
            break;
        }
    }
    let ln_scale = ln_max + libm::log(Weighted::new(&logs, shape).sum / ended) / shape;
    WeibullDistribution::new(ln_scale, shape)
}

/// Moments of x weighted by e^(k·x), for x ≤ 0.
struct Weighted {
    sum: f64,
    mean: f64,
    variance: f64,
}

impl Weighted {
    fn new(logs: &[f64], shape: f64) -> Self {
        let weight = |x: &f64| libm::exp(shape * x);
        let sum: f64 = logs.iter().map(weight).sum();
        let mean = logs.iter().map(|x| weight(x) * x).sum::<f64>() / sum;
        let squares = logs.iter().map(|x| weight(x) * (x - mean) * (x - mean));
        Self {
            sum,
            mean,
            variance: squares.sum::<f64>() / sum,
        }
    }
}
