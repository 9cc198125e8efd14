//! The sidecar itself: writes the resume point, then answers polls until it is stopped.
//! It reads the progress file only when asked and keeps nothing between two polls.

use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Semaphore;

use crate::config::{AgentConfig, FenceConfig, Resume};
use crate::connection::{BoundedListener, Limits};
use crate::fence::{FENCE_PATH, Fence};
use crate::reply::{CODE_HEADER, NONCE_HEADER, ReplyKey};
use crate::signed::SignatureError;
use crate::stop::{STOP_PATH, Stop, StopError};
use crate::wire::{FileContent, PROGRESS_PATH, REPLY_BYTES_MAX, write_reply};
use crate::{commit, progress_file, resume};

/// Where the startup probe asks. It answers only once the resume file is complete.
pub const HEALTH_PATH: &str = "/healthz";

/// The operator polls with one connection, or two while it holds one for a commit grant; the rest
/// is for people. A poll's request has some hundred bytes, and no answer takes five seconds.
const REPORT_LIMITS: Limits = Limits {
    connections: 16,
    per_peer: 4,
    life: Duration::from_secs(5),
    bytes: 16 * 1024,
};
/// The kubelet probes with one connection.
const HEALTH_LIMITS: Limits = Limits {
    connections: 8,
    per_peer: 2,
    life: Duration::from_secs(2),
    bytes: 4 * 1024,
};

/// A read takes microseconds, unless the volume hangs.
const READ_TIME_MAX: Duration = Duration::from_secs(2);
/// A stopped pod must not wait for a stranger who keeps a connection open.
const SHUTDOWN_TIME_MAX: Duration = Duration::from_millis(500);

/// The entry of `shed agent`: everything comes from the environment, and it ends on SIGTERM.
/// With `init_only` it writes the resume file and returns, for an init container of a task
/// that is asked for its progress in another way or not at all.
pub fn run_from_env(init_only: bool) -> anyhow::Result<()> {
    if init_only {
        return write_resume_only(Resume::from_env()?.as_ref());
    }
    let config = AgentConfig::from_env()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(1)
        .build()
        .context("start the runtime")?;
    let result = runtime.block_on(async {
        let shutdown = shutdown_signal().context("listen to signals")?;
        run(config, shutdown).await
    });
    // Not a plain drop, which would wait for a read that hangs.
    runtime.shutdown_background();
    result
}

/// Writes the resume file, if there is a resume point.
pub fn write_resume_only(resume: Option<&Resume>) -> anyhow::Result<()> {
    match resume {
        Some(resume) => resume::write(resume),
        None => Ok(()),
    }
}

