//! Metrics of deadlines: outcomes, slack, and how right the predictions were.

use std::sync::{Arc, Mutex, PoisonError};

use prometheus::{Histogram, Result};

use crate::deadline_totals::{DeadlineOutcome, DeadlineTotals};
use crate::forecast::Scored;
use crate::registrar::{Counters, Histograms, Registrar};

/// From a second to a day.
const SECONDS: [f64; 10] = [
    1.0, 10.0, 60.0, 300.0, 900.0, 3600.0, 7200.0, 14_400.0, 43_200.0, 86_400.0,
];

/// Metrics of deadlines.
pub struct DeadlineMetrics {
    /// Ended jobs, in the order of [`DeadlineOutcome::ALL`].
    ended: [Counters<2>; 3],
    /// The leader's totals.
    totals: Mutex<Option<Arc<DeadlineTotals>>>,
    slack: Histogram,
    lateness: Histogram,
    squared_errors: Histograms<2>,
}

impl DeadlineMetrics {
    /// Registers everything.
    pub fn register(registrar: &mut Registrar) -> Result<Self> {
        let mut ended = |name, help| registrar.counters(name, help, ["job_namespace", "job_class"]);
        Ok(Self {
            ended: [
                ended(
                    "shed_deadlines_met_total",
                    "Jobs that completed at or before their deadline, since shed was installed",
                )?,
                ended(
                    "shed_deadlines_missed_total",
                    "Ended jobs whose deadline passed before they completed, since shed was installed",
                )?,
                ended(
                    "shed_deadlines_failed_total",
                    "Jobs that failed for another reason before their deadline, since shed was installed",
                )?,
            ],
            totals: Mutex::default(),
            slack: registrar.histogram(
                "shed_job_completion_slack_seconds",
                "Time that was left until the deadline when a job was complete in time",
                &SECONDS,
            )?,
            lateness: registrar.histogram(
                "shed_job_completion_lateness_seconds",
                "Time by which a job was complete after its deadline",
                &SECONDS,
            )?,
            squared_errors: registrar.histograms(
                "shed_prediction_squared_error",
                "Squared difference between a prediction and whether the job met its deadline, by prediction and by \
                 the share of the job's time that had passed; sum / count is the Brier score",
                ["prediction", "passed"],
                &[0.01, 0.04, 0.09, 0.16, 0.25, 0.36, 0.49, 0.64, 0.81, 1.0],
            )?,
        })
    }

    /// From now on pages show these totals, or none: another replica shows them now.
    pub fn show_totals(&self, totals: Option<Arc<DeadlineTotals>>) {
        *self.totals.lock().unwrap_or_else(PoisonError::into_inner) = totals;
    }

    /// Writes the series for a page.
    pub(super) fn show(&self) {
        let totals = self.totals.lock().unwrap_or_else(PoisonError::into_inner);
        let shown = totals.as_ref().and_then(|totals| totals.shown());
        for (family, outcome) in self.ended.iter().zip(DeadlineOutcome::ALL) {
            family.clear();
            for (namespace, class, counts) in shown.iter().flatten() {
                let series = family.with([namespace, class]);
                series.inc_by(counts.of(outcome));
            }
        }
    }

    /// A job is complete, this many seconds before its deadline.
    pub fn completed(&self, left: f64) {
        match left >= 0.0 {
            true => self.slack.observe(left),
            false => self.lateness.observe(-left),
        }
    }

    /// The deadline of a job with these predictions was met, or missed.
    pub fn score(&self, predictions: &[Scored], met: bool) {
        let actual = if met { 1.0 } else { 0.0 };
        for scored in predictions {
            for (prediction, value) in [
                ("pocd", Some(scored.pocd)),
                ("calibrated", scored.calibrated),
            ] {
                if let Some(value) = value {
                    let error = value - actual;
                    let family = self.squared_errors.with([prediction, scored.passed]);
                    family.observe(error * error);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::forecast::Scored;
    use crate::metrics::Metrics;

    #[test]
    fn slack_and_lateness_are_apart() {
        let metrics = Metrics::new().unwrap();
        metrics.deadlines.completed(30.0);
        metrics.deadlines.completed(0.0);
        metrics.deadlines.completed(-5.0);
        let page = metrics.page().unwrap();
        for line in [
            r#"shed_job_completion_slack_seconds_bucket{le="10"} 1"#,
            "shed_job_completion_slack_seconds_sum 30",
            "shed_job_completion_slack_seconds_count 2",
            "shed_job_completion_lateness_seconds_sum 5",
            "shed_job_completion_lateness_seconds_count 1",
        ] {
            assert!(page.contains(line), "{line}\n{page}");
        }
    }

    #[test]
    fn the_brier_score_is_sum_by_count() {
        let metrics = Metrics::new().unwrap();
        let at = |passed, pocd, calibrated| Scored {
            passed,
            pocd,
            calibrated,
        };
        metrics
            .deadlines
            .score(&[at("0", 0.5, None), at("0.5", 1.0, Some(0.5))], true);
        metrics.deadlines.score(&[at("0", 1.0, Some(1.0))], false);
        let page = metrics.page().unwrap();
        for line in [
            r#"shed_prediction_squared_error_sum{passed="0",prediction="pocd"} 1.25"#,
            r#"shed_prediction_squared_error_count{passed="0",prediction="pocd"} 2"#,
            r#"shed_prediction_squared_error_sum{passed="0.5",prediction="calibrated"} 0.25"#,
            r#"shed_prediction_squared_error_sum{passed="0",prediction="calibrated"} 1"#,
        ] {
            assert!(page.contains(line), "{line}\n{page}");
        }
    }
}
