//! Events for users, log lines and metrics about a step, once it is recorded.

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Resource;
use kube::runtime::events::{Event, EventType};
use shed_core::plan::{Launch, LaunchReason};
use shed_core::snapshot::{AttemptKind, Conclusion, KillKind};

use crate::adopt;
use crate::api::{DeadlineJob, Ledger};
use crate::cluster::pod::AttemptId;
use crate::job::notice::Notice;
use crate::metrics::WON;
use crate::pod_names;
use crate::reconcile::context::ReconcileContext;
use crate::validate::ValidatedJob;

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
        let pod = |id: AttemptId| pod_names::of_attempt(job, id.0, id.1);
        tracing::info!(namespace = %job.namespace, job = %job.name, ?notice, "recorded");
        let task = |index: u32| ledger.task_of(index);
        let Some((type_, reason, note)) = words(notice, pod, task) else {
            continue;
        };
        let (action, attempt) = about(notice, task, pod);
        let note = match notice {
            Notice::Finished(_) => Some(note),
            _ => context.shared.memos.with(&job.uid, |memo| {
                memo.reconcile
                    .events
                    .admit(note, context.shared.clock.ticks())
            }),
        };
        let Some(note) = note else { continue };
        let event = Event {
            type_,
            reason: reason.to_owned(),
            note: Some(note),
            action,
            secondary: attempt.map(|name| reference_to(name, &job.namespace)),
        };
        publish_event(context, &subject(owner), event);
    }
}

