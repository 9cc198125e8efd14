//! Reports undecodable jobs, and unknown fields of other jobs. shed writes nothing to such a job,
//! because its status may hold fields that only a newer operator knows.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Resource;
use kube::runtime::events::EventType;

use crate::api::DeadlineJob;
use crate::cluster::JobFault;
use crate::reconcile::context::ReconcileContext;
use crate::reconcile::events;
use crate::reconcile::periodic_checks;

/// Interval of the check, which makes no call.
const PERIOD: Duration = Duration::from_millis(500);
/// Fields that one event names.
const NAMED_MAX: usize = 10;

/// Checks without end.
pub async fn run(context: Arc<ReconcileContext>) {
    let mut reported = BTreeMap::new();
    let mut seen = None;
    let mut ticks = periodic_checks::every(&context, PERIOD).await;
    loop {
        ticks.tick().await;
        look(&context, &mut reported, &mut seen).await;
    }
}

/// Reports new findings, unless nothing has changed since the last check.
async fn look(
    context: &ReconcileContext,
    reported: &mut BTreeMap<String, Words>,
    seen: &mut Option<u64>,
) {
    let version = context.stores.jobs.gaps_version();
    if seen.replace(version) == Some(version) {
        return;
    }
    let faults = context.stores.jobs.faults();
    let unreadable = faults
        .iter()
        .filter(|fault| fault.problem.is_some())
        .count();
    let unreadable = i64::try_from(unreadable).unwrap_or(i64::MAX);
    context.metrics.reconciles.unreadable.set(unreadable);
    let mut present = BTreeMap::new();
    for fault in &faults {
        let (uid, words) = (fault.metadata.uid.clone().unwrap_or_default(), words(fault));
        if reported.get(&uid) != Some(&words) {
            announce(context, fault, &words).await;
        }
        present.insert(uid, words);
    }
    *reported = present;
}

/// Reason of an event, and its note.
type Words = (&'static str, String);

fn words(fault: &JobFault) -> Words {
    let version = env!("CARGO_PKG_VERSION");
    match &fault.problem {
        Some(problem) => (
            "Unreadable",
            format!(
                "{problem}: version {version} of the operator cannot decode the job and does not run it; \
                 run the version that the job was written for, or change the field"
            ),
        ),
        None => {
            let named: Vec<&str> = fault.unknown_fields.iter().map(String::as_str).collect();
            let more = match named.len().saturating_sub(NAMED_MAX) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let named = named[..named.len().min(NAMED_MAX)].join(", ");
            (
                "UnknownField",
                format!(
                    "{named}{more}: unknown to version {version} of the operator, which ignores it; run the \
                     version that the job was written for, or remove it"
                ),
            )
        }
    }
}

async fn announce(context: &ReconcileContext, fault: &JobFault, (reason, note): &Words) {
    let (namespace, name) = (&fault.metadata.namespace, &fault.metadata.name);
    tracing::warn!(?namespace, job = ?name, "{note}");
    if fault.problem.is_some() {
        let errors = &context.metrics.reconciles.errors;
        let reason = "undecodable";
        errors.with([reason]).inc();
    }
    let about = reference(fault);
    events::publish_about(context, &about, EventType::Warning, reason, note.clone());
}

fn reference(fault: &JobFault) -> ObjectReference {
    ObjectReference {
        api_version: Some(DeadlineJob::api_version(&()).into_owned()),
        kind: Some(DeadlineJob::kind(&()).into_owned()),
        name: fault.metadata.name.clone(),
        namespace: fault.metadata.namespace.clone(),
        uid: fault.metadata.uid.clone(),
        ..ObjectReference::default()
    }
}

#[cfg(test)]
mod tests;
