//! Metrics of the writes of ledgers.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

/// Metrics of the writes of ledgers.
pub struct LedgerMetrics {
    /// Bytes of status that were sent.
    pub bytes: Counter,
    /// Bytes of each job's object (metadata, specification, status) when it was written.
    pub object_bytes: Histogram,
    /// Writes of objects above [`crate::size::OBJECT_MAX`].
    pub over_budget: Counter,
    /// Writes that waited, because the job's last write or the writes of all jobs were too large.
    pub deferred: Counter,
}

impl LedgerMetrics {
    /// Registers everything.
    #[must_use]
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            bytes: Counter::default(),
            // 1 KiB to 2 MiB.
            object_bytes: Histogram::new(exponential_buckets(1024.0, 2.0, 12)),
            over_budget: Counter::default(),
            deferred: Counter::default(),
        };
        registry.register(
            "ledger_write_bytes",
            "Bytes of job status that shed wrote to the apiserver",
            metrics.bytes.clone(),
        );
        registry.register(
            "job_object_size_bytes",
            "Size of job objects when shed writes their status",
            metrics.object_bytes.clone(),
        );
        registry.register(
            "job_objects_over_limit",
            "Status writes of job objects larger than 1 MiB",
            metrics.over_budget.clone(),
        );
        registry.register(
            "ledger_writes_deferred",
            "Status writes that waited for the byte-rate limit of their job or of all jobs",
            metrics.deferred.clone(),
        );
        metrics
    }
}
