//! Decides recorded passes again.

use shed_core::decide::Changed;
use shed_core::guard::GuardedPlanner;
use shed_core::memory::Memory;
use shed_core::plan::Plan;
use shed_core::policy::Policy;
use shed_core::snapshot::Snapshot;

use crate::schema::{Decided, Gap};

/// A planner that decides the passes of a recording again, one after another.
#[derive(Debug, Default)]
pub struct Replayer {
    planner: GuardedPlanner,
    memory: Memory,
}

impl Replayer {
    /// A planner with the memory of a file's header. The first pass looks at every job.
    pub fn new(memory: Memory) -> Self {
        Self {
            planner: GuardedPlanner::default(),
            memory,
        }
    }

    /// Continues after a gap.
    pub fn skip(&mut self, gap: Gap) {
        self.memory = gap.memory;
        if gap.passes > 0 {
            self.planner = GuardedPlanner::default();
        }
    }

    /// The memory after the last pass.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Decides a pass again in the way it was decided, and as then without the facts that are invalid. `changed` has
    /// the jobs that may have changed, by position; without it the pass looks at every job.
    pub fn pass(
        &mut self,
        snapshot: &Snapshot,
        policy: &Policy,
        changed: Option<&[bool]>,
        decided: Decided,
    ) -> Plan {
        let changed = changed.map_or(Changed::All, Changed::Marked);
        let panics = decided.panics();
        self.planner
            .decide_again(snapshot, &mut self.memory, policy, changed, panics)
    }
}
