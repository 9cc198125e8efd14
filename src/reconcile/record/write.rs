//! The write of a job's status. It carries the precondition (uid, resourceVersion) and the status,
//! but not the specification. The apiserver ignores the specification in such a write, and it may
//! have 256 KiB. For the same reason the answer is requested as metadata only.

use std::sync::Arc;

use http::HeaderValue;
use http::header::ACCEPT;
use kube::Resource;
use kube::api::{Api, ObjectMeta, PostParams};
use kube::core::{PartialObjectMeta, Request};
use kube::runtime::events::EventType;
use serde::{Deserialize, Serialize};

use crate::api::{DeadlineJob, DeadlineJobStatus};
use crate::cluster::{Versioned, version};
use crate::context::JobMemory;
use crate::context::spacing::LastWrite;
use crate::reconcile::context::ReconcileContext;
use crate::reconcile::overload::retried;
use crate::reconcile::{Error, events, pod_writer};
use crate::size;

/// The event of a job whose object is too large to be written.
const OBJECT_TOO_LARGE: &str = "ObjectTooLarge";
const METADATA_ALONE: HeaderValue =
    HeaderValue::from_static("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1");

/// Body of a status write.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StatusWrite<'a> {
    api_version: &'a str,
    kind: &'a str,
    metadata: Condition<'a>,
    status: &'a DeadlineJobStatus,
}

/// Precondition of the write.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Condition<'a> {
    name: &'a str,
    namespace: &'a str,
    uid: Option<&'a str>,
    resource_version: Option<&'a str>,
}

/// The status of a write as a watch will show it: times have whole seconds there.
#[derive(Deserialize)]
struct Sent {
    status: DeadlineJobStatus,
}

/// Writes the status. A conflict over labels, annotations or other fields that no decision depends
/// on does not require a new decision. The write is repeated on the newer version, because such
/// edits could otherwise delay the ledger without end.
pub(super) async fn write_status(
    context: &ReconcileContext,
    owner: &DeadlineJob,
    status: &DeadlineJobStatus,
) -> Result<Arc<DeadlineJob>, Error> {
    let name = owner.metadata.name.as_deref().unwrap_or_default();
    let namespace = owner.metadata.namespace.as_deref().unwrap_or_default();
    let api: Api<DeadlineJob> = Api::namespaced(context.client.clone(), namespace);
    let mut version = owner.metadata.resource_version.clone();
    for _ in 0..pod_writer::TRIES_MAX {
        let body = encode(&owner.metadata, version.as_deref(), status)?;
        let rest = context.stores.jobs.skipped_bytes(owner) + size::bytes(&owner.spec);
        let put = || {
            count(context, &owner.metadata, status, (body.len(), rest));
            put(context, namespace, name, body.clone())
        };
        match retried(put).await {
            Ok((metadata, sent)) => {
                return Ok(Arc::new(DeadlineJob {
                    metadata: metadata.metadata,
                    spec: owner.spec.clone(),
                    status: Some(sent.status),
                }));
            }
            Err(kube::Error::Api(status)) if status.code == 404 => return Err(Error::Gone),
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            Err(error) if is_too_large(&error) => {
                return Err(too_large(context, owner, status));
            }
            Err(error) => return Err(Error::Record(error)),
        }
        let live = api.get_opt(name).await.map_err(Error::Record)?;
        let live = live.ok_or(Error::Gone)?;
        compare(context, owner, &live.metadata);
        if !is_as_decided(&live, owner) {
            remember(context, live);
            return Err(Error::Conflict);
        }
        version = live.metadata.resource_version;
    }
    Err(Error::Conflict)
}

/// Writes the status of a job that was not read. Returns whether it fits into the object.
pub(super) async fn write_unread(
    context: &ReconcileContext,
    metadata: &ObjectMeta,
    spec_bytes: usize,
    status: &DeadlineJobStatus,
) -> Result<bool, Error> {
    let name = metadata.name.as_deref().unwrap_or_default();
    let namespace = metadata.namespace.as_deref().unwrap_or_default();
    let body = encode(metadata, metadata.resource_version.as_deref(), status)?;
    let put = || {
        count(context, metadata, status, (body.len(), spec_bytes));
        put(context, namespace, name, body.clone())
    };
    match retried(put).await {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.code == 404 => Err(Error::Gone),
        Err(kube::Error::Api(status)) if status.code == 409 => Err(Error::Conflict),
        Err(error) if is_too_large(&error) => Ok(false),
        Err(error) => Err(Error::Record(error)),
    }
}

fn encode(
    metadata: &ObjectMeta,
    version: Option<&str>,
    status: &DeadlineJobStatus,
) -> Result<Vec<u8>, Error> {
    let write = StatusWrite {
        api_version: &DeadlineJob::api_version(&()),
        kind: &DeadlineJob::kind(&()),
        metadata: Condition {
            name: metadata.name.as_deref().unwrap_or_default(),
            namespace: metadata.namespace.as_deref().unwrap_or_default(),
            uid: metadata.uid.as_deref(),
            resource_version: version,
        },
        status,
    };
    serde_json::to_vec(&write).map_err(|error| Error::Record(kube::Error::SerdeError(error)))
}

