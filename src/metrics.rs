//! Prometheus metrics. Label values come from `label()` functions or are the job's own name. The series of
//! a job are removed with the job.

use std::sync::Arc;

use kube::api::ObjectMeta;
use parking_lot::Mutex;
use prometheus::{Gauge, IntCounter, Registry, Result, TextEncoder};
use shed_core::time::Instant;

use crate::api::LABEL_CLASS;
use crate::cluster::identity::{Owner, OwnerKind};
use crate::durable_state::metrics::StateMetrics;
use crate::lease::metrics::LeaseMetrics;
use crate::memory_limit;
use crate::registrar::{Counters, Gauges, Listed, Registrar};
use crate::watch_age::WatchAges;

mod attempt_ends;
mod attempts;
mod blocked;
mod deadlines;
pub mod disowned_reasons;
pub mod dropped_reasons;
mod job_work;
mod jobs;
mod ledger;
mod namespaces;
mod observed;
mod planning;
mod progress;
mod reconciles;
mod reference;
mod shares;
mod slot_time;
mod watch_only;
mod workflows;

pub use attempts::{AttemptMetrics, WON};
pub use blocked::{BlockedJobs, BlockedSeries};
pub use deadlines::DeadlineMetrics;
pub use job_work::JobWork;
pub use jobs::{JobFigures, JobSeries, OWN_MAX};
pub use ledger::LedgerMetrics;
pub use observed::ObservedMetrics;
pub use planning::PlanningMetrics;
pub use progress::ProgressMetrics;
pub use reconciles::ReconcileMetrics;
pub use reference::reference;
pub use shares::ShareMetrics;
pub use slot_time::{DISRUPTIVE, POD_DISRUPTED, POD_LOST, SlotTimeMetrics};
pub use watch_only::WatchOnlyMetrics;
pub use workflows::RunLabels;

/// The `DeadlineJob` that a job's series come from.
#[derive(Clone, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub struct JobAddress {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// `job_kind` of a batch/v1 Job that shed only watches.
pub const WATCHED_JOB: &str = "WatchedJob";

/// Labels of a series of one job in addition to its namespace. A scrape sets `job` and `namespace` itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobLabels {
    /// `job_name`: name of the `DeadlineJob`, or of the batch/v1 Job that it represents.
    pub name: Arc<str>,
    /// `job_kind`: `DeadlineJob`, `Job`, or [`WATCHED_JOB`].
    pub kind: &'static str,
    /// `job_class`: class of the job; empty without one.
    pub class: Arc<str>,
}

impl JobLabels {
    /// The labels of the job with the `DeadlineJob` of this metadata.
    pub fn of(metadata: &ObjectMeta) -> Self {
        let owner = Owner::of(metadata);
        let class = metadata
            .labels
            .as_ref()
            .and_then(|labels| labels.get(LABEL_CLASS));
        Self {
            name: owner.name,
            kind: match owner.kind {
                OwnerKind::DeadlineJob => "DeadlineJob",
                OwnerKind::Job => "Job",
            },
            class: class.map_or("", String::as_str).into(),
        }
    }
}

/// Everything that is exported.
pub struct Metrics {
    registry: Registry,
    listed: Vec<Listed>,
    /// Series that show a state are written for each page, so pages are made one at a time.
    page: Mutex<()>,
    /// Series of unfinished jobs.
    pub jobs: JobSeries,
    /// Jobs that cannot start or continue.
    pub blocked: BlockedSeries,
    /// Jobs that shed only watches.
    pub watch_only: WatchOnlyMetrics,
    /// Outcomes of jobs with a deadline, and predictions.
    pub deadlines: DeadlineMetrics,
    /// Clones that were not started, because their jobs only observe.
    pub observed: ObservedMetrics,
    /// Attempts.
    pub attempts: AttemptMetrics,
    /// The time for which attempts held their slots.
    pub slot_time: SlotTimeMetrics,
    /// Capacity that attempts hold, by resource.
    pub capacity_used: Gauges<2>,
    /// Capacity that attempts may use, by resource.
    pub capacity_usable: Gauges<2>,
    /// The division of capacity between namespaces.
    pub shares: ShareMetrics,
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
    /// When the apiserver last answered the watches.
    pub watch_ages: Arc<WatchAges>,
    watch_age: Gauges<1>,
    memory_limit: Gauge,
    build_info: Gauges<1>,
    /// The election.
    pub lease: LeaseMetrics,
    /// The stored state.
    pub state: StateMetrics,
}

impl Metrics {
    /// Registers everything, with the default number of jobs that have series of their own.
    pub fn new() -> Result<Self> {
        Self::with_jobs(OWN_MAX)
    }

