//! Reports labels and annotations of Namespaces with invalid values, and whether the settings can be read. shed does not
//! use an invalid value, so the administrator who set it must learn of it.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::runtime::events::EventType;

use crate::api::{UNKNOWN_LABEL_VALUE, UNKNOWN_VALUE};
use crate::cluster::namespace_settings::{Fault, NamespaceSettings, Scope};
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

/// Reports the invalid values that are new since the last check.
fn look(context: &ReconcileContext, reported: &mut Arc<NamespaceSettings>) {
    let now = context.stores.namespaces();
    let unreadable = &context.metrics.shares.settings_unreadable;
    unreadable.set(i64::from(now.scope() != Scope::All));
    let before = std::mem::replace(reported, Arc::clone(&now));
    if Arc::ptr_eq(&now, &before) {
        return;
    }
    for (namespace, fault) in now.faults() {
        let known = before.get(namespace);
        if !known.is_some_and(|known| known.faults.contains(fault)) {
            announce(context, namespace, fault);
        }
    }
}

/// Reports a value that has no effect.
pub(super) fn announce(context: &ReconcileContext, namespace: &str, fault: &Fault) {
    let note = fault.words();
    tracing::warn!(namespace, "{note}");
    let about = ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Namespace".to_owned()),
        name: Some(namespace.to_owned()),
        ..ObjectReference::default()
    };
    let reason = match fault.is_label() {
        true => UNKNOWN_LABEL_VALUE,
        false => UNKNOWN_VALUE,
    };
    events::publish_about(context, &about, EventType::Warning, reason, note);
}

#[cfg(test)]
mod tests;
