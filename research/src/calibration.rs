//! Predicted PoCDs against outcomes: reliability by bins, Brier score and skill.

use std::collections::BTreeMap;

use serde::Serialize;
use shed_core::ids::JobKey;
use shed_core::memory::Memory;
use shed_core::plan::{JobReport, Plan, Settled};
use shed_core::snapshot::{JobSnapshot, Snapshot};
use shed_core::time::Instant;

use shed_sim::engine::Watch;

/// Moments of predictions: as soon as a job's PoCD is known, and then at the first pass after these
/// shares of its time to the deadline.
pub const MOMENTS: [f64; 4] = [0.0, 0.25, 0.5, 0.75];

/// A bin is this wide.
const BINS: usize = 10;

/// A prediction and whether the job was in time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prediction {
    /// The predicted PoCD.
    pub pocd: f64,
    /// Whether the job was in time.
    pub met: bool,
}

/// Predictions of about the same PoCD.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Bin {
    /// How many.
    pub count: usize,
    /// Their mean.
    pub predicted: f64,
    /// The share of their jobs that were in time.
    pub happened: f64,
    /// The standard error of that share, if predictions were right and jobs independent.
    pub error: f64,
}

/// How good predictions are.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Calibration {
    /// How many.
    pub count: usize,
    /// Mean square of prediction less outcome; 0 is best.
    pub brier: f64,
    /// The same for always saying the share that was in time.
    pub brier_of_base_rate: f64,
    /// 1 − the first over the second. A value above 0 means that the predictions are better than
    /// the base rate. Absent if all jobs had the same outcome.
    pub skill: Option<f64>,
    /// By the tenth that the prediction lies in; empty ones are left out.
    pub bins: Vec<Bin>,
}

impl Calibration {
    /// Of these predictions; none of nothing.
    pub fn of(predictions: &[Prediction]) -> Option<Self> {
        let count = predictions.len();
        if count == 0 {
            return None;
        }
        let outcome = |prediction: &Prediction| f64::from(u8::from(prediction.met));
        let mean = |of: &dyn Fn(&Prediction) -> f64| {
            predictions.iter().map(of).sum::<f64>() / count as f64
        };
        let rate = mean(&outcome);
        let square = |x: f64| x * x;
        let brier = mean(&|p| square(p.pocd - outcome(p)));
        let base = mean(&|p| square(rate - outcome(p)));
        Some(Self {
            count,
            brier,
            brier_of_base_rate: base,
            skill: (base > 0.0).then(|| 1.0 - brier / base),
            bins: bins(predictions),
        })
    }
}

fn bins(predictions: &[Prediction]) -> Vec<Bin> {
    let mut by_bin: [Vec<&Prediction>; BINS] = Default::default();
    for prediction in predictions {
        let at = (prediction.pocd * BINS as f64) as usize;
        by_bin[at.min(BINS - 1)].push(prediction);
    }
    let bin = |predictions: &Vec<&Prediction>| {
        let count = predictions.len();
        let mean = |sum: f64| sum / count as f64;
        let met = predictions.iter().filter(|p| p.met).count();
        let spread: f64 = predictions.iter().map(|p| p.pocd * (1.0 - p.pocd)).sum();
        Bin {
            count,
            predicted: mean(predictions.iter().map(|p| p.pocd).sum()),
            happened: mean(met as f64),
            error: mean(libm::sqrt(spread)),
        }
    };
    by_bin
        .iter()
        .filter(|bin| !bin.is_empty())
        .map(bin)
        .collect()
}

/// Predictions of each job at each of the [`MOMENTS`].
#[derive(Debug)]
pub struct Predictions<T> {
    /// The prediction that a report has.
    read: fn(&JobReport) -> Option<T>,
    /// By job as the engine names it.
    of: BTreeMap<JobKey, [Option<(T, Instant)>; MOMENTS.len()]>,
}

impl<T: Copy> Predictions<T> {
    /// No predictions yet; `read` finds the prediction in a report.
    pub fn new(read: fn(&JobReport) -> Option<T>) -> Self {
        let of = BTreeMap::new();
        Self { read, of }
    }

    /// Predictions of the only stage of the job at that place of the trace, with their times.
    pub fn of_job(&self, position: usize) -> [Option<(T, Instant)>; MOMENTS.len()] {
        let key = JobKey::from(format!("{position:07}.0000").as_str());
        self.of.get(&key).copied().unwrap_or_default()
    }
}

/// When the job's prediction for that moment is due; None without a deadline.
fn due(job: &JobSnapshot, share: f64) -> Option<Instant> {
    let limit = job.deadline?.since(job.submitted);
    Some(Instant(job.submitted.0 + (limit.0 as f64 * share) as i64))
}

impl<T: Copy> Watch for Predictions<T> {
    fn pass(&mut self, snapshot: &Snapshot, _memory: Memory, plan: &Plan) {
        for (job, report) in snapshot.jobs.iter().zip(&plan.report.jobs) {
            let Some(predicted) = (self.read)(report) else {
                continue;
            };
            let seen = self.of.entry(job.key.clone()).or_default();
            for (slot, share) in seen.iter_mut().zip(MOMENTS) {
                let is_due = due(job, share).is_some_and(|due| due <= snapshot.now);
                if slot.is_none() && is_due {
                    *slot = Some((predicted, snapshot.now));
                }
            }
        }
    }

    fn settled(&mut self, _job: &JobSnapshot, _action: &Settled) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use shed_sim::random::{Purpose, Stream};

    fn drawn(count: u64, truth: impl Fn(f64) -> f64) -> Vec<Prediction> {
        let one = |number| {
            let mut stream = Stream::new(1, Purpose::Workload, [number, 0, 0]);
            let pocd = stream.unit();
            let met = stream.unit() < truth(pocd);
            Prediction { pocd, met }
        };
        (0..count).map(one).collect()
    }

    #[test]
    fn right_predictions_lie_on_the_diagonal_and_have_skill() {
        let got = Calibration::of(&drawn(20_000, |p| p)).unwrap();
        assert_eq!(got.bins.len(), 10);
        for bin in &got.bins {
            assert!(
                (bin.predicted - bin.happened).abs() < 4.0 * bin.error,
                "{bin:?}"
            );
        }
        // E[p(1 − p)] = 1/6 against 1/4.
        assert!((got.brier - 1.0 / 6.0).abs() < 0.005, "{got:?}");
        assert!((got.skill.unwrap() - 1.0 / 3.0).abs() < 0.02, "{got:?}");
    }

    #[test]
    fn predictions_that_say_nothing_have_no_skill() {
        let got = Calibration::of(&drawn(20_000, |_| 0.5)).unwrap();
        assert!(got.skill.unwrap() < -0.2, "{got:?}");
        let sure = [true, true].map(|met| Prediction { pocd: 1.0, met });
        let sure = Calibration::of(&sure).unwrap();
        assert_eq!((sure.brier, sure.skill), (0.0, None));
        assert_eq!(Calibration::of(&[]), None);
    }
}
