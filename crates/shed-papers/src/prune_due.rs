//! Pruning at instants of a policy's own, and in favor of clones.

use shed_core::policy::{Desk, PolicyRule, prune};
use shed_core::round::{AttemptEstimate, JobView, TaskEstimate};
use shed_core::snapshot::{AttemptKind, SpeculationMode};
use shed_core::time::Instant;

/// Keeps of each task the attempt with the earliest predicted end, in the jobs that are due. Jobs that act remember the instant in the field
/// that `pruned` returns.
pub(crate) fn prune_due<R: PolicyRule>(
    desk: &mut Desk<'_, '_, R>,
    is_due: impl Fn(&JobView<'_>, &R::State) -> bool,
    pruned: fn(&mut R::State) -> &mut Option<Instant>,
) {
    let due = due(desk, is_due);
    prune::prune(desk, |rivals| due.get(rivals.position) == Some(&true));
    note(desk, &due, pruned);
}

/// Whether each job is due, by position.
fn due<R: PolicyRule>(
    desk: &Desk<'_, '_, R>,
    is_due: impl Fn(&JobView<'_>, &R::State) -> bool,
) -> Vec<bool> {
    let states = desk.jobs().iter().zip(desk.states());
    states.map(|(job, state)| is_due(job, state)).collect()
}

/// Notes the instant for the due jobs that act.
fn note<R: PolicyRule>(
    desk: &mut Desk<'_, '_, R>,
    due: &[bool],
    pruned: fn(&mut R::State) -> &mut Option<Instant>,
) {
    let now = desk.now();
    for (position, _) in due.iter().enumerate().filter(|(_, due)| **due) {
        let acts = desk.job(position).is_some_and(|job| job.draft.optimized);
        if acts && let Some(state) = desk.state_mut(position) {
            *pruned(state) = Some(now);
        }
    }
}

/// Stops the attempts that are not clones in the tasks that `picks` selects, as soon as a clone of the task has started.
/// The clone that got furthest takes over.
pub(crate) fn prune_for_clones<R: PolicyRule>(
    desk: &mut Desk<'_, '_, R>,
    picks: impl Fn(usize, &JobView<'_>, &TaskEstimate) -> bool,
) {
    let is_clone = |attempt: &&AttemptEstimate| attempt.kind == AttemptKind::Clone;
    let mut losers = Vec::new();
    for (position, state) in prunable(desk) {
        for task in state
            .estimate
            .tasks
            .iter()
            .filter(|task| picks(position, state, task))
        {
            let clones = task.attempts.iter().filter(is_clone);
            let Some(kept) = furthest(clones.filter(|clone| has_started(clone))) else {
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

/// Keeps of each task the attempt with the most progress, in the jobs that are due. Progress counts only once the
/// attempt has reported it (pitfall 11). Jobs that act remember the instant in the field that `pruned` returns.
pub(crate) fn keep_furthest<R: PolicyRule>(
    desk: &mut Desk<'_, '_, R>,
    is_due: impl Fn(&JobView<'_>, &R::State) -> bool,
    pruned: fn(&mut R::State) -> &mut Option<Instant>,
) {
    let due = due(desk, is_due);
    let mut losers = Vec::new();
    for (position, state) in
        prunable(desk).filter(|(position, _)| due.get(*position) == Some(&true))
    {
        for task in &state.estimate.tasks {
            let reporting = task.attempts.iter().filter(|attempt| attempt.reports());
            let Some(kept) = furthest(reporting) else {
                continue;
            };
            let others = task.attempts.iter().filter(|it| it.number != kept.number);
            losers.extend(others.map(|it| (position, (task.index, it.number), kept.number)));
        }
    }
    for (position, id, kept) in losers {
        desk.prune(position, id, kept);
    }
    note(desk, &due, pruned);
}

/// The jobs that act in this pass and whose users let attempts be stopped for clones.
fn prunable<'d, R: PolicyRule>(
    desk: &'d Desk<'_, '_, R>,
) -> impl Iterator<Item = (usize, &'d JobView<'d>)> {
    let jobs = desk.jobs().iter().enumerate();
    jobs.filter(|(_, state)| {
        state.draft.optimized && state.job.rules.speculation == SpeculationMode::Enabled
    })
}

/// The attempt with the most progress; of equals the one launched first.
fn furthest<'t>(
    attempts: impl Iterator<Item = &'t AttemptEstimate>,
) -> Option<&'t AttemptEstimate> {
    attempts.reduce(|best, next| {
        if next.progress > best.progress {
            next
        } else {
            best
        }
    })
}

fn has_started(attempt: &AttemptEstimate) -> bool {
    attempt.start_up.is_some() || attempt.reports()
}
