//! The record of a job in its status: what happened to it, for people and tools. It continues the record of the
//! status before, so that it survives a change of leader, and no decision uses it. Pure.

mod attempts;
mod curve;
mod decisions;
mod size_limit;

use shed_core::plan::JobReport;
use shed_core::snapshot::JobSnapshot;
use shed_core::time::Instant;

use crate::api::{JobRecord, Ledger, Pocd, WaitingRecord};
use crate::clock;
use crate::job::facts;
use crate::job::notice::Notice;
use crate::job::view::JobView;

pub use size_limit::fitted;

/// No more attempts than these fit into the record of a status.
pub const ATTEMPTS_MAX: usize = 40;

/// Input of a record.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    /// The job, as it was read before the step.
    pub view: &'a JobView,
    /// The facts about it.
    pub facts: &'a JobSnapshot,
    /// Its ledger after the step.
    pub ledger: &'a Ledger,
    /// What happened in the step.
    pub notices: &'a [Notice],
    /// The planner's last report.
    pub report: Option<&'a JobReport>,
    /// Its PoCD now.
    pub pocd: Option<Pocd>,
    /// The obstacle of tasks without an attempt, if there are any.
    pub waiting: Option<&'a str>,
    /// The record so far.
    pub old: Option<&'a JobRecord>,
}

impl Input<'_> {
    fn now(&self) -> Instant {
        self.view.now
    }
}

fn count(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// The record with at most this number of attempts, which is not bounded in bytes yet.
pub fn continued(input: Input<'_>, attempts_max: usize) -> JobRecord {
    let attempts = attempts::listed(&input, attempts_max);
    let counts = &input.ledger.counts;
    let launched = counts.originals + counts.clones + counts.retries;
    let launched = usize::try_from(launched).unwrap_or_default();
    JobRecord {
        time: clock::time(input.now()),
        pocd: curve::continued(&input),
        omitted_attempts: count(launched.saturating_sub(attempts.len())),
        attempts,
        decisions: decisions::continued(&input),
        waiting: input.waiting.map(|reason| WaitingRecord {
            reason: reason.to_owned(),
            tasks: count(facts::idle_tasks(input.ledger, input.facts)),
        }),
    }
}

#[cfg(test)]
mod tests;
