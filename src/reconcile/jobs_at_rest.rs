//! Jobs that have nothing to do for now. shed keeps only their skeleton. When one has work, the job
//! is read once and reconciled like any other. It is not kept afterwards.

use std::sync::Arc;
use std::time::Duration;

use kube::api::Api;

use crate::adopt;
use crate::api::DeadlineJob;
use crate::clock;
use crate::cluster::identity::Owner;
use crate::cluster::pod::PodFacts;
use crate::cluster::{Rest, Skeleton, WatchedJob};
use crate::job::facts::CREATION_SEEN_WITHIN;
use crate::reconcile::context::ReconcileContext;
use crate::reconcile::queue::Wake;
use crate::reconcile::{Error, driver, job_status, record};

/// Until a place for an object that may be large is looked for again.
const PLACE_WAIT: Duration = Duration::from_millis(250);

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
        WatchedJob::Live(job, _) => driver::reconcile_by(Arc::clone(job), context, work).await,
        WatchedJob::Skeleton(skeleton) => visit(skeleton, context, work).await,
    }
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
    if is_leaving || !context.shared.stores.is_ready() {
        return Ok(Wake::await_change());
    }
    if skeleton.rest == Rest::Foreign {
        context.shared.memos.settle(uid(skeleton), skeleton.version);
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
    context.shared.memos.settle(uid(skeleton), skeleton.version);
    // A slice from before the job's rest would delay the next pass.
    context.shared.board.abandon(uid(skeleton));
    let now = context.shared.clock.now();
    let next = match &skeleton.rest {
        Rest::Finished(finished) => finished.expiry,
        Rest::Suspended { due } => *due,
        Rest::Foreign | Rest::Oversized { .. } => None,
    };
    match next {
        Some(at) if at > now => Ok(Wake::requeue(clock::duration(at.since(now)))),
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
    context.shared.stores.open_attempts(&owner)
}

/// Whether a job must be reconciled as a whole.
fn has_work(context: &ReconcileContext, skeleton: &Skeleton, open: &[Arc<PodFacts>]) -> bool {
    let has_open_pods = || {
        let (shared, uid) = (&context.shared, uid(skeleton));
        let owner = Owner::of(&skeleton.metadata);
        !shared.memos.has_released(uid, open, shared.clock.ticks())
            || shared.stores.has_other_pods(&owner, uid)
    };
    let is_owed = || context.shared.memos.is_owed(uid(skeleton));
    match &skeleton.rest {
        Rest::Foreign => false,
        Rest::Finished(_) => is_owed() || has_open_pods() || is_unmirrored(context, skeleton),
        Rest::Suspended { due } => {
            let now = context.shared.clock.now();
            is_owed() || has_open_pods() || due.is_some_and(|due| due <= now)
        }
        Rest::Oversized { refusal } => refusal.is_some(),
    }
}

/// Whether the batch/v1 Job that a job represents does not have its final status yet, or no longer
/// owns it.
fn is_unmirrored(context: &ReconcileContext, skeleton: &Skeleton) -> bool {
    if !skeleton.is_companion {
        return false;
    }
    let jobs = context.shared.stores.batch();
    let owner = jobs.and_then(|jobs| jobs.owner(&skeleton.metadata));
    match owner {
        Some(job) => !job_status::is_finished(&job),
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
        context.shared.memos.settle(uid(skeleton), skeleton.version);
        return Ok(Wake::await_change());
    }
    let is_large = matches!(skeleton.rest, Rest::Oversized { .. });
    let place = context.shared.stores.whole_place().filter(|_| is_large);
    if is_large && place.is_none() {
        return Ok(Wake::requeue(PLACE_WAIT));
    }
    let metadata = &skeleton.metadata;
    let namespace = metadata.namespace.as_deref().unwrap_or_default();
    let api: Api<DeadlineJob> = Api::namespaced(context.client.clone(), namespace);
    let name = metadata.name.as_deref().unwrap_or_default();
    let job = api.get_opt(name).await.map_err(Error::Read)?;
    let Some(job) = job.filter(|job| job.metadata.uid == metadata.uid) else {
        // The watch will show that.
        return Ok(Wake::await_change());
    };
    let wake = driver::reconcile_by(Arc::new(job), Arc::clone(&context), work).await?;
    context.shared.memos.settle(uid(skeleton), skeleton.version);
    Ok(wake)
}

#[cfg(test)]
mod tests;
