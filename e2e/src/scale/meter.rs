//! Between an operator and the apiserver: counts the operator's calls and the bytes that it writes,
//! gives fake pods what they report, and makes one namespace's creates slow or one percent of all
//! answers an error. Answers pass through as they come, so that large lists cost nothing here.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::{Bytes, Incoming};
use kube::Client;
use parking_lot::Mutex;
use serde_json::{Value, json};
use shed::api;
use tokio::sync::watch;

use crate::campaign::draw;
use crate::campaign::kubelet::{POD_IP, RUN_MS};
use crate::campaign::tasks::Tasks;
use crate::proxy::{self, Answer, Broken, Server, refusal, whole};

/// One of this many answers is an error while the apiserver is overloaded.
const ONE_OF: u64 = 100;

/// How long a task takes its attempts, by index and number of the attempt; nothing where the pod's
/// template says it and no progress is reported.
pub type Fares = fn(task: u32, attempt: u32) -> Option<Duration>;

/// The counts so far.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Calls by verb.
    pub calls: BTreeMap<&'static str, u64>,
    /// Bytes of the bodies of writes.
    pub bytes: u64,
    /// The largest DeadlineJob that was written, in bytes without managedFields.
    pub largest: usize,
    /// Writes that the apiserver refused for their size.
    pub too_large: u64,
    /// Answers that were made errors.
    pub overloaded: u64,
}

impl Counts {
    /// Writes of all kinds, without Leases and events.
    pub fn writes(&self) -> u64 {
        let verbs = ["create", "update", "patch", "delete"];
        verbs.iter().filter_map(|verb| self.calls.get(verb)).sum()
    }

    /// The difference from `earlier`.
    pub fn since(&self, earlier: &Self) -> Self {
        let calls = self.calls.iter().map(|(&verb, &count)| {
            let before = earlier.calls.get(verb).copied().unwrap_or(0);
            (verb, count - before)
        });
        Self {
            calls: calls.filter(|(_, count)| *count > 0).collect(),
            bytes: self.bytes - earlier.bytes,
            largest: self.largest,
            too_large: self.too_large - earlier.too_large,
            overloaded: self.overloaded - earlier.overloaded,
        }
    }
}

/// A call about a pod: when it came, and when it was answered.
#[derive(Clone, Debug)]
pub struct PodCall {
    /// Its method.
    pub method: Method,
    /// Its path, with the name of a pod that it creates.
    pub path: String,
    /// When it came.
    pub came: Instant,
    /// When it was answered; not yet if absent.
    pub answered: Option<Instant>,
}

/// Creates of pods in one namespace that take long.
#[derive(Clone, Debug)]
pub struct Slow {
    /// The namespace.
    pub namespace: String,
    /// How long.
    pub takes: Duration,
}

/// Counts the calls of one operator after another.
pub struct Meter {
    /// Where an operator finds the apiserver.
    pub address: SocketAddr,
    shared: Arc<Shared>,
    _server: Server,
}

struct Shared {
    client: Client,
    tasks: Arc<Tasks>,
    fares: Fares,
    counts: Mutex<Counts>,
    pod_calls: Mutex<Vec<PodCall>>,
    slow: Mutex<Option<Slow>>,
    is_overloaded: AtomicBool,
    number: AtomicU64,
}

impl Meter {
    /// Begins to serve.
    pub async fn serve(client: Client, tasks: Arc<Tasks>, fares: Fares) -> Result<Self> {
        let shared = Arc::new(Shared {
            client,
            tasks,
            fares,
            counts: Mutex::default(),
            pod_calls: Mutex::default(),
            slow: Mutex::default(),
            is_overloaded: AtomicBool::new(false),
            number: AtomicU64::new(0),
        });
        let serving = Arc::clone(&shared);
        let answer = move |request| Arc::clone(&serving).answer(request);
        let server = proxy::serve(watch::Sender::new(true), answer).await?;
        Ok(Self {
            address: server.address,
            _server: server,
            shared,
        })
    }

    /// The counts so far.
    pub fn counts(&self) -> Counts {
        self.shared.counts.lock().clone()
    }

    /// Calls about pods so far, but for reads.
    pub fn pod_calls(&self) -> Vec<PodCall> {
        self.shared.pod_calls.lock().clone()
    }

    /// Makes creates of pods slow from now on, or none.
    pub fn slow_down(&self, slow: Option<Slow>) {
        *self.shared.slow.lock() = slow;
    }

    /// From now on one percent of all answers is an error, or none.
    pub fn overload(&self, is_so: bool) {
        self.shared.is_overloaded.store(is_so, Ordering::Relaxed);
    }
}

impl Shared {
    async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Result<Answer, Broken> {
        let (head, body) = request.into_parts();
        let mut raw = body.collect().await.map_err(|_| Broken)?.to_bytes();
        let path = head.uri.path().to_owned();
        let verb = verb(&head.method, head.uri.query());
        self.count(verb, &path, &raw);
        if let Some(error) = self.overloaded() {
            return Ok(error);
        }
        let mut body = Value::Null;
        if verb == "create" && path.ends_with("/pods") {
            body = serde_json::from_slice(&raw).unwrap_or_default();
            raw = self.let_fare(&mut body).unwrap_or(raw);
        }
        let call = self.begin(&head.method, &path, &body);
        let slow = self.slow.lock().clone();
        if let Some(slow) =
            slow.filter(|slow| path == format!("/api/v1/namespaces/{}/pods", slow.namespace))
            && verb == "create"
        {
            tokio::time::sleep(slow.takes).await;
        }
        let outgoing = proxy::call(head.method, &head.uri.to_string(), &head.headers, raw)?;
        let answer = self.client.send(outgoing).await;
        if let Some(index) = call {
            self.pod_calls.lock()[index].answered = Some(Instant::now());
        }
        self.forward(answer.map_err(|_| Broken)?).await
    }

