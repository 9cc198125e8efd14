//! The state that the watches of the apiserver show: jobs, pods (reduced to the facts shed needs),
//! nodes, and the annotations of namespaces. Lists are consistent reads. Watches end within a minute so that a dead connection is
//! noticed. A 410 makes the watch list again.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::{FutureExt, StreamExt};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ObjectMeta;
use kube::runtime::WatchStreamExt;
use kube::runtime::reflector::{ObjectRef, Store, store};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client};
use parking_lot::RwLock;
use tokio::sync::{Mutex, Notify, mpsc};
use tokio::task::JoinSet;

use crate::adopt::{AdoptJobs, Jobs};
use crate::api::DeadlineJob;
use crate::api::managed_fields::Trimmed;
use crate::clock::Clock;
use crate::cluster::pod::PodFacts;
use crate::validate::template_extras::TemplateExtrasTable;

mod attempts;
mod batch;
mod binds;
mod changes;
pub mod failure;
#[cfg(test)]
mod fixtures;
pub mod identity;
mod index;
mod interned_names;
mod job_watch;
mod jobs;
pub mod namespace_settings;
pub mod node;
mod nodes;
mod page_turns;
pub mod pod;
pub mod pod_end;
pub mod requests;
pub mod scheduling;
mod status_only_changes;
mod versions;
pub mod watch_only;
mod watched_job;
mod whole_bytes;

pub use attempts::PodStore;
use batch::watch_batch;
pub use changes::{Changes, Inbox};
pub use job_watch::JobFault;
use job_watch::watch_jobs;
pub use jobs::{Departed, JobStore};
use namespace_settings::{NamespaceSettings, watch_namespaces};
pub use nodes::NodeStore;
use nodes::watch_nodes;
pub use page_turns::PAGE;
use page_turns::PageTurns;
use versions::NewestVersions;
pub use versions::{Newest, Seen, Versioned, version};
use watch_only::WatchOnlyJobs;
pub use watched_job::{
    CompanionSettings, Crowded, Finished, JobObject, JobVersion, Refusal, Rest, Skeleton,
    WatchedJob, job_version,
};
pub use whole_bytes::Kind;

/// Seconds until the apiserver ends a watch; a silent one is given up 5 s later.
pub(crate) const WATCH_SECONDS: u32 = 55;

/// The watched world.
pub struct Stores {
    /// The jobs.
    pub jobs: JobStore,
    /// The pods.
    pub pods: PodStore,
    /// The nodes.
    pub nodes: NodeStore,
    /// The Jobs that are only watched.
    pub watch_only: WatchOnlyJobs,
    /// The settings of namespaces.
    namespaces: RwLock<Option<Arc<NamespaceSettings>>>,
    /// Reports changes to pollers.
    news: changes::News,
    /// Raised by everything that a plan may depend on.
    pub changed: Notify,
    newest_versions: NewestVersions,
    /// Whether the cluster has Kueue. Until that is known it counts as present, so that no attempt exceeds its quota.
    has_kueue: AtomicBool,
    /// Raised once an object was seen in an older version than before.
    restored: Notify,
    /// Dates the observations.
    clock: Arc<Clock>,
    page_turns: Arc<PageTurns>,
    /// Only one caller at a time waits for the first lists, because kube wakes only the last
    /// waiter.
    first_lists: Mutex<()>,
}

/// Channels that report the changed job and the kind of change.
#[derive(Clone)]
pub struct Touched {
    /// DeadlineJobs.
    pub jobs: mpsc::UnboundedSender<ObjectRef<DeadlineJob>>,
    /// DeadlineJobs with a change that nothing must follow soon.
    pub status_only_jobs: mpsc::UnboundedSender<ObjectRef<DeadlineJob>>,
    /// batch/v1 Jobs.
    pub batch: mpsc::UnboundedSender<ObjectRef<Job>>,
}

impl Touched {
    /// Reports a change of a DeadlineJob, or of its pods.
    fn touch(&self, job: ObjectRef<DeadlineJob>, is_status_only: bool) {
        let jobs = match is_status_only {
            true => &self.status_only_jobs,
            false => &self.jobs,
        };
        // A closed channel means that the process is ending.
        let _ = jobs.send(job);
    }
}

