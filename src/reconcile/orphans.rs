//! Pods whose job is deleted or being deleted. Nothing of them needs counting, so shed removes
//! their finalizer and the garbage collector can act. shed deletes nothing here, because an
//! orphaning deletion means that the user wants to keep the pods. It finds attempts by their owner
//! and other pods by their finalizers, so that a pod without labels delays no deletion.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::ObjectMeta;

use crate::adopt::translate;
use crate::api::DeadlineJob;
use crate::cluster::Stores;
use crate::cluster::identity::{Owner, OwnerKind};
use crate::cluster::pod::{PodFacts, PodRef};
use crate::metrics::JobAddress;
use crate::reconcile::context::ReconcileContext;
use crate::reconcile::periodic_checks;
use crate::reconcile::pod_writer::PodWriter;

/// Interval of the check, which makes no call.
const PERIOD: Duration = Duration::from_millis(500);

/// Orphans of a namespace that one release lets go.
const AT_ONCE: usize = 256;
/// Jobs of a namespace that are looked for at a time.
const READS_AT_ONCE: usize = 16;

/// Versions at the last check that had nothing left to do.
type Seen = (u64, u64, u64);

/// Orphans to release, by namespace.
type Orphans = BTreeMap<Arc<str>, Vec<Arc<PodFacts>>>;

/// Checks without end. Each namespace is released by itself: one that is slow delays no other, and is left out until it
/// is done.
pub async fn run(context: Arc<ReconcileContext>) {
    let (mut seen, mut busy) = (None, BTreeSet::new());
    let mut releases = FuturesUnordered::new();
    let mut ticks = periodic_checks::every(&context, PERIOD).await;
    loop {
        tokio::select! {
            _ = ticks.tick() => {
                for (namespace, pods) in look(&context, &mut seen) {
                    if busy.insert(Arc::clone(&namespace)) {
                        releases.push(release(&context, namespace, pods));
                    }
                }
            }
            Some(namespace) = releases.next() => {
                busy.remove(&namespace);
            }
        }
    }
}

/// Looks, unless nothing has changed since a look that had nothing to do.
fn look(context: &ReconcileContext, seen: &mut Option<Seen>) -> Orphans {
    let stores = &context.stores;
    let now = (
        stores.pods.version(),
        stores.jobs.staying_version(),
        stores.jobs.batch_version(),
    );
    if *seen == Some(now) {
        return Orphans::new();
    }
    forget(context);
    let orphans = orphans(stores);
    *seen = orphans.is_empty().then_some(now);
    by_namespace(orphans)
}

/// Drops the metrics of deleted jobs. A job that is created again under the same name writes its
/// own series.
fn forget(context: &ReconcileContext) {
    let stores = &context.stores;
    for departed in stores.jobs.take_departed() {
        if !stores.jobs.stays_by_name(&departed) {
            context.metrics.forget_job(&JobAddress {
                namespace: departed.namespace,
                name: departed.name,
            });
        }
    }
    let is_there = |uid: &str| stores.jobs.staying(uid).is_some();
    context.job_memories.retain(is_there);
    context.forecasts.retain(is_there);
}

/// Pods with a finalizer that no controller uses any more.
fn orphans(stores: &Stores) -> Vec<Arc<PodFacts>> {
    let mut orphans = Vec::new();
    for owner in stores.pods.owners_of_tracked() {
        if !stores.jobs.stays(&owner) {
            let attempts = stores.pods.attempts_of(&owner).into_values();
            let tracked = attempts.filter(|pod| pod.attempt.as_ref().is_some_and(|a| a.tracked));
            orphans.extend(tracked.filter(|pod| is_left(stores, &owner, pod)));
        }
    }
    let strangers = stores.pods.held_strangers().into_iter();
    orphans.extend(strangers.filter(|pod| is_free(stores, pod)));
    orphans
}

/// Whether to release an attempt whose owner has no job that stays. A pod of a batch/v1 Job may be
/// the built-in controller's. Such a pod is released only if the garbage collector is deleting it
/// because the Job is gone.
fn is_left(stores: &Stores, owner: &Owner, pod: &PodFacts) -> bool {
    match owner.kind {
        OwnerKind::DeadlineJob => true,
        OwnerKind::Job => stores.jobs.runs(owner).unwrap_or(pod.identity.deleting),
    }
}

