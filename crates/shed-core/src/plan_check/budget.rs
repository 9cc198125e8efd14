//! The rule about the budget of a job's clones. The plan's own figures must not contradict the facts, and the clones
//! must fit into them.

use std::collections::BTreeMap;

use crate::ids::TaskIndex;
use crate::plan::{CloneBudget, JobReport};
use crate::snapshot::JobSnapshot;
use crate::time::Instant;

/// Tolerance of sums, in slot-seconds.
const ROUNDING: f64 = 1e-6;

/// A clone that the plan launches: its task, and whether the task has another clone.
pub(super) type Launched = (TaskIndex, bool);

/// Why the clones exceed the job's budget. They are in the order of the plan.
pub(super) fn excess(
    job: &JobSnapshot,
    now: Instant,
    report: Option<&JobReport>,
    launched: &[Launched],
) -> Option<String> {
    let share = job.rules.clone_budget.filter(|_| !launched.is_empty())?;
    let Some((report, budget)) = report.and_then(|report| Some((report, report.clone_budget?)))
    else {
        return Some("clones are launched without a figure of their budget".to_owned());
    };
    if let Some(fault) = contradiction(job, now, budget) {
        return Some(fault);
    }
    let mut costs: BTreeMap<TaskIndex, Vec<f64>> = BTreeMap::new();
    for clone in report.clones.iter().rev() {
        let of_task = costs.entry(clone.task).or_default();
        of_task.push(clone.cost_slot_seconds);
    }
    let limit = share * budget.own + ROUNDING;
    let mut total = budget.clones;
    for &(task, is_further) in launched {
        let cost = costs.get_mut(&task).and_then(Vec::pop);
        total += cost.unwrap_or(f64::NAN);
        let is_exempt = !is_further && report.stragglers.binary_search(&task).is_ok();
        let is_covered = cost.is_some_and(|cost| cost > 0.0) && total <= limit;
        if !is_exempt && !is_covered {
            return Some(format!(
                "a clone of task {task} raises clones to {total:.1} slot-seconds, and {limit:.1} are allowed"
            ));
        }
    }
    None
}

/// A figure below what was spent already.
fn contradiction(job: &JobSnapshot, now: Instant, budget: CloneBudget) -> Option<String> {
    let spent = job.slot_time(now);
    let is_sound = |figure: f64, spent: f64| figure.is_finite() && figure >= spent - ROUNDING;
    let is_known = is_sound(budget.own, spent.own.seconds())
        && is_sound(budget.clones, spent.clones.seconds());
    (!is_known).then(|| format!("{budget:?} is less than the facts show: {spent:?}"))
}