/// Counts visited entries for tests.
#[derive(Default)]
struct Visits(#[cfg(test)] std::sync::atomic::AtomicUsize);

impl Visits {
    fn add(&self, entries: usize) {
        #[cfg(test)]
        self.0
            .fetch_add(entries, std::sync::atomic::Ordering::Relaxed);
        #[cfg(not(test))]
        let _ = entries;
    }
}

impl Stores {
    /// The resources that are watched.
    pub fn watched(adopt: AdoptJobs) -> &'static [&'static str] {
        match adopt {
            AdoptJobs::None => &["deadlinejobs", "namespaces", "nodes", "pods"],
            _ => &["deadlinejobs", "jobs", "namespaces", "nodes", "pods"],
        }
    }

    /// Starts the watches, which end with `tasks`; `touched` gets every job that something happened to.
    pub fn start(
        client: &Client,
        adopt: AdoptJobs,
        touched: &Touched,
        clock: Arc<Clock>,
        tasks: &mut JoinSet<&'static str>,
    ) -> Arc<Self> {
        let (jobs, writer) = store();
        let (batch, batch_writer) = store();
        let adopts = adopt != AdoptJobs::None;
        let batch = adopts.then_some(Jobs {
            mode: adopt,
            store: batch,
            template_extras: TemplateExtrasTable::default(),
            lent: parking_lot::Mutex::default(),
        });
        let stores = Arc::new(Self::new(jobs, batch, clock));
        let jobs = watch_jobs(Arc::clone(&stores), client.clone(), writer, touched.clone());
        let pods = watch_pods(Arc::clone(&stores), client.clone(), touched.clone());
        let nodes = watch_nodes(Arc::clone(&stores), client.clone());
        tasks.spawn(jobs.map(|()| "watch of jobs"));
        tasks.spawn(pods.map(|()| "watch of pods"));
        tasks.spawn(nodes.map(|()| "watch of nodes"));
        let namespaces = watch_namespaces(Arc::clone(&stores), client.clone());
        tasks.spawn(namespaces.map(|()| "watch of namespaces"));
        if adopts {
            let batch = watch_batch(
                Arc::clone(&stores),
                client.clone(),
                batch_writer,
                touched.clone(),
            );
            tasks.spawn(batch.map(|()| "watch of Jobs"));
        }
        stores
    }

    fn new(jobs: Store<WatchedJob>, batch: Option<Jobs>, clock: Arc<Clock>) -> Self {
        Self {
            jobs: JobStore::new(jobs, batch),
            pods: PodStore::default(),
            nodes: NodeStore::default(),
            page_turns: PageTurns::new(1),
            watch_only: WatchOnlyJobs::default(),
            namespaces: RwLock::default(),
            news: changes::News::default(),
            changed: Notify::new(),
            newest_versions: NewestVersions::default(),
            has_kueue: AtomicBool::new(true),
            restored: Notify::new(),
            clock,
            first_lists: Mutex::default(),
        }
    }

    /// Waits until every list has come in.
    pub async fn ready(&self) {
        let _turn = self.first_lists.lock().await;
        // An error means that the writer is gone: the term is ending.
        let _ = self.jobs.store.wait_until_ready().await;
        if let Some(batch) = &self.jobs.batch {
            let _ = batch.store.wait_until_ready().await;
        }
        while !self.is_ready() {
            self.changed.notified().await;
        }
        self.changed.notify_one();
    }

    /// Whether the cluster has Kueue.
    pub fn has_kueue(&self) -> bool {
        self.has_kueue.load(Ordering::Relaxed)
    }

    /// Takes note of whether the cluster has Kueue, and returns whether that is new. What Jobs may do depends on it.
    pub fn note_kueue(&self, is_there: bool) -> bool {
        let is_news = self.has_kueue.swap(is_there, Ordering::Relaxed) != is_there;
        if is_news {
            self.changed.notify_one();
        }
        is_news
    }

    /// Whether every list has come in.
    pub fn is_ready(&self) -> bool {
        self.awaited().is_empty()
    }

    /// The resources whose first list has not come in.
    pub fn awaited(&self) -> Vec<&'static str> {
        let lists = [
            ("namespaces", self.knows_namespaces()),
            ("nodes", self.nodes.nodes.read().is_some()),
            ("pods", self.pods.index.read().listed),
        ];
        let missing = lists.into_iter().filter(|(_, is_listed)| !is_listed);
        missing.map(|(resource, _)| resource).collect()
    }

    /// Names of nodes without an object that attempts are on which have not ended.
    pub fn missing_nodes(&self) -> BTreeSet<Arc<str>> {
        let nodes = self.nodes.nodes.read();
        let is_there =
            |name: &Arc<str>| nodes.as_ref().is_some_and(|nodes| nodes.contains_key(name));
        let pods = self.pods.index.read();
        let missing = pods.nodes.keys().filter(|name| !is_there(name));
        missing.cloned().collect()
    }

    /// The highest resourceVersion that a watch or an own write has shown of the resource.
    pub fn newest_version(&self, of: Versioned) -> u64 {
        self.newest_versions.of(of).version
    }

    /// The newest changes of the resource that a watch or an own write has shown.
    pub fn newest(&self, of: Versioned) -> Newest {
        self.newest_versions.of(of).clone()
    }

    /// Takes note of a version that a watch or an own write has shown.
    pub fn note_version(&self, of: Versioned, metadata: &ObjectMeta) {
        self.newest_versions.note(of, metadata, false);
    }

    /// Compares an object with an earlier version of it. Only in a store that was restored is it older.
    pub fn compare_versions(&self, earlier: Option<u64>, later: Option<u64>) {
        if later.is_some() && later < earlier {
            self.restored.notify_one();
        }
    }

    /// Returns once an object was seen in an older version than before.
    pub async fn restored(&self) {
        self.restored.notified().await;
    }

    /// Takes a notice of the watch in; returns the pods that it is about, and whether only the status follows.
    fn apply_pod_event(&self, event: Event<Trimmed<Pod>>) -> (Vec<Arc<PodFacts>>, bool) {
        let now = self.clock.now();
        self.pods.heard.store(now.0, Ordering::Relaxed);
        if let Event::Apply(pod) | Event::InitApply(pod) | Event::Delete(pod) = &event {
            let is_deleted = matches!(event, Event::Delete(_));
            self.newest_versions
                .note(Versioned::Pods, &pod.metadata, is_deleted);
        }
        let is_list = matches!(event, Event::InitDone);
        let mut index = self.pods.index.write();
        index.version += 1;
        let mut is_status_only = false;
        let changed = match event {
            Event::Init => {
                index.incoming = Some(Vec::new());
                vec![]
            }
            Event::InitApply(pod) => {
                let mut facts = PodFacts::from_pod(&pod, now);
                index.names.share(&mut facts);
                index.incoming.get_or_insert_with(Vec::new).push(facts);
                vec![]
            }
            Event::InitDone => {
                let before: Vec<_> = index.all.values().cloned().collect();
                let incoming = index.incoming.take().unwrap_or_default();
                for pod in &incoming {
                    index.note_bind(pod, now);
                    self.compare_pod(index.known(pod), pod);
                }
                index.replace_all(incoming);
                index.all.values().cloned().chain(before).collect()
            }
            Event::Apply(pod) => {
                let mut facts = PodFacts::from_pod(&pod, now);
                index.names.share(&mut facts);
                index.note_bind(&facts, now);
                self.compare_pod(index.known(&facts), &facts);
                let (facts, before) = index.put(facts);
                is_status_only =
                    status_only_changes::is_status_only(&index, before.as_deref(), &facts);
                // A job loses a pod that now belongs to another job.
                let whose = |pod: &PodFacts| (pod.identity.owner.clone(), pod.identity.attempt);
                let before = before.filter(|before| whose(before) != whose(&facts));
                before.into_iter().chain([facts]).collect()
            }
            Event::Delete(pod) => {
                let facts = PodFacts::from_pod(&pod, now);
                let key = (Arc::clone(&facts.namespace), Arc::clone(&facts.name));
                index.remove(&key).into_iter().collect()
            }
        };
        self.news.pods_changed(is_list, &changed);
        (changed, is_status_only)
    }

    fn compare_pod(&self, earlier: Option<&Arc<PodFacts>>, later: &PodFacts) {
        let earlier = earlier.filter(|earlier| earlier.uid == later.uid);
        let later = Some(later.version).filter(|version| *version > 0);
        self.compare_versions(earlier.map(|pod| pod.version), later);
    }

    /// Whether the watch shows the object.
    pub fn shows(&self, of: Versioned, seen: &Seen) -> bool {
        match of {
            Versioned::DeadlineJobs => self.jobs.table.read().is_there(&seen.uid),
            Versioned::Pods => {
                let key: (Arc<str>, Arc<str>) =
                    (seen.namespace.as_str().into(), seen.name.as_str().into());
                let pods = self.pods.index.read();
                pods.all.get(&key).is_some_and(|pod| pod.uid == seen.uid)
            }
            Versioned::Jobs => false,
        }
    }
}

fn config() -> watcher::Config {
    let config = watcher::Config::default().timeout(WATCH_SECONDS);
    config.page_size(PAGE)
}

async fn watch_pods(stores: Arc<Stores>, client: Client, touched: Touched) {
    let mut events = watcher(Api::<Trimmed<Pod>>::all(stores.reader(&client)), config())
        .default_backoff()
        .boxed();
    while let Some(event) = events.next().await {
        match event {
            Ok(event) => {
                let (pods, is_status_only) = stores.apply_pod_event(event);
                for pod in pods {
                    if let Some(job) = stores.jobs.job_of(&pod) {
                        touched.touch(job, is_status_only);
                    }
                }
                stores.changed.notify_one();
            }
            Err(error) => tracing::warn!(%error, "watch of pods"),
        }
    }
}
