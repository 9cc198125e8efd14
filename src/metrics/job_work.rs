//! How far an unfinished job is: its tasks and live attempts.

use shed_core::snapshot::{AttemptKind, JobSnapshot};

/// The tasks and live attempts of a job. A divided task counts as its segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobWork {
    /// Its tasks.
    pub tasks: u32,
    /// Those that are done.
    pub done: u32,
    /// Live attempts, clones included.
    pub attempts: u32,
    /// Live clones.
    pub clones: u32,
}

impl JobWork {
    /// As a pass found it.
    pub fn of(facts: &JobSnapshot) -> Self {
        let mut work = Self {
            tasks: facts.rules.completions,
            done: facts.done.len(),
            ..Self::default()
        };
        for attempt in facts.tasks.iter().flat_map(|task| task.live()) {
            work.attempts += 1;
            work.clones += u32::from(attempt.kind == AttemptKind::Clone);
        }
        work
    }
}
