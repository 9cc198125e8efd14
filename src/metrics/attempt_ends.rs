//! Expected ends of attempts: of the few that a pass reports, and of the jobs with series of their own.

use std::collections::BTreeMap;

use prometheus::Result;
use shed_core::plan::{ENDS_MAX, ExpectedEnd};

use super::jobs::unix_time;
use super::{JobAddress, JobLabels};
use crate::registrar::{Gauges, Registrar};

/// Series of attempts.
pub(super) struct AttemptEndSeries(Gauges<5>);

/// What is known of each job's attempts.
pub(super) type EndsByJob = BTreeMap<JobAddress, Vec<ExpectedEnd>>;

impl AttemptEndSeries {
    pub(super) fn register(registrar: &mut Registrar) -> Result<Self> {
        let series = registrar.register(
            "shed_attempt_expected_end_timestamp_seconds",
            "Expected end of an attempt: of cloned tasks, of the task at risk and of stragglers",
            ["job_namespace", "job_name", "job_kind", "task", "attempt"],
        )?;
        Ok(Self(series))
    }

    /// Writes the series of these jobs, at most `max`: the first attempt of each job, then the second one of each.
    pub(super) fn show<'a>(
        &self,
        jobs: impl Iterator<Item = (&'a JobAddress, &'a JobLabels)> + Clone,
        ends: &EndsByJob,
        max: usize,
    ) {
        self.0.clear();
        let of_rank = |rank: usize| {
            jobs.clone().filter_map(move |(job, labels)| {
                let end = ends.get(job)?.get(rank)?;
                Some((job, labels, end))
            })
        };
        for (job, labels, end) in (0..ENDS_MAX).flat_map(of_rank).take(max) {
            let (task, attempt) = (end.task.0.to_string(), end.attempt.0.to_string());
            let labels = [&*job.namespace, &labels.name, labels.kind, &task, &attempt];
            self.0.with(labels).set(unix_time(end.at));
        }
    }
}

#[cfg(test)]
mod tests {
    use shed_core::ids::{AttemptNumber, TaskIndex};
    use shed_core::time::Instant;

    use super::*;
    use crate::metrics::tests::{address, labels};
    use crate::metrics::{JobFigures, Metrics};

    #[test]
    fn attempts_share_as_many_series_as_there_are_for_jobs() {
        let metrics = Metrics::with_jobs(3).unwrap();
        let end = |task| ExpectedEnd {
            task: TaskIndex(task),
            attempt: AttemptNumber(1),
            at: Instant(90_000),
        };
        for (name, tasks) in [("a", 9), ("b", 1)] {
            let job = address("team", name);
            metrics.jobs.set(&job, labels(name), &JobFigures::default());
            metrics.jobs.set_ends(&job, (0..tasks).map(end).collect());
        }
        let series = |job: &str, task: u32| {
            format!(
                "shed_attempt_expected_end_timestamp_seconds{{attempt=\"1\",job_kind=\"DeadlineJob\",\
                 job_name=\"{job}\",job_namespace=\"team\",task=\"{task}\"}} 90"
            )
        };
        let page = metrics.page().unwrap();
        for (job, task) in [("a", 0), ("b", 0), ("a", 1)] {
            assert!(page.contains(&series(job, task)), "{page}");
        }
        assert!(!page.contains(&series("a", 2)), "{page}");
        metrics.jobs.forget(&address("team", "a"));
        assert!(!metrics.page().unwrap().contains(&series("a", 0)));
    }
}
