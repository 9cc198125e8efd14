//! Who is served first when capacity is short: what each [`Order`] ranks jobs by. The orders whose
//! papers match tasks with nodes one by one (Tetris, DollyMP) rank by the cluster as a whole only
//! what finds no node: see `admission::by_node`.

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

/// What is smaller is served first. Of equals, the earlier submission, then the smaller key.
pub(super) type Rank<'a> = (Tier, i64, Number, Instant, &'a JobKey);

/// What is ranked before all else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tier {
    /// Can be in time, and so can all others of this tier.
    Timely,
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
        Order::Drf | Order::Carbyne | Order::Capacity => shares(pass, order),
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
            Order::Srpt => usual(0, Number(pass.measures(position, 0.0, SLOT).time)),
            Order::Svf => usual(0, Number(pass.measures(position, 0.0, SLOT).volume)),
            Order::DollyMp => {
                let level = levels.get(position).map_or(i64::MAX, |at| i64::from(*at));
                usual(level, Number(-pass.capacity.alignment(position)))
            }
            Order::Tetris => usual(0, Number(-scores.get(position).copied().unwrap_or(0.0))),
            Order::Drf | Order::Carbyne | Order::Capacity => {
                usual(0, Number(shares.get(position).copied().unwrap_or(0.0)))
            }
        };
        let rank = (tier, urgency, number, state.job.submitted, &state.job.key);
        ranks.push((rank, position));
    }
    ranks
}

/// The part of the cluster that counts against each job, by position, before the plan: its own
/// dominant share (DRF; Carbyne, whose jobs give back what their slack allows, which jobs of one
/// phase have none of), or that of its tenant's jobs (Capacity: one queue per tenant, all with
/// equal shares, filled in the order of submission).
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

/// The dominant share of what the job's attempts hold.
fn held(pass: &Round<'_>, position: usize) -> f64 {
    let state = pass.jobs.get(position);
    let holding = state.map_or(0, |state| state.holdings.all);
    times(holding, pass.capacity.dominant_share(position))
}

/// Never 0·∞.
pub(super) fn times(count: usize, share: f64) -> f64 {
    if count == 0 {
        0.0
    } else {
        count as f64 * share
    }
}

/// Tetris' score a + ε/p (`inverse`: it agrees with what [D] says of Tetris and with SRPT): the
/// alignment a with what is free, and the remaining work p with ε = mean a / mean 1/p.
fn tetris_scores(pass: &Round<'_>) -> Vec<f64> {
    let of = |position: usize| {
        let alignment = pass.capacity.alignment(position);
        let work = pass.measures(position, 0.0, SLOT).volume;
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

/// Least slack first; by a policy that weighs what attempts bring, only those that can all be in
/// time, and of the others those that bring most.
fn by_slack(pass: &Round<'_>, position: usize, state: &JobView<'_>) -> (Tier, i64, Number) {
    let rank = state.rank;
    let (is_hopeless, urgency) = rank.unwrap_or_else(|| urgency(pass, position, state));
    let tier = if is_hopeless {
        Tier::Hopeless
    } else {
        Tier::Usual
    };
    match &state.worth {
        Some(worth) if worth.is_timely => (Tier::Timely, urgency, Number(0.0)),
        Some(worth) => (tier, 0, Number(-worth.waiting)),
        None => (tier, urgency, Number(0.0)),
    }
}

/// Whether the job can't make it, and its slack in milliseconds: the time to its deadline less
/// the work that is left on as many nodes as it could get. Without any known time the work is
/// taken as none, so that such jobs are served by deadline.
fn urgency(pass: &Round<'_>, position: usize, state: &JobView<'_>) -> (bool, i64) {
    let Some(slack) = state.estimate.slack else {
        return (false, i64::MAX);
    };
    let waiting = state.ready.len() as f64 + f64::from(state.untouched);
    let mean_run = state.estimate.mean_run.unwrap_or(0.0);
    let running = state.estimate.tasks.iter();
    let (mut work, mut longest) = (waiting * mean_run, 0.0_f64);
    for remaining in running.filter_map(|task| task.remaining()) {
        if remaining.is_finite() {
            work += remaining;
            longest = longest.max(remaining);
        }
    }
    if waiting > 0.0 {
        longest = longest.max(mean_run);
    }
    let room = pass.capacity.times_usable(position);
    let width = state.job.rules.parallelism.min(room).max(1);
    let slack = slack - longest.max(work / f64::from(width));
    (slack < 0.0, (slack * 1000.0) as i64)
}
