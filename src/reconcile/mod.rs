//! One job at a time: validate → observe → step → record → announce → carry out → wake. The
//! driver reads as its steps; only those marked (client) talk to the apiserver.

mod attempt_annotations;
mod backoff;
pub mod blocked_jobs;
pub mod companion_failures;
pub mod companions;
mod condition_events;
pub mod context;
mod deadline;
pub mod disowned_pods;
mod driver;
pub mod event_queue;
pub mod events;
mod fence;
pub mod job_status;
mod jobs_at_rest;
mod kubelet_obstacles;
pub mod kueue_discovery;
mod live_read;
mod mirror;
#[cfg(test)]
pub(crate) mod mock;
pub mod namespace_settings;
mod next_reconcile;
pub mod orphans;
pub mod overload;
mod periodic_checks;
mod pod_adoption;
pub mod pod_writer;
pub mod quarantine;
pub(crate) mod queue;
mod range;
mod record;
mod refused_writes;
mod reserved_keys;
mod risk;
mod slack_class;
mod slot_time;
pub mod status;
pub mod step;
pub mod unadopted_jobs;
pub mod unanswered_writes;
pub mod undecodable_jobs;
mod volumes;
pub mod watch_only;
pub mod write_places;

use std::sync::Arc;
use std::time::Duration;

use futures::stream;
use futures::{Stream, StreamExt};
use kube::runtime::reflector::ObjectRef;
use kube::runtime::scheduler::{ScheduleRequest, scheduler};
use shed_core::time::Instant;
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;

use crate::api::DeadlineJob;
use crate::clock;
use crate::cluster::WatchedJob;
use crate::context::spacing::MERGE_WAIT;
use crate::reconcile::context::ReconcileContext;
use crate::reconcile::queue::{News, Wake};
use crate::reconcile::write_places::LaunchPlace;

/// Jobs that are reconciled at once, shared by namespace; the same job never is. Launches take a part of these places
/// only ([`write_places::LAUNCHES_AT_ONCE`]), so a pass that stops something never waits for launches.
pub const PASSES_AT_ONCE: usize = 32;

/// Jobs that something happened to.
pub type TouchedJobs = mpsc::UnboundedReceiver<ObjectRef<DeadlineJob>>;

/// Reconciles every job that `touched` names, and soon every one that `status_only` names, without end.
pub async fn run(context: Arc<ReconcileContext>, touched: TouchedJobs, status_only: TouchedJobs) {
    run_by(context, touched, status_only, driver::work).await;
}

/// The jobs to reconcile, each once and at its earliest time.
fn due_jobs(
    touched: TouchedJobs,
    status_only: TouchedJobs,
) -> impl Stream<Item = ObjectRef<DeadlineJob>> {
    let after = |wait| {
        move |message| ScheduleRequest {
            message,
            run_at: tokio::time::Instant::now() + wait,
        }
    };
    let touched = UnboundedReceiverStream::new(touched).map(after(Duration::ZERO));
    let status_only =
        UnboundedReceiverStream::new(status_only).map(after(clock::duration(MERGE_WAIT)));
    scheduler(stream::select(touched, status_only))
}

async fn run_by<F>(
    context: Arc<ReconcileContext>,
    touched: TouchedJobs,
    status_only: TouchedJobs,
    work: impl Fn(Arc<DeadlineJob>, Arc<ReconcileContext>, Option<LaunchPlace>) -> F + Copy,
) where
    F: Future<Output = Result<Wake, Error>> + Send + 'static,
{
    // Without a limit here: passes wait for a place of their namespace.
    queue::run(due_jobs(touched, status_only), |job, news| {
        reconcile_in_turn(Arc::clone(&context), job.clone(), news, work)
    })
    .await;
}