    async fn forward(&self, answer: Response<kube::client::Body>) -> Result<Answer, Broken> {
        let (head, body) = answer.into_parts();
        let is_refusal = head.status == StatusCode::PAYLOAD_TOO_LARGE
            || head.status == StatusCode::INTERNAL_SERVER_ERROR;
        let body = if is_refusal {
            let raw = body.collect().await.map_err(|_| Broken)?.to_bytes();
            if String::from_utf8_lossy(&raw).contains("too large") {
                self.counts.lock().too_large += 1;
            }
            whole(raw)
        } else {
            body.map_err(|_| Broken).boxed_unsync()
        };
        Ok(proxy::answer(head.status, &head.headers, body))
    }

    fn count(&self, verb: &'static str, path: &str, raw: &Bytes) {
        if path.contains("/leases") {
            return;
        }
        let is_write = !matches!(verb, "get" | "list" | "watch");
        let is_event = path.ends_with("/events");
        let is_status = path.contains("/deadlinejobs/") && path.ends_with("/status");
        let size = (is_write && is_status).then(|| object_bytes(raw));
        let mut counts = self.counts.lock();
        *counts
            .calls
            .entry(if is_event { "event" } else { verb })
            .or_default() += 1;
        if is_write {
            counts.bytes += raw.len() as u64;
            counts.largest = counts.largest.max(size.unwrap_or(0));
        }
    }

    fn overloaded(&self) -> Option<Answer> {
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        let is_hit = draw(8, number).is_multiple_of(ONE_OF);
        if !is_hit || !self.is_overloaded.load(Ordering::Relaxed) {
            return None;
        }
        self.counts.lock().overloaded += 1;
        Some(match draw(2, number) % 2 {
            0 => refusal(429, "TooManyRequests", "too many requests", Some("1")),
            _ => refusal(500, "InternalError", "etcdserver: request timed out", None),
        })
    }

    fn begin(&self, method: &Method, path: &str, body: &Value) -> Option<usize> {
        let is_about_pods = path.contains("/pods") && method != Method::GET;
        if !is_about_pods {
            return None;
        }
        let name = body["metadata"]["name"].as_str();
        let path = name.map_or_else(|| path.to_owned(), |name| format!("{path}/{name}"));
        let mut calls = self.pod_calls.lock();
        calls.push(PodCall {
            method: method.clone(),
            path,
            came: Instant::now(),
            answered: None,
        });
        Some(calls.len() - 1)
    }

    /// Says how long an attempt takes, and where it tells its progress.
    fn let_fare(&self, body: &mut Value) -> Option<Bytes> {
        let label = |name: &str| body["metadata"]["labels"][name].as_str();
        let job = label(api::LABEL_JOB_UID)?.to_owned();
        let task = label(api::LABEL_INDEX)?.parse().ok()?;
        let attempt = label(api::LABEL_ATTEMPT)?.parse().ok()?;
        let whole = (self.fares)(task, attempt)?;
        let address = self.tasks.begin((job, task), 0.0, whole);
        let annotations = &mut body["metadata"]["annotations"];
        annotations[RUN_MS] = json!(whole.as_millis().to_string());
        annotations[POD_IP] = json!(address.to_string());
        Some(Bytes::from(body.to_string()))
    }
}

fn verb(method: &Method, query: Option<&str>) -> &'static str {
    let is_watch =
        query.is_some_and(|query| query.split('&').any(|part| part.starts_with("watch=")));
    match *method {
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        _ if is_watch => "watch",
        _ if query.is_some_and(|query| query.contains("limit=")) => "list",
        _ => "get",
    }
}

/// Bytes of an object without what only the apiserver knows of it.
fn object_bytes(raw: &[u8]) -> usize {
    let mut object: Value = serde_json::from_slice(raw).unwrap_or_default();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
    shed::size::bytes(&object)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_by_verb_and_writes_apart_from_reads() {
        assert_eq!(verb(&Method::GET, Some("limit=50&watch=true")), "watch");
        assert_eq!(verb(&Method::GET, Some("limit=50")), "list");
        assert_eq!(verb(&Method::GET, None), "get");
        let early = Counts {
            calls: BTreeMap::from([("create", 2), ("watch", 3)]),
            ..Counts::default()
        };
        let late = Counts {
            calls: BTreeMap::from([("create", 5), ("event", 7), ("watch", 3)]),
            bytes: 10,
            ..Counts::default()
        };
        let since = late.since(&early);
        assert_eq!((since.writes(), since.bytes), (3, 10));
        assert_eq!(since.calls, BTreeMap::from([("create", 3), ("event", 7)]));
    }

    #[test]
    fn managed_fields_do_not_count() {
        let plain = br#"{"metadata":{"name":"j"},"spec":{}}"#;
        let managed = br#"{"metadata":{"managedFields":[1,2],"name":"j"},"spec":{}}"#;
        assert_eq!(object_bytes(managed), plain.len());
    }
}
