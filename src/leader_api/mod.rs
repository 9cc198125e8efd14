//! What only the leader knows, for `kubectl shed top -A` and `kubectl shed nodes` (docs/reference/leader-api.md). It has
//! data of all namespaces and no authentication, so it is off by default and listens on loopback only: the right to
//! forward ports of the leader's pod decides who may ask. Nothing here changes a job or the planner.

use std::sync::{Arc, Weak};
use std::time::Duration;

use axum::Router;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use parking_lot::Mutex;
use serde::Serialize;
use shed_agent::connection::{BoundedListener, Limits};
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::args::AskAddress;
use crate::context::Context;
use crate::lease::role::Standing;

pub mod answers;
#[cfg(test)]
mod fixtures;
mod jobs;
mod nodes;
mod shares;

/// A few people and their tools, whose connections all come from the node's kubelet or runtime.
const LIMITS: Limits = Limits {
    connections: 16,
    per_peer: 16,
    life: Duration::from_secs(600),
    bytes: 256 * 1024,
};
/// A reader waits this long for a copy of the planner's state.
const COPY_WAIT: Duration = Duration::from_secs(15);

const PATHS: &str = "no such path: the paths are /v1/jobs and /v1/nodes";

/// The state of the present term of leadership, while there is one.
#[derive(Default)]
pub struct CurrentTerm(Mutex<Weak<Context>>);

impl CurrentTerm {
    /// A term has begun. Its end needs no notice, because its state is dropped then.
    pub fn begin(&self, context: &Arc<Context>) {
        *self.0.lock() = Arc::downgrade(context);
    }

    fn context(&self) -> Option<Arc<Context>> {
        let term = self.0.lock();
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
    let router = Router::new()
        .route("/v1/jobs", get(list_jobs))
        .route("/v1/nodes", get(list_nodes))
        .fallback(async || Refusal::new(StatusCode::NOT_FOUND, PATHS))
        .layer(middleware::from_fn(guard))
        .with_state(api);
    axum::serve(BoundedListener::new(listener, LIMITS), router).await
}

/// Refuses what a browser sends for a web page whose name leads to this machine, and lets no cache keep an answer.
async fn guard(request: Request, next: Next) -> Response {
    let host = request.headers().get(header::HOST);
    let is_own = host.is_none_or(|host| host.to_str().is_ok_and(is_local));
    let mut response = match is_own {
        true => next.run(request).await,
        false => Refusal::bad(
            "the header Host names another machine: use localhost or 127.0.0.1".to_owned(),
        )
        .into_response(),
    };
    let headers = response.headers_mut();
    let (no_store, nosniff) = ("no-store", "nosniff");
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(no_store));
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static(nosniff),
    );
    response
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

/// What answers need: the state of the term, and turns for the work.
struct LeaderApi {
    standing: Arc<Standing>,
    term: Arc<CurrentTerm>,
    lists: Arc<Semaphore>,
    /// Copies of the planner's state may be large.
    copies: Arc<Semaphore>,
}

impl LeaderApi {
    fn new(standing: Arc<Standing>, term: Arc<CurrentTerm>) -> Arc<Self> {
        Arc::new(Self {
            standing,
            term,
            lists: Arc::new(Semaphore::new(1)),
            copies: Arc::new(Semaphore::new(1)),
        })
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
}

async fn list_jobs(
    State(api): State<Arc<LeaderApi>>,
    page: Result<Query<jobs::Page>, QueryRejection>,
) -> Result<Response, Refusal> {
    let context = api.leading()?;
    let Query(page) = page.map_err(|error| Refusal::bad(error.body_text()))?;
    let permit = Arc::clone(&api.lists).acquire_owned().await;
    let permit = permit.map_err(|_| Refusal::internal())?;
    apart(permit, move || jobs::list(&context, &page)).await
}

async fn list_nodes(State(api): State<Arc<LeaderApi>>) -> Result<Response, Refusal> {
    let context = api.leading()?;
    let permit = Arc::clone(&api.copies).try_acquire_owned();
    let permit = permit.map_err(|_| {
        Refusal::busy("another such question is being answered: ask again in a second")
    })?;
    let copy = tokio::time::timeout(COPY_WAIT, context.copies.copy()).await;
    let copy = copy.ok().flatten().ok_or_else(|| {
        Refusal::busy("the planner is busy, or its term has ended: ask again in a few seconds")
    })?;
    apart(permit, move || nodes::list(&context, &copy)).await
}

/// Runs the answer apart from the async threads. It keeps the permit to its end, also if the client goes away.
async fn apart<T: Serialize>(
    permit: OwnedSemaphorePermit,
    answer: impl FnOnce() -> T + Send + 'static,
) -> Result<Response, Refusal> {
    let work = tokio::task::spawn_blocking(move || {
        let body = serde_json::to_vec(&answer());
        drop(permit);
        body
    });
    let body = work.await.map_err(|_| Refusal::internal())?;
    let body = body.map_err(|_| Refusal::internal())?;
    Ok(json(body).into_response())
}

fn json(body: Vec<u8>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], body)
}

/// An answer that is an error.
#[derive(Debug, Serialize)]
struct Refusal {
    #[serde(skip)]
    status: StatusCode,
    /// What is wrong, and the fix.
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

    /// The question is wrong.
    fn bad(error: String) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error)
    }

    /// The same question may be answered later.
    fn busy(error: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, error)
    }

    /// A fault of the operator.
    fn internal() -> Self {
        let status = StatusCode::INTERNAL_SERVER_ERROR;
        Self::new(status, "the answer failed: see the operator's log")
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let body = serde_json::to_vec(&self).unwrap_or_default();
        let mut response = (self.status, json(body)).into_response();
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            let soon = HeaderValue::from_static("1");
            response.headers_mut().insert(header::RETRY_AFTER, soon);
        }
        response
    }
}

#[cfg(test)]
mod tests;
