//! Metrics of the stored state.

use std::sync::atomic::AtomicI64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// Why the stored state is not used.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct Unusable {
    /// One of [`REASONS`].
    pub reason: &'static str,
}

/// The text is broken, and shed replaces it.
pub const BROKEN: &str = "broken";
/// A newer version of shed wrote it, and this one leaves it unchanged.
pub const NEWER: &str = "newer";
/// The apiserver does not return it.
pub const UNREADABLE: &str = "unreadable";

/// All reasons.
pub const REASONS: [&str; 3] = [BROKEN, NEWER, UNREADABLE];

/// Metrics of the stored state; clones count the same.
#[derive(Clone, Default)]
pub struct StateMetrics {
    /// Entries that the term began with.
    pub restored: Gauge<i64, AtomicI64>,
    /// Size of the text that was read or written last.
    pub bytes: Gauge<i64, AtomicI64>,
    /// Successful writes.
    pub writes: Counter,
    /// Failed writes.
    pub write_errors: Counter,
    /// Entries that a write dropped because the text would have been too large.
    pub dropped: Counter,
    /// Reads of a state that could not be used.
    pub unusable: Family<Unusable, Counter>,
}

impl StateMetrics {
    /// Registers everything.
    #[must_use]
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register(
            "state_restored_entries",
            "Classes, tenants and jobs in the stored state that this replica's last term began with",
            metrics.restored.clone(),
        );
        registry.register(
            "state_bytes",
            "Size of the stored state that this replica read or wrote last",
            metrics.bytes.clone(),
        );
        for (name, help, counter) in [
            (
                "state_writes",
                "Writes of the stored state",
                &metrics.writes,
            ),
            (
                "state_write_errors",
                "Writes of the stored state that failed",
                &metrics.write_errors,
            ),
            (
                "state_entries_dropped",
                "Entries left out of the stored state because of its size limit",
                &metrics.dropped,
            ),
        ] {
            registry.register(name, help, counter.clone());
        }
        registry.register(
            "state_unusable",
            "Reads of a stored state that shed could not use, by reason",
            metrics.unusable.clone(),
        );
        for reason in REASONS {
            let _ = metrics.unusable.get_or_create(&Unusable { reason });
        }
        metrics
    }
}
