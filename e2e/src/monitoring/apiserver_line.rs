//! The operator's connection to the apiserver. Its watches can be held, and its clocks can disagree, as those of two
//! apiservers behind one address.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use anyhow::Result;
use futures::StreamExt;
use http::{HeaderValue, Request, Response, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use kube::client::Body;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// How far the second clock is ahead.
const AHEAD: SignedDuration = SignedDuration::from_secs(20);
/// Headers of a request and of an answer that are passed on.
const ASKED: [header::HeaderName; 3] = [header::CONTENT_TYPE, header::ACCEPT, header::USER_AGENT];
const ANSWERED: [header::HeaderName; 3] = [header::CONTENT_TYPE, header::RETRY_AFTER, header::DATE];

type Answer = Response<UnsyncBoxBody<Bytes, Broken>>;

/// The connection breaks here.
#[derive(Debug, thiserror::Error)]
#[error("the connection breaks here")]
struct Broken;

/// A proxy in front of the apiserver; it ends with this value.
pub struct ApiserverLine {
    /// Where the operator finds it.
    pub address: SocketAddr,
    shared: Arc<Shared>,
    server: JoinHandle<()>,
}

struct Shared {
    client: Client,
    /// Whether watches are answered.
    watches: watch::Sender<bool>,
    clocks_disagree: AtomicBool,
    answers: AtomicU64,
}

impl ApiserverLine {
    /// Begins to serve.
    pub async fn serve(client: Client) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let shared = Arc::new(Shared {
            client,
            watches: watch::Sender::new(true),
            clocks_disagree: AtomicBool::new(false),
            answers: AtomicU64::new(0),
        });
        Ok(Self {
            address: listener.local_addr()?,
            server: tokio::spawn(accept(listener, Arc::clone(&shared))),
            shared,
        })
    }

    /// Breaks off all watches and answers no new one, or answers them again.
    pub fn hold_watches(&self, held: bool) {
        self.shared.watches.send_replace(!held);
    }

    /// Dates every second answer by another clock, or by the apiserver's again.
    pub fn let_clocks_disagree(&self, disagree: bool) {
        self.shared
            .clocks_disagree
            .store(disagree, Ordering::Relaxed);
    }
}

impl Drop for ApiserverLine {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        if let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(connection(stream, Arc::clone(&shared)));
        }
    }
}

async fn connection(stream: TcpStream, shared: Arc<Shared>) {
    let service = service_fn(|request| pass(Arc::clone(&shared), request));
    let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    // How it ends is the operator's business.
    let _ = connection.await;
}

async fn pass(shared: Arc<Shared>, request: Request<Incoming>) -> Result<Answer, Broken> {
    let is_watch = is_watch(&request);
    let mut watches = shared.watches.subscribe();
    if is_watch {
        watches.wait_for(|open| *open).await.map_err(|_| Broken)?;
    }
    let request = asked(request).await?;
    let answer = shared.client.send(request).await.map_err(|_| Broken)?;
    let (head, body) = answer.into_parts();
    let data = body.into_data_stream();
    let frames = data.map(|data| data.map(Frame::data).map_err(|_| Broken));
    let body = if is_watch {
        let held = async move {
            let _ = watches.wait_for(|open| !open).await;
        };
        let until_held = frames.take_until(Box::pin(held));
        StreamBody::new(until_held).boxed_unsync()
    } else {
        StreamBody::new(frames).boxed_unsync()
    };
    let mut answer = Response::new(body);
    *answer.status_mut() = head.status;
    for name in ANSWERED {
        if let Some(value) = head.headers.get(&name) {
            answer.headers_mut().insert(name, value.clone());
        }
    }
    if let Some(date) = shared.other_date() {
        answer.headers_mut().insert(header::DATE, date);
    }
    Ok(answer)
}

fn is_watch(request: &Request<Incoming>) -> bool {
    let query = request.uri().query().unwrap_or_default();
    let mut parts = query.split('&');
    parts.any(|part| matches!(part, "watch=true" | "watch=1"))
}

async fn asked(request: Request<Incoming>) -> Result<Request<Body>, Broken> {
    let (head, body) = request.into_parts();
    let raw = body.collect().await.map_err(|_| Broken)?.to_bytes();
    let target = head
        .uri
        .path_and_query()
        .map_or("/", |target| target.as_str());
    let mut passed = Request::builder().method(head.method).uri(target);
    for name in ASKED {
        if let Some(value) = head.headers.get(&name) {
            passed = passed.header(name, value);
        }
    }
    passed.body(Body::from(raw)).map_err(|_| Broken)
}

impl Shared {
    /// The date of the other clock, if this answer is dated by it.
    fn other_date(&self) -> Option<HeaderValue> {
        let number = self.answers.fetch_add(1, Ordering::Relaxed);
        let is_other = self.clocks_disagree.load(Ordering::Relaxed) && number.is_multiple_of(2);
        let date = Timestamp::now().saturating_add(AHEAD).ok()?;
        let text = date.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
        HeaderValue::from_str(&text).ok().filter(|_| is_other)
    }
}
