//! Whether this process's memory still agrees with the store. Doubt arises when a watch ends before
//! its time or a call gets no answer. While it lasts, no request that changes something is sent,
//! and requests in progress are abandoned. A layer of the client enforces both; messages to agents
//! go through `unless_arisen`.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Poll, ready};
use std::time::Duration;

use futures::future::BoxFuture;
use http::{Method, Request, Response};
use hyper::body::{Body, Bytes, Frame, SizeHint};
use tokio::sync::watch;
use tokio::time::Instant;
use tower::{BoxError, Layer, Service};

/// It may be that the apiserver's store was put back.
#[derive(Debug, thiserror::Error)]
#[error(
    "write refused: a watch broke, and no list has confirmed yet that resourceVersions advanced"
)]
pub struct InDoubt;

/// Whether the memory still agrees with the store.
pub struct Doubt(watch::Sender<State>);

#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct State {
    /// How often doubt arose.
    arisen: u64,
    /// How many of these were dispelled.
    dispelled: u64,
}

impl State {
    fn is_settled(self) -> bool {
        self.arisen == self.dispelled
    }
}

impl Doubt {
    /// A guard without doubt.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::new(Self(watch::Sender::new(State::default())))
    }

    /// The memory may not be valid any more.
    pub fn raise(&self) {
        self.0.send_modify(|state| state.arisen += 1);
    }

    /// Waits for doubt. Returns its number, which the caller passes to `dispel` after a check.
    pub async fn arisen(&self) -> u64 {
        self.wait(|state| !state.is_settled()).await.arisen
    }

    /// Confirms the memory as of this doubt. Doubt that arose later stays.
    pub fn dispel(&self, doubt: u64) {
        self.0
            .send_modify(|state| state.dispelled = state.dispelled.max(doubt));
    }

    /// Waits until there is no doubt.
    pub async fn settled(&self) {
        self.wait(|state| state.is_settled()).await;
    }

    /// Sends a message that is true only if the memory agrees with the store. In doubt it is not
    /// sent, and when doubt arises it is abandoned. None then.
    pub async fn unless_arisen<T>(&self, sending: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            // A request that was made when a watch breaks must not reach the restored store.
            biased;
            _ = self.arisen() => None,
            sent = sending => Some(sent),
        }
    }

    async fn wait(&self, until: impl Fn(State) -> bool) -> State {
        let mut states = self.0.subscribe();
        let found = states
            .wait_for(|state| until(*state))
            .await
            .map(|state| *state);
        match found {
            Ok(state) => state,
            // The sender is `self`, so this does not happen.
            Err(_) => std::future::pending().await,
        }
    }
}

/// Watches over a client.
pub struct DoubtLayer(pub Arc<Doubt>);

impl<S> Layer<S> for DoubtLayer {
    type Service = Watchful<S>;

    fn layer(&self, inner: S) -> Watchful<S> {
        Watchful {
            inner,
            doubt: Arc::clone(&self.0),
        }
    }
}

/// A client that is watched over.
pub struct Watchful<S> {
    inner: S,
    doubt: Arc<Doubt>,
}

impl<S, B, R> Service<Request<B>> for Watchful<S>
where
    S: Service<Request<B>, Response = Response<R>, Error = BoxError>,
    S::Future: Send + 'static,
    R: Send + 'static,
{
    type Response = Response<Watched<R>>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut std::task::Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let changes = !matches!(*request.method(), Method::GET | Method::HEAD);
        let guard = ends_after(request.uri().query()).map(|lasts| Guard {
            doubt: Arc::clone(&self.doubt),
            due: Instant::now() + lasts,
            in_time: false,
        });
        let doubt = Arc::clone(&self.doubt);
        if changes && !doubt.0.borrow().is_settled() {
            return Box::pin(std::future::ready(Err(InDoubt.into())));
        }
        let answering = self.inner.call(request);
        Box::pin(async move {
            let answer = match changes {
                true => doubt.unless_arisen(answering).await.ok_or(InDoubt)?,
                false => answering.await,
            };
            match answer {
                Ok(answer) => Ok(answer.map(|body| Watched { body, guard })),
                Err(error) => {
                    doubt.raise();
                    Err(error)
                }
            }
        })
    }
}

/// When a watch with this query ends by itself; none if it is no watch.
fn ends_after(query: Option<&str>) -> Option<Duration> {
    let mut parts = query?.split('&').filter_map(|part| part.split_once('='));
    let is_watch = parts
        .clone()
        .any(|(name, value)| name == "watch" && value != "false");
    let seconds = parts.find(|(name, _)| *name == "timeoutSeconds");
    let seconds = seconds.and_then(|(_, value)| value.parse().ok());
    // Without a limit no end is due.
    is_watch.then(|| Duration::from_secs(seconds.unwrap_or(u32::MAX).into()))
}

/// Raises doubt when the watch it belongs to ends in any way but in good time.
struct Guard {
    doubt: Arc<Doubt>,
    /// Counted from before the request was sent, so the apiserver's own count ends later.
    due: Instant,
    in_time: bool,
}

impl Drop for Guard {
    fn drop(&mut self) {
        if !self.in_time {
            self.doubt.raise();
        }
    }
}

/// An answer; of a watch, it is seen how it ends.
pub struct Watched<R> {
    body: R,
    guard: Option<Guard>,
}

impl<R> Body for Watched<R>
where
    R: Body<Data = Bytes> + Unpin,
{
    type Data = Bytes;
    type Error = R::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, R::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        if frame.is_none()
            && let Some(mut guard) = self.guard.take()
        {
            guard.in_time = Instant::now() >= guard.due;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests;