    /// Registers everything. About `jobs_max` jobs have series of their own.
    pub fn with_jobs(jobs_max: u32) -> Result<Self> {
        let mut registrar = Registrar::default();
        #[cfg(target_os = "linux")]
        registrar.process()?;
        let metrics = Self {
            page: Mutex::default(),
            jobs: JobSeries::register(&mut registrar, jobs_max)?,
            blocked: BlockedSeries::register(&mut registrar)?,
            watch_only: WatchOnlyMetrics::register(&mut registrar)?,
            deadlines: DeadlineMetrics::register(&mut registrar)?,
            observed: ObservedMetrics::register(&mut registrar)?,
            attempts: AttemptMetrics::register(&mut registrar)?,
            slot_time: SlotTimeMetrics::register(&mut registrar)?,
            capacity_used: registrar.register(
                "shed_capacity_used",
                "Resources that attempts hold, in the unit of the label",
                ["resource", "unit"],
            )?,
            capacity_usable: registrar.register(
                "shed_capacity_usable",
                "Resources that attempts may use, in the unit of the label",
                ["resource", "unit"],
            )?,
            shares: ShareMetrics::register(&mut registrar)?,
            planning: PlanningMetrics::register(&mut registrar)?,
            progress: ProgressMetrics::register(&mut registrar)?,
            writes: registrar.register(
                "shed_apiserver_writes_total",
                "Writes to the apiserver, by operation",
                ["operation"],
            )?,
            recording_lost: registrar.register(
                "shed_recording_entries_lost_total",
                "Planning passes and finished attempts that are missing in the recording", ()
            )?,
            ledger: LedgerMetrics::register(&mut registrar)?,
            events_dropped: registrar.register(
                "shed_events_dropped_total",
                "Events that shed did not write because too many waited, too many were written, or the apiserver refused them",
                ["reason"],
            )?,
            reconciles: ReconcileMetrics::register(&mut registrar)?,
            clock_uncertainty: registrar.register(
                "shed_clock_uncertainty_seconds",
                "Largest possible difference between the operator's time and the apiserver's time. \
                 Above 2 s shed stops no job at its deadline. Infinite before the first response", ()
            )?,
            clock_offset: registrar.register(
                "shed_clock_offset_seconds",
                "Apiserver's clock minus the operator's wall clock", ()
            )?,
            watch_ages: Arc::default(),
            watch_age: registrar.register(
                "shed_watch_age_seconds",
                "Time since the apiserver last answered the leader's watch of the resource. A healthy watch is answered \
                 every minute",
                ["resource"],
            )?,
            memory_limit: registrar.register(
                "shed_memory_limit_bytes",
                "Memory limit of the operator's container. Infinite without a limit", ()
            )?,
            build_info: registrar.register(
                "shed_build_info",
                "1, with the version of the operator",
                ["version"],
            )?,
            lease: LeaseMetrics::register(&mut registrar)?,
            state: StateMetrics::register(&mut registrar)?,
            registry: Registry::default(),
            listed: Vec::new(),
        };
        metrics.begin();
        let (registry, listed) = registrar.finish();
        Ok(Self {
            registry,
            listed,
            ..metrics
        })
    }

    /// Series that exist from the start.
    fn begin(&self) {
        for reason in dropped_reasons::ALL {
            let _ = self.events_dropped.with([reason]);
        }
        let version = env!("CARGO_PKG_VERSION");
        self.build_info.with([version]).set(1.0);
    }

    /// Every metric, by name, also those without a series now.
    pub fn listed(&self) -> &[Listed] {
        &self.listed
    }

    /// The page that Prometheus scrapes, at that time by the apiserver's clock.
    pub fn page_at(&self, now: Instant) -> Result<String> {
        let _page = self.page.lock();
        self.jobs.show(now);
        self.blocked.show();
        self.memory_limit.set(memory_limit::own());
        self.deadlines.show();
        self.watch_age.clear();
        for (resource, seconds) in self.watch_ages.seconds() {
            self.watch_age.with([&resource]).set(seconds);
        }
        TextEncoder::new().encode_to_string(&self.registry.gather())
    }

    /// The page at any time.
    #[cfg(test)]
    pub fn page(&self) -> Result<String> {
        self.page_at(Instant(0))
    }

    /// Drops the series of a job that has ended or is gone.
    pub fn forget_job(&self, address: &JobAddress) {
        self.jobs.forget(address);
    }

    /// Drops the series of all jobs: another replica shows them now.
    pub fn forget_jobs(&self) {
        self.jobs.clear();
        self.blocked.set(BlockedJobs::new());
        self.watch_only.unfinished.set(0);
        self.deadlines.show_totals(None);
        self.capacity_used.clear();
        self.capacity_usable.clear();
        self.shares.forget();
        self.watch_ages.clear();
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
