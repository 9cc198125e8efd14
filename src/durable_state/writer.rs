//! When the state is stored: at most every 30 s, only if it has changed, and before the leader hands over. A change of the
//! totals is stored at once if the last write is 30 s ago, because jobs may wait for it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until, timeout};

use super::format::State;
use super::store::{Error, Store};
use crate::completion_history::CompletionHistory;
use crate::deadline_totals::DeadlineTotals;

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

/// Stores what `latest` returns, with the totals and the completion times, until the term ends.
pub async fn run(
    store: Store,
    (totals, completions): (Arc<DeadlineTotals>, Arc<CompletionHistory>),
    latest: impl Fn() -> State + Send + Sync,
    mut requests: HandOverRequests,
) {
    let mut writer = Writer {
        store,
        totals: Arc::clone(&totals),
        completions,
        latest,
    };
    let mut next = Instant::now() + PERIOD;
    // No write comes before this.
    let mut rests_until = next;
    loop {
        let asked = async {
            totals.changed().await;
            sleep_until(rests_until).await;
        };
        let done = tokio::select! {
            () = sleep_until(next) => None,
            () = asked => None,
            // Without a sender the term is ending without a hand-over.
            request = requests.0.recv() => match request {
                Some(done) => Some(done),
                None => return,
            }
        };
        let has_called = writer.write().await;
        let now = Instant::now();
        next = now + PERIOD;
        rests_until = if has_called { next } else { now };
        if let Some(done) = done {
            let _ = done.send(());
        }
    }
}

struct Writer<F> {
    store: Store,
    totals: Arc<DeadlineTotals>,
    completions: Arc<CompletionHistory>,
    latest: F,
}

impl<F: Fn() -> State + Send + Sync> Writer<F> {
    /// Stores the state unless it is stored. Returns whether the apiserver was called.
    async fn write(&mut self) -> bool {
        match self.try_write().await {
            Ok(has_called) => has_called,
            Err(error) => {
                self.totals.not_stored();
                self.store.warn_unwritten(&error);
                true
            }
        }
    }

    async fn try_write(&mut self) -> Result<bool, Error> {
        self.store.look().await?;
        // A write before the stored totals are known would replace them.
        let Some(stored) = self.store.totals() else {
            self.totals.not_stored();
            return Ok(true);
        };
        self.totals.restore(stored);
        if let Some(held) = &self.store.held {
            self.completions.restore(&held.completions);
        }
        let state = State {
            totals: self.totals.to_store(),
            completions: self.completions.to_store(),
            ..(self.latest)()
        };
        let held = self.store.held.as_ref();
        let is_stored = held.is_some_and(|held| held.is_same(&state));
        if !is_stored {
            self.store.write(state).await?;
        }
        // Absent if a newer version of shed has written in between.
        match &self.store.held {
            Some(held) => self.totals.stored(&held.totals),
            None => self.totals.not_stored(),
        }
        Ok(!is_stored)
    }
}
