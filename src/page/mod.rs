//! The live page: jobs, attempts and nodes in a browser, read-only, over TLS (docs/how-to/live-page.md). A visitor logs
//! in with a token of the cluster, and sees the namespaces where its user may list DeadlineJobs.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::serve::ListenerExt;
use k8s_openapi::api::authentication::v1::UserInfo;
use kube::Client;
use serde_json::json;
use shed_agent::connection::{BoundedListener, Limits};
use shed_core::time::Instant;
use tokio::net::TcpListener;

use crate::answers::query::Query;
use crate::answers::{Answers, CurrentTerm, Refusal, json as in_json};
use crate::clock::{self, Clock};
use crate::context::Context;
use crate::lease::role::Standing;
use crate::server::quota::{self, Quota};
use crate::server::{Certificates, Purpose, Reviewer, TlsListener, Unreviewed};

mod access;
mod assets;
mod data;
mod events;
mod leader_label;
mod login;
mod session;
mod shared;

pub use leader_label::LeaderLabel;
use session::{Seal, Session, cookie};
use shared::Shared;

/// People, who may all come through one proxy or port-forward.
const LIMITS: Limits = Limits {
    connections: 96,
    per_peer: 64,
    // Streams of events are opened again by the browser.
    life: Duration::from_secs(3600),
    bytes: 1024 * 1024,
};
/// Longest path with its query, in bytes.
const PATH_MAX: usize = 2048;

const PURPOSE: Purpose = Purpose {
    what: "the live page",
    flag: "--page-cert-dir",
    name: "shed-page",
};

const CONTENT_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                              connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

