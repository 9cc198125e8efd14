//! Capacity as the papers' slots on real nodes: the capacity that attempts may use altogether, the capacity in use,
//! and the nodes that can hold one more attempt. Free capacity only shrinks within a pass, because a stopped attempt
//! frees its capacity in a later pass, once it is gone.

use std::collections::{BTreeMap, BTreeSet};

use smallvec::SmallVec;

use crate::ids::{AttemptNumber, TaskIndex};
use crate::resources::Resources;
use crate::snapshot::{AttemptKind, AttemptSnapshot, JobSnapshot, NodeIndex, Snapshot};

mod holdings;
mod node_queue;
mod unusable;
mod waiting;

pub(crate) use holdings::Holdings;
pub(crate) use node_queue::NodeQueue;
pub(crate) use unusable::UnusableNodes;

/// The capacity that attempts may use altogether: per resource min(λ·A, A − requests of other pods). A is the
/// capacity of the usable nodes that some active job may use.
pub fn usable(snapshot: &Snapshot, capacity_share: f64) -> Resources {
    usable_beside(snapshot, capacity_share, &UnusableNodes::of(snapshot))
}

/// The capacity of the usable nodes that some active job may use, whoever uses it.
pub fn allocatable(snapshot: &Snapshot) -> Resources {
    let unusable = UnusableNodes::of(snapshot);
    let mut all = Resources::default();
    let nodes = snapshot.nodes.iter().zip((0..).map(NodeIndex));
    for (node, _) in nodes.filter(|(_, index)| !unusable.has(Some(*index))) {
        all.add(&node.allocatable);
    }
    all
}

fn usable_beside(snapshot: &Snapshot, capacity_share: f64, unusable: &UnusableNodes) -> Resources {
    let mut all = Resources::default();
    let mut left_by_others = Resources::default();
    let nodes = snapshot.nodes.iter().zip((0..).map(NodeIndex));
    for (node, _) in nodes.filter(|(_, index)| !unusable.has(Some(*index))) {
        all.add(&node.allocatable);
        left_by_others.add(&node.allocatable);
        left_by_others.subtract(&node.used_by_others);
    }
    all.scaled(capacity_share).min(&left_by_others)
}

/// The resources that some job requests, in the order of [`Amounts`].
pub(crate) fn names(snapshot: &Snapshot) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    for alike in alike(snapshot) {
        let demand = alike.first().map(|job| job.demand.iter());
        names.extend(demand.into_iter().flatten().map(|(name, _)| name));
    }
    names
}

/// Neighbors of one demand: most jobs of a cluster request one of a few.
fn alike(snapshot: &Snapshot) -> impl Iterator<Item = &[JobSnapshot]> {
    snapshot
        .jobs
        .chunk_by(|one, next| one.demand == next.demand)
}

/// Amounts of the resources that some job requests, in one fixed order. A pass compares them once per launch and
/// node, where walks through maps would take noticeable time.
pub(crate) type Amounts = SmallVec<[i64; 4]>;

/// Adds the demand to the amounts, or takes it from them.
pub(crate) fn add(amounts: &mut [i64], demand: &[i64], sign: i64) {
    for (amount, demand) in amounts.iter_mut().zip(demand) {
        *amount = amount.saturating_add(sign * demand);
    }
}

/// Whether the free amounts cover the demand.
pub(crate) fn fits(free: &[i64], demand: &[i64]) -> bool {
    free.iter()
        .zip(demand)
        .all(|(&free, &demand)| demand <= 0 || demand <= free)
}

fn times_in(free: &[i64], demand: &[i64]) -> u32 {
    let asked = free.iter().zip(demand).filter(|(_, demand)| **demand > 0);
    asked
        .map(|(free, demand)| u32::try_from(free.max(&0) / demand).unwrap_or(u32::MAX))
        .min()
        .unwrap_or(u32::MAX)
}

/// The free part of usable capacity and of each node.
#[derive(Debug, Clone)]
pub(crate) struct FreeCapacity {
    /// The free part of usable capacity.
    total: Amounts,
    /// The free part of each node, by position in the snapshot.
    nodes: Vec<Amounts>,
    /// No node has more than this of a resource. Most jobs of a full cluster are refused by it without a look at the
    /// nodes.
    most: Amounts,
}

impl FreeCapacity {
    fn new(total: Amounts, nodes: Vec<Amounts>) -> Self {
        let most = Amounts::new();
        let mut free = Self { total, nodes, most };
        free.bound();
        free
    }

    /// Finds the least bound of what a node has.
    pub(crate) fn bound(&mut self) {
        self.most = self.total.iter().map(|_| i64::MIN).collect();
        for node in &self.nodes {
            for (most, free) in self.most.iter_mut().zip(node) {
                *most = (*most).max(*free);
            }
        }
    }

