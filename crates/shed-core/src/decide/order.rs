//! The order of service when capacity is short: the rank of a job under each [`Order`]. Some papers match tasks with
//! nodes one by one (Tetris, DollyMP). Their orders rank by the cluster as a whole only the jobs that find no node:
//! see `admission::by_node`.

use std::collections::BTreeMap;

use crate::ids::{JobKey, Tenant};
use crate::policy::Order;
use crate::round::Round;
use crate::round::{JobView, Number};
use crate::time::Instant;

/// ρ, the weight of the standard deviation in DollyMP's effective time.
pub(super) const DOLLYMP_RHO: f64 = 1.5;

/// DollyMP's slot, in seconds.
pub(super) const SLOT: f64 = 5.0;

/// The smallest rank is served first. Between equals the earlier submission, then the smaller key.
pub(super) type Rank<'a> = (Tier, i64, Number, Instant, &'a JobKey);

/// The first component of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    Usual,
    Hopeless,
}

/// Positions of the jobs that may launch, with their ranks, in the order of the snapshot. The
/// ranks of orders by shares are those of the shares before the plan.
pub(super) fn ranks<'a>(pass: &Round<'a>, order: Order) -> Vec<(Rank<'a>, usize)> {
    let now = pass.snapshot.now;
    let levels = match order {
        Order::DollyMp => pass.levels(DOLLYMP_RHO, SLOT),
        _ => Vec::new(),
    };
    let scores = match order {
        Order::Tetris => tetris_scores(pass),
        _ => Vec::new(),
    };
    let shares = match order {
        Order::Drf | Order::Capacity => shares(pass, order),
        _ => Vec::new(),
    };
    let mut ranks = Vec::new();
    for (position, state) in pass.jobs.iter().enumerate() {
        if !state.may_launch(now) && !state.may_probe(now) {
            continue;
        }
        let none = Number(0.0);
        let usual = |urgency, number| (Tier::Usual, urgency, number);
        let (tier, urgency, number) = match order {
            Order::LeastSlack => by_slack(pass, position, state),
            Order::Fifo => usual(0, none),
            Order::EarliestDeadline => usual(state.job.deadline.map_or(i64::MAX, |at| at.0), none),
            Order::Srpt | Order::Carbyne => {
                usual(0, Number(pass.job_size(position, 0.0, SLOT).time))
            }
            Order::Svf => usual(0, Number(pass.job_size(position, 0.0, SLOT).volume)),
            Order::DollyMp => {
                let level = levels.get(position).map_or(i64::MAX, |at| i64::from(*at));
                usual(level, Number(-pass.capacity.alignment(position)))
            }
            Order::Tetris => usual(0, Number(-scores.get(position).copied().unwrap_or(0.0))),
            Order::Drf | Order::Capacity => {
                usual(0, Number(shares.get(position).copied().unwrap_or(0.0)))
            }
        };
        let rank = (tier, urgency, number, state.job.submitted, &state.job.key);
        ranks.push((rank, position));
    }
    ranks
}

/// The share of the cluster that counts against each job, by position, before the plan. For DRF it is the
/// job's own dominant share. For Capacity it is that of the tenant's jobs: one queue per tenant, all with equal
/// shares, filled in the order of submission. With one tenant all shares are equal, and the order is that of FIFO.
pub(super) fn shares(pass: &Round<'_>, order: Order) -> Vec<f64> {
    let held: Vec<f64> = (0..pass.jobs.len()).map(|at| held(pass, at)).collect();
    if order != Order::Capacity {
        return held;
    }
    let mut tenants: BTreeMap<&Tenant, f64> = BTreeMap::new();
    for (state, share) in pass.jobs.iter().zip(held) {
        *tenants.entry(&state.job.tenant).or_insert(0.0) += share;
    }
    let of = |state: &JobView<'_>| tenants.get(&state.job.tenant).copied().unwrap_or(0.0);
    pass.jobs.iter().map(of).collect()
}

/// The dominant share of the capacity that the job's attempts hold.
fn held(pass: &Round<'_>, position: usize) -> f64 {
    let state = pass.jobs.get(position);
    let holding = state.map_or(0, |state| state.holdings.all);
    times(holding, pass.capacity.dominant_share(position))
}

/// The product, which never is 0·∞.
pub(super) fn times(count: usize, share: f64) -> f64 {
    if count == 0 {
        0.0
    } else {
        count as f64 * share
    }
}

/// Tetris' score a + ε/p, where a is the alignment with the free capacity and p the remaining work, with ε = mean a /
/// mean 1/p. (`inverse` agrees with the description of Tetris in \[D\] and with SRPT.)
fn tetris_scores(pass: &Round<'_>) -> Vec<f64> {
    let of = |position: usize| {
        let alignment = pass.capacity.alignment(position);
        let work = pass.job_size(position, 0.0, SLOT).volume;
        let inverse = if work > 0.0 { 1.0 / work } else { 0.0 };
        [alignment, inverse]
    };
    let terms: Vec<[f64; 2]> = (0..pass.jobs.len()).map(of).collect();
    let sum = |term: fn(&[f64; 2]) -> f64| terms.iter().map(term).sum::<f64>();
    let (alignments, inverses) = (sum(|t| t[0]), sum(|t| t[1]));
    let weight = if inverses > 0.0 {
        alignments / inverses
    } else {
        0.0
    };
    let most = terms
        .iter()
        .map(|[_, inverse]| *inverse)
        .fold(0.0, f64::max);
    let score = |[alignment, inverse]: &[f64; 2]| {
        // A job without known times counts as the shortest.
        let inverse = if *inverse > 0.0 { *inverse } else { most };
        alignment + weight * inverse
    };
    terms.iter().map(score).collect()
}

/// Least slack first, or the highest value density if the policy estimates it: it does so while capacity is short.
fn by_slack(pass: &Round<'_>, position: usize, state: &JobView<'_>) -> (Tier, i64, Number) {
    let rank = state.rank;
    let (is_hopeless, urgency) = rank.unwrap_or_else(|| urgency(pass, position, state));
    let tier = if is_hopeless {
        Tier::Hopeless
    } else {
        Tier::Usual
    };
    match &state.draft.value_density {
        Some(value_density) => (tier, 0, Number(-value_density.waiting)),
        None => (tier, urgency, Number(0.0)),
    }
}

/// Whether the job cannot meet its deadline, and its slack in milliseconds. The slack is the time to the deadline
/// less the remaining work on as many nodes as the job could get. Without any known time the work counts as zero, so
/// that such jobs are served by deadline.
fn urgency(pass: &Round<'_>, position: usize, state: &JobView<'_>) -> (bool, i64) {
    urgency_within(state, pass.capacity.times_usable(position))
}

/// The same if the job gets at most this many attempts at a time.
pub(super) fn urgency_within(state: &JobView<'_>, width: u32) -> (bool, i64) {
    let Some(slack) = state.estimate.slack else {
        return (false, i64::MAX);
    };
    let waiting = state.ready.len() as f64 + f64::from(state.untouched);
    let mean_run = state.estimate.mean_run.unwrap_or(0.0);
    let [running, mut longest] = state.estimate.left();
    let work = waiting * mean_run + running;
    if waiting > 0.0 {
        longest = longest.max(mean_run);
    }
    let width = state.job.rules.parallelism.min(width).max(1);
    let slack = slack - longest.max(work / f64::from(width));
    (slack < 0.0, (slack * 1000.0) as i64)
}
