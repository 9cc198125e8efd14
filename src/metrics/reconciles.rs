//! Metrics of reconciles that failed, and of jobs that are not reconciled.

use prometheus::{IntGauge, Result};

use crate::quarantine::Failure;
use crate::registrar::{Counters, Registrar};

const CRASHES: [Failure; 3] = [Failure::Panicked, Failure::Overran, Failure::Stuck];

/// A gauge of what is in progress.
pub struct InProgress(IntGauge);

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

/// Metrics of reconciles that failed, and of jobs that are not reconciled.
pub struct ReconcileMetrics {
    /// Reconciles that failed and are tried again, by step.
    pub errors: Counters<1>,
    /// Reconciles that panicked, overran their time or did not end, by reason.
    pub crashes: Counters<1>,
    /// Reconciles that wait for a place of their namespace.
    pub waiting: InProgress,
    /// Reconciles that run.
    pub running: InProgress,
    /// Jobs that are not reconciled for a while, after such a failure.
    pub quarantined: IntGauge,
    /// Jobs that can't be read and are left alone.
    pub unreadable: IntGauge,
    /// Batch/v1 Jobs that shed has begun and no longer runs.
    pub not_adopted: IntGauge,
}

impl ReconcileMetrics {
    /// Registers everything; the series of known reasons start at 0.
    pub fn register(registrar: &mut Registrar) -> Result<Self> {
        let metrics = Self {
            errors: registrar.counters(
                "shed_reconcile_errors_total",
                "Reconciles that failed, by step",
                ["reason"],
            )?,
            crashes: registrar.counters(
                "shed_reconcile_crashes_total",
                "Reconciles that panicked, timed out or got stuck; each quarantines its job",
                ["reason"],
            )?,
            waiting: InProgress(registrar.count(
                "shed_reconciles_waiting",
                "Jobs that wait for one of the reconciles that may run at a time, or for their turn to launch",
            )?),
            running: InProgress(
                registrar.count("shed_reconciles_running", "Reconciles that run now")?,
            ),
            quarantined: registrar.count(
                "shed_jobs_quarantined",
                "Jobs whose reconciles are paused after a panic, a timeout or a stuck step",
            )?,
            unreadable: registrar.count(
                "shed_jobs_undecodable",
                "Jobs that this version of shed cannot decode and does not run",
            )?,
            not_adopted: registrar.count(
                "shed_jobs_not_adopted",
                "Started batch/v1 Jobs that --adopt-jobs no longer selects",
            )?,
        };
        for failure in CRASHES {
            let _ = metrics.crashes.with([failure.label()]);
        }
        Ok(metrics)
    }

    /// Another replica counts jobs now.
    pub fn forget_jobs(&self) {
        for gauge in [&self.quarantined, &self.unreadable, &self.not_adopted] {
            gauge.set(0);
        }
    }
}
