//! Capacity for waiting first attempts: capacity that comes free anyway is reserved for them, and clones are evicted
//! for the rest. A later pass launches them when the capacity is free.

use std::collections::BTreeMap;

use crate::capacity::{Amounts, AttemptId, NodeQueue, add, fits};
use crate::ids::AttemptNumber;
use crate::round::{AttemptEstimate, JobView, Round, TaskEstimate};
use crate::snapshot::{AttemptKind, JobSnapshot, KillKind, NodeIndex};

/// Evictions in one pass, because each examines every clone. The next pass serves the other waiting attempts; the end
/// of the first evicted pod triggers it.
const EVICTIONS_MAX: usize = 256;

/// Reserves capacity that stopped attempts will release for waiting attempts of one job. It prevents a second
/// eviction for the same attempt, and no clone takes the capacity meanwhile.
pub(super) struct Reserve {
    position: usize,
    queue: Option<NodeQueue>,
    failed: bool,
}

impl Reserve {
    pub(super) fn new(position: usize) -> Self {
        Self {
            position,
            queue: None,
            failed: false,
        }
    }

    /// Reserves for one more attempt, and evicts clones if necessary; false if even that does not suffice.
    pub(super) fn one(&mut self, pass: &mut Round<'_>, evictions: &mut Evictions) -> bool {
        if self.failed {
            return false;
        }
        let waiter = Waiter::of(pass, self.position);
        let demand = pass.capacity.demands.get(self.position).cloned();
        if let (Some(waiter), Some(demand)) = (waiter, demand) {
            let mut node = self.find_node(pass, evictions, waiter.job, &demand);
            if node.is_none() || !pass.capacity.free_after_kills.fits_total(&demand) {
                node = evictions.free_capacity(pass, &waiter, &demand, node);
            }
            self.failed = node.is_none();
            if let Some(node) = node {
                pass.capacity.free_after_kills.take(Some(node), &demand);
                pass.shares.reserve(&pass.capacity, self.position);
                if !pass.reserved.contains(&node) {
                    pass.reserved.push(node);
                }
            }
        } else {
            self.failed = true;
        }
        !self.failed
    }

    fn find_node(
        &mut self,
        pass: &mut Round<'_>,
        evictions: &Evictions,
        job: &JobSnapshot,
        demand: &Amounts,
    ) -> Option<NodeIndex> {
        let position = self.position;
        let after = &pass.capacity.free_after_kills;
        let is_bound = self.queue.is_none() && after.may_fit(demand);
        // Only an eviction gives capacity to a node that had none before.
        let freed = evictions.freed.iter().copied();
        let mut freed = freed.filter(|node| is_eligible(job, *node));
        let freed = freed.find(|&node| after.fits_node(node, demand));
        if freed.is_some() {
            return freed;
        }
        let queue = self.queue.get_or_insert_with(|| {
            let worse = [pass.doubtful(position), pass.slow(position)];
            NodeQueue::new(job, demand, after, worse)
        });
        if is_bound && queue.is_empty() {
            // Most of the next jobs are refused without a look at the nodes.
            pass.capacity.free_after_kills.bound();
            return None;
        }
        queue.find(|node| after.fits_node(node, demand), &[])
    }
}

fn is_eligible(job: &JobSnapshot, node: NodeIndex) -> bool {
    job.eligible_nodes.binary_search(&node).is_ok()
}

/// A job whose attempts wait.
struct Waiter<'a> {
    position: usize,
    job: &'a JobSnapshot,
    value_density: f64,
    /// Whether the next attempt is within its tenant's share.
    is_own: bool,
}

impl<'a> Waiter<'a> {
    fn of(pass: &Round<'a>, position: usize) -> Option<Self> {
        let state = pass.jobs.get(position)?;
        Some(Self {
            position,
            job: state.job,
            value_density: match state.job.admitted {
                Some(_) => f64::INFINITY,
                None => state.waiting_value_density(),
            },
            is_own: pass.shares.is_own(&pass.capacity, position),
        })
    }

    /// Whether the clone may be evicted for the job: a lent clone for an attempt within its tenant's share, otherwise a
    /// clone of no higher value density. A borrowed slot is no reason to evict a clone of another tenant.
    fn may_displace(&self, pass: &Round<'_>, victim: &Victim) -> bool {
        let is_apart = pass.shares.are_apart(self.position, victim.id.0);
        if is_apart && pass.shares.is_lent(victim.id.0) {
            return self.is_own || victim.value_density <= self.value_density;
        }
        (self.is_own || !is_apart) && victim.value_density <= self.value_density
    }
}

