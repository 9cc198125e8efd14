//! Segments of tasks (`resume: Range`). Everywhere else a segment counts as a task of its own: it
//! has attempts, one winner, clones. The segment at a task's beginning has the task's own index,
//! the others have indexes from the job's `completions` on. A task that was never divided has no
//! segment.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use shed_agent::Units;
use shed_core::ids::TaskIndex;
use shed_core::index_set::IndexSet;

use super::{Ledger, SegmentEntry};

/// Maximum number of segments in one ledger; more would make it too large for its object. A task
/// that cannot be divided any more is cloned as a whole.
pub const SEGMENTS_MAX: usize = 512;

/// The segments of a job's divided tasks: a map by index, which also finds a segment by its start.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Segments {
    by_index: BTreeMap<u32, SegmentEntry>,
    /// Task, first unit and index of the segments that are not dropped.
    by_start: BTreeSet<(u32, u64, u32)>,
}

impl Deref for Segments {
    type Target = BTreeMap<u32, SegmentEntry>;

    fn deref(&self) -> &Self::Target {
        &self.by_index
    }
}

impl FromIterator<SegmentEntry> for Segments {
    fn from_iter<T: IntoIterator<Item = SegmentEntry>>(parts: T) -> Self {
        let mut segments = Self::default();
        parts.into_iter().for_each(|part| segments.insert(part));
        segments
    }
}

impl Serialize for Segments {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.by_index.values())
    }
}

impl<'de> Deserialize<'de> for Segments {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let parts = Vec::<SegmentEntry>::deserialize(from)?;
        Ok(parts.into_iter().collect())
    }
}

impl Segments {
    /// Whether no task was split.
    pub fn is_empty(&self) -> bool {
        self.by_index.is_empty()
    }

    /// Adds the segment, or replaces the one with its index.
    pub fn insert(&mut self, part: SegmentEntry) {
        if let Some(old) = self.by_index.get(&part.index) {
            self.by_start.remove(&key(old));
        }
        if !part.dropped {
            self.by_start.insert(key(&part));
        }
        self.by_index.insert(part.index, part);
    }

    /// Changes the segment with this index, if it exists.
    pub fn change(&mut self, index: u32, change: impl FnOnce(&mut SegmentEntry)) {
        if let Some(mut part) = self.by_index.get(&index).cloned() {
            change(&mut part);
            self.insert(part);
        }
    }

    /// The segments of this task that begin at that unit and are not dropped. There is at most one,
    /// unless a client edited the ledger.
    fn beginning(&self, task: u32, at: u64) -> impl Iterator<Item = &SegmentEntry> {
        let found = self.by_start.range((task, at, 0)..=(task, at, u32::MAX));
        found.filter_map(|(_, _, index)| self.by_index.get(index))
    }

    /// The segments of this task that are not dropped, in the order of its input.
    fn of_task(&self, task: u32) -> impl Iterator<Item = &SegmentEntry> {
        let found = self
            .by_start
            .range((task, 0, 0)..=(task, u64::MAX, u32::MAX));
        found.filter_map(|(_, _, index)| self.by_index.get(index))
    }
}

fn key(part: &SegmentEntry) -> (u32, u64, u32) {
    (part.task, part.start, part.index)
}

impl Ledger {
    /// The segment with this index, if its task was divided.
    pub fn segment(&self, index: u32) -> Option<&SegmentEntry> {
        self.segments.get(&index)
    }

    /// The task that this index is a part of.
    pub fn task_of(&self, index: u32) -> u32 {
        self.segment(index).map_or(index, |part| part.task)
    }

    /// Whether no attempt needs to process the segment any more.
    pub fn is_dropped(&self, index: u32) -> bool {
        self.segment(index).is_some_and(|part| part.dropped)
    }

    /// The segment that begins where this one ends, unless it is dropped.
    pub fn next_segment(&self, index: u32) -> Option<&SegmentEntry> {
        let part = self.segment(index)?;
        // A segment without a unit, which only an edited ledger has, would follow itself.
        let mut behind = self.segments.beginning(part.task, part.end);
        behind.find(|next| next.end > next.start)
    }

    /// Number of indexes: tasks, and segments after the first of their task.
    pub fn indexes(&self, completions: u32) -> u32 {
        let last = self.segments.last_key_value();
        last.map_or(completions, |(&last, _)| completions.max(last + 1))
    }

    /// Ends the segment at this unit; the rest becomes a segment of its own. Returns its index.
    /// None if the unit is not inside, or if there are too many segments.
    pub fn split(&mut self, index: u32, at: Units, completions: u32) -> Option<u32> {
        let whole = SegmentEntry {
            index,
            task: index,
            start: 0,
            end: at.total,
            total: at.total,
            winner: None,
            dropped: false,
        };
        let mut part = self.segment(index).cloned().unwrap_or(whole);
        let is_inside = part.start < at.done && at.done < part.end;
        let is_sound =
            is_inside && part.total == at.total && part.winner.is_none() && !part.dropped;
        if !is_sound || self.segments.len() + 2 > SEGMENTS_MAX {
            return None;
        }
        let rest = SegmentEntry {
            index: self.indexes(completions),
            start: at.done,
            ..part.clone()
        };
        part.end = at.done;
        let new = rest.index;
        self.segments.insert(part);
        self.segments.insert(rest);
        Some(new)
    }

