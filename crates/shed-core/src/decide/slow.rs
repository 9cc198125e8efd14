//! Nodes on which attempts are slow: a belief about each node, from what its attempts report now
//! and what they reported lately. Only a preference follows from it.

use std::collections::BTreeMap;

use crate::decide::JobState;
use crate::ids::NodeName;
use crate::memory::{Memory, NodeSlowness};
use crate::snapshot::{NodeIndex, Snapshot};
use crate::time::Span;

/// ln of the slowness from which on a node is avoided: 1.5 times the median of the job.
const LN_SLOW: f64 = 0.405_465_108_108_164_4;

/// So many are named at most, the slowest: each becomes a term that the cluster's scheduler
/// weighs for every pod.
const SLOW_MAX: usize = 10;

/// How much speaks for a node being as fast as others before anything is heard of it, in tasks.
/// A first report that claims four times the usual time is believed from 2 % of a task on.
const PRIOR_WEIGHT: f64 = 0.05;

/// What attempts of one node say counts as one task at most: they share what slows them.
const WEIGHT_MAX: f64 = 1.0;

/// What was seen loses half its weight in that time. Once a slow node's attempts are pruned
/// nothing runs there that could tell, and it looks as free as a healthy one.
const HALF_LIFE: Span = Span::from_seconds(60);

/// A belief with less weight is forgotten.
const WEIGHT_MIN: f64 = 0.01;

/// What is believed about nodes.
pub(super) struct Beliefs {
    /// Per node of the snapshot: expected ln(time of an attempt there over the usual time).
    pub(super) ln_ratios: Vec<f64>,
    /// The slow ones, ascending.
    pub(super) slow: Vec<NodeIndex>,
    /// What is to be remembered of them.
    pub(super) remembered: BTreeMap<NodeName, NodeSlowness>,
}

/// Weighs what is heard from each node against what was seen of it.
pub(super) fn beliefs(snapshot: &Snapshot, jobs: &[JobState<'_>], memory: &Memory) -> Beliefs {
    let mut slow = Vec::new();
    let mut ln_ratios = Vec::with_capacity(snapshot.nodes.len());
    let mut remembered = BTreeMap::new();
    let evidence = evidence(snapshot.nodes.len(), jobs);
    for (position, (node, seen)) in snapshot.nodes.iter().zip(evidence).enumerate() {
        let past = memory.slow_node(&node.name);
        let past_weight = past.map_or(0.0, |past| weight_left(past, snapshot));
        let past_sum = past.map_or(0.0, |past| past.ln_ratio * past_weight);
        let belief = (seen.sum + past_sum) / (seen.weight + past_weight + PRIOR_WEIGHT);
        ln_ratios.push(belief);
        if belief > LN_SLOW {
            slow.push((belief, NodeIndex(position)));
        }
        // The stronger of the two stands, so that a first report from a node that was seen slow
        // for long does not clear it; a node that was fast is not remembered, so that one
        // that turns slow is noticed as soon as any other.
        let now = NodeSlowness {
            ln_ratio: seen.sum / seen.weight,
            weight: seen.weight,
            seen: snapshot.now,
        };
        let kept = if seen.weight >= past_weight {
            Some(now).filter(|now| now.ln_ratio > LN_SLOW)
        } else {
            past.copied().filter(|_| past_weight >= WEIGHT_MIN)
        };
        if let Some(kept) = kept {
            remembered.insert(node.name.clone(), kept);
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

fn weight_left(past: &NodeSlowness, snapshot: &Snapshot) -> f64 {
    let age = snapshot.now.since(past.seen).seconds().max(0.0);
    past.weight * libm::exp2(-age / HALF_LIFE.seconds())
}

/// What is heard from one node.
#[derive(Clone, Copy, Default)]
struct Evidence {
    /// Σ weight · ln(an attempt's time over the median of its job).
    sum: f64,
    /// In tasks: each attempt counts as much as it has done itself.
    weight: f64,
}

impl Evidence {
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
        let reporting: Vec<_> = attempts
            .filter_map(|a| a.total.map(|total| (total, a.own_progress(), a.node)))
            .collect();
        let Some(median) = state.estimate.median_total(state.job) else {
            continue;
        };
        for (total, weight, node) in reporting {
            if let Some(evidence) = node.and_then(|node| all.get_mut(node.0)) {
                evidence.sum += weight * libm::log(total / median);
                evidence.weight += weight;
            }
        }
    }
    all.into_iter().map(Evidence::capped).collect()
}