/// A clone that may be evicted.
struct Victim {
    id: AttemptId,
    node: Option<NodeIndex>,
    demand: Amounts,
    value_density: f64,
}

/// Whether the clone's end frees capacity: a clone on an unusable node, or one that holds nothing, frees none.
fn frees_capacity(
    pass: &Round<'_>,
    state: &JobView<'_>,
    task: &TaskEstimate,
    clone: &AttemptEstimate,
) -> bool {
    let facts = state.job.task(task.index);
    let mut facts = facts.into_iter().flat_map(|task| &task.attempts);
    let holds = facts.any(|a| a.number == clone.number && state.job.takes_capacity(a));
    holds && !pass.capacity.unusable.has(clone.node)
}

/// The clones that may be evicted, in order of eviction.
pub(super) struct Evictions {
    victims: Vec<Victim>,
    /// Nodes on which a clone was evicted in this pass.
    freed: Vec<NodeIndex>,
    left: usize,
}

impl Evictions {
    /// Clones of the lowest value density are evicted first, if the policy estimates it. Between equals the least
    /// progress goes first, then the youngest. A clone that is the best attempt of its task goes after all others.
    pub(super) fn new(pass: &Round<'_>) -> Self {
        let mut victims = Vec::new();
        for (position, state) in pass.jobs.iter().enumerate() {
            let Some(demand) = pass.capacity.demands.get(position) else {
                continue;
            };
            // `settle` stops the live attempts of a job that must not run.
            for task in state.estimate.cloned().filter(|_| state.may_run()) {
                let kept = task.kept().map(|kept| kept.number);
                let clones = task.attempts.iter();
                let clones = clones.filter(|a| a.kind == AttemptKind::Clone);
                for clone in clones.filter(|clone| frees_capacity(pass, state, task, clone)) {
                    let id = (position, task.index, clone.number);
                    let is_best = kept == Some(clone.number);
                    let node = clone.node.or_else(|| pass.capacity.tentative_node(id));
                    let demand = demand.clone();
                    let value_density = state.clone_value_density((id.1, id.2));
                    let victim = Victim {
                        id,
                        node,
                        demand,
                        value_density,
                    };
                    victims.push((is_best, clone.progress, clone.since_launch, victim));
                }
            }
        }
        // Not the position, because a job's position in the snapshot must not matter.
        let name = |victim: &Victim| {
            let key = pass.jobs.get(victim.id.0).map(|state| &state.job.key);
            (key, victim.id.1, victim.id.2)
        };
        victims.sort_by(|a, b| {
            a.3.value_density
                .total_cmp(&b.3.value_density)
                .then(a.0.cmp(&b.0))
                .then(a.1.total_cmp(&b.1))
                .then(a.2.total_cmp(&b.2))
                .then_with(|| name(&a.3).cmp(&name(&b.3)))
        });
        Self {
            victims: victims.into_iter().map(|(.., victim)| victim).collect(),
            freed: Vec::new(),
            left: EVICTIONS_MAX,
        }
    }

    /// Evicts clones until the demand will fit usable capacity and a node of the job: `node`, if one has capacity
    /// already. If that cannot be reached, no clone is evicted.
    fn free_capacity(
        &mut self,
        pass: &mut Round<'_>,
        waiter: &Waiter<'_>,
        demand: &Amounts,
        node: Option<NodeIndex>,
    ) -> Option<NodeIndex> {
        let (node, mut picked) = match node {
            Some(node) => (node, Vec::new()),
            None => self.clear_node(pass, waiter, demand)?,
        };
        let mut total = Amounts::from_slice(pass.capacity.free_after_kills.total());
        for victim in picked.iter().filter_map(|&at| self.victims.get(at)) {
            add(&mut total, &victim.demand, 1);
        }
        for (at, victim) in self.victims.iter().enumerate() {
            if fits(&total, demand) {
                break;
            }
            if !picked.contains(&at) && self.may_go(pass, victim, waiter, &picked) {
                add(&mut total, &victim.demand, 1);
                picked.push(at);
            }
        }
        if !fits(&total, demand) {
            return None;
        }
        self.spare(pass, node, demand, &mut picked, total);
        if picked.len() > self.left {
            return None;
        }
        self.evict(pass, picked);
        Some(node)
    }