/// Serves one attempt until `shutdown` is ready.
pub async fn run(
    config: AgentConfig,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> anyhow::Result<()> {
    Agent::start(config).await?.serve(shutdown).await
}

/// An agent that listens and has written the resume file.
pub struct Agent {
    listener: TcpListener,
    /// For the startup probe alone.
    health: TcpListener,
    attempt: Arc<Attempt>,
    /// The fence, and where the task asks.
    fence: Option<(Arc<Fence>, TcpListener)>,
}

struct Attempt {
    uid: String,
    progress_file: PathBuf,
    /// One reader at a time. The permit goes with the read, so that reads of a volume that
    /// hangs do not pile up.
    reader: Arc<Semaphore>,
    reply_key: Option<ReplyKey>,
    stop: Option<Stop>,
}

impl Agent {
    pub async fn start(config: AgentConfig) -> anyhow::Result<Self> {
        let AgentConfig {
            attempt_uid,
            progress_file,
            port,
            health_port,
            resume,
            reply_key,
            fence,
            stop,
        } = config;
        progress_file::open_folder(&progress_file);
        // Before listening: the probe then cannot pass too early.
        write_resume_only(resume.as_ref())?;
        let fence = match fence {
            Some(fence) => Some(start_fence(&attempt_uid, &fence).await?),
            None => None,
        };
        let listener = bind(port)
            .await
            .with_context(|| format!("listen on port {port}"))?;
        let health = bind(health_port)
            .await
            .with_context(|| format!("listen on port {health_port}"))?;
        tracing::info!(
            port,
            attempt = attempt_uid,
            resumed = resume.is_some(),
            "agent serves"
        );
        let stop = stop.map(|stop| Stop::new(attempt_uid.clone(), stop));
        let attempt = Arc::new(Attempt {
            stop: stop.transpose()?,
            uid: attempt_uid,
            progress_file,
            reader: Arc::new(Semaphore::new(1)),
            reply_key,
        });
        Ok(Agent {
            listener,
            health,
            attempt,
            fence,
        })
    }

    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Where the startup probe asks.
    pub fn health_addr(&self) -> io::Result<SocketAddr> {
        self.health.local_addr()
    }

    /// Where the task asks before it publishes; none without a fence.
    pub fn commit_addr(&self) -> Option<SocketAddr> {
        let (_, listener) = self.fence.as_ref()?;
        listener.local_addr().ok()
    }

    pub async fn serve(
        self,
        shutdown: impl Future<Output = ()> + Send + 'static,
    ) -> anyhow::Result<()> {
        let router = health_router()
            .route(PROGRESS_PATH, get(answer_progress))
            .route(STOP_PATH, post(take_stop))
            .with_state(Arc::clone(&self.attempt));
        let (router, task) = with_fence(router, self.fence);
        let key = self.attempt.reply_key.clone();
        let router = router.layer(axum::middleware::from_fn_with_state(key, with_code));
        let router = router.layer(axum::middleware::map_response(close_connection));
        let (stopping, stopped) = tokio::sync::oneshot::channel();
        let shutdown = async move {
            shutdown.await;
            // The receiver is gone only when the server has ended already.
            let _ = stopping.send(());
        };
        let server = axum::serve(BoundedListener::new(self.listener, REPORT_LIMITS), router)
            .with_graceful_shutdown(shutdown);
        let probes = health_router().layer(axum::middleware::map_response(close_connection));
        let probes = axum::serve(BoundedListener::new(self.health, HEALTH_LIMITS), probes);
        let too_long = async {
            match stopped.await {
                Ok(()) => tokio::time::sleep(SHUTDOWN_TIME_MAX).await,
                Err(_) => std::future::pending().await,
            }
        };
        let served = tokio::select! {
            result = server.into_future() => result.context("serve"),
            result = probes.into_future() => result.context("serve the startup probe"),
            result = task => result.context("serve the task"),
            () = too_long => Ok(()),
        };
        self.attempt.say_last().await;
        served
    }
}

fn health_router<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new().route(HEALTH_PATH, get(|| async { "ok" }))
}

/// Puts the program where the task finds it, then listens to the task.
async fn start_fence(
    attempt: &str,
    config: &FenceConfig,
) -> anyhow::Result<(Arc<Fence>, TcpListener)> {
    copy_program(&config.bin).with_context(|| format!("write {}", config.bin.display()))?;
    let fence = Fence::new(attempt.to_owned(), config)?;
    let port = config.port;
    let listener = commit::listen(port)
        .await
        .with_context(|| format!("listen on 127.0.0.1:{port}"))?;
    Ok((Arc::new(fence), listener))
}

/// In one piece, since an agent that was started again may replace what the task is running.
fn copy_program(to: &Path) -> io::Result<()> {
    let new = to.with_extension("new");
    std::fs::copy("/proc/self/exe", &new)?;
    std::fs::set_permissions(&new, std::fs::Permissions::from_mode(0o755))?;
    std::fs::rename(&new, to)
}

/// Adds the operator's side of the fence, and gives what serves the task's side.
fn with_fence(
    router: Router,
    fence: Option<(Arc<Fence>, TcpListener)>,
) -> (Router, impl Future<Output = io::Result<()>>) {
    let (fence, listener) = fence.unzip();
    let router = match fence.clone() {
        Some(fence) => router.merge(
            Router::new()
                .route(FENCE_PATH, get(answer_poll).post(take_grant))
                .with_state(fence),
        ),
        None => router,
    };
    let task = async move {
        match fence.zip(listener) {
            Some((fence, listener)) => commit::serve(listener, fence).await,
            None => std::future::pending().await,
        }
    };
    (router, task)
}

