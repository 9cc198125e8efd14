//! Waiting for what should come true. No test and no demo step sleeps for a fixed time and hopes.

use std::fmt::Debug;
use std::future::Future;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;

/// How often a condition is looked at. Short compared with the awaited change, long compared with one request.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The result of one look at the world.
pub enum Seen<T> {
    /// The awaited change.
    Ready(T),
    /// Not yet; what was seen instead, for the error message.
    NotYet(String),
}

impl<T> Seen<T> {
    /// Ready with a value, or not yet because of what `why` says.
    pub fn from_option(value: Option<T>, why: impl FnOnce() -> String) -> Self {
        value.map_or_else(|| Self::NotYet(why()), Self::Ready)
    }
}

impl Seen<()> {
    /// Ready if something holds, or not yet because of what `why` says.
    pub fn when(holds: bool, why: impl FnOnce() -> String) -> Self {
        Self::from_option(holds.then_some(()), why)
    }
}

/// Looks until `look` finds what is waited for. A failing look is "not yet": an apiserver that
/// restarts, or an object that doesn't exist yet, is what one waits through.
pub async fn until<T, F, L>(what: &str, timeout: Duration, mut look: F) -> Result<T>
where
    F: FnMut() -> L,
    L: Future<Output = Result<Seen<T>>>,
{
    let started = Instant::now();
    let mut last = "nothing seen yet".to_owned();
    loop {
        // The look itself is bounded too: a hung connection must not outlast the timeout.
        let left = timeout.saturating_sub(started.elapsed());
        match tokio::time::timeout(left.max(LOOK_EVERY), look()).await {
            Ok(Ok(Seen::Ready(value))) => return Ok(value),
            Ok(Ok(Seen::NotYet(seen))) => last = seen,
            Ok(Err(error)) => last = format!("error: {error:#}"),
            Err(_) => last = format!("{last} (then no answer)"),
        }
        if started.elapsed() >= timeout {
            bail!("waited {timeout:?} for {what}; last seen: {last}");
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Waits until a named object exists and satisfies `is_ready`; returns it.
pub async fn for_object<K>(
    api: &Api<K>,
    name: &str,
    what: &str,
    timeout: Duration,
    is_ready: impl Fn(&K) -> bool,
) -> Result<K>
where
    K: Resource + Clone + Debug + DeserializeOwned,
{
    until(what, timeout, || async {
        let Some(object) = api.get_opt(name).await? else {
            return Ok(Seen::NotYet(format!("{name} doesn't exist")));
        };
        if is_ready(&object) {
            return Ok(Seen::Ready(object));
        }
        Ok(Seen::NotYet(format!("{object:?}")))
    })
    .await
}

/// Waits until a named object is gone.
pub async fn for_absence<K>(api: &Api<K>, name: &str, timeout: Duration) -> Result<()>
where
    K: Resource + Clone + Debug + DeserializeOwned,
{
    until(&format!("{name} to be gone"), timeout, || async {
        Ok(match api.get_opt(name).await? {
            None => Seen::Ready(()),
            Some(object) => {
                Seen::NotYet(format!("it exists, finalizers {:?}", object.finalizers()))
            }
        })
    })
    .await
}

/// Waits until the pods of a selector satisfy `are_ready`; returns them.
pub async fn for_pods(
    api: &Api<Pod>,
    selector: &str,
    what: &str,
    timeout: Duration,
    are_ready: impl Fn(&[Pod]) -> bool,
) -> Result<Vec<Pod>> {
    let wanted = ListParams::default().labels(selector);
    until(what, timeout, || async {
        let pods = api.list(&wanted).await?.items;
        if are_ready(&pods) {
            return Ok(Seen::Ready(pods));
        }
        let phases: Vec<_> = pods
            .iter()
            .map(|pod| format!("{} {}", pod.name_any(), phase(pod)))
            .collect();
        Ok(Seen::NotYet(format!(
            "{} pods: {}",
            pods.len(),
            phases.join(", ")
        )))
    })
    .await
}

/// Waits until all pods of a namespace have ended.
pub async fn for_pods_to_end(api: &Api<Pod>, what: &str) -> Result<()> {
    let are_over = |pods: &[Pod]| pods.iter().all(is_over);
    let patience = Duration::from_secs(60);
    let pods = for_pods(api, "", what, patience, are_over).await;
    pods.map(drop)
}

/// Whether a pod was asked to go.
pub fn is_deleted(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}

/// Whether a pod is ready, as its Service and its controller see it.
pub fn is_ready(pod: &Pod) -> bool {
    let status = pod.status.iter();
    let mut conditions = status.flat_map(|status| status.conditions.iter().flatten());
    conditions.any(|own| own.type_ == "Ready" && own.status == "True")
}

/// Whether a pod's containers have ended.
pub fn is_over(pod: &Pod) -> bool {
    ["Succeeded", "Failed"].contains(&phase(pod))
}

/// A pod's phase, empty if it has none yet.
pub fn phase(pod: &Pod) -> &str {
    pod.status
        .as_ref()
        .and_then(|status| status.phase.as_deref())
        .unwrap_or_default()
}
