//! The ended attempts, for programs that list them one by one.

use shed_core::plan::Outcome as Bucket;
use shed_core::snapshot::KillKind;

use super::Engine;
use super::capacity::Capacity;
use crate::outcome::AttemptOutcome;

impl Engine<'_> {
    /// Keeps the outcome of every attempt: about a hundred bytes each.
    pub fn with_attempts(self) -> Self {
        Self {
            ended: Some(Vec::new()),
            ..self
        }
    }

    /// An attempt has ended and is accounted for.
    pub(super) fn record(
        &mut self,
        group: u32,
        slot: u32,
        kill: Option<KillKind>,
        bucket: Option<Bucket>,
    ) {
        let Some(ended) = &mut self.ended else {
            return;
        };
        let (attempt, group) = (self.attempts.get(slot), &self.groups[group as usize]);
        let has_names = matches!(self.capacity, Capacity::Nodes(_));
        ended.push(AttemptOutcome {
            job: group.job,
            stage: group.stage,
            task: attempt.task,
            number: attempt.number,
            kind: attempt.kind,
            node: attempt.node.filter(|_| has_names),
            launched: attempt.launched,
            placed: attempt.node.map(|_| attempt.placed),
            started: attempt.started,
            ended: self.now,
            begin: attempt.start_progress,
            kill,
            bucket,
        });
    }
}
