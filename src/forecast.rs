//! Estimates for running jobs from the outcomes of earlier jobs. They are stored for the next leader
//! (`durable_state`).

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use shed_core::estimate::forecast::{Calibration, Forecasts};
use shed_core::ids::JobKey;
use shed_core::snapshot::JobSnapshot;
use shed_core::time::Instant;

/// The moments whose predictions are scored: the first one of a job, and the first one after half of its time. As shares
/// of the time to the deadline, with their labels.
pub const SCORED: [(f64, &str); 2] = [(0.0, "0"), (0.5, "0.5")];

/// A prediction whose outcome is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scored {
    /// The share of the job's time that had passed, as a label.
    pub passed: &'static str,
    /// The PoCD then.
    pub pocd: f64,
    /// The calibrated PoCD then.
    pub calibrated: f64,
}

/// Predictions and outcomes of jobs. The planner and the reconcilers fill the table.
#[derive(Default)]
pub struct ForecastTable(Mutex<Table>);

#[derive(Default)]
struct Table {
    forecasts: Forecasts,
    /// Predictions of the unfinished jobs at the scored moments.
    said: BTreeMap<JobKey, [Option<Scored>; SCORED.len()]>,
}

impl ForecastTable {
    /// A table that goes on from there.
    pub fn restored(calibration: &Calibration) -> Self {
        Self(Mutex::new(Table {
            forecasts: Forecasts::restored(calibration),
            said: BTreeMap::new(),
        }))
    }

    /// What was learned from the jobs that have ended.
    pub fn calibration(&self) -> Calibration {
        self.0.lock().forecasts.calibration()
    }

    /// Records the PoCD that a pass computed for a job with its present attempts, and the one that it expects with later
    /// clones. Returns the calibrated one, in [0, 1]; absent for a job without a deadline.
    pub fn say(&self, job: &JobSnapshot, now: Instant, pocd: f64, expected: f64) -> Option<f64> {
        let limit = job.time_given()?.seconds();
        let passed = now.since(job.submitted).seconds() / limit;
        // A deadline at the submission is over.
        let passed = if passed.is_finite() { passed } else { 1.0 };
        let mut table = self.0.lock();
        let calibrated = table.forecasts.say(&job.tenant, &job.key, passed, expected);
        if passed < 1.0 {
            let said = table.said.entry(job.key.clone()).or_default();
            for (slot, (moment, label)) in said.iter_mut().zip(SCORED) {
                if moment <= passed && slot.is_none() {
                    *slot = Some(Scored {
                        passed: label,
                        pocd,
                        calibrated,
                    });
                }
            }
        }
        Some(calibrated)
    }

    /// Whether the job was in time is known. Returns what was predicted, once per job.
    pub fn learn(&self, job: &Arc<str>, met: bool) -> Vec<Scored> {
        let key = JobKey(Arc::clone(job));
        let mut table = self.0.lock();
        table.forecasts.learn(&key, met);
        let said = table.said.remove(&key);
        said.into_iter().flatten().flatten().collect()
    }

    /// Forgets every job that is not there.
    pub fn retain(&self, is_there: impl Fn(&str) -> bool) {
        let mut table = self.0.lock();
        table.forecasts.retain(|job| is_there(&job.0));
        table.said.retain(|job, _| is_there(&job.0));
    }
}

#[cfg(test)]
mod tests {
    use shed_core::fixtures::{job, world};

    use super::*;

    #[test]
    fn the_first_prediction_of_each_moment_is_scored_once() {
        let snapshot = world(0.0, 1, 8000).job(job("a").tasks(1)).build();
        let mut job = snapshot.jobs[0].clone();
        (job.submitted, job.deadline) = (Instant(0), Some(Instant(100_000)));
        let table = ForecastTable::default();
        for (at, pocd) in [(10, 0.9), (20, 0.8), (60, 0.6), (70, 0.5), (120, 0.0)] {
            table.say(&job, Instant(at * 1000), pocd, 0.5);
        }
        let uid = Arc::clone(&job.key.0);
        let scored = |passed, pocd| Scored {
            passed,
            pocd,
            calibrated: 0.5,
        };
        assert_eq!(
            table.learn(&uid, true),
            [scored("0", 0.9), scored("0.5", 0.6)]
        );
        assert_eq!(table.learn(&uid, true), []);
    }

    #[test]
    fn nothing_is_kept_of_a_job_that_is_gone() {
        let snapshot = world(0.0, 1, 8000).job(job("a").tasks(1)).build();
        let job = &snapshot.jobs[0];
        let table = ForecastTable::default();
        table.say(job, job.submitted, 0.9, 0.9);
        table.retain(|_| false);
        assert_eq!(table.learn(&job.key.0, true), []);
    }
}
