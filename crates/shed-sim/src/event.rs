//! The event queue, ordered by (time, sequence), so that events of one instant are taken in their order of insertion,
//! on every machine.
//!
//! No event is inserted before the last one taken, so a radix heap suffices (Ahuja, Mehlhorn, Orlin, Tarjan 1990).
//! Events are in buckets by the first bit in which their time differs from that of the last one taken. Only the
//! lowest bucket is ever distributed, into lower ones. An event only costs a few copies to the end of a list.

use std::collections::VecDeque;

use shed_core::time::Instant;

/// Position of an attempt in the engine's table, and how often that position was used before:
/// an event about an attempt that is gone, or whose end was moved, names an old generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttemptRef {
    /// Position in the table.
    pub slot: u32,
    /// Use of that position.
    pub generation: u32,
}

/// An event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The job at this position of the workload arrives.
    Arrival(u32),
    /// An attempt starts to process.
    Start(AttemptRef),
    /// An attempt reports for the first time.
    FirstReport(AttemptRef),
    /// An attempt ends by itself.
    End(AttemptRef),
    /// A stopped attempt is gone.
    Gone(AttemptRef),
    /// The capacity of the attempt that ended first, among those that still hold capacity, is free.
    Freed,
    /// The deadline of a group's job passes.
    Deadline(u32),
    /// The own deadline of a group passes, and that of its job holds for it from then on.
    StageDeadline(u32),
    /// The planner requested a pass.
    Wake,
    /// A node changes according to its specification: it fails, returns or changes its speed.
    Node(u32),
    /// A node's slowness process changes its speed.
    Slowdown(u32),
}

/// A pending event.
#[derive(Debug, Clone, Copy)]
struct Entry {
    at: Instant,
    event: Event,
}

/// The events whose time first differs in one bit from that of the last one taken, in the order of their insertion.
#[derive(Debug)]
struct Bucket {
    entries: Vec<Entry>,
    /// The earliest time among these events.
    earliest: Instant,
}

/// Bits of a time, and so buckets.
const BITS: usize = u64::BITS as usize;

/// The pending events.
#[derive(Debug)]
pub struct EventQueue {
    /// The events at the time of the last one taken.
    due: VecDeque<Event>,
    /// That time.
    now: Instant,
    /// By the bit, the lowest first.
    buckets: [Bucket; BITS],
    /// A bit for each bucket that is not empty.
    filled: u64,
    taken: u64,
}

impl Default for EventQueue {
    fn default() -> Self {
        let empty = |_| Bucket {
            entries: Vec::new(),
            earliest: Instant(i64::MAX),
        };
        Self {
            due: VecDeque::new(),
            now: Instant(i64::MIN),
            buckets: std::array::from_fn(empty),
            filled: 0,
            taken: 0,
        }
    }
}

impl EventQueue {
    /// Inserts an event. An event before the last one taken happens now.
    pub fn put(&mut self, at: Instant, event: Event) {
        let at = at.max(self.now);
        self.file(Entry { at, event });
    }

    fn file(&mut self, entry: Entry) {
        let differs = (entry.at.0 ^ self.now.0).cast_unsigned();
        let Some(bit) = differs.checked_ilog2() else {
            self.due.push_back(entry.event);
            return;
        };
        self.filled |= 1 << bit;
        let bucket = &mut self.buckets[bit as usize];
        bucket.earliest = bucket.earliest.min(entry.at);
        bucket.entries.push(entry);
    }

    /// When the next event happens.
    pub fn next_at(&self) -> Option<Instant> {
        if self.due.is_empty() {
            self.lowest().map(|lowest| self.buckets[lowest].earliest)
        } else {
            Some(self.now)
        }
    }

    /// Takes the next event, if it happens at `now`.
    pub fn take_at(&mut self, now: Instant) -> Option<Event> {
        if self.due.is_empty() {
            self.advance(now)?;
        } else if self.now != now {
            return None;
        }
        self.taken += 1;
        self.due.pop_front()
    }

