//! Policies without clones: the jobs have places in the order of service that depend on their own facts alone. Waiting
//! jobs therefore stand in one ordered queue. A job is looked at, by itself, when it arrives, when its place may have
//! changed, and when a task may be retried. Slots that come free go to the first job of the queue.

use std::collections::{BTreeMap, BTreeSet};

use shed_core::decide::queue_positions::{Place, Seen, places};
use shed_core::decide::{News, may_be_served};
use shed_core::ids::JobKey;
use shed_core::plan::Move;
use shed_core::snapshot::JobPhase;
use shed_core::time::{Instant, Span};

use super::listed::Listed;
use super::{Engine, Scope};

/// The waiting groups, and when groups must be looked at.
#[derive(Debug, Default)]
pub(super) struct Places {
    queue: BTreeMap<Place, u32>,
    agenda: BTreeSet<(Instant, u32)>,
    /// Groups that age from then on.
    aging: BTreeSet<(Instant, u32)>,
    /// Groups that have aged and wait, those that aged first before the others.
    aged: BTreeSet<(Instant, u32)>,
    /// Slots that the groups hold which have aged.
    aged_slots: u32,
    /// Groups that have finished since the last look.
    gone: Vec<JobKey>,
    listed: Listed,
}

/// A group's entries there.
#[derive(Debug, Default)]
pub(super) struct Entry {
    place: Option<Place>,
    look: Option<Instant>,
    aged_at: Option<Instant>,
    has_aged: bool,
}

