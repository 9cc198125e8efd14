//! The budget of a job's clones: their slot-seconds as a share of the job's own. A straggler may have one clone
//! whatever the budget.

use super::CloneTask;
use crate::plan::CloneBudget;
use crate::round::{AttemptEstimate, JobView, TaskEstimate};
use crate::snapshot::AttemptKind;
use crate::time::Instant;

/// Whether the job's budget permits one more clone of the task.
pub(super) fn permits(state: &mut JobView<'_>, task: &CloneTask, now: Instant) -> bool {
    let Some(share) = state.job.rules.clone_budget else {
        return true;
    };
    let budget = state
        .draft
        .clone_budget
        .unwrap_or_else(|| weigh(state, now));
    state.draft.clone_budget = Some(budget);
    let is_first = task.clones_alive + task.clones == 0;
    if is_first && state.stragglers.binary_search(&task.index).is_ok() {
        return true;
    }
    // A clone of unknown cost has the cost 0, and no share of anything covers it.
    task.cost > 0.0 && budget.clones + budget.granted + task.cost <= share * budget.own
}

/// Takes a clone of this cost from the budget.
pub(super) fn charge(state: &mut JobView<'_>, cost: f64) {
    if let Some(budget) = &mut state.draft.clone_budget {
        budget.granted += cost;
    }
}

/// The slot-seconds of the attempts that the plan leaves alive and of those before them.
fn weigh(state: &JobView<'_>, now: Instant) -> CloneBudget {
    let spent = state.job.slot_time(now);
    let mean = state.estimate.mean_run.filter(|mean| mean.is_finite());
    let mean = mean.unwrap_or(0.0);
    let mut budget = CloneBudget {
        own: spent.own.seconds() + f64::from(state.draft.admitted) * mean,
        clones: spent.clones.seconds(),
        granted: 0.0,
    };
    for task in &state.estimate.tasks {
        let index = task.index;
        let alive = |a: &&AttemptEstimate| !state.draft.doomed.contains(&(index, a.number));
        for attempt in task.attempts.iter().filter(alive) {
            let left = left(task, attempt, mean);
            match attempt.kind {
                AttemptKind::Original | AttemptKind::Retry => budget.own += left,
                AttemptKind::Clone => budget.clones += left,
            }
        }
    }
    budget
}

/// Seconds for which the attempt is expected to hold its slot: until it or a sibling ends. Without a finite estimate
/// an attempt takes the mean time.
fn left(task: &TaskEstimate, attempt: &AttemptEstimate, mean: f64) -> f64 {
    let ends = attempt.remaining.into_iter().chain(task.remaining());
    let first = ends.filter(|end| end.is_finite()).min_by(f64::total_cmp);
    first.unwrap_or(mean - attempt.since_launch).max(0.0)
}
