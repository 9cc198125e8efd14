//! Metrics of the time for which attempts held their slots.

use prometheus::{Counter, Result};
use shed_core::snapshot::KillKind;

use crate::registrar::{Registrar, Sums};

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

/// Metrics of slot time.
pub struct SlotTimeMetrics {
    /// Slot time of finished attempts, by kind and outcome.
    pub held: Sums<2>,
    /// Time that winners did not need because they began at a checkpoint.
    pub saved: Counter,
    /// Slot time of attempts that were disrupted, by reason.
    pub lost: Sums<1>,
}

impl SlotTimeMetrics {
    /// Registers everything; the series of known reasons start at 0.
    pub fn register(registrar: &mut Registrar) -> Result<Self> {
        let metrics = Self {
            held: registrar.sums(
                "shed_attempt_slot_seconds_total",
                "Slot time of finished attempts, from launch to end, by kind and outcome; `won` is useful",
                ["kind", "outcome"],
            )?,
            saved: registrar.sum(
                "shed_resume_saved_seconds_total",
                "Time that winners saved because they began at a checkpoint, at the speed that they had after it",
            )?,
            lost: registrar.sums(
                "shed_disruption_lost_slot_seconds_total",
                "Slot time of attempts that were disrupted or stopped before their task was done, by reason",
                ["reason"],
            )?,
        };
        let kills = DISRUPTIVE.map(KillKind::label);
        for reason in kills.into_iter().chain([POD_DISRUPTED, POD_LOST]) {
            let _ = metrics.lost.with([reason]);
        }
        Ok(metrics)
    }
}
