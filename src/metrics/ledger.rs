//! Metrics of the writes of ledgers.

use prometheus::{Histogram, IntCounter, exponential_buckets};

use crate::registrar::metrics;

metrics! {
    /// Metrics of the writes of ledgers.
    pub struct LedgerMetrics {
        pub bytes: IntCounter = "shed_ledger_write_bytes_total",
            "Bytes of job status that shed wrote to the apiserver";
        // 1 KiB to 2 MiB.
        pub object_bytes: Histogram = "shed_job_object_size_bytes",
            "Size of job objects when shed writes their status", exponential_buckets(1024.0, 2.0, 12)?;
        pub over_budget: IntCounter = "shed_job_objects_over_limit_total",
            "Status writes of job objects larger than 1 MiB";
        pub deferred: IntCounter = "shed_ledger_writes_deferred_total",
            "Status writes that waited for the byte-rate limit of their job or of all jobs";
    }
}
