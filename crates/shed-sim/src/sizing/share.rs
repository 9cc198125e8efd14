//! Shares of deadlines met, over several seeds.
//!
//! Intervals are Wilson's, 95 %. They count effective deadlines, not simulated ones, because jobs
//! of one run meet or miss their deadlines together:
//!
//! - If each seed has jobs of its own, the number of deadlines is divided by the design effect: the
//!   variance between runs over the variance that independent jobs would have, if that is above 1.
//! - If each seed has the same jobs (a recording, a whole trace), each job counts once. More seeds
//!   tell more about these jobs, and nothing about other ones.

/// The square of the two-sided 95 % quantile of the normal distribution.
const Z2: f64 = 3.841_459;

/// Deadlines of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Deadlines {
    /// How many there were.
    pub all: usize,
    /// How many were met.
    pub met: usize,
}

/// The share of deadlines that runs met.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share {
    /// Of all runs together.
    pub deadlines: Deadlines,
    /// How many deadlines the interval counts at most.
    pub sample: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

impl Share {
    /// The share over runs, one per seed.
    pub fn of(runs: &[Deadlines], same_jobs: bool) -> Self {
        let deadlines = Deadlines {
            all: runs.iter().map(|run| run.all).sum(),
            met: runs.iter().map(|run| run.met).sum(),
        };
        let share = quotient(deadlines);
        let (copies, effect) = if same_jobs {
            (runs.len().max(1) as f64, 1.0)
        } else {
            (1.0, design_effect(runs, deadlines))
        };
        let sample = deadlines.all as f64 / copies;
        let (low, high) = wilson(share, sample / effect);
        Self {
            deadlines,
            sample,
            low,
            high,
        }
    }

    /// Met over all; 0 without deadlines.
    pub fn value(&self) -> f64 {
        quotient(self.deadlines)
    }
}

/// How many effective deadlines, all met, show with 95 % confidence that a target is reached; absent
/// where no number does.
pub fn needed(target: f64) -> Option<f64> {
    let needed = Z2 * target / (1.0 - target);
    needed.is_finite().then_some(needed.ceil())
}

fn quotient(deadlines: Deadlines) -> f64 {
    deadlines.met as f64 / deadlines.all.max(1) as f64
}

/// The variance of the ratio estimator over runs, over that of independent jobs; at least 1.
fn design_effect(runs: &[Deadlines], sum: Deadlines) -> f64 {
    let share = quotient(sum);
    let independent = share * (1.0 - share) * sum.all as f64;
    if runs.len() < 2 || independent <= 0.0 {
        return 1.0;
    }
    let off = |run: &Deadlines| run.met as f64 - share * run.all as f64;
    let squares: f64 = runs.iter().map(|run| off(run) * off(run)).sum();
    let count = runs.len() as f64;
    (squares * count / (count - 1.0) / independent).max(1.0)
}

fn wilson(share: f64, count: f64) -> (f64, f64) {
    if count <= 0.0 {
        return (0.0, 1.0);
    }
    let middle = share + Z2 / (2.0 * count);
    let variance = share * (1.0 - share) / count + Z2 / (4.0 * count * count);
    let half = libm::sqrt(Z2 * variance);
    let scale = 1.0 + Z2 / count;
    let low = (middle - half) / scale;
    let high = (middle + half) / scale;
    // The ends are exact there, but for roundings.
    let low = if share <= 0.0 { 0.0 } else { low.max(0.0) };
    let high = if share >= 1.0 { 1.0 } else { high.min(1.0) };
    (low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(met: usize, all: usize) -> Deadlines {
        Deadlines { all, met }
    }

    #[test]
    fn the_interval_is_that_of_a_table() {
        // 8 of 10: 0.490 to 0.943 (Newcombe 1998, method 3).
        let share = Share::of(&[run(8, 10)], false);
        assert!((share.low - 0.4902).abs() < 1e-4, "{share:?}");
        assert!((share.high - 0.9433).abs() < 1e-4, "{share:?}");
        let share = Share::of(&[run(10, 10)], false);
        assert!((share.low - 0.7225).abs() < 1e-4, "{share:?}");
        assert_eq!((share.high, share.value()), (1.0, 1.0));
    }

    #[test]
    fn runs_that_differ_widen_the_interval() {
        let alike = Share::of(&[run(90, 100), run(90, 100)], false);
        let apart = Share::of(&[run(100, 100), run(80, 100)], false);
        assert_eq!(alike.value(), apart.value());
        assert!(apart.high - apart.low > 2.0 * (alike.high - alike.low));
    }

    #[test]
    fn seeds_with_the_same_jobs_add_no_jobs() {
        let one = Share::of(&[run(90, 100)], true);
        let ten = Share::of(&[run(90, 100); 10], true);
        assert_eq!((one.low, one.high), (ten.low, ten.high));
        assert!(Share::of(&[run(90, 100); 10], false).low > ten.low);
    }

    #[test]
    fn few_deadlines_cannot_show_a_high_target() {
        let needed = needed(0.99).unwrap();
        let shows = |count: usize| Share::of(&[run(count, count)], true).low >= 0.99;
        assert!(shows(needed as usize));
        assert!(!shows(needed as usize - 1));
        assert_eq!(super::needed(1.0), None);
    }
}
