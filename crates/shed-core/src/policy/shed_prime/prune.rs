//! The attempts to keep: of several siblings the one that will end first. A lone attempt is restarted if a new one is
//! likelier to be in time.

use crate::estimate::log_tails::ln_normal_tail;
use crate::ids::TaskIndex;
use crate::policy::ShedPrime;
use crate::policy::prune::{self as rivals, is_young, start_up};
use crate::policy::shed_prime::PrimeDesk;
use crate::policy::shed_prime::beliefs::{Fresh, known_time};
use crate::policy::shed_prime::value_density::{is_short, rest_after_waiting};
use crate::round::{AttemptEstimate, JobView, TaskEstimate};
use crate::snapshot::{Idempotency, SpeculationMode};

/// A sibling is stopped if it ends after the kept one with this probability: ln of the rest.
const LN_BEHIND: f64 = -4.605_170_185_988_091;

/// A lone attempt is restarted if a new attempt is more likely to be in time by more
/// than this probability.
const RESTART_GAIN: f64 = 0.1;

/// The share of the task time after which an attempt has shown its speed.
const SHOWN: f64 = 0.1;

/// Stops superfluous siblings. Siblings of an attempt that is nearly sure to be in time are stopped at once. So are
/// siblings that evidently lose, and long-silent ones once the best attempt is expected in time.
///
/// The oldest attempt of a task stops only while tasks wait for capacity. Reports err, and without clones it
/// would run to its end: while no task waits, no clone can make its task later.
pub(super) fn prune(desk: &mut PrimeDesk<'_, '_>, prime: &ShedPrime) {
    let ln_safe = libm::log(prime.miss_target);
    let is_wanted = is_short(desk);
    rivals::prune(desk, |rivals| {
        if !is_wanted && is_oldest(rivals.task, rivals.other) {
            return false;
        }
        let grace = start_up(rivals.state, prime.grace);
        let (kept, other) = (rivals.kept, rivals.other);
        let ends_later = is_behind(other, kept);
        if kept.ln_miss <= ln_safe {
            true
        } else if other.reports() {
            ends_later
        } else {
            !is_young(other, grace) && kept.remaining <= rivals.state.estimate.slack
        }
    });
}

fn is_oldest(task: &TaskEstimate, attempt: &AttemptEstimate) -> bool {
    task.attempts.iter().all(|it| it.number >= attempt.number)
}

/// Whether an attempt is nearly sure to end after the kept one.
fn is_behind(other: &AttemptEstimate, kept: &AttemptEstimate) -> bool {
    let Some(lead) = other
        .remaining
        .zip(kept.remaining)
        .map(|(other, kept)| other - kept)
    else {
        return false;
    };
    let deviations = [other.deviation, kept.deviation].map(|deviation| deviation.unwrap_or(0.0));
    let deviation = libm::hypot(deviations[0], deviations[1]);
    lead > 0.0 && (deviation <= 0.0 || ln_normal_tail(lead / deviation) <= LN_BEHIND)
}

/// Gives up lone attempts where a new one is likelier to be in time. It does so only if no capacity for a clone next
/// to the attempt is left once the waiting tasks are launched.
pub(super) fn restart(desk: &mut PrimeDesk<'_, '_>) {
    let rest = rest_after_waiting(desk);
    for position in desk.by_submission() {
        let capacity = desk.capacity();
        let may_clone =
            |rest| capacity.times_free(position) > 0 && capacity.fits_in(rest, position);
        if rest.as_ref().is_some_and(may_clone) {
            continue;
        }
        let Some(state) = desk.job(position) else {
            continue;
        };
        let rules = &state.job.rules;
        let may = state.draft.optimized
            && rules.speculation == SpeculationMode::Enabled
            && rules.idempotency != Idempotency::None
            && state.may_launch(desk.now())
            && state.rank.is_some_and(|(is_hopeless, _)| !is_hopeless);
        if !may {
            continue;
        }
        let Some(fresh) = Fresh::at(desk, position) else {
            continue;
        };
        let kept = desk.restarts().kept(&state.job.tenant);
        let tasks = state.estimate.tasks.iter();
        let doomed = tasks.filter_map(|task| worse_than(&fresh, state, task, kept));
        // On an unusable node the attempt would give up its slot in vain.
        let doomed = doomed.filter(|(_, attempt)| !desk.capacity().unusable.has(attempt.node));
        let doomed = doomed.map(|(index, attempt)| (index, attempt.clone()));
        for (index, attempt) in doomed.collect::<Vec<_>>() {
            remember(desk, position, &attempt);
            desk.restart(position, (index, attempt.number));
        }
    }
}

