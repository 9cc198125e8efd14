//! The best of many candidates whose keys change; ties go to the lowest index.

use crate::optimize::block_tree::{BlockTree, Combine};

/// Keys closer than this (relative) are a tie: two sums of the same logarithms in another order must not decide which
/// task gets a clone (spec 4.3).
pub(super) const TIE: f64 = 1e-11;

/// The key of a position without a candidate. No candidate has it, and no key is NaN.
pub const ABSENT: f64 = f64::INFINITY;

/// A heap that keeps its candidates in the order of their indexes.
///
/// A change costs O(log n) and so does the best, for any number of equal keys. A binary heap would have to search all
/// ties for the lowest index.
#[derive(Debug, Clone)]
pub struct Tournament {
    /// A node holds the lowest key below it.
    keys: BlockTree,
    /// Cached, because it is read often.
    lowest: f64,
}

struct Lowest;

impl Combine for Lowest {
    const NOTHING: f64 = ABSENT;

    fn combine(one: f64, other: f64) -> f64 {
        if other < one { other } else { one }
    }
}

impl Tournament {
    /// A position for each key; [`ABSENT`] leaves it empty. O(n).
    pub fn new(keys: impl IntoIterator<Item = f64>, places: usize) -> Self {
        let keys = BlockTree::new::<Lowest>(keys, places);
        let lowest = keys.total::<Lowest>();
        Self { keys, lowest }
    }

    /// As [`Tournament::new`], in the memory of the previous content.
    pub(super) fn refill(&mut self, keys: impl IntoIterator<Item = f64>, places: usize) {
        self.keys.refill::<Lowest>(keys, places);
        self.lowest = self.keys.total::<Lowest>();
    }

    /// Sets the key of the candidate at `index`; [`ABSENT`] removes it.
    pub fn set(&mut self, index: usize, key: f64) {
        if let Some(lowest) = self.keys.set::<Lowest>(index, key) {
            self.lowest = lowest;
        }
    }

    /// Removes the candidate at `index`, if it is present.
    pub fn remove(&mut self, index: usize) {
        self.set(index, ABSENT);
    }

    /// The lowest key, [`ABSENT`] without a candidate.
    pub(super) fn lowest(&self) -> f64 {
        self.lowest
    }

    /// The candidates, ascending.
    pub(super) fn indexes(&self) -> impl Iterator<Item = usize> + '_ {
        let keys = self.keys.values().enumerate();
        keys.filter(|&(_, key)| key < ABSENT)
            .map(|(index, _)| index)
    }

    /// The last incumbent of a scan by ascending index that replaces its incumbent only for a key that is smaller by
    /// more than the tie.
    ///
    /// "Within the tie" is not transitive, so the scan's winner need not be the first near the minimum. But a
    /// candidate that beats everything before it becomes the incumbent whatever came before. Moving left while a
    /// candidate there ties finds such a candidate, and the scan starts there. O(log n) for each step of the chain of
    /// near ties, usually one.
    pub fn best(&self) -> Option<usize> {
        let lowest = self.lowest();
        if lowest >= ABSENT {
            return None;
        }
        // Usually no other key is near.
        let wide = lowest + 2.0 * TIE * lowest.abs();
        if let Some(only) = self.keys.only(|key| key <= wide) {
            return Some(only);
        }
        let mut bound = lowest;
        let mut winner = self.first_within_tie(bound)?;
        while self.key(winner) > bound {
            bound = self.key(winner);
            winner = self.first_within_tie(bound)?;
        }
        while is_smaller(lowest, self.key(winner)) {
            let held = self.key(winner);
            winner = self.keys.next(winner, |key| is_smaller(key, held))?;
        }
        Some(winner)
    }

    fn key(&self, index: usize) -> f64 {
        self.keys.value::<Lowest>(index)
    }

    /// The first candidate whose key is not larger than `bound` by more than the tie.
    fn first_within_tie(&self, bound: f64) -> Option<usize> {
        let limit = largest_tie(bound);
        self.keys.first(|key| key <= limit)
    }
}

/// The largest key that is not larger than `bound` by more than the tie. A comparison with it costs less than
/// computing the tie for every key.
fn largest_tie(bound: f64) -> f64 {
    if bound.is_infinite() {
        return bound;
    }
    let mut limit = bound + TIE * bound.abs();
    while is_smaller(bound, limit) {
        limit = limit.next_down();
    }
    while !is_smaller(bound, limit.next_up()) {
        limit = limit.next_up();
    }
    limit
}

