//! Pods that an adopted Job adopts, and those that it releases.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;

use crate::adopt::translate;
use crate::api;
use crate::job::pod_adoption::Claims;
use crate::reconcile::context::ReconcileContext;
use crate::reconcile::pod_writer;
use crate::validate::Adopted;

/// Takes pods in and lets them go.
pub async fn carry_out(
    context: &ReconcileContext,
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

/// A Job that is being deleted must not adopt pods, because its deletion may have orphaned them.
async fn still_there(
    context: &ReconcileContext,
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

/// A pod that is gone or replaced by now does not belong to the Job.
async fn write(
    context: &ReconcileContext,
    pods: &Api<Pod>,
    name: &str,
    patch: serde_json::Value,
) -> Result<(), kube::Error> {
    pod_writer::count(&context.metrics, "claim_pod");
    let patch = Patch::Strategic(patch);
    match pods.patch(name, &PatchParams::default(), &patch).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409 | 422) => Ok(()),
        Err(error) => Err(error),
    }
}
