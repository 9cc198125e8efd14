//! The next attempts of the group that is served, listed a few at a time, because each list is a walk over its tasks.

use std::collections::VecDeque;

use shed_core::decide::next_attempts;
use shed_core::plan::Launch;
use shed_core::snapshot::{JobPhase, JobSnapshot};
use shed_core::time::Instant;

/// The most attempts that are listed at a time.
const LISTED_MAX: u32 = 1024;

/// The next attempts of one group.
#[derive(Debug, Default)]
pub(super) struct Listed {
    of: Option<u32>,
    launches: VecDeque<Launch>,
}

impl Listed {
    /// The group's next attempt, if a task of it may start now.
    pub(super) fn next(
        &mut self,
        now: Instant,
        id: u32,
        facts: Option<&JobSnapshot>,
    ) -> Option<Launch> {
        let facts = facts.filter(|facts| facts.phase == JobPhase::Active)?;
        if self.of != Some(id) || self.launches.is_empty() {
            self.of = Some(id);
            self.launches = next_attempts(now, facts, LISTED_MAX).into();
        }
        self.launches.pop_front()
    }

    /// The group's tasks have changed.
    pub(super) fn forget(&mut self, id: u32) {
        if self.of == Some(id) {
            *self = Self::default();
        }
    }
}
