//! Prometheus metrics. Labels come from `label()` functions or from the job's own name; series of
//! a job go with the job.

use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use shed_agent::ReportError;
use shed_core::plan::{Outcome, RefusalReason};
use shed_core::snapshot::{AttemptKind, KillKind};

use crate::lease::metrics::LeaseMetrics;

pub mod disowned;
pub mod dropped;
mod jobs;
mod ledger;
mod reconciles;

pub use jobs::JobSeries;
pub use ledger::LedgerMetrics;
pub use reconciles::ReconcileMetrics;

/// Labels of a series of one job.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct JobLabels {
    /// Namespace of the job.
    pub namespace: String,
    /// Name of the job.
    pub job: String,
}

/// One label `kind`.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct Kind {
    /// Its value.
    pub kind: &'static str,
}

/// Kind and outcome of an ended attempt.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct Ended {
    /// original, clone or retry.
    pub kind: &'static str,
    /// won, superseded, failed, …
    pub outcome: &'static str,
}

/// One label `reason`.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct Why {
    /// Its value.
    pub reason: &'static str,
}

/// One label `resource`.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct ResourceLabel {
    /// cpu (cores), memory (bytes), pods, …
    pub resource: String,
}

const KINDS: [AttemptKind; 3] = [
    AttemptKind::Original,
    AttemptKind::Clone,
    AttemptKind::Retry,
];
const OUTCOMES: [Outcome; 5] = [
    Outcome::Superseded,
    Outcome::Failed,
    Outcome::CloneFailed,
    Outcome::Disrupted,
    Outcome::Late,
];
const KILLS: [KillKind; 10] = [
    KillKind::Settle,
    KillKind::Prune,
    KillKind::Evict,
    KillKind::Replace,
    KillKind::Suspend,
    KillKind::JobEnd,
    KillKind::Restart,
    KillKind::Preempt,
    KillKind::Abandon,
    KillKind::Surplus,
];
const REFUSALS: [RefusalReason; 11] = [
    RefusalReason::Capacity,
    RefusalReason::NoNode,
    RefusalReason::Hopeless,
    RefusalReason::Maximum,
    RefusalReason::CloneFailures,
    RefusalReason::Disrupted,
    RefusalReason::NotIdempotent,
    RefusalReason::Observe,
    RefusalReason::Budget,
    RefusalReason::Work,
    RefusalReason::Target,
];
const REPORT_FAULTS: [ReportError; 10] = [
    ReportError::TooLarge,
    ReportError::NotUtf8,
    ReportError::NotANumber,
    ReportError::NotFinite,
    ReportError::OutOfRange,
    ReportError::ZeroTotal,
    ReportError::CheckpointTooLong,
    ReportError::BadJson,
    ReportError::Ambiguous,
    ReportError::Unreadable,
];
/// Outcome label of an attempt that won.
pub const WON: &str = "won";

/// A gauge of a fraction.
pub type GaugeF64 = Gauge<f64, AtomicU64>;

