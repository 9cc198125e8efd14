//! Amounts of resources as vectors: cpu, memory, pods and whatever else a cluster has.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Amounts by resource name, in the resource's smallest unit (milli-cpu, bytes, pods, …).
/// A name that is absent means zero.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Resources(BTreeMap<Arc<str>, i64>);

impl Resources {
    /// Amounts from pairs of name and amount.
    #[must_use]
    pub fn from_pairs<'a>(pairs: impl IntoIterator<Item = (&'a str, i64)>) -> Self {
        Self(
            pairs
                .into_iter()
                .map(|(name, amount)| (Arc::from(name), amount))
                .collect(),
        )
    }

    /// The amount of `name`, zero if absent.
    #[must_use]
    pub fn get(&self, name: &str) -> i64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// Sets the amount of `name`.
    pub fn set(&mut self, name: &str, amount: i64) {
        self.0.insert(Arc::from(name), amount);
    }

    /// Names and amounts in the order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, i64)> {
        self.0.iter().map(|(name, &amount)| (&**name, amount))
    }

    /// Adds `other`.
    pub fn add(&mut self, other: &Resources) {
        for (name, &amount) in &other.0 {
            let mine = self.0.entry(Arc::clone(name)).or_insert(0);
            *mine = mine.saturating_add(amount);
        }
    }

    /// Adds `count` times `other`.
    pub fn add_times(&mut self, other: &Resources, count: usize) {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        for (name, &amount) in &other.0 {
            let more = amount.saturating_mul(count);
            match self.0.get_mut(name) {
                Some(mine) => *mine = mine.saturating_add(more),
                None => {
                    self.0.insert(Arc::clone(name), more);
                }
            }
        }
    }

    /// Takes `other` away; amounts may become negative (a node that vanished).
    pub fn subtract(&mut self, other: &Resources) {
        for (name, &amount) in &other.0 {
            let mine = self.0.entry(Arc::clone(name)).or_insert(0);
            *mine = mine.saturating_sub(amount);
        }
    }

    /// The smaller of both amounts, per resource that either names.
    #[must_use]
    pub fn min(&self, other: &Resources) -> Resources {
        let names = self.0.keys().chain(other.0.keys());
        Self(
            names
                .map(|name| (Arc::clone(name), self.get(name).min(other.get(name))))
                .collect(),
        )
    }

    /// Every amount times `share`, floored with the snap of the spec's section 3
    /// (0.29 · 100 is 28.999… in double and means 29).
    #[must_use]
    pub fn scaled(&self, share: f64) -> Resources {
        let scale = |amount: i64| (amount as f64 * share + 1e-9).floor() as i64;
        Self(
            self.0
                .iter()
                .map(|(name, &amount)| (Arc::clone(name), scale(amount)))
                .collect(),
        )
    }

    /// Whether `demand` fits into what is here: every resource that it asks for.
    #[must_use]
    pub fn fits(&self, demand: &Resources) -> bool {
        demand
            .0
            .iter()
            .all(|(name, &amount)| amount <= 0 || amount <= self.get(name))
    }

    /// How many times `demand` fits; `u32::MAX` if it asks for nothing.
    #[must_use]
    pub fn times(&self, demand: &Resources) -> u32 {
        demand
            .0
            .iter()
            .filter(|(_, amount)| **amount > 0)
            .map(|(name, &amount)| (self.get(name).max(0) / amount).min(i64::from(u32::MAX)) as u32)
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
    fn a_share_is_floored_with_a_snap() {
        let all = Resources::from_pairs([("pods", 100)]);
        assert_eq!(all.scaled(0.29).get("pods"), 29);
        assert_eq!(all.scaled(0.999).get("pods"), 99);
    }
}