    /// False only if no node covers the demand.
    pub(crate) fn may_fit(&self, demand: &[i64]) -> bool {
        fits(&self.most, demand)
    }

    /// The free part of usable capacity.
    pub(crate) fn total(&self) -> &[i64] {
        &self.total
    }

    /// The free part of the node.
    pub(crate) fn node(&self, node: NodeIndex) -> Option<&[i64]> {
        self.nodes.get(node.0).map(SmallVec::as_slice)
    }

    /// Whether usable capacity covers the demand.
    pub(crate) fn fits_total(&self, demand: &[i64]) -> bool {
        fits(&self.total, demand)
    }

    /// Whether the node covers the demand.
    pub(crate) fn fits_node(&self, node: NodeIndex, demand: &[i64]) -> bool {
        self.nodes
            .get(node.0)
            .is_some_and(|free| fits(free, demand))
    }

    /// Takes the demand from the first of these nodes that covers it; false if none does, or if usable capacity does not.
    pub(crate) fn take_from(&mut self, nodes: &[NodeIndex], demand: &[i64]) -> bool {
        let node = nodes.iter().find(|&&node| self.fits_node(node, demand));
        let node = node.copied().filter(|_| self.fits_total(demand));
        if node.is_some() {
            self.take(node, demand);
        }
        node.is_some()
    }

    /// Takes the demand from usable capacity and, if given, from the node.
    pub(crate) fn take(&mut self, node: Option<NodeIndex>, demand: &[i64]) {
        self.add(node, demand, -1);
    }

    /// Returns the demand.
    pub(crate) fn give(&mut self, node: Option<NodeIndex>, demand: &[i64]) {
        self.add(node, demand, 1);
    }

    fn add(&mut self, node: Option<NodeIndex>, demand: &[i64], sign: i64) {
        add(&mut self.total, demand, sign);
        if let Some(node) = node.and_then(|node| self.nodes.get_mut(node.0)) {
            add(node, demand, sign);
            for (most, free) in self.most.iter_mut().zip(node) {
                *most = (*most).max(*free);
            }
        }
    }
}

/// Capacity in one pass.
#[derive(Debug, Clone)]
pub struct Capacity {
    /// The usable capacity, for the report.
    pub(crate) usable: Resources,
    /// The capacity in use before the plan, for the report.
    pub(crate) used: Resources,
    usable_amounts: Amounts,
    /// The demand of each job's attempt, by position in the snapshot.
    pub(crate) demands: Vec<Amounts>,
    /// The free capacity for launches.
    pub(crate) free: FreeCapacity,
    /// The free capacity after all attempts that are being stopped are gone.
    pub(crate) free_after_kills: FreeCapacity,
    /// Attempts without a node that first fit assigned to one, ascending by job, task, number.
    placed: Vec<(AttemptId, NodeIndex)>,
    /// The node that first fit assigned to all such attempts of a job, by position in the snapshot.
    placed_together: BTreeMap<usize, NodeIndex>,
    /// First attempts and retries that were launched beyond capacity and still wait for the cluster to grow, as
    /// positions of their jobs.
    pub(crate) surging: Vec<usize>,
    /// Nodes whose attempts use no usable capacity.
    pub(crate) unusable: UnusableNodes,
    /// The same for attempts that no scheduler places, without those that no node could hold.
    pub(crate) unplaceable: Vec<usize>,
}

/// Position of the job in the snapshot, task and number.
pub type AttemptId = (usize, TaskIndex, AttemptNumber);

impl Capacity {
    /// Reads the snapshot. Attempts that have no node yet are placed by first fit. A first attempt or retry that fits
    /// nowhere is a surge attempt and holds nothing, because no node can run it before another attempt has freed
    /// capacity.
    pub(crate) fn new(snapshot: &Snapshot, capacity_share: f64) -> Self {
        let unusable = UnusableNodes::of(snapshot);
        let jobs = snapshot.jobs.iter();
        let holdings: Vec<Holdings> = jobs.map(|job| Holdings::of(job, &unusable)).collect();
        Self::with(snapshot, capacity_share, &holdings, unusable)
    }

