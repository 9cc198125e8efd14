//! Nodes on which nothing can be launched now: cordoned, not ready, gone, or excluded by the selectors and
//! tolerations of every active job. Attempts there are charged to these nodes alone: they hold no usable capacity,
//! and their end frees none of it.

use std::sync::Arc;

use crate::snapshot::{JobPhase, NodeIndex, Snapshot};

/// The unusable nodes of a snapshot, mostly none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct UnusableNodes(
    /// Ascending.
    Vec<NodeIndex>,
);

impl UnusableNodes {
    /// The unusable nodes of the snapshot.
    pub(crate) fn of(snapshot: &Snapshot) -> Self {
        let nodes = snapshot.nodes.iter().zip(eligible(snapshot));
        let nodes = nodes.zip((0..).map(NodeIndex));
        let unusable = nodes.filter(|((node, is_eligible), _)| !(node.usable && *is_eligible));
        Self(unusable.map(|(_, index)| index).collect())
    }

    /// Whether an attempt there holds no usable capacity.
    pub(crate) fn has(&self, node: Option<NodeIndex>) -> bool {
        !self.0.is_empty() && node.is_some_and(|node| self.0.binary_search(&node).is_ok())
    }
}

/// Whether some active job may use each node.
fn eligible(snapshot: &Snapshot) -> Vec<bool> {
    let mut eligible = vec![false; snapshot.nodes.len()];
    let mut left = eligible.len();
    let jobs = snapshot.jobs.iter();
    let mut last: Option<&Arc<[NodeIndex]>> = None;
    for job in jobs.filter(|job| job.phase == JobPhase::Active) {
        // Jobs without restrictions share one list.
        if last.is_some_and(|last| Arc::ptr_eq(last, &job.eligible_nodes)) {
            continue;
        }
        last = Some(&job.eligible_nodes);
        for node in job.eligible_nodes.iter() {
            if let Some(flag) = eligible.get_mut(node.0) {
                left -= usize::from(!std::mem::replace(flag, true));
            }
        }
        if left == 0 {
            break;
        }
    }
    eligible
}
