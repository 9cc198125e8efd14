//! Amounts of resources as vectors: cpu, memory, pods and any other resource of a cluster.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Amounts by resource name, in the resource's smallest unit (milli-cpu, bytes, pods, …).
/// A name that is absent means zero.
///
/// A list in the order of the names: there are few of them, and a pass adds up those of all nodes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(from = "BTreeMap<Arc<str>, i64>", into = "BTreeMap<Arc<str>, i64>")]
pub struct Resources(Vec<(Arc<str>, i64)>);

impl From<BTreeMap<Arc<str>, i64>> for Resources {
    fn from(amounts: BTreeMap<Arc<str>, i64>) -> Self {
        Self(amounts.into_iter().collect())
    }
}

impl From<Resources> for BTreeMap<Arc<str>, i64> {
    fn from(resources: Resources) -> Self {
        resources.0.into_iter().collect()
    }
}

impl Resources {
    /// Amounts from pairs of name and amount. If a name occurs twice, the later amount counts.
    pub fn from_pairs<'a>(pairs: impl IntoIterator<Item = (&'a str, i64)>) -> Self {
        let pairs = pairs.into_iter();
        let amounts: BTreeMap<_, _> = pairs
            .map(|(name, amount)| (Arc::from(name), amount))
            .collect();
        amounts.into()
    }

    /// The amount of `name`, zero if absent.
    pub fn get(&self, name: &str) -> i64 {
        let found = self.0.iter().find(|(mine, _)| **mine == *name);
        found.map_or(0, |(_, amount)| *amount)
    }

    /// Sets the amount of `name`.
    pub fn set(&mut self, name: &str, amount: i64) {
        self.update(&Arc::from(name), |_| amount);
    }

    /// Changes the amount of `name`, zero before if absent.
    fn update(&mut self, name: &Arc<str>, to: impl FnOnce(i64) -> i64) {
        match self.0.binary_search_by(|(mine, _)| mine.cmp(name)) {
            Ok(at) => {
                if let Some((_, amount)) = self.0.get_mut(at) {
                    *amount = to(*amount);
                }
            }
            Err(at) => self.0.insert(at, (Arc::clone(name), to(0))),
        }
    }

    /// Names and amounts in the order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, i64)> {
        self.0.iter().map(|(name, amount)| (&**name, *amount))
    }

    /// Adds `other`.
    pub fn add(&mut self, other: &Resources) {
        self.combine(other, i64::saturating_add);
    }

    /// Adds `count` times `other`.
    pub fn add_times(&mut self, other: &Resources, count: usize) {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        self.combine(other, |mine, amount| {
            mine.saturating_add(amount.saturating_mul(count))
        });
    }

    /// Takes `other` away; amounts may become negative (a node that vanished).
    pub fn subtract(&mut self, other: &Resources) {
        self.combine(other, i64::saturating_sub);
    }

    fn combine(&mut self, other: &Resources, with: impl Fn(i64, i64) -> i64) {
        for (at, (name, amount)) in other.0.iter().enumerate() {
            // Mostly both name the same resources.
            match self.0.get_mut(at) {
                Some((mine, old)) if mine == name => *old = with(*old, *amount),
                _ => self.update(name, |old| with(old, *amount)),
            }
        }
    }

    /// The smaller of both amounts, per resource that either names.
    pub fn min(&self, other: &Resources) -> Resources {
        let mut smaller = self.clone();
        smaller.combine(other, i64::min);
        for (name, amount) in &mut smaller.0 {
            *amount = (*amount).min(other.get(name));
        }
        smaller
    }

    /// Every amount times `share`, floored with the snap of the spec's section 3
    /// (0.29 · 100 is 28.999… in double and means 29).
    pub fn scaled(&self, share: f64) -> Resources {
        let scale = |amount: i64| (amount as f64 * share + 1e-9).floor() as i64;
        Self(
            self.0
                .iter()
                .map(|(name, amount)| (Arc::clone(name), scale(*amount)))
                .collect(),
        )
    }

    /// Whether `demand` fits these amounts: every resource that it requests.
    pub fn fits(&self, demand: &Resources) -> bool {
        demand
            .0
            .iter()
            .all(|(name, amount)| *amount <= 0 || *amount <= self.get(name))
    }

    /// How many times `demand` fits; `u32::MAX` if it requests nothing.
    pub fn times(&self, demand: &Resources) -> u32 {
        demand
            .0
            .iter()
            .filter(|(_, amount)| *amount > 0)
            .map(|(name, amount)| (self.get(name).max(0) / amount).min(i64::from(u32::MAX)) as u32)
            .min()
            .unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_decided_by_the_scarcest_resource() {
        let free = Resources::from_pairs([("cpu", 4000), ("memory", 1000)]);
        let demand = Resources::from_pairs([("cpu", 500), ("memory", 400)]);
        assert_eq!(free.times(&demand), 2);
        assert!(free.fits(&demand));
        assert!(!free.fits(&Resources::from_pairs([("gpu", 1)])));
        assert_eq!(free.times(&Resources::default()), u32::MAX);
    }

    #[test]
    fn amounts_of_other_names_are_added_in_their_place() {
        let mut sum = Resources::from_pairs([("cpu", 1), ("pods", 2)]);
        sum.add(&Resources::from_pairs([("memory", 3), ("pods", 4)]));
        sum.subtract(&Resources::from_pairs([("gpu", 5), ("memory", 1)]));
        let all = [("cpu", 1), ("gpu", -5), ("memory", 2), ("pods", 6)];
        assert_eq!(sum, Resources::from_pairs(all));
        let other = Resources::from_pairs([("disk", -1), ("memory", 9)]);
        let smaller = [
            ("cpu", 0),
            ("disk", -1),
            ("gpu", -5),
            ("memory", 2),
            ("pods", 0),
        ];
        assert_eq!(sum.min(&other), Resources::from_pairs(smaller));
    }

    #[test]
    fn a_share_is_floored_with_a_snap() {
        let all = Resources::from_pairs([("pods", 100)]);
        assert_eq!(all.scaled(0.29).get("pods"), 29);
        assert_eq!(all.scaled(0.999).get("pods"), 99);
    }
}
