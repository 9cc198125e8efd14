//! Series of runs of workflows with a deadline: of each run by its open stage, and of stages at the same time by the one
//! most at risk.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use prometheus::Result;
use shed_core::time::{Instant, Span};

use super::jobs::{JobFigures, choose, unix_time};
use super::{JobAddress, JobLabels};
use crate::registrar::{Gauges, Registrar};

/// A run within its namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunLabels {
    /// `workflow`: the name of the run.
    pub run: Arc<str>,
    /// `workflow_class`: the class of the run.
    pub class: Arc<str>,
}

/// What the open stages show of their runs: PoCD, deadline and expected completion of the whole run.
pub(super) type RunsByJob = BTreeMap<JobAddress, (RunLabels, JobFigures)>;

/// A run, with its namespace.
pub(super) type RunKey = (String, RunLabels);

/// Labels of a run's series.
const LABELS: [&str; 4] = ["job_namespace", "workflow", "workflow_class", "stage"];

/// Series of runs.
pub(super) struct WorkflowSeries {
    pocd: Gauges<4>,
    slack: Gauges<4>,
    deadline: Gauges<4>,
}

impl WorkflowSeries {
    pub(super) fn register(registrar: &mut Registrar) -> Result<Self> {
        Ok(Self {
            pocd: registrar.register(
                "shed_workflow_pocd",
                "Probability that the whole run of a workflow is complete before its deadline, from 0 to 1",
                LABELS,
            )?,
            slack: registrar.register(
                "shed_workflow_slack_seconds",
                "Deadline of the run minus its expected completion, with the median time of later stages",
                LABELS,
            )?,
            deadline: registrar.register(
                "shed_workflow_deadline_timestamp_seconds",
                "Deadline of the run as a Unix time",
                LABELS,
            )?,
        })
    }

    /// Writes the series of at most about `max` runs. Returns those that are shown.
    pub(super) fn show(
        &self,
        runs: &RunsByJob,
        jobs: &BTreeMap<JobAddress, (JobLabels, JobFigures)>,
        shown: &BTreeSet<RunKey>,
        (max, now): (usize, Instant),
    ) -> BTreeSet<RunKey> {
        let mut by_run: BTreeMap<RunKey, (&str, &JobFigures)> = BTreeMap::new();
        for (job, (run, figures)) in runs {
            let stage = jobs.get(job).map_or("", |(labels, _)| &*labels.class);
            let key = (job.namespace.clone(), run.clone());
            let worst = by_run.entry(key).or_insert((stage, figures));
            if figures.compare_risk(worst.1, now).is_lt() {
                *worst = (stage, figures);
            }
        }
        let shown = choose(
            by_run.iter(),
            |(namespace, _)| namespace,
            |(_, a), (_, b)| a.compare_risk(b, now),
            (max, shown),
        );
        let families = [&self.pocd, &self.slack, &self.deadline];
        families.iter().for_each(|family| family.clear());
        for (key, (stage, figures)) in by_run.iter().filter(|(key, _)| shown.contains(*key)) {
            let (namespace, RunLabels { run, class }) = key;
            let values = [
                figures.pocd,
                figures.slack().map(Span::seconds),
                figures.deadline.map(unix_time),
            ];
            for (family, value) in families.into_iter().zip(values) {
                if let Some(value) = value {
                    family.with([namespace, run, class, stage]).set(value);
                }
            }
        }
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Metrics;
    use crate::metrics::tests::address;

    fn figures(pocd: f64) -> JobFigures {
        JobFigures {
            pocd: Some(pocd),
            deadline: Some(Instant(600_000)),
            expected: Some(Instant(630_000)),
            ..JobFigures::default()
        }
    }

    /// A stage of a run is open.
    fn open(metrics: &Metrics, namespace: &str, run: &str, stage: &str, pocd: f64) -> JobAddress {
        let job = address(namespace, &format!("{run}-{stage}"));
        let labels = JobLabels {
            class: stage.into(),
            ..JobLabels::default()
        };
        metrics.jobs.set(&job, labels, &JobFigures::default());
        let labels = RunLabels {
            run: run.into(),
            class: "etl".into(),
        };
        metrics.jobs.set_run(&job, Some((labels, figures(pocd))));
        job
    }

    fn series(metrics: &Metrics) -> Vec<String> {
        let page = metrics.page_at(Instant(0)).unwrap();
        let lines = page
            .lines()
            .filter(|line| line.starts_with("shed_workflow_"));
        lines.map(str::to_owned).collect()
    }

    #[test]
    fn a_run_shows_its_stage_most_at_risk() {
        let metrics = Metrics::new().unwrap();
        let left = open(&metrics, "team", "etl-7", "left", 0.9);
        let right = open(&metrics, "team", "etl-7", "right", 0.4);
        let labels = |stage| {
            format!(
                r#"{{job_namespace="team",stage="{stage}",workflow="etl-7",workflow_class="etl"}}"#
            )
        };
        let of = |stage, pocd| {
            let labels = labels(stage);
            [
                format!("shed_workflow_deadline_timestamp_seconds{labels} 600"),
                format!("shed_workflow_pocd{labels} {pocd}"),
                format!("shed_workflow_slack_seconds{labels} -30"),
            ]
        };
        assert_eq!(series(&metrics), of("right", "0.4"));
        metrics.jobs.forget(&right);
        assert_eq!(series(&metrics), of("left", "0.9"));
        // It is no stage of a run any more.
        metrics.jobs.set_run(&left, None);
        assert_eq!(series(&metrics), [""; 0]);
    }

    #[test]
    fn runs_are_as_many_as_jobs_and_shared_by_namespaces() {
        let metrics = Metrics::with_jobs(10).unwrap();
        for number in 0..1000 {
            open(&metrics, "loud", &format!("etl-{number}"), "load", 0.1);
        }
        open(&metrics, "quiet", "etl-1", "load", 0.99);
        let series = series(&metrics);
        assert_eq!(series.len(), 3 * 10);
        let quiet = series
            .iter()
            .filter(|line| line.contains(r#"job_namespace="quiet""#));
        assert_eq!(quiet.count(), 3);
        metrics.jobs.clear();
        assert_eq!(self::series(&metrics), [""; 0]);
    }

    #[test]
    fn a_run_of_another_namespace_is_another_run() {
        let metrics = Metrics::new().unwrap();
        for namespace in ["a", "b"] {
            open(&metrics, namespace, "etl-7", "load", 0.5);
        }
        assert_eq!(series(&metrics).len(), 6);
    }
}
