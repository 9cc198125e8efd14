//! Jobs that have nothing to do for now. shed keeps only their skeleton. When one has work, the job
//! is read once and reconciled like any other. It is not kept afterwards.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use kube::Resource;
use kube::api::{Api, ObjectMeta};

use crate::adopt::{self, BatchRest, Loan, WatchedBatchJob};
use crate::api::DeadlineJob;
use crate::clock;
use crate::cluster::identity::Owner;
use crate::cluster::pod::PodFacts;
use crate::cluster::{Crowded, JobObject, Kind, Rest, Skeleton, WatchedJob};
use crate::fair_places::Place;
use crate::job::facts::CREATION_SEEN_WITHIN;
use crate::reconcile::context::ReconcileContext;
use crate::reconcile::queue::Wake;
use crate::reconcile::{Error, driver, record, slack_class};

/// Until a place for an object that may be large is looked for again.
const PLACE_WAIT: Duration = Duration::from_millis(250);
/// Until the memory budget is asked again.
const MEMORY_WAIT: Duration = Duration::from_secs(5);

/// Reconciles a job by `work`, if it has something to do.
pub(super) async fn reconcile_by<F>(
    watched: Arc<WatchedJob>,
    context: Arc<ReconcileContext>,
    work: impl FnOnce(Arc<DeadlineJob>, Arc<ReconcileContext>) -> F,
) -> Result<Wake, Error>
where
    F: Future<Output = Result<Wake, Error>> + Send + 'static,
{
    match &*watched {
        WatchedJob::Live(job, _) => match skeleton_of_job(&context, &job.metadata).as_deref() {
            None => driver::reconcile_by(Arc::clone(job), context, work).await,
            // Its companion is looked at once the memory budget admits it.
            Some(WatchedBatchJob::Skeleton(_, BatchRest::Oversized(_) | BatchRest::Crowded(_))) => {
                Ok(Wake::await_change())
            }
            Some(_) => {
                let Some(_loan) = borrow(&context, &job.metadata).await? else {
                    return Ok(Wake::requeue(PLACE_WAIT));
                };
                driver::reconcile_by(Arc::clone(job), Arc::clone(&context), work).await
            }
        },
        WatchedJob::Skeleton(skeleton) => match &skeleton.rest {
            Rest::Crowded(crowded) => await_memory(skeleton, crowded, context, work).await,
            _ => visit(skeleton, context, work).await,
        },
    }
}

/// Reads a job once the memory budget admits it. Until then its status reports why it waits.
async fn await_memory<F>(
    skeleton: &Skeleton,
    crowded: &Crowded,
    context: Arc<ReconcileContext>,
    work: impl FnOnce(Arc<DeadlineJob>, Arc<ReconcileContext>) -> F,
) -> Result<Wake, Error>
where
    F: Future<Output = Result<Wake, Error>> + Send + 'static,
{
    let (metadata, stores) = (&skeleton.metadata, &context.stores);
    if metadata.deletion_timestamp.is_some() || !stores.is_ready() {
        return Ok(Wake::await_change());
    }
    // It was admitted, and the watch has not shown it since.
    if let Some(job) = stores.jobs.live_job(uid(skeleton)) {
        return driver::reconcile_by(job, Arc::clone(&context), work).await;
    }
    if !stores.jobs.reserve(Kind::Deadline, metadata, crowded.bytes) {
        let is_reported =
            crowded.is_reported || report_crowded(&context, skeleton, crowded).await?;
        let wait = if is_reported { MEMORY_WAIT } else { PLACE_WAIT };
        return Ok(Wake::requeue(wait));
    }
    let namespace = metadata.namespace.as_deref().unwrap_or_default();
    let api: Api<JobObject> = Api::namespaced(context.client.clone(), namespace);
    let job = api
        .get_opt(metadata.name.as_deref().unwrap_or_default())
        .await;
    let job = job.map(|job| job.filter(|job| job.meta().uid == metadata.uid));
    if let Ok(Some(job)) = &job
        && let Some(job) = stores.jobs.admit(job.clone())
    {
        stores.changed.notify_one();
        return driver::reconcile_by(job, Arc::clone(&context), work).await;
    }
    stores.jobs.give_back(Kind::Deadline, metadata);
    job.map_err(Error::Read)?;
    Ok(Wake::requeue(MEMORY_WAIT))
}

