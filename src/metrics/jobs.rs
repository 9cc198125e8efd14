//! Series of each unfinished job.

use prometheus::Result;

use super::JobLabels;
use crate::registrar::{Gauges, Registrar};

/// Series of each unfinished job, by namespace and name.
pub struct JobSeries {
    /// Its PoCD.
    pub pocd: Gauges<2>,
    /// Its calibrated PoCD.
    pub forecast: Gauges<2>,
    /// Its deadline.
    pub deadline: Gauges<2>,
    /// The earliest deadline that reaches its target PoCD, from the last estimate.
    pub earliest: Gauges<2>,
    /// Its expected completion.
    pub expected: Gauges<2>,
}

impl JobSeries {
    /// Registers everything.
    ///
    /// # Errors
    /// See [`Registrar::counter`].
    pub fn register(registrar: &mut Registrar) -> Result<Self> {
        let mut gauges = |name, help| registrar.gauges(name, help, ["job_namespace", "job_name"]);
        Ok(Self {
            pocd: gauges(
                "shed_job_pocd",
                "Probability of completion before the deadline, from 0 to 1",
            )?,
            forecast: gauges(
                "shed_job_pocd_calibrated",
                "Calibrated PoCD: share of past jobs with a similar prediction that met their deadline",
            )?,
            deadline: gauges(
                "shed_job_deadline_timestamp_seconds",
                "Deadline of the job as a Unix time",
            )?,
            earliest: gauges(
                "shed_job_earliest_feasible_deadline_timestamp_seconds",
                "Earliest deadline that reaches the job's target PoCD, from the last estimate",
            )?,
            expected: gauges(
                "shed_job_expected_completion_timestamp_seconds",
                "Expected finish of the job's last task",
            )?,
        })
    }

    fn all(&self) -> [&Gauges<2>; 5] {
        [
            &self.pocd,
            &self.forecast,
            &self.deadline,
            &self.earliest,
            &self.expected,
        ]
    }

    /// Drops the series of a job that has ended or is gone.
    pub fn forget(&self, job: &JobLabels) {
        for family in self.all() {
            family.remove([&job.job_namespace, &job.job_name]);
        }
    }

    /// Drops all: another replica shows them now.
    pub fn clear(&self) {
        for family in self.all() {
            family.clear();
        }
    }
}
