//! Metrics of the stored state.

use prometheus::{IntCounter, IntGauge, Result};

use crate::registrar::{Counters, Registrar};

/// The text is broken, and shed replaces it.
pub const BROKEN: &str = "broken";
/// A newer version of shed wrote it, and this one leaves it unchanged.
pub const NEWER: &str = "newer";
/// The apiserver does not return it.
pub const UNREADABLE: &str = "unreadable";

/// All reasons why the stored state is not used.
pub const REASONS: [&str; 3] = [BROKEN, NEWER, UNREADABLE];

/// Metrics of the stored state; clones count the same.
#[derive(Clone)]
pub struct StateMetrics {
    /// Entries that the term began with.
    pub restored: IntGauge,
    /// Size of the text that was read or written last.
    pub bytes: IntGauge,
    /// Successful writes.
    pub writes: IntCounter,
    /// Failed writes.
    pub write_errors: IntCounter,
    /// Entries that a write dropped because the text would have been too large.
    pub dropped: IntCounter,
    /// Reads of a state that could not be used, by reason.
    pub unusable: Counters<1>,
}

impl StateMetrics {
    /// Registers everything; the series of known reasons start at 0.
    pub fn register(registrar: &mut Registrar) -> Result<Self> {
        let metrics = Self {
            restored: registrar.count(
                "shed_state_restored_entries",
                "Classes, tenants and jobs in the stored state that this replica's last term began with",
            )?,
            bytes: registrar.count(
                "shed_state_bytes",
                "Size of the stored state that this replica read or wrote last",
            )?,
            writes: registrar.counter("shed_state_writes_total", "Writes of the stored state")?,
            write_errors: registrar.counter(
                "shed_state_write_errors_total",
                "Writes of the stored state that failed",
            )?,
            dropped: registrar.counter(
                "shed_state_entries_dropped_total",
                "Entries left out of the stored state because of its size limit",
            )?,
            unusable: registrar.counters(
                "shed_state_unusable_total",
                "Reads of a stored state that shed could not use, by reason",
                ["reason"],
            )?,
        };
        for reason in REASONS {
            let _ = metrics.unusable.with([reason]);
        }
        Ok(metrics)
    }
}
