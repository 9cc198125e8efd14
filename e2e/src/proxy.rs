//! A proxy between an operator and the apiserver: the parts that are the same whatever it does to the calls.

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::Result;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Headers of a call and of a response that are passed on.
const ASKED: [HeaderName; 3] = [header::CONTENT_TYPE, header::ACCEPT, header::USER_AGENT];
const ANSWERED: [HeaderName; 3] = [header::CONTENT_TYPE, header::RETRY_AFTER, header::DATE];

/// The body of a response.
pub type Body = UnsyncBoxBody<Bytes, Broken>;
/// A response to the operator.
pub type Answer = Response<Body>;

/// The connection breaks here.
#[derive(Debug, thiserror::Error)]
#[error("the connection breaks here")]
pub struct Broken;

/// A server on a free port of this machine; it ends with this value.
pub struct Server {
    /// Where an operator finds it.
    pub address: SocketAddr,
    _accepting: JoinSet<()>,
}

/// Begins to answer calls. While `up` is false, connections break and new ones are refused.
pub async fn serve<F, R>(up: watch::Sender<bool>, answer: F) -> Result<Server>
where
    F: Fn(Request<Incoming>) -> R + Clone + Send + 'static,
    R: Future<Output = Result<Answer, Broken>> + Send + 'static,
{
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    Ok(Server {
        address: listener.local_addr()?,
        _accepting: JoinSet::from_iter([accept(listener, up, answer)]),
    })
}

async fn accept<F, R>(listener: TcpListener, up: watch::Sender<bool>, answer: F)
where
    F: Fn(Request<Incoming>) -> R + Clone + Send + 'static,
    R: Future<Output = Result<Answer, Broken>> + Send + 'static,
{
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            continue;
        };
        if *up.borrow() {
            tokio::spawn(connection(stream, up.subscribe(), answer.clone()));
        }
    }
}

async fn connection<F, R>(stream: TcpStream, mut up: watch::Receiver<bool>, answer: F)
where
    F: Fn(Request<Incoming>) -> R,
    R: Future<Output = Result<Answer, Broken>>,
{
    let connection =
        http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(answer));
    tokio::select! {
        // How it ends is the operator's business.
        _ = connection => {}
        _ = up.wait_for(|up| !up) => {}
    }
}

/// A call to the apiserver, with the headers of the operator's that matter.
pub fn call(
    method: Method,
    target: &str,
    headers: &HeaderMap,
    body: Bytes,
) -> Result<Request<kube::client::Body>, Broken> {
    let mut call = Request::builder().method(method).uri(target);
    for (name, value) in passed(headers, &ASKED) {
        call = call.header(name, value);
    }
    let body = kube::client::Body::from(body);
    call.body(body).map_err(|_| Broken)
}

/// A response to the operator, with the headers of the apiserver's that matter.
pub fn answer(status: StatusCode, headers: &HeaderMap, body: Body) -> Answer {
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    for (name, value) in passed(headers, &ANSWERED) {
        answer.headers_mut().insert(name, value.clone());
    }
    answer
}

fn passed<'h>(
    headers: &'h HeaderMap,
    names: &'h [HeaderName],
) -> impl Iterator<Item = (&'h HeaderName, &'h HeaderValue)> {
    let value = |name| Some((name, headers.get(name)?));
    names.iter().filter_map(value)
}

/// A body that is known whole.
pub fn whole(bytes: Bytes) -> Body {
    let body = Full::new(bytes).map_err(|never| match never {});
    body.boxed_unsync()
}

/// The apiserver's way to say no.
pub fn status(code: u16, reason: &str, message: &str) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code})
}

/// A response that says no; `retry_after` is a number of seconds.
pub fn refusal(
    code: u16,
    reason: &str,
    message: &str,
    retry_after: Option<&'static str>,
) -> Answer {
    let mut headers = HeaderMap::new();
    let json = HeaderValue::from_static("application/json");
    headers.insert(header::CONTENT_TYPE, json);
    if let Some(seconds) = retry_after {
        headers.insert(header::RETRY_AFTER, HeaderValue::from_static(seconds));
    }
    let code_of = StatusCode::from_u16(code).unwrap_or(StatusCode::BAD_GATEWAY);
    let text = status(code, reason, message).to_string();
    answer(code_of, &headers, whole(Bytes::from(text)))
}
