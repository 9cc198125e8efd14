//! The symptoms, and the alerts that each of them must fire: those whose expression has the symptom's metric.

use anyhow::{Result, ensure};
use clap::ValueEnum;

use super::rules::Alert;

/// A symptom that is caused, so that its alerts fire. In the order in which they are caused: the alert with the longest
/// windows first, so that it resolves meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Symptom {
    /// Jobs are stopped at their deadline, one per second.
    MissedDeadlines,
    /// A job whose tasks take longer than it has.
    HopelessJob,
    /// A job goes on after its deadline.
    OverdueJob,
    /// No operator runs.
    NoOperator,
    /// Another client takes the Lease again and again.
    TakenLease,
    /// The ledger of a job has the record of a failed reconcile.
    QuarantinedJob,
    /// The operator is restarted with another `--adopt-jobs` while an adopted Job runs.
    UnadoptedJob,
    /// A job that no node could hold.
    BlockedJob,
    /// Nothing listens where tasks are polled.
    RefusedPolls,
    /// The operator may poll once a second, and many tasks report.
    SmallPollBudget,
    /// The operator's process is paused most of the time.
    ThrottledOperator,
    /// Answers of the apiserver are dated by two clocks.
    TwoClocks,
    /// The apiserver does not answer watches.
    HeldWatches,
    /// The operator's cgroup shows a limit that it has almost reached.
    LowMemoryLimit,
    /// The operator's policy panics.
    FaultyPolicy,
}

impl Symptom {
    /// The part of an expression that shows the symptom.
    pub fn shown_by(self) -> &'static str {
        match self {
            Self::MissedDeadlines => "shed:deadlines_missed:",
            Self::HopelessJob => "shed_job_pocd",
            Self::OverdueJob => "shed_job_deadline_timestamp_seconds - time()",
            Self::NoOperator => "absent(shed_leader",
            Self::TakenLease => "shed_lease_lost_total",
            Self::QuarantinedJob => "shed_jobs_quarantined",
            Self::UnadoptedJob => "shed_jobs_not_adopted",
            Self::BlockedJob => "shed_jobs_blocked",
            Self::RefusedPolls => "shed_progress_poll_failures_total",
            Self::SmallPollBudget => "shed_progress_poll_delay_seconds",
            Self::ThrottledOperator => "shed_planning_decision_duration_seconds",
            Self::TwoClocks => "shed_clock_uncertainty_seconds",
            Self::HeldWatches => "shed_watch_age_seconds",
            Self::LowMemoryLimit => "shed_memory_limit_bytes",
            Self::FaultyPolicy => "shed_planning_panics_total",
        }
    }

    /// Alerts that must fire.
    pub fn alerts(self, all: &[Alert]) -> Vec<&Alert> {
        let shows = |alert: &&Alert| alert.expression.contains(self.shown_by());
        all.iter().filter(shows).collect()
    }

    /// What is done, for a reader of the page.
    pub fn words(self) -> &'static str {
        match self {
            Self::MissedDeadlines => {
                "one job per second is stopped at its deadline, until all alerts of this symptom fire"
            }
            Self::HopelessJob => "a job has 15 min, and its tasks take 30 min",
            Self::OverdueJob => {
                "a job whose tasks take 30 min has a deadline of 10 s, and continues"
            }
            Self::NoOperator => "the operator is stopped",
            Self::TakenLease => {
                "another client takes the Lease each time that the operator holds it"
            }
            Self::QuarantinedJob => "the ledger of a job gets the record of a stuck reconcile",
            Self::UnadoptedJob => {
                "the operator is restarted with `--adopt-jobs none` while an adopted Job runs"
            }
            Self::BlockedJob => "a job selects nodes by a label that no node has",
            Self::RefusedPolls => "20 tasks report progress at a port where nothing listens",
            Self::SmallPollBudget => {
                "100 tasks report progress, and the operator has `--progress-polls-per-second 1`"
            }
            Self::ThrottledOperator => {
                "the operator's process is paused (`SIGSTOP`) for 0.6 s after each 10 ms of CPU time"
            }
            Self::TwoClocks => "every second answer of the apiserver has a date 20 s ahead",
            Self::HeldWatches => "a proxy breaks off all watches and answers no new one",
            Self::LowMemoryLimit => {
                "the operator's cgroup shows the memory that it used before as its limit, which is not enforced"
            }
            Self::FaultyPolicy => "a job runs, and the operator has a policy that panics",
        }
    }

    /// Whether its alerts resolve only after minutes, because their windows are long.
    pub fn resolves_slowly(self) -> bool {
        self == Self::MissedDeadlines
    }
}

/// Checks that each alert has a symptom.
pub fn ensure_covered(alerts: &[Alert]) -> Result<()> {
    for alert in alerts {
        let mut symptoms = Symptom::value_variants().iter();
        ensure!(
            symptoms.any(|symptom| symptom.alerts(alerts).contains(&alert)),
            "alert {} needs a symptom that causes it: add one to Symptom in e2e/src/monitoring/symptom.rs",
            alert.name
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monitoring::rules::Rules;

    #[test]
    fn each_alert_has_a_symptom() {
        let file = crate::command::repository().join("manifests/alerts.yaml");
        let mut alerts = Rules::read(&file).unwrap().alerts();
        ensure_covered(&alerts).unwrap();
        alerts.push(Alert {
            name: "ShedNew".to_owned(),
            expression: "shed_new > 1".to_owned(),
        });
        let said = ensure_covered(&alerts).unwrap_err().to_string();
        assert!(
            said.contains("ShedNew") && said.contains("add one"),
            "{said}"
        );
    }
}
