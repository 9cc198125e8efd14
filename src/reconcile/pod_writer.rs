//! The writes of a step. Each is safe to repeat: creation of a name that exists is harmless,
//! deletes and releases carry the pod's uid.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams, Preconditions,
};
use kube::core::Status;
use kube::{Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::api::{ATTEMPT_FINALIZER, JOB_TRACKING_FINALIZER, reason};
use crate::cluster::identity::Owner;
use crate::cluster::pod::PodRef;
use crate::context::backoff::Blocked;
use crate::metrics::Metrics;
use crate::reconcile::context::ReconcileContext;
use crate::reconcile::overload::retried;
use crate::reconcile::write_places::WritePlaces;
use crate::validate::template_extras::TemplateExtras;

/// Deletes or releases of one job under way at once.
const STOPS_AT_ONCE: usize = 16;
/// Creations of one job under way at once, and one more for each further job of the namespace that could launch.
const CREATIONS_AT_ONCE: usize = 4;
/// Writes that are prepared together.
const BATCH_MAX: usize = 128;
/// A pass begins deletes, and then releases, for this long; the next pass makes the rest.
const TIME_OF_STOPS: Duration = Duration::from_secs(5);
/// A pass begins creations for this long. The next one makes the rest in another turn, after it has looked whether
/// anything of the job must stop.
const TIME_OF_CREATIONS: Duration = Duration::from_secs(2);

/// How often a write is tried that meets conflicts; after that the next pass tries it.
pub(super) const TRIES_MAX: u32 = 5;

/// Result of a creation.
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

/// Result of deletes or releases.
#[derive(Debug, Default)]
pub struct Written {
    /// The uids of the pods whose write is done.
    pub done: Vec<String>,
    /// The first failure that is worth another try.
    pub failure: Option<kube::Error>,
    /// Whether time ran out before all were begun.
    pub is_cut_short: bool,
}

/// Writes pods of one namespace.
#[derive(Clone, Copy)]
pub struct PodWriter<'a> {
    /// The namespace.
    pub namespace: &'a Arc<str>,
    /// Places for the writes.
    pub places: &'a WritePlaces,
    /// Counts the writes.
    pub metrics: &'a Metrics,
}

impl<'a> PodWriter<'a> {
    /// Uses the state that the process shares.
    pub fn new(context: &'a ReconcileContext, namespace: &'a Arc<str>) -> Self {
        Self {
            namespace,
            places: &context.write_places,
            metrics: &context.metrics,
        }
    }

    /// Creates pods in batches that double (1, 2, 4, …, 128), so that a refusal costs one call and not
    /// hundreds. Each batch is made when its turn comes: a pass has time for a part of a large job only, and
    /// the pods of all its tasks would take more memory than everything else about it. The answers are in the
    /// order of `pods`.
    pub async fn create<K: PodLike>(
        self,
        api: &Api<K>,
        mut pods: impl ExactSizeIterator<Item = Result<K, Blocked>>,
    ) -> Vec<Created> {
        let until = Instant::now() + TIME_OF_CREATIONS;
        let total = pods.len();
        let mut answers = Vec::with_capacity(total);
        let mut batch_size = 1;
        loop {
            let batch = pods.by_ref().take(batch_size);
            let calls: Vec<_> = batch
                .map(|pod| self.create_in_time(api, pod, until))
                .collect();
            if calls.is_empty() {
                return answers;
            }
            let batch_answers: Vec<Created> = futures::stream::iter(calls)
                .buffered(CREATIONS_AT_ONCE + self.places.launches.free_for(self.namespace))
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
            batch_size = BATCH_MAX.min(batch_size * 2);
        }
    }

    async fn create_in_time<K: PodLike>(
        self,
        api: &Api<K>,
        pod: Result<K, Blocked>,
        until: Instant,
    ) -> Created {
        let pod = match pod {
            Ok(pod) => pod,
            Err(blocked) => return Created::Refused(blocked),
        };
        if Instant::now() >= until {
            return Created::NotTried;
        }
        create_one(api, &pod, self.metrics).await
    }

    /// Deletes pods; a pod that is gone or has another uid needs no delete. Each is tried though another
    /// fails.
    pub async fn delete(self, api: &Api<Pod>, pods: &[PodRef]) -> Written {
        self.all(api, Write::Delete, pods).await
    }

    /// Removes shed's finalizer from pods whose end is counted. One failure does not stop the
    /// others.
    pub async fn release(self, api: &Api<Pod>, pods: &[PodRef]) -> Written {
        self.all(api, Write::Release, pods).await
    }

