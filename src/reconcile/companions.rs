//! Ensures that each Job that shed runs has its companion, and reports on the Job if that fails.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::batch::v1::{Job, JobStatus};
use kube::Resource;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::runtime::events::{Event, EventType};
use kube::runtime::reflector::ObjectRef;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;

use crate::adopt::annotation_names::by_annotations;
use crate::adopt::{self, BatchRest, WatchedBatchJob, annotations, translate};
use crate::api::{DeadlineJob, OnMiss, reason, unknown_fields};
use crate::cluster::{CompanionSettings, Kind, Rest, Skeleton, WatchedJob};
use crate::fair_places::FairPlaces;
use crate::reconcile::context::ReconcileContext;
use crate::reconcile::queue::{self, Wake};
use crate::reconcile::{job_status, pod_writer};
use crate::watchdog::isolation;

/// Wait after a failed write.
const ERROR_WAIT: Duration = Duration::from_secs(2);
/// Wait after a look that panicked or took too long.
const CRASH_WAIT: Duration = Duration::from_secs(300);
/// Waits between tries to create a companion double up to this.
const CREATION_WAIT_MAX: Duration = Duration::from_secs(60);
/// Failures in a row to create a companion before the Job's conditions report them.
const FAILURES_REPORTED: u32 = 2;
/// Until the memory budget is asked again.
const MEMORY_WAIT: Duration = Duration::from_secs(5);
/// Until a place for an object that may be large is looked for again.
const PLACE_WAIT: Duration = Duration::from_millis(250);
/// Jobs that are looked at at once, shared by namespace.
const AT_ONCE: usize = 32;
const NO_MEMORY: &str = "the Job starts once other jobs end: shed keeps unfinished jobs whole in three eighths of its \
                         memory, which namespaces share; make the pod template smaller, wait, or raise the operator's \
                         memory limit";
/// The words after the field.
const GROUPING_REFUSED: &str = "shed starts each pod by itself, and would not follow this field; create the Job with \
                                the scheduling policy `basic` and without this field, or without spec.managedBy";

/// Handles every Job that `touched` names, without end.
pub async fn run(context: Arc<ReconcileContext>, touched: mpsc::UnboundedReceiver<ObjectRef<Job>>) {
    context.stores.ready().await;
    let Some(jobs) = context.stores.jobs.batch() else {
        return std::future::pending().await;
    };
    let places = FairPlaces::new(AT_ONCE);
    queue::run(UnboundedReceiverStream::new(touched), |job, _| {
        let job = job.clone().into_kind_unchecked::<WatchedBatchJob>(());
        let (context, store, places) = (Arc::clone(&context), &jobs.store, &places);
        async move {
            let namespace: Arc<str> = job.namespace.as_deref().unwrap_or_default().into();
            let _place = places.acquire(&namespace).await;
            let Some(job) = store.get(&job) else {
                return Wake::await_change();
            };
            let looked = look_at(job, Arc::clone(&context)).await;
            looked.unwrap_or_else(|error| {
                count_error(&context, &error);
                Wake::requeue(ERROR_WAIT)
            })
        }
    })
    .await;
}

/// Looks at a Job that is shed's; of the others nothing is known.
async fn look_at(
    job: Arc<WatchedBatchJob>,
    context: Arc<ReconcileContext>,
) -> Result<Wake, kube::Error> {
    match &*job {
        WatchedBatchJob::Skeleton(job, BatchRest::Oversized(why)) => {
            refuse(&context, job, reason::INVALID_SPEC, why).await
        }
        WatchedBatchJob::Skeleton(job, BatchRest::Crowded(bytes)) => {
            await_memory(&context, job, *bytes).await
        }
        job => match job.open() {
            Some(job) => look_apart(Arc::clone(job), context).await,
            None => Ok(Wake::await_change()),
        },
    }
}

/// Reads a Job once the memory budget admits it. Until then its status reports why it waits.
async fn await_memory(
    context: &ReconcileContext,
    job: &Job,
    bytes: usize,
) -> Result<Wake, kube::Error> {
    let (stores, metadata) = (&context.stores, &job.metadata);
    if !stores.jobs.reserve(Kind::Batch, metadata, bytes) {
        refuse(context, job, reason::OPERATOR_MEMORY, NO_MEMORY).await?;
        return Ok(Wake::requeue(MEMORY_WAIT));
    }
    let read = stores.jobs.read_whole(&context.client, metadata).await;
    if !matches!(read, Ok(true)) {
        stores.jobs.give_back(Kind::Batch, metadata);
    }
    read.map(|_| Wake::requeue(MEMORY_WAIT))
}

