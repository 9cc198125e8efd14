//! Which attempts go on: of several the one that will end first, of one alone another draw if
//! that is likelier to be in time.

use crate::decide::{JobState, Pass, TaskEstimate};
use crate::ids::{AttemptNumber, TaskIndex};
use crate::policy::ShedPrime;
use crate::policy::keep::{self as rivals, is_young, start_up};
use crate::policy::shed_prime::judge::{Fresh, begin};
use crate::snapshot::{Idempotency, KillKind, SpeculationMode};

/// A sibling in a close race stays: predictions are noisy.
const MARGIN: f64 = 0.1;

/// Siblings of an attempt that is all but sure to be in time go at once, those that are seen to
/// lose too, and those that have been silent for too long once the best one is expected in time.
pub(super) fn prune(pass: &mut Pass<'_>, prime: &ShedPrime) {
    let grace = start_up(pass, prime.grace);
    let ln_safe = libm::log(prime.miss_target);
    rivals::prune(pass, |rivals| {
        let (kept, other) = (rivals.kept, rivals.other);
        let ends_later = match (other.remaining, kept.remaining) {
            (Some(other), Some(kept)) => other > kept * (1.0 + MARGIN),
            _ => false,
        };
        if kept.ln_miss <= ln_safe {
            true
        } else if other.reports() {
            ends_later
        } else {
            !is_young(other, grace) && kept.remaining <= rivals.state.estimate.slack
        }
    });
}

/// Gives up lone attempts where a new one in their place is likelier to be in time. Only where
/// there is no room for a clone beside it.
pub(super) fn reroll(pass: &mut Pass<'_>, prime: &ShedPrime) {
    let someone_waits = pass.jobs.iter().any(|state| state.waiting_now() > 0);
    for position in pass.by_submission() {
        if pass.capacity.times_free(position) > 0 && !someone_waits {
            continue;
        }
        let Some(state) = pass.jobs.get(position) else {
            continue;
        };
        let rules = &state.job.rules;
        let may = state.optimized
            && rules.speculation == SpeculationMode::Enabled
            && rules.idempotency != Idempotency::None
            && state.may_launch(pass.snapshot.now)
            && state.rank.is_some_and(|(is_hopeless, _)| !is_hopeless);
        if !may {
            continue;
        }
        let fresh = Fresh::of(pass, state);
        let tasks = state.estimate.tasks.iter();
        let doomed = tasks.filter_map(|task| worse_than(&fresh, state, task, prime));
        for id in doomed.collect::<Vec<_>>() {
            pass.kill(position, id, KillKind::Restart, None);
        }
    }
}

/// The task's only attempt, if it has reported and a new one is likelier to be in time.
fn worse_than(
    fresh: &Fresh<'_, '_>,
    state: &JobState<'_>,
    task: &TaskEstimate<'_>,
    prime: &ShedPrime,
) -> Option<(TaskIndex, AttemptNumber)> {
    let [attempt] = &*task.attempts else {
        return None;
    };
    let id = (task.task.index, attempt.number);
    if !attempt.reports() || attempt.own_progress() <= 0.0 || state.doomed.contains(&id) {
        return None;
    }
    let own = -libm::expm1(attempt.ln_miss);
    let gain = fresh.chance(begin(task)) - own;
    (gain > prime.reroll_gain).then_some(id)
}
