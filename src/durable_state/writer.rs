//! When the state is stored: every 30 s if it has changed, and before the leader hands over.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::{sleep, timeout};

use super::format::State;
use super::store::{Error, Store};
use crate::completion_history::CompletionHistory;
use crate::deadline_totals::DeadlineTotals;
use crate::workflow_runs::WorkflowRuns;

/// Time between two writes.
pub const PERIOD: Duration = Duration::from_secs(30);

/// A leader that is asked to stop waits this long for its last write.
const HAND_OVER_PATIENCE: Duration = Duration::from_secs(2);

/// Requests a last write.
pub struct HandOver(mpsc::Sender<oneshot::Sender<()>>);

/// The requests for a last write.
pub struct HandOverRequests(mpsc::Receiver<oneshot::Sender<()>>);

/// Both ends for one term.
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

/// What the watches of jobs have counted and learned.
#[derive(Clone, Default)]
pub struct Counted {
    /// Deadlines met, missed and failed.
    pub totals: Arc<DeadlineTotals>,
    /// Completion times.
    pub completions: Arc<CompletionHistory>,
    /// Runs of workflows.
    pub workflows: Arc<WorkflowRuns>,
}

impl Counted {
    /// Adds what earlier leaders have stored.
    pub fn restore(&self, stored: &State) {
        self.completions.restore(&stored.completions);
        self.workflows.restore(&stored.workflows);
    }
}

/// Stores what `latest` returns, with what the watches have counted, until the term ends.
pub async fn run(
    store: Store,
    counted: Counted,
    latest: impl Fn() -> State + Send + Sync,
    mut requests: HandOverRequests,
) {
    let mut writer = Writer {
        store,
        counted,
        latest,
    };
    loop {
        let done = tokio::select! {
            () = sleep(PERIOD) => None,
            // Without a sender the term is ending without a hand-over.
            request = requests.0.recv() => match request {
                Some(done) => Some(done),
                None => return,
            }
        };
        writer.write().await;
        if let Some(done) = done {
            let _ = done.send(());
        }
    }
}

struct Writer<F> {
    store: Store,
    counted: Counted,
    latest: F,
}

impl<F: Fn() -> State + Send + Sync> Writer<F> {
    /// Stores the state unless it is stored.
    async fn write(&mut self) {
        if let Err(error) = self.try_write().await {
            self.store.warn_unwritten(&error);
        }
    }

    async fn try_write(&mut self) -> Result<(), Error> {
        self.store.look().await?;
        // A write before the stored totals are known would replace them.
        let Some(stored) = self.store.totals() else {
            return Ok(());
        };
        let counted = &self.counted;
        counted.totals.lock().restore(stored);
        if let Some(held) = &self.store.held {
            counted.restore(held);
        }
        let state = State {
            totals: counted.totals.lock().to_store(),
            completions: counted.completions.to_store(),
            workflows: counted.workflows.to_store(),
            ..(self.latest)()
        };
        let held = self.store.held.as_ref();
        match held.is_some_and(|held| held.is_same(&state)) {
            true => Ok(()),
            false => self.store.write(state).await,
        }
    }
}
