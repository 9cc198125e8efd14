//! Events for users, log lines and metrics about a step, once it is recorded.

mod notes;

use std::sync::Arc;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Resource;
use kube::runtime::events::{Event, EventType};
use shed_core::snapshot::AttemptKind;

use crate::adopt;
use crate::adopt::annotation_names::by_annotations;
use crate::api::{DeadlineJob, Ledger};
use crate::job::notice::Notice;
use crate::metrics::WON;
use crate::reconcile::context::ReconcileContext;
use crate::validate::ValidatedJob;

pub use self::notes::Words;
use self::notes::{About, Names};

/// The action of all events.
const ACTION: &str = "Reconcile";

/// Reason of the event when `DeadlineFeasible` has turned false.
pub const DEADLINE_INFEASIBLE: &str = "DeadlineInfeasible";

/// Announces the results of a recorded step. A lost event does not repeat a step.
pub fn announce(
    context: &ReconcileContext,
    owner: &DeadlineJob,
    job: &ValidatedJob,
    ledger: &Ledger,
    notices: &[Notice],
) {
    for notice in notices {
        measure(context, notice);
        tracing::info!(namespace = %job.namespace, job = %job.name, ?notice, "recorded");
    }
    let names = Names { job, ledger };
    for reported in notes::reported(notices, names, owner.status.as_ref()) {
        let (type_, reason, note) = reported.words;
        let note = match reported.is_end {
            true => Some(note),
            false => admit(context, &job.uid, note),
        };
        let Some(note) = note else { continue };
        let (action, pod) = key(&reported.about);
        let event = Event {
            type_,
            reason: reason.to_owned(),
            note: Some(note),
            action,
            secondary: pod.map(|name| reference_to(name, &job.namespace)),
        };
        publish_event(context, &subject(owner, owner.spec.is_companion()), event);
    }
}

/// The note, if the job may cause another event now.
fn admit(context: &ReconcileContext, job: &Arc<str>, note: String) -> Option<String> {
    let ticks = context.clock.ticks();
    context
        .job_memories
        .with(job, |memory| memory.reconcile.events.admit(note, ticks))
}

/// The key of a job's events. Events of the same type, reason, action and pod within six minutes
/// are merged into one, with the first one's note.
fn key(about: &About) -> (String, Option<String>) {
    let action = ACTION.to_owned();
    match about {
        About::Job => (action, None),
        About::Pod(pod) => (action, Some(pod.clone())),
        About::Task(task) => (format!("{action} task {task}"), None),
    }
}

fn reference_to(pod: String, namespace: &str) -> ObjectReference {
    ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Pod".to_owned()),
        name: Some(pod),
        namespace: Some(namespace.to_owned()),
        ..ObjectReference::default()
    }
}

/// Publishes an event about a condition of a job, unless the job has caused many of late.
pub fn publish_within_budget(
    context: &ReconcileContext,
    owner: &DeadlineJob,
    (type_, reason, note): Words,
) {
    let uid = owner.metadata.uid.as_deref().unwrap_or_default().into();
    if let Some(note) = admit(context, &uid, note) {
        publish(context, owner, type_, reason, note);
    }
}

/// Publishes one event about a job.
pub fn publish(
    context: &ReconcileContext,
    owner: &DeadlineJob,
    type_: EventType,
    reason: &str,
    note: String,
) {
    let about = subject(owner, owner.spec.is_companion());
    publish_about(context, &about, type_, reason, note);
}

/// Publishes one event about any object.
pub fn publish_about(
    context: &ReconcileContext,
    object: &ObjectReference,
    type_: EventType,
    reason: &str,
    note: String,
) {
    let event = Event {
        type_,
        reason: reason.to_owned(),
        note: Some(note),
        action: ACTION.to_owned(),
        secondary: None,
    };
    publish_event(context, object, event);
}

fn publish_event(context: &ReconcileContext, object: &ObjectReference, event: Event) {
    let is_job = object.kind.as_deref() == Some("Job");
    let named = |note: String| match is_job {
        true => by_annotations(&note).into_owned(),
        false => note,
    };
    let note = event.note.map(named);
    let note = note.map(|note| note.chars().take(1000).collect());
    context.events.push(Event { note, ..event }, object.clone());
}

/// The job, or the batch/v1 Job that it represents.
pub(super) fn subject(
    owner: &impl Resource<DynamicType = ()>,
    is_companion: bool,
) -> ObjectReference {
    let job = adopt::controller(owner.meta()).filter(|_| is_companion);
    match job {
        Some(job) => ObjectReference {
            api_version: Some(job.api_version.clone()),
            kind: Some(job.kind.clone()),
            name: Some(job.name.clone()),
            namespace: owner.meta().namespace.clone(),
            uid: Some(job.uid.clone()),
            ..ObjectReference::default()
        },
        None => owner.object_ref(&()),
    }
}

fn measure(context: &ReconcileContext, notice: &Notice) {
    let metrics = &context.metrics.attempts;
    match notice {
        Notice::Launched { launch, .. } => {
            metrics.launched.with([launch.kind.label()]).inc();
        }
        Notice::Killed { kind, .. } => {
            metrics.kills.with([kind.label()]).inc();
        }
        Notice::Won { kind, .. } => {
            metrics.ended.with([kind.label(), WON]).inc();
            if *kind == AttemptKind::Clone {
                metrics.clone_wins.inc();
            }
        }
        Notice::Counted { outcome, kind, .. } => {
            metrics.ended.with([kind.label(), outcome.label()]).inc();
        }
        Notice::Granted { .. } => {
            metrics.grants.inc();
        }
        Notice::TaskFailed { .. }
        | Notice::Ending(_)
        | Notice::Finished(_)
        | Notice::Unrecorded { .. } => {}
    }
}
