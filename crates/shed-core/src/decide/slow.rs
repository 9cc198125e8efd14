//! Nodes on which attempts are slow, by what this snapshot's reports say. Only a preference
//! follows from it.

use crate::decide::JobState;
use crate::snapshot::NodeIndex;

/// On a slow node attempts take on average this many times the median of their job.
const SLOW_RATIO: f64 = 1.5;

/// A median of fewer attempts says little about what is normal.
const REPORTS_MIN: usize = 3;

/// So many are named at most, the slowest: each becomes a term that the cluster's scheduler
/// weighs for every pod.
const SLOW_MAX: usize = 10;

/// The slow ones of `count` nodes, ascending.
pub(super) fn slow_nodes(count: usize, jobs: &[JobState<'_>]) -> Vec<NodeIndex> {
    let mut ratios = vec![(0.0, 0u32); count];
    for state in jobs {
        let attempts = state.estimate.tasks.iter().flat_map(|task| &task.attempts);
        let reporting = attempts.filter_map(|a| a.total.map(|total| (total, a.node)));
        let mut totals: Vec<_> = reporting.collect();
        if totals.len() < REPORTS_MIN {
            continue;
        }
        totals.sort_by(|a, b| a.0.total_cmp(&b.0));
        let Some(&(median, _)) = totals.get(totals.len() / 2) else {
            continue;
        };
        for (total, node) in totals {
            if let Some(ratio) = node.and_then(|node| ratios.get_mut(node.0)) {
                ratio.0 += total / median;
                ratio.1 += 1;
            }
        }
    }
    let mut slow = Vec::new();
    for (node, (sum, reports)) in ratios.into_iter().enumerate() {
        if sum > SLOW_RATIO * f64::from(reports) {
            slow.push((sum / f64::from(reports), NodeIndex(node)));
        }
    }
    slow.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    slow.truncate(SLOW_MAX);
    let mut slow: Vec<NodeIndex> = slow.into_iter().map(|(_, node)| node).collect();
    slow.sort_unstable();
    slow
}