    /// The segments behind this one up to the one that ends at that unit, in the order of the
    /// input. None if no segment ends there, or if one of them has a winner.
    pub fn unwon_behind(&self, index: u32, reached: u64) -> Option<Vec<u32>> {
        let mut behind = Vec::new();
        let mut at = index;
        loop {
            // Each segment ends after the one before, so the loop ends.
            let next = self.next_segment(at)?;
            if next.winner.is_some() || next.end > reached {
                return None;
            }
            behind.push(next.index);
            if next.end == reached {
                return Some(behind);
            }
            at = next.index;
        }
    }

    /// Whether a segment has failed for good.
    pub fn has_failed(&self, index: u32) -> bool {
        self.failed.contains(TaskIndex(index))
    }

    /// The segment takes over the one behind it. If that one had failed for good, it no longer
    /// counts as failed, because its work now belongs to this segment.
    pub fn take_over(&mut self, index: u32, taken: u32) {
        let Some(end) = self.segment(taken).map(|behind| behind.end) else {
            return;
        };
        self.segments.change(taken, |behind| behind.dropped = true);
        self.segments.change(index, |part| part.end = end);
        self.failed.remove(TaskIndex(taken));
    }

    /// Tasks whose winning segments cover their input.
    pub fn done_tasks(&self, completions: u32) -> IndexSet {
        self.tasks_where(completions, &self.done, |parts, done| {
            parts
                .iter()
                .all(|part| done.contains(TaskIndex(part.index)))
        })
    }

    /// Tasks with a segment that has failed for good.
    pub fn failed_tasks(&self, completions: u32) -> IndexSet {
        self.tasks_where(completions, &self.failed, |parts, failed| {
            parts
                .iter()
                .any(|part| failed.contains(TaskIndex(part.index)))
        })
    }

    /// The tasks of these indexes. Whether a divided task is among them depends on its segments.
    fn tasks_where(
        &self,
        completions: u32,
        indexes: &IndexSet,
        holds: impl Fn(&[&SegmentEntry], &IndexSet) -> bool,
    ) -> IndexSet {
        let mut tasks = indexes.below(completions);
        for index in self
            .segments
            .keys()
            .take_while(|&&index| index < completions)
        {
            let parts = self.parts_of(*index);
            if parts.is_empty() {
                continue;
            }
            match holds(&parts, indexes) {
                true => tasks.insert(TaskIndex(*index)),
                false => tasks.remove(TaskIndex(*index)),
            };
        }
        tasks
    }

    /// The segments that cover a divided task, in the order of its input.
    pub fn parts_of(&self, task: u32) -> Vec<&SegmentEntry> {
        if !self.segments.contains_key(&task) {
            return Vec::new();
        }
        self.segments.of_task(task).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Task 3 of four in the maximum number of segments, each split off the end of the one before.
    fn divided() -> Ledger {
        let mut ledger = Ledger::default();
        let mut index = 3;
        for part in 1.. {
            let at = Units {
                done: part,
                total: 10_000,
            };
            match ledger.split(index, at, 4) {
                Some(new) => index = new,
                None => break,
            }
        }
        ledger
    }

    #[test]
    fn what_follows_a_part_is_found_without_a_search() {
        let ledger = divided();
        let parts = ledger.segments.len();
        assert!(parts > SEGMENTS_MAX - 2, "{parts}");
        let followers = ledger.segments.values().map(|part| {
            let behind = ledger.segments.beginning(part.task, part.end);
            behind.count()
        });
        // Each has one, but the last.
        assert_eq!(followers.sum::<usize>(), parts - 1);
        let behind = ledger.unwon_behind(3, 10_000).unwrap();
        assert_eq!(behind.len(), parts - 1);
        assert_eq!(ledger.parts_of(3).len(), parts);
    }

    #[test]
    fn a_part_that_is_taken_over_follows_nothing_any_more() {
        let mut ledger = divided();
        let next = |ledger: &Ledger, index| ledger.next_segment(index).map(|next| next.index);
        assert_eq!((next(&ledger, 3), next(&ledger, 4)), (Some(4), Some(5)));
        ledger.take_over(3, 4);
        assert_eq!(next(&ledger, 3), Some(5));
        assert_eq!(ledger.parts_of(3).len(), ledger.segments.len() - 1);
    }

    #[test]
    fn an_edited_ledger_leads_to_the_first_part_that_has_a_unit() {
        let part = |index: u32, start: u64, end: u64| SegmentEntry {
            index,
            task: 0,
            start,
            end,
            total: 10,
            winner: None,
            dropped: false,
        };
        let parts = [part(0, 0, 4), part(5, 4, 4), part(7, 4, 10), part(6, 4, 10)];
        let ledger = Ledger {
            segments: parts.into_iter().collect(),
            ..Ledger::default()
        };
        assert_eq!(ledger.next_segment(0).map(|next| next.index), Some(6));
        assert_eq!(ledger.next_segment(6), None);
    }

    #[test]
    fn a_divided_task_is_done_once_all_its_segments_are_done() {
        let mut ledger = divided();
        for index in [0, 1, 3, 4] {
            ledger.done.insert(TaskIndex(index));
        }
        assert_eq!(ledger.done_tasks(4).to_string(), "0-1");
        let all: Vec<u32> = ledger.segments.keys().copied().collect();
        for index in all {
            ledger.done.insert(TaskIndex(index));
        }
        assert_eq!(ledger.done_tasks(4).to_string(), "0-1,3");
        ledger.failed.insert(TaskIndex(9));
        assert_eq!(ledger.failed_tasks(4).to_string(), "3");
    }
}
