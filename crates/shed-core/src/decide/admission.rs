//! First attempts and retries: which jobs are launched when capacity is short, which clones are evicted for them, and
//! which attempts wait beyond capacity so that the cluster may grow.

use std::collections::{BTreeMap, BTreeSet};
use std::iter::Chain;
use std::vec::IntoIter;

use crate::decide::ageing::AgedShare;
use crate::decide::evict::{Evictions, Reserve};
use crate::decide::order::{Rank, Tier, ranks, shares, times};
use crate::ids::{TaskIndex, Tenant};
use crate::plan::{Launch, LaunchReason};
use crate::policy::{Order, Policy};
use crate::round::Number;
use crate::round::Round;
use crate::round::estimates::resume_point;
use crate::round::shares::Phase;
use crate::round::task_state::{TaskState, task_state};
use crate::snapshot::{AttemptKind, JobSnapshot, NodeIndex, TaskSnapshot};
use crate::time::Instant;

mod admitted;
mod altruistic;
mod borrowing;
mod by_node;
mod pending_surge;

use pending_surge::Surge;

/// Launches the attempts that fit, in the policy's order, and evicts clones for the others. A job that does not fit
/// does not delay the jobs after it.
pub(super) fn admit(pass: &mut Round<'_>, policy: &Policy) {
    let mut evictions = Evictions::new(pass);
    let mut surge = Surge::new(pass, policy.surge_max);
    admitted::serve(pass);
    // Jobs that wait as pods already come first: their capacity is reserved before anything new.
    for position in std::mem::take(&mut pass.capacity.surging) {
        if pass.shares.may_reserve(&pass.capacity, position) {
            Reserve::new(position).one(pass, &mut evictions);
        }
    }
    let paused = match policy.order {
        Order::Drf | Order::Capacity => {
            serve_by_share(pass, policy.order, &mut evictions, &mut surge)
        }
        Order::Tetris | Order::DollyMp => {
            by_node::serve_by_node(pass, policy.order, &mut evictions, &mut surge)
        }
        order => serve_ranked(pass, order, &mut evictions, &mut surge),
    };
    pass.shares.phase = Phase::Lent;
    borrowing::serve(pass, paused, &mut evictions, &mut surge);
    pass.shares.is_served = true;
}

/// A job that has more to launch than its tenant's share allows.
type Paused<'a> = (Rank<'a>, Turn<'a>);

/// Serves the jobs one after another, each to its limit.
fn serve_ranked<'a>(
    pass: &mut Round<'a>,
    order: Order,
    evictions: &mut Evictions,
    surge: &mut Surge,
) -> Vec<Paused<'a>> {
    // The other orders do not put late jobs last.
    let mut turns = match order {
        Order::LeastSlack => serve_aged(pass, evictions, surge),
        Order::Carbyne => altruistic::serve_shares(pass, evictions, surge),
        _ => BTreeMap::new(),
    };
    let mut ranks = ranks(pass, order);
    ranks.sort();
    // With several tenants, and where jobs lend, the order changes with each attempt.
    let is_steady = order != Order::Carbyne && !pass.shares.divides();
    pass.queue = is_steady.then(Vec::new);
    let mut paused = Vec::new();
    for (rank, position) in ranks {
        let turn = turns.remove(&position);
        if let Some(mut turn) = turn.or_else(|| Turn::new(pass, position)) {
            pass.expect_launches(position, turn.slots);
            while turn.step(pass, evictions, surge) {}
            let left = turn.slots.saturating_sub(turn.launched);
            if let Some(queue) = pass.queue.as_mut().filter(|_| left > 0) {
                queue.push((position, left));
            }
            turn.pause(pass, rank, &mut paused);
        }
    }
    paused
}

/// Serves jobs that have aged within their share of the capacity. Returns their turns, which continue when the job's
/// rank comes up.
fn serve_aged<'a>(
    pass: &mut Round<'a>,
    evictions: &mut Evictions,
    surge: &mut Surge,
) -> BTreeMap<usize, Turn<'a>> {
    let (mut aged, positions) = AgedShare::new(pass);
    let mut turns = BTreeMap::new();
    for position in positions {
        let Some(mut turn) = Turn::new(pass, position) else {
            continue;
        };
        while aged.fits(pass, position) && turn.step(pass, evictions, surge) {
            aged.take(pass, position);
        }
        turns.insert(position, turn);
    }
    turns
}

