//! No write after the renew deadline. Every request that changes something passes the gate of the
//! term it belongs to. It is checked by the monotonic clock right before it is handed over, and
//! given up when the deadline comes, also after the process was frozen. A gate that is closed
//! stays closed, and a process that leads again has a new one.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::{BoxFuture, poll_fn};
use http::{Method, Request};
use parking_lot::Mutex;
use prometheus::IntCounter;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout};
use tower::{BoxError, Layer, Service};

/// Interval at which writes in progress check the gate if nothing limits them.
const NO_LIMIT: Duration = Duration::from_secs(3600);

/// This process does not lead, or can't be sure that it still does.
#[derive(Debug, thiserror::Error)]
#[error("write refused: this replica is no longer the leader")]
pub struct Deposed;

/// The permission to write in one term of leadership.
pub struct WriteGate {
    state: Mutex<State>,
    /// Raised when no write is under way.
    idle: Notify,
    refused: IntCounter,
}

struct State {
    stage: Stage,
    /// No write from this instant on; `None`: there is no election.
    until: Option<Instant>,
    under_way: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Open,
    /// Writes in progress may end, and no new write begins.
    Draining,
    Closed,
}

impl State {
    /// Until when a write in progress may continue.
    fn limit(&self, now: Instant) -> Result<Instant, Deposed> {
        let until = self.until.unwrap_or(now + NO_LIMIT);
        if self.stage == Stage::Closed || now >= until {
            return Err(Deposed);
        }
        Ok(until)
    }
}

impl WriteGate {
    /// The gate of a new term; `refused` counts the writes that it keeps back.
    pub fn new(until: Option<Instant>, refused: IntCounter) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State {
                stage: Stage::Open,
                until,
                under_way: 0,
            }),
            idle: Notify::new(),
            refused,
        })
    }

    /// The Lease was renewed. An earlier instant than before changes nothing.
    pub fn extend(&self, until: Instant) {
        let mut state = self.state.lock();
        state.until = state.until.map(|before| before.max(until));
    }

    /// Stops new writes, and waits for those in progress, at most for `patience`.
    pub async fn drain(&self, patience: Duration) {
        self.state.lock().stage = Stage::Draining;
        let idle = async {
            while self.state.lock().under_way > 0 {
                self.idle.notified().await;
            }
        };
        // Closing the gate abandons the writes that have not ended by then.
        let _ = timeout(patience, idle).await;
        self.close();
    }

    /// Ends the term finally.
    pub fn close(&self) {
        self.state.lock().stage = Stage::Closed;
    }

    fn begin(self: &Arc<Self>, now: Instant) -> Result<WriteUnderWay, Deposed> {
        let mut state = self.state.lock();
        let limit = state.limit(now).ok();
        if limit.is_none() || state.stage != Stage::Open {
            self.refused.inc();
            return Err(Deposed);
        }
        state.under_way += 1;
        Ok(WriteUnderWay(Arc::clone(self)))
    }
}

/// One write under way.
struct WriteUnderWay(Arc<WriteGate>);

impl Drop for WriteUnderWay {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.under_way -= 1;
        if state.under_way == 0 {
            self.0.idle.notify_one();
        }
    }
}

impl WriteUnderWay {
    fn limit(&self) -> Result<Instant, Deposed> {
        self.0.state.lock().limit(Instant::now())
    }

    /// Checks the gate before it drives the request any further, whatever woke it. After a freeze
    /// the answer, a timer and the deadline may all be due at once.
    async fn through<T>(
        self,
        request: impl Future<Output = Result<T, BoxError>>,
    ) -> Result<T, BoxError> {
        let mut request = pin!(request);
        let mut alarm = pin!(sleep_until(Instant::now()));
        poll_fn(move |context| {
            loop {
                let limit = self.limit()?;
                if alarm.deadline() != limit {
                    alarm.as_mut().reset(limit);
                }
                if let Poll::Ready(answer) = request.as_mut().poll(context) {
                    return Poll::Ready(answer);
                }
                // A renewal may have moved the limit. Then the alarm is set again.
                if alarm.as_mut().poll(context).is_pending() {
                    return Poll::Pending;
                }
            }
        })
        .await
    }
}

/// Puts a client behind a gate.
pub struct WriteGateLayer(pub Arc<WriteGate>);

impl<S> Layer<S> for WriteGateLayer {
    type Service = Gated<S>;

    fn layer(&self, inner: S) -> Gated<S> {
        Gated {
            inner,
            gate: Arc::clone(&self.0),
        }
    }
}

/// A client behind a gate: reads pass, writes only while the term lasts.
pub struct Gated<S> {
    inner: S,
    gate: Arc<WriteGate>,
}

impl<S, B> Service<Request<B>> for Gated<S>
where
    S: Service<Request<B>, Error = BoxError>,
    S::Future: Send + 'static,
    S::Response: Send + 'static,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<S::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        if matches!(*request.method(), Method::GET | Method::HEAD) {
            return Box::pin(self.inner.call(request));
        }
        match self.gate.begin(Instant::now()) {
            Ok(write) => Box::pin(write.through(self.inner.call(request))),
            Err(deposed) => Box::pin(std::future::ready(Err(deposed.into()))),
        }
    }
}

#[cfg(test)]
mod tests;
