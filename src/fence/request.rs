//! The two calls to an agent, with limits on time and size.

use std::time::Duration;

use hyper::Uri;
use shed_agent::fence::{FENCE_PATH, POLL_HELD, read_poll};
use shed_agent::signed::ORDER_BYTES_MAX;

use super::Target;
use crate::agent_keys::AgentKeys;
use crate::progress::{self, HttpClient, Ordered};

/// Longest wait for a connection, and for an answer that need not be waited for.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);

/// The agent's nonce if its task requests a grant, within `Some`; None without a usable answer.
pub(super) async fn poll(
    client: &HttpClient,
    keys: &AgentKeys,
    target: &Target,
) -> Option<Option<String>> {
    let question = progress::AgentQuestion {
        uri: uri(&target.agent)?,
        job_uid: &target.attempt.job,
        pod_name: &target.pod_name,
        bytes_max: ORDER_BYTES_MAX,
    };
    let exchange = progress::ask_agent(client, keys, &question);
    let body = tokio::time::timeout(POLL_HELD + PATIENCE, exchange)
        .await
        .ok()??;
    read_poll(&body, &target.attempt.pod).ok()
}

/// Leaves a grant, signed by one key after the other.
pub(super) async fn leave(
    client: &HttpClient,
    agent: &str,
    grants: impl Iterator<Item = Vec<u8>>,
) -> Ordered {
    match uri(agent) {
        Some(uri) => progress::order(client, &uri, grants, PATIENCE).await,
        None => Ordered::Silent,
    }
}

fn uri(agent: &str) -> Option<Uri> {
    format!("http://{agent}{FENCE_PATH}").parse().ok()
}
