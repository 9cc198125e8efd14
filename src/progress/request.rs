//! One poll of one attempt over HTTP, with limits on time and size. Redirects are not followed. An
//! invalid answer counts as no answer.

use std::error::Error;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::{Request, Response, StatusCode, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use shed_agent::metric::PAGE_BYTES_MAX;
use shed_agent::reply::{CODE_HEADER, NONCE_HEADER};
use shed_agent::report::CONTENT_BYTES_MAX;
use shed_agent::signed::draw_nonce;
use shed_agent::stop::{STOP_PATH, StopAt, StopState};
use shed_agent::{
    Metric, Report, ReportError, WireError, read_endpoint, read_metrics, read_reply, wire,
};

use crate::agent_keys::{AgentAnswer, AgentKeys};
use crate::api::AGENT_PORT;
use crate::cluster::pod::PodFacts;
use crate::polling::Key;
use crate::progress::Answer;
use crate::validate::ProgressSource;

/// Longest wait for an answer.
pub const PATIENCE: Duration = Duration::from_secs(1);

/// Most bytes of an answer that are held unread.
const HEAD_BYTES_MAX: usize = 32 * 1024;

/// An HTTP client without TLS, because pods are polled by address.
pub type HttpClient = Client<HttpConnector, Full<Bytes>>;

/// A client for all polls, which waits this long for a connection.
pub fn client(patience: Duration) -> HttpClient {
    let mut connector = HttpConnector::new();
    connector.set_connect_timeout(Some(patience));
    Client::builder(TokioExecutor::new())
        // The agent closes each connection; pod addresses are used again by others.
        .pool_max_idle_per_host(0)
        // hyper's default is 400 KiB, which a pod could fill with headers.
        .http1_max_buf_size(HEAD_BYTES_MAX)
        .build(connector)
}

/// A poll of an attempt.
pub(crate) struct Question {
    /// The attempt.
    pub attempt: Key,
    pod_name: String,
    /// Where its report is; absent if its path is no path.
    report: Option<Uri>,
    /// Where its agent takes orders.
    orders: Option<Uri>,
    source: ProgressSource,
    /// The end of the attempt's segment in the ledger, if its task was divided.
    pub ends_at: Option<u64>,
}

/// The answer.
pub struct Reply {
    /// The report.
    pub answer: Answer,
    /// The stop state that the attempt received.
    pub stop: Option<StopState>,
}

impl Question {
    /// The poll of a source.
    pub fn new(
        source: &ProgressSource,
        attempt: Key,
        address: IpAddr,
        pod: &PodFacts,
        ends_at: Option<u64>,
    ) -> Self {
        let (port, path) = match source {
            ProgressSource::Agent => (AGENT_PORT, wire::PROGRESS_PATH),
            ProgressSource::Task { port, path } | ProgressSource::Metric { port, path, .. } => {
                (*port, &**path)
            }
        };
        Self {
            attempt,
            pod_name: pod.name.to_string(),
            report: uri(SocketAddr::new(address, port), path),
            orders: uri(SocketAddr::new(address, AGENT_PORT), STOP_PATH),
            source: source.clone(),
            ends_at,
        }
    }

    /// Longer answers are refused for their length.
    fn bytes_max(&self) -> usize {
        match self.source {
            // Its content has its own limit, and each byte of it may be escaped.
            ProgressSource::Agent => wire::REPLY_BYTES_MAX,
            ProgressSource::Task { .. } => CONTENT_BYTES_MAX,
            ProgressSource::Metric { .. } => PAGE_BYTES_MAX,
        }
    }

    /// Decodes the body, if it is from the polled attempt.
    fn read(
        &self,
        header: Option<&[u8]>,
        body: &[u8],
    ) -> Result<Result<Option<Report>, ReportError>, WireError> {
        match &self.source {
            ProgressSource::Agent => read_reply(body, &self.attempt.pod),
            ProgressSource::Task { .. } => read_endpoint(header, body, &self.pod_name),
            ProgressSource::Metric { name, total, .. } => {
                let total = total.as_deref();
                let metric = Metric { name, total };
                read_metrics(header, body, &self.pod_name, metric)
            }
        }
    }
}

/// Built from its parts, so that no path of a user can name another host.
fn uri(address: SocketAddr, path: &str) -> Option<Uri> {
    let uri = Uri::builder().scheme("http").authority(address.to_string());
    let uri = uri.path_and_query(path).build().ok()?;
    path.starts_with('/').then_some(uri)
}

/// Polls, and checks the answer.
pub(crate) async fn ask(client: &HttpClient, keys: &AgentKeys, question: &Question) -> Reply {
    let exchange = async {
        match question.source {
            ProgressSource::Agent => exchange_with_agent(client, keys, question).await,
            ProgressSource::Task { .. } | ProgressSource::Metric { .. } => {
                exchange_with_task(client, question).await
            }
        }
    };
    match tokio::time::timeout(PATIENCE, exchange).await {
        Ok(Some(reply)) => reply,
        Ok(None) | Err(_) => Reply {
            answer: Answer::Nothing,
            stop: None,
        },
    }
}

async fn exchange_with_agent(
    client: &HttpClient,
    keys: &AgentKeys,
    question: &Question,
) -> Option<Reply> {
    let asked = AgentQuestion {
        uri: question.report.clone()?,
        job_uid: &question.attempt.job,
        pod_name: &question.pod_name,
        bytes_max: question.bytes_max(),
    };
    let body = ask_agent(client, keys, &asked).await?;
    Some(Reply {
        answer: Answer::Said(question.read(None, &body).ok()?),
        stop: question.ends_at.and_then(|_| wire::read_stop(&body)),
    })
}

async fn exchange_with_task(client: &HttpClient, question: &Question) -> Option<Reply> {
    let response = client.get(question.report.clone()?).await.ok()?;
    if !response.status().is_success() {
        return None;
    }
    let header = header(&response, wire::ATTEMPT_HEADER);
    let said = match within(response, question.bytes_max()).await {
        Ok(body) => question.read(header.as_deref(), &body).ok()?,
        Err(error) if error.is::<LengthLimitError>() => Err(ReportError::TooLarge),
        Err(_) => return None,
    };
    let answer = Answer::Said(said);
    Some(Reply { answer, stop: None })
}

/// A question to the agent of an attempt.
pub(crate) struct AgentQuestion<'q> {
    pub uri: Uri,
    /// Uid of the attempt's DeadlineJob.
    pub job_uid: &'q str,
    pub pod_name: &'q str,
    /// Longer answers are refused.
    pub bytes_max: usize,
}

