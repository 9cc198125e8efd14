//! Every state that a namespace went through: its pods, DeadlineJobs and Jobs in the order of
//! resourceVersions, which on one apiserver is the order in which they were written.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::{Api, Client, Resource, ResourceExt};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use shed::api::DeadlineJob;
use tokio::task::JoinSet;

/// One write, with the state that it left.
#[derive(Clone, Debug)]
pub enum Change {
    /// A pod is so now.
    Pod(Box<Pod>),
    /// It is gone; so it was at last.
    PodGone(Box<Pod>),
    /// A job is so now.
    Job(Box<DeadlineJob>),
    /// It is gone.
    JobGone(Box<DeadlineJob>),
    /// A batch/v1 Job is so now.
    Batch(Box<Job>),
    /// It is gone.
    BatchGone(Box<Job>),
}

/// One write.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its place in the order of all writes.
    pub version: u64,
    /// The object after the write.
    pub change: Change,
}

#[derive(Default)]
struct Written {
    entries: Vec<Entry>,
    /// When each version came in.
    received: BTreeMap<u64, Instant>,
    broken: Option<String>,
    /// The version of the lists at the start of the history.
    begins_at: u64,
    /// How far each watch has come.
    reached: Vec<u64>,
}

/// A history that is being recorded.
pub struct History {
    written: Arc<Mutex<Written>>,
    _watches: JoinSet<()>,
}

impl History {
    /// Records what happens in these namespaces from now on, what is there already included; Jobs
    /// only `with_batch`.
    pub async fn record<'n>(
        client: Client,
        namespaces: impl Iterator<Item = &'n String>,
        with_batch: bool,
    ) -> Result<Self> {
        let written: Arc<Mutex<Written>> = Arc::default();
        let mut _watches = JoinSet::new();
        for namespace in namespaces {
            let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
            let jobs: Api<DeadlineJob> = Api::namespaced(client.clone(), namespace);
            let watch = follow(pods, &written, |pod, gone| match gone {
                true => Change::PodGone(Box::new(pod)),
                false => Change::Pod(Box::new(pod)),
            });
            _watches.spawn(watch.await?);
            let watch = follow(jobs, &written, |job, gone| match gone {
                true => Change::JobGone(Box::new(job)),
                false => Change::Job(Box::new(job)),
            });
            _watches.spawn(watch.await?);
            if with_batch {
                let batch: Api<Job> = Api::namespaced(client.clone(), namespace);
                let watch = follow(batch, &written, |job, gone| match gone {
                    true => Change::BatchGone(Box::new(job)),
                    false => Change::Batch(Box::new(job)),
                });
                _watches.spawn(watch.await?);
            }
        }
        Ok(Self { written, _watches })
    }

    /// The writes so far, in order.
    pub fn so_far(&self) -> Vec<Entry> {
        let mut entries = self.written.lock().entries.clone();
        entries.sort_by_key(|entry| entry.version);
        entries
    }

    /// The writes that all watches have shown: later, one watch may lack a write whose effect another has
    /// shown.
    pub fn complete(&self) -> Vec<Entry> {
        let reached = self.written.lock().reached.iter().min().copied();
        let mut entries = self.so_far();
        entries.retain(|entry| Some(entry.version) <= reached);
        entries
    }

    /// The same, once each: what was returned is forgotten.
    pub fn take_complete(&self) -> Vec<Entry> {
        let mut written = self.written.lock();
        let reached = written.reached.iter().min().copied();
        let is_complete = |entry: &mut Entry| Some(entry.version) <= reached;
        let mut entries: Vec<Entry> = written.entries.extract_if(.., is_complete).collect();
        written.received.clear();
        entries.sort_by_key(|entry| entry.version);
        entries
    }

    /// Objects up to this version existed before the history began.
    pub fn begins_at(&self) -> u64 {
        self.written.lock().begins_at
    }

    /// How many writes there were so far.
    pub fn count(&self) -> usize {
        self.written.lock().entries.len()
    }

    /// When each version came in.
    pub fn received(&self) -> BTreeMap<u64, Instant> {
        self.written.lock().received.clone()
    }

    /// Why the record has a gap, if it has one.
    pub fn broken(&self) -> Option<String> {
        self.written.lock().broken.clone()
    }
}

/// Takes in what is there; the returned work takes in what comes after that.
async fn follow<K>(
    api: Api<K>,
    written: &Arc<Mutex<Written>>,
    change: fn(K, bool) -> Change,
) -> Result<impl Future<Output = ()> + use<K>>
where
    K: Resource + Clone + DeserializeOwned + std::fmt::Debug + Send + 'static,
{
    let list = api.list(&ListParams::default()).await?;
    let mut version = list.metadata.resource_version.unwrap_or_default();
    let listed = version.parse().unwrap_or(0);
    let watch_index = {
        let mut written = written.lock();
        written.begins_at = written.begins_at.max(listed);
        written.reached.push(listed);
        written.reached.len() - 1
    };
    for object in list.items {
        let version = version_of(&object);
        put(written, watch_index, version, change(object, false));
    }
    let written = Arc::clone(written);
    Ok(async move {
        // A watch may end at any time; the next one goes on where it ended.
        while written.lock().broken.is_none() {
            if let Err(error) = watch(&api, watch_index, &mut version, &written, change).await {
                tokio::time::sleep(std::time::Duration::from_millis(200)).await;
                note_gap(&written, &error);
            }
        }
    })
}

/// Only an error that loses writes is one; all others are waited through.
fn note_gap(written: &Mutex<Written>, error: &kube::Error) {
    if let kube::Error::Api(status) = error
        && status.code == 410
    {
        written.lock().broken = Some(format!("the watch lost writes: {status}"));
    }
}

async fn watch<K>(
    api: &Api<K>,
    watch_index: usize,
    version: &mut String,
    written: &Mutex<Written>,
    change: fn(K, bool) -> Change,
) -> Result<(), kube::Error>
where
    K: Resource + Clone + DeserializeOwned + std::fmt::Debug + Send + 'static,
{
    // It ends with a mark of how far it was: one from minutes ago would be too old.
    let parameters = WatchParams::default().timeout(30);
    let mut events = api.watch(&parameters, version).await?.boxed();
    while let Some(event) = events.try_next().await? {
        let (object, gone) = match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => (object, false),
            WatchEvent::Deleted(object) => (object, true),
            WatchEvent::Bookmark(mark) => {
                *version = mark.metadata.resource_version;
                let mut written = written.lock();
                let reached = &mut written.reached[watch_index];
                *reached = version.parse().unwrap_or(0).max(*reached);
                continue;
            }
            WatchEvent::Error(status) => return Err(kube::Error::Api(status)),
        };
        *version = object.resource_version().unwrap_or_default();
        let of_object = version_of(&object);
        put(written, watch_index, of_object, change(object, gone));
    }
    Ok(())
}

fn version_of(object: &impl ResourceExt) -> u64 {
    let version = object.resource_version().unwrap_or_default();
    version.parse().unwrap_or(u64::MAX)
}

fn put(written: &Mutex<Written>, watch_index: usize, version: u64, change: Change) {
    let mut written = written.lock();
    let reached = &mut written.reached[watch_index];
    *reached = version.max(*reached);
    written.received.insert(version, Instant::now());
    written.entries.push(Entry { version, change });
}
