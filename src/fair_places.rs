//! A semaphore whose places are shared fairly by key, such as the namespace of the work.
//!
//! A key may take a place while it holds fewer than [`RATIO`] times the free places (dynamic
//! thresholds, as in shared packet buffers). A key alone therefore gets three quarters of all places,
//! and the first request of another key finds a free place although the first key's work is slow.
//! A place that comes free goes to the waiting key that holds the fewest places, then by round
//! robin. Requests of one key are served first in, first out, urgent ones before others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// A key may hold this many times the free places.
pub const RATIO: usize = 3;

/// Places that keys share.
pub struct FairPlaces<K: Ord + Clone>(Mutex<Shares<K, oneshot::Sender<Place<K>>>>);

/// A place of a key. Dropping it gives it back.
pub struct Place<K: Ord + Clone> {
    places: Arc<FairPlaces<K>>,
    key: K,
}

impl<K: Ord + Clone> FairPlaces<K> {
    /// This many places, all free.
    pub fn new(total: usize) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Shares::new(total))))
    }

    /// A place for the key, as soon as it may have one. A caller that stops waiting loses its turn.
    pub async fn acquire(self: &Arc<Self>, key: &K) -> Place<K> {
        self.acquire_by(key, Urgency::Usual).await
    }

    /// The same, by urgency.
    pub async fn acquire_by(self: &Arc<Self>, key: &K, urgency: Urgency) -> Place<K> {
        loop {
            let (granted, place) = oneshot::channel();
            let ticket = match self.0.lock().enter(key, urgency, granted) {
                Entered::Granted(_) => return self.place(key),
                Entered::Waits(ticket) => ticket,
            };
            // Declared after the receiver, so dropped before it: a place that was granted in between
            // stays in the channel and is given back with the receiver.
            let _turn = Turn {
                places: self,
                key,
                ticket,
            };
            // The sender is only dropped unused by a panic in between.
            if let Ok(place) = place.await {
                return place;
            }
        }
    }

    /// A place for the key, if it may have one now.
    pub fn try_acquire(self: &Arc<Self>, key: &K) -> Option<Place<K>> {
        let is_granted = self.0.lock().try_enter(key);
        is_granted.then(|| self.place(key))
    }

    /// How many places the key could take now.
    pub fn free_for(&self, key: &K) -> usize {
        self.0.lock().free_for(key)
    }

    fn place(self: &Arc<Self>, key: &K) -> Place<K> {
        Place {
            places: Arc::clone(self),
            key: key.clone(),
        }
    }
}

impl<K: Ord + Clone> Drop for Place<K> {
    fn drop(&mut self) {
        let next = self.places.0.lock().leave(&self.key);
        // Without the lock: a waiter that has gone returns its place, which is dropped here.
        for (key, granted) in next {
            let _ = granted.send(self.places.place(&key));
        }
    }
}

/// Which of a key's requests are served first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    /// Before the others.
    Urgent,
    /// After those that are urgent.
    Usual,
}

/// The order of a key's requests.
type Ticket = (Urgency, u64);

/// A turn in the queue, which ends with the wait.
struct Turn<'a, K: Ord + Clone> {
    places: &'a FairPlaces<K>,
    key: &'a K,
    ticket: Ticket,
}

impl<K: Ord + Clone> Drop for Turn<'_, K> {
    fn drop(&mut self) {
        let _sender = self.places.0.lock().give_up(self.key, self.ticket);
    }
}

/// Whether a request got a place.
#[derive(Debug, PartialEq, Eq)]
enum Entered<W> {
    /// At once; the waiter was not needed.
    Granted(W),
    /// It waits under this ticket.
    Waits(Ticket),
}

/// Holders and waiters. Pure. Invariant: no waiting key may take a place.
struct Shares<K, W> {
    free: usize,
    /// Counts requests and grants: the order of turns.
    turns: u64,
    /// Keys that hold a place or wait.
    keys: BTreeMap<K, Share<W>>,
    /// Keys that wait, by places held and turn: the first is served next.
    queue: BTreeSet<(usize, u64, K)>,
}

