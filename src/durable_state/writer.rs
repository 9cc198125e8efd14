//! When the state is stored: at most every 30 s, only if it has changed, and before the leader hands over.

use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until, timeout};

use super::format::State;
use super::store::Store;

/// Time between two writes.
pub const PERIOD: Duration = Duration::from_secs(30);

/// A leader that is told to stop waits this long for its last write.
const HAND_OVER_PATIENCE: Duration = Duration::from_secs(2);

/// Requests a last write.
pub struct HandOver(mpsc::Sender<oneshot::Sender<()>>);

/// The requests for a last write.
pub struct HandOverRequests(mpsc::Receiver<oneshot::Sender<()>>);

/// Both ends for one term.
#[must_use]
pub fn hand_over() -> (HandOver, HandOverRequests) {
    let (sender, receiver) = mpsc::channel(1);
    (HandOver(sender), HandOverRequests(receiver))
}

impl HandOver {
    /// Stores the state for the next leader. The write gate must still be open. Returns after the write, or when it
    /// takes too long.
    pub async fn take_place(&self) {
        let (done, written) = oneshot::channel();
        if self.0.try_send(done).is_ok() && timeout(HAND_OVER_PATIENCE, written).await.is_err() {
            tracing::warn!("the state of the last seconds was not stored in time");
        }
    }
}

/// Stores what `latest` returns until the term ends.
pub async fn run(
    mut store: Store,
    latest: impl Fn() -> State + Send,
    mut requests: HandOverRequests,
) {
    let mut next = Instant::now() + PERIOD;
    loop {
        tokio::select! {
            () = sleep_until(next) => write(&mut store, latest()).await,
            request = requests.0.recv() => {
                // Without a sender the term is ending without a hand-over.
                let Some(done) = request else { return };
                write(&mut store, latest()).await;
                let _ = done.send(());
            }
        }
        next = Instant::now() + PERIOD;
    }
}

async fn write(store: &mut Store, state: State) {
    let is_stored = store.held.as_ref().is_some_and(|held| held.is_same(&state));
    if is_stored {
        return;
    }
    if let Err(error) = store.write(state).await {
        store.warn_unwritten(&error);
    }
}