/// Everything that is exported.
pub struct Metrics {
    registry: Registry,
    /// Series of each unfinished job.
    pub jobs: JobSeries,
    /// Jobs complete in time.
    pub deadlines_met: Counter,
    /// Jobs that missed their deadline.
    pub deadlines_missed: Counter,
    /// Attempts launched.
    pub launched: Family<Kind, Counter>,
    /// Attempts ended.
    pub ended: Family<Ended, Counter>,
    /// Kills, by rule.
    pub kills: Family<Kind, Counter>,
    /// Tasks won by a clone.
    pub clone_wins: Counter,
    /// Clones that the optimizer wanted and did not get.
    pub clones_refused: Family<Why, Counter>,
    /// Capacity that attempts hold.
    pub capacity_used: Family<ResourceLabel, GaugeF64>,
    /// Capacity that attempts may use.
    pub capacity_usable: Family<ResourceLabel, GaugeF64>,
    /// Time of one decision.
    pub decide_seconds: Histogram,
    /// Slices that `plan_check` refused.
    pub plan_refused: Family<Why, Counter>,
    /// Decisions that panicked.
    pub decide_panics: Counter,
    /// Jobs whose facts were refused; they get no clones while they are.
    pub jobs_refused: Counter,
    /// Jobs that a pass which ran out of work left as they were.
    pub jobs_cut_short: Counter,
    /// Progress reports that were refused.
    pub progress_refused: Family<Why, Counter>,
    /// Questions for progress.
    pub progress_polls: Counter,
    /// How long the longest waiting question for progress is due.
    pub progress_lag: GaugeF64,
    /// Questions for progress that got no usable answer.
    pub progress_unanswered: Counter,
    /// Attempts that were given leave to publish.
    pub grants: Counter,
    /// Polls and grants that an agent with a fence did not answer.
    pub fence_unanswered: Counter,
    /// Pods that the apiserver refused.
    pub pods_refused: Family<Why, Counter>,
    /// Pods that carry the label of a job and are no attempts.
    pub pods_disowned: Family<Why, Counter>,
    /// Writes to the apiserver.
    pub writes: Family<Kind, Counter>,
    /// Passes and ends of attempts that were to be recorded and are not.
    pub recording_lost: Counter,
    /// Writes of ledgers.
    pub ledger: LedgerMetrics,
    /// Events that were not sent.
    pub events_dropped: Family<Why, Counter>,
    /// Reconciles that failed, and jobs that are not reconciled.
    pub reconciles: ReconcileMetrics,
    /// By how much the apiserver's clock may differ from what the operator takes it for.
    pub clock_uncertainty: GaugeF64,
    /// How far the apiserver's clock is ahead of this machine's.
    pub clock_offset: GaugeF64,
    /// The election.
    pub lease: LeaseMetrics,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// Registers everything.
    #[must_use]
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("shed");
        macro_rules! register {
            ($name:literal, $help:literal) => {{
                let metric = Default::default();
                registry.register($name, $help, Clone::clone(&metric));
                metric
            }};
        }
        // 10 µs to about 5 s.
        let decide_seconds = Histogram::new(exponential_buckets(1e-5, 3.0, 13));
        let mut metrics = Self {
            jobs: JobSeries::register(&mut registry),
            deadlines_met: register!("deadlines_met", "Jobs complete before their deadline"),
            deadlines_missed: register!("deadlines_missed", "Jobs not complete at their deadline"),
            launched: register!("attempts_launched", "Attempts launched"),
            ended: register!("attempts_ended", "Attempts ended"),
            kills: register!("kills", "Attempts that shed decided to end, by rule"),
            clone_wins: register!("clone_wins", "Tasks won by a clone"),
            clones_refused: register!("clones_refused", "Clones that were wanted and not launched"),
            capacity_used: register!("capacity_used", "What attempts hold, by resource"),
            capacity_usable: register!("capacity_usable", "What attempts may use, by resource"),
            decide_seconds: decide_seconds.clone(),
            plan_refused: register!(
                "plan_check_refusals",
                "Slices that plan_check refused, by rule"
            ),
            decide_panics: register!(
                "decide_panics",
                "Decisions that panicked; no clones in that pass"
            ),
            jobs_refused: register!(
                "jobs_refused",
                "Jobs whose facts were refused; no clones for them"
            ),
            jobs_cut_short: register!("jobs_cut_short", "Jobs for which a pass had no work left"),
            progress_refused: register!("progress_refused", "Progress reports that were refused"),
            progress_polls: register!("progress_polls", "Questions for progress"),
            progress_lag: register!(
                "progress_lag_seconds",
                "How long the question for progress that waits longest is due, for the budget's sake"
            ),
            progress_unanswered: register!(
                "progress_unanswered",
                "Questions for progress without a usable answer"
            ),
            grants: register!("commit_grants", "Attempts that were given leave to publish"),
            fence_unanswered: register!(
                "fence_unanswered",
                "Polls and grants that an agent with a fence did not answer"
            ),
            pods_refused: register!("pods_refused", "Attempt pods that the apiserver refused"),
            pods_disowned: register!(
                "pods_disowned",
                "Pods that carry the label of a job and are no attempts of it, by what is wrong"
            ),
            writes: register!("apiserver_writes", "Writes to the apiserver, by kind"),
            recording_lost: register!(
                "recording_lost",
                "Passes and ends of attempts that were to be recorded and are not"
            ),
            ledger: LedgerMetrics::register(&mut registry),
            events_dropped: register!(
                "events_dropped",
                "Events that were not written, because too many waited or the apiserver did not take them"
            ),
            reconciles: ReconcileMetrics::register(&mut registry),
            clock_uncertainty: register!(
                "clock_uncertainty_seconds",
                "By how much the time that deadlines are judged by may differ from the apiserver's: \
                 above 2 s no job is ended for its deadline, infinite before the first answer"
            ),
            clock_offset: register!(
                "clock_offset_seconds",
                "How far the apiserver's clock is ahead of this machine's wall clock"
            ),
            lease: LeaseMetrics::register(&mut registry),
            registry: Registry::default(),
        };
        registry.register("decide_seconds", "Time of one decision", decide_seconds);
        metrics.registry = registry;
        metrics.show_zeros();
        metrics
    }

    /// A counter that first appears with 1 never shows an increase: the known series start at 0.
    fn show_zeros(&self) {
        for kind in KINDS.map(AttemptKind::label) {
            let _ = self.launched.get_or_create(&Kind { kind });
            for outcome in OUTCOMES.map(Outcome::label).into_iter().chain([WON]) {
                let _ = self.ended.get_or_create(&Ended { kind, outcome });
            }
        }
        for kind in KILLS.map(KillKind::label) {
            let _ = self.kills.get_or_create(&Kind { kind });
        }
        for reason in REFUSALS.map(RefusalReason::label) {
            let _ = self.clones_refused.get_or_create(&Why { reason });
        }
        for reason in dropped::ALL {
            let _ = self.events_dropped.get_or_create(&Why { reason });
        }
        for reason in disowned::ALL {
            let _ = self.pods_disowned.get_or_create(&Why { reason });
        }
        for reason in REPORT_FAULTS.map(|fault| fault.label()) {
            let _ = self.progress_refused.get_or_create(&Why { reason });
        }
    }

    /// The page that Prometheus scrapes.
    ///
    /// # Errors
    /// If the text can't be written, which a `String` never refuses.
    pub fn page(&self) -> Result<String, std::fmt::Error> {
        let mut page = String::new();
        encode(&mut page, &self.registry)?;
        Ok(page)
    }

    /// Drops the series of a job that has ended or is gone.
    pub fn forget_job(&self, labels: &JobLabels) {
        self.jobs.forget(labels);
    }

    /// Drops the series of all jobs: another replica shows them now.
    pub fn forget_jobs(&self) {
        self.jobs.clear();
        self.capacity_used.clear();
        self.capacity_usable.clear();
        self.reconciles.forget_jobs();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_of_a_job_go_with_the_job() {
        let metrics = Metrics::new();
        let labels = JobLabels {
            namespace: "team".to_owned(),
            job: "count".to_owned(),
        };
        metrics.jobs.pocd.get_or_create(&labels).set(0.97);
        metrics.deadlines_met.inc();
        let page = metrics.page().unwrap();
        assert!(
            page.contains(r#"shed_job_pocd{namespace="team",job="count"} 0.97"#),
            "{page}"
        );
        assert!(page.contains("shed_deadlines_met_total 1"));
        metrics.forget_job(&labels);
        assert!(!metrics.page().unwrap().contains("job=\"count\""));
    }
}