/// Whether a pod that is no attempt is let go: shed's finalizer is on it, or batch/v1's, which the
/// built-in controller counts by.
fn is_free(stores: &Stores, pod: &PodFacts) -> bool {
    let identity = &pod.identity;
    let stays = |owner: &Owner| stores.jobs.stays(owner);
    let job = match &identity.owner {
        // No controller counts it. If its job stays, it may be an attempt of a newer operator.
        _ if identity.tracked => {
            return identity.deleting || !identity.owner.as_deref().is_some_and(stays);
        }
        Some(job) => job,
        None if identity.controlled => return false,
        None => {
            let uid = identity.labelled.as_ref();
            let known = uid.and_then(|uid| stores.jobs.staying(uid));
            let namespace = known.and_then(|job| job.namespace);
            let is_awaited = namespace.is_some_and(|namespace| *namespace == *pod.namespace);
            let is_sheds = uid.is_some() || (identity.deleting && stores.jobs.runs_all_jobs());
            return is_sheds && !is_awaited;
        }
    };
    let is_sheds = stores.jobs.runs(job).unwrap_or(stores.jobs.runs_all_jobs());
    identity.deleting && is_sheds && !stays(job)
}

/// A bounded number of each namespace.
fn by_namespace(orphans: Vec<Arc<PodFacts>>) -> Orphans {
    let mut by_namespace = Orphans::new();
    for pod in orphans {
        let of_namespace = by_namespace.entry(Arc::clone(&pod.namespace)).or_default();
        if of_namespace.len() < AT_ONCE {
            of_namespace.push(pod);
        }
    }
    by_namespace
}

/// Releases pods of a namespace, and returns its name.
async fn release(
    context: &ReconcileContext,
    namespace: Arc<str>,
    mut pods: Vec<Arc<PodFacts>>,
) -> Arc<str> {
    keep_counted(context, &mut pods).await;
    let pods: Vec<PodRef> = pods.iter().map(|pod| pod.reference()).collect();
    let api: Api<Pod> = Api::namespaced(context.client.clone(), &namespace);
    let writer = PodWriter::new(context, &namespace);
    if let Some(error) = writer.release(&api, &pods).await.failure {
        tracing::warn!(%error, %namespace, "release of orphans, trying again");
    }
    namespace
}

/// Takes out the pods of jobs that the watch does not show and that exist: their ledgers count them. The watch of pods
/// may be ahead of that of jobs, and this process may be behind another leader.
async fn keep_counted(context: &ReconcileContext, pods: &mut Vec<Arc<PodFacts>>) {
    let owners = pods.iter().filter_map(|pod| pod.identity.owner.as_deref());
    let is_unknown = |owner: &&Owner| !context.stores.jobs.knows(owner);
    let unknown: BTreeSet<Owner> = owners.filter(is_unknown).cloned().collect();
    let checks = unknown.into_iter().map(|owner| async {
        let is_gone = is_gone(context, &owner).await;
        let is_gone = is_gone.inspect_err(|error| tracing::warn!(%error, "job of orphans"));
        (!is_gone.unwrap_or(false)).then_some(owner)
    });
    let checks: Vec<_> = checks.collect();
    let kept = futures::stream::iter(checks).buffer_unordered(READS_AT_ONCE);
    let kept: BTreeSet<Owner> = kept.filter_map(std::future::ready).collect().await;
    pods.retain(|pod| {
        let owner = pod.identity.owner.as_deref();
        !owner.is_some_and(|owner| kept.contains(owner))
    });
}

/// Whether the DeadlineJob with the ledger of an owner's attempts does not exist, or is being deleted.
async fn is_gone(context: &ReconcileContext, owner: &Owner) -> Result<bool, kube::Error> {
    let api: Api<DeadlineJob> = Api::namespaced(context.client.clone(), &owner.namespace);
    let name = match owner.kind {
        OwnerKind::DeadlineJob => owner.name.to_string(),
        OwnerKind::Job => translate::companion_name_of(&owner.name, &owner.uid),
    };
    let live = api.get_metadata_opt(&name).await?;
    let counts = |metadata: &ObjectMeta| {
        Owner::of(metadata) == *owner && metadata.deletion_timestamp.is_none()
    };
    Ok(!live.is_some_and(|live| counts(&live.metadata)))
}

#[cfg(test)]
mod tests;
