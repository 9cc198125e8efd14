//! How far an unfinished job is: its tasks and live attempts.

use prometheus::Result;
use shed_core::snapshot::{AttemptKind, JobSnapshot};

use super::JobLabels;
use crate::registrar::Gauges;

/// The tasks and live attempts of a job. A divided task counts as its segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobWork {
    /// Its tasks.
    pub tasks: u32,
    /// Those that are done.
    pub done: u32,
    /// Live attempts, clones included.
    pub attempts: u32,
    /// Live clones.
    pub clones: u32,
}

impl JobWork {
    /// As a pass found it.
    pub fn of(facts: &JobSnapshot) -> Self {
        let mut work = Self {
            tasks: facts.rules.completions,
            done: facts.done.len(),
            ..Self::default()
        };
        for attempt in facts.tasks.iter().flat_map(|task| task.live()) {
            work.attempts += 1;
            work.clones += u32::from(attempt.kind == AttemptKind::Clone);
        }
        work
    }
}

/// Series of the jobs most at risk.
pub(super) struct WorkSeries {
    tasks: Gauges<2>,
    done: Gauges<2>,
    attempts: Gauges<2>,
    clones: Gauges<2>,
}

impl WorkSeries {
    pub(super) fn register(
        mut gauges: impl FnMut(&'static str, &'static str) -> Result<Gauges<2>>,
    ) -> Result<Self> {
        Ok(Self {
            tasks: gauges(
                "shed_job_tasks",
                "Tasks of the job; a divided task counts as its segments",
            )?,
            done: gauges("shed_job_tasks_done", "Tasks of the job that are done")?,
            attempts: gauges(
                "shed_job_attempts_live",
                "Live attempts of the job, clones included",
            )?,
            clones: gauges("shed_job_clones_live", "Live clones of the job")?,
        })
    }

    pub(super) fn show(&self, job: &JobLabels, work: JobWork) {
        for (family, number) in [
            (&self.tasks, work.tasks),
            (&self.done, work.done),
            (&self.attempts, work.attempts),
            (&self.clones, work.clones),
        ] {
            let series = family.with([&job.job_namespace, &job.job_name]);
            series.set(f64::from(number));
        }
    }

    pub(super) fn clear(&self) {
        for family in [&self.tasks, &self.done, &self.attempts, &self.clones] {
            family.clear();
        }
    }
}
