//! Every pod that was in a namespace at any time: losers are deleted, so what happened can't be
//! read off the pods that are left.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, ResourceExt};
use parking_lot::Mutex;
use tokio::task::JoinSet;

use crate::cluster::Cluster;
use crate::wait;

/// A pod, as it was last seen.
#[derive(Clone)]
pub struct Sighting {
    pub pod: Pod,
    /// When it was first seen.
    pub first: Instant,
    /// When it was first seen to be deleted, if it was.
    pub doomed: Option<Instant>,
    /// When its containers were first seen to have ended, or it to be gone.
    pub over: Option<Instant>,
}

type Record = BTreeMap<String, Sighting>;

/// A running record of a namespace's pods.
pub struct Sightings {
    pods: Arc<Mutex<Record>>,
    _task: JoinSet<()>,
}

impl Sightings {
    /// Starts to watch.
    pub(crate) fn of(cluster: &Cluster, namespace: &str) -> Self {
        let api: Api<Pod> = Api::namespaced(cluster.client(), namespace);
        let pods: Arc<Mutex<Record>> = Arc::default();
        let record = Arc::clone(&pods);
        let events = watcher(api, watcher::Config::default())
            .default_backoff()
            .into_stream();
        let _task = JoinSet::from_iter([async move {
            let mut events = events.boxed();
            loop {
                // Errors are waited through; the stream backs off by itself.
                let Ok(Some(event)) = events.try_next().await else {
                    continue;
                };
                let (pod, is_gone) = match event {
                    watcher::Event::Apply(pod) | watcher::Event::InitApply(pod) => (pod, false),
                    watcher::Event::Delete(pod) => (pod, true),
                    watcher::Event::Init | watcher::Event::InitDone => continue,
                };
                note(&mut record.lock(), pod, is_gone);
            }
        }]);
        Self { pods, _task }
    }

    /// Each pod as it was last seen.
    pub fn all(&self) -> Vec<Pod> {
        self.pods
            .lock()
            .values()
            .map(|seen| seen.pod.clone())
            .collect()
    }

    /// Each pod, and when it was seen to come and go.
    pub fn timed(&self) -> Vec<Sighting> {
        self.pods.lock().values().cloned().collect()
    }
}

fn note(record: &mut Record, pod: Pod, is_gone: bool) {
    let (Some(uid), now) = (pod.uid(), Instant::now()) else {
        return;
    };
    let is_over = is_gone || wait::is_over(&pod);
    let before = record.get(&uid);
    let sighting = Sighting {
        first: before.map_or(now, |seen| seen.first),
        doomed: before
            .and_then(|seen| seen.doomed)
            .or_else(|| pod.metadata.deletion_timestamp.as_ref().map(|_| now)),
        over: before.and_then(|seen| seen.over).or(is_over.then_some(now)),
        pod,
    };
    record.insert(uid, sighting);
}
