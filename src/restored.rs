//! Notices that the apiserver's store was put back to an earlier state: what this process remembers
//! may never have been then. Nobody can put a store back without breaking every watch, so when one
//! breaks nothing is decided or written (`doubt`) until a fresh list has proved that versions went
//! forward. If they went back, the process must start anew.

pub mod doubt;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::Resource;
use kube::api::{Api, ListParams, ObjectMeta};
use kube::core::{ObjectList, PartialObjectMeta};
use tokio::time::{Instant, sleep, sleep_until};

use crate::api::{DeadlineJob, LABEL_JOB_UID};
use crate::context::Context;

/// How often it is looked where no watch breaks: one call that lists at most one object.
const PERIOD: Duration = Duration::from_secs(20);
/// How long it is waited before a list that failed is asked for again: first and at last.
const RETRY_FIRST: Duration = Duration::from_millis(100);
const RETRY_LAST: Duration = Duration::from_secs(2);
/// Objects per page of a list.
const PAGE: u32 = 500;

/// Returns once resourceVersions have gone back; the process must start anew then.
pub async fn noticed(context: Arc<Context>) {
    context.stores.ready().await;
    let mut next_look = Instant::now() + PERIOD;
    loop {
        tokio::select! {
            doubt = context.doubt.arisen() => {
                tracing::info!("a watch broke: nothing is done until a list has been read");
                if prove(&context).await {
                    return;
                }
                context.doubt.dispel(doubt);
            }
            () = sleep_until(next_look) => {
                if counter_went_back(&context).await {
                    return;
                }
                next_look = Instant::now() + PERIOD;
            }
        }
    }
}

/// Asks until there is an answer, for nothing is decided on errors: whether versions went back.
async fn prove(context: &Context) -> bool {
    let mut wait = RETRY_FIRST;
    loop {
        match went_back(context).await {
            Ok(back) => return back,
            Err(error) => tracing::info!(%error, "no list yet, nothing is done"),
        }
        sleep(wait).await;
        wait = (wait * 2).min(RETRY_LAST);
    }
}

/// A list is as new as the moment it was asked for, so neither it nor any object in it is older
/// than what was seen before. The counter alone may have caught up since the store was put back.
async fn went_back(context: &Context) -> Result<bool, kube::Error> {
    let (seen, known) = (context.stores.newest_version(), known(context));
    let jobs: Api<DeadlineJob> = Api::all(context.client.clone());
    let pods: Api<Pod> = Api::all(context.client.clone());
    Ok(
        list_is_older(&jobs, ListParams::default(), seen, &known).await?
            || list_is_older(
                &pods,
                ListParams::default().labels(LABEL_JOB_UID),
                seen,
                &known,
            )
            .await?,
    )
}

/// The newest version known of each job and attempt pod, by uid.
fn known(context: &Context) -> BTreeMap<String, u64> {
    let mut known = context.stores.versions();
    for gap in context.stores.gaps() {
        let version = version(&gap.metadata).unwrap_or(0);
        known.insert(gap.metadata.uid.unwrap_or_default(), version);
    }
    for job in context.stores.jobs.state() {
        // Own writes are known before the watch shows them.
        let newest = context.memos.newest(&job);
        let version = version(&newest.metadata).max(version(&job.metadata));
        known.insert(
            job.metadata.uid.clone().unwrap_or_default(),
            version.unwrap_or(0),
        );
    }
    known
}

async fn list_is_older<K>(
    api: &Api<K>,
    parameters: ListParams,
    seen: u64,
    known: &BTreeMap<String, u64>,
) -> Result<bool, kube::Error>
where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    let mut parameters = parameters.limit(PAGE);
    loop {
        let page = api.list_metadata(&parameters).await?;
        if is_older(&page, seen, known) {
            return Ok(true);
        }
        match page.metadata.continue_ {
            Some(token) if !token.is_empty() => parameters.continue_token = Some(token),
            _ => return Ok(false),
        }
    }
}

fn is_older<K>(
    page: &ObjectList<PartialObjectMeta<K>>,
    seen: u64,
    known: &BTreeMap<String, u64>,
) -> bool
where
    K: Clone,
{
    let of_list = page.metadata.resource_version.as_deref();
    let of_list: Option<u64> = of_list.and_then(|version| version.parse().ok());
    of_list.is_some_and(|version| version < seen)
        || page.items.iter().any(|object| {
            let uid = object.metadata.uid.as_deref().unwrap_or_default();
            let before = known.get(uid).copied().unwrap_or(0);
            version(&object.metadata).is_some_and(|version| version < before)
        })
}

/// An object's resourceVersion, if it is a number, as it is wherever etcd is the store.
#[must_use]
pub fn version(metadata: &ObjectMeta) -> Option<u64> {
    metadata.resource_version.as_deref()?.parse().ok()
}

/// Looks at the counter alone.
async fn counter_went_back(context: &Context) -> bool {
    let seen = context.stores.newest_version();
    let jobs: Api<DeadlineJob> = Api::all(context.client.clone());
    let one = jobs.list_metadata(&ListParams::default().limit(1)).await;
    one.is_ok_and(|page| is_older(&page, seen, &BTreeMap::new()))
}

#[cfg(test)]
mod tests;
