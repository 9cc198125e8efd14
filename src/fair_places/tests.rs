use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;

/// Next step of a caller.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// This key requests a place and waits.
    Enter(u8, Urgency),
    /// This key requests a place without waiting.
    Try(u8),
    /// The place at this position comes free.
    Leave(usize),
    /// The waiter at this position gives up.
    GiveUp(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..6u8).prop_map(|key| Step::Enter(key, Urgency::Usual)),
        1 => (0..6u8).prop_map(|key| Step::Enter(key, Urgency::Urgent)),
        1 => (0..6u8).prop_map(Step::Try),
        3 => (0..64usize).prop_map(Step::Leave),
        1 => (0..64usize).prop_map(Step::GiveUp),
    ]
}

/// The same by a plain list: keys that hold, and waiters in their order.
struct Model {
    total: usize,
    shares: Shares<u8, u32>,
    held: Vec<u8>,
    waiting: Vec<(u8, Ticket, u32)>,
    requests: u32,
}

impl Model {
    fn new(total: usize) -> Self {
        Self {
            total,
            shares: Shares::new(total),
            held: vec![],
            waiting: vec![],
            requests: 0,
        }
    }

    fn held_by(&self, key: u8) -> usize {
        self.held.iter().filter(|&&held| held == key).count()
    }

    fn apply(&mut self, step: Step) {
        match step {
            Step::Enter(key, urgency) => {
                self.requests += 1;
                match self.shares.enter(&key, urgency, self.requests) {
                    Entered::Granted(_) => self.held.push(key),
                    Entered::Waits(ticket) => self.waiting.push((key, ticket, self.requests)),
                }
            }
            Step::Try(key) => {
                let free = self.shares.free_for(&key);
                let is_granted = self.shares.try_enter(&key);
                assert_eq!(is_granted, free > 0);
                self.held.extend(is_granted.then_some(key));
            }
            Step::Leave(at) if !self.held.is_empty() => {
                let key = self.held.swap_remove(at % self.held.len());
                let served = self.shares.leave(&key);
                for (key, request) in served {
                    self.check_served(key, request);
                }
            }
            Step::GiveUp(at) if !self.waiting.is_empty() => {
                let (key, ticket, request) = self.waiting.remove(at % self.waiting.len());
                assert_eq!(self.shares.give_up(&key, ticket), Some(request));
            }
            Step::Leave(_) | Step::GiveUp(_) => {}
        }
        self.check();
    }

    /// A place goes to a key with the fewest places, and to its oldest request, urgent ones first.
    fn check_served(&mut self, key: u8, request: u32) {
        let own = self.waiting.iter().filter(|waiter| waiter.0 == key);
        let first = *own.min_by_key(|waiter| waiter.1).unwrap();
        assert_eq!(first.2, request);
        self.waiting.retain(|waiter| *waiter != first);
        for other in &self.waiting {
            assert!(self.held_by(key) <= self.held_by(other.0));
        }
        let keys: BTreeSet<u8> = self.waiting.iter().map(|waiter| waiter.0).collect();
        let others = keys.iter().filter(|&&other| other != key).count();
        self.held.push(key);
        assert!(self.held_by(key) <= self.total.div_ceil(others + 1));
    }

