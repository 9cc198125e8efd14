//! The best of many candidates whose keys change, with ties that go to the lowest index.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::ops::Bound;

/// Keys closer than this (relative) are a tie: two sums of the same logarithms in another order
/// must not decide who gets a clone.
const TIE: f64 = 1e-11;

/// A key in the total order of doubles. No key is NaN.
#[derive(Debug, Clone, Copy)]
struct Key(f64);

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Key {}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// Candidates by key, smallest first.
#[derive(Debug, Clone, Default)]
pub(super) struct Ranking {
    order: BTreeSet<(Key, usize)>,
    keys: Vec<Option<Key>>,
}

impl Ranking {
    /// Adds the candidate `index`, or moves it to another key.
    pub(super) fn set(&mut self, index: usize, key: f64) {
        self.remove(index);
        if self.keys.len() <= index {
            self.keys.resize(index + 1, None);
        }
        self.keys[index] = Some(Key(key));
        self.order.insert((Key(key), index));
    }

    /// Takes the candidate `index` out, if it is in.
    pub(super) fn remove(&mut self, index: usize) {
        if let Some(key) = self.keys.get_mut(index).and_then(Option::take) {
            self.order.remove(&(key, index));
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    pub(super) fn indexes(&self) -> impl Iterator<Item = usize> + '_ {
        self.order.iter().map(|&(_, index)| index)
    }

    /// The candidate that a scan by ascending index ends with, if it replaces its incumbent only
    /// for a key that is smaller by more than the tie.
    ///
    /// "Within the tie" is not transitive, so the scan's winner need not be the lowest index
    /// near the minimum. But all keys beyond the first gap wider than the tie lose to all keys
    /// before it, and of equal keys only the lowest index can win: scanning the distinct keys
    /// before the gap, one or two as a rule, gives the same winner as scanning everything.
    pub(super) fn best(&self) -> Option<usize> {
        let mut cursor = *self.order.first()?;
        let mut near = vec![(cursor.1, cursor.0.0)];
        while let Some(&next) = self.next_distinct(cursor.0) {
            if is_smaller(cursor.0.0, next.0.0) {
                break;
            }
            near.push((next.1, next.0.0));
            cursor = next;
        }
        near.sort_unstable_by_key(|&(index, _)| index);
        near.into_iter()
            .reduce(|incumbent, candidate| {
                if is_smaller(candidate.1, incumbent.1) {
                    candidate
                } else {
                    incumbent
                }
            })
            .map(|(index, _)| index)
    }

    fn next_distinct(&self, key: Key) -> Option<&(Key, usize)> {
        let beyond = (Bound::Excluded((key, usize::MAX)), Bound::Unbounded);
        self.order.range(beyond).next()
    }
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

    fn best_of(keys: &[f64]) -> Option<usize> {
        let mut ranking = Ranking::default();
        for (index, &key) in keys.iter().enumerate() {
            ranking.set(index, key);
        }
        ranking.best()
    }

    #[test]
    fn the_smallest_key_is_the_best() {
        assert_eq!(best_of(&[-1.0, -3.0, -2.0]), Some(1));
        assert_eq!(best_of(&[]), None);
    }

    #[test]
    fn ties_go_to_the_lowest_index() {
        assert_eq!(best_of(&[-1.0, -1.0 - 1e-12]), Some(0));
        assert_eq!(best_of(&[-1.0, -1.0 - 1e-10]), Some(1));
        assert_eq!(best_of(&[0.0, -0.0]), Some(0));
        let lowest = f64::NEG_INFINITY;
        assert_eq!(best_of(&[-1e300, lowest, lowest]), Some(1));
    }

    #[test]
    fn a_chain_of_near_ties_is_resolved_as_a_scan_does() {
        // 1 does not beat 0, but 2 beats 0 and would not beat 1.
        let step = 0.7e-11;
        assert_eq!(best_of(&[-1.0, -1.0 - step, -1.0 - 2.0 * step]), Some(2));
        assert_eq!(best_of(&[-1.0 - step, -1.0, -1.0 - 2.0 * step]), Some(0));
    }

    /// The definition, word for word.
    fn scanned(keys: &[Option<f64>]) -> Option<usize> {
        let mut incumbent: Option<(usize, f64)> = None;
        for (index, key) in keys.iter().enumerate() {
            let Some(key) = *key else { continue };
            if incumbent.is_none_or(|(_, held)| is_smaller(key, held)) {
                incumbent = Some((index, key));
            }
        }
        incumbent.map(|(index, _)| index)
    }

    /// Keys in clusters, whose members are ties with their neighbours but not with all.
    fn any_key() -> impl Strategy<Value = f64> {
        let centre = prop::sample::select(vec![-3.0, -1.0, -1e-200, 0.0, 2.0]);
        prop_oneof![
            9 => (centre, 0i32..12).prop_map(|(key, step)| key * (1.0 + 0.3e-11 * f64::from(step))),
            1 => prop::sample::select(vec![f64::NEG_INFINITY, f64::INFINITY, -0.0]),
        ]
    }

    proptest! {
        #[test]
        fn the_best_is_always_the_winner_of_the_scan(
            changes in prop::collection::vec((0usize..12, prop::option::weighted(0.8, any_key())), 1..60),
        ) {
            let mut ranking = Ranking::default();
            let mut keys = vec![None; 12];
            for (index, key) in changes {
                keys[index] = key;
                match key {
                    Some(key) => ranking.set(index, key),
                    None => ranking.remove(index),
                }
                prop_assert_eq!(ranking.best(), scanned(&keys));
            }
        }
    }

    #[test]
    fn a_moved_candidate_leaves_its_old_place() {
        let mut ranking = Ranking::default();
        ranking.set(0, -2.0);
        ranking.set(1, -1.0);
        ranking.set(0, -0.5);
        assert_eq!(ranking.best(), Some(1));
        ranking.remove(1);
        ranking.remove(0);
        assert!(ranking.is_empty());
    }
}