/// Reports why a job waits, once for each version. False if no place is free for a read of its status.
async fn report_crowded(
    context: &ReconcileContext,
    skeleton: &Skeleton,
    crowded: &Crowded,
) -> Result<bool, Error> {
    let (metadata, job_memories) = (&skeleton.metadata, &context.job_memories);
    let (uid, version) = (Arc::from(uid(skeleton)), Some(skeleton.version));
    if job_memories.with(&uid, |memory| memory.reconcile.reported_crowded == version) {
        return Ok(true);
    }
    let namespace = metadata.namespace.as_deref().unwrap_or_default();
    let reported = match &crowded.status {
        Some(status) => record::report_crowded(context, metadata, crowded.spec_bytes, status).await,
        None => {
            let Some(_place) = context.stores.jobs.whole_place(&namespace.into()) else {
                return Ok(false);
            };
            let api: Api<DeadlineJob> = Api::namespaced(context.client.clone(), namespace);
            let name = metadata.name.as_deref().unwrap_or_default();
            let job = api.get_opt(name).await.map_err(Error::Read)?;
            let Some(job) = job.filter(|job| job.metadata.uid == metadata.uid) else {
                return Ok(true);
            };
            let status = job.status.unwrap_or_default();
            record::report_crowded(context, &job.metadata, crowded.spec_bytes, &status).await
        }
    };
    match reported {
        // The watch will show a newer version.
        Ok(()) | Err(Error::Conflict) => {}
        Err(error) => return Err(error),
    }
    job_memories.with(&uid, |memory| memory.reconcile.reported_crowded = version);
    Ok(true)
}

/// The skeleton of the Job that shed runs and that this companion represents, if no more of it is kept.
fn skeleton_of_job(
    context: &ReconcileContext,
    companion: &ObjectMeta,
) -> Option<Arc<WatchedBatchJob>> {
    let job = context.stores.jobs.batch()?.present(companion)?;
    (job.is_ours() && job.whole().is_none()).then_some(job)
}

/// A place for a large object, and a loan of the Job if this is a companion that lacks it. None if no place is free.
async fn borrow<'a>(
    context: &'a ReconcileContext,
    job: &ObjectMeta,
) -> Result<Option<(Place<Arc<str>>, Option<Loan<'a>>)>, Error> {
    let stores = &context.stores;
    let namespace = job.namespace.as_deref().unwrap_or_default();
    let Some(place) = stores.jobs.whole_place(&namespace.into()) else {
        return Ok(None);
    };
    let owner = adopt::controller(job).filter(|_| skeleton_of_job(context, job).is_some());
    let Some((owner, jobs)) = owner.zip(stores.jobs.batch()) else {
        return Ok(Some((place, None)));
    };
    let api: Api<Job> = Api::namespaced(context.client.clone(), namespace);
    let whole = api.get_opt(&owner.name).await.map_err(Error::Read)?;
    let whole = whole.filter(|whole| whole.metadata.uid.as_ref() == Some(&owner.uid));
    Ok(Some((place, whole.map(|whole| jobs.lend(whole)))))
}

async fn visit<F>(
    skeleton: &Skeleton,
    context: Arc<ReconcileContext>,
    work: impl FnOnce(Arc<DeadlineJob>, Arc<ReconcileContext>) -> F,
) -> Result<Wake, Error>
where
    F: Future<Output = Result<Wake, Error>> + Send + 'static,
{
    let metadata = &skeleton.metadata;
    let is_leaving = metadata.deletion_timestamp.is_some();
    if is_leaving || !context.stores.is_ready() {
        return Ok(Wake::await_change());
    }
    if skeleton.rest == Rest::Foreign {
        context.job_memories.settle(uid(skeleton), skeleton.version);
        return Ok(Wake::await_change());
    }
    let open = open_attempts(&context, skeleton);
    if has_work(&context, skeleton, &open) {
        return wake_up(skeleton, context, work).await;
    }
    if !open.is_empty() {
        // The watch will show that they were let go. If it does not, they are let go again.
        return Ok(Wake::requeue(clock::duration(CREATION_SEEN_WITHIN)));
    }
    context.job_memories.settle(uid(skeleton), skeleton.version);
    // A slice from before the job's rest would delay the next pass.
    context.plan_slices.abandon(uid(skeleton));
    let now = context.clock.now();
    let next = match &skeleton.rest {
        Rest::Finished(finished) => finished.expiry,
        Rest::Suspended { due, .. } => *due,
        _ => None,
    };
    let class = match &skeleton.rest {
        Rest::Suspended { due, .. } => slack_class::renew(&context, skeleton, *due).await,
        _ => None,
    };
    match next {
        Some(at) if at > now => {
            let at = class.map_or(at, |class| class.min(at));
            Ok(Wake::requeue(clock::duration(at.since(now))))
        }
        // A deadline that has come is work, so this is the end of a job's time to live.
        Some(_) => driver::delete_job(&context, metadata).await,
        None => Ok(Wake::await_change()),
    }
}

