//! Pruning at instants of a policy's own, and in favor of clones.

use shed_core::policy::{Desk, PolicyRule, prune};
use shed_core::round::{AttemptEstimate, JobView, TaskEstimate};
use shed_core::snapshot::{AttemptKind, SpeculationMode};
use shed_core::time::Instant;

/// Keeps the best attempt of each task in the jobs that are due. Jobs that act remember the instant in the field
/// that `pruned` returns.
pub(crate) fn prune_due<R: PolicyRule>(
    desk: &mut Desk<'_, '_, R>,
    is_due: impl Fn(&JobView<'_>, &R::State) -> bool,
    pruned: fn(&mut R::State) -> &mut Option<Instant>,
) {
    let now = desk.now();
    let states = desk.jobs().iter().zip(desk.states());
    let due: Vec<bool> = states.map(|(job, state)| is_due(job, state)).collect();
    prune::prune(desk, |rivals| due.get(rivals.position) == Some(&true));
    for (position, _) in due.iter().enumerate().filter(|(_, due)| **due) {
        let acts = desk.job(position).is_some_and(|job| job.draft.optimized);
        if acts && let Some(state) = desk.state_mut(position) {
            *pruned(state) = Some(now);
        }
    }
}

/// Stops the attempts that are not clones in the tasks that `picks` selects, as soon as a clone of the task reports.
/// The clone with the earliest predicted end takes over.
pub(crate) fn prune_for_clones<R: PolicyRule>(
    desk: &mut Desk<'_, '_, R>,
    picks: impl Fn(usize, &JobView<'_>, &TaskEstimate) -> bool,
) {
    let is_clone = |attempt: &&AttemptEstimate| attempt.kind == AttemptKind::Clone;
    let mut losers = Vec::new();
    for (position, state) in desk.jobs().iter().enumerate() {
        if !state.draft.optimized || state.job.rules.speculation != SpeculationMode::Enabled {
            continue;
        }
        for task in state
            .estimate
            .tasks
            .iter()
            .filter(|task| picks(position, state, task))
        {
            let clones = task.attempts.iter().filter(is_clone);
            let reporting = clones.filter(|clone| clone.reports());
            let end = |clone: &AttemptEstimate| clone.remaining.unwrap_or(f64::INFINITY);
            let Some(kept) = reporting.min_by(|a, b| end(a).total_cmp(&end(b))) else {
                continue;
            };
            for other in task.attempts.iter().filter(|attempt| !is_clone(attempt)) {
                losers.push((position, (task.index, other.number), kept.number));
            }
        }
    }
    for (position, id, kept) in losers {
        desk.prune(position, id, kept);
    }
}
