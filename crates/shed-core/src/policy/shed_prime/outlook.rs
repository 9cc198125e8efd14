//! What follows from the last look at a job alone. It is kept until the next look.

use crate::memory::PolicyState;
use crate::policy::contract::Remembered;
use crate::policy::shed_prime::cross_job_prior::Assumption;
use crate::policy::shed_prime::headroom::Demands;
use crate::round::JobView;
use crate::time::Instant;

/// The policy's findings about a job. Missing ones are found again, so they need not survive a failover.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outlook {
    /// What is assumed of the job while it has shown no time.
    pub(super) assumption: Assumption,
    /// The job's demand, and that of others.
    pub(super) demands: Found<Demands>,
}

impl Remembered for Outlook {
    fn write(&self) -> PolicyState {
        PolicyState::default()
    }

    fn read(_: &PolicyState) -> Self {
        Self::default()
    }
}

/// A finding, with the time of the look that it follows from.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Found<T>(Option<(Instant, T)>);

impl<T> Default for Found<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> Found<T> {
    /// The finding of the last look at the job.
    pub(super) fn new(job: &JobView<'_>, value: T) -> Self {
        Self(Some((job.appointment.looked, value)))
    }

    /// The finding, if the job was not looked at since.
    pub(super) fn get(&self, job: &JobView<'_>) -> Option<&T> {
        let (at, value) = self.0.as_ref()?;
        // Two looks may have the same time.
        (!job.is_looked_at() && *at == job.appointment.looked).then_some(value)
    }

    /// The last finding.
    pub(super) fn last(&self) -> Option<&T> {
        self.0.as_ref().map(|(_, value)| value)
    }
}
