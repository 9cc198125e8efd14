//! A set of task indexes kept as ranges and written as batch/v1 Job does: `0-3,5,7-9`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::ids::TaskIndex;

/// A sorted set of task indexes; ranges are inclusive, disjoint and never adjacent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IndexSet {
    ranges: Vec<(u32, u32)>,
    /// How many indexes the ranges hold: it is asked for at each end of a task.
    count: u32,
}

/// Why a text is not an index set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseIndexSetError {
    part: String,
}

impl fmt::Display for ParseIndexSetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` is no index or range of indexes such as `4` or `4-7`, in ascending order",
            self.part
        )
    }
}

impl std::error::Error for ParseIndexSetError {}

impl IndexSet {
    /// The empty set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether `index` is in the set; O(log ranges).
    #[must_use]
    pub fn contains(&self, index: TaskIndex) -> bool {
        let after = self.ranges.partition_point(|range| range.0 <= index.0);
        after > 0 && self.ranges[after - 1].1 >= index.0
    }

    /// Adds `index`; false if it was there already.
    pub fn insert(&mut self, index: TaskIndex) -> bool {
        let after = self.ranges.partition_point(|range| range.0 <= index.0);
        if after > 0 && self.ranges[after - 1].1 >= index.0 {
            return false;
        }
        self.count += 1;
        let joins_left = after > 0 && self.ranges[after - 1].1 + 1 == index.0;
        let joins_right = after < self.ranges.len() && self.ranges[after].0 == index.0 + 1;
        match (joins_left, joins_right) {
            (true, true) => {
                self.ranges[after - 1].1 = self.ranges[after].1;
                self.ranges.remove(after);
            }
            (true, false) => self.ranges[after - 1].1 = index.0,
            (false, true) => self.ranges[after].0 = index.0,
            (false, false) => self.ranges.insert(after, (index.0, index.0)),
        }
        true
    }

    /// Takes `index` out; false if it was not there.
    pub fn remove(&mut self, index: TaskIndex) -> bool {
        let after = self.ranges.partition_point(|range| range.0 <= index.0);
        let at = after.checked_sub(1);
        let Some((at, (low, high))) = at.map(|at| (at, self.ranges[at])) else {
            return false;
        };
        if high < index.0 {
            return false;
        }
        self.count -= 1;
        let left = (low < index.0).then(|| (low, index.0 - 1));
        let right = (index.0 < high).then(|| (index.0 + 1, high));
        self.ranges.splice(at..=at, left.into_iter().chain(right));
        true
    }

    /// How many indexes are in the set.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.count
    }

    /// The ranges in ascending order, both ends inclusive.
    pub fn ranges(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.ranges.iter().copied()
    }

    /// Whether nothing is in the set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The indexes in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = TaskIndex> + '_ {
        self.ranges
            .iter()
            .flat_map(|&(low, high)| (low..=high).map(TaskIndex))
    }

    /// The indexes of the set that are below `end`.
    #[must_use]
    pub fn below(&self, end: u32) -> Self {
        let kept = self.ranges.iter().take_while(|range| range.0 < end);
        let ranges: Vec<_> = kept
            .map(|&(low, high)| (low, high.min(end.saturating_sub(1))))
            .collect();
        let count = ranges.iter().map(|(low, high)| high - low + 1).sum();
        Self { ranges, count }
    }

    /// The indexes of `0..total` that are in neither `self` nor `other`, ascending.
    pub fn absent<'a>(
        &'a self,
        other: &'a IndexSet,
        total: u32,
    ) -> impl Iterator<Item = TaskIndex> + 'a {
        (0..total)
            .map(TaskIndex)
            .filter(move |&index| !self.contains(index) && !other.contains(index))
    }
}

impl fmt::Display for IndexSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, (low, high)) in self.ranges.iter().enumerate() {
            let comma = if position == 0 { "" } else { "," };
            if low == high {
                write!(f, "{comma}{low}")?;
            } else {
                write!(f, "{comma}{low}-{high}")?;
            }
        }
        Ok(())
    }
}

impl FromStr for IndexSet {
    type Err = ParseIndexSetError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut set = Self::new();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let error = || ParseIndexSetError { part: part.into() };
            let (low, high) = part.split_once('-').unwrap_or((part, part));
            let low: u32 = low.parse().map_err(|_| error())?;
            let high: u32 = high.parse().map_err(|_| error())?;
            let last = set.ranges.last_mut();
            if high < low || last.as_ref().is_some_and(|last| low <= last.1) {
                return Err(error());
            }
            // batch/v1 writes two neighbours as `0,1`.
            match last.filter(|last| last.1 + 1 == low) {
                Some(last) => last.1 = high,
                None => set.ranges.push((low, high)),
            }
            set.count = set.count.saturating_add((high - low).saturating_add(1));
        }
        Ok(set)
    }
}

/// As its text.
impl Serialize for IndexSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for IndexSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(indexes: &[u32]) -> IndexSet {
        let mut set = IndexSet::new();
        for &index in indexes {
            set.insert(TaskIndex(index));
        }
        set
    }

    #[test]
    fn neighbours_join_into_one_range_in_any_order() {
        assert_eq!(set(&[5, 3, 4, 0, 9, 1]).to_string(), "0-1,3-5,9");
        assert_eq!(set(&[2, 0, 1]).to_string(), "0-2");
    }

    #[test]
    fn what_is_written_is_read_back() {
        for text in ["", "0", "0-3,5,7-9", "4-7"] {
            let set: IndexSet = text.parse().unwrap();
            assert_eq!(set.to_string(), text);
            let json = serde_json::to_string(&set).unwrap();
            assert_eq!(serde_json::from_str::<IndexSet>(&json).unwrap(), set);
        }
    }

    #[test]
    fn neighbours_written_apart_are_one_range() {
        let set: IndexSet = "0,1,3-4,5,7".parse().unwrap();
        assert_eq!(set.to_string(), "0-1,3-5,7");
        assert_eq!(set.len(), 6);
    }

    #[test]
    fn a_text_that_is_no_set_is_refused_by_its_part() {
        for text in ["a", "3-1", "5,4", "0-2,2", "-1"] {
            assert!(text.parse::<IndexSet>().is_err(), "{text}");
        }
    }

    #[test]
    fn below_cuts_within_and_between_ranges() {
        let numbers = set(&[0, 1, 2, 5, 6, 9]);
        for (end, text) in [
            (0, ""),
            (2, "0-1"),
            (3, "0-2"),
            (6, "0-2,5"),
            (20, "0-2,5-6,9"),
        ] {
            let below = numbers.below(end);
            assert_eq!(below.to_string(), text);
            assert_eq!(below.len() as usize, below.iter().count());
        }
    }

    #[test]
    fn contains_insert_and_len_agree() {
        let mut numbers = set(&[1, 2, 3, 8]);
        assert!(!numbers.insert(TaskIndex(2)));
        assert!(numbers.contains(TaskIndex(8)) && !numbers.contains(TaskIndex(4)));
        assert_eq!(numbers.len(), 4);
        let absent: Vec<u32> = numbers
            .absent(&set(&[0]), 10)
            .map(|index| index.0)
            .collect();
        assert_eq!(absent, [4, 5, 6, 7, 9]);
    }

    #[test]
    fn remove_cuts_a_range_at_either_end_and_within() {
        let mut numbers = set(&[1, 2, 3, 4, 8]);
        for (index, was_there, text) in [
            (0, false, "1-4,8"),
            (5, false, "1-4,8"),
            (3, true, "1-2,4,8"),
            (3, false, "1-2,4,8"),
            (1, true, "2,4,8"),
            (8, true, "2,4"),
            (9, false, "2,4"),
        ] {
            assert_eq!(numbers.remove(TaskIndex(index)), was_there, "{index}");
            assert_eq!(numbers.to_string(), text);
            assert_eq!(numbers.len() as usize, numbers.iter().count());
        }
    }
}
