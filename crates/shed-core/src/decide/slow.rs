//! Nodes on which attempts are slow, by what reports say now and said lately. Only a preference
//! follows from it.

use std::collections::BTreeMap;

use crate::decide::JobState;
use crate::ids::NodeName;
use crate::memory::Memory;
use crate::snapshot::{NodeIndex, Snapshot};
use crate::time::{Instant, Span};

/// On a slow node attempts take on average this many times the median of their job.
const SLOW_RATIO: f64 = 1.5;

/// A median of fewer attempts says little about what is normal.
const REPORTS_MIN: usize = 3;

/// So many are named at most, the slowest: each becomes a term that the cluster's scheduler
/// weighs for every pod.
const SLOW_MAX: usize = 10;

/// A node stays avoided for so long after it was last seen slow, unless a report from it says
/// otherwise: once its attempts are pruned nothing runs there that could, and it looks as free
/// as a healthy one.
const REMEMBERED: Span = Span::from_seconds(300);

/// The slow nodes, ascending, and when each was last seen slow.
pub(super) fn slow_nodes(
    snapshot: &Snapshot,
    jobs: &[JobState<'_>],
    memory: &Memory,
) -> (Vec<NodeIndex>, BTreeMap<NodeName, Instant>) {
    let mut slow = Vec::new();
    let mut seen = BTreeMap::new();
    for (position, ratio) in ratios(snapshot.nodes.len(), jobs).into_iter().enumerate() {
        let Some(node) = snapshot.nodes.get(position) else {
            continue;
        };
        let last = match ratio {
            Some(ratio) => (ratio > SLOW_RATIO).then_some(snapshot.now),
            None => memory
                .slow_node(&node.name)
                .filter(|&last| snapshot.now.since(last) <= REMEMBERED),
        };
        if let Some(last) = last {
            // What is only remembered ranks behind what is seen.
            slow.push((ratio.unwrap_or(SLOW_RATIO), NodeIndex(position)));
            seen.insert(node.name.clone(), last);
        }
    }
    slow.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    slow.truncate(SLOW_MAX);
    let mut slow: Vec<NodeIndex> = slow.into_iter().map(|(_, node)| node).collect();
    slow.sort_unstable();
    (slow, seen)
}

/// Mean over a node's attempts of their time over the median of their job; absent for a node
/// that no report comes from. Winners count towards the median: the healthy nodes' attempts end
/// first, and those that are left must not become the measure of themselves.
fn ratios(count: usize, jobs: &[JobState<'_>]) -> Vec<Option<f64>> {
    let mut sums = vec![(0.0, 0u32); count];
    for state in jobs {
        let attempts = state.estimate.tasks.iter().flat_map(|task| &task.attempts);
        let reporting: Vec<_> = attempts
            .filter_map(|a| a.total.map(|total| (total, a.node)))
            .collect();
        let mut totals: Vec<f64> = reporting.iter().map(|&(total, _)| total).collect();
        totals.extend(state.job.ended_runs.iter().map(|run| run.seconds()));
        if totals.len() < REPORTS_MIN {
            continue;
        }
        totals.sort_by(f64::total_cmp);
        let Some(&median) = totals.get(totals.len() / 2).filter(|median| **median > 0.0) else {
            continue;
        };
        for (total, node) in reporting {
            if let Some(sum) = node.and_then(|node| sums.get_mut(node.0)) {
                sum.0 += total / median;
                sum.1 += 1;
            }
        }
    }
    let mean = |(sum, reports): (f64, u32)| (reports > 0).then(|| sum / f64::from(reports));
    sums.into_iter().map(mean).collect()
}
