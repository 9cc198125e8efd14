//! The leader's answers to people and tools: jobs by risk, explanations, slow nodes, what-if questions
//! (docs/reference/leader-api.md). It has data of all namespaces and no authentication, so it listens on loopback
//! only: the right to forward ports of the leader's pod decides who may ask. Nothing here changes a job or the
//! planner.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use shed_agent::connection::{BoundedListener, Limits};
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::args::AskAddress;
use crate::context::Context;
use crate::lease::role::Standing;
use crate::planner_copies::PlannerCopy;

mod explanation;
mod history;
mod jobs;
mod nodes;
mod query;
mod record;
mod what_if;

use query::Query;

/// A few people and their tools, whose connections all come from the node's kubelet or runtime.
const LIMITS: Limits = Limits {
    connections: 16,
    per_peer: 16,
    life: Duration::from_secs(600),
    bytes: 256 * 1024,
};
/// Longest path with its query, in bytes.
const PATH_MAX: usize = 2048;
/// Answers that list jobs, at a time. Others wait.
const LISTS_AT_ONCE: usize = 2;
/// A reader waits this long for a copy of the planner's state.
const COPY_WAIT: Duration = Duration::from_secs(15);

const PATHS: &str = "/v1/jobs, /v1/jobs/<NAMESPACE>/<NAME>, /v1/explain/<NAMESPACE>/<NAME>, \
                     /v1/whatif/<NAMESPACE>/<NAME>, /v1/nodes, /v1/history/<NAMESPACE>";

/// The state of the present term of leadership, while there is one.
#[derive(Default)]
pub struct CurrentTerm(Mutex<Weak<Context>>);

impl CurrentTerm {
    /// A term has begun. Its end needs no notice, because its state is dropped then.
    pub fn begin(&self, context: &Arc<Context>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(context);
    }

    fn context(&self) -> Option<Arc<Context>> {
        let term = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        term.upgrade()
    }
}

/// Answers until the process ends. A port that is in use costs the answers and nothing else: the operator runs jobs
/// without them.
pub async fn run(address: AskAddress, standing: Arc<Standing>, term: Arc<CurrentTerm>) {
    let AskAddress::At(address) = address else {
        return;
    };
    let ended = match TcpListener::bind(address).await {
        Ok(listener) => serve(listener, LeaderApi::new(standing, term)).await,
        Err(error) => Err(error),
    };
    if let Err(error) = ended {
        tracing::warn!(%error, %address, "--ask-address: cannot listen on this address, so kubectl shed cannot ask this replica");
    }
}

async fn serve(listener: TcpListener, api: Arc<LeaderApi>) -> std::io::Result<()> {
    let router = Router::new().fallback(answer).with_state(api);
    axum::serve(BoundedListener::new(listener, LIMITS), router).await
}

struct LeaderApi {
    standing: Arc<Standing>,
    term: Arc<CurrentTerm>,
    lists: Arc<Semaphore>,
    /// Answers that need a copy of the planner's state, and may decide on it.
    copies: Arc<Semaphore>,
}

/// An answer that is an error.
#[derive(Debug, Serialize)]
struct Refusal {
    #[serde(skip)]
    status: StatusCode,
    error: String,
    /// The identity of the replica that leads, if this one does not. It begins with the name of its pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    leader: Option<String>,
}

impl Refusal {
    fn new(status: StatusCode, error: impl Into<String>) -> Self {
        Self {
            status,
            error: error.into(),
            leader: None,
        }
    }

    fn bad(error: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error)
    }

    fn not_found(error: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, error)
    }

    fn busy(error: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, error)
    }

    fn internal() -> Self {
        let status = StatusCode::INTERNAL_SERVER_ERROR;
        Self::new(status, "the answer failed: see the operator's log")
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let body = serde_json::to_vec(&self).unwrap_or_default();
        let mut response = json(self.status, body);
        let headers = response.headers_mut();
        match self.status {
            StatusCode::SERVICE_UNAVAILABLE => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
            }
            StatusCode::METHOD_NOT_ALLOWED => {
                headers.insert(header::ALLOW, HeaderValue::from_static("GET"));
            }
            _ => {}
        }
        response
    }
}

fn json(status: StatusCode, body: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_TYPE, "application/json"),
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

async fn answer(State(api): State<Arc<LeaderApi>>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let answered = match check(&parts.method, &parts.headers) {
        Ok(()) => api.route(parts.uri.path(), parts.uri.query()).await,
        Err(refusal) => Err(refusal),
    };
    match answered {
        Ok(body) => json(StatusCode::OK, body),
        Err(refusal) => refusal.into_response(),
    }
}

/// Only reads, and only for a client that means this machine: a web page could otherwise give its own name this address
/// (DNS rebinding) and read the answers in a browser that runs next to a port-forward.
fn check(method: &Method, headers: &HeaderMap) -> Result<(), Refusal> {
    if method != Method::GET {
        let error = format!("{method} is not supported: every path is read with GET");
        return Err(Refusal::new(StatusCode::METHOD_NOT_ALLOWED, error));
    }
    let host = headers.get(header::HOST).map(HeaderValue::to_str);
    match host {
        None => Ok(()),
        Some(Ok(host)) if is_local(host) => Ok(()),
        Some(_) => Err(Refusal::bad(
            "the header Host names another machine: use localhost or 127.0.0.1",
        )),
    }
}