fn remember(desk: &mut PrimeDesk<'_, '_>, position: usize, attempt: &AttemptEstimate) {
    let node = attempt
        .node
        .and_then(|node| desk.snapshot().nodes.get(node.0));
    let Some(state) = desk.job(position) else {
        return;
    };
    if let (Some(node), Some(ratio)) = (node, ln_ratio(state, attempt)) {
        let (tenant, now) = (state.job.tenant.clone(), desk.now());
        let (_, restarts) = desk.jobs_and_restarts();
        restarts.give_up(&tenant, &node.name, now, ratio);
    }
}

/// ln(the attempt's time over the median of its job).
fn ln_ratio(state: &JobView<'_>, attempt: &AttemptEstimate) -> Option<f64> {
    let ratio = libm::log(attempt.total? / known_time(state)?);
    ratio.is_finite().then_some(ratio)
}

/// Compares attempts with those that were given up on their nodes before, as soon as they have shown their speed. That
/// shows only when the pass looks at their job.
pub(super) fn learn(desk: &mut PrimeDesk<'_, '_>) {
    let nodes = &desk.snapshot().nodes;
    let now = desk.now();
    let (jobs, restarts) = desk.jobs_and_restarts();
    if restarts.is_idle() {
        return;
    }
    restarts.retain(|name| nodes.iter().any(|node| node.name == *name));
    for state in jobs.iter().filter(|state| state.is_looked_at()) {
        let tasks = state.estimate.tasks.iter();
        for attempt in tasks.flat_map(|task| &task.attempts) {
            let Some(node) = attempt.node.and_then(|node| nodes.get(node.0)) else {
                continue;
            };
            let has_shown = known_time(state).is_some_and(|time| attempt.age >= SHOWN * time);
            if has_shown
                && restarts.awaits(&state.job.tenant, &node.name, now, attempt.since_launch)
                && let Some(ratio) = ln_ratio(state, attempt)
            {
                restarts.note(&state.job.tenant, &node.name, ratio);
            }
        }
    }
}

/// The task's only attempt, if it has reported and a new one is likelier to be in time. A share `kept` of
/// ln(slowness), where that is known, is assumed to stay with the node.
fn worse_than<'t>(
    fresh: &Fresh<'_, '_>,
    state: &JobView<'_>,
    task: &'t TaskEstimate,
    kept: f64,
) -> Option<(TaskIndex, &'t AttemptEstimate)> {
    let [attempt] = &*task.attempts else {
        return None;
    };
    // Without a deadline no attempt is in time, and no attempt is better than another.
    state.estimate.slack?;
    let id = (task.index, attempt.number);
    if !attempt.reports() || attempt.own_progress() <= 0.0 || state.draft.doomed.contains(&id) {
        return None;
    }
    let own = -libm::expm1(attempt.ln_miss);
    let of_place = attempt.node.and_then(|_| ln_ratio(state, attempt));
    let slowness = libm::exp(kept * of_place.unwrap_or(0.0).max(0.0));
    let gain = fresh.chance_where(task.begin(), slowness) - own;
    (gain > RESTART_GAIN).then_some((task.index, attempt))
}
