//! Every pod that was in a namespace at any time: losers are deleted, so what happened can't be
//! read off the pods that are left.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, ResourceExt};
use tokio::task::JoinHandle;

use crate::cluster::Cluster;

/// A running record of a namespace's pods.
pub struct Sightings {
    pods: Arc<Mutex<BTreeMap<String, Pod>>>,
    task: JoinHandle<()>,
}

impl Sightings {
    /// Starts to watch.
    pub(crate) fn of(cluster: &Cluster, namespace: &str) -> Self {
        let api: Api<Pod> = Api::namespaced(cluster.client(), namespace);
        let pods: Arc<Mutex<BTreeMap<String, Pod>>> = Arc::default();
        let record = Arc::clone(&pods);
        let events = watcher(api, watcher::Config::default())
            .default_backoff()
            .into_stream();
        let task = tokio::spawn(async move {
            let mut events = events.boxed();
            loop {
                // Errors are waited through; the stream backs off by itself.
                let Ok(Some(event)) = events.try_next().await else {
                    continue;
                };
                let (watcher::Event::Apply(pod)
                | watcher::Event::InitApply(pod)
                | watcher::Event::Delete(pod)) = event
                else {
                    continue;
                };
                let Some(uid) = pod.uid() else { continue };
                lock(&record).insert(uid, pod);
            }
        });
        Self { pods, task }
    }

    /// Each pod as it was last seen.
    #[must_use]
    pub fn all(&self) -> Vec<Pod> {
        lock(&self.pods).values().cloned().collect()
    }
}

impl Drop for Sightings {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
