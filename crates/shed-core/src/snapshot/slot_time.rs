//! The time for which the attempts of a job held their slots.

use serde::{Deserialize, Serialize};

use super::{AttemptKind, AttemptSnapshot, AttemptState, JobSnapshot};
use crate::time::{Instant, Span};

/// The time for which attempts of a job held their slots, from launch to end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotTime {
    /// Of first attempts and retries.
    #[serde(default)]
    pub own: Span,
    /// Of clones.
    #[serde(default)]
    pub clones: Span,
}

impl SlotTime {
    /// Whether no attempt held a slot.
    pub fn is_zero(&self) -> bool {
        *self == Self::default()
    }

    /// Adds an attempt of this kind; one that ended before its launch, by another clock, adds nothing.
    pub fn add(&mut self, kind: AttemptKind, launched: Instant, until: Instant) {
        let sum = match kind {
            AttemptKind::Original | AttemptKind::Retry => &mut self.own,
            AttemptKind::Clone => &mut self.clones,
        };
        sum.0 = sum.0.saturating_add(until.since(launched).0.max(0));
    }
}

impl JobSnapshot {
    /// The slot time of all attempts up to `now`, counted ones included.
    pub fn slot_time(&self, now: Instant) -> SlotTime {
        let mut time = self.ended_slot_time;
        for attempt in self.tasks.iter().flat_map(|task| &task.attempts) {
            time.add(attempt.kind, attempt.launched, attempt.held_until(now));
        }
        time
    }
}

impl AttemptSnapshot {
    /// The end of the time for which the attempt held its slot, at most now.
    pub fn held_until(&self, now: Instant) -> Instant {
        match self.state {
            AttemptState::Succeeded { finished } | AttemptState::Failed { finished, .. } => {
                finished.min(now)
            }
            AttemptState::Launching
            | AttemptState::Pending
            | AttemptState::Stuck { .. }
            | AttemptState::Running
            | AttemptState::Lost => now,
        }
    }
}
