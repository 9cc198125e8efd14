//! Grants of clones, within capacity and the job's target.

use super::{CloneJob, CloneTask, Odds, budget};
use crate::estimate::pocd::{gain_of_one_more, probability};
use crate::ids::TaskIndex;
use crate::plan::{CloneReport, Launch, LaunchReason, Refusal, RefusalReason};
use crate::round::{JobView, Round};
use crate::snapshot::{NodeIndex, SpeculationMode};

/// Whether the job's PoCD has reached the value that its user set.
pub(crate) fn has_enough(pass: &Round<'_>, position: usize) -> bool {
    let state = pass.jobs.get(position);
    let known = state.and_then(|state| state.job.rules.target_pocd.zip(state.draft.ln_pocd_after));
    known.is_some_and(|(target, ln_pocd)| ln_pocd >= libm::log(target))
}

/// Gives the task at that index of the job one clone if capacity allows it, and returns whether it did.
pub(crate) fn grant(
    pass: &mut Round<'_>,
    job: &mut CloneJob,
    at: usize,
    why: impl FnOnce(Odds) -> LaunchReason,
) -> bool {
    let position = job.position;
    if has_enough(pass, position) {
        job.refuse_rest(pass, RefusalReason::Target);
        return false;
    }
    let most = job.max_clones;
    let may = |task: &&mut CloneTask| !task.is_refused && task.clones_alive + task.clones < most;
    let Some(task) = job.tasks.get_mut(at).filter(may) else {
        return false;
    };
    let now = pass.snapshot.now;
    let state = pass.jobs.get_mut(position);
    let node = match state.is_some_and(|state| budget::permits(state, task, now)) {
        true => place(pass, position, task, job.fast_nodes_only),
        false => Err(RefusalReason::JobBudget),
    };
    let node = match node {
        Ok(node) => node,
        Err(why) => {
            task.is_refused = true;
            refuse(pass, position, task.index, why);
            return false;
        }
    };
    let mut launch = launch_on(pass, position, task, node);
    task.nodes.push(node);
    task.clones += 1;
    let gain = gain_of_one_more(task.ln_miss, task.ln_miss_per_clone);
    task.ln_miss += task.ln_miss_per_clone;
    let (index, cost, is_first) = (task.index, task.cost, task.clones == 1);
    let is_observed = job.mode == SpeculationMode::Observe;
    if let Some(state) = pass.jobs.get_mut(position).filter(|_| is_observed) {
        let known = state.draft.ln_pocd_unobserved.or(state.draft.ln_pocd_after);
        state.draft.ln_pocd_unobserved = known;
    }
    let odds = job.raise(pass, gain);
    let Some(state) = pass.jobs.get_mut(position) else {
        return false;
    };
    budget::charge(state, cost);
    state.draft.clones.push(CloneReport {
        task: index,
        pocd_gain: match (odds.before, odds.after) {
            (Some(before), Some(after)) => (after - before).max(0.0),
            _ => 0.0,
        },
        cost_slot_seconds: cost,
        trade: None,
    });
    launch.reason = why(odds);
    if job.mode == SpeculationMode::Enabled {
        pass.launch(position, Some(node), launch);
        return true;
    }
    if is_first {
        refuse(pass, position, index, RefusalReason::Observe);
    }
    // The jobs that observe are served last, so their clones may take capacity on paper.
    pass.capacity.launch(position, Some(node));
    true
}

fn refuse(pass: &mut Round<'_>, position: usize, task: TaskIndex, why: RefusalReason) {
    if let Some(state) = pass.jobs.get_mut(position) {
        state.draft.refusals.push(Refusal { task, why });
    }
}

/// The clone's launch. If only an avoided node has capacity, the clone must be allowed there.
fn launch_on(pass: &Round<'_>, position: usize, task: &CloneTask, node: NodeIndex) -> Launch {
    let mut launch = task.launch.clone();
    let chosen = pass.snapshot.nodes.get(node.0).map(|node| &node.name);
    launch.avoid = pass.avoid(position, task.known.iter().chain(&task.avoid).copied());
    // The scheduler may place siblings elsewhere. A clone that must avoid their nodes could then be kept off the only
    // free one.
    launch.rather_not = pass.rather_not(position, &task.nodes, &launch.avoid);
    launch.avoid.retain(|name| Some(name) != chosen);
    launch.rather_not.retain(|name| Some(name) != chosen);
    launch
}

impl CloneJob {
    /// Reports the tasks that got no clone and were not refused yet.
    pub(crate) fn refuse_rest(&mut self, pass: &mut Round<'_>, why: RefusalReason) {
        let Some(state) = pass.jobs.get_mut(self.position) else {
            return;
        };
        let tasks = self.tasks.iter_mut();
        for task in tasks.filter(|task| task.clones == 0 && !task.is_refused) {
            task.is_refused = true;
            let task = task.index;
            state.draft.refusals.push(Refusal { task, why });
        }
    }

    /// Raises the logarithm of the job's PoCD by `gain`, the effect of one more clone that its task includes already.
    fn raise(&self, pass: &mut Round<'_>, gain: f64) -> Odds {
        let state = pass.jobs.get_mut(self.position);
        let known = state.and_then(|state| state.draft.ln_pocd_after.as_mut());
        let Some(ln_pocd) = known else {
            let (before, after) = (None, None);
            return Odds { before, after };
        };
        let before = *ln_pocd;
        *ln_pocd = if before.is_finite() {
            // Tasks with a factor in common gain less than independent ones.
            (before + gain).min(0.0)
        } else {
            self.ln_pocd()
        };
        Odds {
            before: Some(probability(before)),
            after: Some(probability(*ln_pocd)),
        }
    }
}

/// The node for a clone of the task. A node that is estimated as slow and has an attempt of the task is excluded,
/// because the clone would be no faster there. So is a node where the clone could displace a first attempt.
fn place(
    pass: &mut Round<'_>,
    position: usize,
    task: &CloneTask,
    fast_nodes_only: bool,
) -> Result<NodeIndex, RefusalReason> {
    if !pass.afford(position, 1) {
        return Err(RefusalReason::Work);
    }
    let left = pass.jobs.get(position).map_or(0, JobView::attempts_left);
    let may_clone = pass.shares.may_clone(&pass.capacity, position);
    if left == 0 || !may_clone || pass.capacity.times_free(position) == 0 {
        return Err(RefusalReason::Capacity);
    }
    let both: Vec<NodeIndex>;
    let avoid = if task.avoid.is_empty() {
        &task.nodes
    } else {
        both = task.nodes.iter().chain(&task.avoid).copied().collect();
        &both
    };
    let node = pass.find_node(position, avoid);
    // A clone next to a live attempt on a slow node would suffer from the same cause.
    let spoilt =
        |node| pass.is_slow(position, node) && (fast_nodes_only || task.nodes.contains(&node));
    let node = node
        .filter(|&node| !spoilt(node))
        .ok_or(RefusalReason::NoNode)?;
    if pass.could_displace(position, node) {
        return Err(RefusalReason::Capacity);
    }
    Ok(node)
}