fn uid(skeleton: &Skeleton) -> &str {
    skeleton.metadata.uid.as_deref().unwrap_or_default()
}

/// Attempts of the job that have not ended or that a finalizer holds.
fn open_attempts(context: &ReconcileContext, skeleton: &Skeleton) -> Vec<Arc<PodFacts>> {
    let owner = Owner::of(&skeleton.metadata);
    context.stores.pods.open_attempts(&owner)
}

/// Whether pods of the job are left that have not ended, or were not let go.
fn has_open_pods(context: &ReconcileContext, job: &ObjectMeta, open: &[Arc<PodFacts>]) -> bool {
    let (shared, uid) = (&context.shared, job.uid.as_deref().unwrap_or_default());
    let ticks = shared.clock.ticks();
    !shared.job_memories.has_released(uid, open, ticks)
        || shared.stores.pods.has_other_pods(&Owner::of(job), uid)
}

/// Whether a job must be reconciled as a whole.
fn has_work(context: &ReconcileContext, skeleton: &Skeleton, open: &[Arc<PodFacts>]) -> bool {
    let has_open_pods = || has_open_pods(context, &skeleton.metadata, open);
    let is_owed = || context.job_memories.is_owed(uid(skeleton));
    match &skeleton.rest {
        Rest::Foreign | Rest::Crowded(_) => false,
        Rest::Finished(_) => is_owed() || has_open_pods() || is_unmirrored(context, skeleton),
        Rest::Suspended { due, .. } => {
            let is_due = due.is_some_and(|due| due <= context.clock.now());
            is_due || is_owed() || has_open_pods() || is_resumed(context, skeleton)
        }
        Rest::Oversized { refusal } => refusal.is_some(),
    }
}

/// Whether the batch/v1 Job that a suspended job represents may have been resumed, does not report its suspension, or no
/// longer owns it.
fn is_resumed(context: &ReconcileContext, skeleton: &Skeleton) -> bool {
    is_unmirrored_by(context, skeleton, |job| job.whole().is_some())
}

/// Whether the batch/v1 Job that a job represents does not have its final status yet, or no longer
/// owns it.
fn is_unmirrored(context: &ReconcileContext, skeleton: &Skeleton) -> bool {
    is_unmirrored_by(context, skeleton, |job| {
        job.open().is_some_and(|job| !adopt::is_finished(job))
    })
}

fn is_unmirrored_by(
    context: &ReconcileContext,
    skeleton: &Skeleton,
    differs: impl FnOnce(&WatchedBatchJob) -> bool,
) -> bool {
    if !skeleton.is_companion {
        return false;
    }
    let jobs = context.stores.jobs.batch();
    let owner = jobs.and_then(|jobs| jobs.present(&skeleton.metadata));
    match owner.filter(|job| job.is_ours()) {
        Some(job) => differs(&job),
        None => adopt::controller(&skeleton.metadata).is_none(),
    }
}

/// Writes what is known without a read, or reads the job and reconciles it.
async fn wake_up<F>(
    skeleton: &Skeleton,
    context: Arc<ReconcileContext>,
    work: impl FnOnce(Arc<DeadlineJob>, Arc<ReconcileContext>) -> F,
) -> Result<Wake, Error>
where
    F: Future<Output = Result<Wake, Error>> + Send + 'static,
{
    if let Rest::Oversized {
        refusal: Some(refusal),
    } = &skeleton.rest
        && record::refuse_unread(&context, &skeleton.metadata, refusal).await?
    {
        context.job_memories.settle(uid(skeleton), skeleton.version);
        return Ok(Wake::await_change());
    }
    let metadata = &skeleton.metadata;
    let is_large = matches!(skeleton.rest, Rest::Oversized { .. });
    let _loan = match is_large || skeleton_of_job(&context, metadata).is_some() {
        true => match borrow(&context, metadata).await? {
            Some(loan) => Some(loan),
            None => return Ok(Wake::requeue(PLACE_WAIT)),
        },
        false => None,
    };
    let namespace = metadata.namespace.as_deref().unwrap_or_default();
    let api: Api<DeadlineJob> = Api::namespaced(context.client.clone(), namespace);
    let name = metadata.name.as_deref().unwrap_or_default();
    let job = api.get_opt(name).await.map_err(Error::Read)?;
    let Some(job) = job.filter(|job| job.metadata.uid == metadata.uid) else {
        // The watch will show that.
        return Ok(Wake::await_change());
    };
    let wake = driver::reconcile_by(Arc::new(job), Arc::clone(&context), work).await?;
    context.job_memories.settle(uid(skeleton), skeleton.version);
    Ok(wake)
}

#[cfg(test)]
mod tests;