/// Whether `key` is smaller than `other` by more than the tie; equal infinities are ties.
fn is_smaller(key: f64, other: f64) -> bool {
    if key.is_infinite() || other.is_infinite() {
        return key < other;
    }
    other - key > TIE * key.abs().max(other.abs())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(keys: &[f64]) -> Tournament {
        Tournament::new(keys.iter().copied(), keys.len())
    }

    fn best_of(keys: &[f64]) -> Option<usize> {
        of(keys).best()
    }

    #[test]
    fn the_smallest_key_is_the_best() {
        assert_eq!(best_of(&[-1.0, -3.0, -2.0]), Some(1));
        assert_eq!(best_of(&[ABSENT, 3.0, ABSENT]), Some(1));
        assert_eq!(best_of(&[]), None);
        assert_eq!(best_of(&[ABSENT]), None);
    }

    #[test]
    fn ties_go_to_the_lowest_index() {
        assert_eq!(best_of(&[-1.0, -1.0 - 1e-12]), Some(0));
        assert_eq!(best_of(&[-1.0, -1.0 - 1e-10]), Some(1));
        assert_eq!(best_of(&[0.0, -0.0]), Some(0));
        let lowest = f64::NEG_INFINITY;
        assert_eq!(best_of(&[-1e300, lowest, lowest]), Some(1));
        // In a full block one key is worse than all others, which tie.
        assert_eq!(
            best_of(&[-1.0, -1.0, -1.0, -1.0, -1.0, -1.0, -1.0, 0.0]),
            Some(0)
        );
    }

    #[test]
    fn a_chain_of_near_ties_is_resolved_as_a_scan_does() {
        // 1 does not beat 0, but 2 beats 0 and would not beat 1.
        let step = 0.7e-11;
        assert_eq!(best_of(&[-1.0, -1.0 - step, -1.0 - 2.0 * step]), Some(2));
        assert_eq!(best_of(&[-1.0 - step, -1.0, -1.0 - 2.0 * step]), Some(0));
    }

    /// The definition, implemented literally.
    fn scanned(keys: &[f64]) -> Option<usize> {
        let mut incumbent: Option<(usize, f64)> = None;
        for (index, &key) in keys.iter().enumerate() {
            let replaces = incumbent.is_none_or(|(_, held)| is_smaller(key, held));
            if key < ABSENT && replaces {
                incumbent = Some((index, key));
            }
        }
        incumbent.map(|(index, _)| index)
    }

    /// Keys in clusters, whose members tie with their neighbors but not with all.
    fn any_key() -> impl Strategy<Value = f64> {
        let centre = prop::sample::select(vec![-3.0, -1.0, -1e-200, 0.0, 2.0]);
        prop_oneof![
            9 => (centre, 0i32..12).prop_map(|(key, step)| key * (1.0 + 0.3e-11 * f64::from(step))),
            1 => prop::sample::select(vec![f64::NEG_INFINITY, -0.0]),
            2 => Just(ABSENT),
        ]
    }

    proptest! {
        #[test]
        fn the_best_is_always_the_winner_of_the_scan(
            first in prop::collection::vec(any_key(), 1..20),
            changes in prop::collection::vec((0usize..20, any_key()), 1..60),
        ) {
            let mut keys = first;
            let mut tournament = of(&keys);
            prop_assert_eq!(tournament.best(), scanned(&keys));
            for (index, key) in changes {
                let index = index % keys.len();
                keys[index] = key;
                tournament.set(index, key);
                prop_assert_eq!(tournament.best(), scanned(&keys));
                let lowest = keys.iter().copied().fold(ABSENT, f64::min);
                prop_assert_eq!(tournament.lowest(), lowest);
            }
            let present = (0..keys.len()).filter(|&index| keys[index] < ABSENT);
            prop_assert_eq!(tournament.indexes().collect::<Vec<_>>(), present.collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_largest_tie_is_within_it_and_the_next_double_is_not() {
        for bound in [-3.0, -0.1, -1e-300, -5e-324, 0.0, 1e-9, 7.0] {
            let limit = largest_tie(bound);
            assert!(limit >= bound && !is_smaller(bound, limit), "{bound}");
            assert!(is_smaller(bound, limit.next_up()), "{bound}");
        }
        assert_eq!(largest_tie(f64::NEG_INFINITY), f64::NEG_INFINITY);
    }

    #[test]
    fn a_moved_candidate_leaves_its_old_place() {
        let mut tournament = of(&[-2.0, -1.0]);
        tournament.set(0, -0.5);
        assert_eq!(tournament.best(), Some(1));
        tournament.remove(1);
        tournament.remove(0);
        assert_eq!(tournament.best(), None);
        tournament.set(8, -1.0);
        assert_eq!(tournament.best(), None);
    }
}
