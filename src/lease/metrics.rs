//! Metrics of the election.

use std::sync::atomic::AtomicI64;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// Metrics of the election; clones count the same.
#[derive(Clone, Default)]
pub struct LeaseMetrics {
    /// 1 on the replica that leads, 0 on those that wait.
    pub leader: Gauge<i64, AtomicI64>,
    /// How often this replica began to lead.
    pub terms: Counter,
    /// How often it had to stop because the Lease was not renewed in time, or is another's.
    pub lost: Counter,
    /// Reads and writes of the Lease that failed.
    pub errors: Counter,
    /// Writes that were refused because the replica no longer led.
    pub writes_refused: Counter,
}

impl LeaseMetrics {
    /// Registers everything.
    #[must_use]
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let leader = metrics.leader.clone();
        registry.register("leader", "1 on the leader, 0 on other replicas", leader);
        for (name, help, counter) in [
            (
                "lease_terms",
                "Times that this replica became leader",
                &metrics.terms,
            ),
            (
                "lease_lost",
                "Times that this replica lost the lease",
                &metrics.lost,
            ),
            (
                "lease_errors",
                "Reads and writes of the Lease that failed",
                &metrics.errors,
            ),
            (
                "write_gate_refusals",
                "Writes that the write gate refused because the replica was no longer leader",
                &metrics.writes_refused,
            ),
        ] {
            registry.register(name, help, counter.clone());
        }
        metrics
    }
}
