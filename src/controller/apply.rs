//! The writes of a step. Each is safe to repeat: creation of a name that exists is harmless,
//! deletes and releases carry the pod's uid.

use std::fmt::Debug;

use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams, Preconditions,
};
use kube::core::Status;
use kube::{Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::status::Blocked;
use super::step::PodRef;
use crate::adopt::handed_on::HandedOn;
use crate::api::{ATTEMPT_FINALIZER, JOB_TRACKING_FINALIZER, reason};
use crate::metrics::{Kind, Metrics};
use crate::observe::identity::Owner;
use crate::validate::ValidatedJob;

/// Writes of one job under way at once.
const WRITES_AT_ONCE: usize = 16;

/// How often a write is tried that meets conflicts; after that the next pass tries it.
pub(super) const TRIES_MAX: u32 = 5;

/// What became of a creation.
#[derive(Debug)]
pub enum Created {
    /// The pod exists and is ours.
    Ours,
    /// The apiserver refused it, and would refuse it again soon.
    Refused(Blocked),
    /// Something failed on the way; it is tried again.
    Failed(kube::Error),
    /// Not tried, because one before it was refused.
    NotTried,
}

/// A pod, typed or with fields that its type does not know.
pub trait PodLike: Resource + Clone + Debug + Serialize + DeserializeOwned {}

impl PodLike for Pod {}
impl PodLike for DynamicObject {}

/// Creates pods in batches that double (1, 2, 4, …), so that a refusal costs one call and not
/// hundreds. The answers are in the order of `pods`.
pub async fn create<K: PodLike>(api: &Api<K>, pods: Vec<K>, metrics: &Metrics) -> Vec<Created> {
    let mut answers = Vec::with_capacity(pods.len());
    let mut rest = pods.into_iter();
    let total = rest.len();
    let mut batch_size = 1;
    loop {
        let batch: Vec<K> = rest.by_ref().take(batch_size).collect();
        if batch.is_empty() {
            return answers;
        }
        let calls: Vec<_> = batch
            .iter()
            .map(|pod| create_one(api, pod, metrics))
            .collect();
        let batch_answers: Vec<Created> = futures::stream::iter(calls)
            .buffered(WRITES_AT_ONCE)
            .collect()
            .await;
        let all_ours = batch_answers
            .iter()
            .all(|answer| matches!(answer, Created::Ours));
        answers.extend(batch_answers);
        if !all_ours {
            answers.resize_with(total, || Created::NotTried);
            return answers;
        }
        batch_size *= 2;
    }
}

/// The same for pods of an adopted Job that get fields of its template which no type here has.
pub async fn create_with(
    client: &Client,
    job: &ValidatedJob,
    handed_on: &HandedOn,
    pods: &[Pod],
    metrics: &Metrics,
) -> Vec<Created> {
    let whole: Result<Vec<_>, String> = pods.iter().map(|pod| handed_on.on(pod)).collect();
    match whole {
        Ok(whole) => {
            let pods_api = ApiResource::erase::<Pod>(&());
            let api = Api::namespaced_with(client.clone(), &job.namespace, &pods_api);
            create(&api, whole, metrics).await
        }
        Err(field) => {
            let message = format!(
                "{field} is not known to this version of the operator, and its pods have no place \
                 for it: upgrade the operator, or leave the field out"
            );
            let reason = reason::POD_INVALID;
            let refused = Created::Refused(Blocked { reason, message });
            let mut answers = vec![refused];
            answers.resize_with(pods.len(), || Created::NotTried);
            answers
        }
    }
}

async fn create_one<K: PodLike>(api: &Api<K>, pod: &K, metrics: &Metrics) -> Created {
    count(metrics, "create_pod");
    let error = match api.create(&PostParams::default(), pod).await {
        Ok(_) => return Created::Ours,
        Err(error) => error,
    };
    let kube::Error::Api(status) = &error else {
        return Created::Failed(error);
    };
    if status.code == 409 && status.reason == "AlreadyExists" {
        return existing(api, pod).await;
    }
    match refusal(status) {
        Some(blocked) => Created::Refused(blocked),
        None => Created::Failed(error),
    }
}

/// A pod of that name is there: ours if the same job controls it, else in the way.
async fn existing<K: PodLike>(api: &Api<K>, pod: &K) -> Created {
    let name = pod.meta().name.as_deref().unwrap_or_default();
    match api.get_metadata_opt(name).await {
        Err(error) => Created::Failed(error),
        Ok(None) => Created::NotTried,
        Ok(Some(found)) => {
            let owner = Owner::controller_of(&found.metadata);
            if owner.is_some() && owner == Owner::controller_of(pod.meta()) {
                Created::Ours
            } else {
                Created::Refused(Blocked {
                    reason: reason::POD_CREATION_FAILED,
                    message: format!(
                        "a pod named {name} exists and is not of this job: delete or rename it"
                    ),
                })
            }
        }
    }
}

/// Whether the apiserver said no for a reason that will last.
fn refusal(status: &Status) -> Option<Blocked> {
    let reason = match status.code {
        403 if status.message.contains("exceeded quota") => reason::QUOTA_EXCEEDED,
        403 => reason::POD_FORBIDDEN,
        422 | 400 => reason::POD_INVALID,
        _ => return None,
    };
    Some(Blocked {
        reason,
        message: status.message.clone(),
    })
}

/// Deletes pods; one that is gone or is another by now is none of ours.
///
/// # Errors
/// The first failure that is worth another try.
pub async fn delete(api: &Api<Pod>, pods: &[PodRef], metrics: &Metrics) -> Result<(), kube::Error> {
    all(api, Write::Delete, pods, metrics).await
}

async fn delete_one(api: &Api<Pod>, pod: &PodRef, metrics: &Metrics) -> Result<(), kube::Error> {
    count(metrics, "delete_pod");
    let parameters = DeleteParams {
        preconditions: Some(Preconditions {
            uid: Some(pod.uid.clone()),
            resource_version: None,
        }),
        ..DeleteParams::default()
    };
    api.delete(&pod.name, &parameters).await.map(|_| ())
}

/// Takes shed's finalizer off pods whose end is counted.
///
/// # Errors
/// The first failure that is worth another try.
pub async fn release(
    api: &Api<Pod>,
    pods: &[PodRef],
    metrics: &Metrics,
) -> Result<(), kube::Error> {
    all(api, Write::Release, pods, metrics).await
}

async fn release_one(api: &Api<Pod>, pod: &PodRef, metrics: &Metrics) -> Result<(), kube::Error> {
    count(metrics, "release_pod");
    // The uid is a precondition; finalizers of others are not touched.
    let patch = json!({"metadata": {
        "uid": pod.uid,
        "$deleteFromPrimitiveList/finalizers": [ATTEMPT_FINALIZER, JOB_TRACKING_FINALIZER],
    }});
    let patched = api
        .patch(&pod.name, &PatchParams::default(), &Patch::Strategic(patch))
        .await;
    patched.map(|_| ())
}

#[derive(Debug, Clone, Copy)]
enum Write {
    Delete,
    Release,
}

async fn all(
    api: &Api<Pod>,
    write: Write,
    pods: &[PodRef],
    metrics: &Metrics,
) -> Result<(), kube::Error> {
    let calls = pods
        .iter()
        .cloned()
        .map(|pod| insist(api, write, pod, metrics));
    let results: Vec<_> = futures::stream::iter(calls)
        .buffer_unordered(WRITES_AT_ONCE)
        .collect()
        .await;
    results.into_iter().collect()
}

/// Repeats a write until it is done, or the pod is gone or another: both are what was wanted.
/// A conflict alone tells neither, since somebody may just have written to the pod in between;
/// taking it for "another pod" would leave the finalizer on for good.
async fn insist(
    api: &Api<Pod>,
    write: Write,
    pod: PodRef,
    metrics: &Metrics,
) -> Result<(), kube::Error> {
    let mut tries = 0;
    loop {
        tries += 1;
        let written = match write {
            Write::Delete => delete_one(api, &pod, metrics).await,
            Write::Release => release_one(api, &pod, metrics).await,
        };
        let Err(error) = written else {
            return Ok(());
        };
        match &error {
            kube::Error::Api(status) if status.code == 404 => return Ok(()),
            kube::Error::Api(status) if status.code == 409 => {}
            _ => return Err(error),
        }
        let found = api.get_metadata_opt(&pod.name).await?;
        let is_same = found.is_some_and(|found| found.metadata.uid.as_ref() == Some(&pod.uid));
        if !is_same {
            return Ok(());
        }
        if tries == TRIES_MAX {
            return Err(error);
        }
    }
}

/// Counts a write to the apiserver.
pub fn count(metrics: &Metrics, kind: &'static str) {
    metrics.writes.get_or_create(&Kind { kind }).inc();
}

#[cfg(test)]
mod tests;
