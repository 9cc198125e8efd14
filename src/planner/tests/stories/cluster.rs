//! A cluster in memory whose nodes have a slot each, and whose tasks take a known time.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::runtime::reflector::store::Writer;
use kube::runtime::watcher::Event;

use super::describe::Story;
use super::*;
use crate::api::DeadlineJobStatus;
use crate::cluster::WatchedJob;
use crate::cluster::pod::{AttemptId, PodFacts};
use crate::reconcile::mock::pod_name;

/// Time between two looks at the cluster.
const STEP: Span = Span::from_seconds(10);
/// Looks in a row, a second apart: what the first one writes leads to others.
const LOOKS: i64 = 3;
const SECOND: Span = Span::from_seconds(1);

pub struct Cluster {
    api: Apiserver,
    process: Process,
    /// The watch of jobs.
    watch: Writer<WatchedJob>,
    passes: Passes,
    begun: Instant,
    /// Every node, with how many times as long a task takes there.
    nodes: Vec<(String, f64)>,
    running: BTreeMap<AttemptId, Running>,
    story: Story,
}

/// An attempt on its node.
struct Running {
    node: String,
    started: Instant,
    /// When its task ends.
    ends: Instant,
    reports: Vec<(Instant, String)>,
}

impl Cluster {
    /// A job with that specification on a number of nodes, some of them slow.
    pub fn new(change: &str, nodes: usize, slow: &[&str]) -> Self {
        let factor = |name: &String| if slow.contains(&&**name) { 10.0 } else { 1.0 };
        let names = (1..=nodes).map(|number| format!("node-{number}"));
        let nodes: Vec<(String, f64)> = names.map(|name| (name.clone(), factor(&name))).collect();
        let listed: Vec<_> = nodes
            .iter()
            .map(|(name, _)| fixtures::node(name, 1))
            .collect();
        // The next whole second, because the object's timestamp has no fraction.
        let begun = Instant(clock::now().0.div_euclid(1000) * 1000 + 1000);
        let mut job = fixtures::job(change);
        job.metadata.creation_timestamp = Some(clock::time(begun));
        let api = Apiserver::new(job.clone());
        let (stores, watch) = Stores::of_objects(vec![fixtures::object(&job, &[])], vec![]);
        stores.show_nodes(&listed);
        let process = Process::with_stores(&api, stores);
        let shared = &process.context.shared;
        shared.clock.freeze_for_tests();
        shared.clock.skip_for_tests(begun.since(shared.clock.now()));
        // What the passes touch is looked at in each step anyway.
        let (touched, _) = mpsc::unbounded_channel();
        let policy = Policy {
            surge_max: 0,
            ..Policy::default()
        };
        let passes = Passes::begin(Arc::clone(shared), policy, touched);
        Self {
            story: Story::new(begun),
            api,
            process,
            watch,
            passes,
            begun,
            nodes,
            running: BTreeMap::new(),
        }
    }

    /// Runs the job up to this time since its submission.
    pub async fn run_until(&mut self, seconds: i64) {
        let end = self.begun.plus(Span::from_seconds(seconds));
        let mut now = self.begun;
        loop {
            self.step(now).await;
            if now >= end {
                return;
            }
            now = now.plus(STEP);
            let looked = Span(LOOKS * SECOND.0);
            let clock = &self.process.context.clock;
            clock.skip_for_tests(Span(STEP.0 - looked.0));
        }
    }

    pub fn describe(&self) -> String {
        self.story.describe(&self.api.job())
    }

    pub fn status(&self) -> DeadlineJobStatus {
        self.api.job().status.clone().unwrap_or_default()
    }

