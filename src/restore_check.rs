//! Detects that the apiserver's store was restored to an earlier state, in which this process's
//! memory may never have been true. A restore breaks every watch. When a watch breaks, shed
//! therefore decides and writes nothing (`restore_guard`) until a fresh list proves that versions
//! went forward. If they went back, the process must restart.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams};
use kube::core::{ObjectList, PartialObjectMeta};
use kube::{Client, Resource};
use tokio::time::{Instant, sleep, sleep_until};

use crate::api::{DeadlineJob, LABEL_JOB_UID};
use crate::cluster::{Shown, Versioned, version};
use crate::context::Context;
use crate::restore_guard::Doubt;

/// Interval of the check while no watch breaks: a call per resource that lists at most one object.
const PERIOD: Duration = Duration::from_secs(20);
/// Wait before a failed list is repeated: the first wait and the last.
const RETRY_FIRST: Duration = Duration::from_millis(100);
const RETRY_LAST: Duration = Duration::from_secs(2);
/// Objects per page of a list.
const PAGE: u32 = 500;

/// Objects that the list lacks must disappear from the watch within this time, because a broken
/// watch starts again within 30 s.
const MISSING_PATIENCE: Duration = Duration::from_secs(60);

/// What the check reads and changes.
pub struct RestoreCheck {
    /// The apiserver.
    pub client: Client,
    /// Whether the memory still agrees with the store.
    pub doubt: Arc<Doubt>,
    /// The watched world, and the own writes.
    pub shared: Arc<Context>,
}

/// Returns once the store was restored; then the process must restart.
pub async fn noticed(check: &RestoreCheck) {
    check.shared.stores.ready().await;
    let mut next_look = Instant::now() + PERIOD;
    let mut missing = Missing::default();
    loop {
        tokio::select! {
            doubt = check.doubt.arisen() => {
                tracing::info!("a watch broke: nothing is done until a list has been read");
                match prove(check).await {
                    Compared::Older => return,
                    Compared::Newer { lacks } => missing.add(lacks),
                }
                check.doubt.dispel(doubt);
            }
            () = missing.due() => {
                if missing.are_shown(check) {
                    tracing::warn!("a list lacked what a watch goes on showing");
                    return;
                }
            }
            () = sleep_until(next_look) => {
                if counter_went_back(check).await {
                    return;
                }
                next_look = Instant::now() + PERIOD;
            }
        }
    }
}

/// Objects that the watch showed and a list lacks. Either the object was deleted, and the watch
/// will report that. Or it was created after the restored state, and a watch that continues from a
/// later version never reports its end.
#[derive(Default)]
struct Missing(BTreeMap<String, Instant>);

impl Missing {
    fn add(&mut self, uids: BTreeSet<String>) {
        let due = Instant::now() + MISSING_PATIENCE;
        for uid in uids {
            self.0.entry(uid).or_insert(due);
        }
    }

    async fn due(&self) {
        match self.0.values().min() {
            Some(&due) => sleep_until(due).await,
            None => std::future::pending().await,
        }
    }

    /// Whether an overdue object is still shown. Objects that are not shown any more are forgotten.
    fn are_shown(&mut self, check: &RestoreCheck) -> bool {
        let now = Instant::now();
        let (pods, jobs) = (
            check.shared.stores.shown_pods(),
            check.shared.stores.shown_jobs(),
        );
        let is_shown = |uid: &String| pods.expected.contains(uid) || jobs.expected.contains(uid);
        let any = self.0.iter().any(|(uid, due)| *due <= now && is_shown(uid));
        self.0.retain(|_, due| *due > now);
        any
    }
}

/// Result of comparing fresh lists with the known state.
#[derive(Debug, PartialEq, Eq)]
enum Compared {
    /// The store was put back.
    Older,
    /// No evidence of a restore.
    Newer {
        /// Uids of known objects that the list lacks.
        lacks: BTreeSet<String>,
    },
}

/// Repeats the comparison until it succeeds, because errors decide nothing.
async fn prove(check: &RestoreCheck) -> Compared {
    let mut wait = RETRY_FIRST;
    loop {
        match compare(check).await {
            Ok(compared) => return compared,
            Err(error) => tracing::info!(%error, "no list yet, nothing is done"),
        }
        sleep(wait).await;
        wait = (wait * 2).min(RETRY_LAST);
    }
}

