//! The best of many candidates whose keys change, with ties that go to the lowest index.

/// Keys closer than this (relative) are a tie: two sums of the same logarithms in another order
/// must not decide who gets a clone (spec 4.3).
pub(super) const TIE: f64 = 1e-11;

/// The key of a place without a candidate. No candidate has it, and no key is NaN.
pub(super) const ABSENT: f64 = f64::INFINITY;

/// A heap that keeps its candidates in the order of their indexes: node 1 is the root, node `n`
/// has the children `2n` and `2n + 1` and holds the smaller of their keys, the leaves come last.
///
/// A change costs O(log n) and so does the best, whatever the number of equal keys. A binary heap
/// would have to dig through all that tie to find the lowest index.
#[derive(Debug, Clone)]
pub(super) struct Tournament {
    nodes: Vec<f64>,
    leaves: usize,
}

impl Tournament {
    /// A place for each key; [`ABSENT`] leaves it empty. O(n).
    pub(super) fn new(keys: impl IntoIterator<Item = f64>, places: usize) -> Self {
        let leaves = places.next_power_of_two();
        let mut nodes = Vec::with_capacity(2 * leaves);
        nodes.resize(leaves, ABSENT);
        nodes.extend(keys.into_iter().take(leaves));
        nodes.resize(2 * leaves, ABSENT);
        let (mut inner, mut below) = nodes.split_at_mut(leaves);
        // One level after the other, from the leaves' parents to the root.
        while inner.len() > 1 {
            let (above, level) = inner.split_at_mut(inner.len() / 2);
            for (parent, children) in level.iter_mut().zip(below.chunks_exact(2)) {
                *parent = children.iter().copied().fold(ABSENT, lower);
            }
            (inner, below) = (above, level);
        }
        Self { nodes, leaves }
    }

    /// Gives the candidate at `index` this key; [`ABSENT`] takes it out.
    pub(super) fn set(&mut self, index: usize, key: f64) {
        let mut node = self.leaves + index;
        let Some(leaf) = self.nodes.get_mut(node) else {
            return;
        };
        *leaf = key;
        while node > 1 {
            let lowest = lower(self.key(node), self.key(node ^ 1));
            node /= 2;
            match self.nodes.get_mut(node) {
                Some(held) if held.to_bits() != lowest.to_bits() => *held = lowest,
                // What did not change here changes nothing above.
                _ => return,
            }
        }
    }

    /// Takes the candidate at `index` out, if it is in.
    pub(super) fn remove(&mut self, index: usize) {
        self.set(index, ABSENT);
    }

    /// The lowest key, [`ABSENT`] when there is no candidate.
    pub(super) fn lowest(&self) -> f64 {
        self.key(1)
    }

    /// The candidates, ascending.
    pub(super) fn indexes(&self) -> impl Iterator<Item = usize> + '_ {
        let keys = self.nodes.iter().skip(self.leaves).enumerate();
        keys.filter(|&(_, &key)| key < ABSENT)
            .map(|(index, _)| index)
    }

    /// The candidate that a scan by ascending index ends with, if it replaces its incumbent only
    /// for a key that is smaller by more than the tie.
    ///
    /// "Within the tie" is not transitive, so the scan's winner need not be the first near the
    /// minimum. But a candidate that beats everything before it is an incumbent whatever came
    /// before: going left while something there ties finds one, and the scan starts there.
    /// O(log n) for each step of the chain of near ties, one as a rule.
    pub(super) fn best(&self) -> Option<usize> {
        let lowest = self.lowest();
        if lowest >= ABSENT {
            return None;
        }
        let mut bound = lowest;
        let mut winner = self.first_within_tie(bound);
        while self.key(winner) > bound {
            bound = self.key(winner);
            winner = self.first_within_tie(bound);
        }
        while is_smaller(lowest, self.key(winner)) {
            winner = self.next_smaller(winner)?;
        }
        Some(winner - self.leaves)
    }

    fn key(&self, node: usize) -> f64 {
        self.nodes.get(node).copied().unwrap_or(ABSENT)
    }

    /// The first leaf whose key is not larger than `bound` by more than the tie; there is one.
    fn first_within_tie(&self, bound: f64) -> usize {
        self.descend(1, |key| !is_smaller(bound, key))
    }

    /// The first leaf after the leaf `node` whose key is smaller by more than the tie.
    fn next_smaller(&self, mut node: usize) -> Option<usize> {
        let held = self.key(node);
        let is_wanted = |key| is_smaller(key, held);
        while node > 1 {
            if node.is_multiple_of(2) && is_wanted(self.key(node + 1)) {
                return Some(self.descend(node + 1, is_wanted));
            }
            node /= 2;
        }
        None
    }

    /// The first leaf below `node` that is wanted, when one is; a key that is wanted is no
    /// larger than one that is not.
    fn descend(&self, mut node: usize, is_wanted: impl Fn(f64) -> bool) -> usize {
        while node < self.leaves {
            node *= 2;
            if !is_wanted(self.key(node)) {
                node += 1;
            }
        }
        node
    }
}

fn lower(one: f64, other: f64) -> f64 {
    if other < one { other } else { one }
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
    }

    #[test]
    fn a_chain_of_near_ties_is_resolved_as_a_scan_does() {
        // 1 does not beat 0, but 2 beats 0 and would not beat 1.
        let step = 0.7e-11;
        assert_eq!(best_of(&[-1.0, -1.0 - step, -1.0 - 2.0 * step]), Some(2));
        assert_eq!(best_of(&[-1.0 - step, -1.0, -1.0 - 2.0 * step]), Some(0));
    }

    /// The definition, word for word.
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

    /// Keys in clusters, whose members are ties with their neighbours but not with all.
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
    fn a_moved_candidate_leaves_its_old_place() {
        let mut tournament = of(&[-2.0, -1.0]);
        tournament.set(0, -0.5);
        assert_eq!(tournament.best(), Some(1));
        tournament.remove(1);
        tournament.remove(0);
        assert_eq!(tournament.best(), None);
        tournament.set(7, -1.0);
        assert_eq!(tournament.best(), None);
    }
}