/// Headers of every response.
const HEADERS: [(HeaderName, &str); 4] = [
    (header::CONTENT_SECURITY_POLICY, CONTENT_POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
];

/// What the page is served from.
pub struct Source {
    /// Whether this replica leads.
    pub standing: Arc<Standing>,
    /// The state of its term.
    pub term: Arc<CurrentTerm>,
    /// Ends sessions.
    pub clock: Arc<Clock>,
    /// Reviews visitors and reads jobs that have ended. It is not bound to a term: nothing is changed with it.
    pub client: Client,
}

/// Serves the page until the process ends. A port that is in use, or a certificate that cannot be read, costs the page
/// and nothing else: the operator runs jobs without it.
pub async fn run(address: SocketAddr, certificates: Option<&Path>, source: Source) {
    let ended = match open(address, certificates).await {
        Ok((listener, certificates)) => serve(listener, certificates, source).await,
        Err(error) => Err(error),
    };
    if let Err(error) = ended {
        tracing::warn!(%address, "--page-address: the live page is not served: {error:#}");
    }
}

async fn open(
    address: SocketAddr,
    certificates: Option<&Path>,
) -> anyhow::Result<(TcpListener, Certificates)> {
    let certificates = Certificates::open(certificates, PURPOSE)?;
    Ok((TcpListener::bind(address).await?, certificates))
}

async fn serve(
    listener: TcpListener,
    certificates: Certificates,
    source: Source,
) -> anyhow::Result<()> {
    let page = Page::new(source)?;
    let certificates = Arc::new(certificates);
    let listener = BoundedListener::new(listener, LIMITS);
    let listener = TlsListener::new(listener, Arc::clone(&certificates));
    // Gives the requests the address of their client.
    let listener = listener.tap_io(|_| {});
    let service = router(page).into_make_service_with_connect_info::<SocketAddr>();
    tokio::select! {
        ended = axum::serve(listener, service) => Ok(ended?),
        () = certificates.follow() => Ok(()),
    }
}

fn router(page: Arc<Page>) -> Router {
    let protect = axum::middleware::map_response(protected);
    Router::new()
        .fallback(answer)
        .with_state(page)
        .layer(protect)
}

async fn protected(mut response: Response) -> Response {
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

struct Page {
    answers: Answers,
    clock: Arc<Clock>,
    client: Client,
    reviewer: Reviewer,
    seal: Seal,
    logins: Quota<IpAddr>,
    /// Reviews of namespaces that a user names, by user name.
    reviews: Quota<String>,
    streams: Arc<events::Streams>,
    /// The lists of open pages.
    lists: Shared,
    node_lists: Shared,
    copies: Arc<data::Copies>,
}

/// The user of a session, and its end.
struct Visitor {
    user: Arc<UserInfo>,
    ends: Instant,
}

async fn answer(
    State(page): State<Arc<Page>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let answered = page.route(&parts, body, peer).await;
    answered.unwrap_or_else(IntoResponse::into_response)
}

impl Page {
    fn new(source: Source) -> anyhow::Result<Arc<Self>> {
        let seal = Seal::new().map_err(|_| anyhow::anyhow!("no random numbers"))?;
        Ok(Arc::new(Self {
            answers: Answers::new(source.standing, source.term),
            clock: source.clock,
            reviewer: Reviewer::new(source.client.clone(), access::KEEPING),
            client: source.client,
            seal,
            logins: quota::tokens(),
            reviews: access::quota(),
            streams: Arc::default(),
            lists: Shared::new(events::PERIOD * 3 / 4),
            node_lists: Shared::new(events::LONG_PERIOD / 2),
            copies: Arc::default(),
        }))
    }

    async fn route(
        self: &Arc<Self>,
        parts: &Parts,
        body: Body,
        peer: SocketAddr,
    ) -> Result<Response, Refusal> {
        let (path, query) = (parts.uri.path(), parts.uri.query());
        if path.len() + query.map_or(0, str::len) > PATH_MAX {
            let error = format!("the path and its query are longer than {PATH_MAX} bytes");
            return Err(Refusal::new(StatusCode::URI_TOO_LONG, error));
        }
        let steps: Vec<&str> = path.split('/').skip(1).collect();
        match (&parts.method, steps.as_slice()) {
            (&Method::POST, ["login"]) => self.log_in(&parts.headers, body, peer).await,
            (&Method::POST, ["logout"]) => login::log_out(&parts.headers),
            (&Method::GET | &Method::HEAD, [""]) => file("index.html"),
            (&Method::GET | &Method::HEAD, ["assets", name]) => file(name),
            (&Method::GET, ["api", rest @ ..]) => {
                self.read(&parts.headers, rest, Query::parse(query)?).await
            }
            _ => Err(Refusal::not_found(format!(
                "no such path for {}: the page is at /",
                parts.method
            ))),
        }
    }

    /// What needs a session.
    async fn read(
        self: &Arc<Self>,
        headers: &HeaderMap,
        path: &[&str],
        query: Query,
    ) -> Result<Response, Refusal> {
        let visitor = self.visitor(cookie(headers)).await?;
        let body = match *path {
            ["session"] => {
                query.none_left(&[])?;
                let user = visitor.user.username.as_deref().unwrap_or_default();
                let expires = clock::time(visitor.ends);
                json!({"user": user, "expires": expires}).to_string().into()
            }
            ["jobs"] => self.jobs(&visitor, query).await?,
            ["jobs", namespace, name] => {
                let wanted = crate::answers::jobs::Wanted::of(namespace, name, query)?;
                self.job(&visitor, Arc::new(wanted)).await?
            }
            ["nodes"] => {
                query.none_left(&[])?;
                self.nodes(&visitor).await?
            }
            ["events"] => {
                // The visitor was found by it.
                let cookie = cookie(headers).unwrap_or_default();
                return events::stream(self, &visitor, cookie, query);
            }
            _ => {
                let error = "no such path: see /api/jobs, /api/nodes and /api/session";
                return Err(Refusal::not_found(error));
            }
        };
        Ok(in_json(StatusCode::OK, body))
    }

    /// The visitor of the cookie with this value.
    async fn visitor(&self, cookie: Option<&str>) -> Result<Visitor, Refusal> {
        let unknown = |error: &str| Refusal::new(StatusCode::UNAUTHORIZED, error);
        let cookie = cookie.ok_or_else(|| unknown("log in with a token"))?;
        let session = self.seal.open(cookie).map_err(|_| {
            unknown("the session was opened at another replica, or before a restart: log in again")
        })?;
        let Session { token, ends } = session;
        if self.clock.now() >= ends {
            return Err(unknown("the session is over: log in with a new token"));
        }
        let user = self.reviewer.user(&token).await.map_err(unreviewed)?;
        let user = user.ok_or_else(|| {
            unknown("the apiserver does not accept the token any more: log in with a new one")
        })?;
        Ok(Visitor { user, ends })
    }

    /// The state of the term. A refusal does not name the leader.
    fn leading(&self) -> Result<Arc<Context>, Refusal> {
        self.answers.leading().map_err(|refusal| match refusal.leader {
            Some(_) => Refusal::busy(
                "this replica does not lead: open the page through its Service, which selects the leader",
            ),
            None => refusal,
        })
    }
}

fn unreviewed(_: Unreviewed) -> Refusal {
    Refusal::busy("the apiserver does not review tokens and rights now: try again in a few seconds")
}

fn file(name: &str) -> Result<Response, Refusal> {
    let file = assets::file(name);
    let (kind, content) =
        file.ok_or_else(|| Refusal::not_found("no such file: the page is at /"))?;
    let headers = [
        (header::CONTENT_TYPE, kind),
        // The next version of the operator has other files of the same names.
        (header::CACHE_CONTROL, "no-cache"),
    ];
    Ok((headers, content).into_response())
}

#[cfg(test)]
mod tests;
