//! Notices that the apiserver's store was put back to an earlier state. A watch that goes on with
//! a resourceVersion from before is silent then until the new versions have caught up with it,
//! so what happens meanwhile would be missed, and what this process remembers may never have been.

use std::sync::Arc;
use std::time::Duration;

use kube::api::{Api, ListParams};

use crate::api::DeadlineJob;
use crate::context::Context;

/// How often it is looked: one call that lists at most one object.
const PERIOD: Duration = Duration::from_secs(20);

/// Returns once resourceVersions have gone back; the process must start anew then.
pub async fn noticed(context: Arc<Context>) {
    context.stores.ready().await;
    loop {
        tokio::time::sleep(PERIOD).await;
        if went_back(&context).await {
            return;
        }
    }
}

/// A list is as new as the moment it was asked for, so it is never older than what a watch had
/// shown before.
async fn went_back(context: &Context) -> bool {
    let seen = context.stores.newest_version();
    let jobs: Api<DeadlineJob> = Api::all(context.client.clone());
    match jobs.list_metadata(&ListParams::default().limit(1)).await {
        Ok(list) => {
            let version = list.metadata.resource_version.as_deref();
            let version: Option<u64> = version.and_then(|version| version.parse().ok());
            version.is_some_and(|version| version < seen)
        }
        // Nothing is decided on errors.
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::mock::{Apiserver, Process};
    use crate::fixtures;

    #[tokio::test]
    async fn versions_that_go_back_are_noticed() {
        let api = Apiserver::new(fixtures::job(""));
        let process = Process::start(&api);
        // Each list is one version newer than the one before, from 101 on.
        for (seen, expected) in [("100", false), ("102", false), ("104", true)] {
            let mut pod = k8s_openapi::api::core::v1::Pod::default();
            pod.metadata.resource_version = Some(seen.to_owned());
            process.context.stores.show(vec![pod]);
            assert_eq!(went_back(&process.context).await, expected, "{seen}");
        }
        assert_eq!(api.said(), ["LIST jobs"; 3]);
    }
}
