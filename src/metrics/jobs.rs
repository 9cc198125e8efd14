//! Series of each unfinished job.

use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use super::{GaugeF64, JobLabels};

/// Series of each unfinished job; clones share them.
#[derive(Clone, Default)]
pub struct JobSeries {
    /// Its PoCD.
    pub pocd: Family<JobLabels, GaugeF64>,
    /// Its calibrated PoCD.
    pub forecast: Family<JobLabels, GaugeF64>,
    /// Its deadline.
    pub deadline: Family<JobLabels, GaugeF64>,
    /// The earliest deadline that reaches its target PoCD, from the last estimate.
    pub earliest: Family<JobLabels, GaugeF64>,
    /// Its expected completion.
    pub expected: Family<JobLabels, GaugeF64>,
}

/// Name, help, and the series.
type Named<'s> = (&'static str, &'static str, &'s Family<JobLabels, GaugeF64>);

impl JobSeries {
    /// Registers everything.
    #[must_use]
    pub fn register(registry: &mut Registry) -> Self {
        let series = Self::default();
        for (name, help, family) in series.all() {
            registry.register(name, help, family.clone());
        }
        series
    }

    fn all(&self) -> [Named<'_>; 5] {
        [
            (
                "job_pocd",
                "Probability of completion before the deadline, from 0 to 1",
                &self.pocd,
            ),
            (
                "job_pocd_calibrated",
                "Calibrated PoCD: share of past jobs with a similar prediction that met their deadline",
                &self.forecast,
            ),
            (
                "job_deadline_timestamp_seconds",
                "Deadline of the job as a Unix time",
                &self.deadline,
            ),
            (
                "job_earliest_feasible_deadline_timestamp_seconds",
                "Earliest deadline that reaches the job's target PoCD, from the last estimate",
                &self.earliest,
            ),
            (
                "job_expected_completion_timestamp_seconds",
                "Expected finish of the job's last task",
                &self.expected,
            ),
        ]
    }

    /// Drops the series of a job that has ended or is gone.
    pub fn forget(&self, job: &JobLabels) {
        for (_, _, family) in self.all() {
            family.remove(job);
        }
    }

    /// Drops all: another replica shows them now.
    pub fn clear(&self) {
        for (_, _, family) in self.all() {
            family.clear();
        }
    }
}
