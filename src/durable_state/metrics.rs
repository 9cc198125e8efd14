//! Metrics of the stored state.

use prometheus::{IntCounter, IntGauge};

use crate::registrar::{Counters, metrics};

/// The text is broken, and shed replaces it.
pub const BROKEN: &str = "broken";
/// A newer version of shed wrote it, and this one leaves it unchanged.
pub const NEWER: &str = "newer";
/// The apiserver does not return it.
pub const UNREADABLE: &str = "unreadable";

/// All reasons why the stored state is not used.
pub const REASONS: [&str; 3] = [BROKEN, NEWER, UNREADABLE];

metrics! {
    /// Metrics of the stored state; clones count the same.
    #[derive(Clone)]
    pub struct StateMetrics {
        pub restored: IntGauge = "shed_state_restored_entries",
            "Classes, tenants and jobs in the stored state that this replica's last term began with";
        pub bytes: IntGauge = "shed_state_bytes",
            "Size of the stored state that this replica read or wrote last";
        pub writes: IntCounter = "shed_state_writes_total",
            "Writes of the stored state";
        pub write_errors: IntCounter = "shed_state_write_errors_total",
            "Writes of the stored state that failed";
        pub dropped: IntCounter = "shed_state_entries_dropped_total",
            "Entries left out of the stored state because of its size limit";
        pub unusable: Counters<1> = "shed_state_unusable_total",
            "Reads of a stored state that shed could not use, by reason", ["reason"];
    } => Self::show_zeros
}

impl StateMetrics {
    fn show_zeros(&self) {
        for reason in REASONS {
            let _ = self.unusable.with([reason]);
        }
    }
}
