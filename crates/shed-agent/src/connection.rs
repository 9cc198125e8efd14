//! Bounds what strangers on the network can cost a server: how many connections are open in all
//! and per peer, how long each lives, and how many bytes it may send. A newcomer is never kept
//! waiting: where places are short, the connection that has been idle longest is closed for it.

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, Sleep};

/// Limits of the connections of one listener.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Open connections in all.
    pub connections: usize,
    /// Open connections of one peer address.
    pub per_peer: usize,
    /// Time from the start of a connection to its end.
    pub life: Duration,
    /// Bytes that a connection may send in its life.
    pub bytes: usize,
}

/// A listener whose connections keep within [`Limits`].
pub struct BoundedListener {
    listener: TcpListener,
    limits: Limits,
    open: Arc<Open>,
}

impl BoundedListener {
    /// Bounds the connections that `listener` accepts from now on.
    pub fn new(listener: TcpListener, limits: Limits) -> Self {
        Self {
            listener,
            limits,
            open: Arc::default(),
        }
    }
}

impl Listener for BoundedListener {
    type Io = BoundedStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        let (stream, address) = Listener::accept(&mut self.listener).await;
        let state = self.open.admit(address.ip(), &self.limits);
        let stream = BoundedStream {
            stream,
            end: Box::pin(tokio::time::sleep(self.limits.life)),
            bytes_left: self.limits.bytes,
            state,
            open: Arc::clone(&self.open),
        };
        (stream, address)
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}

/// The open connections of a listener, oldest first.
#[derive(Default)]
struct Open(Mutex<Vec<Arc<State>>>);

/// The state that the listener and one of its connections share.
struct State {
    peer: IpAddr,
    since: Instant,
    /// Milliseconds from `since` to the last byte in either direction.
    active_ms: AtomicU64,
    is_evicted: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Open {
    /// Frees a place for one more connection of the peer and registers it.
    fn admit(&self, peer: IpAddr, limits: &Limits) -> Arc<State> {
        let state = Arc::new(State {
            peer,
            since: Instant::now(),
            active_ms: AtomicU64::new(0),
            is_evicted: AtomicBool::new(false),
            waker: Mutex::default(),
        });
        let mut open = self.lock();
        while open.iter().filter(|other| other.peer == peer).count() >= limits.per_peer.max(1) {
            evict_idlest(&mut open, |other| other.peer == peer);
        }
        while open.len() >= limits.connections.max(1) {
            evict_idlest(&mut open, |_| true);
        }
        open.push(Arc::clone(&state));
        state
    }

    fn remove(&self, state: &Arc<State>) {
        self.lock().retain(|other| !Arc::ptr_eq(other, state));
    }

    // A panic while the lock was held leaves a list that is still one.
    fn lock(&self) -> MutexGuard<'_, Vec<Arc<State>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Closes the connection that has been idle longest among those that `may_go`.
fn evict_idlest(open: &mut Vec<Arc<State>>, may_go: impl Fn(&State) -> bool) {
    let candidates = open.iter().enumerate().filter(|(_, state)| may_go(state));
    let idlest = candidates.min_by_key(|(_, state)| state.active_at());
    if let Some((position, _)) = idlest {
        open.remove(position).evict();
    }
}

impl State {
    fn active_at(&self) -> Instant {
        self.since + Duration::from_millis(self.active_ms.load(Ordering::Relaxed))
    }

    fn note_activity(&self) {
        let age = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.active_ms.store(age, Ordering::Relaxed);
    }

    fn evict(&self) {
        self.is_evicted.store(true, Ordering::Release);
        if let Some(waker) = self.waker().take() {
            waker.wake();
        }
    }

    fn waker(&self) -> MutexGuard<'_, Option<Waker>> {
        self.waker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection that ends when its time, its bytes or its place are used up.
pub struct BoundedStream {
    stream: TcpStream,
    end: Pin<Box<Sleep>>,
    bytes_left: usize,
    state: Arc<State>,
    open: Arc<Open>,
}

impl Drop for BoundedStream {
    fn drop(&mut self) {
        self.open.remove(&self.state);
    }
}

impl BoundedStream {
    /// Also registers the wake-ups at the end and at an eviction, so that a silent connection is
    /// dropped too.
    fn check_life(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        *self.state.waker() = Some(context.waker().clone());
        if self.state.is_evicted.load(Ordering::Acquire) {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        match self.end.as_mut().poll(context) {
            Poll::Ready(()) => Err(io::ErrorKind::TimedOut.into()),
            Poll::Pending => Ok(()),
        }
    }
}

impl AsyncRead for BoundedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check_life(context)?;
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        let received = buffer.filled().len() - before;
        if received > self.bytes_left {
            buffer.set_filled(before);
            return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
        }
        self.bytes_left -= received;
        self.state.note_activity();
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for BoundedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.check_life(context)?;
        let written = ready!(Pin::new(&mut self.stream).poll_write(context, bytes))?;
        self.state.note_activity();
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests;
