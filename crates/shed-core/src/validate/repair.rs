//! A snapshot without invalid values: an impossible value counts as unknown.

use std::collections::BTreeSet;

use crate::ids::{JobKey, NodeName};
use crate::resources::Resources;
use crate::snapshot::{
    AttemptSnapshot, AttemptState, Grant, JobSnapshot, SlotTime, Snapshot, SpeculationMode,
    TaskSnapshot,
};
use crate::time::Instant;
use crate::validate::{
    CLOCK_SKEW_MAX, Fault, TIME_MAX, is_budget, is_finite, is_negative, is_share, is_time,
    is_weight, twice,
};

/// The snapshot without the faulty values.
pub(super) fn repaired(snapshot: &Snapshot, faults: &[Fault]) -> Snapshot {
    let mut snapshot = snapshot.clone();
    snapshot.now = nearest(snapshot.now);
    snapshot.launch_overhead = snapshot.launch_overhead.filter(|&span| is_time(span));
    snapshot
        .launch_overheads
        .retain(|_, &mut span| is_time(span));
    snapshot.weights.retain(|_, &mut weight| is_weight(weight));
    // Positions must not change: a node that is named twice has no capacity, under a name of its own.
    for at in twice(snapshot.nodes.iter().map(|node| &*node.name.0)) {
        if let Some(node) = snapshot.nodes.get_mut(at) {
            node.name = NodeName::from(format!("{}#{at}", node.name).as_str());
            (node.allocatable, node.free) = (Resources::default(), Resources::default());
        }
    }
    for node in &mut snapshot.nodes {
        not_negative(&mut node.allocatable);
    }
    let again: BTreeSet<usize> = twice(snapshot.jobs.iter().map(|job| &*job.key.0))
        .into_iter()
        .collect();
    let mut position = 0..;
    snapshot
        .jobs
        .retain(|_| position.next().is_none_or(|at| !again.contains(&at)));
    let concerned: BTreeSet<&JobKey> = faults.iter().filter_map(|f| f.job.as_ref()).collect();
    let nodes = snapshot.nodes.len();
    for job in &mut snapshot.jobs {
        if concerned.contains(&job.key) {
            repair_job(job, nodes);
        }
    }
    snapshot
}

fn repair_job(job: &mut JobSnapshot, nodes: usize) {
    job.rules.speculation = SpeculationMode::Disabled;
    let target = job.rules.target_pocd;
    job.rules.target_pocd = target.filter(|&target| is_share(target) && target > 0.0);
    let budget = job.rules.clone_budget;
    job.rules.clone_budget = budget.filter(|&share| is_budget(share));
    let SlotTime { own, clones } = job.ended_slot_time;
    if !is_time(own) || !is_time(clones) {
        job.ended_slot_time = SlotTime::default();
    }
    not_negative(&mut job.demand);
    let known: BTreeSet<_> = job
        .eligible_nodes
        .iter()
        .filter(|node| node.0 < nodes)
        .copied()
        .collect();
    job.eligible_nodes = known.into_iter().collect();
    job.submitted = nearest(job.submitted);
    job.deadline = job.deadline.filter(|&at| is_finite(at));
    job.launch_not_before = job.launch_not_before.filter(|&at| is_finite(at));
    let clones = &mut job.obstacles.clones_not_before;
    *clones = clones.filter(|&at| is_finite(at));
    job.ended_runs.retain(|&run| is_time(run));
    job.time_limit = job.time_limit.filter(|&at| is_finite(at));
    let mut tasks = std::mem::take(&mut job.tasks);
    tasks.sort_by_key(|task| task.index);
    for mut task in tasks {
        match job.tasks.last_mut() {
            // The attempts of the duplicate task still hold their capacity.
            Some(last) if last.index == task.index => last.attempts.append(&mut task.attempts),
            _ => job.tasks.push(task),
        }
    }
    for task in &mut job.tasks {
        repair_task(task, nodes);
    }
}

fn repair_task(task: &mut TaskSnapshot, nodes: usize) {
    task.retry_not_before = task.retry_not_before.filter(|&at| is_finite(at));
    // The attempt that may be publishing is never forgotten.
    task.grant = task.grant.map(|grant| Grant {
        at: nearest(grant.at),
        ..grant
    });
    let point = task.resume_point.take();
    task.resume_point = point.filter(|point| is_share(point.progress));
    task.attempts.sort_by_key(|attempt| attempt.number);
    task.attempts.dedup_by_key(|attempt| attempt.number);
    for attempt in &mut task.attempts {
        repair_attempt(attempt, nodes);
    }
}

fn repair_attempt(attempt: &mut AttemptSnapshot, nodes: usize) {
    if !(0.0..1.0).contains(&attempt.start_progress) {
        attempt.start_progress = 0.0;
    }
    attempt.node = attempt.node.filter(|node| node.0 < nodes);
    attempt.launched = nearest(attempt.launched);
    attempt.killed_at = attempt.killed_at.map(nearest);
    let launched = attempt.launched;
    let is_sound = |&at: &Instant| is_finite(at) && launched.since(at) <= CLOCK_SKEW_MAX;
    attempt.started = attempt.started.filter(is_sound);
    match &mut attempt.state {
        AttemptState::Stuck { since: at }
        | AttemptState::Succeeded { finished: at }
        | AttemptState::Failed { finished: at, .. } => *at = nearest(*at),
        AttemptState::Launching
        | AttemptState::Pending
        | AttemptState::Running
        | AttemptState::Lost => {}
    }
    let point = attempt.checkpoint.take();
    attempt.checkpoint = point.filter(|point| is_share(point.progress));
    attempt.progress = attempt.progress.filter(|progress| {
        let shares = is_share(progress.first) && is_share(progress.last);
        let times = is_finite(progress.first_at) && is_finite(progress.last_at);
        let goes_on = progress.first <= progress.last && progress.first_at <= progress.last_at;
        shares && times && goes_on
    });
}

/// The nearest valid instant.
fn nearest(at: Instant) -> Instant {
    Instant(at.0.clamp(-TIME_MAX, TIME_MAX))
}

fn not_negative(amounts: &mut Resources) {
    if is_negative(amounts) {
        let pairs = amounts.iter().map(|(name, amount)| (name, amount.max(0)));
        *amounts = Resources::from_pairs(pairs.collect::<Vec<_>>());
    }
}
