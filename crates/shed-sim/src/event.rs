//! The event queue: a heap ordered by (time, sequence), so that events of one instant are taken
//! in the order in which they were put in, on every machine.

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

impl Event {
    /// Which kind it is, and what it is about.
    fn pack(self) -> (u64, u32, u32) {
        match self {
            Self::Arrival(job) => (0, job, 0),
            Self::Start(name) => (1, name.slot, name.generation),
            Self::FirstReport(name) => (2, name.slot, name.generation),
            Self::End(name) => (3, name.slot, name.generation),
            Self::Gone(name) => (4, name.slot, name.generation),
            Self::Deadline(group) => (5, group, 0),
            Self::Wake => (6, 0, 0),
            Self::Node(node) => (7, node, 0),
            Self::Slowdown(node) => (8, node, 0),
        }
    }

    fn unpack(kind: u64, slot: u32, generation: u32) -> Self {
        let name = AttemptRef { slot, generation };
        match kind {
            0 => Self::Arrival(slot),
            1 => Self::Start(name),
            2 => Self::FirstReport(name),
            3 => Self::End(name),
            4 => Self::Gone(name),
            5 => Self::Deadline(slot),
            6 => Self::Wake,
            7 => Self::Node(slot),
            _ => Self::Slowdown(slot),
        }
    }
}

/// Bits of [`Entry::order`] that say which kind of event it is.
const KIND_BITS: u32 = 4;

/// An event in the heap: 24 bytes, of which two and a half fit a line of the cache.
#[derive(Debug, Clone, Copy)]
struct Entry {
    at: Instant,
    /// Sequence, then kind: no two entries share a sequence, so that the kind decides nothing.
    order: u64,
    about: (u32, u32),
}

impl Entry {
    fn is_before(&self, other: &Self) -> bool {
        self.key() < other.key()
    }

    /// Time and order in one number: to compare them one after the other takes a branch that
    /// nobody can predict.
    fn key(&self) -> u128 {
        // The lowest time comes to be 0.
        let at = self.at.0.cast_unsigned() ^ (1 << 63);
        (u128::from(at) << 64) | u128::from(self.order)
    }
}

/// Children of a node of the heap. Four lie side by side, and the heap is half as deep as with
/// two.
const WIDTH: usize = 4;

/// Events that are still to come.
#[derive(Debug, Default)]
pub struct EventQueue {
    /// Each entry is before its children: those of `i` begin at `WIDTH · i + 1`.
    heap: Vec<Entry>,
    put: u64,
    taken: u64,
}

impl EventQueue {
    /// Puts an event in.
    pub fn put(&mut self, at: Instant, event: Event) {
        let (kind, slot, generation) = event.pack();
        let entry = Entry {
            at,
            order: (self.put << KIND_BITS) | kind,
            about: (slot, generation),
        };
        self.put += 1;
        self.heap.push(entry);
        self.rise(self.heap.len() - 1, entry);
    }

    /// When the next event happens.
    #[must_use]
    pub fn next_at(&self) -> Option<Instant> {
        self.heap.first().map(|entry| entry.at)
    }

    /// Takes the next event, if it happens at `now`.
    pub fn take_at(&mut self, now: Instant) -> Option<Event> {
        let first = *self.heap.first().filter(|entry| entry.at == now)?;
        self.taken += 1;
        let last = self.heap.pop()?;
        if !self.heap.is_empty() {
            self.sink(last);
        }
        let kind = first.order & ((1 << KIND_BITS) - 1);
        Some(Event::unpack(kind, first.about.0, first.about.1))
    }

    /// Puts the entry in at the root's place. It was the last, and mostly belongs far down: the
    /// hole goes down to a leaf first and then up as far as needed.
    fn sink(&mut self, entry: Entry) {
        let mut hole = 0;
        loop {
            let first = WIDTH * hole + 1;
            let Some(children) = self.heap.get(first..) else {
                break;
            };
            let mut children = children.iter().take(WIDTH).enumerate();
            let Some((mut best, mut earliest)) = children.next() else {
                break;
            };
            for (at, child) in children {
                if child.is_before(earliest) {
                    (best, earliest) = (at, child);
                }
            }
            self.heap[hole] = *earliest;
            hole = first + best;
        }
        self.rise(hole, entry);
    }

    /// Puts the entry in at the hole, or above as far as it comes before what is there.
    fn rise(&mut self, mut hole: usize, entry: Entry) {
        while hole > 0 {
            let parent = (hole - 1) / WIDTH;
            if !entry.is_before(&self.heap[parent]) {
                break;
            }
            self.heap[hole] = self.heap[parent];
            hole = parent;
        }
        self.heap[hole] = entry;
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
    use crate::random::{Purpose, Stream};

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

    #[test]
    fn events_come_by_time_and_then_sequence_whatever_is_put_in_between() {
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
        // Nothing was put in before what had been taken, and the sort is stable.
        expected.sort_by_key(|(at, _)| *at);
        assert_eq!(taken, expected);
    }

    fn event(id: u32) -> Event {
        let name = AttemptRef {
            slot: id,
            generation: id / 2,
        };
        match id % 9 {
            0 => Event::Arrival(id),
            1 => Event::Start(name),
            2 => Event::FirstReport(name),
            3 => Event::End(name),
            4 => Event::Gone(name),
            5 => Event::Deadline(id),
            6 => Event::Wake,
            7 => Event::Node(id),
            _ => Event::Slowdown(id),
        }
    }
}
