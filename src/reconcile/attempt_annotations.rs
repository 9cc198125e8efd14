//! Writes the annotations of running attempts. They are advice to other programs, so a failure harms no pass: a later
//! pass tries again.

use std::time::Duration;

use futures::future::join_all;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use tokio::time::timeout;

use crate::api::{DeadlineJob, Ledger};
use crate::context::attempt_annotations::{AnnotationSettings, DueAnnotations};
use crate::job::disruption_cost::Standing;
use crate::reconcile::context::ReconcileContext;
use crate::reconcile::driver::Pass;
use crate::reconcile::pod_writer::PodWriter;
use crate::reconcile::risk;

/// Writes of one job in one pass.
const WRITES_MAX: usize = 16;

/// A pass waits this long for all of them. A slow webhook must not delay the stop of an attempt.
const TIME_MAX: Duration = Duration::from_secs(1);

/// Annotates the attempts of a job that still runs.
pub(super) async fn write(
    context: &ReconcileContext,
    pass: &Pass,
    ledger: &Ledger,
    recorded: &DeadlineJob,
) {
    let settings = context.annotations.unless_in_template_of(&pass.view.job);
    if settings == AnnotationSettings::default() || ledger.ending.is_some() {
        return;
    }
    let due = due(context, pass, ledger, recorded, settings);
    if due.is_empty() {
        return;
    }
    let api: Api<Pod> = Api::namespaced(context.client.clone(), &pass.view.job.namespace);
    let writer = PodWriter::new(context, &pass.view.job.namespace);
    let calls = due.iter().map(|due| async {
        let answer = writer.annotate(&api, &due.pod, &due.changes).await;
        match answer {
            Ok(()) => note(context, pass, due),
            Err(error) => tracing::debug!(%error, pod = due.pod.name, "a pod can't be annotated"),
        }
    });
    // The ones that are cut short count as tried.
    if timeout(TIME_MAX, join_all(calls)).await.is_err() {
        tracing::debug!(job = %pass.view.job.name, "annotations of pods are answered late");
    }
}

/// The writes of this pass, as far as the budget of all jobs allows them.
fn due(
    context: &ReconcileContext,
    pass: &Pass,
    ledger: &Ledger,
    recorded: &DeadlineJob,
    settings: AnnotationSettings,
) -> Vec<DueAnnotations> {
    let status = recorded.status.as_ref();
    let standing = Standing {
        is_at_risk: status.is_some_and(|status| risk::stated(status).is_some()),
        completion: pass
            .report
            .as_ref()
            .and_then(|report| report.estimated_completion),
        now: pass.view.now,
    };
    let mut wanted = settings.wanted(&pass.facts, pass.report.as_ref(), standing);
    let lives = |&(task, number): &(u32, u32)| {
        let entry = ledger.attempt(task, number);
        entry.is_some_and(|entry| entry.kill.is_none())
    };
    wanted.retain(|(id, _)| lives(id));
    if wanted.is_empty() {
        return Vec::new();
    }
    let (now, ticks) = (pass.view.now, pass.view.ticks);
    context.job_memories.with(&pass.view.job.uid, |memory| {
        let annotated = &mut memory.reconcile.annotated;
        let mut due = annotated.due(&pass.view.pods, wanted, (now, ticks));
        let budget = &context.write_places.annotations;
        let most = due.len().min(WRITES_MAX);
        due.truncate(budget.lock().take_up_to(most, ticks));
        for due in &due {
            annotated.note(due.id, None, ticks);
        }
        due
    })
}

/// The pod carries them.
fn note(context: &ReconcileContext, pass: &Pass, due: &DueAnnotations) {
    context.job_memories.with(&pass.view.job.uid, |memory| {
        let annotated = &mut memory.reconcile.annotated;
        annotated.note(due.id, Some(due.next), pass.view.ticks);
    });
}
