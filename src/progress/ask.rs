//! One question to one attempt over HTTP, with limits on time and size.

use std::time::Duration;

use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use shed_agent::{parse_report, read_endpoint, read_reply, wire};

use super::Answer;
use crate::api::AGENT_PORT;
use crate::observe::pod::PodFacts;
use crate::validate::ProgressSource;

/// Longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// An HTTP client without TLS: pods are asked by address.
pub type HttpClient = Client<HttpConnector, Empty<Bytes>>;

/// A client for all questions.
pub fn client() -> HttpClient {
    let mut connector = HttpConnector::new();
    connector.set_connect_timeout(Some(PATIENCE));
    Client::builder(TokioExecutor::new())
        // The agent closes each connection; pod addresses are used again by others.
        .pool_max_idle_per_host(0)
        .build(connector)
}

/// Whom to ask what.
pub struct Question {
    /// The attempt's pod.
    pub uid: String,
    pod_name: String,
    url: String,
    from_agent: bool,
}

impl Question {
    /// The question that a source asks for.
    pub fn new(source: &ProgressSource, ip: &str, pod: &PodFacts) -> Self {
        let host = if ip.contains(':') {
            format!("[{ip}]")
        } else {
            ip.to_owned()
        };
        let (port, path, from_agent) = match source {
            ProgressSource::Agent => (AGENT_PORT, wire::PROGRESS_PATH, true),
            ProgressSource::Task { port, path } => (*port, &**path, false),
        };
        Self {
            uid: pod.uid.clone(),
            pod_name: pod.name.clone(),
            url: format!("http://{host}:{port}{path}"),
            from_agent,
        }
    }
}

/// Asks, and judges the answer.
pub async fn ask(client: &HttpClient, question: &Question) -> Answer {
    match tokio::time::timeout(PATIENCE, exchange(client, question)).await {
        Ok(Some(answer)) => answer,
        Ok(None) | Err(_) => Answer::Nothing,
    }
}

async fn exchange(client: &HttpClient, question: &Question) -> Option<Answer> {
    let response = client.get(question.url.parse().ok()?).await.ok()?;
    if !response.status().is_success() {
        return None;
    }
    let header = response
        .headers()
        .get(wire::ATTEMPT_HEADER)
        .map(|value| value.as_bytes().to_vec());
    // The agent's reply has its own limit; a task's endpoint must not be longer than a report.
    let limit = wire::REPLY_BYTES_MAX + 1;
    let body = match Limited::new(response.into_body(), limit).collect().await {
        Ok(body) => body.to_bytes(),
        // Too long for any report: judged as such, and counted.
        Err(_) => return Some(Answer::Said(parse_report(&vec![b' '; limit]))),
    };
    let said = if question.from_agent {
        read_reply(&body, &question.uid)
    } else {
        read_endpoint(header.as_deref(), &body, &question.pod_name)
    };
    said.ok().map(Answer::Said)
}
