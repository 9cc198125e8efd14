//! Maximum flow in whole numbers, by shortest augmenting paths level by level (Dinic). A later call
//! may add flow. It may re-route the existing flow, but never reduces it.

use std::collections::VecDeque;

/// An edge and its way back.
#[derive(Debug, Clone, Copy)]
struct Edge {
    to: usize,
    left: i64,
}

/// A network.
#[derive(Debug, Default)]
pub(super) struct Network {
    /// Edge 2i and its way back 2i + 1.
    edges: Vec<Edge>,
    out: Vec<Vec<usize>>,
}

impl Network {
    pub(super) fn new(nodes: usize) -> Self {
        Self {
            edges: Vec::new(),
            out: vec![Vec::new(); nodes],
        }
    }

    pub(super) fn join(&mut self, from: usize, to: usize, capacity: i64) {
        for (from, to, left) in [(from, to, capacity), (to, from, 0)] {
            self.out[from].push(self.edges.len());
            self.edges.push(Edge { to, left });
        }
    }

    /// Sends as much more as can be from one node to another, `most` at most.
    pub(super) fn send(&mut self, from: usize, to: usize, most: i64) -> i64 {
        let mut sent = 0;
        while sent < most {
            let levels = self.levels(from);
            if levels[to] == usize::MAX {
                break;
            }
            let mut next = vec![0; self.out.len()];
            loop {
                let pushed = self.push(from, to, most - sent, &levels, &mut next);
                if pushed == 0 {
                    break;
                }
                sent += pushed;
            }
        }
        sent
    }

    /// Edges on a shortest way to each node.
    fn levels(&self, from: usize) -> Vec<usize> {
        let mut levels = vec![usize::MAX; self.out.len()];
        levels[from] = 0;
        let mut queue = VecDeque::from([from]);
        while let Some(node) = queue.pop_front() {
            for &edge in &self.out[node] {
                let Edge { to, left } = self.edges[edge];
                if left > 0 && levels[to] == usize::MAX {
                    levels[to] = levels[node] + 1;
                    queue.push_back(to);
                }
            }
        }
        levels
    }

    /// Augments one path; returns its flow. Paths are as long as there are levels, so that the
    /// depth of the recursion is bounded by the number of nodes.
    fn push(
        &mut self,
        at: usize,
        to: usize,
        most: i64,
        levels: &[usize],
        next: &mut [usize],
    ) -> i64 {
        if at == to || most == 0 {
            return most;
        }
        while let Some(&edge) = self.out[at].get(next[at]) {
            let Edge { to: node, left } = self.edges[edge];
            if left > 0 && levels[node] == levels[at] + 1 {
                let pushed = self.push(node, to, most.min(left), levels, next);
                if pushed > 0 {
                    self.edges[edge].left -= pushed;
                    self.edges[edge ^ 1].left += pushed;
                    return pushed;
                }
            }
            next[at] += 1;
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_equals_the_smallest_cut_and_reroutes_what_was_sent() {
        // 0 → {1, 2} → {3, 4} → 5; the first path may take 1 → 3, which only 2 can use later.
        let mut network = Network::new(6);
        for (from, to, capacity) in [(1, 3, 4), (1, 4, 3), (2, 3, 4), (3, 5, 4), (4, 5, 5)] {
            network.join(from, to, capacity);
        }
        assert_eq!(network.send(1, 5, 3), 3);
        assert_eq!(network.send(2, 5, 9), 4);
        assert_eq!(network.send(1, 5, 9), 0);
        assert_eq!(network.send(2, 5, 9), 0);
    }
}
