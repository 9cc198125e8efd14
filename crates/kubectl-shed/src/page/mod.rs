//! `page`: the live page, served on loopback from what this user may read. It holds the rights of a kubeconfig, so other
//! programs and web pages of this machine must not read it: its address has a secret part, and requests that name
//! another host are refused.

mod assets;
mod data;

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use axum::extract::{Path, Query, Request, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use ring::rand::{SecureRandom as _, SystemRandom};
use serde_json::json;
use tokio::net::TcpListener;

use crate::connection::Connection;
use crate::terminal;
use data::{Detail, List, ListQuery, Source, Unread, Wanted};

/// Serve the live page on this machine: jobs, attempts and events in a browser, read with your own rights.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  # The jobs of all namespaces that you may list, otherwise those of your own namespace
  kubectl shed page
  # The jobs of one namespace, always at the same port
  kubectl shed page -n team-a --port 8080

It prints the address of the page, and ends with Ctrl-C. The address holds a secret that is new each time.")]
pub struct PageArgs {
    /// Port on 127.0.0.1. 0 is any free one.
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    port: u16,
}

const CONTENT_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                              connect-src 'self'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'";

const HEADERS: [(HeaderName, &str); 5] = [
    (header::CONTENT_SECURITY_POLICY, CONTENT_POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CACHE_CONTROL, "no-store"),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
];

/// Serves the page until the user ends it.
pub async fn run(args: PageArgs, connection: &Connection) -> anyhow::Result<ExitCode> {
    let session = connection.open().await?;
    let (source, writer) = Source::open(session).await?;
    let source = Arc::new(source);
    let listener = TcpListener::bind(("127.0.0.1", args.port)).await;
    let listener = listener.with_context(|| format!("--port {}", args.port))?;
    let (address, secret) = (listener.local_addr()?, secret()?);
    terminal::print(&format!(
        "http://{address}/{secret}/\n\nIt shows {}. Press Ctrl-C to end it.\n",
        source.scope_words()
    ))?;
    let router = router(Arc::clone(&source), &secret, address.port());
    tokio::select! {
        ended = axum::serve(listener, router) => ended?,
        () = source.follow(writer) => {}
        ended = tokio::signal::ctrl_c() => ended?,
    }
    Ok(ExitCode::SUCCESS)
}

/// A path that no other program can guess.
fn secret() -> anyhow::Result<String> {
    let mut bytes = [0; 16];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| anyhow::anyhow!("no random numbers"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn router(source: Arc<Source>, secret: &str, port: u16) -> Router {
    let hosts = [format!("127.0.0.1:{port}"), format!("localhost:{port}")];
    let guard = middleware::from_fn_with_state(Arc::new(hosts), guard);
    let pages = Router::new()
        .route("/", get(async || file("index.html")))
        .route(
            "/assets/{name}",
            get(async |Path(name): Path<String>| file(&name)),
        )
        .route("/api/jobs", get(list))
        .route("/api/jobs/{namespace}/{name}", get(one));
    Router::new()
        // Without the slash a nested `/` would not be found.
        .nest_service(&format!("/{secret}/"), pages.with_state(source))
        .fallback(async || Unread::not_found("open the address that `kubectl shed page` printed"))
        .layer(guard)
}

/// A web page whose name leads to this machine is another host for the browser, and may not read this one.
async fn guard(State(hosts): State<Arc<[String; 2]>>, request: Request, next: Next) -> Response {
    let host = request.headers().get(header::HOST);
    let is_own = host.is_some_and(|host| hosts.iter().any(|own| host.as_bytes() == own.as_bytes()));
    let mut response = match is_own {
        true => next.run(request).await,
        false => {
            let error = "the header Host names another machine: use 127.0.0.1 or localhost";
            Unread::new(StatusCode::FORBIDDEN, error).into_response()
        }
    };
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

fn file(name: &str) -> Result<Response, Unread> {
    let file = assets::file(name);
    let (kind, content) = file.ok_or_else(|| Unread::not_found("no such file"))?;
    Ok(([(header::CONTENT_TYPE, kind)], content).into_response())
}

async fn list(
    State(source): State<Arc<Source>>,
    Query(query): Query<ListQuery>,
) -> Result<Json<List>, Unread> {
    source.list(&query).await.map(Json)
}

async fn one(
    State(source): State<Arc<Source>>,
    Path((namespace, name)): Path<(String, String)>,
    Query(wanted): Query<Wanted>,
) -> Result<Json<Detail>, Unread> {
    let kind = wanted.kind.as_deref();
    source.one(&namespace, &name, kind).await.map(Json)
}

impl IntoResponse for Unread {
    fn into_response(self) -> Response {
        (self.status, Json(json!({ "error": self.error }))).into_response()
    }
}

#[cfg(test)]
mod tests;
