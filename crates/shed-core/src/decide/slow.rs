//! Nodes on which attempts are slow, by what this snapshot's reports say. Only a preference
//! follows from it.

use crate::decide::JobState;
use crate::snapshot::NodeIndex;

/// On a slow node attempts take on average this many times the median of their job.
const SLOW_RATIO: f64 = 1.5;

/// A median of fewer attempts says little about what is normal.
const REPORTS_MIN: usize = 3;

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
    let is_slow = |&(sum, reports): &(f64, u32)| sum > SLOW_RATIO * f64::from(reports);
    let slow = ratios
        .iter()
        .enumerate()
        .filter(|(_, ratio)| is_slow(ratio));
    slow.map(|(node, _)| NodeIndex(node)).collect()
}
