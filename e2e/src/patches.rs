//! Changes of objects, where only the change matters.

use std::fmt::Debug;

use kube::Api;
use kube::api::{Patch, PatchParams};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Merges into an object.
pub async fn merge<K>(api: &Api<K>, name: &str, change: &Value) -> kube::Result<K>
where
    K: Clone + Debug + DeserializeOwned,
{
    let patch = Patch::Merge(change);
    api.patch(name, &PatchParams::default(), &patch).await
}

/// Merges into the status of an object.
pub async fn merge_status<K>(api: &Api<K>, name: &str, change: &Value) -> kube::Result<K>
where
    K: Clone + Debug + DeserializeOwned,
{
    let patch = Patch::Merge(change);
    api.patch_status(name, &PatchParams::default(), &patch)
        .await
}

/// Changes the status of an object as a kubelet does: lists are merged by their keys.
pub async fn report<K>(api: &Api<K>, name: &str, change: &Value) -> kube::Result<K>
where
    K: Clone + Debug + DeserializeOwned,
{
    let patch = Patch::Strategic(change);
    api.patch_status(name, &PatchParams::default(), &patch)
        .await
}
