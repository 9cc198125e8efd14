//! Random numbers: one short stream per purpose and thing, so that an attempt's sample does not depend on earlier
//! actions of a policy. Two policies on one seed see the same attempt times, which makes paired comparisons precise.

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};

/// The purpose of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// The time of an attempt.
    AttemptTime = 1,
    /// The error of an attempt's reports.
    Noise = 2,
    /// The deviation of a job's deadline factor.
    DeadlineJitter = 3,
    /// Sizes, arrivals and times of made-up jobs.
    Workload = 4,
    /// The slowness of a node and its times.
    Node = 5,
    /// The tenant of a job.
    Tenant = 6,
    /// The order of runs drawn from templates, and their deviations.
    Repeat = 7,
}

/// A stream of random numbers, the same on every machine.
#[derive(Debug, Clone)]
pub struct Stream(Pcg64Mcg);

impl Stream {
    /// The stream of a thing, named by up to three numbers, for a purpose.
    pub fn new(seed: u64, purpose: Purpose, thing: [u64; 3]) -> Self {
        let mut state = mix(seed ^ 0x9e37_79b9_7f4a_7c15);
        for part in [purpose as u64].iter().chain(&thing) {
            state = mix(state ^ part.wrapping_mul(0xd6e8_feb8_6659_fd93));
        }
        Self(Pcg64Mcg::seed_from_u64(state))
    }

    /// Uniform in (0, 1): never 0 and never 1, so that its logarithm is finite and negative.
    pub fn unit(&mut self) -> f64 {
        const STEP: f64 = 1.0 / (1u64 << 53) as f64;
        ((self.0.next_u64() >> 11) as f64 + 0.5) * STEP
    }

    /// Uniform in `low..high`.
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// A position in `0..count`; 0 if `count` is 0.
    pub fn index(&mut self, count: usize) -> usize {
        let at = (self.unit() * count as f64) as usize;
        at.min(count.saturating_sub(1))
    }

    /// Exponential with that mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log(self.unit())
    }

    /// Standard normal, by the method of Box and Muller.
    pub fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log(self.unit()));
        radius * libm::cos(2.0 * std::f64::consts::PI * self.unit())
    }

    /// Pareto with that minimum and shape: P(T > t) = (minimum/t)^shape.
    pub fn pareto(&mut self, minimum: f64, shape: f64) -> f64 {
        minimum * libm::pow(self.unit(), -1.0 / shape)
    }

    /// The same distribution on the condition that T ≤ `most`.
    pub fn truncated_pareto(&mut self, minimum: f64, shape: f64, most: f64) -> f64 {
        let tail = libm::pow(minimum / most, shape);
        let survival = tail + (1.0 - tail) * self.unit();
        minimum * libm::pow(survival, -1.0 / shape)
    }
}

/// The finalizer of SplitMix64, which maps close numbers to distant ones.
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(count: u64, mut draw: impl FnMut(&mut Stream) -> f64) -> f64 {
        let total: f64 = (0..count)
            .map(|thing| draw(&mut Stream::new(7, Purpose::AttemptTime, [thing, 0, 0])))
            .sum();
        total / count as f64
    }

    #[test]
    fn a_stream_depends_on_all_that_names_it_and_on_nothing_else() {
        let first = |seed, purpose, thing| Stream::new(seed, purpose, thing).unit();
        let base = first(1, Purpose::Noise, [1, 2, 3]);
        assert_eq!(base, first(1, Purpose::Noise, [1, 2, 3]));
        for other in [
            first(2, Purpose::Noise, [1, 2, 3]),
            first(1, Purpose::Node, [1, 2, 3]),
            first(1, Purpose::Noise, [2, 1, 3]),
            first(1, Purpose::Noise, [1, 2, 4]),
        ] {
            assert_ne!(base, other);
        }
    }

    #[test]
    fn first_samples_of_neighboring_streams_follow_distributions() {
        // Means within five standard errors of 100 000 samples.
        assert!((mean(100_000, Stream::unit) - 0.5).abs() < 0.0046);
        assert!((mean(100_000, |s| s.exponential(2.0)) - 2.0).abs() < 0.032);
        assert!(mean(100_000, Stream::normal).abs() < 0.016);
        // Pareto(1, 3): mean 1.5, variance 0.75.
        assert!((mean(100_000, |s| s.pareto(1.0, 3.0)) - 1.5).abs() < 0.0137);
    }

    #[test]
    fn a_truncated_distribution_keeps_its_bound_and_its_shape() {
        let (mut below, count) = (0, 100_000);
        for thing in 0..count {
            let mut stream = Stream::new(3, Purpose::AttemptTime, [thing, 0, 0]);
            let time = stream.truncated_pareto(1.0, 2.0, 4.0);
            assert!((1.0..=4.0).contains(&time));
            below += u32::from(time <= 2.0);
        }
        // P(T ≤ 2 | T ≤ 4) = (1 − 1/4)/(1 − 1/16) = 0.8.
        let share = f64::from(below) / count as f64;
        assert!((share - 0.8).abs() < 0.0064, "{share}");
    }
}