    async fn step(&mut self, now: Instant) {
        // The apiserver answers all the time.
        self.process.context.clock.learn_for_tests(Span(0));
        self.api.world.lock().time = Some(now);
        self.end_tasks(now);
        self.start_pods(now);
        self.report(now);
        for look in 0..LOOKS {
            let now = now.plus(Span(look * SECOND.0));
            self.api.world.lock().time = Some(now);
            let shared = &self.process.context.shared;
            let job = fixtures::object(&self.api.job(), &[]);
            shared.stores.see_job(&mut self.watch, Event::Apply(job));
            shared.stores.show(self.api.pods());
            let _ = self.passes.pass();
            let looked = self.process.reconcile(self.api.job()).await;
            looked.expect("the apiserver serves every call");
            let mut world = self.api.world.lock();
            self.story.take(now, &std::mem::take(&mut world.calls));
            drop(world);
            self.api.kill_deleted();
            let pods = self.api.pods();
            let is_there = |id: &AttemptId| pods.iter().any(|pod| id_of(pod) == *id);
            self.running.retain(|id, _| is_there(id));
            let clock = &self.process.context.clock;
            clock.skip_for_tests(SECOND);
        }
    }

    fn end_tasks(&mut self, now: Instant) {
        let over = self.running.iter().filter(|(_, one)| one.ends <= now);
        let over: Vec<AttemptId> = over.map(|(id, _)| *id).collect();
        for id in over {
            let Some(run) = self.running.remove(&id) else {
                continue;
            };
            self.api.exit(id, 0, run.ends);
            self.set_start(id, clock::time(run.started));
        }
    }

    /// The mock's attempts have run for ten seconds when they end.
    fn set_start(&self, id: AttemptId, started: Time) {
        let name = pod_name(&self.api.job(), id);
        let mut world = self.api.world.lock();
        let status = world
            .pods
            .get_mut(&name)
            .and_then(|pod| pod.status.as_mut());
        let containers = status.and_then(|status| status.container_statuses.as_mut());
        for container in containers.into_iter().flatten() {
            let state = container.state.as_mut();
            if let Some(ended) = state.and_then(|state| state.terminated.as_mut()) {
                ended.started_at = Some(started.clone());
            }
        }
    }

    /// The scheduler's role and the kubelets': a pod starts on the first free node.
    fn start_pods(&mut self, now: Instant) {
        for pod in self.api.pods() {
            let id = id_of(&pod);
            let is_placed = pod
                .spec
                .as_ref()
                .is_some_and(|spec| spec.node_name.is_some());
            if is_placed || pod.metadata.deletion_timestamp.is_some() {
                continue;
            }
            let is_free =
                |(name, _): &&(String, f64)| self.running.values().all(|run| run.node != *name);
            let Some((node, factor)) = self.nodes.iter().find(is_free).cloned() else {
                continue;
            };
            self.api.place(id, &node);
            self.api.run(id);
            let run = Running {
                node,
                started: now,
                ends: now.plus(Span::from_seconds_f64(TASK_SECONDS * factor)),
                reports: Vec::new(),
            };
            self.running.insert(id, run);
        }
    }

    fn report(&mut self, now: Instant) {
        let job = self.api.job();
        let uid = job.metadata.uid.as_deref().unwrap_or_default();
        for (id, run) in &mut self.running {
            let share = now.since(run.started).seconds() / run.ends.since(run.started).seconds();
            run.reports.push((now, format!("{share:.4}")));
            let world = self.api.world.lock();
            let Some(pod) = world.pods.get(&pod_name(&job, *id)) else {
                continue;
            };
            let said: Vec<(Instant, &str)> = run
                .reports
                .iter()
                .map(|(at, said)| (*at, &**said))
                .collect();
            let pod = pod.metadata.uid.as_deref().unwrap_or_default();
            let table = &self.process.context.progress;
            table.answer_for_tests(uid, pod, &said);
        }
    }
}

fn id_of(pod: &Pod) -> AttemptId {
    let facts = PodFacts::from_pod(&pod.clone().into(), Instant(0));
    let attempt = facts.attempt.expect("an attempt");
    (attempt.task, attempt.number)
}
