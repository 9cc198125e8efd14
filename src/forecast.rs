//! Estimates for running jobs from the outcomes of earlier jobs. They are stored for the next leader
//! (`durable_state`).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use shed_core::estimate::forecast::{Calibration, Forecasts};
use shed_core::ids::JobKey;
use shed_core::snapshot::JobSnapshot;
use shed_core::time::Instant;

/// Predictions and outcomes of jobs. The planner and the reconcilers fill the table.
#[derive(Default)]
pub struct ForecastTable(Mutex<Forecasts>);

impl ForecastTable {
    /// A table that goes on from there.
    #[must_use]
    pub fn restored(calibration: &Calibration) -> Self {
        Self(Mutex::new(Forecasts::restored(calibration)))
    }

    /// What was learned from the jobs that have ended.
    #[must_use]
    pub fn calibration(&self) -> Calibration {
        self.lock().calibration()
    }

    /// Records the PoCD that a pass computed for a job, and returns the calibrated PoCD in [0, 1].
    /// Absent for a job without a deadline, and while too few jobs have ended.
    pub fn say(&self, job: &JobSnapshot, now: Instant, pocd: f64) -> Option<f64> {
        let limit = job.deadline?.since(job.submitted).seconds();
        let passed = now.since(job.submitted).seconds() / limit;
        // A deadline at the submission is over.
        let passed = if passed.is_finite() { passed } else { 1.0 };
        self.lock().say(&job.tenant, &job.key, passed, pocd)
    }

    /// Whether the job was in time is known.
    pub fn learn(&self, job: &Arc<str>, met: bool) {
        self.lock().learn(&JobKey(Arc::clone(job)), met);
    }

    /// Forgets every job that is not there.
    pub fn retain(&self, is_there: impl Fn(&str) -> bool) {
        self.lock().retain(|job| is_there(&job.0));
    }

    // A panic while the lock was held leaves at worst a job that is half noted.
    fn lock(&self) -> MutexGuard<'_, Forecasts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
