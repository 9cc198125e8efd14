//! The event queue: a binary heap ordered by (time, sequence), so that events of one instant are
//! taken in the order in which they were put in, on every machine.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

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

/// What happens.
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
    /// A killed attempt is gone.
    Gone(AttemptRef),
    /// The deadline of a group's job passes.
    Deadline(u32),
    /// The planner asked for a pass.
    Wake,
    /// A node changes as its specification says: fails, returns, gets slower or faster.
    Node(u32),
    /// A node's slowness process changes its speed.
    Slowdown(u32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    at: Instant,
    sequence: u64,
    event: Event,
}

impl Ord for Entry {
    /// The earliest is the greatest, as the heap wants it.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.sequence).cmp(&(self.at, self.sequence))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Events that are still to come.
#[derive(Debug, Default)]
pub struct EventQueue {
    heap: BinaryHeap<Entry>,
    put: u64,
    taken: u64,
}

impl EventQueue {
    /// Puts an event in.
    pub fn put(&mut self, at: Instant, event: Event) {
        let sequence = self.put;
        self.put += 1;
        self.heap.push(Entry {
            at,
            sequence,
            event,
        });
    }

    /// When the next event happens.
    #[must_use]
    pub fn next_at(&self) -> Option<Instant> {
        self.heap.peek().map(|entry| entry.at)
    }

    /// Takes the next event, if it happens at `now`.
    pub fn take_at(&mut self, now: Instant) -> Option<Event> {
        if self.next_at() != Some(now) {
            return None;
        }
        self.taken += 1;
        self.heap.pop().map(|entry| entry.event)
    }

    /// How many events were taken.
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_one_instant_are_taken_in_the_order_in_which_they_were_put_in() {
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
}
