//! The totals as the stored state holds them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::DeadlineOutcome;

/// Namespaces with series of their own.
pub const NAMESPACES_MAX: usize = 200;
/// Classes of a namespace with series of their own.
pub const CLASSES_MAX: usize = 8;
/// The namespace and the class of all others.
pub const OTHER: &str = "other";

/// The longest name of a namespace, and the longest value of a label.
const NAME_MAX: usize = 63;
/// A larger count is not one that shed wrote.
const COUNT_MAX: u64 = 1 << 53;

/// Jobs by outcome: met, missed, failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts([u64; 3]);

/// Counts by class.
pub type ByClass<V> = BTreeMap<String, V>;

/// The ended jobs that are gone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StoredTotals {
    /// By namespace and class.
    pub series: BTreeMap<String, ByClass<Counts>>,
}

impl StoredTotals {
    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.series.is_empty()
    }

    /// Whether both count the same jobs. A series without jobs is no difference: it is stored with the next write.
    pub fn is_same(&self, other: &Self) -> bool {
        self.counted().eq(other.counted())
    }

    fn counted(&self) -> impl Iterator<Item = (&str, &str, Counts)> {
        let series = self.series.iter().flat_map(|(namespace, classes)| {
            let classes = classes.iter();
            classes.map(move |(class, counts)| (&**namespace, &**class, *counts))
        });
        series.filter(|(.., counts)| *counts != Counts::default())
    }

    /// Whether shed can have written this.
    pub fn is_sound(&self) -> bool {
        let is_name = |name: &String| name.len() <= NAME_MAX;
        let mut classes = self.series.values();
        let mut counts = self.series.values().flat_map(BTreeMap::values);
        self.series.len() <= NAMESPACES_MAX + 1
            && self.series.keys().all(is_name)
            && classes.all(|one| one.len() <= CLASSES_MAX + 1 && one.keys().all(is_name))
            && counts.all(|counts| counts.0.iter().all(|count| *count <= COUNT_MAX))
    }
}

impl Counts {
    /// The number of jobs with this outcome.
    pub fn of(&self, outcome: DeadlineOutcome) -> u64 {
        self.0[outcome as usize]
    }

    pub(super) fn add(&mut self, outcome: DeadlineOutcome) {
        let count = &mut self.0[outcome as usize];
        *count = count.saturating_add(1);
    }

    pub(super) fn remove(&mut self, outcome: DeadlineOutcome) {
        let count = &mut self.0[outcome as usize];
        *count = count.saturating_sub(1);
    }

    pub(super) fn plus(mut self, other: Self) -> Self {
        for (count, more) in self.0.iter_mut().zip(other.0) {
            *count = count.saturating_add(more);
        }
        self
    }
}
