//! What came of earlier jobs, for those that run. It is this process's: a new leader learns anew.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use shed_core::estimate::forecast::Forecasts;
use shed_core::ids::JobKey;
use shed_core::snapshot::JobSnapshot;
use shed_core::time::Instant;

/// What was said of jobs and what came of them; filled by the planner and by reconcilers.
#[derive(Default)]
pub struct ForecastTable(Mutex<Forecasts>);

impl ForecastTable {
    /// Notes the PoCD that a pass says of a job and forecasts from it, in [0, 1]; absent for a job
    /// without a deadline, and while too few jobs have ended.
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
