//! Detects that the apiserver's store was restored to an earlier state, in which this process's memory may never have
//! been true. Then the process must restart.
//!
//! Evidence is an object or an answer that is older than one seen before. The watches and the writes compare what they
//! get. A watch of a restored store may be silent, and then continue as if nothing had happened. So this check looks at
//! the objects that changed or went last, because a restore undoes the newest changes first. No write waits for a
//! check: a write of a ledger carries the version that it was decided on, and a pod without an entry is only deleted
//! after a read of the live version.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams};
use kube::core::{NamespaceResourceScope, ObjectList, PartialObjectMeta};
use kube::{Client, Resource};
use tokio::time::{Instant, sleep_until};

use crate::api::DeadlineJob;
use crate::cluster::{Newest, Seen, Versioned, version};
use crate::context::Context;

/// Interval of the check. Each call lists at most one object.
const PERIOD: Duration = Duration::from_secs(20);
/// An object that the apiserver lacks must disappear from the watch within this time, because a broken
/// watch starts again within 30 s.
const MISSING_PATIENCE: Duration = Duration::from_secs(60);

/// What the check reads.
pub struct RestoreCheck {
    /// The apiserver.
    pub client: Client,
    /// The watched world, and the own writes.
    pub shared: Arc<Context>,
}

/// Returns once the store was restored; then the process must restart.
pub async fn noticed(check: &RestoreCheck) {
    let stores = &check.shared.stores;
    stores.ready().await;
    let mut last = [(); 3].map(|()| LastLook::default());
    let mut next_look = Instant::now() + PERIOD;
    loop {
        tokio::select! {
            () = stores.restored() => break,
            () = sleep_until(next_look) => {
                if went_back(check, &mut last).await {
                    break;
                }
                next_look = Instant::now() + PERIOD;
            }
        }
    }
    tracing::warn!("the apiserver's store went back to an earlier state");
}

/// The last look at a resource.
#[derive(Default)]
struct LastLook {
    /// The newest changes by then. A store that was restored since then may be ahead of the present ones already.
    newest: Newest,
    /// Objects that the watch showed and the apiserver lacked, and since when.
    missing: Vec<(Seen, Instant)>,
}

/// Looks at each resource, because each may be in an etcd of its own.
async fn went_back(check: &RestoreCheck, [jobs, pods, batch]: &mut [LastLook; 3]) -> bool {
    let has_batch = check.shared.stores.jobs.batch().is_some();
    let looks = [
        is_older::<DeadlineJob>(check, Versioned::DeadlineJobs, jobs).await,
        is_older::<Pod>(check, Versioned::Pods, pods).await,
        match has_batch {
            true => is_older::<Job>(check, Versioned::Jobs, batch).await,
            false => Ok(false),
        },
    ];
    // Without an answer nothing is known.
    looks.into_iter().flatten().any(|is_older| is_older)
}

/// Whether the resource is older in the store than it was seen. A list is at least as new as its request. So neither
/// it nor any object in it is older than earlier observations, and it does not contain objects that were seen deleted.
async fn is_older<K: Listed>(
    check: &RestoreCheck,
    of: Versioned,
    last: &mut LastLook,
) -> Result<bool, kube::Error> {
    let newest = check.shared.stores.newest(of);
    let before = std::mem::replace(&mut last.newest, newest.clone());
    let (changed, deleted) = (
        [&before.changed, &newest.changed],
        [&before.deleted, &newest.deleted],
    );
    let page = list::<K>(check, None).await?;
    if counter(&page).is_some_and(|counter| counter < newest.version) {
        return Ok(true);
    }
    for seen in changed.into_iter().flatten() {
        match live(&list::<K>(check, Some(seen)).await?, seen) {
            Some(live) if live < seen.version => return Ok(true),
            Some(_) => {}
            None => last.missing.push((seen.clone(), Instant::now())),
        }
    }
    for seen in deleted.into_iter().flatten() {
        if live(&list::<K>(check, Some(seen)).await?, seen).is_some() {
            return Ok(true);
        }
    }
    last.missing
        .retain(|(seen, _)| check.shared.stores.shows(of, seen));
    let mut missing = last.missing.iter();
    Ok(missing.any(|(_, since)| since.elapsed() >= MISSING_PATIENCE))
}

/// A resource whose metadata can be listed.
trait Listed:
    Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + Clone
    + std::fmt::Debug
    + serde::de::DeserializeOwned
{
}

impl Listed for DeadlineJob {}
impl Listed for Pod {}
impl Listed for Job {}

/// A fresh list of this object, or of any one.
async fn list<K: Listed>(
    check: &RestoreCheck,
    only: Option<&Seen>,
) -> Result<ObjectList<PartialObjectMeta<K>>, kube::Error> {
    let client = check.shared.stores.reader(&check.client);
    match only {
        None => {
            let all: Api<K> = Api::all(client);
            all.list_metadata(&ListParams::default().limit(1)).await
        }
        Some(seen) => {
            let api: Api<K> = Api::namespaced(client, &seen.namespace);
            let name = format!("metadata.name={}", seen.name);
            let parameters = ListParams::default().limit(1);
            api.list_metadata(&parameters.fields(&name)).await
        }
    }
}

fn counter<K: Clone>(page: &ObjectList<PartialObjectMeta<K>>) -> Option<u64> {
    page.metadata.resource_version.as_deref()?.parse().ok()
}

/// The version that a list has of an object.
fn live<K: Clone>(page: &ObjectList<PartialObjectMeta<K>>, seen: &Seen) -> Option<u64> {
    let mut items = page.items.iter();
    let it = items.find(|item| item.metadata.uid.as_deref() == Some(&*seen.uid))?;
    version(&it.metadata)
}

#[cfg(test)]
mod tests;
