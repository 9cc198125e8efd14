//! Metrics of the writes of ledgers.

use prometheus::{Histogram, IntCounter, Result, exponential_buckets};

use crate::registrar::Registrar;

/// Metrics of the writes of ledgers.
pub struct LedgerMetrics {
    /// Bytes of status that were sent.
    pub bytes: IntCounter,
    /// Bytes of each job's object (metadata, specification, status) when it was written.
    pub object_bytes: Histogram,
    /// Writes of objects above [`crate::size::OBJECT_MAX`].
    pub over_budget: IntCounter,
    /// Writes that waited, because the job's last write or the writes of all jobs were too large.
    pub deferred: IntCounter,
}

impl LedgerMetrics {
    /// Registers everything.
    pub fn register(registrar: &mut Registrar) -> Result<Self> {
        Ok(Self {
            bytes: registrar.counter(
                "shed_ledger_write_bytes_total",
                "Bytes of job status that shed wrote to the apiserver",
            )?,
            object_bytes: registrar.histogram(
                "shed_job_object_size_bytes",
                "Size of job objects when shed writes their status",
                // 1 KiB to 2 MiB.
                &exponential_buckets(1024.0, 2.0, 12)?,
            )?,
            over_budget: registrar.counter(
                "shed_job_objects_over_limit_total",
                "Status writes of job objects larger than 1 MiB",
            )?,
            deferred: registrar.counter(
                "shed_ledger_writes_deferred_total",
                "Status writes that waited for the byte-rate limit of their job or of all jobs",
            )?,
        })
    }
}
