//! Nodes where attempts of a job recently failed to start, were disrupted, or fell behind. One process holds this
//! memory, and its loss only changes which nodes are preferred.

use std::collections::BTreeMap;
use std::sync::Arc;

use shed_core::time::{Instant, Span};

use crate::api::Ledger;

/// For this time a job avoids a node on which an attempt could not start.
const STUCK_FOR: Span = Span::from_seconds(600);

/// Maximum number of avoided nodes; the newest count. Each becomes a term that the cluster's
/// scheduler evaluates for every pod.
const STUCK_MAX: usize = 10;
const LEFT_MAX: usize = 3;

/// The nodes of one job.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TroubledNodes {
    /// Where an attempt could not start, and when that was last seen.
    stuck: BTreeMap<Arc<str>, Instant>,
    /// Where attempts of each task were disrupted, or stopped as another was or would be faster; the last one last.
    left: BTreeMap<u32, Vec<Arc<str>>>,
}

impl TroubledNodes {
    /// An attempt of the job could not start there.
    pub fn note_stuck(&mut self, node: &Arc<str>, now: Instant) {
        self.stuck.insert(Arc::clone(node), now);
    }

    /// An attempt of the task was disrupted there, or stopped because it fell behind.
    pub fn note_left(&mut self, task: u32, node: &Arc<str>) {
        let nodes = self.left.entry(task).or_default();
        nodes.retain(|known| known != node);
        nodes.push(Arc::clone(node));
        let surplus = nodes.len().saturating_sub(LEFT_MAX);
        nodes.drain(..surplus);
    }

    /// Forgets old entries, and tasks that have ended.
    pub fn forget(&mut self, ledger: &Ledger, now: Instant) {
        self.stuck.retain(|_, seen| now.since(*seen) < STUCK_FOR);
        self.left.retain(|task, _| ledger.tasks.contains_key(task));
    }

    /// Nodes on which an attempt of the job could not start, the last ones.
    pub fn stuck(&self, now: Instant) -> Vec<Arc<str>> {
        let recent = self.stuck.iter();
        let recent = recent.filter(|(_, seen)| now.since(**seen) < STUCK_FOR);
        let mut nodes: Vec<_> = recent.map(|(node, seen)| (*seen, node)).collect();
        nodes.sort_unstable_by(|a, b| b.cmp(a));
        nodes.truncate(STUCK_MAX);
        nodes
            .into_iter()
            .map(|(_, node)| Arc::clone(node))
            .collect()
    }

    /// Nodes that attempts of the task last had to leave.
    pub fn of_task(&self, task: u32) -> &[Arc<str>] {
        self.left.get(&task).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(nodes: &[Arc<str>]) -> Vec<&str> {
        nodes.iter().map(|node| &**node).collect()
    }

    #[test]
    fn a_task_keeps_off_the_three_nodes_that_it_left_last() {
        let mut troubled = TroubledNodes::default();
        for node in ["a", "b", "a", "c", "d"] {
            troubled.note_left(7, &Arc::from(node));
        }
        assert_eq!(names(troubled.of_task(7)), ["a", "c", "d"]);
        assert!(troubled.of_task(8).is_empty());
        troubled.forget(&Ledger::default(), Instant(0));
        assert_eq!(troubled, TroubledNodes::default());
    }

    #[test]
    fn a_node_where_nothing_starts_is_avoided_for_ten_minutes() {
        let mut troubled = TroubledNodes::default();
        for second in 0..12 {
            let node = format!("node-{second}");
            troubled.note_stuck(&Arc::from(node.as_str()), Instant(second * 1000));
        }
        let last = troubled.stuck(Instant(12_000));
        assert_eq!(last.len(), 10);
        assert_eq!(names(&last[..2]), ["node-11", "node-10"]);
        let later = Instant(610_000);
        assert_eq!(names(&troubled.stuck(later)), ["node-11"]);
        troubled.forget(&Ledger::default(), later);
        assert_eq!(troubled.stuck.len(), 1);
    }
}
