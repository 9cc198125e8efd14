//! Pruning at instants of a policy's own.

use shed_core::policy::{Desk, PolicyRule, prune};
use shed_core::round::JobView;
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
        let acts = desk.job(position).is_some_and(|job| job.optimized);
        if acts && let Some(state) = desk.state_mut(position) {
            *pruned(state) = Some(now);
        }
    }
}