/// Serves attempt by attempt: always a job with the least share, which its attempts raise.
fn serve_by_share<'a>(
    pass: &mut Round<'a>,
    order: Order,
    evictions: &mut Evictions,
    surge: &mut Surge,
) -> Vec<Paused<'a>> {
    let shares = shares(pass, order);
    let mut planned: BTreeMap<Tenant, f64> = BTreeMap::new();
    let mut turns: Vec<Option<Turn<'a>>> = Vec::new();
    turns.resize_with(pass.jobs.len(), || None);
    let mut paused = Vec::new();
    let mut queue = BTreeSet::new();
    for (rank, position) in ranks(pass, order) {
        queue.insert((rank, position));
        if let Some(slot) = turns.get_mut(position) {
            *slot = Turn::new(pass, position);
        }
    }
    while let Some((rank, position)) = queue.pop_first() {
        let Some(turn) = turns.get_mut(position).and_then(Option::as_mut) else {
            continue;
        };
        let dominant = pass.capacity.dominant_share(position);
        let by_plan = match order {
            Order::Capacity => planned.get(&turn.job.tenant).copied().unwrap_or(0.0),
            _ => times(turn.taken(), dominant),
        };
        let before = shares.get(position).copied().unwrap_or(0.0);
        let (.., submitted, key) = rank;
        let current = (Tier::Usual, 0, Number(before + by_plan), submitted, key);
        if current > rank {
            // The job's share has risen since it was queued, so it moves to its new position.
            queue.insert((current, position));
        } else if turn.step(pass, evictions, surge) {
            *planned.entry(turn.job.tenant.clone()).or_insert(0.0) += dominant;
            queue.insert((current, position));
        } else if let Some(turn) = turns.get_mut(position).and_then(Option::take) {
            turn.pause(pass, current, &mut paused);
        }
    }
    paused
}

/// The first attempts and retries that the job's tasks wait for at `now`, at most `most`, in the order of service. No
/// node is chosen, and none is avoided because of what others have reported.
pub fn next_attempts(now: Instant, job: &JobSnapshot, most: u32) -> Vec<Launch> {
    let waits = |task: &&TaskSnapshot| task_state(now, job, task) == TaskState::Ready;
    let ready = job.tasks.iter().filter(waits).map(|task| task.index);
    let all = ready.chain(Untouched::new(job)).take(most as usize);
    all.map(|index| first_attempt(job, index)).collect()
}

/// The task's first attempt or retry, anywhere.
fn first_attempt(job: &JobSnapshot, index: TaskIndex) -> Launch {
    let task = job.task(index);
    Launch {
        task: index,
        kind: match task {
            Some(_) => AttemptKind::Retry,
            None => AttemptKind::Original,
        },
        resume: task.and_then(|task| resume_point(job, task)).cloned(),
        avoid: Vec::new(),
        rather_not: Vec::new(),
        node: None,
        surge: false,
        reason: LaunchReason::Admitted,
    }
}

/// A job while its first attempts and retries are served.
struct Turn<'a> {
    job: &'a JobSnapshot,
    position: usize,
    candidates: Chain<IntoIter<TaskIndex>, Untouched<'a>>,
    /// Tasks that wait for an attempt.
    total: u32,
    /// The number of tasks that may start, given parallelism.
    slots: u32,
    launched: u32,
    reserved: u32,
    /// Whether the last search found capacity.
    has_capacity: bool,
    /// Whether its tenant's share, or what is kept for other tenants, stopped it.
    is_stopped: bool,
    reserve: Reserve,
}

impl<'a> Turn<'a> {
    /// The turn of a job that shed orders.
    fn new(pass: &Round<'a>, position: usize) -> Option<Self> {
        let state = pass.jobs.get(position)?;
        let job = state.job;
        if job.admitted.is_some() {
            return None;
        }
        let slots = match job.obstacles.no_node {
            true => 1,
            false => u32::MAX,
        };
        Self::within(pass, position, slots)
    }

    /// The turn of a job with at most `slots` attempts.
    fn within(pass: &Round<'a>, position: usize, slots: u32) -> Option<Self> {
        let state = pass.jobs.get(position)?;
        let job = state.job;
        let ready = state.ready.clone();
        let total = (ready.len() as u32).saturating_add(state.untouched);
        let slots = slots.min(job.rules.parallelism.saturating_sub(state.active));
        let slots = slots.min(state.attempts_left());
        Some(Self {
            job,
            position,
            candidates: ready.into_iter().chain(Untouched::new(job)),
            total,
            slots: slots.min(total),
            launched: 0,
            reserved: 0,
            has_capacity: true,
            is_stopped: false,
            reserve: Reserve::new(position),
        })
    }

    /// The number of attempts that the job was served with.
    fn taken(&self) -> usize {
        self.launched.saturating_add(self.reserved) as usize
    }

