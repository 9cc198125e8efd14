//! How many jobs write their pods at a time.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::timeout;

use crate::fair_places::{FairPlaces, Place};
use crate::token_bucket::TokenBucket;

/// Deletes and releases of all jobs under way at once, shared by namespace.
const STOPS_AT_ONCE: usize = 128;
/// Jobs that launch at once, shared by namespace: the only bound on creations. It is small because a small apiserver
/// that has many creations to answer answers nothing else in time, and closes watches whose events it can't send. A job
/// that is served as a whole also has pods that end together, so its status is written less often.
pub const LAUNCHES_AT_ONCE: usize = 4;

/// A turn to launch ends after this time, twice as long as a pass begins creations: creations that wait for a slow
/// webhook keep no other job from its turn.
const TURN_MAX: Duration = Duration::from_secs(4);

/// Annotations of attempts that all jobs may write each second. They are advice, and need not be prompt.
const ANNOTATIONS_PER_SECOND: u32 = 20;

/// A job's turn to launch.
pub type LaunchPlace = Place<Arc<str>>;

/// Places for writes of pods.
pub struct WritePlaces {
    pub(crate) stops: Arc<FairPlaces<Arc<str>>>,
    pub(crate) launches: Arc<FairPlaces<Arc<str>>>,
    pub(super) annotations: Mutex<TokenBucket>,
}

impl Default for WritePlaces {
    fn default() -> Self {
        Self {
            stops: FairPlaces::new(STOPS_AT_ONCE),
            launches: FairPlaces::new(LAUNCHES_AT_ONCE),
            annotations: Mutex::new(TokenBucket::per_second(ANNOTATIONS_PER_SECOND)),
        }
    }
}

/// Does what a job does in its turn, and gives the turn back as soon as it is over.
pub(super) async fn within_turn<T>(turn: Option<LaunchPlace>, act: impl Future<Output = T>) -> T {
    let mut act = pin!(act);
    if let Ok(done) = timeout(TURN_MAX, &mut act).await {
        return done;
    }
    drop(turn);
    act.await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn creations_that_are_not_answered_keep_no_turn() {
        let (places, slow) = (WritePlaces::default(), Arc::from("slow"));
        let turns = || std::iter::from_fn(|| places.launches.try_acquire(&slow));
        let all: Vec<_> = turns().collect();
        let count = all.len();
        let waits = all.into_iter().map(|turn| {
            let hangs = tokio::time::sleep(TURN_MAX * 5);
            tokio::spawn(within_turn(Some(turn), hangs))
        });
        let waits: Vec<_> = waits.collect();
        tokio::time::sleep(TURN_MAX / 2).await;
        assert_eq!(turns().count(), 0);
        tokio::time::sleep(TURN_MAX).await;
        assert_eq!(turns().collect::<Vec<_>>().len(), count);
        assert!(waits.iter().all(|wait| !wait.is_finished()), "they go on");
    }
}
