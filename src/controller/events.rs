//! Events for users, log lines and metrics of what a step did, once it is recorded.

use kube::Resource;
use kube::runtime::events::{Event, EventType};
use shed_core::plan::{Launch, LaunchReason};
use shed_core::snapshot::{AttemptKind, Conclusion, KillKind};

use super::build;
use super::step::Notice;
use crate::api::DeadlineJob;
use crate::context::Context;
use crate::metrics::{Ended, Kind, WON};
use crate::observe::job::AttemptId;
use crate::validate::ValidatedJob;

/// Announces what a recorded step did. A lost event is no reason to repeat a step.
pub async fn announce(
    context: &Context,
    owner: &DeadlineJob,
    job: &ValidatedJob,
    notices: &[Notice],
) {
    for notice in notices {
        measure(context, notice);
        let pod = |id: AttemptId| build::pod_name(&job.name, &job.uid, id.0, id.1);
        tracing::info!(namespace = %job.namespace, job = %job.name, ?notice, "recorded");
        let Some((type_, reason, note)) = words(notice, pod) else {
            continue;
        };
        publish(context, owner, type_, reason, note).await;
    }
}

/// Publishes one event about a job.
pub async fn publish(
    context: &Context,
    owner: &DeadlineJob,
    type_: EventType,
    reason: &str,
    note: String,
) {
    let event = Event {
        type_,
        reason: reason.to_owned(),
        note: Some(note.chars().take(1000).collect()),
        action: "Reconcile".to_owned(),
        secondary: None,
    };
    let reference = owner.object_ref(&());
    if let Err(error) = context.recorder.publish(&event, &reference).await {
        tracing::debug!(%error, "event");
    }
}

fn measure(context: &Context, notice: &Notice) {
    let metrics = &context.metrics;
    match notice {
        Notice::Launched { launch, .. } => {
            let kind = launch.kind.label();
            metrics.launched.get_or_create(&Kind { kind }).inc();
        }
        Notice::Killed { kind, .. } => {
            let kind = kind.label();
            metrics.kills.get_or_create(&Kind { kind }).inc();
        }
        Notice::Won { kind, .. } => {
            let ended = Ended {
                kind: kind.label(),
                outcome: WON,
            };
            metrics.ended.get_or_create(&ended).inc();
            if *kind == AttemptKind::Clone {
                metrics.clone_wins.inc();
            }
        }
        Notice::Counted { outcome, kind, .. } => {
            let ended = Ended {
                kind: kind.label(),
                outcome: outcome.label(),
            };
            metrics.ended.get_or_create(&ended).inc();
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

/// What users are told; first attempts and counted ends are in the status and the metrics, and
/// an event for each of them would cost a write per task.
fn words(
    notice: &Notice,
    pod: impl Fn(AttemptId) -> String,
) -> Option<(EventType, &'static str, String)> {
    let normal = EventType::Normal;
    Some(match notice {
        Notice::Launched { id, launch } => match launch.reason {
            LaunchReason::Admitted => return None,
            LaunchReason::Straggler {
                pocd_before,
                pocd_after,
            } => {
                let note = format!(
                    "clone {} of straggling task {}, from {:.0} %: PoCD {pocd_before:.3} → {pocd_after:.3}",
                    pod(*id),
                    id.0,
                    begin(launch)
                );
                (normal, "CloneLaunched", note)
            }
            LaunchReason::Rule { finding, .. } => {
                let note = format!(
                    "clone {} of task {}, from {:.0} %: {finding}",
                    pod(*id),
                    id.0,
                    begin(launch)
                );
                (normal, "CloneLaunched", note)
            }
        },
        Notice::Killed { id, kind } => match kind {
            KillKind::Settle | KillKind::JobEnd | KillKind::Suspend => return None,
            KillKind::Prune => (
                normal,
                "AttemptPruned",
                format!("{}: a faster attempt of task {} is kept", pod(*id), id.0),
            ),
            KillKind::Evict => (
                normal,
                "CloneEvicted",
                format!("{}: a first attempt needs the room", pod(*id)),
            ),
            KillKind::Replace => (
                EventType::Warning,
                "AttemptReplaced",
                format!("{} could not start; it is launched again later", pod(*id)),
            ),
        },
        Notice::Won { .. } | Notice::Counted { .. } => return None,
        Notice::TaskFailed { task } => (
            EventType::Warning,
            "TaskFailed",
            format!("task {task} failed more often than spec.backoffLimitPerIndex allows"),
        ),
        Notice::Ending(_) => return None,
        Notice::Finished(conclusion) => match conclusion {
            Conclusion::Complete => (normal, "Completed", "every task has a winner".to_owned()),
            Conclusion::DeadlineExceeded => (
                EventType::Warning,
                "DeadlineExceeded",
                "not complete at the deadline".to_owned(),
            ),
            Conclusion::DeadlineInPast => (
                EventType::Warning,
                "DeadlineInPast",
                "the deadline had passed when the job was submitted".to_owned(),
            ),
            Conclusion::FailedIndexes => (
                EventType::Warning,
                "FailedIndexes",
                "some tasks failed for good".to_owned(),
            ),
        },
        Notice::Unrecorded { pod } => (
            EventType::Warning,
            "UnrecordedAttempt",
            format!(
                "pod {pod} carries this job's labels and a number that was never given out; it is deleted"
            ),
        ),
    })
}
