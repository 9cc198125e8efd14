//! `shed agent commit -- CMD`: waits for the grant and becomes the command that publishes. And the
//! address at which tasks with an HTTP client of their own do the same.

use std::convert::Infallible;
use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use axum::Router;
use axum::extract::State;
use axum::http::{Request, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};

use crate::fence::{CommitGrant, Fence};
use crate::signed::ORDER_BYTES_MAX;

/// Where a task asks: an address that only its own pod can reach.
pub const COMMIT_PORT: u16 = 9248;
pub const COMMIT_PATH: &str = "/commit";

/// The fencing token, for the command.
pub const TOKEN_VAR: &str = "SHED_FENCE_TOKEN";
/// `<job uid>/<task>/<segment>`: what may be published once.
pub const FENCE_ID_VAR: &str = "SHED_FENCE_ID";

/// The agent may be starting again; waiting costs nothing but time.
const RETRY_AFTER: Duration = Duration::from_secs(1);

pub(crate) async fn listen(port: u16) -> std::io::Result<TcpListener> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await
}

/// Answers the task. Its own pod needs no bounds.
pub(crate) async fn serve(listener: TcpListener, fence: Arc<Fence>) -> std::io::Result<()> {
    let router = Router::new()
        .route(COMMIT_PATH, post(answer))
        .with_state(fence);
    axum::serve(listener, router).await
}

async fn answer(State(fence): State<Arc<Fence>>) -> Response {
    let body = fence.ask().await.map(|grant| serde_json::to_vec(&grant));
    match body {
        Some(Ok(body)) => ([(header::CONTENT_TYPE, "application/json")], body).into_response(),
        Some(Err(_)) | None => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// Waits for the grant, then becomes `command`. It returns only if that can't be started.
pub fn commit(command: &[OsString]) -> anyhow::Result<Infallible> {
    let Some((program, arguments)) = command.split_first() else {
        bail!("no command: use `$SHED_BIN agent commit -- CMD`");
    };
    let grant = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("start the runtime")?
        .block_on(wait_for_grant(COMMIT_PORT));
    let error = Command::new(program)
        .args(arguments)
        .env(TOKEN_VAR, grant.token.to_string())
        .env(
            FENCE_ID_VAR,
            format!("{}/{}/{}", grant.job, grant.task, grant.segment),
        )
        .exec();
    Err(error).with_context(|| format!("start {}", program.to_string_lossy()))
}

/// Asks the pod's agent until it answers.
pub async fn wait_for_grant(port: u16) -> CommitGrant {
    let mut is_reported = false;
    loop {
        match ask(port).await {
            Ok(grant) => return grant,
            Err(error) => {
                if !is_reported {
                    tracing::warn!("no response from the agent, retrying: {error:#}");
                }
                is_reported = true;
                tokio::time::sleep(RETRY_AFTER).await;
            }
        }
    }
}

async fn ask(port: u16) -> anyhow::Result<CommitGrant> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let stream = TcpStream::connect(address).await?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let connection = tokio::spawn(connection);
    let request = Request::post(COMMIT_PATH)
        .header(header::HOST, address.to_string())
        .body(Empty::<Bytes>::new())?;
    let response = sender.send_request(request).await?;
    let status = response.status();
    let body = Limited::new(response.into_body(), ORDER_BYTES_MAX)
        .collect()
        .await;
    connection.abort();
    if status != StatusCode::OK {
        bail!("the agent responded with {status}");
    }
    let body = body
        .map_err(|error| anyhow::anyhow!(error))
        .context("read the answer")?
        .to_bytes();
    serde_json::from_slice(&body).context("read the grant")
}
