//! The operator's connection to the apiserver. Its watches can be held, and its clocks can disagree, as those of two
//! apiservers behind one address.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use anyhow::Result;
use futures::StreamExt;
use http::{HeaderValue, Request, header};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use tokio::sync::watch;

use crate::proxy::{self, Answer, Broken, Server};

/// How far the second clock is ahead.
const AHEAD: SignedDuration = SignedDuration::from_secs(20);

/// A proxy in front of the apiserver; it ends with this value.
pub struct ApiserverLine {
    shared: Arc<Shared>,
    server: Server,
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
        let shared = Arc::new(Shared {
            client,
            watches: watch::Sender::new(true),
            clocks_disagree: AtomicBool::new(false),
            answers: AtomicU64::new(0),
        });
        let passing = Arc::clone(&shared);
        let pass = move |request| pass(Arc::clone(&passing), request);
        Ok(Self {
            server: proxy::serve(watch::Sender::new(true), pass).await?,
            shared,
        })
    }

    /// Where the operator finds it.
    pub fn address(&self) -> SocketAddr {
        self.server.address
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

async fn pass(shared: Arc<Shared>, request: Request<Incoming>) -> Result<Answer, Broken> {
    let is_watch = is_watch(&request);
    let mut watches = shared.watches.subscribe();
    if is_watch {
        watches.wait_for(|open| *open).await.map_err(|_| Broken)?;
    }
    let (head, body) = request.into_parts();
    let raw = body.collect().await.map_err(|_| Broken)?.to_bytes();
    let target = head.uri.path_and_query();
    let target = target.map_or("/", |target| target.as_str());
    let call = proxy::call(head.method, target, &head.headers, raw)?;
    let answer = shared.client.send(call).await.map_err(|_| Broken)?;
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
    let mut answer = proxy::answer(head.status, &head.headers, body);
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