    /// Launches one attempt, or reserves for one; false if the job can get no more.
    fn step(&mut self, pass: &mut Round<'_>, evictions: &mut Evictions, surge: &mut Surge) -> bool {
        let position = self.position;
        if self.launched + self.reserved >= self.slots {
            return false;
        }
        if self.job.obstacles.no_node {
            return self.launch(pass, None, false);
        }
        self.is_stopped = !pass.shares.may_launch(&pass.capacity, position);
        if self.is_stopped {
            return false;
        }
        if self.has_capacity {
            if let Some(node) = capacity_for_one(pass, position) {
                return self.launch(pass, Some(node), false);
            }
            self.has_capacity = false;
        }
        self.is_stopped = !pass.shares.may_reserve(&pass.capacity, position);
        if self.is_stopped {
            return false;
        }
        if self.reserve.one(pass, evictions) {
            self.reserved += 1;
            return true;
        }
        // An autoscaler acts only on a pod that no node can take. A pod that only λ holds back would be run at once.
        let tenant = &self.job.tenant;
        if !surge.is_left(tenant) || pass.find_node(position, &[]).is_some() {
            return false;
        }
        let launched = self.launch(pass, None, false);
        surge.take(tenant, launched);
        launched
    }

    /// `node` has capacity for the attempt; `is_chosen`: the attempt must go there.
    fn launch(&mut self, pass: &mut Round<'_>, node: Option<NodeIndex>, is_chosen: bool) -> bool {
        let Some(index) = self.candidates.next() else {
            return false;
        };
        launch_first(pass, self.position, index, node, is_chosen);
        self.launched += 1;
        true
    }

    /// Finishes the turn, unless the tenant's share stopped it and it may continue when tenants borrow.
    fn pause(self, pass: &mut Round<'_>, rank: Rank<'a>, paused: &mut Vec<Paused<'a>>) {
        match self.is_stopped {
            true => paused.push((rank, self)),
            false => self.finish(pass),
        }
    }

    fn finish(self, pass: &mut Round<'_>) {
        let left = self.slots.saturating_sub(self.launched);
        let is_for_share = self.is_stopped || pass.shares.is_owed(self.position);
        if let Some(state) = pass.jobs.get_mut(self.position) {
            state.draft.admitted = self.launched;
            state.draft.waiting = self.total - self.launched;
            state.draft.waiting_for_share = if is_for_share { left } else { 0 };
        }
    }
}

fn capacity_for_one(pass: &mut Round<'_>, position: usize) -> Option<NodeIndex> {
    if has_capacity_in_total(pass, position) {
        pass.find_node(position, &[])
    } else {
        None
    }
}

fn has_capacity_in_total(pass: &Round<'_>, position: usize) -> bool {
    let both = [&pass.capacity.free, &pass.capacity.free_after_kills];
    let demand = pass.capacity.demands.get(position);
    demand.is_some_and(|demand| both.iter().all(|free| free.fits_total(demand)))
}

/// Launches a task's first attempt or retry, beyond capacity if there is no node for it.
fn launch_first(
    pass: &mut Round<'_>,
    position: usize,
    index: TaskIndex,
    node: Option<NodeIndex>,
    is_chosen: bool,
) {
    let Some(state) = pass.jobs.get(position) else {
        return;
    };
    let (job, task) = (state.job, state.job.task(index));
    let avoided = state.avoided(task);
    let attempt = first_attempt(job, index);
    let chosen = node.filter(|_| is_chosen);
    let chosen = chosen.and_then(|node| pass.snapshot.nodes.get(node.0));
    let chosen = chosen.map(|node| node.name.clone());
    let mut launch = Launch {
        // First attempts are placed by the cluster's scheduler alone, unless the order chooses nodes. A job that only
        // observes therefore runs as it would without shed. Attempts avoid nodes where others could not start.
        avoid: match attempt.kind {
            AttemptKind::Original => pass.names(avoided),
            // All of these nodes are a preference.
            AttemptKind::Retry | AttemptKind::Clone => {
                let doubtful = pass.doubtful(position).iter().copied();
                pass.avoid(position, avoided.chain(doubtful))
            }
        },
        node: chosen,
        surge: node.is_none(),
        ..attempt
    };
    launch
        .avoid
        .retain(|name| launch.node.as_ref() != Some(name));
    pass.launch(position, node, launch);
    if let (Some(state), Some(node)) = (pass.jobs.get_mut(position), node) {
        state.draft.started.push((index, node));
    }
}

/// The tasks without any launch so far, ascending, in one walk over the indexes.
struct Untouched<'a> {
    job: &'a JobSnapshot,
    next: u32,
    touched: usize,
}

impl<'a> Untouched<'a> {
    fn new(job: &'a JobSnapshot) -> Self {
        Self {
            job,
            next: 0,
            touched: 0,
        }
    }
}

impl Iterator for Untouched<'_> {
    type Item = TaskIndex;

    fn next(&mut self) -> Option<TaskIndex> {
        while self.next < self.job.rules.completions {
            let index = TaskIndex(self.next);
            self.next += 1;
            let touched = self.job.tasks.get(self.touched);
            if touched.is_some_and(|task| task.index == index) {
                self.touched += 1;
            } else if !self.job.has_ended(index) {
                return Some(index);
            }
        }
        None
    }
}