/// Handles a Job in a task of its own, so that a failure affects only this Job. There may be no
/// ledger yet that could hold a quarantine.
async fn look_apart(job: Arc<Job>, context: Arc<ReconcileContext>) -> Result<Wake, kube::Error> {
    let look = look(Arc::clone(&job), Arc::clone(&context));
    let crash = match isolation::run(&context.watch, None, look).await {
        Ok(looked) => return looked,
        Err(crash) => crash,
    };
    context.count_crash(crash.failure);
    let (namespace, name) = (&job.metadata.namespace, &job.metadata.name);
    tracing::error!(?namespace, job = ?name, "companion of a Job: {crash}");
    Ok(Wake::requeue(CRASH_WAIT))
}

async fn look(job: Arc<Job>, context: Arc<ReconcileContext>) -> Result<Wake, kube::Error> {
    let is_leaving = job.metadata.deletion_timestamp.is_some();
    if is_leaving || job_status::is_finished(&job) {
        return Ok(Wake::await_change());
    }
    if let Some(field) = grouping(&context, &job) {
        let message = format!("spec.{field}: {GROUPING_REFUSED}");
        return refuse(&context, &job, reason::GANG_SCHEDULING, &message).await;
    }
    let reference =
        ObjectRef::<DeadlineJob>::new(&translate::companion_name(&job).unwrap_or_default())
            .within(job.metadata.namespace.as_deref().unwrap_or_default());
    let found = context
        .stores
        .jobs
        .store
        .get(&WatchedJob::reference(&reference));
    match (found.as_deref(), translate::companion(&job)) {
        (Some(WatchedJob::Live(found, _)), Ok(wanted)) => {
            change(&context, &job, found, wanted).await
        }
        (Some(WatchedJob::Skeleton(found)), Ok(wanted)) => {
            change_at_rest(&context, &job, found, wanted).await
        }
        (None, Ok(wanted)) => create(&context, &job, &wanted).await,
        // It has ended and does not change any more, or its pass reports the annotation.
        (Some(found), Err(_)) if has_ended(found) || !adopt::is_skeleton(&job) => {
            Ok(Wake::await_change())
        }
        // There is no companion, or no pass while nothing of the Job is left.
        (_, Err(bad)) => {
            let message = bad.to_string();
            refuse(&context, &job, reason::INVALID_ANNOTATION, &message).await
        }
    }
}

fn has_ended(companion: &WatchedJob) -> bool {
    let skeleton = companion.skeleton();
    skeleton.is_some_and(|skeleton| !matches!(skeleton.rest, Rest::Suspended { .. }))
}

/// The same for the companion of a suspended Job, which is read if an annotation has changed.
async fn change_at_rest(
    context: &ReconcileContext,
    job: &Job,
    found: &Skeleton,
    mut wanted: DeadlineJob,
) -> Result<Wake, kube::Error> {
    let Rest::Suspended {
        settings: Some(settings),
        ..
    } = found.rest
    else {
        return Ok(Wake::await_change());
    };
    fix(job, &mut wanted, settings.completions, settings.on_miss);
    if settings == CompanionSettings::of(&wanted.spec) {
        return Ok(Wake::await_change());
    }
    let name = found.metadata.name.as_deref().unwrap_or_default();
    match companions(context, job).get_opt(name).await? {
        Some(found) => change(context, job, &found, wanted).await,
        None => Ok(Wake::await_change()),
    }
}

/// Sets what is fixed at creation.
fn fix(job: &Job, wanted: &mut DeadlineJob, completions: i32, on_miss: OnMiss) {
    wanted.spec.completions = completions;
    if !annotations::names_on_miss(job.metadata.annotations.as_ref()) {
        wanted.spec.on_miss = on_miss;
    }
}

/// The field that makes one unit of the Job's pods.
fn grouping(context: &ReconcileContext, job: &Job) -> Option<&'static str> {
    let uid = job.metadata.uid.as_deref().unwrap_or_default();
    context
        .stores
        .jobs
        .batch()?
        .template_extras
        .of(uid)
        .grouping
}

