//! Metrics of the election.

use prometheus::{IntCounter, IntGauge};

use crate::registrar::metrics;

metrics! {
    /// Metrics of the election; clones count the same.
    #[derive(Clone)]
    pub struct LeaseMetrics {
        pub leader: IntGauge = "shed_leader",
            "1 on the leader, 0 on other replicas";
        pub terms: IntCounter = "shed_lease_terms_total",
            "Times that this replica became leader";
        pub lost: IntCounter = "shed_lease_lost_total",
            "Times that this replica lost the lease";
        pub errors: IntCounter = "shed_lease_errors_total",
            "Reads and writes of the Lease that failed";
        pub writes_refused: IntCounter = "shed_write_gate_refusals_total",
            "Writes that the write gate refused because the replica was no longer leader";
    }
}
