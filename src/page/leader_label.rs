//! The label by which the Service of the page selects the pod of the leader, which alone has answers.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::api::LABEL_LEADER;

/// Time between two looks at who has the label.
const PERIOD: Duration = Duration::from_secs(30);
/// Wait before a failed change is repeated.
const RETRY_AFTER: Duration = Duration::from_secs(2);
/// At the end of a term, the label is not waited for longer.
const LAST_PATIENCE: Duration = Duration::from_secs(1);

/// The label in one term of leadership.
#[derive(Clone)]
pub struct LeaderLabel {
    api: Api<Pod>,
    pod: String,
}

impl LeaderLabel {
    /// The label of this pod, in the namespace of the client. The client's writes must end with the term.
    pub fn new(client: Client, pod: String) -> Self {
        Self {
            api: Api::default_namespaced(client),
            pod,
        }
    }

    /// Gives this pod the label, takes it off others, and looks again now and then, without end.
    pub async fn keep(self) {
        loop {
            match self.settle().await {
                Ok(()) => sleep(PERIOD).await,
                Err(error) => {
                    tracing::warn!(%error, pod = self.pod, "live page: label of the leader");
                    sleep(RETRY_AFTER).await;
                }
            }
        }
    }

    async fn settle(&self) -> kube::Result<()> {
        let labelled = ListParams::default().labels(&format!("{LABEL_LEADER}=true"));
        let pods = self.api.list_metadata(&labelled).await?.items;
        let names = || pods.iter().map(ResourceExt::name_any);
        for other in names().filter(|name| *name != self.pod) {
            self.set(&other, Value::Null).await?;
        }
        if !names().any(|name| name == self.pod) {
            self.set(&self.pod, json!("true")).await?;
        }
        Ok(())
    }

    /// Takes the label off this pod, before the term ends.
    pub async fn take_off(&self) {
        match timeout(LAST_PATIENCE, self.set(&self.pod, Value::Null)).await {
            Ok(Ok(())) => {}
            // The next leader takes it off.
            Ok(Err(error)) => tracing::info!(%error, "live page: label of the leader"),
            Err(_) => {
                tracing::info!("live page: the label of the leader was not taken off in time")
            }
        }
    }

    async fn set(&self, pod: &str, value: Value) -> kube::Result<()> {
        let patch = json!({"metadata": {"labels": {LABEL_LEADER: value}}});
        let patched = self
            .api
            .patch_metadata(pod, &PatchParams::default(), &Patch::Merge(patch))
            .await;
        match patched {
            Ok(_) => Ok(()),
            // It is gone, and its label with it.
            Err(kube::Error::Api(error)) if error.code == 404 => Ok(()),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests;
