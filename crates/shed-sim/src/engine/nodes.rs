//! Nodes that fail, return, and change their speed.

use shed_core::snapshot::AttemptState;

use super::Engine;
use super::capacity::Capacity;
use crate::event::Event;

impl Engine<'_> {
    /// The next change of the node's specification.
    pub(super) fn change_node(&mut self, position: u32) {
        let Capacity::Nodes(nodes) = &mut self.capacity else {
            return;
        };
        let node = &mut nodes[position as usize];
        let Some(change) = node.spec.changes.get(node.next_change).copied() else {
            return;
        };
        node.change(change.factor);
        node.next_change += 1;
        if let Some(next) = node.spec.changes.get(node.next_change) {
            self.queue.put(next.at, Event::Node(position));
        }
        if change.factor > 0.0 {
            self.change_speeds(position);
        } else {
            self.lose_attempts(position);
        }
        self.place_waiting();
        self.changed = true;
    }

    /// The node's slowness process takes another sample, while anything remains to run.
    pub(super) fn draw_slowdown(&mut self, position: u32) {
        if self.jobs.len() == self.trace.jobs.len() && self.live.is_empty() {
            return;
        }
        let Capacity::Nodes(nodes) = &mut self.capacity else {
            return;
        };
        let node = &mut nodes[position as usize];
        let Some(slowdowns) = &node.spec.slowdowns else {
            return;
        };
        let (speed, lasts) = slowdowns.draw(self.settings.seed, position, node.draws);
        node.drawn = speed;
        node.draws += 1;
        self.queue
            .put(self.now.plus(lasts), Event::Slowdown(position));
        self.change_speeds(position);
    }

    fn change_speeds(&mut self, position: u32) {
        let speed = self.capacity.speed(position);
        if speed <= 0.0 {
            return;
        }
        for slot in self.slots_on(position) {
            let reports = self.groups[self.attempts.get(slot).group as usize].reports;
            let attempt = self.attempts.get_mut(slot);
            attempt.change_speed(self.now, speed, reports);
            if attempt.started.is_some() {
                // The queued event finds that the end was moved, or comes too late.
                let at = attempt.end().0;
                self.queue.put(at, Event::End(self.attempts.name(slot)));
            }
        }
    }

    fn lose_attempts(&mut self, position: u32) {
        let lost = AttemptState::Failed {
            finished: self.now,
            disrupted: true,
        };
        for slot in self.slots_on(position) {
            self.ended(slot, lost);
        }
    }

    /// Slots of the attempts on a node, in the order of groups, tasks and attempts.
    fn slots_on(&self, node: u32) -> Vec<u32> {
        let live = self.live.iter().map(|&group| &self.groups[group as usize]);
        let slots = live.flat_map(|group| group.truths.iter().flat_map(|t| &t.slots));
        slots
            .copied()
            .filter(|&slot| {
                let attempt = self.attempts.get(slot);
                attempt.node == Some(node) && !attempt.ended
            })
            .collect()
    }
}
