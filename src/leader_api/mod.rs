//! The leader's answers to people and tools: jobs by risk, explanations, slow nodes, what-if questions
//! (docs/reference/leader-api.md). It has data of all namespaces and no authentication, so it listens on loopback
//! only: the right to forward ports of the leader's pod decides who may ask. Nothing here changes a job or the
//! planner.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use shed_agent::connection::{BoundedListener, Limits};
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::answers::query::Query;
use crate::answers::{Answers, CurrentTerm, Refusal, Scope, apart, jobs, json, nodes};
use crate::args::AskAddress;
use crate::context::Context;
use crate::lease::role::Standing;
use crate::planner_copies::PlannerCopy;

mod explanation;
mod history;
mod what_if;

/// A few people and their tools, whose connections all come from the node's kubelet or runtime.
const LIMITS: Limits = Limits {
    connections: 16,
    per_peer: 16,
    life: Duration::from_secs(600),
    bytes: 256 * 1024,
};
/// Longest path with its query, in bytes.
const PATH_MAX: usize = 2048;
/// A reader waits this long for a copy of the planner's state.
const COPY_WAIT: Duration = Duration::from_secs(15);

const PATHS: &str = "/v1/jobs, /v1/jobs/<NAMESPACE>/<NAME>, /v1/explain/<NAMESPACE>/<NAME>, \
                     /v1/whatif/<NAMESPACE>/<NAME>, /v1/nodes, /v1/history/<NAMESPACE>";

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
    answers: Answers,
    /// Answers that need a copy of the planner's state, and may decide on it.
    copies: Arc<Semaphore>,
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
            answers: Answers::new(standing, term),
            copies: Arc::new(Semaphore::new(1)),
        })
    }

    async fn route(&self, path: &str, query: Option<&str>) -> Result<Vec<u8>, Refusal> {
        if path.len() + query.map_or(0, str::len) > PATH_MAX {
            let error = format!("the path and its query are longer than {PATH_MAX} bytes");
            return Err(Refusal::new(StatusCode::URI_TOO_LONG, error));
        }
        let context = self.answers.leading()?;
        let query = Query::parse(query)?;
        let parts: Vec<&str> = path.split('/').skip(1).collect();
        match *parts.as_slice() {
            ["v1", "jobs"] => {
                let page = jobs::Page::of(query)?;
                self.answers
                    .list(move || Ok(jobs::list(&context, &page, &Scope::All)))
                    .await
            }
            ["v1", "jobs", namespace, name] => {
                let wanted = jobs::Wanted::of(namespace, name, query)?;
                self.answers
                    .list(move || jobs::one(&context, &wanted))
                    .await
            }
            ["v1", "explain", namespace, name] => {
                let wanted = jobs::Wanted::of(namespace, name, query)?;
                self.answers
                    .list(move || explanation::of(&context, &wanted))
                    .await
            }
            ["v1", "history", namespace] => {
                let (namespace, class) = history::wanted(namespace, query)?;
                let list = move || Ok(history::list(&context, &namespace, class.as_deref()));
                self.answers.list(list).await
            }
            ["v1", "nodes"] => {
                query.none_left(&[])?;
                let (permit, copy) = self.copy(&context).await?;
                apart(permit, move || {
                    Ok(nodes::list(&context, &copy, &Scope::All))
                })
                .await
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

#[cfg(test)]
mod tests;
