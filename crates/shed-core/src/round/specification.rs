//! What the user states about a job. A change of it is looked at in the same pass.

use crate::resources::Resources;
use crate::snapshot::{ExpectedDuration, JobPhase, JobRules, JobSnapshot};
use crate::time::Instant;

/// A job's specification at its last look.
#[derive(Debug)]
pub(crate) struct Specification {
    deadline: Option<Instant>,
    rules: JobRules,
    expected_duration: Option<ExpectedDuration>,
    demand: Resources,
    phase: JobPhase,
    reports_progress: bool,
    admitted: Option<u32>,
}

impl Specification {
    /// The job's specification.
    pub(crate) fn of(job: &JobSnapshot) -> Self {
        Self {
            deadline: job.deadline,
            rules: job.rules.clone(),
            expected_duration: job.expected_duration,
            demand: job.demand.clone(),
            phase: job.phase,
            reports_progress: job.reports_progress,
            admitted: job.admitted,
        }
    }

    /// Whether the job still has this specification.
    pub(crate) fn is_of(&self, job: &JobSnapshot) -> bool {
        self.deadline == job.deadline
            && self.rules == job.rules
            && self.expected_duration == job.expected_duration
            && self.demand == job.demand
            && self.phase == job.phase
            && self.reports_progress == job.reports_progress
            && self.admitted == job.admitted
    }
}
