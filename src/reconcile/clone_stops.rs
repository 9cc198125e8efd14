//! Reports Namespaces whose annotation `shed.dev/clones` has an unknown value. shed ignores such a value, so an
//! administrator who meant to stop new clones must learn of it.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::runtime::events::EventType;

use crate::api::{ANNOTATION_CLONES, CLONES_STOP, UNKNOWN_VALUE};
use crate::cluster::clone_stops::CloneStops;
use crate::reconcile::context::ReconcileContext;
use crate::reconcile::events;
use crate::reconcile::periodic_checks;

/// Interval of the check, which makes no call.
const PERIOD: Duration = Duration::from_secs(1);

/// Checks without end.
pub async fn run(context: Arc<ReconcileContext>) {
    let mut reported = Arc::default();
    let mut ticks = periodic_checks::every(&context, PERIOD).await;
    loop {
        ticks.tick().await;
        look(&context, &mut reported);
    }
}

/// Reports the unknown values that are new since the last check.
fn look(context: &ReconcileContext, reported: &mut Arc<CloneStops>) {
    let now = context.stores.clone_stops();
    let before = std::mem::replace(reported, Arc::clone(&now));
    if Arc::ptr_eq(&now, &before) {
        return;
    }
    for (namespace, value) in now.ignored() {
        let mut known = before.ignored();
        if !known.any(|known| known == (namespace, value)) {
            announce(context, namespace, value);
        }
    }
}

fn announce(context: &ReconcileContext, namespace: &str, value: &str) {
    let note = format!(
        "annotation {ANNOTATION_CLONES}: unknown value `{value}`, which shed ignores: use {CLONES_STOP}, or remove \
         the annotation"
    );
    tracing::warn!(namespace, "{note}");
    let about = ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Namespace".to_owned()),
        name: Some(namespace.to_owned()),
        ..ObjectReference::default()
    };
    events::publish_about(context, &about, EventType::Warning, UNKNOWN_VALUE, note);
}

#[cfg(test)]
mod tests;
