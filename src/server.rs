//! /metrics, /healthz, /readyz.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context as _;
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::net::TcpListener;

use crate::lease::standing::Standing;
use crate::metrics::Metrics;

/// What is served.
#[derive(Clone)]
pub struct Served {
    /// For /metrics.
    pub metrics: Arc<Metrics>,
    /// For /readyz.
    pub standing: Arc<Standing>,
}

/// Takes the address.
///
/// # Errors
/// If it can't be listened on.
pub async fn listen(address: SocketAddr) -> anyhow::Result<TcpListener> {
    let listening = TcpListener::bind(address).await;
    listening.with_context(|| format!("--http-address {address}: can't listen there"))
}

/// Serves for ever.
///
/// # Errors
/// If the system takes the address away.
pub async fn run(listener: TcpListener, served: Served) -> anyhow::Result<()> {
    let router = Router::new()
        .route("/metrics", get(metrics))
        // Alive as long as it answers: a watch that hangs ends by itself within a minute.
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .with_state(served);
    axum::serve(listener, router).await?;
    Ok(())
}

async fn metrics(State(served): State<Served>) -> impl IntoResponse {
    const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    match served.metrics.page() {
        Ok(page) => (StatusCode::OK, [(header::CONTENT_TYPE, OPEN_METRICS)], page),
        Err(error) => {
            let plain = "text/plain; charset=utf-8";
            let status = StatusCode::INTERNAL_SERVER_ERROR;
            (status, [(header::CONTENT_TYPE, plain)], error.to_string())
        }
    }
}

async fn ready(State(served): State<Served>) -> impl IntoResponse {
    match served.standing.ready() {
        Ok(line) => (StatusCode::OK, line),
        Err(line) => (StatusCode::SERVICE_UNAVAILABLE, line),
    }
}
