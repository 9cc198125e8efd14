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
    pub(super) fn new(terms: &[f64]) -> Self {
        let leaves = terms.len().next_power_of_two();
        let mut nodes = vec![0.0; 2 * leaves];
        nodes[leaves..leaves + terms.len()].copy_from_slice(terms);
        for node in (1..leaves).rev() {
            nodes[node] = nodes[2 * node] + nodes[2 * node + 1];
        }
        Self { nodes, leaves }
    }

    pub(super) fn total(&self) -> f64 {
        self.nodes[1]
    }

    pub(super) fn set(&mut self, index: usize, term: f64) {
        let mut node = self.leaves + index;
        self.nodes[node] = term;
        while node > 1 {
            node /= 2;
            self.nodes[node] = self.nodes[2 * node] + self.nodes[2 * node + 1];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_terms_sum_to_zero() {
        assert_eq!(LnSum::new(&[]).total(), 0.0);
    }

    #[test]
    fn an_impossible_term_can_become_possible() {
        let mut sum = LnSum::new(&[-1.0, f64::NEG_INFINITY, -4.0]);
        assert_eq!(sum.total(), f64::NEG_INFINITY);
        sum.set(1, -2.0);
        assert_eq!(sum.total(), -7.0);
        sum.set(2, 0.0);
        assert_eq!(sum.total(), -3.0);
    }
}
