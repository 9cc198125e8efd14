//! Parts of tasks (`resume: Range`). A part is to everything else a task of its own: it has
//! attempts, one winner, clones. The part at a task's beginning goes by the task's own index, the
//! others by indexes from the job's `completions` on. A task that was never split has no part.

use shed_agent::Units;
use shed_core::ids::TaskIndex;
use shed_core::index_set::IndexSet;

use super::Book;
use crate::api::SegmentEntry;

/// Parts that one ledger holds at most; more would make it too large for its object. A task that
/// can't be split any more is cloned as a whole.
pub const SEGMENTS_MAX: usize = 512;

impl Book {
    /// The part of this index, if its task was split.
    #[must_use]
    pub fn segment(&self, index: u32) -> Option<&SegmentEntry> {
        self.segments.get(&index)
    }

    /// The task that this index is a part of.
    #[must_use]
    pub fn task_of(&self, index: u32) -> u32 {
        self.segment(index).map_or(index, |part| part.task)
    }

    /// Whether the part is nobody's to do any more.
    #[must_use]
    pub fn is_dropped(&self, index: u32) -> bool {
        self.segment(index).is_some_and(|part| part.dropped)
    }

    /// The part that begins where this one ends and is still somebody's.
    #[must_use]
    pub fn next_segment(&self, index: u32) -> Option<&SegmentEntry> {
        let part = self.segment(index)?;
        // A part without a unit, which only an edited ledger has, would follow itself.
        let follows = |next: &&SegmentEntry| {
            let is_behind = next.task == part.task && next.start == part.end;
            is_behind && next.end > next.start && !next.dropped
        };
        self.segments.values().find(follows)
    }

    /// How many indexes there are: tasks, and parts beyond those at their tasks' beginnings.
    #[must_use]
    pub fn indexes(&self, completions: u32) -> u32 {
        let last = self.segments.last_key_value();
        last.map_or(completions, |(&last, _)| completions.max(last + 1))
    }

    /// Ends the part at this unit; what was behind it is a part of its own from now on. Says its
    /// index, or nothing if the unit is not inside, or there are too many parts.
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
        self.segments.extend([(index, part), (new, rest)]);
        Some(new)
    }

    /// The parts behind this one up to the one that ends at that unit, in the order of the input.
    /// Nothing if no part ends there, or one of them has a winner.
    #[must_use]
    pub fn unwon_behind(&self, index: u32, reached: u64) -> Option<Vec<u32>> {
        let mut behind = Vec::new();
        let mut at = index;
        loop {
            // Each ends behind the one before, so this comes to an end.
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

    /// Whether a part has failed for good.
    #[must_use]
    pub fn has_failed(&self, index: u32) -> bool {
        self.failed.contains(TaskIndex(index))
    }

    /// The part takes over the one behind it. If that one had failed for good, it has not any more:
    /// its work is part of this part's.
    pub fn take_over(&mut self, index: u32, taken: u32) {
        let Some(behind) = self.segments.get_mut(&taken) else {
            return;
        };
        behind.dropped = true;
        let end = behind.end;
        if let Some(part) = self.segments.get_mut(&index) {
            part.end = end;
        }
        self.failed.remove(TaskIndex(taken));
    }

    /// Tasks whose winning parts tile their input.
    #[must_use]
    pub fn done_tasks(&self, completions: u32) -> IndexSet {
        self.tasks_where(completions, &self.done, |parts, done| {
            parts
                .iter()
                .all(|part| done.contains(TaskIndex(part.index)))
        })
    }

    /// Tasks of which a part has failed for good.
    #[must_use]
    pub fn failed_tasks(&self, completions: u32) -> IndexSet {
        self.tasks_where(completions, &self.failed, |parts, failed| {
            parts
                .iter()
                .any(|part| failed.contains(TaskIndex(part.index)))
        })
    }

    fn tasks_where(
        &self,
        completions: u32,
        indexes: &IndexSet,
        holds: impl Fn(&[&SegmentEntry], &IndexSet) -> bool,
    ) -> IndexSet {
        if self.segments.is_empty() {
            return indexes.below(completions);
        }
        let mut tasks = IndexSet::default();
        for task in (0..completions).map(TaskIndex) {
            let holds = match self.parts_of(task.0)[..] {
                [] => indexes.contains(task),
                ref parts => holds(parts, indexes),
            };
            if holds {
                tasks.insert(task);
            }
        }
        tasks
    }

    /// The parts that tile a task that was split, in the order of its input.
    #[must_use]
    pub fn parts_of(&self, task: u32) -> Vec<&SegmentEntry> {
        if !self.segments.contains_key(&task) {
            return Vec::new();
        }
        let parts = self.segments.values();
        let mut parts: Vec<_> = parts
            .filter(|part| part.task == task && !part.dropped)
            .collect();
        parts.sort_by_key(|part| part.start);
        parts
    }
}