/// Annotations that changed change the companion, as far as a `DeadlineJob` can be changed.
async fn change(
    context: &ReconcileContext,
    job: &Job,
    found: &DeadlineJob,
    mut wanted: DeadlineJob,
) -> Result<Wake, kube::Error> {
    fix(job, &mut wanted, found.spec.completions, found.spec.on_miss);
    let is_refused = annotations::fixed(&found.spec, &wanted.spec).is_some();
    if is_refused || wanted.spec == found.spec {
        return Ok(Wake::await_change());
    }
    let difference = unknown_fields::difference(&spec_of(found)?, &spec_of(&wanted)?);
    let version = &found.metadata.resource_version;
    // Fields that a newer operator added stay.
    let patch = json!({"metadata": {"resourceVersion": version}, "spec": difference});
    let parameters = PatchParams::default();
    let patched = companions(context, job)
        .patch(&reference_name(found), &parameters, &Patch::Merge(patch))
        .await;
    match patched {
        Ok(_) => Ok(Wake::await_change()),
        // The watch is behind.
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(Wake::requeue(ERROR_WAIT)),
        // A new try cannot succeed before the Job changes.
        Err(error) if schema_violation(&error).is_some() => {
            count_error(context, &error);
            Ok(Wake::await_change())
        }
        Err(error) => Err(error),
    }
}

fn spec_of(companion: &DeadlineJob) -> Result<Value, kube::Error> {
    serde_json::to_value(&companion.spec).map_err(kube::Error::SerdeError)
}

fn reference_name(companion: &DeadlineJob) -> String {
    companion.metadata.name.clone().unwrap_or_default()
}

fn companions(context: &ReconcileContext, job: &Job) -> Api<DeadlineJob> {
    let namespace = job.metadata.namespace.as_deref().unwrap_or_default();
    Api::namespaced(context.client.clone(), namespace)
}

/// Creates a companion only if a live read shows the Job. The garbage collector deletes a companion
/// with its Job, and no other companion may start in its place.
async fn create(
    context: &ReconcileContext,
    job: &Job,
    wanted: &DeadlineJob,
) -> Result<Wake, kube::Error> {
    let Some(live) = jobs(context, job).get_opt(&name(job)).await? else {
        return Ok(Wake::await_change());
    };
    let is_same = live.metadata.uid == job.metadata.uid;
    if !is_same || live.metadata.deletion_timestamp.is_some() || job_status::is_finished(&live) {
        return Ok(Wake::await_change());
    }
    pod_writer::count(&context.metrics, "companion");
    let api = companions(context, job);
    if has_begun(&live) {
        // The watch may be behind. A companion that does not exist has lost its ledger.
        return match api.get_metadata_opt(&reference_name(wanted)).await? {
            Some(_) => Ok(Wake::await_change()),
            None => {
                let message = "the Job has started, but the DeadlineJob with its ledger is missing: it was \
                deleted, or another controller started the Job. Delete the Job and create it again";
                refuse(context, &live, reason::LEDGER_LOST, message).await
            }
        };
    }
    match api.create(&PostParams::default(), wanted).await {
        Ok(_) => adopted(context, &live, wanted),
        Err(kube::Error::Api(status)) if status.code == 409 => {}
        Err(error) => return not_created(context, &live, wanted, &error).await,
    }
    context.companion_failures.forget(job);
    Ok(Wake::await_change())
}

/// Reports once that shed runs the Job. A Job without a deadline is as with the built-in controller, and gets no event.
fn adopted(context: &ReconcileContext, job: &Job, companion: &DeadlineJob) {
    if companion.spec.deadline.is_none() {
        return;
    }
    let name = reference_name(companion);
    let note = format!("shed runs this Job; its ledger is in the DeadlineJob {name}");
    let event = Event {
        type_: EventType::Normal,
        reason: reason::ADOPTED.to_owned(),
        note: Some(note),
        action: "Adopt".to_owned(),
        secondary: None,
    };
    context.events.push(event, job.object_ref(&()));
}

/// The apiserver's words about a field that the Job's annotations have set. A policy that denies a companion may have the
/// same code, but names no field.
fn schema_violation(error: &kube::Error) -> Option<&str> {
    let kube::Error::Api(status) = error else {
        return None;
    };
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let mut fields = causes.map(|cause| cause.field.as_str());
    let is_it = status.code == 422 && fields.any(|field| field.starts_with("spec"));
    is_it.then_some(status.message.as_str())
}

