//! Observation of a run: the planner's facts and decisions, and the ends of attempts.

use shed_core::memory::Memory;
use shed_core::plan::{Plan, Settled};
use shed_core::snapshot::{JobSnapshot, Snapshot};

use super::Engine;

/// Observes a run with full passes.
pub trait Watch {
    /// `decide` returned `plan` for `snapshot` and the previous memory.
    fn pass(&mut self, snapshot: &Snapshot, memory: Memory, plan: &Plan);
    /// `settle` returned `action` for the job, which is not carried out yet.
    fn settled(&mut self, job: &JobSnapshot, action: &Settled);
}

impl<'a> Engine<'a> {
    /// The same run, observed. Only full passes are passed to the observer.
    pub fn watched(mut self, watch: &'a mut dyn Watch) -> Self {
        self.watch = Some(watch);
        self
    }

    pub(super) fn announce_settled(&mut self, group: u32, action: &Settled) {
        let Some(watch) = &mut self.watch else {
            return;
        };
        if let Some(facts) = &self.groups[group as usize].facts {
            watch.settled(facts, action);
        }
    }
}