    /// Makes the events of `now` due, if they are the next ones.
    fn advance(&mut self, now: Instant) -> Option<()> {
        let lowest = self.lowest()?;
        let bucket = &mut self.buckets[lowest];
        if bucket.earliest != now {
            return None;
        }
        self.now = now;
        self.filled &= !(1 << lowest);
        bucket.earliest = Instant(i64::MAX);
        // These events share this bit now, and belong into lower buckets.
        let mut entries = std::mem::take(&mut bucket.entries);
        for entry in entries.drain(..) {
            self.file(entry);
        }
        self.buckets[lowest].entries = entries;
        Some(())
    }

    fn lowest(&self) -> Option<usize> {
        (self.filled != 0).then(|| self.filled.trailing_zeros() as usize)
    }

    /// The number of events taken.
    pub fn taken(&self) -> u64 {
        self.taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Purpose, Stream};

    #[test]
    fn events_of_one_instant_are_taken_in_order_of_insertion() {
        let mut queue = EventQueue::default();
        queue.put(Instant(5), Event::Arrival(1));
        queue.put(Instant(3), Event::Arrival(2));
        queue.put(Instant(5), Event::Arrival(0));
        queue.put(Instant(3), Event::Wake);
        let mut taken = Vec::new();
        while let Some(at) = queue.next_at() {
            taken.extend(queue.take_at(at).map(|event| (at.0, event)));
        }
        let expected = [
            (3, Event::Arrival(2)),
            (3, Event::Wake),
            (5, Event::Arrival(1)),
            (5, Event::Arrival(0)),
        ];
        assert_eq!(taken, expected);
        assert_eq!(queue.taken(), 4);
    }

    #[test]
    fn nothing_is_taken_before_its_time() {
        let mut queue = EventQueue::default();
        queue.put(Instant(7), Event::Wake);
        assert_eq!(queue.take_at(Instant(6)), None);
        assert_eq!(queue.taken(), 0);
    }

    #[test]
    fn events_are_taken_by_time_and_then_by_sequence() {
        let mut stream = Stream::new(7, Purpose::Workload, [0; 3]);
        let (mut queue, mut expected) = (EventQueue::default(), Vec::new());
        let (mut now, mut taken) = (0, Vec::new());
        for id in 0..3000_u32 {
            let at = now + stream.index(50) as i64;
            queue.put(Instant(at), event(id));
            expected.push((at, event(id)));
            if stream.index(3) == 0
                && let Some(at) = queue.next_at()
            {
                now = at.0;
                taken.extend(queue.take_at(at).map(|event| (at.0, event)));
            }
        }
        while let Some(at) = queue.next_at() {
            taken.extend(queue.take_at(at).map(|event| (at.0, event)));
        }
        // No event was inserted before one that had been taken, and the sort is stable.
        expected.sort_by_key(|(at, _)| *at);
        assert_eq!(taken, expected);
    }

    #[test]
    fn times_far_apart_come_in_order_and_what_is_late_happens_now() {
        let mut queue = EventQueue::default();
        let times = [i64::MAX, -7, 1 << 40, 0, (1 << 40) + 1, i64::MIN];
        for (id, at) in (0..).zip(times) {
            queue.put(Instant(at), Event::Arrival(id));
        }
        let mut taken = Vec::new();
        while let Some(at) = queue.next_at() {
            let event = queue.take_at(at);
            if event == Some(Event::Arrival(3)) {
                queue.put(Instant(-3), Event::Wake);
            }
            taken.push((at.0, event));
        }
        let arrival = |id| Some(Event::Arrival(id));
        let expected = [
            (i64::MIN, arrival(5)),
            (-7, arrival(1)),
            (0, arrival(3)),
            (0, Some(Event::Wake)),
            (1 << 40, arrival(2)),
            ((1 << 40) + 1, arrival(4)),
            (i64::MAX, arrival(0)),
        ];
        assert_eq!(taken, expected);
    }

    fn event(id: u32) -> Event {
        let name = AttemptRef {
            slot: id,
            generation: id / 2,
        };
        match id % 10 {
            0 => Event::Arrival(id),
            1 => Event::Start(name),
            2 => Event::FirstReport(name),
            3 => Event::End(name),
            4 => Event::Gone(name),
            5 => Event::Deadline(id),
            6 => Event::Wake,
            7 => Event::Node(id),
            8 => Event::Freed,
            _ => Event::Slowdown(id),
        }
    }
}