/// The body of the agent's answer; none if another gave it, or if it answers another question.
pub(crate) async fn ask_agent(
    client: &HttpClient,
    keys: &AgentKeys,
    question: &AgentQuestion<'_>,
) -> Option<Bytes> {
    let nonce = draw_nonce().ok()?;
    let request = Request::get(question.uri.clone()).header(NONCE_HEADER, &nonce);
    let request = request.body(Full::default()).ok()?;
    let response = client.request(request).await.ok()?;
    if !response.status().is_success() {
        return None;
    }
    let code = header(&response, CODE_HEADER)?;
    let body = within(response, question.bytes_max).await.ok()?;
    let answer = AgentAnswer {
        job_uid: question.job_uid,
        pod_name: question.pod_name,
        path: question.uri.path(),
        nonce: &nonce,
        code: &code,
        body: &body,
    };
    keys.is_of_agent(&answer).then_some(body)
}

fn header(response: &Response<Incoming>, name: &str) -> Option<Vec<u8>> {
    let value = response.headers().get(name)?;
    Some(value.as_bytes().to_vec())
}

/// The body, if it has at most that many bytes.
async fn within(
    response: Response<Incoming>,
    bytes_max: usize,
) -> Result<Bytes, Box<dyn Error + Send + Sync>> {
    let body = Limited::new(response.into_body(), bytes_max);
    Ok(body.collect().await?.to_bytes())
}

/// What became of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ordered {
    Taken,
    /// The agent accepts none of the signatures.
    Refused,
    Silent,
}

/// Sends an order to an agent, signed by one key after the other until it accepts one.
pub(crate) async fn order(
    client: &HttpClient,
    uri: &Uri,
    signed: impl Iterator<Item = Vec<u8>>,
    patience: Duration,
) -> Ordered {
    for message in signed {
        let Ok(request) = Request::post(uri.clone()).body(Full::from(message)) else {
            return Ordered::Silent;
        };
        match tokio::time::timeout(patience, client.request(request)).await {
            Ok(Ok(response)) if response.status().is_success() => return Ordered::Taken,
            Ok(Ok(response)) if response.status() == StatusCode::FORBIDDEN => {}
            _ => return Ordered::Silent,
        }
    }
    Ordered::Refused
}

/// Sends the end of its segment to the attempt. True if the attempt acknowledged it.
pub(crate) async fn announce(
    client: &HttpClient,
    question: &Question,
    keys: &AgentKeys,
    stop: Option<&StopState>,
) -> bool {
    let (Some(unit), Some(stop)) = (question.ends_at, stop) else {
        return false;
    };
    if stop.unit == Some(unit) {
        return true;
    }
    let Some(uri) = &question.orders else {
        return false;
    };
    let stop_at = StopAt { unit };
    let orders = keys.signed(&question.attempt.pod, &stop.nonce, &stop_at);
    order(client, uri, orders, PATIENCE).await == Ordered::Taken
}

#[cfg(test)]
impl Question {
    /// Polls an agent at that address.
    pub fn for_tests(uid: &str, job: &str, agent: std::net::SocketAddr, ends_at: u64) -> Self {
        Self {
            attempt: Key::for_tests(job, uid),
            pod_name: String::new(),
            report: uri(agent, wire::PROGRESS_PATH),
            orders: uri(agent, STOP_PATH),
            source: ProgressSource::Agent,
            ends_at: Some(ends_at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_path_names_another_host() {
        let address = SocketAddr::from(([10, 0, 0, 7], 8080));
        let host = |path: &str| {
            let uri = uri(address, path)?;
            Some(uri.authority()?.to_string())
        };
        for path in ["/", "/progress?x=1", "/@host/", "//host/x", "/a:80@b"] {
            assert_eq!(host(path).as_deref(), Some("10.0.0.7:8080"), "{path}");
        }
        for path in [
            "",
            "@host/",
            ":80@host/",
            ".host/",
            "progress",
            "/a b",
            "/\r\nHost: x",
        ] {
            assert_eq!(host(path), None, "{path}");
        }
    }
}
