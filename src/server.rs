//! /metrics, /healthz, /readyz.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context as _;
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;

use crate::context::Context;

/// Serves for ever.
///
/// # Errors
/// If the address can't be listened on.
pub async fn run(address: SocketAddr, context: Arc<Context>) -> anyhow::Result<()> {
    let router = Router::new()
        .route("/metrics", get(metrics))
        // Alive as long as it answers: a watch that hangs ends by itself within a minute.
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .with_state(context);
    let listener = tokio::net::TcpListener::bind(address)
        .await
        .with_context(|| format!("--http-address {address}: can't listen there"))?;
    axum::serve(listener, router).await?;
    Ok(())
}

async fn metrics(State(context): State<Arc<Context>>) -> impl IntoResponse {
    const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    match context.metrics.page() {
        Ok(page) => (StatusCode::OK, [(header::CONTENT_TYPE, OPEN_METRICS)], page),
        Err(error) => {
            let plain = "text/plain; charset=utf-8";
            let status = StatusCode::INTERNAL_SERVER_ERROR;
            (status, [(header::CONTENT_TYPE, plain)], error.to_string())
        }
    }
}

async fn ready(State(context): State<Arc<Context>>) -> impl IntoResponse {
    if context.stores.is_ready() {
        (StatusCode::OK, "ok\n")
    } else {
        (
            StatusCode::SERVICE_UNAVAILABLE,
            "the first lists are not in yet\n",
        )
    }
}
