//! The state without watches: tests provide the observations.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::runtime::reflector::store::Writer;
use kube::runtime::reflector::{Store, store};
use kube::runtime::watcher::Event;
use parking_lot::{Mutex, RwLock};

use crate::adopt::{AdoptJobs, Jobs, WatchedBatchJob};
use crate::api::DeadlineJob;
use crate::clock::Clock;
use crate::cluster::node::NodeFacts;
use crate::cluster::{JobObject, Stores, WatchedJob};
use crate::validate::template_extras::TemplateExtrasTable;

/// The object as a watch decodes it.
pub(super) fn sent<T: serde::de::DeserializeOwned>(object: &impl serde::Serialize) -> T {
    let object = serde_json::to_value(object).expect("an object");
    serde_json::from_value(object).expect("the same object")
}

impl Stores {
    pub fn for_tests(jobs: Vec<DeadlineJob>, pods: Vec<Pod>, nodes: &[Node]) -> Arc<Self> {
        let jobs = jobs.into_iter().map(|job| sent(&job));
        Self::listed(jobs.collect(), pods, nodes).0
    }

    /// Jobs as the apiserver sends them; some cannot be decoded. The caller sends later watch
    /// events through the writer.
    pub fn of_objects(jobs: Vec<JobObject>, pods: Vec<Pod>) -> (Arc<Self>, Writer<WatchedJob>) {
        Self::listed(jobs, pods, &[])
    }

    fn listed(
        jobs: Vec<JobObject>,
        pods: Vec<Pod>,
        nodes: &[Node],
    ) -> (Arc<Self>, Writer<WatchedJob>) {
        let (reader, mut writer) = store();
        let stores = Self::seen(reader, pods, nodes);
        stores.list_jobs(&mut writer, jobs);
        (stores, writer)
    }

    fn list_jobs(&self, writer: &mut Writer<WatchedJob>, jobs: Vec<JobObject>) {
        self.apply_job_event(writer, Event::Init);
        for job in jobs {
            self.apply_job_event(writer, Event::InitApply(job));
        }
        self.apply_job_event(writer, Event::InitDone);
    }

    /// Number of entries visited since the last call.
    pub fn visits(&self) -> usize {
        [&self.jobs.visits, &self.pods.visits]
            .iter()
            .map(|visits| visits.0.swap(0, Ordering::Relaxed))
            .sum()
    }

    fn seen(jobs: Store<WatchedJob>, pods: Vec<Pod>, nodes: &[Node]) -> Arc<Self> {
        let stores = Arc::new(Self {
            namespaces: RwLock::new(Some(Arc::default())),
            ..Self::new(jobs, None, Clock::for_tests())
        });
        stores.show_nodes(nodes);
        stores.show(pods);
        stores
    }

    /// Stores whose first lists have not arrived.
    pub fn unlisted() -> Arc<Self> {
        Arc::new(Self::new(store().0, None, Clock::for_tests()))
    }

    /// Stores that have the jobs, and no other list.
    pub fn of_jobs_alone(jobs: &[DeadlineJob]) -> Arc<Self> {
        let (reader, mut writer) = store();
        let stores = Arc::new(Self::new(reader, None, Clock::for_tests()));
        stores.list_jobs(&mut writer, jobs.iter().map(sent).collect());
        stores
    }

    /// The clock that dates its observations.
    pub fn clock_for_tests(&self) -> Arc<Clock> {
        Arc::clone(&self.clock)
    }

    /// The same, with these Jobs and this choice of them.
    pub fn adopting(self: Arc<Self>, mode: AdoptJobs, jobs: Vec<Job>) -> Arc<Self> {
        let (stores, mut writer) = self.seeing_jobs(mode);
        stores.list_batch(&mut writer, jobs);
        stores
    }

    /// The same, with the writer of the watch of Jobs.
    pub fn seeing_jobs(self: Arc<Self>, mode: AdoptJobs) -> (Arc<Self>, Writer<WatchedBatchJob>) {
        let (reader, writer) = store::<WatchedBatchJob>();
        let mut stores = Arc::into_inner(self).expect("the only reference");
        stores.jobs.batch = Some(Jobs {
            mode,
            template_extras: TemplateExtrasTable::default(),
            lent: Mutex::default(),
            store: reader,
        });
        (Arc::new(stores), writer)
    }

    /// The watch of Jobs shows one.
    pub fn show_batch_job(&self, writer: &mut Writer<WatchedBatchJob>, job: &Job) {
        self.apply_batch_event(writer, Event::Apply(sent(job)));
    }

    /// The watch of nodes lists again.
    pub fn show_nodes(&self, nodes: &[Node]) {
        let nodes = nodes.iter().map(NodeFacts::from_node);
        let nodes = nodes.map(|node| (Arc::clone(&node.name), node)).collect();
        *self.nodes.nodes.write() = Some(nodes);
        self.note_nodes();
    }

    /// The watch of pods shows that this one is gone.
    pub fn show_deleted(&self, pod: Pod) {
        self.apply_pod_event(Event::Delete(pod.into()));
    }

    /// The watch of pods lists again.
    pub fn show(&self, pods: Vec<Pod>) {
        self.apply_pod_event(Event::Init);
        for pod in pods {
            self.apply_pod_event(Event::InitApply(pod.into()));
        }
        self.apply_pod_event(Event::InitDone);
    }
}
