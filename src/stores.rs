//! What the watches of the apiserver show: jobs, pods (boiled down), nodes. Lists are consistent
//! reads, watches end within a minute so that a dead connection is noticed, a 410 lists again.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use futures::{FutureExt, StreamExt};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::ObjectMeta;
use kube::runtime::WatchStreamExt;
use kube::runtime::reflector::{ObjectRef, Store, store};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client};
use shed_core::resources::Resources;
use shed_core::time::Instant;
use tokio::sync::{Mutex, Notify, mpsc};
use tokio::task::JoinSet;

use crate::api::DeadlineJob;
use crate::clock;
use crate::observe::job::JobPods;
use crate::observe::node::NodeFacts;
use crate::observe::pod::PodFacts;
use crate::restored;

/// Seconds until the apiserver ends a watch; a silent one is given up 5 s later.
const WATCH_SECONDS: u32 = 55;

/// Namespace and name of a pod.
type PodKey = (Arc<str>, String);

/// The watched world.
pub struct Stores {
    /// The jobs, as they are in the apiserver.
    pub jobs: Store<DeadlineJob>,
    pods: RwLock<PodIndex>,
    nodes: RwLock<Option<BTreeMap<Arc<str>, NodeFacts>>>,
    /// Raised by everything that a plan may depend on.
    pub changed: Notify,
    /// When the pod watch last said anything.
    pods_heard: AtomicI64,
    /// The highest resourceVersion that any watch or own write has shown.
    newest_version: AtomicU64,
    /// One at a time waits for the first lists: kube wakes the last that asked only.
    first_lists: Mutex<()>,
}

/// Pods by what they are asked for.
#[derive(Default)]
struct PodIndex {
    listed: bool,
    all: HashMap<PodKey, Arc<PodFacts>>,
    by_job: HashMap<Arc<str>, JobPods>,
    /// What pods that are no attempts request, by node.
    others: BTreeMap<Arc<str>, Resources>,
    /// The list that is coming in.
    incoming: Option<Vec<PodFacts>>,
}

impl PodIndex {
    fn put(&mut self, facts: PodFacts) -> Arc<PodFacts> {
        let key = (Arc::clone(&facts.namespace), facts.name.clone());
        self.remove(&key);
        let facts = Arc::new(facts);
        match (&facts.attempt, &facts.node) {
            (Some(attempt), _) => {
                let id = (attempt.task, attempt.number);
                let pods = self.by_job.entry(Arc::clone(&attempt.job_uid));
                pods.or_default().insert(id, Arc::clone(&facts));
            }
            (None, Some(node)) if !facts.terminal => {
                let used = self.others.entry(Arc::clone(node)).or_default();
                used.add(&facts.requests);
            }
            (None, _) => {}
        }
        self.all.insert(key, Arc::clone(&facts));
        facts
    }

    fn remove(&mut self, key: &PodKey) -> Option<Arc<PodFacts>> {
        let old = self.all.remove(key)?;
        match (&old.attempt, &old.node) {
            (Some(attempt), _) => {
                if let Some(pods) = self.by_job.get_mut(&attempt.job_uid) {
                    pods.remove(&(attempt.task, attempt.number));
                    if pods.is_empty() {
                        self.by_job.remove(&attempt.job_uid);
                    }
                }
            }
            (None, Some(node)) if !old.terminal => {
                if let Some(used) = self.others.get_mut(node) {
                    used.subtract(&old.requests);
                }
            }
            (None, _) => {}
        }
        Some(old)
    }

    fn replace_all(&mut self, pods: Vec<PodFacts>) {
        self.all.clear();
        self.by_job.clear();
        self.others.clear();
        for pod in pods {
            self.put(pod);
        }
        self.listed = true;
    }
}