/// Reconciles a job until none of its launches waits for a turn. Passes that news or the time ask for come before the
/// turn, and the job keeps its place in the queue meanwhile.
async fn reconcile_in_turn<F>(
    context: Arc<ReconcileContext>,
    job: ObjectRef<DeadlineJob>,
    news: News,
    work: impl Fn(Arc<DeadlineJob>, Arc<ReconcileContext>, Option<LaunchPlace>) -> F + Copy,
) -> Wake
where
    F: Future<Output = Result<Wake, Error>> + Send + 'static,
{
    let namespace: Arc<str> = job.namespace.as_deref().unwrap_or_default().into();
    let launches = &context.write_places.launches;
    let (mut queued, mut place) = (None, None);
    loop {
        let Some(watched) = context.stores.jobs.store.get(&WatchedJob::reference(&job)) else {
            return Wake::await_change();
        };
        let turn = place.take();
        let work = |watched, context| work(watched, context, turn);
        let reconcile = jobs_at_rest::reconcile_by(watched.clone(), Arc::clone(&context), work);
        // A failure was counted and logged where it happened.
        let after_error =
            |error| next_reconcile::after_error(watched, &error, Arc::clone(&context));
        let wake = reconcile.await.unwrap_or_else(after_error);
        if !wake.awaits_turn() {
            return wake;
        }
        let _waiting = context.metrics.reconciles.waiting.enter();
        tokio::select! {
            // The first look puts the job into the queue.
            biased;
            granted = queued.get_or_insert_with(|| Box::pin(launches.acquire(&namespace))) => {
                (queued, place) = (None, Some(granted));
            }
            () = news.notified() => {}
            () = wake.due() => {}
        }
    }
}

/// Why a reconcile failed; the next try starts from scratch.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The ledger could not be written.
    #[error("write of the ledger: {0}")]
    Record(#[source] kube::Error),
    /// The apiserver or etcd refuses the job's object for its size.
    #[error("the job's object of {0} bytes is too large for the apiserver")]
    TooLarge(usize),
    /// The ledger is written later, so that writes are spaced; nothing of the step was recorded.
    #[error("the write of the ledger waits")]
    Deferred(Instant),
    /// Another client changed the ledger; the next try sees the change.
    #[error("the ledger was changed in between")]
    Conflict,
    /// The job no longer exists; the watch will show that.
    #[error("the job is gone")]
    Gone,
    /// The live view of the pods could not be read.
    #[error("live read of pods: {0}")]
    LiveRead(#[source] kube::Error),
    /// A pod could not be created.
    #[error("creation of a pod: {0}")]
    Create(#[source] kube::Error),
    /// A pod could not be deleted.
    #[error("deletion of a pod: {0}")]
    Delete(#[source] kube::Error),
    /// A finalizer could not be taken off.
    #[error("release of a pod: {0}")]
    Release(#[source] kube::Error),
    /// The status of an adopted Job could not be written.
    #[error("write of an adopted Job's status: {0}")]
    Mirror(#[source] kube::Error),
    /// Pods of an adopted Job could not be taken in or let go.
    #[error("adoption or release of a pod: {0}")]
    Claim(#[source] kube::Error),
    /// The quarantine of a job could not be noted in its status.
    #[error("note of a quarantine: {0}")]
    Quarantine(#[source] kube::Error),
    /// A job that is kept as a skeleton could not be read.
    #[error("read of the job: {0}")]
    Read(#[source] kube::Error),
    /// The job could not be deleted at the end of its time to live.
    #[error("deletion of the job: {0}")]
    Expire(#[source] kube::Error),
}

impl Error {
    fn label(&self) -> &'static str {
        match self {
            Self::Record(_) => "record",
            Self::TooLarge(_) => "too_large",
            Self::Deferred(_) => "deferred",
            Self::Conflict => "conflict",
            Self::Gone => "gone",
            Self::LiveRead(_) => "live_read",
            Self::Create(_) => "create",
            Self::Delete(_) => "delete",
            Self::Release(_) => "release",
            Self::Mirror(_) => "mirror",
            Self::Claim(_) => "claim",
            Self::Quarantine(_) => "quarantine",
            Self::Read(_) => "read",
            Self::Expire(_) => "expire",
        }
    }
}

fn count_error(context: &ReconcileContext, error: &Error) {
    let errors = &context.metrics.reconciles.errors;
    errors.with([error.label()]).inc();
}

#[cfg(test)]
mod tests;
