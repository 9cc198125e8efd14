//! Jobs whose reconcile panicked, overran its time or did not end. shed does not reconcile such a
//! job for a while that doubles with each failure. Then it tries once. The ledger holds the
//! quarantine, so that the next leader keeps it too. A failed reconcile counts as a crash of the
//! process: the memory of the job is dropped, and its pods are listed again before any decision.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::runtime::events::EventType;
use shed_core::time::Span;

use crate::api::{self, DeadlineJob, reason};
use crate::clock;
use crate::cluster::Versioned;
use crate::quarantine::{Crash, Failure, Subject, WAIT_LAST, entry, note, uid, wait};
use crate::reconcile::context::ReconcileContext;
use crate::reconcile::queue::Wake;
use crate::reconcile::{Error, events, mirror, pod_writer, record};

/// The next wake of a quarantined job, which is not reconciled before. None if the job may be
/// reconciled.
pub(super) async fn hold(
    context: &ReconcileContext,
    watched: &Arc<DeadlineJob>,
) -> Result<Option<Wake>, Error> {
    let owner = context.job_memories.newest(watched);
    let (uid, now) = (uid(&owner), context.clock.now());
    let ticks = context.clock.ticks();
    let unwritten = context.job_memories.with(&uid, |memory| {
        // A quarantine that could not be written by then is like a crash without a record.
        let unwritten = memory.planned.quarantine.unwritten.as_ref();
        if unwritten.is_some_and(|(_, _, until)| *until <= ticks) {
            memory.planned.quarantine.unwritten = None;
        }
        memory.planned.quarantine.unwritten.clone()
    });
    if let Some((job, crash, _)) = unwritten {
        context.plan_slices.abandon(&uid);
        return write(context, &job, &crash).await.map(Some);
    }
    let Some(entry) = entry(&owner) else {
        return Ok(None);
    };
    // The process that found this one out has ended.
    if entry.reason == reason::RECONCILE_STUCK && announce(context, &owner).await {
        context.count_crash(Failure::Stuck);
    }
    let left = entry.until.since(now);
    // A clock that was far ahead when that was noted must not hold the job for days.
    let longest = Span(wait(entry.count).0 + WAIT_LAST.0);
    if left.0 <= 0 || left > longest {
        return Ok(None);
    }
    context.plan_slices.abandon(&uid);
    Ok(Some(Wake::requeue(clock::duration(left))))
}

/// Quarantines a job for its failed reconcile.
pub(super) async fn impose(
    context: &ReconcileContext,
    owner: &DeadlineJob,
    crash: &Crash,
) -> Result<Wake, Error> {
    context.accuse(owner, crash);
    write(context, &Subject::of(owner), crash).await
}

async fn write(context: &ReconcileContext, job: &Subject, crash: &Crash) -> Result<Wake, Error> {
    let seen = context.stores.newest_version(Versioned::DeadlineJobs);
    pod_writer::count(&context.metrics, "job_status");
    let written = note::put(&context.client, job, crash, context.clock.now()).await;
    let Some(written) = written.map_err(Error::Quarantine)? else {
        // The job is gone, or a newer operator has its ledger.
        context.job_memories.forget(&job.uid);
        return Ok(Wake::await_change());
    };
    let written = take_in(context, seen, written);
    announce(context, &written).await;
    let count = entry(&written).map_or(job.crashes + 1, |entry| entry.count);
    Ok(Wake::requeue(clock::duration(wait(count))))
}

/// Ends the quarantine of a job after a successful reconcile.
pub(super) async fn lift(
    context: &ReconcileContext,
    watched: &Arc<DeadlineJob>,
) -> Result<(), Error> {
    let owner = context.job_memories.newest(watched);
    if entry(&owner).is_none() {
        return Ok(());
    }
    let job = Subject::of(&owner);
    let seen = context.stores.newest_version(Versioned::DeadlineJobs);
    pod_writer::count(&context.metrics, "job_status");
    let written = note::lift(&context.client, &job, context.clock.now()).await;
    if let Some(written) = written.map_err(Error::Quarantine)? {
        take_in(context, seen, written);
        let (namespace, name) = (&job.namespace, &job.name);
        tracing::info!(namespace, job = name, "the job is not quarantined any more");
    }
    Ok(())
}

/// Takes note of an own write.
fn take_in(context: &ReconcileContext, seen: u64, written: DeadlineJob) -> Arc<DeadlineJob> {
    record::note_answer(context, seen, &written.metadata);
    let written = Arc::new(written);
    context.job_memories.with(&uid(&written), |memory| {
        memory.planned.quarantine.unwritten = None;
        memory.planned.newest(&written);
    });
    context.stores.changed.notify_one();
    written
}

/// Announces a quarantine by an event and on the batch/v1 Job that the job represents. False if
/// this process has announced it before.
async fn announce(context: &ReconcileContext, job: &DeadlineJob) -> bool {
    let Some((entry, condition)) = entry(job).zip(condition(job)) else {
        return false;
    };
    let before = context.job_memories.with(&uid(job), |memory| {
        std::mem::replace(&mut memory.planned.quarantine.announced, entry.count)
    });
    if before == entry.count {
        return false;
    }
    let (reason, note) = (&condition.reason, condition.message.clone());
    events::publish(context, job, EventType::Warning, reason, note);
    mirror::show(context, job, condition).await;
    true
}

fn condition(job: &DeadlineJob) -> Option<&Condition> {
    let mut conditions = job.status.as_ref()?.conditions.iter();
    conditions.find(|condition| condition.type_ == api::QUARANTINED)
}