impl Stores {
    /// Starts the watches, which end with `tasks`; `touched` gets every job that something happened to.
    #[must_use]
    pub fn start(
        client: &Client,
        touched: mpsc::UnboundedSender<ObjectRef<DeadlineJob>>,
        tasks: &mut JoinSet<&'static str>,
    ) -> Arc<Self> {
        let (jobs, writer) = store();
        let stores = Arc::new(Self {
            jobs,
            pods: RwLock::default(),
            nodes: RwLock::default(),
            changed: Notify::new(),
            pods_heard: AtomicI64::new(0),
            newest_version: AtomicU64::new(0),
            first_lists: Mutex::default(),
        });
        let jobs = watch_jobs(Arc::clone(&stores), client.clone(), writer, touched.clone());
        let pods = watch_pods(Arc::clone(&stores), client.clone(), touched);
        let nodes = watch_nodes(Arc::clone(&stores), client.clone());
        tasks.spawn(jobs.map(|()| "watch of jobs"));
        tasks.spawn(pods.map(|()| "watch of pods"));
        tasks.spawn(nodes.map(|()| "watch of nodes"));
        stores
    }

    /// Waits until every list has come in.
    pub async fn ready(&self) {
        let _turn = self.first_lists.lock().await;
        // An error means that the writer is gone: the term is ending.
        let _ = self.jobs.wait_until_ready().await;
        while !self.is_ready() {
            self.changed.notified().await;
        }
        self.changed.notify_one();
    }

    /// Whether every list has come in.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.pods().listed && self.nodes_guard().is_some()
    }

    /// A job's pods by attempt.
    #[must_use]
    pub fn pods_of(&self, job_uid: &str) -> JobPods {
        self.pods().by_job.get(job_uid).cloned().unwrap_or_default()
    }

    /// Uids of jobs that have pods.
    #[must_use]
    pub fn job_uids_with_pods(&self) -> Vec<Arc<str>> {
        self.pods().by_job.keys().cloned().collect()
    }

    /// What pods that are no attempts request, by node.
    #[must_use]
    pub fn used_by_others(&self) -> BTreeMap<Arc<str>, Resources> {
        self.pods().others.clone()
    }

    /// The nodes.
    #[must_use]
    pub fn nodes(&self) -> BTreeMap<Arc<str>, NodeFacts> {
        self.nodes_guard().clone().unwrap_or_default()
    }

    /// One node.
    #[must_use]
    pub fn node(&self, name: &str) -> Option<NodeFacts> {
        self.nodes_guard().as_ref()?.get(name).cloned()
    }

    /// When the pod watch last said anything.
    #[must_use]
    pub fn pods_heard(&self) -> Instant {
        Instant(self.pods_heard.load(Ordering::Relaxed))
    }

    /// The highest resourceVersion that any watch or own write has shown.
    #[must_use]
    pub fn newest_version(&self) -> u64 {
        self.newest_version.load(Ordering::Relaxed)
    }

    /// Takes note of a version that a watch or an own write has shown.
    pub fn note_version(&self, metadata: &ObjectMeta) {
        if let Some(version) = restored::version(metadata) {
            self.newest_version.fetch_max(version, Ordering::Relaxed);
        }
    }

    /// The resourceVersion of each attempt pod, by uid.
    #[must_use]
    pub fn versions(&self) -> BTreeMap<String, u64> {
        let pods = self.pods();
        let attempts = pods.by_job.values().flat_map(BTreeMap::values);
        attempts.map(|pod| (pod.uid.clone(), pod.version)).collect()
    }

    // A panic while the lock was held leaves data that the next event mends.
    fn pods(&self) -> RwLockReadGuard<'_, PodIndex> {
        self.pods.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn pods_mut(&self) -> RwLockWriteGuard<'_, PodIndex> {
        self.pods.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn nodes_guard(&self) -> RwLockReadGuard<'_, Option<BTreeMap<Arc<str>, NodeFacts>>> {
        self.nodes.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn apply_pod_event(&self, event: Event<Pod>) -> Vec<Arc<PodFacts>> {
        let now = clock::now();
        self.pods_heard.store(now.0, Ordering::Relaxed);
        if let Event::Apply(pod) | Event::InitApply(pod) | Event::Delete(pod) = &event {
            self.note_version(&pod.metadata);
        }
        let mut index = self.pods_mut();
        match event {
            Event::Init => {
                index.incoming = Some(Vec::new());
                vec![]
            }
            Event::InitApply(pod) => {
                let facts = PodFacts::from_pod(&pod, now);
                index.incoming.get_or_insert_with(Vec::new).push(facts);
                vec![]
            }
            Event::InitDone => {
                let before: Vec<_> = index.all.values().cloned().collect();
                let incoming = index.incoming.take().unwrap_or_default();
                index.replace_all(incoming);
                index.all.values().cloned().chain(before).collect()
            }
            Event::Apply(pod) => vec![index.put(PodFacts::from_pod(&pod, now))],
            Event::Delete(pod) => {
                let facts = PodFacts::from_pod(&pod, now);
                let key = (Arc::clone(&facts.namespace), facts.name.clone());
                index.remove(&key).into_iter().collect()
            }
        }
    }

    fn job_of(&self, pod: &PodFacts) -> Option<ObjectRef<DeadlineJob>> {
        let uid = &pod.attempt.as_ref()?.job_uid;
        let owner = self
            .jobs
            .find(|job| job.metadata.uid.as_deref() == Some(uid))?;
        Some(ObjectRef::from_obj(owner.as_ref()))
    }
}

