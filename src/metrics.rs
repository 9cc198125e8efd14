//! Prometheus metrics. Label values come from `label()` functions or are the job's own name. The series of
//! a job are removed with the job.

use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use shed_agent::ReportError;
use shed_core::plan::{Outcome, RefusalReason};
use shed_core::snapshot::{AttemptKind, KillKind};

use crate::durable_state::metrics::StateMetrics;
use crate::lease::metrics::LeaseMetrics;

pub mod disowned_reasons;
pub mod dropped_reasons;
mod jobs;
mod ledger;
mod planning;
mod progress;
mod reconciles;

pub use jobs::JobSeries;
pub use ledger::LedgerMetrics;
pub use planning::PlanningMetrics;
pub use progress::ProgressMetrics;
pub use reconciles::ReconcileMetrics;

/// Labels of a series of one job.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct JobLabels {
    /// Namespace of the job. A scrape sets `namespace` itself.
    pub job_namespace: String,
    /// Name of the job. A scrape sets `job` itself.
    pub job_name: String,
}

/// One label `kind`.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct Kind {
    /// Its value.
    pub kind: &'static str,
}

/// One label `operation`.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct Operation {
    /// Its value.
    pub operation: &'static str,
}

/// Kind and outcome of a finished attempt.
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
const REFUSALS: [RefusalReason; 13] = [
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
    RefusalReason::Stopped,
    RefusalReason::JobBudget,
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
    /// Attempts finished.
    pub ended: Family<Ended, Counter>,
    /// Attempts stopped, by rule.
    pub kills: Family<Why, Counter>,
    /// Tasks won by a clone.
    pub clone_wins: Counter,
    /// Clones that the optimizer wanted and did not get.
    pub clones_refused: Family<Why, Counter>,
    /// Capacity that attempts hold.
    pub capacity_used: Family<ResourceLabel, GaugeF64>,
    /// Capacity that attempts may use.
    pub capacity_usable: Family<ResourceLabel, GaugeF64>,
    /// Planning passes.
    pub planning: PlanningMetrics,
    /// Progress polls and what they returned.
    pub progress: ProgressMetrics,
    /// Attempts that received a commit grant.
    pub grants: Counter,
    /// Polls and grants to which a fenced attempt's agent did not respond.
    pub fence_unanswered: Counter,
    /// Pods that the apiserver refused.
    pub pods_refused: Family<Why, Counter>,
    /// Pods that carry a job's label but are not its attempts.
    pub pods_disowned: Family<Why, Counter>,
    /// Writes to the apiserver.
    pub writes: Family<Operation, Counter>,
    /// Planning passes and finished attempts that are missing in the recording.
    pub recording_lost: Counter,
    /// Writes of ledgers.
    pub ledger: LedgerMetrics,
    /// Events that were not sent.
    pub events_dropped: Family<Why, Counter>,
    /// Reconciles that failed, and jobs that are not reconciled.
    pub reconciles: ReconcileMetrics,
    /// Largest possible difference between the operator's time and the apiserver's.
    pub clock_uncertainty: GaugeF64,
    /// How far the apiserver's clock is ahead of this machine's.
    pub clock_offset: GaugeF64,
    /// The election.
    pub lease: LeaseMetrics,
    /// The stored state.
    pub state: StateMetrics,
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
        let mut metrics = Self {
            jobs: JobSeries::register(&mut registry),
            deadlines_met: register!("deadlines_met", "Jobs that met their deadline"),
            deadlines_missed: register!("deadlines_missed", "Jobs that missed their deadline"),
            launched: register!("attempts_launched", "Attempts launched"),
            ended: register!("attempts_finished", "Attempts finished, by outcome"),
            kills: register!("attempts_stopped", "Attempts that shed stopped, by rule"),
            clone_wins: register!("clone_wins", "Tasks won by a clone"),
            clones_refused: register!(
                "clones_refused",
                "Clones that the policy requested and shed did not launch, by reason"
            ),
            capacity_used: register!("capacity_used", "Resources that attempts hold"),
            capacity_usable: register!("capacity_usable", "Resources that attempts may use"),
            planning: PlanningMetrics::register(&mut registry),
            progress: ProgressMetrics::register(&mut registry),
            grants: register!("commit_grants", "Attempts that received a commit grant"),
            fence_unanswered: register!(
                "fence_requests_unanswered",
                "Polls and commit grants to which a fenced attempt's agent did not respond"
            ),
            pods_refused: register!(
                "pods_refused",
                "Attempt pods that the apiserver refused to create, by reason"
            ),
            pods_disowned: register!(
                "pods_disowned",
                "Pods that carry a job's label but are not its attempts, by reason"
            ),
            writes: register!("apiserver_writes", "Writes to the apiserver, by operation"),
            recording_lost: register!(
                "recording_entries_lost",
                "Planning passes and finished attempts that are missing in the recording"
            ),
            ledger: LedgerMetrics::register(&mut registry),
            events_dropped: register!(
                "events_dropped",
                "Events that shed did not write because its queue was full or the apiserver refused them"
            ),
            reconciles: ReconcileMetrics::register(&mut registry),
            clock_uncertainty: register!(
                "clock_uncertainty_seconds",
                "Largest possible difference between the operator's time and the apiserver's time. \
                 Above 2 s shed stops no job at its deadline. Infinite before the first response"
            ),
            clock_offset: register!(
                "clock_offset_seconds",
                "Apiserver's clock minus the operator's wall clock"
            ),
            lease: LeaseMetrics::register(&mut registry),
            state: StateMetrics::register(&mut registry),
            registry: Registry::default(),
        };
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
        for reason in KILLS.map(KillKind::label) {
            let _ = self.kills.get_or_create(&Why { reason });
        }
        for reason in REFUSALS.map(RefusalReason::label) {
            let _ = self.clones_refused.get_or_create(&Why { reason });
        }
        for reason in dropped_reasons::ALL {
            let _ = self.events_dropped.get_or_create(&Why { reason });
        }
        for reason in disowned_reasons::ALL {
            let _ = self.pods_disowned.get_or_create(&Why { reason });
        }
        for reason in REPORT_FAULTS.map(|fault| fault.label()) {
            let _ = self.progress.refused.get_or_create(&Why { reason });
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
            job_namespace: "team".to_owned(),
            job_name: "count".to_owned(),
        };
        metrics.jobs.pocd.get_or_create(&labels).set(0.97);
        metrics.deadlines_met.inc();
        let page = metrics.page().unwrap();
        assert!(
            page.contains(r#"shed_job_pocd{job_namespace="team",job_name="count"} 0.97"#),
            "{page}"
        );
        assert!(page.contains("shed_deadlines_met_total 1"));
        // Prometheus sets these itself.
        for label in ["job", "namespace", "instance", "pod", "container"] {
            let collides = [format!("{{{label}=\""), format!(",{label}=\"")];
            assert!(!collides.iter().any(|text| page.contains(text)), "{label}");
        }
        metrics.forget_job(&labels);
        assert!(!metrics.page().unwrap().contains("job_name=\"count\""));
    }
}
