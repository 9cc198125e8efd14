//! Metrics of reconciles that failed, and of jobs that are not reconciled.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::Why;
use crate::quarantine::Failure;

const CRASHES: [Failure; 3] = [Failure::Panicked, Failure::Overran, Failure::Stuck];

/// Metrics of reconciles that failed, and of jobs that are not reconciled.
pub struct ReconcileMetrics {
    /// Reconciles that failed and are tried again, by step.
    pub errors: Family<Why, Counter>,
    /// Reconciles that panicked, overran their time or did not end.
    pub crashes: Family<Why, Counter>,
    /// Jobs that are not reconciled for a while, after such a failure.
    pub quarantined: Gauge,
    /// Jobs that can't be read and are left alone.
    pub unreadable: Gauge,
    /// Batch/v1 Jobs that shed has begun and no longer runs.
    pub not_adopted: Gauge,
}

impl ReconcileMetrics {
    /// Registers everything; the series of known reasons start at 0.
    #[must_use]
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            errors: Family::default(),
            crashes: Family::default(),
            quarantined: Gauge::default(),
            unreadable: Gauge::default(),
            not_adopted: Gauge::default(),
        };
        registry.register(
            "reconcile_errors",
            "Reconciles that failed, by step",
            metrics.errors.clone(),
        );
        registry.register(
            "reconcile_crashes",
            "Reconciles that panicked, timed out or got stuck; each quarantines its job",
            metrics.crashes.clone(),
        );
        for (name, help, gauge) in [
            (
                "jobs_quarantined",
                "Jobs whose reconciles are paused after a panic, a timeout or a stuck step",
                &metrics.quarantined,
            ),
            (
                "jobs_undecodable",
                "Jobs that this version of shed cannot decode and does not run",
                &metrics.unreadable,
            ),
            (
                "jobs_not_adopted",
                "Started batch/v1 Jobs that --adopt-jobs no longer selects",
                &metrics.not_adopted,
            ),
        ] {
            registry.register(name, help, gauge.clone());
        }
        for reason in CRASHES.map(Failure::label) {
            let _ = metrics.crashes.get_or_create(&Why { reason });
        }
        metrics
    }

    /// Another replica counts jobs now.
    pub fn forget_jobs(&self) {
        for gauge in [&self.quarantined, &self.unreadable, &self.not_adopted] {
            gauge.set(0);
        }
    }
}
