//! One question to one attempt over HTTP, with limits on time and size.

use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::Request;
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use shed_agent::signed::SigningKey;
use shed_agent::stop::{STOP_PATH, StopAt, StopState};
use shed_agent::{parse_report, read_endpoint, read_reply, wire};

use super::Answer;
use crate::api::AGENT_PORT;
use crate::observe::pod::PodFacts;
use crate::validate::ProgressSource;

/// Longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// An HTTP client without TLS: pods are asked by address.
pub type HttpClient = Client<HttpConnector, Full<Bytes>>;

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
    host: String,
    url: String,
    from_agent: bool,
    /// Where the ledger says that the attempt's part ends, if its task was divided.
    pub ends_at: Option<u64>,
}

/// What came back.
pub struct Reply {
    /// The report.
    pub answer: Answer,
    /// What the attempt was told about its end.
    pub stop: Option<StopState>,
}

impl Question {
    /// The question that a source asks for.
    pub fn new(source: &ProgressSource, ip: &str, pod: &PodFacts, ends_at: Option<u64>) -> Self {
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
            host,
            from_agent,
            ends_at,
        }
    }
}

/// Asks, and judges the answer.
pub async fn ask(client: &HttpClient, question: &Question) -> Reply {
    match tokio::time::timeout(PATIENCE, exchange(client, question)).await {
        Ok(Some(reply)) => reply,
        Ok(None) | Err(_) => Reply {
            answer: Answer::Nothing,
            stop: None,
        },
    }
}

async fn exchange(client: &HttpClient, question: &Question) -> Option<Reply> {
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
        Err(_) => {
            return Some(Reply {
                answer: Answer::Said(parse_report(&vec![b' '; limit])),
                stop: None,
            });
        }
    };
    let said = if question.from_agent {
        read_reply(&body, &question.uid)
    } else {
        read_endpoint(header.as_deref(), &body, &question.pod_name)
    };
    let said = said.ok()?;
    Some(Reply {
        answer: Answer::Said(said),
        stop: question.ends_at.and_then(|_| wire::read_stop(&body)),
    })
}

/// Tells the attempt where its part ends; true if it knows.
pub async fn tell(
    client: &HttpClient,
    question: &Question,
    key: &SigningKey,
    stop: Option<&StopState>,
) -> bool {
    let (Some(unit), Some(stop)) = (question.ends_at, stop) else {
        return false;
    };
    if stop.unit == Some(unit) {
        return true;
    }
    let order = key.sign(&question.uid, &stop.nonce, &StopAt { unit });
    let url = format!("http://{}:{AGENT_PORT}{STOP_PATH}", question.host);
    let request = order
        .ok()
        .and_then(|order| Request::post(url).body(Full::from(order)).ok());
    let Some(request) = request else {
        return false;
    };
    let answer = tokio::time::timeout(PATIENCE, client.request(request)).await;
    matches!(answer, Ok(Ok(response)) if response.status().is_success())
}