/// Without watches: tests say what is seen.
#[cfg(test)]
impl Stores {
    pub fn for_tests(jobs: Vec<DeadlineJob>, pods: Vec<Pod>, nodes: &[Node]) -> Arc<Self> {
        let (reader, mut writer) = store();
        writer.apply_watcher_event(&Event::Init);
        for job in jobs {
            writer.apply_watcher_event(&Event::InitApply(job));
        }
        writer.apply_watcher_event(&Event::InitDone);
        let nodes = nodes.iter().map(NodeFacts::from_node);
        let stores = Arc::new(Self {
            jobs: reader,
            pods: RwLock::default(),
            nodes: RwLock::new(Some(
                nodes.map(|node| (Arc::clone(&node.name), node)).collect(),
            )),
            changed: Notify::new(),
            pods_heard: AtomicI64::new(0),
            newest_version: AtomicU64::new(0),
            first_lists: Mutex::default(),
        });
        stores.show(pods);
        stores
    }

    /// Stores whose first lists have not come in.
    pub fn unlisted() -> Arc<Self> {
        Arc::new(Self {
            jobs: store().0,
            pods: RwLock::default(),
            nodes: RwLock::default(),
            changed: Notify::new(),
            pods_heard: AtomicI64::new(0),
            newest_version: AtomicU64::new(0),
            first_lists: Mutex::default(),
        })
    }

    /// The watch of pods lists again.
    pub fn show(&self, pods: Vec<Pod>) {
        self.apply_pod_event(Event::Init);
        for pod in pods {
            self.apply_pod_event(Event::InitApply(pod));
        }
        self.apply_pod_event(Event::InitDone);
    }
}

fn config() -> watcher::Config {
    watcher::Config::default().timeout(WATCH_SECONDS)
}

async fn watch_jobs(
    stores: Arc<Stores>,
    client: Client,
    mut writer: kube::runtime::reflector::store::Writer<DeadlineJob>,
    touched: mpsc::UnboundedSender<ObjectRef<DeadlineJob>>,
) {
    let mut events = watcher(Api::<DeadlineJob>::all(client), config())
        .default_backoff()
        .boxed();
    while let Some(event) = events.next().await {
        match event {
            Ok(event) => {
                writer.apply_watcher_event(&event);
                match event {
                    Event::Apply(job) | Event::InitApply(job) | Event::Delete(job) => {
                        stores.note_version(&job.metadata);
                        // A closed channel means that the process is ending.
                        let _ = touched.send(ObjectRef::from_obj(&job));
                    }
                    Event::InitDone => {
                        for job in stores.jobs.state() {
                            let _ = touched.send(ObjectRef::from_obj(job.as_ref()));
                        }
                    }
                    Event::Init => {}
                }
                stores.changed.notify_one();
            }
            Err(error) => tracing::warn!(%error, "watch of DeadlineJobs"),
        }
    }
}

