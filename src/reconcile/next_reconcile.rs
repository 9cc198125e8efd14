//! When a job is reconciled again although nothing happens: the only place that turns an outcome
//! into a wake.

use std::sync::Arc;
use std::time::Duration;

use kube::Resource;
use shed_core::settle::settle_wake;
use shed_core::time::{Instant, Span};

use crate::api::{DeadlineJob, DeadlineJobStatus, Ledger};
use crate::clock;
use crate::context::spacing::{FIGURES_WAIT, STATUS_PERIOD};
use crate::reconcile::context::ReconcileContext;
use crate::reconcile::deadline::Case;
use crate::reconcile::driver::{Pass, creations_wait};
use crate::reconcile::queue::Wake;
use crate::reconcile::record::ready;
use crate::reconcile::step::Step;
use crate::reconcile::{Error, count_error};
use crate::validate;

/// The shortest wait.
const WAIT_MIN: Duration = Duration::from_millis(10);
/// Wait after a failed write; conflicts are tried again at once, with the newer view.
const ERROR_WAIT: Duration = Duration::from_secs(2);
const CONFLICT_WAIT: Duration = Duration::from_millis(50);
/// Wait before shed repeats a write that was refused for its size. A change of the job ends the wait.
const TOO_LARGE_WAIT: Duration = Duration::from_secs(60);

/// While tasks are divided, interval of the check whether an attempt has passed its segment's end.
const PARTS_PERIOD: Span = Span::from_seconds(1);

/// After a reconcile that went well.
pub(super) fn after(
    context: &ReconcileContext,
    pass: &Pass,
    step: &Step,
    recorded: &DeadlineJob,
) -> Wake {
    let (job, ledger, now) = (&pass.view.job, &step.ledger, pass.view.now);
    let next = if ledger.finished {
        validate::expiry(job.ttl, ledger)
    } else {
        let period = status_period(context, pass, ledger, recorded);
        let status = (!ledger.tasks.is_empty()).then(|| now.plus(period));
        let (clock, shown) = (&context.clock, recorded.status.as_ref());
        let deadline = Case::after(&pass.view, step).next_look(clock, shown, now);
        let settled = settle_wake(now, &pass.facts);
        let waits = context
            .job_memories
            .with(&job.uid, |memory| memory.reconcile.waiting.look_at);
        let waits = waits.map(|at| clock.at(at).max(now.plus(Span::from_seconds(1))));
        let all = settled.into_iter().chain(status).chain(deadline);
        let creations = creations_wait(context, &job.uid).filter(|_| !step.creates.is_empty());
        let creations = creations.map(|at| clock.at(at));
        all.chain(waits).chain(creations).min()
    };
    next.map_or_else(Wake::await_change, |next| {
        Wake::requeue(clock::duration(next.since(now)).max(WAIT_MIN))
    })
}

/// How soon the status is looked at again though nothing happens.
fn status_period(
    context: &ReconcileContext,
    pass: &Pass,
    ledger: &Ledger,
    recorded: &DeadlineJob,
) -> Span {
    let status = recorded.status.as_ref();
    let is_pending = status.is_some_and(DeadlineJobStatus::is_pending);
    let is_placed = pass.view.pods.values().any(|pod| pod.node.is_some());
    let shown = status.map(|status| usize::try_from(status.ready));
    let is_unready = ledger.ending.is_none() && shown != Some(Ok(ready(&pass.view.pods)));
    if !ledger.segments.is_empty() {
        PARTS_PERIOD
    } else if (is_pending && is_placed) || is_unready {
        // That is not written yet.
        let job_memories = &context.job_memories;
        let last = job_memories.with(&pass.view.job.uid, |memory| memory.reconcile.last_write);
        let since = last.map_or(FIGURES_WAIT, |last| pass.view.ticks.since(last.at));
        Span(FIGURES_WAIT.0 - since.0).clamp(Span::from_seconds(1), FIGURES_WAIT)
    } else {
        STATUS_PERIOD
    }
}

/// At an instant of the process's own clock.
pub(super) fn at(context: &ReconcileContext, until: Instant) -> Wake {
    Wake::requeue(clock::duration(until.since(context.clock.ticks())).max(WAIT_MIN))
}

/// After a reconcile that failed.
pub fn after_error<K>(job: Arc<K>, error: &Error, context: Arc<ReconcileContext>) -> Wake
where
    K: Resource<DynamicType = ()>,
{
    count_error(&context, error);
    let metadata = job.meta();
    let name = metadata.name.as_deref().unwrap_or_default();
    let namespace = metadata.namespace.as_deref().unwrap_or_default();
    match error {
        Error::Conflict => Wake::requeue(CONFLICT_WAIT),
        // A watch that lags must not make it a loop.
        Error::Gone => Wake::requeue(ERROR_WAIT),
        Error::Create(_) => {
            tracing::warn!(%error, namespace, job = name, "a pod can't be created, trying again");
            let uid: Arc<str> = metadata.uid.as_deref().unwrap_or_default().into();
            let until = creations_wait(&context, &uid);
            let wait = until.map(|until| clock::duration(until.since(context.clock.ticks())));
            Wake::requeue(wait.unwrap_or(ERROR_WAIT))
        }
        Error::TooLarge(_) => {
            tracing::warn!(%error, namespace, job = name, "reconcile failed, trying again later");
            Wake::requeue(TOO_LARGE_WAIT)
        }
        error => {
            tracing::warn!(%error, namespace, job = name, "reconcile failed, trying again");
            Wake::requeue(ERROR_WAIT)
        }
    }
}
