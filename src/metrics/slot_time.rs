//! Metrics of the time for which attempts held their slots.

use prometheus::Counter;
use shed_core::snapshot::KillKind;

use crate::registrar::{Sums, metrics};

/// The reason of an attempt whose pod was evicted, preempted or deleted by another client.
pub const POD_DISRUPTED: &str = "pod_disrupted";
/// The reason of an attempt whose pod is gone without an observed end.
pub const POD_LOST: &str = "pod_lost";

/// Stops of attempts whose tasks begin again.
pub const DISRUPTIVE: [KillKind; 5] = [
    KillKind::Preempt,
    KillKind::Suspend,
    KillKind::Restart,
    KillKind::Replace,
    KillKind::Abandon,
];

metrics! {
    /// Metrics of slot time.
    pub struct SlotTimeMetrics {
        pub held: Sums<2> = "shed_attempt_slot_seconds_total",
            "Slot time of finished attempts, from launch to end, by kind and outcome; `won` is useful",
            ["kind", "outcome"];
        pub saved: Counter = "shed_resume_saved_seconds_total",
            "Time that winners saved because they began at a checkpoint, at the speed that they had after it";
        pub lost: Sums<1> = "shed_disruption_lost_slot_seconds_total",
            "Slot time of attempts that were disrupted or stopped before their task was done, by reason", ["reason"];
    } => Self::show_zeros
}

impl SlotTimeMetrics {
    fn show_zeros(&self) {
        let kills = DISRUPTIVE.map(KillKind::label);
        for reason in kills.into_iter().chain([POD_DISRUPTED, POD_LOST]) {
            let _ = self.lost.with([reason]);
        }
    }
}
