//! The log-normal distribution of the largest likelihood.

use crate::estimate::log_normal::LogNormalDistribution;
use crate::estimate::log_tails::{ln_normal_tail, normal_hazard};
use crate::estimate::sample::Sample;

/// Newton needs fewer than ten steps; each further one is a halved step.
const STEPS_MAX: u32 = 100;

/// Let γ = 1/σ, δ = μ/σ and x = ln t. The ln likelihood is Σ (ln γ − ½(γx − δ)²) over ended and Σ ln P(Z > γx − δ)
/// over running attempts. It is concave (Olsen 1978), so Newton with halved steps finds the one maximum. `None` if no
/// attempt has ended.
pub(super) fn fit(sample: &Sample) -> Option<LogNormalDistribution> {
    let (centre, spread) = ended_moments(sample)?;
    let scaled = Scaled::new(sample, centre, spread);
    let mut at = Point {
        gamma: 1.0,
        delta: 0.0,
    };
    let mut value = scaled.ln_likelihood(at);
    for _ in 0..STEPS_MAX {
        let step = scaled.newton_step(at);
        let (next, next_value) = scaled.improve(at, value, step);
        let gain = next_value - value;
        (at, value) = (next, next_value);
        if gain <= 1e-13 * (1.0 + value.abs()) {
            break;
        }
    }
    let sigma = spread / at.gamma;
    LogNormalDistribution::new(centre + at.delta * sigma, sigma)
}

/// Mean and standard deviation of ln t of the ended attempts; the latter at least the minimum of a distribution.
fn ended_moments(sample: &Sample) -> Option<(f64, f64)> {
    let count = sample.ended_count() as f64;
    if count == 0.0 {
        return None;
    }
    let mean = sample.ended().map(libm::log).sum::<f64>() / count;
    let square = |x: f64| (x - mean) * (x - mean);
    let variance = sample.ended().map(|t| square(libm::log(t))).sum::<f64>() / count;
    Some((mean, variance.sqrt().max(LogNormalDistribution::SIGMA_MIN)))
}

/// γ and δ in the scaled sample's unit.
#[derive(Clone, Copy)]
struct Point {
    gamma: f64,
    delta: f64,
}

/// ln times, centered and divided by their spread, because Newton converges better on them.
struct Scaled {
    ended: Vec<f64>,
    running: Vec<f64>,
    gamma_max: f64,
}

impl Scaled {
    fn new(sample: &Sample, centre: f64, spread: f64) -> Self {
        let scale = |t: f64| (libm::log(t) - centre) / spread;
        Self {
            ended: sample.ended().map(scale).collect(),
            running: sample.running().map(scale).collect(),
            gamma_max: spread / LogNormalDistribution::SIGMA_MIN,
        }
    }

    fn ln_likelihood(&self, at: Point) -> f64 {
        let residual = |x: &f64| at.gamma * x - at.delta;
        let squares = self.ended.iter().map(|x| residual(x) * residual(x));
        let ended = self.ended.len() as f64 * libm::log(at.gamma) - 0.5 * squares.sum::<f64>();
        let running = self.running.iter().map(|x| ln_normal_tail(residual(x)));
        ended + running.sum::<f64>()
    }

    /// −H⁻¹·gradient.
    fn newton_step(&self, at: Point) -> (f64, f64) {
        let count = self.ended.len() as f64;
        let mut gradient = (count / at.gamma, 0.0);
        // −H = ((gg, −gd), (−gd, dd)).
        let (mut gg, mut gd, mut dd) = (count / (at.gamma * at.gamma), 0.0, count);
        for x in &self.ended {
            let residual = at.gamma * x - at.delta;
            gradient.0 -= residual * x;
            gradient.1 += residual;
            gg += x * x;
            gd += x;
        }
        for x in &self.running {
            let residual = at.gamma * x - at.delta;
            let hazard = normal_hazard(residual);
            // The hazard's slope, which is never negative.
            let slope = (hazard * (hazard - residual)).max(0.0);
            gradient.0 -= hazard * x;
            gradient.1 += hazard;
            gg += slope * x * x;
            gd += slope * x;
            dd += slope;
        }
        let determinant = gg * dd - gd * gd;
        let solve = |a: f64, b: f64| a / determinant * gradient.0 + b / determinant * gradient.1;
        (solve(dd, gd), solve(gd, gg))
    }

    /// The largest of step, ½ step, ¼ step … that increases the value and keeps γ in its range.
    fn improve(&self, at: Point, value: f64, step: (f64, f64)) -> (Point, f64) {
        let mut share = 1.0;
        while share > 1e-9 {
            let gamma = at.gamma + share * step.0;
            let next = Point {
                gamma: gamma.clamp(0.1 * at.gamma, self.gamma_max.max(at.gamma)),
                delta: at.delta + share * step.1,
            };
            let next_value = self.ln_likelihood(next);
            if next_value > value {
                return (next, next_value);
            }
            share *= 0.5;
        }
        (at, value)
    }
}