async fn answer_poll(State(fence): State<Arc<Fence>>) -> Response {
    match fence.poll().await {
        Ok(body) => ([(header::CONTENT_TYPE, "application/json")], body).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

async fn take_grant(State(fence): State<Arc<Fence>>, message: Bytes) -> Response {
    match fence.grant(&message) {
        Ok(()) => StatusCode::OK.into_response(),
        Err(error) => refused(error),
    }
}

/// The operator tells a key that is not its own from an order that a restarted agent did not ask for.
fn refused(error: SignatureError) -> Response {
    tracing::warn!(%error, "an order is refused");
    let status = match error {
        SignatureError::WrongNonce => StatusCode::CONFLICT,
        _ => StatusCode::FORBIDDEN,
    };
    (status, error.to_string()).into_response()
}

/// Both address families where the kernel has IPv6, else IPv4.
async fn bind(port: u16) -> io::Result<TcpListener> {
    match TcpListener::bind((Ipv6Addr::UNSPECIFIED, port)).await {
        Ok(listener) => Ok(listener),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => Err(error),
        Err(_) => TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).await,
    }
}

async fn answer_progress(State(attempt): State<Arc<Attempt>>) -> Response {
    let content = tokio::time::timeout(READ_TIME_MAX, attempt.read()).await;
    let Ok(Some(content)) = content else {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    };
    let stop = attempt.stop.as_ref().map(Stop::state);
    match write_reply(&attempt.uid, content, stop) {
        Ok(body) => ([(header::CONTENT_TYPE, "application/json")], body).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

async fn take_stop(State(attempt): State<Arc<Attempt>>, message: Bytes) -> Response {
    let Some(stop) = &attempt.stop else {
        return StatusCode::NOT_FOUND.into_response();
    };
    match stop.take(&message) {
        Ok(()) => StatusCode::OK.into_response(),
        Err(StopError::Refused(error)) => refused(error),
        Err(error) => {
            tracing::warn!(%error, "an order to stop is not carried out");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

impl Attempt {
    /// The agent ends after the task, so that this is the task's last report.
    async fn say_last(&self) {
        let Some(stop) = &self.stop else { return };
        let read = tokio::time::timeout(READ_TIME_MAX, self.read()).await;
        if let Ok(Some(content)) = read
            && let Err(error) = stop.say_last(&content)
        {
            tracing::warn!(%error, "the last report is not left behind");
        }
    }

    async fn read(&self) -> Option<FileContent> {
        let permit = Arc::clone(&self.reader).acquire_owned().await.ok()?;
        let path = self.progress_file.clone();
        let read = move || {
            let _permit = permit;
            progress_file::read(&path)
        };
        tokio::task::spawn_blocking(read).await.ok()
    }
}

/// Gives the answer to a question with a nonce the code by which the operator knows it.
async fn with_code(State(key): State<Option<ReplyKey>>, question: Request, next: Next) -> Response {
    let nonce = question.headers().get(NONCE_HEADER).cloned();
    let path = question.uri().path().to_owned();
    let answer = next.run(question).await;
    let (Some(key), Some(nonce)) = (key, nonce) else {
        return answer;
    };
    let (mut head, body) = answer.into_parts();
    let Ok(body) = to_bytes(body, REPLY_BYTES_MAX).await else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let code = key.code(&path, nonce.as_bytes(), &body);
    if let Ok(code) = HeaderValue::from_str(&code) {
        head.headers.insert(CODE_HEADER, code);
    }
    Response::from_parts(head, Body::from(body))
}

/// Thousands of agents are polled by one operator, seconds apart: open connections would cost
/// it more than new ones.
async fn close_connection(mut response: Response) -> Response {
    let close = HeaderValue::from_static("close");
    response.headers_mut().insert(header::CONNECTION, close);
    response
}

/// Ready on SIGTERM or SIGINT. As PID 1 of its container the agent would ignore both without
/// a handler. The handlers are in place when this returns.
fn shutdown_signal() -> io::Result<impl Future<Output = ()> + Send + 'static> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}
