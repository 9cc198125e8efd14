use axum::Router;
use axum::extract::State;
use axum::routing::post;
use opentelemetry_otlp::WithExportConfig;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tracing_subscriber::layer::SubscriberExt;

use super::*;

#[test]
fn endpoints_that_cannot_work_are_refused() {
    for (endpoint, is_static) in [
        ("http://10.0.0.1:4318", true),
        ("http://[fd00::1]:4318", true),
        ("http://collector.observability:4318", false),
    ] {
        check_endpoint(endpoint, is_static).unwrap();
    }
    for (endpoint, is_static, hint) in [
        ("https://10.0.0.1:4318", false, "must start with http://"),
        ("10.0.0.1:4318", false, "must start with http://"),
        ("http://collector:4318", true, "use an IP address"),
        ("http://a b", false, "not a URL"),
    ] {
        let error = check_endpoint(endpoint, is_static).unwrap_err().to_string();
        assert!(error.contains(hint), "{endpoint}: {error}");
    }
}

/// A collector in this process receives protobuf over HTTP.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_collector_receives_the_spans() {
    let (received, mut requests) = mpsc::unbounded_channel();
    let note = |State(received): State<mpsc::UnboundedSender<_>>,
                request: axum::extract::Request| async move {
        let kind = request.headers()["content-type"]
            .to_str()
            .unwrap()
            .to_owned();
        let body = request.into_body().collect().await.unwrap().to_bytes();
        let _ = received.send((kind, body));
    };
    let collector = Router::new()
        .route("/v1/traces", post(note))
        .with_state(received);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}/v1/traces", listener.local_addr().unwrap());
    tokio::spawn(async { axum::serve(listener, collector).await });
    let exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(Collector::on(&Handle::current()))
        .with_endpoint(endpoint);
    let provider = SdkTracerProvider::builder()
        .with_batch_exporter(exporter.build().unwrap())
        .with_resource(resource())
        .build();
    let subscriber = tracing_subscriber::registry().with(layer(&provider));
    let alone = crate::fixtures::SPANS.lock().await;
    tracing::subscriber::with_default(subscriber, || {
        tracing::debug_span!("decide").in_scope(|| ());
        tracing::debug_span!(target: "kube_client", "foreign").in_scope(|| ());
    });
    drop(alone);
    tokio::task::spawn_blocking(|| Export(provider).finish())
        .await
        .unwrap();
    let (kind, body) = requests.recv().await.unwrap();
    assert_eq!(kind, "application/x-protobuf");
    let text = String::from_utf8_lossy(&body);
    assert!(text.contains("decide") && text.contains("service.name"));
    assert!(!text.contains("foreign"));
}