/// Counts a write before it is sent, with the bytes that it has and those of the object's parts that it leaves out.
fn count(
    context: &ReconcileContext,
    metadata: &ObjectMeta,
    status: &DeadlineJobStatus,
    (sent, rest): (usize, usize),
) {
    pod_writer::count(&context.metrics, "job_status");
    let written = &context.metrics.ledger;
    written.bytes.inc_by(sent as u64);
    let object = sent + rest + size::bytes(metadata);
    written.object_bytes.observe(object as f64);
    if status.ledger.is_some() && object > size::OBJECT_MAX {
        written.over_budget.inc();
        let name = metadata.name.as_deref().unwrap_or_default();
        let namespace = metadata.namespace.as_deref().unwrap_or_default();
        tracing::warn!(
            namespace,
            job = name,
            bytes = object,
            "the object exceeds its budget"
        );
    }
}

async fn put(
    context: &ReconcileContext,
    namespace: &str,
    name: &str,
    body: Vec<u8>,
) -> Result<(PartialObjectMeta<DeadlineJob>, Sent), kube::Error> {
    let seen = context.stores.newest_version(Versioned::DeadlineJobs);
    let sent: Sent = serde_json::from_slice(&body).map_err(kube::Error::SerdeError)?;
    let path = DeadlineJob::url_path(&(), Some(namespace));
    let request = Request::new(path);
    let parameters = PostParams::default();
    let mut request = request
        .replace_subresource("status", name, &parameters, body)
        .map_err(kube::Error::BuildRequest)?;
    request.headers_mut().insert(ACCEPT, METADATA_ALONE);
    let written: PartialObjectMeta<DeadlineJob> = context.client.request(request).await?;
    note_answer(context, seen, &written.metadata);
    Ok((written, sent))
}

/// The apiserver refuses large requests by their length, etcd by a message.
fn is_too_large(error: &kube::Error) -> bool {
    let kube::Error::Api(status) = error else {
        return false;
    };
    status.code == 413 || status.message.contains("is too large")
}

/// Reports to users once that the job cannot be written, because no condition can.
fn too_large(context: &ReconcileContext, owner: &DeadlineJob, status: &DeadlineJobStatus) -> Error {
    let job = DeadlineJob {
        metadata: owner.metadata.clone(),
        spec: owner.spec.clone(),
        status: Some(status.clone()),
    };
    let bytes = size::bytes(&job);
    let uid: Arc<str> = job.metadata.uid.as_deref().unwrap_or_default().into();
    let is_reported =
        |memory: &mut JobMemory| std::mem::replace(&mut memory.reconcile.too_large_reported, true);
    if !context.job_memories.with(&uid, is_reported) {
        let (field, most) = size::largest(&job);
        let note = format!(
            "the object has {bytes} bytes, more than the apiserver accepts, so shed cannot record the job's \
             state and does not run it; {} has {most} of them: delete the job, or shrink that field",
            field.trim_start_matches('.')
        );
        events::publish(context, &job, EventType::Warning, OBJECT_TOO_LARGE, note);
    }
    Error::TooLarge(bytes)
}

/// A write is newer than all that was seen of DeadlineJobs before it was sent, or the store was put
/// back.
pub(in crate::reconcile) fn note_answer(
    context: &ReconcileContext,
    seen: u64,
    written: &ObjectMeta,
) {
    let stores = &context.stores;
    stores.compare_versions(Some(seen), version(written));
    stores.note_version(Versioned::DeadlineJobs, written);
}

/// A live read is newer than a copy that was seen before it.
fn compare(context: &ReconcileContext, owner: &DeadlineJob, live: &ObjectMeta) {
    if live.uid == owner.metadata.uid {
        let stores = &context.stores;
        stores.compare_versions(version(&owner.metadata), version(live));
    }
}

/// Whether all that the write was decided on is still so.
fn is_as_decided(live: &DeadlineJob, owner: &DeadlineJob) -> bool {
    live.metadata.uid == owner.metadata.uid
        && live.metadata.generation == owner.metadata.generation
        && live.metadata.deletion_timestamp == owner.metadata.deletion_timestamp
        && live.status == owner.status
}

/// Stores the result of a live read, so that the next pass need not wait for the watch.
fn remember(context: &ReconcileContext, live: DeadlineJob) {
    let uid: Arc<str> = live.metadata.uid.as_deref().unwrap_or_default().into();
    let live = Arc::new(live);
    context
        .job_memories
        .with(&uid, |memory| memory.planned.newest(&live));
    context.stores.jobs.count_written(&live);
}

/// Whether this is the job's version in the store, or the job is gone. Else the next pass decides on the newer one.
pub(in crate::reconcile) async fn is_newest(
    context: &ReconcileContext,
    owner: &DeadlineJob,
) -> Result<bool, Error> {
    let name = owner.metadata.name.as_deref().unwrap_or_default();
    let namespace = owner.metadata.namespace.as_deref().unwrap_or_default();
    let api: Api<DeadlineJob> = Api::namespaced(context.client.clone(), namespace);
    let live = api.get_metadata_opt(name).await.map_err(Error::Read)?;
    let live = live.filter(|live| live.metadata.uid == owner.metadata.uid);
    let version = live.map(|live| live.metadata.resource_version);
    if version.is_none_or(|version| version == owner.metadata.resource_version) {
        return Ok(true);
    }
    if let Some(live) = api.get_opt(name).await.map_err(Error::Read)? {
        compare(context, owner, &live.metadata);
        remember(context, live);
    }
    Ok(false)
}

/// Notes the bytes of a write, which delay the job's next one.
pub(super) fn last_write(context: &ReconcileContext, status: &DeadlineJobStatus) -> LastWrite {
    let ticks = context.clock.ticks();
    context.ledger_rate.note(size::bytes(status), ticks)
}
