//! When each item is due, and which namespace is served next. Pure.
//!
//! Namespaces share the capacity for polls by start-time fair queueing: each poll advances the
//! start tag of its namespace by one, and the lowest tag is served next. Within a namespace the
//! item that has been due longest goes first.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use shed_core::time::Instant;

/// Items by namespace and due time.
pub(crate) struct Schedule<T> {
    namespaces: BTreeMap<Arc<str>, Line<T>>,
    /// When the first item of each namespace is due.
    first: BTreeSet<(Instant, Arc<str>)>,
    /// Start tag of the item that was served last.
    served: u64,
}

/// The items of one namespace.
struct Line<T> {
    due: BTreeSet<(Instant, T)>,
    /// Start tag of its next item, if it is not behind the namespaces that were served meanwhile.
    start: u64,
}

impl<T: Ord + Clone> Schedule<T> {
    /// Nothing is due.
    pub(crate) fn new() -> Self {
        Self {
            namespaces: BTreeMap::new(),
            first: BTreeSet::new(),
            served: 0,
        }
    }

    /// Adds an item.
    pub(crate) fn insert(&mut self, namespace: &Arc<str>, at: Instant, item: T) {
        let start = self.served;
        self.namespaces
            .entry(Arc::clone(namespace))
            .or_insert_with(|| Line {
                due: BTreeSet::new(),
                start,
            });
        self.change(namespace, |line| line.due.insert((at, item)));
    }

    /// Removes an item.
    pub(crate) fn remove(&mut self, namespace: &Arc<str>, at: Instant, item: T) {
        self.change(namespace, |line| line.due.remove(&(at, item)));
    }

    /// When the first item is due.
    pub(crate) fn first(&self) -> Option<Instant> {
        self.first.first().map(|(at, _)| *at)
    }

    /// Takes at most this many items that are due out, each with the place that its namespace gets.
    /// A namespace without a place is passed over.
    pub(crate) fn take<P>(
        &mut self,
        now: Instant,
        most: usize,
        mut place: impl FnMut(&Arc<str>) -> Option<P>,
    ) -> Vec<(T, P)> {
        let mut taken = Vec::new();
        if most == 0 {
            return taken;
        }
        let mut queue = self.queue(now);
        while taken.len() < most
            && let Some((start, _, namespace)) = queue.pop_first()
        {
            let Some(place) = place(&namespace) else {
                continue;
            };
            self.served = start;
            let item = self.change(&namespace, |line| {
                line.start = start + 1;
                line.due.pop_first()
            });
            taken.extend(item.flatten().map(|(_, item)| (item, place)));
            let next = self.namespaces.get(&namespace).and_then(Line::first);
            if let Some(next) = next.filter(|&next| next <= now) {
                queue.insert((start + 1, next, namespace));
            }
        }
        taken
    }

    /// The namespaces with an item that is due, by start tag.
    fn queue(&self, now: Instant) -> BTreeSet<(u64, Instant, Arc<str>)> {
        let due = self.first.iter().take_while(|(at, _)| *at <= now);
        let entry = |(at, namespace): &(Instant, Arc<str>)| {
            let line = self.namespaces.get(namespace)?;
            Some((line.start.max(self.served), *at, Arc::clone(namespace)))
        };
        due.filter_map(entry).collect()
    }

    /// Changes a namespace's line, and forgets it if it is empty.
    fn change<O>(
        &mut self,
        namespace: &Arc<str>,
        change: impl FnOnce(&mut Line<T>) -> O,
    ) -> Option<O> {
        let line = self.namespaces.get_mut(namespace)?;
        let before = line.first();
        let changed = change(line);
        let after = line.first();
        if before != after {
            if let Some(at) = before {
                self.first.remove(&(at, Arc::clone(namespace)));
            }
            if let Some(at) = after {
                self.first.insert((at, Arc::clone(namespace)));
            }
        }
        if after.is_none() {
            self.namespaces.remove(namespace);
        }
        Some(changed)
    }
}

impl<T: Ord> Line<T> {
    fn first(&self) -> Option<Instant> {
        self.due.first().map(|(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Items of namespaces: how many, and since when they are due.
    fn schedule(lines: &[(&str, usize, i64)]) -> Schedule<(String, usize)> {
        let mut schedule = Schedule::new();
        for &(namespace, count, at) in lines {
            for number in 0..count {
                let item = (namespace.to_owned(), number);
                schedule.insert(&namespace.into(), Instant(at), item);
            }
        }
        schedule
    }

    /// How many items of each namespace are taken.
    fn taken(schedule: &mut Schedule<(String, usize)>, most: usize) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for ((namespace, _), ()) in schedule.take(Instant(100), most, |_| Some(())) {
            *counts.entry(namespace).or_default() += 1;
        }
        counts
    }

    fn counts(of: &[(&str, usize)]) -> BTreeMap<String, usize> {
        let owned = |&(namespace, count): &(&str, usize)| (namespace.to_owned(), count);
        of.iter().map(owned).collect()
    }

    #[test]
    fn namespaces_share_and_the_rest_goes_to_the_busiest() {
        let mut schedule = schedule(&[("big", 1000, 0), ("small", 5, 99), ("later", 5, 101)]);
        assert_eq!(taken(&mut schedule, 8), counts(&[("big", 4), ("small", 4)]));
        assert_eq!(taken(&mut schedule, 8), counts(&[("big", 7), ("small", 1)]));
        assert_eq!(schedule.first(), Some(Instant(0)));
        assert_eq!(taken(&mut schedule, 2000), counts(&[("big", 989)]));
        assert_eq!(schedule.first(), Some(Instant(101)));
    }

    #[test]
    fn shares_are_fair_over_calls_that_serve_one_each() {
        let mut schedule = schedule(&[("a", 50, 0), ("b", 50, 10), ("c", 50, 20)]);
        let mut counts = BTreeMap::new();
        for _ in 0..30 {
            for (namespace, count) in taken(&mut schedule, 1) {
                *counts.entry(namespace).or_insert(0) += count;
            }
        }
        assert!(counts.values().all(|&count| count == 10), "{counts:?}");
    }

    #[test]
    fn longest_due_first_and_no_place_is_passed_over() {
        let mut schedule = Schedule::new();
        let (a, b): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
        for (namespace, at) in [(&a, 30), (&a, 10), (&a, 20), (&b, 40)] {
            schedule.insert(namespace, Instant(at), at);
        }
        schedule.remove(&a, Instant(10), 10);
        let mut places = 1;
        let mut place = |namespace: &Arc<str>| {
            let is_free = namespace == &b || places > 0;
            places -= usize::from(is_free && namespace == &a);
            is_free.then_some(())
        };
        let taken = schedule.take(Instant(100), 10, &mut place);
        assert_eq!(taken, [(20, ()), (40, ())]);
        assert_eq!(schedule.first(), Some(Instant(30)));
        assert!(!schedule.namespaces.contains_key("b"), "forgotten");
    }
}
