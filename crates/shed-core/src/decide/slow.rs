//! Nodes on which attempts are slow: a belief about each node, from what its attempts report now
//! and what they reported lately. Only a preference follows from it.

use std::collections::BTreeMap;

use crate::decide::JobState;
use crate::ids::NodeName;
use crate::memory::{Memory, NodeSlowness};
use crate::snapshot::{NodeIndex, Snapshot};
use crate::time::{Instant, Span};

/// ln of the slowness from which on a node is avoided: 1.5 times the median of the job.
const LN_SLOW: f64 = 0.405_465_108_108_164_4;

/// So many are named at most, the slowest: each becomes a term that the cluster's scheduler
/// weighs for every pod.
const SLOW_MAX: usize = 10;

/// How much speaks for a node being as fast as others before anything is heard of it, in
/// witnesses. A task can be slow by itself: one witness never convicts its node, two that take
/// two and a half times the usual time do.
const PRIOR_WEIGHT: f64 = 2.5;

/// An attempt that has done so much of a task itself is a whole witness.
const WITNESS: f64 = 0.1;

/// More than four times the usual time says no more about a node than four times.
const LN_RATIO_MAX: f64 = 1.386_294_361_119_890_6;

/// More witnesses than so many say no more: they share what slows them.
const WEIGHT_MAX: f64 = 4.0;

/// A belief with less weight is forgotten.
const WEIGHT_MIN: f64 = 0.1;

/// What is believed about nodes.
pub(super) struct Beliefs {
    /// Per node of the snapshot: expected ln(time of an attempt there over the usual time).
    pub(super) ln_ratios: Vec<f64>,
    /// The slow ones, ascending.
    pub(super) slow: Vec<NodeIndex>,
    /// What is to be remembered of them.
    pub(super) remembered: BTreeMap<NodeName, NodeSlowness>,
}

/// Weighs what is heard from each node against what was seen of it, which loses half its weight
/// in `half_life`.
pub(super) fn beliefs(
    snapshot: &Snapshot,
    jobs: &[JobState<'_>],
    memory: &Memory,
    half_life: Span,
) -> Beliefs {
    let mut slow = Vec::new();
    let mut ln_ratios = Vec::with_capacity(snapshot.nodes.len());
    let mut remembered = BTreeMap::new();
    let evidence = evidence(snapshot.nodes.len(), jobs);
    for (position, (node, seen)) in snapshot.nodes.iter().zip(evidence).enumerate() {
        // The stronger of the two stands, so that a first report from a node that was seen slow
        // for long does not clear it; both together would count the same attempts twice.
        let past = memory.slow_node(&node.name);
        let past_weight = past.map_or(0.0, |past| weight_left(past, snapshot.now, half_life));
        let (stands, weight) = match past {
            Some(past) if past_weight > seen.weight.max(WEIGHT_MIN) => (*past, past_weight),
            _ => (seen.slowness(snapshot.now), seen.weight),
        };
        let belief = stands.ln_ratio * weight / (weight + PRIOR_WEIGHT);
        ln_ratios.push(belief);
        // Where nothing is launched there is nothing to keep off, and only a bounded number are named.
        if belief > LN_SLOW && node.usable {
            slow.push((belief, NodeIndex(position)));
        }
        // A node that was fast is not remembered, so that one that turns slow is noticed as soon
        // as any other.
        if stands.ln_ratio > LN_SLOW {
            remembered.insert(node.name.clone(), stands);
        }
    }
    slow.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    slow.truncate(SLOW_MAX);
    let mut slow: Vec<NodeIndex> = slow.into_iter().map(|(_, node)| node).collect();
    slow.sort_unstable();
    Beliefs {
        ln_ratios,
        slow,
        remembered,
    }
}

fn weight_left(past: &NodeSlowness, now: Instant, half_life: Span) -> f64 {
    let age = now.since(past.seen).seconds().max(0.0);
    past.weight * libm::exp2(-age / half_life.seconds())
}

/// What is heard from one node.
#[derive(Clone, Copy, Default)]
struct Evidence {
    /// Σ weight · ln(an attempt's time over the median of its job).
    sum: f64,
    /// In witnesses.
    weight: f64,
}

impl Evidence {
    fn slowness(self, now: Instant) -> NodeSlowness {
        let ln_ratio = if self.weight > 0.0 {
            self.sum / self.weight
        } else {
            0.0
        };
        NodeSlowness {
            ln_ratio,
            weight: self.weight,
            seen: now,
        }
    }

    fn capped(self) -> Self {
        if self.weight > WEIGHT_MAX {
            Self {
                sum: self.sum * (WEIGHT_MAX / self.weight),
                weight: WEIGHT_MAX,
            }
        } else {
            self
        }
    }
}

fn evidence(nodes: usize, jobs: &[JobState<'_>]) -> Vec<Evidence> {
    let mut all = vec![Evidence::default(); nodes];
    for state in jobs {
        let attempts = state.estimate.tasks.iter().flat_map(|task| &task.attempts);
        let mut placed = attempts
            .filter_map(|a| Some((a.total?, a.own_progress(), a.node?)))
            .peekable();
        if placed.peek().is_none() {
            continue;
        }
        let Some(median) = state.estimate.median_total() else {
            continue;
        };
        for (total, progress, node) in placed {
            let weight = (progress / WITNESS).min(1.0);
            if let Some(evidence) = all.get_mut(node.0) {
                let ln_ratio = libm::log(total / median).clamp(-LN_RATIO_MAX, LN_RATIO_MAX);
                evidence.sum += weight * ln_ratio;
                evidence.weight += weight;
            }
        }
    }
    all.into_iter().map(Evidence::capped).collect()
}
