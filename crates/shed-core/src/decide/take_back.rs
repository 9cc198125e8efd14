//! Tenants below their shares take lent capacity back from running attempts: from those that their users allow to
//! preempt and whose checkpoint is durable, at a bounded rate. Capacity that comes free and lent clones come first.

use crate::capacity::fits;
use crate::ids::{AttemptNumber, TaskIndex};
use crate::policy::PREEMPTION_LAUNCHES;
use crate::round::{JobView, Number, Round};
use crate::snapshot::{AttemptKind, KillKind, NodeIndex};

/// A lent attempt that may be preempted.
struct Victim {
    position: usize,
    id: (TaskIndex, AttemptNumber),
    node: Option<NodeIndex>,
    slack: f64,
}

/// Serves the jobs in the order of submission, each within its tenant's share.
pub(super) fn take_back(pass: &mut Round<'_>) {
    if !pass.shares.owes() {
        return;
    }
    let mut victims = victims(pass);
    if victims.is_empty() {
        return;
    }
    let mut free = pass.capacity.free_after_kills.clone();
    let mut clones = lent_clones(pass);
    let mut served = vec![0.0; pass.shares.tenants()];
    for position in pass.by_submission() {
        let (share, tenant) = (
            pass.capacity.dominant_share(position),
            pass.shares.number(position),
        );
        for _ in 0..wanted(pass, position) {
            let Some(served) = served.get_mut(tenant) else {
                break;
            };
            if *served + share > pass.shares.own_left(position) {
                break;
            }
            *served += share;
            if take_free(pass, &mut free, position) {
                continue;
            }
            if clones > 0 {
                clones -= 1;
                continue;
            }
            let Some(at) = pick(pass, &victims, position) else {
                break;
            };
            let Victim { position, id, .. } = victims.remove(at);
            pass.shares
                .take_back(pass.capacity.dominant_share(position));
            pass.kill(position, id, KillKind::Preempt, None);
        }
    }
}

/// The attempts that the job could launch now.
fn wanted(pass: &Round<'_>, position: usize) -> u32 {
    let state = pass.jobs.get(position);
    let state = state.filter(|state| state.may_launch(pass.snapshot.now));
    state.map_or(0, JobView::launchable_now)
}

fn take_free(pass: &Round<'_>, free: &mut crate::capacity::FreeCapacity, position: usize) -> bool {
    let (state, demand) = (pass.jobs.get(position), pass.capacity.demands.get(position));
    let both = state.zip(demand);
    both.is_some_and(|(state, demand)| free.take_from(&state.job.eligible_nodes, demand))
}

/// The clones that admission may evict for tenants below their shares.
fn lent_clones(pass: &Round<'_>) -> u32 {
    let mut clones = 0;
    for (position, state) in pass.jobs.iter().enumerate() {
        if pass.shares.is_lent(position) && state.may_run() {
            let attempts = state.estimate.cloned().flat_map(|task| &task.attempts);
            clones += attempts.filter(|it| it.kind == AttemptKind::Clone).count() as u32;
        }
    }
    clones
}

/// The lent attempts that may be preempted, most slack last.
fn victims(pass: &Round<'_>) -> Vec<Victim> {
    let mut victims = Vec::new();
    for (position, state) in pass.jobs.iter().enumerate() {
        let may_yield = state.job.rules.is_preemptible() && state.may_launch(pass.snapshot.now);
        if !may_yield || !pass.shares.is_lent(position) {
            continue;
        }
        let least_run = PREEMPTION_LAUNCHES * state.launch_time().max(state.t_avg);
        for task in &state.estimate.tasks {
            let [attempt] = &*task.attempts else {
                continue;
            };
            let id = (task.index, attempt.number);
            let is_gone = pass.capacity.unusable.has(attempt.node) || state.is_stopped(id);
            if task.begin() > 0.0 && attempt.since_launch >= least_run && !is_gone {
                let slack = state.estimate.slack.unwrap_or(f64::INFINITY);
                let node = attempt.node;
                victims.push(Victim {
                    position,
                    id,
                    node,
                    slack,
                });
            }
        }
    }
    let key = |victim: &Victim| pass.jobs.get(victim.position).map(|state| &state.job.key);
    victims.sort_by_key(|victim| (Number(victim.slack), key(victim), victim.id));
    victims
}

/// Of the attempts whose slot the job can take, the one with the most slack.
fn pick(pass: &Round<'_>, victims: &[Victim], waiter: usize) -> Option<usize> {
    let (job, demand) = (
        pass.jobs.get(waiter)?.job,
        pass.capacity.demands.get(waiter)?,
    );
    victims.iter().rposition(|victim| {
        let freed = pass.capacity.demands.get(victim.position);
        let share = pass.capacity.dominant_share(victim.position);
        let is_eligible = |node| job.eligible_nodes.binary_search(&node).is_ok();
        pass.shares.is_lent(victim.position)
            && pass.shares.are_apart(waiter, victim.position)
            && pass.shares.may_take_back(share)
            && freed.is_some_and(|freed| fits(freed, demand))
            && victim.node.is_none_or(is_eligible)
    })
}
