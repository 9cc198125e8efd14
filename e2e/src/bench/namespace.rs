//! The namespace of a load: made, filled with jobs, read in pages and removed again.

use std::fmt::Debug;
use std::time::Duration;

use anyhow::Result;
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Namespace, Pod, ServiceAccount};
use kube::api::{DeleteParams, ListParams, PartialObjectMeta, PostParams};
use kube::{Api, Client, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use shed::api::DeadlineJob;

use crate::patches::{merge, merge_status};
use crate::wait::{self, Seen};

/// Requests of a bench that are under way at once, unless it says otherwise.
pub const AT_ONCE: usize = 16;
/// How often a request without an answer is sent …
const TRIES: u32 = 5;
/// … and the time between two of them.
const AGAIN: Duration = Duration::from_millis(250);
/// Objects of a page.
pub const PAGE: u32 = 500;
/// How long objects may take to be gone.
const GONE_WITHIN: Duration = Duration::from_secs(900);

/// Makes a namespace in which pods can be created.
pub async fn make_namespace(client: &Client, name: &str) -> Result<()> {
    let wanted: Namespace = serde_json::from_value(json!({"metadata": {"name": name}}))?;
    let all: Api<Namespace> = Api::all(client.clone());
    all.create(&PostParams::default(), &wanted).await?;
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), name);
    let (what, within) = ("the namespace's service account", Duration::from_secs(60));
    let account = wait::for_object(&accounts, "default", what, within, |_| true);
    account.await.map(drop)
}

/// Creates an object. Of ten thousand requests one may have no answer, and may have been carried out.
pub async fn submit<K>(api: &Api<K>, object: &K) -> Result<()>
where
    K: Clone + Debug + Serialize + DeserializeOwned,
{
    for tries in 1.. {
        match api.create(&PostParams::default(), object).await {
            Ok(_) => break,
            Err(kube::Error::Api(status)) if status.code == 409 && tries > 1 => break,
            Err(error) => unanswered(error, tries).await?,
        }
    }
    Ok(())
}

/// A job that arrives this long after the first one.
pub struct Arrival {
    /// The time from the first job on.
    pub after: Duration,
    /// Its manifest.
    pub job: Value,
    /// Its status, if it begins with one.
    pub status: Option<Value>,
}

impl Arrival {
    /// A job without a status.
    pub fn new(after: Duration, job: Value) -> Self {
        let status = None;
        Self { after, job, status }
    }
}

/// Creates jobs as they arrive, with at most `at_once` requests that are under way.
pub async fn submit_all<K>(
    api: &Api<K>,
    arrivals: impl IntoIterator<Item = Arrival>,
    at_once: usize,
) -> Result<()>
where
    K: ResourceExt + Clone + Debug + Serialize + DeserializeOwned,
{
    let began = tokio::time::Instant::now();
    let made = arrivals.into_iter().map(|arrival| async move {
        tokio::time::sleep_until(began + arrival.after).await;
        let job: K = serde_json::from_value(arrival.job)?;
        submit(api, &job).await?;
        match arrival.status {
            Some(status) => set_status(api, &job.name_any(), &status).await,
            None => Ok(()),
        }
    });
    let made = stream::iter(made).buffer_unordered(at_once);
    made.try_collect().await
}

async fn set_status<K>(api: &Api<K>, name: &str, status: &Value) -> Result<()>
where
    K: Clone + Debug + DeserializeOwned,
{
    let change = json!({"status": status});
    for tries in 1.. {
        match merge_status(api, name, &change).await {
            Ok(_) => break,
            Err(error) => unanswered(error, tries).await?,
        }
    }
    Ok(())
}

/// Waits a moment after a request without an answer.
async fn unanswered(error: kube::Error, tries: u32) -> Result<()> {
    if tries == TRIES || matches!(error, kube::Error::Api(_)) {
        return Err(error.into());
    }
    tokio::time::sleep(AGAIN).await;
    Ok(())
}

/// Goes through all objects of a kind, a page at a time.
pub async fn each<K>(
    api: &Api<K>,
    mut page: ListParams,
    mut take: impl FnMut(K) -> Result<()>,
) -> Result<()>
where
    K: Clone + Debug + DeserializeOwned,
{
    loop {
        let list = api.list(&page).await?;
        list.items.into_iter().try_for_each(&mut take)?;
        match list.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => return Ok(()),
        }
    }
}

/// The metadata of the pods for which `is_meant` is true.
pub async fn pods(
    pods: &Api<Pod>,
    is_meant: impl Fn(&PartialObjectMeta<Pod>) -> bool,
) -> Result<Vec<PartialObjectMeta<Pod>>> {
    let mut page = ListParams::default().limit(PAGE);
    let mut meant = Vec::new();
    loop {
        let list = pods.list_metadata(&page).await?;
        meant.extend(list.items.into_iter().filter(|pod| is_meant(pod)));
        match list.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => return Ok(meant),
        }
    }
}

/// Whether a pod waits for a controller.
pub fn is_held(pod: &PartialObjectMeta<Pod>) -> bool {
    !pod.finalizers().is_empty()
}

/// Takes the finalizers off all pods of a namespace: pods that wait for a stopped controller would stay without end.
pub async fn free_pods(client: &Client, namespace: &str) -> Result<()> {
    let all: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let none = json!({"metadata": {"finalizers": null}});
    let freed = pods(&all, is_held).await?.into_iter().map(|pod| {
        let (all, none) = (&all, &none);
        async move {
            // It may be gone meanwhile.
            drop(merge(all, &pod.name_any(), none).await);
        }
    });
    let freed = stream::iter(freed).buffer_unordered(AT_ONCE);
    freed.collect::<()>().await;
    Ok(())
}

/// Removes a namespace with its jobs and pods, whether their controllers run or not.
pub async fn remove(client: &Client, namespace: &str) -> Result<()> {
    let jobs: Api<Job> = Api::namespaced(client.clone(), namespace);
    let deadline_jobs: Api<DeadlineJob> = Api::namespaced(client.clone(), namespace);
    let all_pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let (now, all) = (DeleteParams::background(), ListParams::default());
    let at_once = DeleteParams::default().grace_period(0);
    // The apiserver gives up on a collection after a minute; the next call deletes the rest.
    wait::until("jobs and pods to be gone", GONE_WITHIN, async || {
        drop(jobs.delete_collection(&now, &all).await?);
        drop(deadline_jobs.delete_collection(&now, &all).await?);
        free_pods(client, namespace).await?;
        drop(all_pods.delete_collection(&at_once, &all).await?);
        let left = pods(&all_pods, |_| true).await?.len();
        Ok(Seen::when(left == 0, || format!("{left} pods")))
    })
    .await?;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    drop(namespaces.delete(namespace, &now).await?);
    wait::for_absence(&namespaces, namespace, GONE_WITHIN).await
}
