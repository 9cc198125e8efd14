//! A task before its first attempt, and an attempt that was just launched.

use super::{AttemptKind, AttemptSnapshot, AttemptState, TaskSnapshot};
use crate::ids::{AttemptNumber, TaskIndex};
use crate::time::Instant;

impl TaskSnapshot {
    /// A task without any attempt so far.
    pub fn untouched(index: TaskIndex) -> Self {
        Self {
            index,
            winner: None,
            attempts: Vec::new(),
            failures: 0,
            clone_failures: 0,
            retry_not_before: None,
            resume_point: None,
            grant: None,
            avoid: Vec::new(),
            clone_disrupted: None,
        }
    }
}

impl AttemptSnapshot {
    /// An attempt that was launched from zero at that time, and has no node yet.
    pub fn pending(number: AttemptNumber, kind: AttemptKind, launched: Instant) -> Self {
        Self {
            number,
            kind,
            state: AttemptState::Pending,
            kill: None,
            killed_at: None,
            launched,
            node: None,
            started: None,
            start_progress: 0.0,
            progress: None,
            checkpoint: None,
            failure_rule: None,
            out_of_reach: false,
            ended_in_deletion: false,
            unplaceable: false,
            gated: false,
            unready: false,
        }
    }
}
