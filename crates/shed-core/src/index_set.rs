//! A set of task indexes kept as ranges and written as batch/v1 Job does: `0-3,5,7-9`.

use std::fmt;
use std::iter;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::ids::TaskIndex;

/// Texts have smaller indexes: a job has at most 100 000 tasks, and the parts of divided tasks count after them. A larger
/// one would be a range that takes minutes to walk.
const INDEXES_MAX: u32 = 1 << 20;

/// A sorted set of task indexes; ranges are inclusive, disjoint and never adjacent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IndexSet {
    ranges: Vec<(u32, u32)>,
    /// The number of indexes in the ranges, because it is read at each end of a task.
    count: u32,
}

/// The error for a text that is not an index set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseIndexSetError {
    part: String,
}

impl fmt::Display for ParseIndexSetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` is not an index or range of indexes such as `4` or `4-7`, in ascending order",
            self.part
        )
    }
}

impl std::error::Error for ParseIndexSetError {}

impl IndexSet {
    /// The empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether `index` is in the set; O(log ranges).
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
    pub fn len(&self) -> u32 {
        self.count
    }

    /// The ranges in ascending order, both ends inclusive.
    pub fn ranges(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.ranges.iter().copied()
    }

    /// Whether nothing is in the set.
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
    pub fn below(&self, end: u32) -> Self {
        let kept = self.ranges.iter().take_while(|range| range.0 < end);
        let ranges: Vec<_> = kept
            .map(|&(low, high)| (low, high.min(end.saturating_sub(1))))
            .collect();
        let count = ranges.iter().map(|(low, high)| high - low + 1).sum();
        Self { ranges, count }
    }

    /// The indexes that are in either set; O(ranges of both).
    pub fn union(&self, other: &Self) -> Self {
        joined(ascending(self.ranges(), other.ranges()))
    }

    /// The indexes of `0..total` that are not in the set; O(ranges).
    pub fn complement(&self, total: u32) -> Self {
        joined(gaps(self.ranges(), total))
    }

    /// How many indexes are in both sets; O(ranges of both).
    pub fn count_common(&self, other: &Self) -> u32 {
        common(self.ranges(), other.ranges())
    }

    /// Adds a range that does not begin before the last one.
    fn append(&mut self, (low, high): (u32, u32)) {
        let last = self.ranges.last_mut();
        match last.filter(|last| low <= last.1.saturating_add(1)) {
            Some(last) => {
                self.count = self.count.saturating_add(high.saturating_sub(last.1));
                last.1 = last.1.max(high);
            }
            None => {
                self.count = self.count.saturating_add((high - low).saturating_add(1));
                self.ranges.push((low, high));
            }
        }
    }
}

/// Linear where the indexes ascend.
impl FromIterator<TaskIndex> for IndexSet {
    fn from_iter<T: IntoIterator<Item = TaskIndex>>(indexes: T) -> Self {
        let mut set = Self::new();
        indexes.into_iter().for_each(|index| _ = set.insert(index));
        set
    }
}

/// The set of ranges that come in the order of their starts.
fn joined(ranges: impl Iterator<Item = (u32, u32)>) -> IndexSet {
    let mut set = IndexSet::new();
    ranges.for_each(|range| set.append(range));
    set
}

/// The ranges of two sets in the order of their starts.
fn ascending(
    a: impl Iterator<Item = (u32, u32)>,
    b: impl Iterator<Item = (u32, u32)>,
) -> impl Iterator<Item = (u32, u32)> {
    let (mut a, mut b) = (a.peekable(), b.peekable());
    iter::from_fn(move || match (a.peek(), b.peek()) {
        (Some(first), Some(second)) if first.0 <= second.0 => a.next(),
        (Some(_), None) => a.next(),
        _ => b.next(),
    })
}

/// The ranges of `0..total` that are not in these ranges, which come in the order of their starts.
fn gaps(ranges: impl Iterator<Item = (u32, u32)>, total: u32) -> impl Iterator<Item = (u32, u32)> {
    let mut next = 0;
    let below = ranges.take_while(move |range| range.0 < total);
    below
        .chain([(total, total)])
        .filter_map(move |(low, high)| {
            let gap = (next < low).then(|| (next, low - 1));
            next = high.saturating_add(1);
            gap
        })
}

/// How many indexes the ranges of two sets share.
fn common(a: impl Iterator<Item = (u32, u32)>, b: impl Iterator<Item = (u32, u32)>) -> u32 {
    let (mut a, mut b) = (a.peekable(), b.peekable());
    let mut count: u32 = 0;
    while let (Some(&(a_low, a_high)), Some(&(b_low, b_high))) = (a.peek(), b.peek()) {
        let (low, high) = (a_low.max(b_low), a_high.min(b_high));
        if low <= high {
            count = count.saturating_add((high - low).saturating_add(1));
        }
        // The range that ends first meets no further one.
        if a_high <= b_high {
            a.next()
        } else {
            b.next()
        };
    }
    count
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
        Self::parse_below(text, INDEXES_MAX)
    }
}

impl IndexSet {
    /// Reads a text whose indexes are all below `most`.
    ///
    /// # Errors
    /// If one is not, or if it is not a list of indexes and ranges in ascending order.
    pub fn parse_below(text: &str, most: u32) -> Result<Self, ParseIndexSetError> {
        let mut set = Self::new();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let error = || ParseIndexSetError { part: part.into() };
            let (low, high) = part.split_once('-').unwrap_or((part, part));
            let low: u32 = low.parse().map_err(|_| error())?;
            let high: u32 = high.parse().map_err(|_| error())?;
            let last = set.ranges.last();
            if high < low || high >= most || last.is_some_and(|last| low <= last.1) {
                return Err(error());
            }
            // batch/v1 writes two neighbours as `0,1`.
            set.append((low, high));
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
    use std::cell::Cell;

    use super::*;

    fn set(indexes: &[u32]) -> IndexSet {
        indexes.iter().copied().map(TaskIndex).collect()
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
        let large = [&*format!("{INDEXES_MAX}"), "0-4294967295", "3,4294967295"];
        for text in ["a", "3-1", "5,4", "0-2,2", "-1"].into_iter().chain(large) {
            assert!(text.parse::<IndexSet>().is_err(), "{text}");
        }
        let last = format!("0-{}", INDEXES_MAX - 1);
        assert!(last.parse::<IndexSet>().is_ok());
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

    /// The sets over `0..6` by their bits.
    fn all() -> impl Iterator<Item = IndexSet> {
        let bits = |bits: u32| (0..6).filter(move |index| bits >> index & 1 == 1);
        (0..64).map(move |number| set(&bits(number).collect::<Vec<_>>()))
    }

    #[test]
    fn sets_are_joined_and_compared_as_their_indexes_are() {
        for a in all() {
            let missing = |total: u32| (0..total).map(TaskIndex).filter(|&i| !a.contains(i));
            for total in [0, 1, 4, 6, 9] {
                let missing: Vec<_> = missing(total).collect();
                let complement = a.complement(total);
                assert!(complement.iter().eq(missing.iter().copied()), "{a} {total}");
                assert_eq!(complement.len() as usize, missing.len());
            }
            for b in all() {
                let mut both = a.clone();
                b.iter().for_each(|index| _ = both.insert(index));
                assert_eq!(a.union(&b), both, "{a} and {b}");
                let common = a.iter().filter(|&index| b.contains(index));
                assert_eq!(a.count_common(&b) as usize, common.count(), "{a} and {b}");
            }
        }
    }

    #[test]
    fn an_index_that_has_no_successor_is_as_good_as_others() {
        let last = set(&[3, u32::MAX]);
        assert_eq!(
            last.union(&set(&[4])).to_string(),
            format!("3-4,{}", u32::MAX)
        );
        assert_eq!(last.complement(5).to_string(), "0-2,4");
        assert_eq!(last.count_common(&last), 2);
    }

    /// Every second of 100 000 indexes, and 11 000 ranges of others.
    #[test]
    fn joining_sets_visits_each_range_once() {
        let visits = Cell::new(0);
        let every = |first: u32, step: u32| {
            let ranges = (0..).map(move |n| (first + n * step, first + n * step));
            let ranges = ranges.take_while(|range| range.0 < 100_000);
            ranges.inspect(|_| visits.set(visits.get() + 1))
        };
        let all = joined(ascending(every(0, 2), every(1, 9)));
        assert_eq!(visits.take(), 50_000 + 11_111);
        assert_eq!(all.len(), 50_000 + 5_556);
        assert_eq!(common(every(0, 2), every(1, 9)), 5_555);
        assert!(visits.take() <= 50_000 + 11_111);
        let others = joined(gaps(every(1, 9), 100_000));
        assert_eq!((visits.take(), others.len()), (11_111, 88_889));
    }
}
