//! Metrics of the time for which attempts held their slots.

use std::sync::Arc;

use prometheus::{Counter, Result};
use shed_core::snapshot::{AttemptKind, KillKind};

use super::WON;
use super::namespaces::FirstNamespaces;
use crate::registrar::{Registrar, Sums, metrics};

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
    struct Families {
        held: Sums<2> = "shed_attempt_slot_seconds_total",
            "Slot time of finished attempts, from launch to end, by kind and outcome; `won` is useful",
            ["kind", "outcome"];
        by_namespace: Sums<2> = "shed_namespace_slot_seconds_total",
            "Slot time of finished attempts by namespace and outcome: won, clone_lost for clones that did not win, or lost",
            ["job_namespace", "outcome"];
        saved: Counter = "shed_resume_saved_seconds_total",
            "Time that winners saved because they began at a checkpoint, at the speed that they had after it";
        lost: Sums<1> = "shed_disruption_lost_slot_seconds_total",
            "Slot time of attempts that were disrupted or stopped before their task was done, by reason", ["reason"];
    } => Self::show_zeros
}

impl Families {
    fn show_zeros(&self) {
        let kills = DISRUPTIVE.map(KillKind::label);
        for reason in kills.into_iter().chain([POD_DISRUPTED, POD_LOST]) {
            let _ = self.lost.with([reason]);
        }
    }
}

/// Metrics of slot time.
pub struct SlotTimeMetrics {
    families: Families,
    own: FirstNamespaces,
}

impl SlotTimeMetrics {
    /// Registers everything.
    pub fn register(registrar: &mut Registrar) -> Result<Self> {
        Ok(Self {
            families: Families::register(registrar)?,
            own: FirstNamespaces::default(),
        })
    }

    /// An attempt of this kind has held its slot for some seconds.
    pub fn held(&self, namespace: &Arc<str>, kind: AttemptKind, outcome: &str, seconds: f64) {
        let families = &self.families;
        families.held.with([kind.label(), outcome]).inc_by(seconds);
        let rough = match (outcome, kind) {
            (WON, _) => WON,
            (_, AttemptKind::Clone) => "clone_lost",
            _ => "lost",
        };
        let namespace = self.own.label(namespace);
        families
            .by_namespace
            .with([namespace, rough])
            .inc_by(seconds);
    }

    /// A checkpoint has saved some seconds.
    pub fn saved(&self, seconds: f64) {
        self.families.saved.inc_by(seconds);
    }

    /// An attempt was disrupted or stopped before its task was done.
    pub fn lost(&self, reason: &str, seconds: f64) {
        self.families.lost.with([reason]).inc_by(seconds);
    }
}
