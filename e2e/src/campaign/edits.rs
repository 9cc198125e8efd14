//! A client that edits labels of jobs and pods all the time.

use std::time::Duration;

use k8s_openapi::api::batch::v1 as batch;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::json;
use shed::api::DeadlineJob;

use crate::cluster::Cluster;
use crate::patches::merge;

/// How often a job or pod is edited under [`super::fault::Fault::Conflicts`].
const EDIT_EVERY: Duration = Duration::from_millis(50);

/// Edits labels of every job and pod of the namespace, again and again.
pub async fn edit(cluster: Cluster, namespace: String) {
    let jobs: Api<DeadlineJob> = Api::namespaced(cluster.client(), &namespace);
    let batch: Api<batch::Job> = Api::namespaced(cluster.client(), &namespace);
    let pods: Api<Pod> = Api::namespaced(cluster.client(), &namespace);
    let mut ticks = tokio::time::interval(EDIT_EVERY);
    for count in 0_u32.. {
        ticks.tick().await;
        edit_all(&jobs, count).await;
        edit_all(&batch, count).await;
        if count.is_multiple_of(5) {
            edit_all(&pods, count).await;
        }
    }
}

/// An edit that doesn't come through is one less.
async fn edit_all<K>(api: &Api<K>, count: u32)
where
    K: Resource + Clone + std::fmt::Debug + DeserializeOwned,
{
    let label = json!({"metadata": {"labels": {"edited": count.to_string()}}});
    for object in api.list(&ListParams::default()).await.into_iter().flatten() {
        drop(merge(api, &object.name_any(), &label).await);
    }
}
