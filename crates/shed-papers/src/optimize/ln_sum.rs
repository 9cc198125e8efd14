//! A sum of logarithms whose terms change one at a time.

use crate::optimize::block_tree::{BlockTree, Combine};

/// The sum of a fixed number of terms in `[-∞, 0]`, stored as a tree of partial sums. A change costs O(log n), and
/// nothing is ever subtracted, so a −∞ can be replaced. The result depends only on the terms and not on the order of
/// their changes.
#[derive(Debug, Clone, Default)]
pub(super) struct LnSum {
    terms: BlockTree,
    /// Cached, because it is read often.
    total: f64,
}

struct Sum;

impl Combine for Sum {
    const NOTHING: f64 = 0.0;

    fn combine(one: f64, other: f64) -> f64 {
        one + other
    }
}

impl LnSum {
    /// Becomes the sum of these terms, in the memory of the previous content.
    pub(super) fn refill(&mut self, terms: impl IntoIterator<Item = f64>, count: usize) {
        self.terms.refill::<Sum>(terms, count);
        self.total = self.terms.total::<Sum>();
    }

    pub(super) fn total(&self) -> f64 {
        self.total
    }

    pub(super) fn term(&self, index: usize) -> f64 {
        self.terms.value::<Sum>(index)
    }

    /// All terms, up to the last position.
    pub(super) fn terms(&self) -> impl Iterator<Item = f64> + '_ {
        self.terms.values()
    }

    pub(super) fn set(&mut self, index: usize, term: f64) {
        if let Some(total) = self.terms.set::<Sum>(index, term) {
            self.total = total;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of<const N: usize>(terms: [f64; N]) -> LnSum {
        let mut sum = LnSum::default();
        sum.refill(terms, N);
        sum
    }

    #[test]
    fn no_terms_sum_to_zero() {
        assert_eq!(LnSum::default().total(), 0.0);
        assert_eq!(of([]).total(), 0.0);
    }

    #[test]
    fn a_refilled_sum_keeps_no_old_term() {
        let mut sum = of([-1.0; 99]);
        sum.refill([-2.0, -4.0], 2);
        assert_eq!((sum.total(), sum.term(1), sum.term(2)), (-6.0, -4.0, 0.0));
        assert_eq!(sum.terms().take(2).collect::<Vec<_>>(), [-2.0, -4.0]);
    }

    #[test]
    fn every_term_counts_once_and_can_be_read() {
        let mut sum = of([-1.0, -2.0, -4.0, -8.0, -16.0]);
        assert_eq!(sum.total(), -31.0);
        assert_eq!(sum.term(3), -8.0);
        sum.set(4, -0.5);
        sum.set(9, -64.0);
        assert_eq!((sum.total(), sum.term(4)), (-15.5, -0.5));
    }

    #[test]
    fn an_impossible_term_can_become_possible() {
        let mut sum = of([-1.0, f64::NEG_INFINITY, -4.0]);
        assert_eq!(sum.total(), f64::NEG_INFINITY);
        sum.set(1, -2.0);
        assert_eq!(sum.total(), -7.0);
        sum.set(2, 0.0);
        assert_eq!(sum.total(), -3.0);
    }
}