    /// Spares the clones that turn out not to be needed, highest value density first. A small clone may have been
    /// picked before a large one that suffices alone.
    fn spare(
        &self,
        pass: &Round<'_>,
        node: NodeIndex,
        demand: &Amounts,
        picked: &mut Vec<usize>,
        mut total: Amounts,
    ) {
        let free = pass.capacity.free_after_kills.node(node);
        let mut free = Amounts::from_slice(free.unwrap_or_default());
        let on_node = |victim: &Victim| victim.node == Some(node);
        for victim in picked.iter().filter_map(|&at| self.victims.get(at)) {
            if on_node(victim) {
                add(&mut free, &victim.demand, 1);
            }
        }
        picked.sort_unstable_by(|a, b| b.cmp(a));
        picked.retain(|&at| {
            let Some(victim) = self.victims.get(at) else {
                return false;
            };
            let sign = i64::from(on_node(victim));
            add(&mut total, &victim.demand, -1);
            add(&mut free, &victim.demand, -sign);
            let is_needed = !fits(&total, demand) || !fits(&free, demand);
            if is_needed {
                add(&mut total, &victim.demand, 1);
                add(&mut free, &victim.demand, sign);
            }
            is_needed
        });
    }

    /// The node on which the first clones in order free enough capacity, and these clones.
    fn clear_node(
        &self,
        pass: &Round<'_>,
        waiter: &Waiter<'_>,
        demand: &Amounts,
    ) -> Option<(NodeIndex, Vec<usize>)> {
        let mut trials: BTreeMap<NodeIndex, (Amounts, Vec<usize>)> = BTreeMap::new();
        for (at, victim) in self.victims.iter().enumerate() {
            let Some(node) = victim.node.filter(|&node| is_eligible(waiter.job, node)) else {
                continue;
            };
            let free = pass
                .capacity
                .free_after_kills
                .node(node)
                .unwrap_or_default();
            let (free, picked) = trials
                .entry(node)
                .or_insert_with(|| (Amounts::from_slice(free), Vec::new()));
            if self.may_go(pass, victim, waiter, picked) {
                add(free, &victim.demand, 1);
                picked.push(at);
                if fits(free, demand) {
                    return Some((node, std::mem::take(picked)));
                }
            }
        }
        None
    }

    /// Whether the clone may be evicted. The waiting attempt may displace it, an attempt of its task survives it and
    /// those picked, and no stop relies on it.
    fn may_go(
        &self,
        pass: &Round<'_>,
        victim: &Victim,
        waiter: &Waiter<'_>,
        picked: &[usize],
    ) -> bool {
        let (position, index, number) = victim.id;
        let Some(state) = pass.jobs.get(position) else {
            return false;
        };
        let picked = picked.iter().filter_map(|&at| self.victims.get(at));
        let going: Vec<AttemptNumber> = picked
            .filter(|other| (other.id.0, other.id.1) == (position, index))
            .map(|other| other.id.2)
            .chain([number])
            .collect();
        waiter.may_displace(pass, victim)
            && !state.draft.doomed.contains(&(index, number))
            && !state.draft.survivors.contains(&(index, number))
            && survivor(state, victim, &going).is_some()
    }

    fn evict(&mut self, pass: &mut Round<'_>, mut picked: Vec<usize>) {
        picked.sort_unstable();
        self.left = self.left.saturating_sub(picked.len());
        let going: Vec<AttemptId> = picked
            .iter()
            .filter_map(|&at| self.victims.get(at).map(|victim| victim.id))
            .collect();
        for &at in picked.iter().rev() {
            let victim = self.victims.remove(at);
            let (position, index, number) = victim.id;
            let of_task = going.iter().filter(|id| (id.0, id.1) == (position, index));
            let of_task: Vec<AttemptNumber> = of_task.map(|id| id.2).collect();
            let state = pass.jobs.get(position);
            if let Some(survivor) = state.and_then(|state| survivor(state, &victim, &of_task)) {
                self.freed.extend(victim.node);
                pass.kill(position, (index, number), KillKind::Evict, Some(survivor));
            }
        }
    }
}

/// The attempt that continues the task without `going`: the best that reports, else the first.
fn survivor(
    state: &JobView<'_>,
    victim: &Victim,
    going: &[AttemptNumber],
) -> Option<AttemptNumber> {
    let index = victim.id.1;
    let task = state.estimate.running(index)?;
    let stays = |number: AttemptNumber| {
        !going.contains(&number) && !state.draft.doomed.contains(&(index, number))
    };
    let best = task.kept().map(|kept| kept.number);
    let all = task.attempts.iter().map(|attempt| attempt.number);
    best.into_iter().chain(all).find(|&number| stays(number))
}
