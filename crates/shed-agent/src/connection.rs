//! Bounds what strangers on the pod network can cost the agent: how many connections, how long
//! each lives and how much it may send. One connection carries one request.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Sleep;

/// One operator polls with one connection; the rest is for probes and people.
const CONNECTIONS_MAX: usize = 16;
/// Longer than any answer takes, short enough that idle strangers make room again.
const CONNECTION_LIFE: Duration = Duration::from_secs(5);
/// A poll's request has some hundred bytes.
const REQUEST_BYTES_MAX: usize = 16 * 1024;

pub(crate) struct BoundedListener {
    listener: TcpListener,
    slots: Arc<Semaphore>,
}

impl BoundedListener {
    pub(crate) fn new(listener: TcpListener) -> Self {
        let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        BoundedListener { listener, slots }
    }
}

impl Listener for BoundedListener {
    type Io = BoundedStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        // Fails only when the semaphore is closed, which nobody does.
        let slot = Arc::clone(&self.slots).acquire_owned().await.ok();
        let (stream, address) = Listener::accept(&mut self.listener).await;
        let stream = BoundedStream {
            stream,
            end: Box::pin(tokio::time::sleep(CONNECTION_LIFE)),
            received_bytes: 0,
            _slot: slot,
        };
        (stream, address)
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}

pub(crate) struct BoundedStream {
    stream: TcpStream,
    end: Pin<Box<Sleep>>,
    received_bytes: usize,
    _slot: Option<OwnedSemaphorePermit>,
}

impl BoundedStream {
    /// Also registers the wake-up at the end, so that a silent connection is dropped too.
    fn check_life(&mut self, context: &mut Context<'_>) -> io::Result<()> {
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
        self.received_bytes += buffer.filled().len() - before;
        if self.received_bytes > REQUEST_BYTES_MAX {
            return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
        }
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
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
