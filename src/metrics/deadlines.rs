//! Metrics of deadlines: outcomes, slack, and how right the predictions were.

use std::sync::Arc;

use parking_lot::Mutex;
use prometheus::{Histogram, Result};

use crate::deadline_totals::{DeadlineOutcome, DeadlineTotals};
use crate::forecast::Scored;
use crate::registrar::{Counters, Histograms, Registrar, metrics};

/// From a second to a day.
const SECONDS: [f64; 10] = [
    1.0, 10.0, 60.0, 300.0, 900.0, 3600.0, 7200.0, 14_400.0, 43_200.0, 86_400.0,
];

metrics! {
    /// The families.
    struct Families {
        met: Counters<2> = "shed_deadlines_met_total",
            "Jobs that completed at or before their deadline, since shed was installed", BY_CLASS;
        missed: Counters<2> = "shed_deadlines_missed_total",
            "Ended jobs whose deadline passed before they completed, since shed was installed", BY_CLASS;
        failed: Counters<2> = "shed_deadlines_failed_total",
            "Jobs that failed for another reason before their deadline, since shed was installed", BY_CLASS;
        slack: Histogram = "shed_job_completion_slack_seconds",
            "Time that was left until the deadline when a job was complete in time", SECONDS.to_vec();
        lateness: Histogram = "shed_job_completion_lateness_seconds",
            "Time by which a job was complete after its deadline", SECONDS.to_vec();
        squared_errors: Histograms<2> = "shed_prediction_squared_error",
            "Squared difference between a prediction (pocd, calibrated, or watched for the PoCD of Jobs that shed only \
             watches) and whether the job met its deadline, by the share of the job's time that had passed; sum / count \
             is the Brier score",
            (["prediction", "passed"], vec![0.01, 0.04, 0.09, 0.16, 0.25, 0.36, 0.49, 0.64, 0.81, 1.0]);
    }
}

const BY_CLASS: [&str; 2] = ["job_namespace", "job_class"];

/// Metrics of deadlines.
pub struct DeadlineMetrics {
    families: Families,
    /// The leader's totals.
    totals: Mutex<Option<Arc<DeadlineTotals>>>,
}

impl DeadlineMetrics {
    /// Registers everything.
    pub fn register(registrar: &mut Registrar) -> Result<Self> {
        Ok(Self {
            families: Families::register(registrar)?,
            totals: Mutex::default(),
        })
    }

    /// From now on pages show these totals, or none: another replica shows them now.
    pub fn show_totals(&self, totals: Option<Arc<DeadlineTotals>>) {
        *self.totals.lock() = totals;
    }

    /// Writes the series for a page.
    pub(super) fn show(&self) {
        let totals = self.totals.lock();
        let shown = totals.as_ref().and_then(|totals| totals.lock().shown());
        let Families {
            met,
            missed,
            failed,
            ..
        } = &self.families;
        for (family, outcome) in [met, missed, failed].into_iter().zip(DeadlineOutcome::ALL) {
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
            true => self.families.slack.observe(left),
            false => self.families.lateness.observe(-left),
        }
    }

    /// The deadline of a job with these predictions was met, or missed.
    pub fn score(&self, predictions: &[Scored], met: bool) {
        for scored in predictions {
            for (prediction, value) in [("pocd", scored.pocd), ("calibrated", scored.calibrated)] {
                self.score_one([prediction, scored.passed], value, met);
            }
        }
    }

    /// The same of one prediction with this name, at this share of the job's time.
    pub fn score_one(&self, labels: [&str; 2], pocd: f64, met: bool) {
        let error = pocd - if met { 1.0 } else { 0.0 };
        let family = &self.families.squared_errors;
        family.with(labels).observe(error * error);
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
            .score(&[at("0", 0.5, 1.0), at("0.5", 1.0, 0.5)], true);
        metrics.deadlines.score(&[at("0", 1.0, 1.0)], false);
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
