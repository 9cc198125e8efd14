//! Orders whose papers match tasks with nodes one by one: node by node, the job whose task best fits the free
//! capacity there. Tasks that find no node in this way are served by rank, as in the other orders.

use crate::capacity::{Amounts, fits, names};
use crate::decide::admission::{Paused, Surge, Turn, has_capacity_in_total};
use crate::decide::evict::Evictions;
use crate::decide::order::{DOLLYMP_RHO, SLOT, ranks};
use crate::policy::Order;
use crate::round::Number;
use crate::round::Round;
use crate::snapshot::NodeIndex;

/// Costs O(nodes + jobs · launches).
pub(super) fn serve_by_node<'a>(
    pass: &mut Round<'a>,
    order: Order,
    evictions: &mut Evictions,
    surge: &mut Surge,
) -> Vec<Paused<'a>> {
    let mut ranks = ranks(pass, order);
    ranks.sort();
    let mut turns: Vec<Option<Turn<'a>>> = Vec::new();
    turns.resize_with(pass.jobs.len(), || None);
    for &(_, position) in &ranks {
        if let Some(turn) = turns.get_mut(position) {
            *turn = Turn::new(pass, position);
        }
    }
    launch_on_nodes(pass, order, &mut turns);
    let mut paused = Vec::new();
    for (rank, position) in ranks {
        if let Some(mut turn) = turns.get_mut(position).and_then(Option::take) {
            while turn.step(pass, evictions, surge) {}
            turn.pause(pass, rank, &mut paused);
        }
    }
    paused
}

fn launch_on_nodes(pass: &mut Round<'_>, order: Order, turns: &mut [Option<Turn<'_>>]) {
    let matching = Matching::new(pass, order);
    let waits = |turns: &[Option<Turn<'_>>], position: usize| {
        let turn = turns.get(position).and_then(Option::as_ref);
        // An attempt of a job that no node takes only shows whether that is still so; it is not meant for a node.
        turn.is_some_and(|turn| turn.launched < turn.slots && !turn.job.obstacles.no_node)
    };
    let mut waiting = pass.by_submission();
    waiting.retain(|&position| waits(turns, position));
    let mut least = least_demand(pass, &waiting);
    for node in (0..pass.snapshot.nodes.len()).map(NodeIndex) {
        let free = pass.capacity.free.node(node).unwrap_or_default();
        if waiting.is_empty() || !fits(free, &least) {
            continue;
        }
        while let Some(position) = matching.best(pass, &waiting, node) {
            let turn = turns.get_mut(position).and_then(Option::as_mut);
            if !turn.is_some_and(|turn| turn.launch(pass, Some(node), true)) {
                break;
            }
            if !waits(turns, position) {
                waiting.retain(|&other| other != position);
                least = least_demand(pass, &waiting);
            }
        }
    }
}

/// For each resource, the least demand of these jobs.
fn least_demand(pass: &Round<'_>, positions: &[usize]) -> Amounts {
    let mut demands = positions
        .iter()
        .filter_map(|&at| pass.capacity.demands.get(at));
    let mut least = demands.next().cloned().unwrap_or_default();
    for demand in demands {
        for (amount, other) in least.iter_mut().zip(demand) {
            *amount = (*amount).min(*other);
        }
    }
    least
}

/// The job that an order prefers on a node.
struct Matching {
    prefers: Prefers,
    /// The total capacity of each node, in the order of [`Capacity::demands`](crate::capacity::Capacity).
    totals: Vec<Amounts>,
}

enum Prefers {
    /// DollyMP (\[D\] Algorithm 2, steps 9 to 17): of the jobs of the lowest level, by position, the
    /// one that fits best.
    Level(Vec<u32>),
    /// Tetris: the largest a + ε/p, given 1/p by position.
    Work(Vec<f64>),
}

impl Matching {
    fn new(pass: &Round<'_>, order: Order) -> Self {
        let names = names(pass.snapshot);
        let nodes = pass.snapshot.nodes.iter();
        let amounts = nodes.map(|node| names.iter().map(|name| node.allocatable.get(name)));
        Self {
            totals: amounts.map(Iterator::collect).collect(),
            prefers: match order {
                Order::DollyMp => Prefers::Level(pass.levels(DOLLYMP_RHO, SLOT)),
                _ => Prefers::Work(inverse_work(pass)),
            },
        }
    }

    /// The job whose next attempt goes to the node. Between equals the one submitted first, which is the order of
    /// `waiting`.
    fn best(&self, pass: &Round<'_>, waiting: &[usize], node: NodeIndex) -> Option<usize> {
        let fitting = waiting.iter().copied().filter(|&position| {
            has_capacity_in_total(pass, position)
                && pass.may_take(position, node)
                && pass.shares.may_launch(&pass.capacity, position)
        });
        let fitting = fitting.map(|position| (position, self.alignment(pass, position, node)));
        let keys: Vec<((u32, Number), usize)> = match &self.prefers {
            Prefers::Level(levels) => fitting
                .map(|(position, alignment)| {
                    let level = levels.get(position).copied().unwrap_or(u32::MAX);
                    ((level, Number(-alignment)), position)
                })
                .collect(),
            Prefers::Work(inverse) => tetris_keys(fitting, inverse),
        };
        let first = keys.into_iter().min_by_key(|(key, _)| *key);
        first.map(|(_, position)| position)
    }

    /// The inner product of the job's demand and the free capacity of the node, both as shares of the node's total.
    fn alignment(&self, pass: &Round<'_>, position: usize, node: NodeIndex) -> f64 {
        let demand = pass.capacity.demands.get(position).into_iter().flatten();
        let free = pass.capacity.free.node(node).unwrap_or_default();
        let totals = self.totals.get(node.0).into_iter().flatten();
        let all = demand.zip(free).zip(totals);
        let asked = all.filter(|((demand, _), total)| **demand > 0 && **total > 0);
        asked
            .map(|((&demand, &free), &total)| {
                (demand as f64 / total as f64) * (free as f64 / total as f64)
            })
            .sum()
    }
}

/// Spec 11: ε is the mean alignment over the mean 1/p of the jobs that fit.
fn tetris_keys(
    fitting: impl Iterator<Item = (usize, f64)>,
    inverse: &[f64],
) -> Vec<((u32, Number), usize)> {
    let of = |position: usize| inverse.get(position).copied().unwrap_or(0.0);
    let terms: Vec<(usize, f64)> = fitting.collect();
    let alignments: f64 = terms.iter().map(|(_, alignment)| alignment).sum();
    let inverses: f64 = terms.iter().map(|(position, _)| of(*position)).sum();
    let weight = if inverses > 0.0 {
        alignments / inverses
    } else {
        0.0
    };
    let key = |(position, alignment): (usize, f64)| {
        let score = alignment + weight * of(position);
        ((0, Number(-score)), position)
    };
    terms.into_iter().map(key).collect()
}

/// 1/p of each job, p being its remaining work; a job without known times counts as the shortest.
fn inverse_work(pass: &Round<'_>) -> Vec<f64> {
    let of = |position: usize| {
        let work = pass.job_size(position, 0.0, SLOT).volume;
        if work > 0.0 { 1.0 / work } else { 0.0 }
    };
    let inverse: Vec<f64> = (0..pass.jobs.len()).map(of).collect();
    let most = inverse.iter().copied().fold(0.0, f64::max);
    let known = |inverse: f64| if inverse > 0.0 { inverse } else { most };
    inverse.into_iter().map(known).collect()
}
