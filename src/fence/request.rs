//! The two calls to an agent, with limits on time and size.

use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::{Method, Request};
use shed_agent::fence::{FENCE_PATH, POLL_HELD, read_poll};
use shed_agent::signed::ORDER_BYTES_MAX;

use crate::progress::HttpClient;

/// Longest wait for a connection, and for an answer that need not be waited for.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);

/// The agent's nonce if its task requests a grant, within `Some`; None without a usable answer.
pub(super) async fn poll(client: &HttpClient, agent: &str, uid: &str) -> Option<Option<String>> {
    let request = request(Method::GET, agent, Vec::new())?;
    let exchange = async {
        let response = client.request(request).await.ok()?;
        if !response.status().is_success() {
            return None;
        }
        let body = Limited::new(response.into_body(), ORDER_BYTES_MAX);
        let body = body.collect().await.ok()?.to_bytes();
        read_poll(&body, uid).ok()
    };
    let longest = POLL_HELD + PATIENCE;
    tokio::time::timeout(longest, exchange).await.ok()?
}

/// Leaves a signed grant; true if the agent took it.
pub(super) async fn leave(client: &HttpClient, agent: &str, message: Vec<u8>) -> bool {
    let Some(request) = request(Method::POST, agent, message) else {
        return false;
    };
    let answer = tokio::time::timeout(PATIENCE, client.request(request)).await;
    matches!(answer, Ok(Ok(response)) if response.status().is_success())
}

fn request(method: Method, agent: &str, body: Vec<u8>) -> Option<Request<Full<Bytes>>> {
    Request::builder()
        .method(method)
        .uri(format!("http://{agent}{FENCE_PATH}"))
        .body(Full::from(body))
        .ok()
}