    /// The same, given the capacity that each job's attempts hold, by position in the snapshot.
    pub(crate) fn with(
        snapshot: &Snapshot,
        capacity_share: f64,
        holdings: &[Holdings],
        unusable: UnusableNodes,
    ) -> Self {
        let names = names(snapshot);
        let amounts = |of: &Resources| names.iter().map(|name| of.get(name)).collect::<Amounts>();
        let usable = usable_beside(snapshot, capacity_share, &unusable);
        let mut used = Resources::default();
        let mut demands = Vec::with_capacity(snapshot.jobs.len());
        let mut held = holdings.iter().map(|holdings| holdings.all);
        for alike in alike(snapshot) {
            let Some(first) = alike.first() else {
                continue;
            };
            used.add_times(&first.demand, held.by_ref().take(alike.len()).sum());
            let demand = amounts(&first.demand);
            demands.extend(alike.iter().map(|_| demand.clone()));
        }
        let nodes = snapshot.nodes.iter().map(|node| match node.usable {
            true => amounts(&node.free),
            false => names.iter().map(|_| 0).collect(),
        });
        let free = FreeCapacity::new(amounts(&usable), nodes.collect());
        let mut capacity = Self {
            demands,
            usable_amounts: free.total.clone(),
            free_after_kills: free.clone(),
            free,
            usable,
            used,
            placed: Vec::new(),
            placed_together: BTreeMap::new(),
            surging: Vec::new(),
            unusable,
            unplaceable: Vec::new(),
        };
        capacity.charge_placed(holdings);
        capacity.charge_unplaced(snapshot, holdings);
        capacity.note_unplaceable(snapshot, holdings);
        capacity.free_after_kills = capacity.free.clone();
        capacity.return_killed(snapshot, holdings);
        capacity
    }

    /// Charges attempts on nodes: the nodes' free amounts include them already, usable capacity does not.
    fn charge_placed(&mut self, holdings: &[Holdings]) {
        for (demand, holdings) in self.demands.iter().zip(holdings) {
            for (free, demand) in self.free.total.iter_mut().zip(demand) {
                let held = demand.saturating_mul(holdings.placed as i64);
                *free = free.saturating_sub(held);
            }
        }
    }

    /// In the order of submission, because a job's position in the snapshot does not matter.
    fn charge_unplaced(&mut self, snapshot: &Snapshot, holdings: &[Holdings]) {
        let is_unplaced =
            |job: &JobSnapshot, a: &AttemptSnapshot| a.node.is_none() && job.takes_capacity(a);
        let jobs = snapshot.jobs.iter().zip(holdings).enumerate();
        let jobs = jobs.filter(|(_, (_, held))| held.placed < held.all);
        let mut jobs: Vec<(usize, &JobSnapshot)> = jobs.map(|(at, (job, _))| (at, job)).collect();
        jobs.sort_by_key(|(_, job)| (job.submitted, &job.key));
        for (position, job) in jobs {
            let unplaced = holdings
                .get(position)
                .map_or(0, |held| held.all - held.placed);
            if self.charge_together(position, job, unplaced) {
                continue;
            }
            let Some(demand) = self.demands.get(position) else {
                continue;
            };
            let mut queue: Option<NodeQueue> = None;
            for task in &job.tasks {
                for attempt in task.attempts.iter().filter(|a| is_unplaced(job, a)) {
                    let queue = queue
                        .get_or_insert_with(|| NodeQueue::new(job, demand, &self.free, [&[], &[]]));
                    let node = queue.find(|node| self.free.fits_node(node, demand), &[]);
                    if node.is_none() && attempt.kind != AttemptKind::Clone && attempt.lives() {
                        self.surging.push(position);
                        continue;
                    }
                    if let Some(node) = node {
                        self.placed
                            .push(((position, task.index, attempt.number), node));
                    }
                    self.free.take(node, demand);
                }
            }
        }
        self.placed.sort_unstable_by_key(|placed| placed.0);
    }

    /// Charges a job's attempts without a node at once, if the job has a single node and that holds them all.
    fn charge_together(&mut self, position: usize, job: &JobSnapshot, unplaced: usize) -> bool {
        let ([node], Some(demand)) = (&*job.eligible_nodes, self.demands.get(position)) else {
            return false;
        };
        let free = self.free.node(*node).unwrap_or_default();
        if (times_in(free, demand) as usize) < unplaced {
            return false;
        }
        let count = i64::try_from(unplaced).unwrap_or(i64::MAX);
        let all: Amounts = demand.iter().map(|one| one.saturating_mul(count)).collect();
        self.free.take(Some(*node), &all);
        self.placed_together.insert(position, *node);
        true
    }

    fn return_killed(&mut self, snapshot: &Snapshot, holdings: &[Holdings]) {
        let jobs = snapshot.jobs.iter().zip(holdings).enumerate();
        for (position, (job, _)) in jobs.filter(|(_, (_, held))| held.killed > 0) {
            for task in &job.tasks {
                for attempt in &task.attempts {
                    if attempt.kill.is_some() && job.takes_capacity(attempt) {
                        self.kill((position, task.index, attempt.number), attempt.node);
                    }
                }
            }
        }
    }