    fn check(&self) {
        assert!(self.held.len() <= self.total, "more than there are");
        assert_eq!(self.shares.free, self.total - self.held.len());
        let free = self.shares.free;
        for &(key, ..) in &self.waiting {
            assert!(self.held_by(key) >= RATIO * free, "waits though it may");
        }
        let active = self
            .held
            .iter()
            .chain(self.waiting.iter().map(|(key, ..)| key));
        let active: BTreeSet<u8> = active.copied().collect();
        assert!(self.shares.keys.keys().eq(active.iter()), "keys kept");
        let waiting: BTreeSet<u8> = self.waiting.iter().map(|waiter| waiter.0).collect();
        assert_eq!(self.shares.queue.len(), waiting.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn places_are_bounded_and_go_to_the_key_with_fewest(
        total in 1..20usize,
        steps in prop::collection::vec(step(), 0..200),
    ) {
        let mut model = Model::new(total);
        for step in steps {
            model.apply(step);
        }
        // Every request is served once the places come back.
        while !model.held.is_empty() {
            model.apply(Step::Leave(0));
        }
        prop_assert!(model.waiting.is_empty());
        prop_assert!(model.shares.keys.is_empty() && model.shares.queue.is_empty());
    }

    /// However many requests a key has waiting, one of another key waits for at most as many grants
    /// as there are keys before it.
    #[test]
    fn no_key_starves(total in 1..20usize, keys in 2..10u32, each in 1..50u32) {
        let mut shares = Shares::new(total);
        let mut held = VecDeque::new();
        for request in 0..each {
            for key in 0..keys {
                if let Entered::Granted(_) = shares.enter(&key, Urgency::Usual, request) {
                    held.push_back(key);
                }
            }
        }
        let late = keys;
        if let Entered::Waits(_) = shares.enter(&late, Urgency::Usual, 0) {
            let mut grants = 0;
            loop {
                let freed = held.pop_front().unwrap();
                let served = shares.leave(&freed);
                if served.iter().any(|(key, _)| *key == late) {
                    break;
                }
                grants += served.len();
                held.extend(served.into_iter().map(|(key, _)| key));
            }
            prop_assert!(grants <= keys as usize, "{grants} grants before it");
        }
    }
}

fn take_all(places: &Arc<FairPlaces<&'static str>>, key: &'static str) -> Vec<Place<&'static str>> {
    std::iter::from_fn(|| places.try_acquire(&key)).collect()
}

#[test]
fn one_key_gets_three_quarters_and_leaves_the_next_a_place() {
    let places = FairPlaces::new(256);
    assert_eq!(places.free_for(&"a"), 192);
    let first = take_all(&places, "a");
    assert_eq!((first.len(), places.free_for(&"b")), (192, 48));
    let second = take_all(&places, "b");
    assert_eq!((second.len(), places.free_for(&"c")), (48, 12));
    drop((first, second));
    assert!(places.0.lock().keys.is_empty(), "all is forgotten");
    assert_eq!(FairPlaces::new(1).free_for(&"a"), 1);
}

#[tokio::test]
async fn a_place_that_comes_free_goes_to_the_key_with_fewest() {
    let places = FairPlaces::new(4);
    let held = take_all(&places, "a");
    let waits = |key: &'static str| {
        let places = Arc::clone(&places);
        tokio::spawn(async move { places.acquire(&key).await })
    };
    let more = waits("a");
    let _only = places.try_acquire(&"b").unwrap();
    let other = waits("c");
    tokio::task::yield_now().await;
    assert!(!more.is_finished() && !other.is_finished());
    let mut held = held.into_iter();
    drop(held.next());
    let _place = other.await.unwrap();
    assert!(!more.is_finished());
    drop(held);
    more.await.unwrap();
}

#[tokio::test]
async fn a_wait_that_ends_leaves_nothing_behind() {
    let places = FairPlaces::new(1);
    let held = places.acquire(&"a").await;
    let mut waits = vec![];
    for _ in 0..50 {
        let places = Arc::clone(&places);
        waits.push(tokio::spawn(
            async move { drop(places.acquire(&"b").await) },
        ));
    }
    tokio::task::yield_now().await;
    assert_eq!(places.0.lock().keys[&"b"].waiting.len(), 50);
    for wait in waits {
        wait.abort();
        assert!(wait.await.is_err());
    }
    assert!(!places.0.lock().keys.contains_key(&"b"));
    drop(held);
    assert_eq!(places.free_for(&"c"), 1);
}

#[tokio::test]
async fn a_place_granted_to_a_wait_that_ends_is_given_back() {
    let places = FairPlaces::new(1);
    let held = places.acquire(&"a").await;
    {
        let wait = places.acquire(&"b");
        tokio::pin!(wait);
        let polled = futures::poll!(wait.as_mut());
        assert!(polled.is_pending());
        // Granted, and not taken.
        drop(held);
        assert_eq!(places.free_for(&"c"), 0);
    }
    assert_eq!(places.free_for(&"c"), 1);
}
