//! How latencies are spread: quantiles, and a histogram, because quantiles alone hide the shape.

use serde::{Deserialize, Serialize};

/// Bins per factor of two.
const BINS: f64 = 2.0;
/// Upper bound of the first bin, in milliseconds.
const FIRST: f64 = 0.5;

/// A sample of latencies in milliseconds. All but the count is 0 for an empty one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sample {
    /// Number of latencies.
    pub count: u64,
    /// The median.
    pub p50: f64,
    /// Nine of ten are at most this.
    pub p90: f64,
    /// 99 of 100 are at most this.
    pub p99: f64,
    /// The greatest.
    pub most: f64,
    /// Upper bounds of bins and the numbers of latencies in them; from the bound before, without empty bins.
    pub histogram: Vec<(f64, u64)>,
}

impl Sample {
    /// Of latencies in any order.
    pub fn of(mut millis: Vec<f64>) -> Self {
        millis.sort_by(f64::total_cmp);
        let mut histogram: Vec<(f64, u64)> = Vec::new();
        for one in &millis {
            let bound = bound(*one);
            match histogram.last_mut().filter(|bin| bin.0 == bound) {
                Some(bin) => bin.1 += 1,
                None => histogram.push((bound, 1)),
            }
        }
        Self {
            count: millis.len() as u64,
            p50: quantile(&millis, 0.5),
            p90: quantile(&millis, 0.9),
            p99: quantile(&millis, 0.99),
            most: millis.last().copied().unwrap_or(0.0),
            histogram,
        }
    }
}

/// Upper bound of the bin that has this latency.
fn bound(millis: f64) -> f64 {
    let steps = (millis.max(FIRST) / FIRST).log2() * BINS;
    FIRST * 2.0_f64.powf((steps - 1e-9).ceil().max(0.0) / BINS)
}

/// The bin that ends at this bound begins here, in milliseconds.
pub fn begin(bound: f64) -> f64 {
    bound / 2.0_f64.powf(1.0 / BINS)
}

/// The least value that so large a share does not exceed.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_has_quantiles_and_every_latency_in_one_bin() {
        let sample = Sample::of((1..=100).rev().map(f64::from).collect());
        assert_eq!((sample.p50, sample.p90), (50.0, 90.0));
        assert_eq!((sample.p99, sample.most), (99.0, 100.0));
        let counts = sample.histogram.iter().map(|(_, count)| count);
        assert_eq!(counts.sum::<u64>(), 100);
        assert!(sample.histogram.is_sorted_by(|one, next| one.0 < next.0));
        for one in [0.0, 0.5, 0.6, 1.0, 20.0, 12345.0] {
            let bound = bound(one);
            assert!(one <= bound, "{one} is above {bound}");
            assert!(one > begin(bound) || bound == FIRST, "{one} in {bound}");
        }
    }

    #[test]
    fn an_empty_sample_has_no_bins() {
        assert_eq!(Sample::of(Vec::new()), Sample::default());
    }
}
