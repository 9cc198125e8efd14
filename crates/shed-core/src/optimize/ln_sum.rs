//! A sum of logarithms of which one term changes at a time.

/// The sum of a fixed number of terms in `[-∞, 0]`, kept as a tree of partial sums: a change
/// costs O(log n), nothing is ever subtracted (so −∞ can leave again), and the result depends
/// only on the terms and not on the order in which they changed.
#[derive(Debug, Clone)]
pub(super) struct LnSum {
    /// Node 1 is the root, node `n` has the children `2n` and `2n + 1`, the leaves come last.
    nodes: Vec<f64>,
    leaves: usize,
}

impl LnSum {
    pub(super) fn new(terms: impl IntoIterator<Item = f64>, count: usize) -> Self {
        let leaves = count.next_power_of_two();
        let mut nodes = Vec::with_capacity(2 * leaves);
        nodes.resize(leaves, 0.0);
        nodes.extend(terms.into_iter().take(leaves));
        nodes.resize(2 * leaves, 0.0);
        let (mut inner, mut below) = nodes.split_at_mut(leaves);
        // One level after the other, from the leaves' parents to the root.
        while inner.len() > 1 {
            let (above, level) = inner.split_at_mut(inner.len() / 2);
            for (parent, children) in level.iter_mut().zip(below.chunks_exact(2)) {
                *parent = children.iter().sum();
            }
            (inner, below) = (above, level);
        }
        Self { nodes, leaves }
    }

    pub(super) fn total(&self) -> f64 {
        self.node(1)
    }

    pub(super) fn term(&self, index: usize) -> f64 {
        self.node(self.leaves + index)
    }

    pub(super) fn set(&mut self, index: usize, term: f64) {
        let mut node = self.leaves + index;
        let Some(leaf) = self.nodes.get_mut(node) else {
            return;
        };
        *leaf = term;
        while node > 1 {
            node /= 2;
            let sum = self.node(2 * node) + self.node(2 * node + 1);
            if let Some(held) = self.nodes.get_mut(node) {
                *held = sum;
            }
        }
    }

    fn node(&self, node: usize) -> f64 {
        self.nodes.get(node).copied().unwrap_or(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_terms_sum_to_zero() {
        assert_eq!(LnSum::new([], 0).total(), 0.0);
    }

    #[test]
    fn every_term_counts_once_and_can_be_read() {
        let mut sum = LnSum::new([-1.0, -2.0, -4.0, -8.0, -16.0], 5);
        assert_eq!(sum.total(), -31.0);
        assert_eq!(sum.term(3), -8.0);
        sum.set(4, -0.5);
        sum.set(9, -64.0);
        assert_eq!((sum.total(), sum.term(4)), (-15.5, -0.5));
    }

    #[test]
    fn an_impossible_term_can_become_possible() {
        let mut sum = LnSum::new([-1.0, f64::NEG_INFINITY, -4.0], 3);
        assert_eq!(sum.total(), f64::NEG_INFINITY);
        sum.set(1, -2.0);
        assert_eq!(sum.total(), -7.0);
        sum.set(2, 0.0);
        assert_eq!(sum.total(), -3.0);
    }
}
