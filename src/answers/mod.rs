//! Answers to people about jobs and nodes, from the leader's memory. The loopback API (`leader_api`) and the live page
//! (`page`) give them. Nothing here changes a job or the planner.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use parking_lot::Mutex;
use serde::Serialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::context::Context;
use crate::lease::role::Standing;

#[cfg(test)]
pub mod fixtures;
pub mod jobs;
pub mod nodes;
pub mod query;
mod record;

/// Answers that list jobs, at a time. Others wait.
const LISTS_AT_ONCE: usize = 2;

/// The state of the present term of leadership, while there is one.
#[derive(Default)]
pub struct CurrentTerm(Mutex<Weak<Context>>);

impl CurrentTerm {
    /// A term has begun. Its end needs no notice, because its state is dropped then.
    pub fn begin(&self, context: &Arc<Context>) {
        *self.0.lock() = Arc::downgrade(context);
    }

    /// The state, while there is a term.
    pub fn context(&self) -> Option<Arc<Context>> {
        let term = self.0.lock();
        term.upgrade()
    }
}

/// The namespaces whose jobs an answer may be about.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Scope {
    /// All of them.
    All,
    /// These alone.
    Namespaces(BTreeSet<Arc<str>>),
}

impl Scope {
    /// Whether the answer may be about jobs of this namespace.
    pub fn has(&self, namespace: &str) -> bool {
        match self {
            Self::All => true,
            Self::Namespaces(names) => names.contains(namespace),
        }
    }
}

/// What answers need: the state of the term, and turns for the work.
pub struct Answers {
    standing: Arc<Standing>,
    term: Arc<CurrentTerm>,
    lists: Arc<Semaphore>,
}

impl Answers {
    /// Answers of this replica while it leads.
    pub fn new(standing: Arc<Standing>, term: Arc<CurrentTerm>) -> Self {
        Self {
            standing,
            term,
            lists: Arc::new(Semaphore::new(LISTS_AT_ONCE)),
        }
    }

    /// The state of the term, if this replica leads and has seen everything.
    pub fn leading(&self) -> Result<Arc<Context>, Refusal> {
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
    pub async fn list<T: Serialize>(
        &self,
        answer: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
    ) -> Result<Vec<u8>, Refusal> {
        let permit = Arc::clone(&self.lists).acquire_owned().await;
        apart(permit.map_err(|_| Refusal::internal())?, answer).await
    }
}

/// An answer that is an error.
#[derive(Debug, Serialize)]
pub struct Refusal {
    /// The status of the response.
    #[serde(skip)]
    pub status: StatusCode,
    /// What is wrong, and the fix.
    pub error: String,
    /// The identity of the replica that leads, if this one does not. It begins with the name of its pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leader: Option<String>,
}

impl Refusal {
    /// A refusal with this status.
    pub fn new(status: StatusCode, error: impl Into<String>) -> Self {
        Self {
            status,
            error: error.into(),
            leader: None,
        }
    }

    /// The question is wrong.
    pub fn bad(error: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error)
    }

    /// There is no such thing.
    pub fn not_found(error: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, error)
    }

    /// The same question may be answered later.
    pub fn busy(error: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, error)
    }

    /// A fault of the operator.
    pub fn internal() -> Self {
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

/// A response in JSON, which no cache keeps.
pub fn json(status: StatusCode, body: Vec<u8>) -> Response {
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

/// Runs the answer apart from the async threads. It keeps the permit to its end, also if the client goes away.
pub async fn apart<T: Serialize>(
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
