//! Jobs whose companions could not be created.

use std::collections::HashMap;

use k8s_openapi::api::batch::v1::Job;
use parking_lot::Mutex;

/// Maximum number of jobs with recorded failures.
const FAILING_MAX: usize = 1000;
/// How often in a row the companion of each Job could not be created. All of it can be lost.
#[derive(Default)]
pub struct Failures(Mutex<HashMap<String, u32>>);

impl Failures {
    /// One more; how many that makes.
    pub(crate) fn count(&self, job: &Job) -> u32 {
        let mut counts = self.0.lock();
        // Jobs that were deleted meanwhile are still there.
        if counts.len() >= FAILING_MAX {
            counts.clear();
        }
        let count = counts.entry(uid(job)).or_insert(0);
        *count = count.saturating_add(1);
        *count
    }

    pub(crate) fn forget(&self, job: &Job) {
        self.0.lock().remove(&uid(job));
    }
}

fn uid(job: &Job) -> String {
    job.metadata.uid.clone().unwrap_or_default()
}