/// Whether a browser can't have got the name from the public DNS.
fn is_local(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    match name.parse::<std::net::IpAddr>() {
        Ok(address) => address.is_loopback(),
        Err(_) => !name.contains('.'),
    }
}

impl LeaderApi {
    fn new(standing: Arc<Standing>, term: Arc<CurrentTerm>) -> Arc<Self> {
        Arc::new(Self {
            standing,
            term,
            lists: Arc::new(Semaphore::new(LISTS_AT_ONCE)),
            copies: Arc::new(Semaphore::new(1)),
        })
    }

    async fn route(&self, path: &str, query: Option<&str>) -> Result<Vec<u8>, Refusal> {
        if path.len() + query.map_or(0, str::len) > PATH_MAX {
            let error = format!("the path and its query are longer than {PATH_MAX} bytes");
            return Err(Refusal::new(StatusCode::URI_TOO_LONG, error));
        }
        let context = self.leading()?;
        let query = Query::parse(query)?;
        let parts: Vec<&str> = path.split('/').skip(1).collect();
        match *parts.as_slice() {
            ["v1", "jobs"] => {
                let page = jobs::Page::of(query)?;
                self.list(move || jobs::list(&context, &page)).await
            }
            ["v1", "jobs", namespace, name] => {
                let wanted = jobs::Wanted::of(namespace, name, query)?;
                self.list(move || jobs::one(&context, &wanted)).await
            }
            ["v1", "explain", namespace, name] => {
                let wanted = jobs::Wanted::of(namespace, name, query)?;
                self.list(move || explanation::of(&context, &wanted)).await
            }
            ["v1", "history", namespace] => {
                let (namespace, class) = history::wanted(namespace, query)?;
                let list = move || Ok(history::list(&context, &namespace, class.as_deref()));
                self.list(list).await
            }
            ["v1", "nodes"] => {
                query.none_left(&[])?;
                let (permit, copy) = self.copy(&context).await?;
                apart(permit, move || nodes::list(&context, &copy)).await
            }
            ["v1", "whatif", namespace, name] => {
                let question = what_if::Question::of(&context, namespace, name, query)?;
                let (permit, copy) = self.copy(&context).await?;
                apart(permit, move || question.answer(copy)).await
            }
            _ => Err(Refusal::not_found(format!(
                "no such path: the paths are {PATHS}"
            ))),
        }
    }

    /// The state of the term, if this replica leads and has seen everything.
    fn leading(&self) -> Result<Arc<Context>, Refusal> {
        if let Some(leader) = self.standing.leader_elsewhere() {
            return Err(Refusal {
                error: format!("this replica does not lead: ask the pod of {leader}"),
                leader: Some(leader),
                ..Refusal::busy("")
            });
        }
        let context = self.term.context().filter(|_| self.standing.leads());
        let context = context.ok_or_else(|| {
            Refusal::busy("no replica is known to lead: ask again in a few seconds")
        })?;
        match context.stores.awaited() {
            missing if missing.is_empty() => Ok(context),
            missing => Err(Refusal::busy(format!(
                "the leader waits for the first lists of {}: ask again in a few seconds",
                missing.join(", ")
            ))),
        }
    }

    /// Answers apart from the async threads, a few at a time.
    async fn list<T: Serialize>(
        &self,
        answer: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
    ) -> Result<Vec<u8>, Refusal> {
        let permit = Arc::clone(&self.lists).acquire_owned().await;
        apart(permit.map_err(|_| Refusal::internal())?, answer).await
    }

    /// A copy of the planner's state; one at a time, because it may be large and what follows is long work.
    async fn copy(
        &self,
        context: &Context,
    ) -> Result<(OwnedSemaphorePermit, PlannerCopy), Refusal> {
        let permit = Arc::clone(&self.copies).try_acquire_owned();
        let permit = permit.map_err(|_| {
            Refusal::busy("another such question is being answered: ask again in a second")
        })?;
        let copy = tokio::time::timeout(COPY_WAIT, context.copies.copy()).await;
        let copy = copy.ok().flatten().ok_or_else(|| {
            Refusal::busy("the planner is busy, or its term has ended: ask again in a few seconds")
        })?;
        Ok((permit, copy))
    }
}

/// Runs the answer apart from the async threads. It keeps the permit to its end, also if the client goes away.
async fn apart<T: Serialize>(
    permit: OwnedSemaphorePermit,
    answer: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
) -> Result<Vec<u8>, Refusal> {
    let work = tokio::task::spawn_blocking(move || {
        let body = answer().map(|answer| serde_json::to_vec(&answer));
        drop(permit);
        body
    });
    let body = work.await.map_err(|_| Refusal::internal())??;
    body.map_err(|_| Refusal::internal())
}

#[cfg(test)]
mod tests;
