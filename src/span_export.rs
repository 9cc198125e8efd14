//! Export of the operator's spans over OTLP, as HTTP with protobuf. The standard `OTEL_*` environment
//! variables configure it (docs/how-to/trace-the-operator.md). Without an endpoint there nothing is exported.

use std::net::IpAddr;
use std::pin::Pin;
use std::time::Duration;

use anyhow::Context as _;
use http::Uri;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_http::{HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{
    OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, SpanExporter, WithHttpConfig,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tokio::runtime::Handle;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{Layer, Registry};

/// Longest wait for the collector's response to one batch.
const PATIENCE: Duration = Duration::from_secs(10);
/// Longest response that is read.
const RESPONSE_BYTES_MAX: usize = 64 * 1024;

/// An export of spans, until the process ends.
pub struct Export(SdkTracerProvider);

impl Export {
    /// The export that the environment asks for, if it names an endpoint. Its requests run on that runtime.
    pub fn from_env(runtime: &Handle) -> anyhow::Result<Option<Self>> {
        let names = [
            OTEL_EXPORTER_OTLP_TRACES_ENDPOINT,
            OTEL_EXPORTER_OTLP_ENDPOINT,
        ];
        let named = names.into_iter().find_map(|name| {
            let value = std::env::var(name).ok()?;
            (!value.is_empty()).then_some((name, value))
        });
        let Some((name, endpoint)) = named else {
            return Ok(None);
        };
        check_endpoint(&endpoint, cfg!(target_feature = "crt-static"))
            .with_context(|| format!("{name}={endpoint}"))?;
        let client = Collector::on(runtime);
        let exporter = SpanExporter::builder().with_http().with_http_client(client);
        let exporter = exporter.build().context("export of spans")?;
        let provider = SdkTracerProvider::builder().with_batch_exporter(exporter);
        Ok(Some(Self(provider.with_resource(resource()).build())))
    }

    /// The layer that hands over the spans.
    pub fn layer(&self) -> Box<dyn Layer<Registry> + Send + Sync> {
        layer(&self.0).boxed()
    }

    /// Sends the last spans.
    pub fn finish(self) {
        if let Err(error) = self.0.shutdown_with_timeout(PATIENCE) {
            tracing::warn!(%error, "the last spans were not exported");
        }
    }
}

/// The name of the service; `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` take precedence.
fn resource() -> Resource {
    let resource = Resource::builder();
    match std::env::var_os("OTEL_SERVICE_NAME") {
        Some(_) => resource.build(),
        None => resource.with_service_name("shed").build(),
    }
}

/// Hands shed's own spans to the provider. Those of libraries, and all log lines, stay out.
pub(crate) fn layer<S>(provider: &SdkTracerProvider) -> impl Layer<S> + use<S>
where
    S: tracing::Subscriber + for<'a> LookupSpan<'a>,
{
    let is_ours = |metadata: &tracing::Metadata<'_>| {
        metadata.is_span() && metadata.target().split("::").next() == Some("shed")
    };
    tracing_opentelemetry::layer()
        .with_tracer(provider.tracer("shed"))
        .with_location(false)
        .with_threads(false)
        .with_filter(filter_fn(is_ours))
}

/// A static binary must not resolve names: its C library would load modules that the image does not have.
fn check_endpoint(endpoint: &str, is_static: bool) -> anyhow::Result<()> {
    let uri: Uri = endpoint.parse().context("not a URL")?;
    anyhow::ensure!(
        uri.scheme_str() == Some("http"),
        "the URL must start with http://; for TLS run a collector on the same node"
    );
    let host = uri.host().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    anyhow::ensure!(
        !is_static || host.parse::<IpAddr>().is_ok(),
        "this build resolves no names: use an IP address, such as that of the node"
    );
    Ok(())
}

/// The client of the collector. The exporter's thread is outside of any runtime, so requests run on this one.
#[derive(Debug)]
struct Collector {
    client: Client<HttpConnector, Full<Bytes>>,
    runtime: Handle,
}

impl Collector {
    fn on(runtime: &Handle) -> Self {
        Self {
            client: Client::builder(TokioExecutor::new()).build(HttpConnector::new()),
            runtime: runtime.clone(),
        }
    }
}

type Sent<'a> = Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'a>>;

impl HttpClient for Collector {
    fn send_bytes<'life, 'sent>(&'life self, request: Request<Bytes>) -> Sent<'sent>
    where
        'life: 'sent,
        Self: 'sent,
    {
        let response = send(self.client.clone(), request);
        // A timer can only be made within the runtime.
        let response = async { tokio::time::timeout(PATIENCE, response).await? };
        let task = self.runtime.spawn(response);
        Box::pin(async { task.await? })
    }
}

async fn send(
    client: Client<HttpConnector, Full<Bytes>>,
    request: Request<Bytes>,
) -> Result<Response<Bytes>, HttpError> {
    let (head, body) = client.request(request.map(Full::new)).await?.into_parts();
    let body = Limited::new(body, RESPONSE_BYTES_MAX).collect().await?;
    Ok(Response::from_parts(head, body.to_bytes()))
}

#[cfg(test)]
mod tests;
