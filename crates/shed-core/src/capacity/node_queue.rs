//! The order in which a pass tries nodes for attempts of one demand.

use crate::capacity::FreeCapacity;
use crate::snapshot::{JobSnapshot, NodeIndex};

/// The nodes that may take attempts of one demand, in the order in which to try them. A node that is full once stays
/// full for the rest of the pass, so finding one costs O(1) on average for any number of launches.
#[derive(Debug, Clone)]
pub(crate) struct NodeQueue {
    /// Unrestricted nodes, then those to avoid if possible, then those to avoid even more.
    tiers: [Vec<NodeIndex>; 3],
    next: [usize; 3],
}

impl NodeQueue {
    /// The job's eligible nodes with free capacity, the emptiest first. The nodes of the two ascending lists `worse`
    /// come after all others, in their order. The nodes that the job avoids are in the last tier.
    pub(crate) fn new(
        job: &JobSnapshot,
        demand: &[i64],
        free: &FreeCapacity,
        worse: [&[NodeIndex]; 2],
    ) -> Self {
        let mut tiers = [Vec::new(), Vec::new(), Vec::new()];
        let [good, bad, worst] = &mut tiers;
        let is_in = |nodes: &[NodeIndex], node| nodes.binary_search(&node).is_ok();
        let may_fit = free.may_fit(demand);
        for &node in job.eligible_nodes.iter().filter(|_| may_fit) {
            if free.fits_node(node, demand) {
                let tier = match worse {
                    _ if job.avoid.contains(&node) => &mut *worst,
                    [_, worse] if is_in(worse, node) => &mut *worst,
                    [worse, _] if is_in(worse, node) => &mut *bad,
                    _ => &mut *good,
                };
                tier.push(node);
            }
        }
        for tier in &mut tiers {
            let amount = |node: &NodeIndex| free.nodes.get(node.0).and_then(|r| r.first()).copied();
            tier.sort_by_key(|node| (std::cmp::Reverse(amount(node)), *node));
        }
        Self {
            tiers,
            next: [0; 3],
        }
    }

    /// Whether no node is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.tiers.iter().all(Vec::is_empty)
    }

    /// A node that `fits`; one of `avoid` only if no other does. Launches rotate over the nodes, which spreads them.
    /// A node that does not fit is not tried again.
    pub(crate) fn find(
        &mut self,
        fits: impl Fn(NodeIndex) -> bool,
        avoid: &[NodeIndex],
    ) -> Option<NodeIndex> {
        let mut fallback = None;
        for (tier, next) in self.tiers.iter_mut().zip(&mut self.next) {
            let mut tried = 0;
            while tried < tier.len() {
                let position = *next % tier.len();
                let Some(&node) = tier.get(position) else {
                    break;
                };
                if !fits(node) {
                    tier.remove(position);
                    *next = position;
                    continue;
                }
                *next = position + 1;
                if !avoid.contains(&node) {
                    return Some(node);
                }
                fallback = fallback.or(Some(node));
                tried += 1;
            }
        }
        fallback
    }
}