    /// The usable capacity.
    pub(crate) fn usable_amounts(&self) -> &[i64] {
        &self.usable_amounts
    }

    /// The node that an attempt without one was assigned to in this pass.
    pub fn tentative_node(&self, id: AttemptId) -> Option<NodeIndex> {
        let position = self.placed.binary_search_by_key(&id, |placed| placed.0);
        let placed = position.ok().and_then(|at| self.placed.get(at));
        let node = placed.map(|placed| placed.1);
        node.or_else(|| self.placed_together.get(&id.0).copied())
    }

    /// How often the demand fits into the free usable capacity.
    pub fn times_left(&self, position: usize) -> u32 {
        let demand = self.demands.get(position);
        demand.map_or(0, |demand| times_in(&self.free.total, demand))
    }

    /// How often the demand fits into all usable capacity.
    pub fn times_usable(&self, position: usize) -> u32 {
        let demand = self.demands.get(position);
        demand.map_or(0, |demand| times_in(&self.usable_amounts, demand))
    }

    /// The largest share of the usable capacity that one attempt of the job takes (its dominant share); infinite if
    /// it requests a resource that no node has.
    pub fn dominant_share(&self, position: usize) -> f64 {
        let shares = self.shares(position, &self.usable_amounts);
        shares.map(|(share, _)| share).fold(0.0, f64::max)
    }

    /// How well the job's demand fits the free capacity: the inner product of both, as shares of the usable capacity
    /// (Tetris, DollyMP).
    pub fn alignment(&self, position: usize) -> f64 {
        let shares = self.shares(position, self.free.total());
        let products = shares.map(|(demand, free)| demand * free);
        products.filter(|product| product.is_finite()).sum()
    }

    /// The job's demand and `amounts`, each as a share of the usable capacity.
    fn shares<'a>(
        &'a self,
        position: usize,
        amounts: &'a [i64],
    ) -> impl Iterator<Item = (f64, f64)> + 'a {
        let demand = self.demands.get(position).into_iter().flatten();
        let all = demand.zip(amounts).zip(&self.usable_amounts);
        let asked = all.filter(|((demand, _), _)| **demand > 0);
        asked.map(|((&demand, &amount), &usable)| {
            let of = |part: i64| part as f64 / usable.max(0) as f64;
            (of(demand), if amount > 0 { of(amount) } else { 0.0 })
        })
    }

    /// How often the demand fits now without the capacity that is reserved for waiting attempts.
    pub fn times_free(&self, position: usize) -> u32 {
        let both = [&self.free, &self.free_after_kills];
        let times = |demand: &Amounts| both.map(|free| times_in(&free.total, demand));
        let [now, after] = self.demands.get(position).map_or([0, 0], times);
        now.min(after)
    }

    /// How often the demand fits once the attempts that are being stopped are gone, without the capacity that is reserved
    /// for waiting attempts.
    pub fn times_free_after_kills(&self, position: usize) -> u32 {
        let demand = self.demands.get(position);
        demand.map_or(0, |demand| times_in(&self.free_after_kills.total, demand))
    }

    /// What these numbers of attempts, given by job, leave of the free usable capacity; `None` if it does not cover
    /// them.
    pub(crate) fn rest_after(&self, wanted: impl Iterator<Item = (usize, u32)>) -> Option<Amounts> {
        let mut rest = self.free.total.clone();
        for (position, attempts) in wanted {
            let demand = self.demands.get(position)?;
            if times_in(&rest, demand) < attempts {
                return None;
            }
            add(&mut rest, demand, -i64::from(attempts));
        }
        Some(rest)
    }

    /// Whether the amounts cover one more attempt of the job.
    pub(crate) fn fits_in(&self, rest: &Amounts, position: usize) -> bool {
        let demand = self.demands.get(position);
        demand.is_some_and(|demand| fits(rest, demand))
    }

    /// Takes a launch of the job from the present and from the later free capacity.
    pub(crate) fn launch(&mut self, position: usize, node: Option<NodeIndex>) {
        if let Some(demand) = self.demands.get(position) {
            self.free.take(node, demand);
            self.free_after_kills.take(node, demand);
        }
    }

    /// Records that the attempt's capacity will be free once the attempt is gone. Until then only plans for later
    /// passes may count on it.
    pub(crate) fn kill(&mut self, id: AttemptId, node: Option<NodeIndex>) {
        let node = node.or_else(|| self.tentative_node(id));
        if self.unusable.has(node) {
            return;
        }
        if let Some(demand) = self.demands.get(id.0) {
            self.free_after_kills.give(node, demand);
        }
    }
}

#[cfg(test)]
mod tests;
