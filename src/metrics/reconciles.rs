//! Metrics of reconciles that failed, and of jobs that are not reconciled.

use prometheus::{IntGauge, Result};

use crate::quarantine::Failure;
use crate::registrar::{Counters, Metric, MetricType, metrics};

const CRASHES: [Failure; 3] = [Failure::Panicked, Failure::Overran, Failure::Stuck];

/// A gauge of what is in progress.
pub struct InProgress(IntGauge);

impl Metric for InProgress {
    type Options = ();
    type Collected = IntGauge;
    const TYPE: MetricType = MetricType::Gauge;

    fn new(name: &str, help: &str, (): ()) -> Result<Self> {
        IntGauge::new(name, help).map(Self)
    }

    fn collector(&self) -> &IntGauge {
        &self.0
    }
}

impl InProgress {
    /// Counts one more, until the returned value is dropped.
    pub fn enter(&self) -> Entered {
        self.0.inc();
        Entered(self.0.clone())
    }
}

/// Something in progress.
pub struct Entered(IntGauge);

impl Drop for Entered {
    fn drop(&mut self) {
        self.0.dec();
    }
}

metrics! {
    /// Metrics of reconciles that failed, and of jobs that are not reconciled.
    pub struct ReconcileMetrics {
        pub errors: Counters<1> = "shed_reconcile_errors_total",
            "Reconciles that failed, by step", ["reason"];
        pub crashes: Counters<1> = "shed_reconcile_crashes_total",
            "Reconciles that panicked, timed out or got stuck; each quarantines its job", ["reason"];
        pub waiting: InProgress = "shed_reconciles_waiting",
            "Jobs that wait for one of the reconciles that may run at a time, or for their turn to launch";
        pub running: InProgress = "shed_reconciles_running",
            "Reconciles that run now";
        pub quarantined: IntGauge = "shed_jobs_quarantined",
            "Jobs whose reconciles are paused after a panic, a timeout or a stuck step";
        pub unreadable: IntGauge = "shed_jobs_undecodable",
            "Jobs that this version of shed cannot decode and does not run";
        pub not_adopted: IntGauge = "shed_jobs_not_adopted",
            "Started batch/v1 Jobs that --adopt-jobs no longer selects";
    } => Self::show_zeros
}

impl ReconcileMetrics {
    fn show_zeros(&self) {
        for failure in CRASHES {
            let _ = self.crashes.with([failure.label()]);
        }
    }

    /// Another replica counts jobs now.
    pub fn forget_jobs(&self) {
        for gauge in [&self.quarantined, &self.unreadable, &self.not_adopted] {
            gauge.set(0);
        }
    }
}
