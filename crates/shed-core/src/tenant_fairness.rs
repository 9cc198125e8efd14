//! Bounded tables that tenants share. A tenant of many entries costs no other tenant an entry.

use std::cmp::Ordering;
use std::collections::BTreeMap;

/// The order in which entries keep their places: the first one of each tenant, then the second one of each, and so on.
/// Within a tenant and within such a round they are ordered by `compare`.
pub fn fair_order<E, T: Ord>(
    entries: impl Iterator<Item = E>,
    tenant_of: impl Fn(&E) -> T,
    compare: impl Fn(&E, &E) -> Ordering,
) -> Vec<E> {
    let mut all: Vec<E> = entries.collect();
    all.sort_by(compare);
    let mut counts: BTreeMap<T, usize> = BTreeMap::new();
    let with_round = |entry: E| {
        let count = counts.entry(tenant_of(&entry)).or_default();
        *count += 1;
        (*count, entry)
    };
    let mut rounds: Vec<(usize, E)> = all.into_iter().map(with_round).collect();
    rounds.sort_by_key(|(round, _)| *round);
    rounds.into_iter().map(|(_, entry)| entry).collect()
}

/// The keys that have to go so that `max` of these (key, tenant, age) are left: the oldest ones of the tenants with the
/// most. Of equals the first one goes.
pub fn surplus<K: Copy, T: Ord + Copy, A: Ord>(
    entries: impl DoubleEndedIterator<Item = (K, T, A)> + ExactSizeIterator,
    max: usize,
) -> Vec<K> {
    if entries.len() <= max {
        return Vec::new();
    }
    let kept = fair_order(entries.rev(), |entry| entry.1, |a, b| b.2.cmp(&a.2));
    kept.into_iter().skip(max).map(|(key, ..)| key).collect()
}

/// Keeps at most `max` entries: the oldest ones of the tenants with the most are dropped.
pub fn keep_fair<K: Ord + Clone, V, T: Ord + ?Sized, A: Ord>(
    entries: &mut BTreeMap<K, V>,
    max: usize,
    tenant_of: impl for<'a> Fn(&'a K, &'a V) -> &'a T,
    age: impl Fn(&V) -> A,
) {
    let of_each = |(key, entry)| (key, tenant_of(key, entry), age(entry));
    let surplus = surplus(entries.iter().map(of_each), max);
    for key in surplus.into_iter().cloned().collect::<Vec<K>>() {
        entries.remove(&key);
    }
}

/// Keeps at most `max` entries of one tenant, or of tenants with one entry each: the newest.
pub fn keep_newest<K: Ord + Clone, V, A: Ord>(
    entries: &mut BTreeMap<K, V>,
    max: usize,
    age: impl Fn(&V) -> A,
) {
    keep_fair(entries, max, |_, _| &(), age);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The keys that are left of entries of these tenants. Entries with higher keys are newer.
    fn kept(tenants: &[&str], max: usize) -> Vec<usize> {
        let entries = tenants.iter().enumerate();
        let entries = entries.map(|(at, tenant)| (at, (*tenant, at)));
        let mut entries: BTreeMap<usize, (&str, usize)> = entries.collect();
        keep_fair(&mut entries, max, |_, entry| entry.0, |entry| entry.1);
        entries.into_keys().collect()
    }

    #[test]
    fn the_tenant_with_the_most_entries_loses_its_oldest() {
        let tenants = ["a", "b", "b", "b", "b", "c", "c"];
        assert_eq!(kept(&tenants, 9).len(), 7);
        assert_eq!(kept(&tenants, 6), [0, 2, 3, 4, 5, 6]);
        // Two of "b" and two of "c" are left.
        assert_eq!(kept(&tenants, 5), [0, 3, 4, 5, 6]);
        assert_eq!(kept(&tenants, 3), [0, 4, 6]);
        assert_eq!(kept(&tenants, 1), [6]);
        assert!(kept(&tenants, 0).is_empty());
    }
}