/// A list is at least as new as its request. So neither it nor any object in it is older than
/// earlier observations, and it does not contain objects that were seen deleted. The version
/// counter alone may have caught up since the restore.
async fn compare(check: &RestoreCheck) -> Result<Compared, kube::Error> {
    let newest = |of| check.shared.stores.newest_version(of);
    let (seen_jobs, seen_pods) = (newest(Versioned::DeadlineJobs), newest(Versioned::Pods));
    let (pods, jobs) = (check.shared.stores.shown_pods(), known_jobs(check));
    let all_jobs: Api<DeadlineJob> = Api::all(check.client.clone());
    let all_pods: Api<Pod> = Api::all(check.client.clone());
    let Some(mut lacks) = lacking(&all_jobs, ListParams::default(), seen_jobs, jobs).await? else {
        return Ok(Compared::Older);
    };
    let attempts = ListParams::default().labels(LABEL_JOB_UID);
    let Some(of_pods) = lacking(&all_pods, attempts, seen_pods, pods).await? else {
        return Ok(Compared::Older);
    };
    if check.shared.stores.batch().is_some()
        && is_counter_older::<Job>(check, Versioned::Jobs).await?
    {
        return Ok(Compared::Older);
    }
    lacks.extend(of_pods);
    Ok(Compared::Newer { lacks })
}

/// Own writes are known before the watch shows them.
fn known_jobs(check: &RestoreCheck) -> Shown {
    let mut shown = check.shared.stores.shown_jobs();
    for (uid, own) in check.shared.memos.newest_versions() {
        if let Some(known) = shown.versions.get_mut(&*uid) {
            *known = own.max(*known);
        }
    }
    shown
}

/// Objects that a fresh list lacks; none if the list is older than the known state.
async fn lacking<K>(
    api: &Api<K>,
    parameters: ListParams,
    seen: u64,
    shown: Shown,
) -> Result<Option<BTreeSet<String>>, kube::Error>
where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    let mut parameters = parameters.limit(PAGE);
    let mut lacks = shown.expected.clone();
    loop {
        let page = api.list_metadata(&parameters).await?;
        if is_older(&page, seen, &shown) {
            return Ok(None);
        }
        for object in &page.items {
            lacks.remove(object.metadata.uid.as_deref().unwrap_or_default());
        }
        match page.metadata.continue_ {
            Some(token) if !token.is_empty() => parameters.continue_token = Some(token),
            _ => return Ok(Some(lacks)),
        }
    }
}

fn is_older<K>(page: &ObjectList<PartialObjectMeta<K>>, seen: u64, shown: &Shown) -> bool
where
    K: Clone,
{
    let of_list = page.metadata.resource_version.as_deref();
    let of_list: Option<u64> = of_list.and_then(|version| version.parse().ok());
    of_list.is_some_and(|version| version < seen)
        || page.items.iter().any(|object| {
            let uid = object.metadata.uid.as_deref().unwrap_or_default();
            let is_older = |listed: u64| match shown.versions.get(uid) {
                Some(&before) => listed < before,
                // It was seen to go.
                None => listed <= shown.reached,
            };
            version(&object.metadata).is_some_and(is_older)
        })
}

/// Checks only the counters: each resource's own, because each may be in an etcd of its own.
async fn counter_went_back(check: &RestoreCheck) -> bool {
    let jobs = is_counter_older::<DeadlineJob>(check, Versioned::DeadlineJobs).await;
    let pods = is_counter_older::<Pod>(check, Versioned::Pods).await;
    let batch = match check.shared.stores.batch() {
        Some(_) => is_counter_older::<Job>(check, Versioned::Jobs).await,
        None => Ok(false),
    };
    // Without an answer nothing is known.
    [jobs, pods, batch].into_iter().flatten().any(|older| older)
}

/// Whether a fresh list of at most one object is older than the observations of the resource.
async fn is_counter_older<K>(check: &RestoreCheck, of: Versioned) -> Result<bool, kube::Error>
where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    let seen = check.shared.stores.newest_version(of);
    let all: Api<K> = Api::all(check.client.clone());
    let page = all.list_metadata(&ListParams::default().limit(1)).await?;
    Ok(is_older(&page, seen, &Shown::default()))
}

#[cfg(test)]
mod tests;