impl Engine<'_> {
    /// The group must be looked at: now if it has none of the places yet or waits for a retry, else when its news
    /// have waited for long enough.
    pub(super) fn touch_place(&mut self, id: u32, is_new: bool) {
        if self.planner.scope != Scope::Places {
            return;
        }
        let group = &self.groups[id as usize];
        let at = match is_new {
            true => Some(self.now),
            false if group.waiting > 0 && self.observes() => group.attention.news_at(),
            false => None,
        };
        if let Some(at) = at {
            self.appoint(id, at.max(self.now));
            self.changed |= at <= self.now;
        }
    }

    fn appoint(&mut self, id: u32, at: Instant) {
        let entry = &mut self.groups[id as usize].entry;
        if entry.look.is_none_or(|look| at < look) {
            let agenda = &mut self.planner.places.agenda;
            if let Some(before) = entry.look.replace(at) {
                agenda.remove(&(before, id));
            }
            agenda.insert((at, id));
        }
    }

    /// The group ends: it gets no further attempt.
    pub(super) fn leave_queue(&mut self, id: u32) {
        if self.planner.scope != Scope::Places {
            return;
        }
        let group = &mut self.groups[id as usize];
        let places = &mut self.planner.places;
        if let Some(place) = group.entry.place.take() {
            places.queue.remove(&place);
        }
        if let Some(look) = group.entry.look.take() {
            places.agenda.remove(&(look, id));
        }
        if let Some(at) = group.entry.aged_at.take() {
            places.aging.remove(&(at, id));
            places.aged.remove(&(at, id));
        }
    }

    /// The group is dropped: it teaches what was seen of it last.
    pub(super) fn forget_place(&mut self, id: u32) {
        if self.planner.scope == Scope::Places {
            let facts = self.groups[id as usize].facts.as_ref();
            let key = facts.map(|facts| facts.key.clone());
            self.planner.places.gone.extend(key);
        }
    }

    /// The group holds one more slot, or one less.
    pub(super) fn count_slot(&mut self, id: u32, is_more: bool) {
        if self.groups[id as usize].entry.has_aged {
            let slots = &mut self.planner.places.aged_slots;
            *slots = match is_more {
                true => *slots + 1,
                false => slots.saturating_sub(1),
            };
        }
    }

    /// Looks at the groups whose time has come, and fills the slots that are free.
    pub(super) fn places_pass(&mut self) {
        let mut due = Vec::new();
        while let Some(&(_, id)) = self
            .planner
            .places
            .agenda
            .first()
            .filter(|it| it.0 <= self.now)
        {
            self.planner.places.agenda.pop_first();
            self.groups[id as usize].entry.look = None;
            due.push(id);
        }
        if !due.is_empty() {
            self.look_for_places(due);
        }
        self.age();
        self.fill_from_queue();
        let places = &self.planner.places;
        let moments = [places.agenda.first(), places.aging.first()];
        let next = moments.into_iter().flatten().map(|(at, _)| *at).min();
        self.wake_at(next);
    }

    fn look_for_places(&mut self, mut ids: Vec<u32>) {
        ids.retain(|&id| {
            let facts = self.groups[id as usize].facts.as_ref();
            facts.is_some_and(|facts| facts.phase == JobPhase::Active)
        });
        ids.sort_by_key(|&id| {
            let group = &self.groups[id as usize];
            (group.job, group.stage)
        });
        let seen = self.see_places(&ids);
        for (id, seen) in ids.into_iter().zip(seen) {
            self.note_place(id, seen);
        }
    }

    /// Looks at these groups, and learns from them.
    pub(super) fn see_places(&mut self, ids: &[u32]) -> Vec<Seen> {
        let mut snapshot = std::mem::take(&mut self.planner.scratch);
        self.capacity.show(&mut snapshot.nodes);
        self.take_facts(ids, &mut snapshot, self.observes());
        let gone = std::mem::take(&mut self.planner.places.gone);
        let memory = &mut self.planner.memory;
        let seen = places(&snapshot, memory, &self.settings.policy, gone);
        self.give_back(ids, &mut snapshot);
        self.planner.scratch = snapshot;
        seen
    }

    fn note_place(&mut self, id: u32, seen: Seen) {
        let (now, observes) = (self.now, self.observes());
        let places = &mut self.planner.places;
        let group = &mut self.groups[id as usize];
        group.attention.keep(seen.appointment);
        let entry = &mut group.entry;
        if let Some(place) = entry.place.take() {
            places.queue.remove(&place);
        }
        if group.waiting > 0 {
            entry.place = seen.place.clone();
            places.queue.extend(seen.place.map(|place| (place, id)));
        }
        places.listed.forget(id);
        match seen.aged_at {
            Some(_) if entry.has_aged && group.waiting > 0 => {
                places.aged.extend(entry.aged_at.map(|at| (at, id)));
            }
            Some(at) if !entry.has_aged => {
                if let Some(before) = entry.aged_at.replace(at) {
                    places.aging.remove(&(before, id));
                }
                places.aging.insert((at, id));
            }
            _ => {}
        }
        let waits_for_retry = group.waiting > 0 && self.planner.retries;
        let again = seen.appointment.at(News::None);
        if let Some(at) = again.filter(|_| group.waiting > 0 && (observes || waits_for_retry)) {
            self.appoint(id, at.max(now.plus(Span(1))));
        }
    }

    /// Notes the groups that have aged.
    fn age(&mut self) {
        let places = &mut self.planner.places;
        while let Some(&(at, id)) = places.aging.first().filter(|it| it.0 <= self.now) {
            places.aging.pop_first();
            let group = &mut self.groups[id as usize];
            group.entry.has_aged = true;
            places.aged_slots += group.held;
            places.aged.insert((at, id));
        }
    }

    /// Launches first attempts and retries into free slots.
    fn fill_from_queue(&mut self) {
        loop {
            let (usable, used) = self.usable_slots();
            let Some(id) = self.first_waiting(usable).filter(|_| used < usable) else {
                return;
            };
            let facts = self.groups[id as usize].facts.as_ref();
            match self.planner.places.listed.next(self.now, id, facts) {
                Some(launch) => self.carry_out_move(id, &Move::Launch(launch)),
                None => self.leave_for_now(id),
            }
            if self.groups[id as usize].waiting == 0 {
                self.leave_for_now(id);
            }
        }
    }

    fn first_waiting(&self, usable: u32) -> Option<u32> {
        let places = &self.planner.places;
        let slot = 1.0 / f64::from(usable.max(1));
        let is_served = may_be_served(f64::from(places.aged_slots) * slot, slot);
        let aged = places.aged.first().filter(|_| is_served);
        let aged = aged.map(|(_, id)| *id);
        aged.or_else(|| places.queue.first_key_value().map(|(_, id)| *id))
    }

    /// Nothing of the group can be launched until it is looked at again.
    fn leave_for_now(&mut self, id: u32) {
        let places = &mut self.planner.places;
        let entry = &mut self.groups[id as usize].entry;
        if let Some(place) = entry.place.take() {
            places.queue.remove(&place);
        }
        if let Some(at) = entry.aged_at {
            places.aged.remove(&(at, id));
        }
        places.listed.forget(id);
    }
}
