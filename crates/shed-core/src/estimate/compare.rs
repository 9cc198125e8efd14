//! Comparison of computed numbers. Sums of the same terms in another order differ in their last digits. Without a
//! tolerance such a difference would decide which job is served.

/// Keys closer than this (relative) are a tie.
const TOLERANCE: f64 = 1e-9;
/// The least magnitude that the tolerance is relative to.
const SMALL: f64 = 1e-6;

/// The difference that two numbers of this size may have and still be a tie.
pub fn margin(a: f64, b: f64) -> f64 {
    TOLERANCE * a.abs().max(b.abs()).max(SMALL)
}

/// a ≤ b, or so close that it counts as equal. False when one is NaN.
pub fn at_most(a: f64, b: f64) -> bool {
    // The margin of an infinity is infinite, so only the plain comparison is correct.
    a <= b || (a.is_finite() && b.is_finite() && a <= b + margin(a, b))
}

/// a < b by more than the tolerance.
pub fn is_less(a: f64, b: f64) -> bool {
    a < b && !at_most(b, a)
}

/// Whether neither is less than the other.
pub fn is_tie(a: f64, b: f64) -> bool {
    at_most(a, b) && at_most(b, a)
}

/// Sorts by `key` ascending; keys that are ties with their neighbour are ordered by `tie`.
///
/// Ties are not transitive, so no comparison of two elements can express this. The keys are sorted first, then each
/// chain of near neighbors by `tie`. The result does not depend on the order of the input if `tie` distinguishes all
/// elements. NaN counts as the largest key.
pub fn sort_with_ties<T, K: Ord>(items: &mut [T], key: impl Fn(&T) -> f64, tie: impl Fn(&T) -> K) {
    items.sort_by(|a, b| {
        let by_key = key(a).total_cmp(&key(b));
        by_key.then_with(|| tie(a).cmp(&tie(b)))
    });
    for chain in items.chunk_by_mut(|a, b| is_tie(key(a), key(b))) {
        chain.sort_by_key(&tie);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_numbers_are_ties_and_distant_ones_are_not() {
        assert!(is_tie(0.1 + 0.2, 0.3));
        assert!(is_less(1.0, 1.0 + 1e-6));
        assert!(at_most(1.0 + 1e-12, 1.0) && !is_less(1.0, 1.0 + 1e-12));
        assert!(is_tie(0.0, 1e-16));
    }

    #[test]
    fn infinities_are_compared_plainly_and_nan_is_in_no_order() {
        let infinite = f64::INFINITY;
        assert!(is_tie(infinite, infinite) && is_less(1e300, infinite));
        assert!(!at_most(infinite, 1e300) && at_most(-infinite, 0.0));
        assert!(!at_most(f64::NAN, 1.0) && !is_less(f64::NAN, 1.0) && !is_less(1.0, f64::NAN));
    }

    #[test]
    fn sorting_ends_ties_by_the_second_key_whatever_the_input_order() {
        let mut items = [(0.3, 2), (1.0, 0), (0.1 + 0.2, 1), (0.2, 9)];
        sort_with_ties(&mut items, |item| item.0, |item| item.1);
        assert_eq!(items.map(|item| item.1), [9, 1, 2, 0]);
        items.reverse();
        sort_with_ties(&mut items, |item| item.0, |item| item.1);
        assert_eq!(items.map(|item| item.1), [9, 1, 2, 0]);
    }

    #[test]
    fn a_chain_of_near_ties_does_not_break_the_sort() {
        let step = 0.7e-9;
        let mut items: Vec<(f64, u32)> = (0..50)
            .map(|n| (1.0 + step * f64::from(n), 50 - n))
            .collect();
        sort_with_ties(&mut items, |item| item.0, |item| item.1);
        assert!(items.is_sorted_by_key(|item| item.1));
    }
}
