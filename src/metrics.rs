//! Prometheus metrics. Label values come from `label()` functions or are the job's own name. The series of
//! a job are removed with the job.

use prometheus::{Gauge, IntCounter, Registry, Result, TextEncoder};

use crate::durable_state::metrics::StateMetrics;
use crate::lease::metrics::LeaseMetrics;
use crate::registrar::{Counters, Gauges, Listed, Registrar};

mod attempts;
pub mod disowned_reasons;
pub mod dropped_reasons;
mod jobs;
mod ledger;
mod planning;
mod progress;
mod reconciles;

pub use attempts::{AttemptMetrics, WON};
pub use jobs::JobSeries;
pub use ledger::LedgerMetrics;
pub use planning::PlanningMetrics;
pub use progress::ProgressMetrics;
pub use reconciles::ReconcileMetrics;

/// Labels of a series of one job.
#[derive(Clone, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub struct JobLabels {
    /// Namespace of the job. A scrape sets `namespace` itself.
    pub job_namespace: String,
    /// Name of the job. A scrape sets `job` itself.
    pub job_name: String,
}

/// Everything that is exported.
pub struct Metrics {
    registry: Registry,
    listed: Vec<Listed>,
    /// Series of each unfinished job.
    pub jobs: JobSeries,
    /// Jobs complete in time.
    pub deadlines_met: IntCounter,
    /// Jobs that missed their deadline.
    pub deadlines_missed: IntCounter,
    /// Attempts.
    pub attempts: AttemptMetrics,
    /// Capacity that attempts hold, by resource.
    pub capacity_used: Gauges<2>,
    /// Capacity that attempts may use, by resource.
    pub capacity_usable: Gauges<2>,
    /// Planning passes.
    pub planning: PlanningMetrics,
    /// Progress polls and what they returned.
    pub progress: ProgressMetrics,
    /// Writes to the apiserver, by operation.
    pub writes: Counters<1>,
    /// Planning passes and finished attempts that are missing in the recording.
    pub recording_lost: IntCounter,
    /// Writes of ledgers.
    pub ledger: LedgerMetrics,
    /// Events that were not sent, by reason.
    pub events_dropped: Counters<1>,
    /// Reconciles that failed, and jobs that are not reconciled.
    pub reconciles: ReconcileMetrics,
    /// Largest possible difference between the operator's time and the apiserver's.
    pub clock_uncertainty: Gauge,
    /// How far the apiserver's clock is ahead of this machine's.
    pub clock_offset: Gauge,
    /// The election.
    pub lease: LeaseMetrics,
    /// The stored state.
    pub state: StateMetrics,
}

impl Metrics {
    /// Registers everything.
    ///
    /// # Errors
    /// If two metrics have one name, or a name is invalid.
    pub fn new() -> Result<Self> {
        let mut registrar = Registrar::default();
        #[cfg(target_os = "linux")]
        registrar.process()?;
        let metrics = Self {
            jobs: JobSeries::register(&mut registrar)?,
            deadlines_met: registrar.counter(
                "shed_deadlines_met_total",
                "Jobs that met their deadline",
            )?,
            deadlines_missed: registrar.counter(
                "shed_deadlines_missed_total",
                "Jobs that missed their deadline",
            )?,
            attempts: AttemptMetrics::register(&mut registrar)?,
            capacity_used: registrar.gauges(
                "shed_capacity_used",
                "Resources that attempts hold, in the unit of the label",
                ["resource", "unit"],
            )?,
            capacity_usable: registrar.gauges(
                "shed_capacity_usable",
                "Resources that attempts may use, in the unit of the label",
                ["resource", "unit"],
            )?,
            planning: PlanningMetrics::register(&mut registrar)?,
            progress: ProgressMetrics::register(&mut registrar)?,
            writes: registrar.counters(
                "shed_apiserver_writes_total",
                "Writes to the apiserver, by operation",
                ["operation"],
            )?,
            recording_lost: registrar.counter(
                "shed_recording_entries_lost_total",
                "Planning passes and finished attempts that are missing in the recording",
            )?,
            ledger: LedgerMetrics::register(&mut registrar)?,
            events_dropped: registrar.counters(
                "shed_events_dropped_total",
                "Events that shed did not write because its queue was full or the apiserver refused them",
                ["reason"],
            )?,
            reconciles: ReconcileMetrics::register(&mut registrar)?,
            clock_uncertainty: registrar.gauge(
                "shed_clock_uncertainty_seconds",
                "Largest possible difference between the operator's time and the apiserver's time. \
                 Above 2 s shed stops no job at its deadline. Infinite before the first response",
            )?,
            clock_offset: registrar.gauge(
                "shed_clock_offset_seconds",
                "Apiserver's clock minus the operator's wall clock",
            )?,
            lease: LeaseMetrics::register(&mut registrar)?,
            state: StateMetrics::register(&mut registrar)?,
            registry: Registry::default(),
            listed: Vec::new(),
        };
        for reason in dropped_reasons::ALL {
            let _ = metrics.events_dropped.with([reason]);
        }
        let (registry, listed) = registrar.finish();
        Ok(Self {
            registry,
            listed,
            ..metrics
        })
    }

    /// Every metric, by name, also those without a series now.
    #[must_use]
    pub fn listed(&self) -> &[Listed] {
        &self.listed
    }

    /// The page that Prometheus scrapes.
    ///
    /// # Errors
    /// If the text can't be written, which a `String` never refuses.
    pub fn page(&self) -> Result<String> {
        TextEncoder::new().encode_to_string(&self.registry.gather())
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

/// A counter that no page shows.
#[cfg(test)]
pub fn loose_counter() -> IntCounter {
    IntCounter::new("loose", "for a test").unwrap()
}

#[cfg(test)]
mod tests;