/// A quota or a policy may refuse a companion, or a webhook may be unavailable. The Job's
/// conditions report that from the second failure on.
async fn not_created(
    context: &ReconcileContext,
    job: &Job,
    wanted: &DeadlineJob,
    error: &kube::Error,
) -> Result<Wake, kube::Error> {
    count_error(context, error);
    if let Some(violation) = schema_violation(error) {
        let message = format!("{violation}: correct the annotation");
        return refuse(context, job, reason::INVALID_ANNOTATION, &message).await;
    }
    let count = context.companion_failures.count(job);
    if count >= FAILURES_REPORTED {
        let why = match error {
            kube::Error::Api(status) => status.message.clone(),
            error => error.to_string(),
        };
        let name = reference_name(wanted);
        let message = format!(
            "the DeadlineJob {name}, which holds the Job's ledger, cannot be created: {why}"
        );
        refuse(context, job, reason::COMPANION_CREATION_FAILED, &message).await?;
    }
    let doublings = count.saturating_sub(1).min(16);
    let wait = ERROR_WAIT.saturating_mul(1 << doublings);
    Ok(Wake::requeue(wait.min(CREATION_WAIT_MAX)))
}

fn count_error(context: &ReconcileContext, error: &kube::Error) {
    let reason = "companion";
    let errors = &context.metrics.reconciles.errors;
    errors.with([reason]).inc();
    tracing::warn!(%error, "companion of a Job, trying again");
}

/// Whether shed ever wrote the Job's status from its ledger.
fn has_begun(job: &Job) -> bool {
    let status = job.status.as_ref();
    status
        .is_some_and(|status| status.uncounted_terminated_pods.is_some() && status.ready.is_some())
}

fn name(job: &Job) -> String {
    job.metadata.name.clone().unwrap_or_default()
}

fn jobs(context: &ReconcileContext, job: &Job) -> Api<Job> {
    let namespace = job.metadata.namespace.as_deref().unwrap_or_default();
    Api::namespaced(context.client.clone(), namespace)
}

/// Reports on the Job, once, why shed does not follow its settings.
pub async fn refuse(
    context: &ReconcileContext,
    job: &Job,
    reason: &str,
    message: &str,
) -> Result<Wake, kube::Error> {
    let message = &by_annotations(message);
    let refused = |job| job_status::refused(job, reason, message, context.clock.now());
    if refused(job).is_none() {
        return Ok(Wake::await_change());
    }
    // An update from a skeleton would remove what was not kept.
    let namespace: Arc<str> = job.metadata.namespace.as_deref().unwrap_or_default().into();
    let place = match adopt::is_skeleton(job) {
        true => match context.stores.jobs.whole_place(&namespace) {
            None => return Ok(Wake::requeue(PLACE_WAIT)),
            place => place,
        },
        false => None,
    };
    let whole = match place {
        Some(_) => jobs(context, job).get_opt(&name(job)).await?,
        None => None,
    };
    let job = whole.as_ref().unwrap_or(job);
    let Some(status) = refused(job).filter(|_| !adopt::is_skeleton(job)) else {
        return Ok(Wake::await_change());
    };
    match write(context, job, status).await {
        Ok(_) => {}
        // The next check reports it on the newer version.
        Err(kube::Error::Api(status)) if status.code == 409 => {
            return Ok(Wake::requeue(ERROR_WAIT));
        }
        Err(error) => return Err(error),
    }
    let event = Event {
        type_: EventType::Warning,
        reason: reason.to_owned(),
        note: Some(message.chars().take(1000).collect()),
        action: "Adopt".to_owned(),
        secondary: None,
    };
    context.events.push(event, job.object_ref(&()));
    Ok(Wake::await_change())
}

/// Writes a Job's status on the version that it was made from.
pub async fn write(
    context: &ReconcileContext,
    job: &Job,
    status: JobStatus,
) -> Result<Job, kube::Error> {
    pod_writer::count(&context.metrics, "batch_job_status");
    let changed = Job {
        status: Some(status),
        ..job.clone()
    };
    jobs(context, job)
        .replace_status(&name(job), &PostParams::default(), &changed)
        .await
}

#[cfg(test)]
mod tests;
