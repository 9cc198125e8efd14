//! Places for work that waits for the apiserver: few for work that has just begun, more for work that takes long.
//!
//! A small apiserver that answers a hundred calls at once answers each so late that it closes watches whose events it
//! can't send in time. A call that a webhook delays is no load to it, and must not keep others from their turn.
//! Work therefore holds a place of the few for a short time only.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use crate::fair_places::FairPlaces;

/// How long work counts as new. What takes longer waits for something else than a turn at the apiserver.
const NEW_FOR: Duration = Duration::from_secs(1);

/// Places that keys share, such as the namespaces of the work.
pub struct PacedPlaces<K: Ord + Clone> {
    all: Arc<FairPlaces<K>>,
    new: Arc<FairPlaces<K>>,
}

impl<K: Ord + Clone> PacedPlaces<K> {
    /// `all` places. Work that is new may hold `new` of them.
    #[must_use]
    pub fn new(all: usize, new: usize) -> Self {
        Self {
            all: FairPlaces::new(all),
            new: FairPlaces::new(new),
        }
    }

    /// Does the work of a key once there is a place for it.
    pub async fn run<T>(&self, key: &K, work: impl Future<Output = T>) -> T {
        let _place = self.all.acquire(key).await;
        let new = self.new.acquire(key).await;
        // On the heap: the futures of a pass are large, and each future around them would hold them again.
        let mut work = Box::pin(work);
        if let Ok(done) = timeout(NEW_FOR, &mut work).await {
            return done;
        }
        drop(new);
        work.await
    }

    /// The places that slow work holds.
    #[cfg(test)]
    pub(crate) fn of_slow_work(&self) -> &Arc<FairPlaces<K>> {
        &self.all
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use futures::FutureExt;
    use tokio::time::{advance, sleep};

    use super::*;

    /// Which of the works has begun, by key, after each was polled.
    async fn begun(places: &Arc<PacedPlaces<&'static str>>, keys: &[&'static str]) -> Vec<bool> {
        let (sender, mut begun) = tokio::sync::mpsc::unbounded_channel();
        for (number, &key) in keys.iter().enumerate() {
            let (places, sender) = (Arc::clone(places), sender.clone());
            tokio::spawn(async move {
                let work = async {
                    // The receiver is gone when one begins later.
                    let _ = sender.send(number);
                    pending::<()>().await;
                };
                places.run(&key, work).await;
            });
        }
        sleep(Duration::from_millis(1)).await;
        let mut found = vec![false; keys.len()];
        while let Some(Some(number)) = begun.recv().now_or_never() {
            found[number] = true;
        }
        found
    }

    #[tokio::test(start_paused = true)]
    async fn little_work_is_new_at_a_time_and_slow_work_makes_way_for_more() {
        let places = Arc::new(PacedPlaces::new(8, 4));
        assert_eq!(
            begun(&places, &["a"; 5]).await,
            [true, true, true, false, false]
        );
        advance(NEW_FOR).await;
        // The two that waited are new now. The places that are left are for other keys.
        assert_eq!(begun(&places, &["a", "a"]).await, [true, false]);
    }

    #[tokio::test(start_paused = true)]
    async fn all_places_can_be_taken_by_slow_work() {
        let places = Arc::new(PacedPlaces::new(4, 4));
        assert_eq!(begun(&places, &["a"; 4]).await, [true, true, true, false]);
        advance(NEW_FOR * 10).await;
        assert_eq!(begun(&places, &["a"]).await, [false]);
        assert_eq!(begun(&places, &["b"]).await, [true]);
    }

    #[tokio::test(start_paused = true)]
    async fn slow_keys_leave_the_others_a_turn() {
        let places = Arc::new(PacedPlaces::new(64, 8));
        for slow in ["a", "b", "c"] {
            begun(&places, &[slow; 100]).await;
        }
        let turn = places.run(&"d", std::future::ready(7));
        assert_eq!(timeout(NEW_FOR * 2, turn).await, Ok(7));
    }

    #[tokio::test(start_paused = true)]
    async fn places_come_back_with_the_end_of_the_work() {
        let places = PacedPlaces::new(1, 1);
        for _ in 0..3 {
            assert_eq!(places.run(&"a", async { 7 }).now_or_never(), Some(7));
        }
    }
}
