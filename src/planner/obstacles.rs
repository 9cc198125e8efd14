//! What keeps a job's attempts from being created, among the facts that a pass decides on.

use shed_core::snapshot::JobSnapshot;
use shed_core::time::Instant;

use crate::clock::Clock;
use crate::context::Memo;
use crate::observe::job::View;

/// Adds to the facts how much the apiserver's answers let be launched; when that changes, by the
/// process's own clock.
pub fn limit(
    memo: &Memo,
    view: &View<'_>,
    facts: &mut JobSnapshot,
    clock: &Clock,
) -> Option<Instant> {
    let attempts = facts.tasks.iter().flat_map(|task| &task.attempts);
    let existing = attempts.filter(|attempt| attempt.holds_capacity()).count();
    let leaving = view.pods.values().filter(|pod| pod.is_leaving).count();
    let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let limits = memo
        .creations
        .limits(count(existing), count(leaving), view.ticks);
    let at = |ticks: Instant| clock.at(ticks);
    facts.launch_not_before = facts.launch_not_before.max(limits.not_before.map(at));
    facts.obstacles.clones_not_before = limits.clones_not_before.map(at);
    facts.obstacles.attempts_max = limits.attempts_max;
    limits.until.filter(|until| *until > view.ticks)
}