/// The key of a job's events. Events of the same type, reason, action and pod within six minutes
/// are merged into one, with the first one's note.
fn about(
    notice: &Notice,
    task_of: impl Fn(u32) -> u32,
    pod: impl Fn(AttemptId) -> String,
) -> (String, Option<String>) {
    let action = "Reconcile".to_owned();
    match notice {
        Notice::Launched { id, .. } | Notice::Killed { id, .. } => (action, Some(pod(*id))),
        Notice::Unrecorded { pod } => (action, Some(pod.clone())),
        Notice::TaskFailed { task } => (format!("{action} task {}", task_of(*task)), None),
        _ => (action, None),
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

/// Publishes one event about a job.
pub fn publish(
    context: &ReconcileContext,
    owner: &DeadlineJob,
    type_: EventType,
    reason: &str,
    note: String,
) {
    publish_about(context, &subject(owner), type_, reason, note);
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
        action: "Reconcile".to_owned(),
        secondary: None,
    };
    publish_event(context, object, event);
}

fn publish_event(context: &ReconcileContext, object: &ObjectReference, event: Event) {
    let note = event.note.map(|note| note.chars().take(1000).collect());
    context.events.push(Event { note, ..event }, object.clone());
}

/// The job, or the batch/v1 Job that it represents.
fn subject(owner: &DeadlineJob) -> ObjectReference {
    let job = adopt::owner(owner).filter(|_| owner.spec.is_companion());
    match job {
        Some(job) => ObjectReference {
            api_version: Some(job.api_version.clone()),
            kind: Some(job.kind.clone()),
            name: Some(job.name.clone()),
            namespace: owner.metadata.namespace.clone(),
            uid: Some(job.uid.clone()),
            ..ObjectReference::default()
        },
        None => owner.object_ref(&()),
    }
}

fn measure(context: &ReconcileContext, notice: &Notice) {
    let metrics = &context.shared.metrics.attempts;
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

/// Where the attempt begins, in percent.
fn begin(launch: &Launch) -> f64 {
    launch.resume.as_ref().map_or(0.0, |point| point.progress) * 100.0
}

/// Reason of the event when `DeadlineFeasible` has turned false.
pub const DEADLINE_INFEASIBLE: &str = "DeadlineInfeasible";

/// Type, reason and note of an event.
type Words = (EventType, &'static str, String);

/// The events for users. First attempts and counted ends are in the status and the metrics, because
/// an event for each of them would cost a write per task.
fn words(
    notice: &Notice,
    pod: impl Fn(AttemptId) -> String,
    task_of: impl Fn(u32) -> u32,
) -> Option<Words> {
    match notice {
        Notice::Launched { id, launch } => launch_words(task_of(id.0), launch, &pod(*id)),
        Notice::Killed { id, kind } => kill_words(task_of(id.0), *kind, &pod(*id)),
        Notice::Granted { .. }
        | Notice::Won { .. }
        | Notice::Counted { .. }
        | Notice::Ending(_) => None,
        Notice::TaskFailed { task } => Some((
            EventType::Warning,
            "TaskFailed",
            format!("task {} failed for good", task_of(*task)),
        )),
        Notice::Finished(conclusion) => Some(end_words(*conclusion)),
        Notice::Unrecorded { pod } => Some((
            EventType::Warning,
            "UnrecordedAttempt",
            format!(
                "pod {pod} carries this job's labels and an attempt number that is not in the ledger; shed \
                 deletes it"
            ),
        )),
    }
}

fn launch_words(task: u32, launch: &Launch, pod: &str) -> Option<Words> {
    let from = begin(launch);
    let note = match launch.reason {
        LaunchReason::Admitted => return None,
        LaunchReason::Straggler {
            pocd_before,
            pocd_after,
        } => format!(
            "clone {pod} of straggling task {task}, from {from:.0} %: PoCD {pocd_before:.3} → {pocd_after:.3}"
        ),
        LaunchReason::Rule { finding, .. } => {
            format!("clone {pod} of task {task}, from {from:.0} %: {finding}")
        }
    };
    Some((EventType::Normal, "CloneLaunched", note))
}

fn kill_words(task: u32, kind: KillKind, pod: &str) -> Option<Words> {
    match kind {
        KillKind::Settle | KillKind::JobEnd | KillKind::Suspend | KillKind::Surplus => None,
        KillKind::Prune => Some((
            EventType::Normal,
            "AttemptPruned",
            format!("{pod}: stopped, because a faster attempt of task {task} continues"),
        )),
        KillKind::Restart => Some((
            EventType::Normal,
            "TaskRestarted",
            format!(
                "{pod}: stopped, because a new attempt of task {task} is expected to finish earlier"
            ),
        )),
        KillKind::Preempt => Some((
            EventType::Normal,
            "AttemptPreempted",
            format!(
                "{pod}: preempted by a more urgent job; task {task} resumes from its checkpoint later"
            ),
        )),
        KillKind::Evict => Some((
            EventType::Normal,
            "CloneEvicted",
            format!("{pod}: stopped, because a first attempt needs its slot"),
        )),
        KillKind::Abandon => Some((
            EventType::Warning,
            "AttemptAbandoned",
            format!("{pod}: its node is unreachable; shed starts another attempt of task {task}"),
        )),
        KillKind::Replace => Some((
            EventType::Warning,
            "AttemptReplaced",
            format!(
                "{pod} could not start; shed retries task {task} later unless another attempt of it runs"
            ),
        )),
    }
}

fn end_words(conclusion: Conclusion) -> Words {
    let (reason, note) = match conclusion {
        Conclusion::Complete => ("Completed", "every task has a winner"),
        Conclusion::SuccessPolicy => (
            "Completed",
            "enough tasks have a winner for spec.successPolicy",
        ),
        Conclusion::TimeLimit => (
            "DeadlineExceeded",
            "not complete when spec.activeDeadlineSeconds had passed",
        ),
        Conclusion::MaxFailedIndexes => (
            "MaxFailedIndexesExceeded",
            "more tasks failed for good than spec.maxFailedIndexes allows",
        ),
        Conclusion::BackoffLimit => (
            "BackoffLimitExceeded",
            "more attempts failed than spec.backoffLimit allows",
        ),
        Conclusion::PodFailurePolicy => (
            "PodFailurePolicy",
            "an attempt failed, and a rule of spec.podFailurePolicy fails the job",
        ),
        Conclusion::DeadlineExceeded => ("DeadlineMissed", "not complete at the deadline"),
        Conclusion::DeadlineInPast => (
            "DeadlineInPast",
            "the deadline had passed when the job was submitted",
        ),
        Conclusion::FailedIndexes => ("FailedIndexes", "some tasks failed for good"),
    };
    let type_ = match conclusion.is_success() {
        true => EventType::Normal,
        false => EventType::Warning,
    };
    (type_, reason, note.to_owned())
}
