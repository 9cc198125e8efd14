//! Metrics of the election.

use prometheus::{IntCounter, IntGauge, Result};

use crate::registrar::Registrar;

/// Metrics of the election; clones count the same.
#[derive(Clone)]
pub struct LeaseMetrics {
    /// 1 on the replica that leads, 0 on those that wait.
    pub leader: IntGauge,
    /// How often this replica began to lead.
    pub terms: IntCounter,
    /// How often it had to stop because the Lease was not renewed in time, or is another's.
    pub lost: IntCounter,
    /// Reads and writes of the Lease that failed.
    pub errors: IntCounter,
    /// Writes that were refused because the replica no longer led.
    pub writes_refused: IntCounter,
}

impl LeaseMetrics {
    /// Registers everything.
    pub fn register(registrar: &mut Registrar) -> Result<Self> {
        Ok(Self {
            leader: registrar.count("shed_leader", "1 on the leader, 0 on other replicas")?,
            terms: registrar.counter(
                "shed_lease_terms_total",
                "Times that this replica became leader",
            )?,
            lost: registrar.counter(
                "shed_lease_lost_total",
                "Times that this replica lost the lease",
            )?,
            errors: registrar.counter(
                "shed_lease_errors_total",
                "Reads and writes of the Lease that failed",
            )?,
            writes_refused: registrar.counter(
                "shed_write_gate_refusals_total",
                "Writes that the write gate refused because the replica was no longer leader",
            )?,
        })
    }
}
