//! Which pods are an adopted Job's: those that it controls and whose labels match its selector.
//! One without a controller is taken in again, one that does not match any more is let go.

use std::sync::Arc;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, Patch, PatchParams};
use kube::core::SelectorExt;
use serde_json::json;

use super::{Adopted, translate};
use crate::api;
use crate::context::Context;
use crate::controller::apply;
use crate::controller::step::PodRef;
use crate::observe::job::JobPods;
use crate::observe::pod::PodFacts;

/// What follows from whose the pods are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Claims {
    /// Pods to take in again.
    pub adopt: Vec<PodRef>,
    /// Pods to let go.
    pub release: Vec<PodRef>,
}

/// Sorts the attempts of a Job (`observe::identity` says which pods those are) and the pods that it
/// only controls; what is not its own leaves `pods`.
#[must_use]
pub fn sort(job: &Adopted, pods: &mut JobPods, unlabelled: &[Arc<PodFacts>]) -> Claims {
    let mut claims = Claims::default();
    pods.retain(|_, pod| {
        let Some(belongs) = &pod.belongs else {
            return false;
        };
        let matches = job.selector.matches(&belongs.labels);
        match &belongs.controller {
            Some(uid) if *uid != job.uid => false,
            Some(_) if matches => true,
            Some(_) => {
                claims.release.push(reference(pod));
                false
            }
            None => {
                let deleting = pod.attempt.as_ref().is_none_or(|attempt| attempt.deleting);
                if matches && !deleting {
                    claims.adopt.push(reference(pod));
                }
                matches
            }
        }
    });
    claims
        .release
        .extend(unlabelled.iter().map(|pod| reference(pod)));
    claims
}

fn reference(pod: &PodFacts) -> PodRef {
    PodRef {
        name: pod.name.to_string(),
        uid: pod.uid.clone(),
    }
}

/// Takes pods in and lets them go.
///
/// # Errors
/// The first failure that is worth another try.
pub async fn carry_out(
    context: &Context,
    job: &Adopted,
    namespace: &str,
    claims: &Claims,
) -> Result<(), kube::Error> {
    let pods: Api<Pod> = Api::namespaced(context.client.clone(), namespace);
    for pod in &claims.release {
        let owner = json!({"$patch": "delete", "uid": job.uid});
        let patch = json!({"metadata": {
            "uid": pod.uid,
            "ownerReferences": [owner],
            "labels": {api::LABEL_JOB_UID: null},
            "$deleteFromPrimitiveList/finalizers": [api::JOB_TRACKING_FINALIZER],
        }});
        write(context, &pods, &pod.name, patch).await?;
    }
    if claims.adopt.is_empty() || !still_there(context, job, namespace).await? {
        return Ok(());
    }
    for pod in &claims.adopt {
        let patch = json!({"metadata": {
            "uid": pod.uid,
            "ownerReferences": [translate::owner_reference(&job.name, &job.uid)],
            "finalizers": [api::JOB_TRACKING_FINALIZER],
        }});
        write(context, &pods, &pod.name, patch).await?;
    }
    Ok(())
}

/// A Job that is being deleted must not take pods in: its deletion may be what made them orphans.
async fn still_there(
    context: &Context,
    job: &Adopted,
    namespace: &str,
) -> Result<bool, kube::Error> {
    let jobs: Api<Job> = Api::namespaced(context.client.clone(), namespace);
    let live = jobs.get_metadata_opt(&job.name).await?;
    Ok(live.is_some_and(|live| {
        live.metadata.deletion_timestamp.is_none()
            && live.metadata.uid.as_deref() == Some(job.uid.as_ref())
    }))
}

/// A pod that is gone or another by now is none of the Job's.
async fn write(
    context: &Context,
    pods: &Api<Pod>,
    name: &str,
    patch: serde_json::Value,
) -> Result<(), kube::Error> {
    apply::count(&context.metrics, "claim_pod");
    let patch = Patch::Strategic(patch);
    match pods.patch(name, &PatchParams::default(), &patch).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409 | 422) => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests;