async fn watch_pods(
    stores: Arc<Stores>,
    client: Client,
    touched: mpsc::UnboundedSender<ObjectRef<DeadlineJob>>,
) {
    let mut events = watcher(Api::<Pod>::all(client), config())
        .default_backoff()
        .boxed();
    while let Some(event) = events.next().await {
        match event {
            Ok(event) => {
                for pod in stores.apply_pod_event(event) {
                    if let Some(job) = stores.job_of(&pod) {
                        let _ = touched.send(job);
                    }
                }
                stores.changed.notify_one();
            }
            Err(error) => tracing::warn!(%error, "watch of pods"),
        }
    }
}

async fn watch_nodes(stores: Arc<Stores>, client: Client) {
    let mut events = watcher(Api::<Node>::all(client), config())
        .default_backoff()
        .boxed();
    let mut incoming = BTreeMap::new();
    while let Some(event) = events.next().await {
        let event = match event {
            Ok(event) => event,
            Err(error) => {
                tracing::warn!(%error, "watch of nodes");
                continue;
            }
        };
        let mut nodes = stores.nodes.write().unwrap_or_else(PoisonError::into_inner);
        let changed = match event {
            Event::Init => {
                incoming = BTreeMap::new();
                false
            }
            Event::InitApply(node) => {
                let facts = NodeFacts::from_node(&node);
                incoming.insert(Arc::clone(&facts.name), facts);
                false
            }
            Event::InitDone => {
                *nodes = Some(std::mem::take(&mut incoming));
                true
            }
            // A kubelet's heartbeat changes nothing that is kept here.
            Event::Apply(node) => {
                let facts = NodeFacts::from_node(&node);
                let known = nodes.get_or_insert_default();
                let old = known.insert(Arc::clone(&facts.name), facts.clone());
                old.as_ref() != Some(&facts)
            }
            Event::Delete(node) => {
                let name = node.metadata.name.unwrap_or_default();
                nodes
                    .get_or_insert_default()
                    .remove(name.as_str())
                    .is_some()
            }
        };
        drop(nodes);
        if changed {
            stores.changed.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(name: &str, node: &str, attempt: bool, phase: &str) -> PodFacts {
        let labels = if attempt {
            "labels: {shed.dev/job-uid: u, shed.dev/attempt: '0', batch.kubernetes.io/job-completion-index: '1'},"
        } else {
            ""
        };
        let pod: Pod = serde_yaml_ng::from_str(&format!(
            "{{metadata: {{name: {name}, namespace: n, {labels} uid: x}}, status: {{phase: {phase}}}, \
             spec: {{nodeName: {node}, containers: [{{name: c, resources: {{requests: {{cpu: '1'}}}}}}]}}}}"
        ))
        .unwrap();
        PodFacts::from_pod(&pod, Instant(0))
    }

    #[test]
    fn what_others_request_follows_every_change_of_their_pods() {
        let mut index = PodIndex::default();
        let cpu = |index: &PodIndex| index.others.get("a").map_or(0, |used| used.get("cpu"));
        index.put(pod("x", "a", false, "Running"));
        index.put(pod("y", "a", false, "Running"));
        assert_eq!(cpu(&index), 2000);
        index.put(pod("x", "a", false, "Succeeded"));
        assert_eq!(cpu(&index), 1000);
        index.remove(&(Arc::from("n"), "x".to_owned()));
        index.remove(&(Arc::from("n"), "y".to_owned()));
        assert_eq!(cpu(&index), 0);
    }

    #[test]
    fn attempts_are_found_by_job_and_number_until_they_are_gone() {
        let mut index = PodIndex::default();
        index.put(pod("x", "a", true, "Running"));
        assert!(index.by_job["u"].contains_key(&(1, 0)));
        assert!(index.others.is_empty(), "an attempt is no load of others");
        index.remove(&(Arc::from("n"), "x".to_owned()));
        assert!(index.by_job.is_empty());
    }
}