struct Share<W> {
    held: usize,
    /// When it was served last, or began to wait.
    turn: u64,
    waiting: BTreeMap<Ticket, W>,
}

impl<K: Ord + Clone, W> Shares<K, W> {
    fn new(total: usize) -> Self {
        Self {
            free: total,
            turns: 0,
            keys: BTreeMap::new(),
            queue: BTreeSet::new(),
        }
    }

    fn held(&self, key: &K) -> usize {
        self.keys.get(key).map_or(0, |share| share.held)
    }

    fn may_take(&self, held: usize) -> bool {
        held < self.free.saturating_mul(RATIO)
    }

    fn free_for(&self, key: &K) -> usize {
        // Each place taken is held and no longer free.
        let below = self.free.saturating_mul(RATIO);
        below
            .saturating_sub(self.held(key))
            .div_ceil(RATIO + 1)
            .min(self.free)
    }

    fn next_turn(&mut self) -> u64 {
        self.turns += 1;
        self.turns
    }

    /// By the invariant no waiting key holds fewer places than a key that may take one.
    fn try_enter(&mut self, key: &K) -> bool {
        if !self.may_take(self.held(key)) {
            return false;
        }
        let turn = self.next_turn();
        let share = self.share(key, turn);
        share.held += 1;
        share.turn = turn;
        self.free -= 1;
        true
    }

    fn enter(&mut self, key: &K, urgency: Urgency, waiter: W) -> Entered<W> {
        if self.try_enter(key) {
            return Entered::Granted(waiter);
        }
        let turn = self.next_turn();
        let share = self.share(key, turn);
        let is_first = share.waiting.is_empty();
        if is_first {
            share.turn = turn;
        }
        share.waiting.insert((urgency, turn), waiter);
        let held = share.held;
        if is_first {
            self.queue.insert((held, turn, key.clone()));
        }
        Entered::Waits((urgency, turn))
    }

    fn share(&mut self, key: &K, turn: u64) -> &mut Share<W> {
        self.keys.entry(key.clone()).or_insert_with(|| Share {
            held: 0,
            turn,
            waiting: BTreeMap::new(),
        })
    }

    /// A place of the key comes free. Returns the waiters that get a place.
    fn leave(&mut self, key: &K) -> Vec<(K, W)> {
        if self.held(key) > 0 {
            self.change(key, |share| share.held -= 1);
            self.free += 1;
        }
        let mut served = Vec::new();
        while let Some(next) = self.serve() {
            served.push(next);
        }
        served
    }

    /// Grants the next waiter its place, if one may have it.
    fn serve(&mut self) -> Option<(K, W)> {
        let (held, _, key) = self.queue.first()?;
        let (held, key) = (*held, key.clone());
        if !self.may_take(held) {
            return None;
        }
        let turn = self.next_turn();
        let waiter = self.change(&key, |share| {
            let (_, waiter) = share.waiting.pop_first()?;
            share.held += 1;
            share.turn = turn;
            Some(waiter)
        });
        self.free -= 1;
        Some((key, waiter.flatten()?))
    }

    /// Removes a waiter that no longer needs a place.
    fn give_up(&mut self, key: &K, ticket: Ticket) -> Option<W> {
        self.change(key, |share| share.waiting.remove(&ticket))?
    }

    /// Changes a key's share, keeps the queue in order, and forgets a key without places and
    /// waiters.
    fn change<T>(&mut self, key: &K, change: impl FnOnce(&mut Share<W>) -> T) -> Option<T> {
        let share = self.keys.get_mut(key)?;
        if !share.waiting.is_empty() {
            self.queue.remove(&(share.held, share.turn, key.clone()));
        }
        let changed = change(share);
        if !share.waiting.is_empty() {
            self.queue.insert((share.held, share.turn, key.clone()));
        } else if share.held == 0 {
            self.keys.remove(key);
        }
        Some(changed)
    }
}

#[cfg(test)]
mod tests;
