//! The spans of a planning pass and of the reconcile that carries out its slice.

use parking_lot::Mutex;

use shed_core::policy::Policy;
use tracing::span::{Attributes, Id};
use tracing_subscriber::layer::{Context as LayerContext, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{EnvFilter, Layer};

use super::*;
use crate::cli::LOGGED;
use crate::planner;

/// Each span, and the span in which it lies.
const SPANS: [(&str, Option<&str>); 10] = [
    ("planning_pass", None),
    ("observe", Some("planning_pass")),
    ("decide", Some("planning_pass")),
    ("check", Some("planning_pass")),
    ("publish", Some("planning_pass")),
    ("reconcile", None),
    ("observe", Some("reconcile")),
    ("step", Some("reconcile")),
    ("record", Some("reconcile")),
    ("apply", Some("reconcile")),
];

/// Runs the first planning pass and the reconcile of its only job.
async fn plan_and_reconcile() {
    let job = fixtures::job_of_age(0, "");
    let api = Apiserver::new(job.clone());
    let stores = Stores::for_tests(vec![job], vec![], &[fixtures::node("node-1", 8)]);
    let process = Process::with_stores(&api, stores);
    let (touched, mut jobs) = mpsc::unbounded_channel();
    let policy = Policy {
        surge_max: 0,
        ..Policy::default()
    };
    let shared = Arc::clone(&process.context.shared);
    let planner = tokio::spawn(planner::run(shared, policy, touched));
    timeout(A_WHILE, jobs.recv()).await.expect("a slice");
    planner.abort();
    process.reconcile(api.job()).await.unwrap();
    assert!(api.said().contains(&"POST pod 0-0".to_owned()));
}

/// Collects the names of new spans, and of their parents.
#[derive(Default)]
struct Collected(Mutex<Vec<(&'static str, Option<&'static str>)>>);

impl<S> Layer<S> for &'static Collected
where
    S: tracing::Subscriber + for<'a> LookupSpan<'a>,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: LayerContext<'_, S>) {
        let parent = context.span(id).and_then(|span| span.parent());
        let parent = parent.map(|parent| parent.name());
        let name = attributes.metadata().name();
        if !attributes.metadata().target().starts_with("shed") {
            return;
        }
        self.0.lock().push((name, parent));
    }
}

/// The spans that are created while this filter is the log's.
async fn spans_under(filter: &str) -> Vec<(&'static str, Option<&'static str>)> {
    let collected: &'static Collected = Box::leak(Box::default());
    let logs = tracing_subscriber::registry().with(EnvFilter::new(filter));
    let listening = tracing::subscriber::set_default(logs.with(collected));
    plan_and_reconcile().await;
    drop(listening);
    std::mem::take(&mut *collected.0.lock())
}

#[tokio::test(start_paused = true)]
async fn spans_have_the_parents_of_their_stages() {
    let _alone = fixtures::SPANS.lock().await;
    assert_eq!(spans_under("off,shed=debug").await, SPANS);
}

#[tokio::test(start_paused = true)]
async fn no_span_is_created_unless_it_is_requested() {
    let _alone = fixtures::SPANS.lock().await;
    assert_eq!(spans_under(LOGGED).await, []);
    let idle = || {
        let _span = tracing::debug_span!("observe", job = %String::from("a value")).entered();
    };
    // The first time registers the span.
    idle();
    let used = allocation_counter::measure(idle);
    assert_eq!(used.count_total, 0, "not even its values are computed");
}

#[cfg(feature = "otel")]
mod exported {
    use std::collections::HashMap;

    use opentelemetry_sdk::error::OTelSdkResult;
    use opentelemetry_sdk::trace::{SdkTracerProvider, SpanData, SpanExporter};

    use super::*;
    use crate::span_export;

    /// Keeps in memory what a collector would receive.
    #[derive(Clone, Debug, Default)]
    struct Memory(Arc<Mutex<Vec<SpanData>>>);

    impl SpanExporter for Memory {
        async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
            self.0.lock().extend(batch);
            Ok(())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn spans_are_exported_with_their_parents() {
        let _alone = fixtures::SPANS.lock().await;
        let memory = Memory::default();
        let provider = SdkTracerProvider::builder()
            .with_simple_exporter(memory.clone())
            .build();
        let layer = span_export::layer(&provider);
        let subscriber = tracing_subscriber::registry().with(layer);
        let listening = tracing::subscriber::set_default(subscriber);
        plan_and_reconcile().await;
        drop(listening);
        let mut spans = memory.0.lock().clone();
        spans.sort_by_key(|span| span.start_time);
        let names: HashMap<_, _> = spans
            .iter()
            .map(|span| (span.span_context.span_id(), span.name.to_string()))
            .collect();
        let found: Vec<_> = spans
            .iter()
            .map(|span| {
                (
                    &*span.name,
                    names.get(&span.parent_span_id).map(|name| &**name),
                )
            })
            .collect();
        assert_eq!(found, SPANS);
    }
}
