//! Serves /metrics, /healthz and /readyz; the kubelet's probes have a port of their own, so
//! that strangers on the first can't make a healthy replica look dead. The first may speak TLS and return the metrics only
//! to clients with the right to read them.

use std::future::IntoFuture;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use axum::serve::ListenerExt as _;
use kube::Client;
use shed_agent::connection::{BoundedListener, Limits};
use shed_core::time::Span;
use tokio::net::TcpListener;

mod access;
mod quota;
mod reviews;
mod tls;

use reviews::Reviewer;
use tls::{Certificates, TlsListener};

use crate::clock::Clock;
use crate::lease::role::Standing;
use crate::metrics::Metrics;

/// A few Prometheus servers and people.
const PAGE_LIMITS: Limits = Limits {
    connections: 64,
    per_peer: 8,
    life: Duration::from_secs(600),
    bytes: 1024 * 1024,
};
/// The kubelet.
const PROBE_LIMITS: Limits = Limits {
    connections: 16,
    per_peer: 4,
    life: Duration::from_secs(10),
    bytes: 16 * 1024,
};

/// Content that the server serves.
#[derive(Clone)]
pub struct Served {
    /// For /metrics.
    pub metrics: Arc<Metrics>,
    /// For /readyz.
    pub standing: Arc<Standing>,
    /// For both.
    pub clock: Arc<Clock>,
}

/// How the pages are protected.
pub struct Protection {
    /// The certificate of the server.
    certificates: Certificates,
    /// Who may read the metrics.
    reviewer: Reviewer,
}

impl Protection {
    /// The certificate of this folder, or a self-signed one, and reviews by this client.
    pub fn open(folder: Option<&Path>, client: Client) -> anyhow::Result<Self> {
        Ok(Self {
            certificates: Certificates::open(folder)?,
            reviewer: Reviewer::new(client),
        })
    }
}

/// Where the pages and the probes are served.
pub struct Doors {
    pages: TcpListener,
    probes: Option<TcpListener>,
}

impl Doors {
    /// Takes the addresses.
    pub async fn open(pages: SocketAddr, probes: Option<SocketAddr>) -> anyhow::Result<Self> {
        let probes = match probes {
            Some(address) => Some(listen("--probe-address", address).await?),
            None => None,
        };
        Ok(Self {
            pages: listen("--http-address", pages).await?,
            probes,
        })
    }
}

async fn listen(flag: &str, address: SocketAddr) -> anyhow::Result<TcpListener> {
    let listening = TcpListener::bind(address).await;
    listening.with_context(|| format!("{flag} {address}: cannot listen on this address"))
}

/// Serves until the system takes an address away.
pub async fn run(
    doors: Doors,
    served: Served,
    protection: Option<Protection>,
) -> anyhow::Result<()> {
    let probes = health(served.clone());
    let pages = serve_pages(doors.pages, served, protection);
    let probes = async {
        match doors.probes {
            Some(listener) => {
                axum::serve(BoundedListener::new(listener, PROBE_LIMITS), probes).await
            }
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        ended = pages => ended?,
        ended = probes => ended?,
    }
    Ok(())
}

async fn serve_pages(
    listener: TcpListener,
    served: Served,
    protection: Option<Protection>,
) -> std::io::Result<()> {
    let listener = BoundedListener::new(listener, PAGE_LIMITS);
    let health = health(served.clone());
    let clock = Arc::clone(&served.clock);
    let page = get(metrics).with_state(served);
    let Some(protection) = protection else {
        return axum::serve(listener, health.route("/metrics", page)).await;
    };
    let gate = Arc::new(access::Gate::new(protection.reviewer, clock));
    let review = axum::middleware::from_fn_with_state(gate, access::require);
    let certificates = Arc::new(protection.certificates);
    let listener = TlsListener::new(listener, Arc::clone(&certificates));
    // Gives the requests the address of their client.
    let listener = listener.tap_io(|_| {});
    let pages = health.route("/metrics", page.layer(review));
    let pages = pages.into_make_service_with_connect_info::<SocketAddr>();
    let pages = axum::serve(listener, pages);
    tokio::select! {
        ended = pages.into_future() => ended,
        () = certificates.follow() => Ok(()),
    }
}

fn health(served: Served) -> Router {
    Router::new()
        // Alive as long as it answers: a watch that hangs ends by itself within a minute.
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .with_state(served)
}

async fn metrics(State(served): State<Served>) -> impl IntoResponse {
    served.show_clock();
    match served.metrics.page_at(served.clock.now()) {
        Ok(page) => {
            let content_type = [(header::CONTENT_TYPE, prometheus::TEXT_FORMAT)];
            (StatusCode::OK, content_type, page)
        }
        Err(error) => {
            let plain = "text/plain; charset=utf-8";
            let status = StatusCode::INTERNAL_SERVER_ERROR;
            (status, [(header::CONTENT_TYPE, plain)], error.to_string())
        }
    }
}

/// A replica with an uncertain clock reports that and is ready all the same. It does everything
/// except fail jobs, and if it were not ready it would delay a rolling update that replaces it.
async fn ready(State(served): State<Served>) -> impl IntoResponse {
    let note = served.clock.note().unwrap_or_default();
    match served.standing.ready() {
        Ok(line) => (StatusCode::OK, line + &note),
        Err(line) => (StatusCode::SERVICE_UNAVAILABLE, line + &note),
    }
}

impl Served {
    fn show_clock(&self) {
        let uncertainty = self.clock.uncertainty();
        let uncertainty = uncertainty.map_or(f64::INFINITY, Span::seconds);
        self.metrics.clock_uncertainty.set(uncertainty);
        self.metrics.clock_offset.set(self.clock.offset().seconds());
    }
}

#[cfg(test)]
mod tests;