    /// Sets annotations of a pod that runs.
    pub async fn annotate(
        self,
        api: &Api<Pod>,
        pod: &PodRef,
        annotations: &[(&'static str, String)],
    ) -> Result<(), kube::Error> {
        let _place = self.places.stops.acquire(self.namespace).await;
        count(self.metrics, "annotate_pod");
        let all: BTreeMap<_, _> = annotations.iter().cloned().collect();
        patch_metadata(api, pod, json!({"annotations": all})).await
    }

    async fn all(self, api: &Api<Pod>, write: Write, pods: &[PodRef]) -> Written {
        let until = Instant::now() + TIME_OF_STOPS;
        let mut written = Written::default();
        for pods in pods.chunks(BATCH_MAX) {
            let calls = pods.iter().map(|pod| async move {
                let _place = self.places.stops.acquire(self.namespace).await;
                if Instant::now() >= until {
                    return Err(None);
                }
                let written = insist(api, write, pod, self.metrics).await;
                written.map(|()| pod.uid.clone()).map_err(Some)
            });
            let calls = futures::stream::iter(calls.collect::<Vec<_>>());
            let mut answers = std::pin::pin!(calls.buffer_unordered(STOPS_AT_ONCE));
            while let Some(answer) = answers.next().await {
                match answer {
                    Ok(uid) => written.done.push(uid),
                    Err(None) => written.is_cut_short = true,
                    Err(Some(error)) => {
                        written.failure.get_or_insert(error);
                    }
                }
            }
        }
        written
    }
}

/// The same for pods of an adopted Job that get fields of its template which no type here has.
pub async fn create_with(
    client: &Client,
    writer: PodWriter<'_>,
    template_extras: &TemplateExtras,
    pods: impl ExactSizeIterator<Item = Pod>,
) -> Vec<Created> {
    let pods_api = ApiResource::erase::<Pod>(&());
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), writer.namespace, &pods_api);
    let whole = pods.map(|pod| template_extras.on(&pod).map_err(|field| unknown(&field)));
    writer.create(&api, whole).await
}

fn unknown(field: &str) -> Blocked {
    Blocked {
        reason: reason::POD_INVALID,
        message: format!(
            "{field} is unknown to this version of the operator, so it cannot set the field on pods: \
             upgrade the operator, or remove the field"
        ),
    }
}

async fn create_one<K: PodLike>(api: &Api<K>, pod: &K, metrics: &Metrics) -> Created {
    count(metrics, "create_pod");
    let parameters = PostParams::default();
    let error = match retried(|| api.create(&parameters, pod)).await {
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

/// A pod of that name exists: ours if the same job controls it, otherwise an obstacle.
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
                        "a pod named {name} exists but does not belong to this job: delete or rename it"
                    ),
                })
            }
        }
    }
}

/// Whether the apiserver refused for a lasting reason.
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

async fn release_one(api: &Api<Pod>, pod: &PodRef, metrics: &Metrics) -> Result<(), kube::Error> {
    count(metrics, "release_pod");
    // Finalizers of others are not touched.
    let taken_off = json!({
        "$deleteFromPrimitiveList/finalizers": [ATTEMPT_FINALIZER, JOB_TRACKING_FINALIZER],
    });
    patch_metadata(api, pod, taken_off).await
}

/// Changes a pod's metadata. Its uid is a precondition.
async fn patch_metadata(
    api: &Api<Pod>,
    pod: &PodRef,
    mut metadata: Value,
) -> Result<(), kube::Error> {
    metadata["uid"] = json!(pod.uid);
    let patch = Patch::Strategic(json!({"metadata": metadata}));
    let patched = api.patch(&pod.name, &PatchParams::default(), &patch).await;
    patched.map(|_| ())
}

#[derive(Debug, Clone, Copy)]
enum Write {
    Delete,
    Release,
}

/// Repeats a write until it is done. Also ends once the pod is gone or replaced, because both serve
/// the purpose. A conflict alone proves neither, because another client may just have written to
/// the pod. Treating it as a replaced pod would leave the finalizer on the pod.
async fn insist(
    api: &Api<Pod>,
    write: Write,
    pod: &PodRef,
    metrics: &Metrics,
) -> Result<(), kube::Error> {
    let mut tries = 0;
    loop {
        tries += 1;
        let written = match write {
            Write::Delete => retried(|| delete_one(api, pod, metrics)).await,
            Write::Release => retried(|| release_one(api, pod, metrics)).await,
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
pub fn count(metrics: &Metrics, operation: &'static str) {
    metrics.writes.with([operation]).inc();
}

#[cfg(test)]
mod tests;
