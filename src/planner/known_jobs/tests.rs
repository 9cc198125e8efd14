//! A view that keeps quiet jobs equals one that looks at every job.

use k8s_openapi::api::core::v1::Pod;
use kube::runtime::reflector::store::Writer;
use kube::runtime::watcher::Event;
use proptest::prelude::*;
use serde_json::{Value, json};
use shed_core::snapshot::AttemptKind;
use shed_core::time::Span;

use super::*;
use crate::api::{
    ANNOTATION_ACTIVE_JOBS_MAX, ANNOTATION_CLONE_BUDGET, DeadlineJobStatus, LABEL_SHARE, Ledger,
};
use crate::clock;
use crate::cluster::{JobObject, WatchedJob};
use crate::context::backoff::{Backoff, Blocked};
use crate::fixtures;
use crate::metrics::{JobFigures, JobLabels};
use crate::planner::observation::{ClusterView, view, view_after};
use crate::reconcile::mock::{Apiserver, Process};

mod active_jobs;
mod passes;

const TASKS: u32 = 3;

fn pod(job: u32, task: u32, state: &str) -> Pod {
    let mut pod = fixtures::attempt_pod(
        &object(job, &Change::default()),
        (task, 0),
        "node-0",
        "Running",
    );
    pod.metadata.uid = Some(format!("pod-{job}-{task}"));
    let (phase, state) = match state {
        "waits" => ("Pending", json!({"waiting": {}})),
        "ended" => (
            "Succeeded",
            json!({"terminated": {"exitCode": 0, "finishedAt": "2020-01-01T00:00:09Z"}}),
        ),
        "failed" => (
            "Failed",
            json!({"terminated": {"exitCode": 3, "finishedAt": "2020-01-01T00:00:09Z"}}),
        ),
        _ => (
            "Running",
            json!({"running": {"startedAt": "2020-01-01T00:00:00Z"}}),
        ),
    };
    let status: Value = json!({"phase": phase, "podIP": "10.1.2.3", "containerStatuses": [{"name": "task",
        "image": "", "imageID": "", "ready": true, "restartCount": 0, "state": state}]});
    pod.status = serde_json::from_value(status).unwrap();
    pod
}

/// How a job differs from the one that runs all its tasks.
#[derive(Debug, Clone, Default)]
struct Change {
    revision: i64,
    /// Tasks that have an attempt, the first ones.
    launched: Option<u32>,
    suspends: bool,
    leaves: bool,
}

/// A job with an attempt per task.
fn object(number: u32, change: &Change) -> DeadlineJob {
    let mut job = fixtures::job(
        "{completions: 4, deadline: {within: 1000000h}, template: {spec: {containers: [{name: task, image: i, \
         resources: {requests: {cpu: '1'}}}]}}}",
    );
    job.metadata.name = Some(format!("job-{number}"));
    job.metadata.uid = Some(format!("{number:08}-2222-3333-4444-555555555555"));
    job.metadata.resource_version = Some((8 + change.revision).to_string());
    job.metadata.generation = Some(1 + i64::from(change.suspends));
    job.spec.suspend = change.suspends;
    job.metadata.deletion_timestamp = change.leaves.then(|| clock::time(clock::now()));
    let mut ledger = Ledger {
        revision: change.revision,
        ..Ledger::default()
    };
    for task in 0..change.launched.unwrap_or(TASKS) {
        let launch = shed_core::fixtures::launch(task, AttemptKind::Original);
        ledger.launch(&launch, Instant(1000));
    }
    job.status = Some(DeadlineJobStatus {
        ledger: Some(ledger),
        ..DeadlineJobStatus::default()
    });
    job
}

fn watched(number: u32, change: &Change) -> JobObject {
    JobObject::Read {
        job: WatchedJob::new(object(number, change), 0),
        unknown_fields: vec![],
    }
}

/// The facts of a pass. Attempts of jobs that are gone count from the pass itself.
fn facts(view: &ClusterView) -> Vec<JobSnapshot> {
    let mut jobs = view.snapshot.jobs.clone();
    for job in &mut jobs {
        if !view.addresses.references.contains_key(&job.key.0) {
            (job.submitted, job.facts_as_of) = (Instant(0), Instant(0));
            for attempt in job.tasks.iter_mut().flat_map(|task| &mut task.attempts) {
                (attempt.launched, attempt.killed_at) = (Instant(0), None);
            }
        }
    }
    jobs
}

struct World {
    process: Process,
    writer: Writer<WatchedJob>,
    known: KnownJobs,
    revision: i64,
    uids: Vec<JobUid>,
}

impl World {
    /// Jobs whose attempts run and whose deadlines were judged.
    fn new(jobs: u32) -> Self {
        let all = (0..jobs).map(|number| watched(number, &Change::default()));
        let pods = (0..jobs).flat_map(|job| (0..TASKS).map(move |task| pod(job, task, "runs")));
        let (stores, writer) = Stores::of_objects(all.collect(), pods.collect());
        stores.show_nodes(&[fixtures::node("node-0", 64)]);
        let api = Apiserver::new(object(0, &Change::default()));
        let process = Process::with_stores(&api, Arc::clone(&stores));
        // A quiet job is looked at again after a while, and so it would be on a busy machine.
        process.context.clock.freeze_for_tests();
        let uid = |number| JobUid::from(object(number, &Change::default()).metadata.uid.unwrap());
        let world = Self {
            known: KnownJobs::following(&stores),
            process,
            writer,
            revision: 0,
            uids: (0..jobs).map(uid).collect(),
        };
        world.judge_deadlines();
        world
    }

    /// As the planner does at the end of a pass.
    fn judge_deadlines(&self) {
        let context = &self.process.context.shared;
        let ticks = context.clock.ticks();
        for uid in &self.uids {
            context
                .job_memories
                .with(uid, |memory| memory.planned.weighed = Some((ticks, 1)));
        }
    }

    /// The number of jobs that a pass looks at. Its facts equal those of a pass that looks at all jobs.
    fn looks(&mut self) -> usize {
        let kept = view_after(&self.process.context.shared, &mut self.known);
        let looks = kept.looked.len();
        let whole = view(&self.process.context.shared);
        for (kept, whole) in facts(&kept).iter().zip(&facts(&whole)) {
            assert_eq!(kept, whole);
        }
        assert_eq!(kept.snapshot.jobs.len(), whole.snapshot.jobs.len());
        assert_eq!(kept.snapshot.nodes, whole.snapshot.nodes);
        assert_eq!(kept.addresses.references, whole.addresses.references);
        assert_eq!(kept.addresses.generations, whole.addresses.generations);
        self.known.put_back(kept.snapshot.jobs);
        looks
    }

    fn stores(&self) -> &Stores {
        &self.process.context.stores
    }

    fn see_job(&mut self, number: u32, change: Change) {
        self.revision += 1;
        let change = Change {
            revision: self.revision,
            ..change
        };
        let event = Event::Apply(watched(number, &change));
        let stores = Arc::clone(&self.process.context.stores);
        stores.see_job(&mut self.writer, event);
    }

    fn report(&self, job: u32, task: u32, text: &str) {
        let uid = &self.uids[job as usize];
        let answers = [(Instant(2000), text)];
        let progress = &self.process.context.progress;
        progress.answer_for_tests(uid, &format!("pod-{job}-{task}"), &answers);
    }
}

#[tokio::test]
async fn a_pass_looks_at_what_has_changed() {
    let mut world = World::new(20);
    assert_eq!(world.looks(), 20, "the first pass");
    assert_eq!(world.looks(), 0);
    world.stores().see_pod(Event::Apply(pod(3, 1, "ended")));
    assert_eq!(world.looks(), 1);
    assert_eq!(
        world.looks(),
        1,
        "it is not quiet before its end is counted"
    );
    world.stores().see_pod(Event::Apply(pod(3, 1, "runs")));
    assert_eq!((world.looks(), world.looks()), (1, 0));
    world.report(5, 0, "0.25");
    assert_eq!((world.looks(), world.looks()), (1, 0));
    world.see_job(7, Change::default());
    assert_eq!((world.looks(), world.looks()), (1, 0));
    let uid = Arc::clone(&world.uids[9]);
    let context = Arc::clone(&world.process.context);
    let memories = &context.job_memories;
    memories.with(&uid, |memory| memory.planned.claims.is_some());
    assert_eq!(world.looks(), 0, "a memory that is read");
    memories.with(&uid, |memory| memory.planned.claims = None);
    assert_eq!((world.looks(), world.looks()), (1, 0));
    world.stores().show_nodes(&[fixtures::node("node-0", 32)]);
    assert_eq!((world.looks(), world.looks()), (20, 0));
}

#[tokio::test]
async fn a_stop_of_clones_reaches_known_jobs_in_the_next_pass() {
    let mut world = World::new(3);
    world.looks();
    let mut pass = |values: &[(&str, &str)]| {
        let context = &world.process.context.shared;
        context.stores.show_clone_stops(values);
        let view = view_after(context, &mut world.known);
        let jobs = view.snapshot.jobs.iter();
        let stopped = jobs.filter(|job| job.obstacles.clones_stopped).count();
        world.known.put_back(view.snapshot.jobs);
        (view.looked.len(), stopped, view.news.len())
    };
    pass(&[]);
    assert_eq!(pass(&[]), (0, 0, 0));
    let stop = [("team", "stop")];
    assert_eq!(pass(&stop), (3, 3, 3), "each gets its condition");
    assert_eq!(pass(&stop), (0, 3, 0));
    let other = [("team", "stop"), ("other", "stop")];
    assert_eq!(pass(&other), (3, 3, 0));
    assert_eq!(pass(&[("shed", "stop")]), (3, 3, 3), "another reason");
    assert_eq!(pass(&[("team", "halt")]), (3, 0, 3), "as without one");
    assert_eq!(pass(&[]), (3, 0, 0));
}

#[tokio::test]
async fn a_changed_weight_is_in_the_next_pass_with_every_job() {
    let mut world = World::new(3);
    world.looks();
    let mut pass = |change: &dyn Fn(&Stores)| {
        let context = &world.process.context.shared;
        change(&context.stores);
        let view = view_after(context, &mut world.known);
        world.known.put_back(view.snapshot.jobs);
        let weights: Vec<f64> = view.snapshot.weights.into_values().collect();
        (weights, view.looked.len(), view.changed.is_none())
    };
    let weigh = |stores: &Stores, weight: &str| {
        stores.show_namespaces(&[("team", LABEL_SHARE, weight)]);
    };
    assert_eq!(pass(&|stores| weigh(stores, "3")), (vec![3.0], 3, true));
    assert_eq!(pass(&|stores| weigh(stores, "3")), (vec![3.0], 0, false));
    assert_eq!(pass(&|stores| weigh(stores, "0.5")), (vec![0.5], 3, true));
    let none = (vec![], 3, true);
    assert_eq!(pass(&|stores| weigh(stores, "-3")), none, "counts as 1");
    pass(&|stores| weigh(stores, "4"));
    assert_eq!(pass(&|stores| stores.show_namespaces(&[])), none, "deleted");
    pass(&|stores| weigh(stores, "4"));
    assert_eq!(pass(&Stores::hide_namespaces), none, "no right to read it");
}

#[tokio::test]
async fn a_clone_budget_of_the_namespace_reaches_the_next_pass() {
    let mut world = World::new(2);
    let mut budgets = |values: &[(&str, &str, &str)]| -> Vec<Option<f64>> {
        let context = &world.process.context.shared;
        context.stores.show_namespaces(values);
        let view = view_after(context, &mut world.known);
        let jobs = view.snapshot.jobs.iter();
        let budgets = jobs.map(|job| job.rules.clone_budget).collect();
        world.known.put_back(view.snapshot.jobs);
        budgets
    };
    assert_eq!(budgets(&[]), [None, None]);
    let limit = ("team", ANNOTATION_CLONE_BUDGET, "0.1");
    assert_eq!(budgets(&[limit]), [Some(0.1), Some(0.1)]);
    assert_eq!(budgets(&[]), [None, None]);
}

#[tokio::test]
async fn a_quiet_job_is_looked_at_again_after_a_while() {
    let mut world = World::new(20);
    world.looks();
    let later = world.process.context.clock.ticks();
    let held = Arc::clone(&world.uids[3]);
    let stores = Arc::clone(&world.process.context.stores);
    let mut looks = |is_held: bool, seconds| {
        let ticks = later.plus(Span::from_seconds(seconds));
        let is_held = |uid: &str| is_held && *uid == *held;
        world.known.jobs_to_look_at(&stores, is_held, ticks).len()
    };
    assert_eq!(looks(false, 8), 0);
    assert_eq!(looks(true, 8), 1, "its slice is held");
    assert_eq!(looks(false, 10), 19);
}

#[tokio::test]
async fn series_of_a_job_that_is_gone_go_with_the_next_pass() {
    let mut world = World::new(3);
    let process = &world.process.context.shared;
    let metrics = Arc::clone(&process.metrics);
    let first = view_after(process, &mut world.known);
    let job = &first.addresses.references[&world.uids[1]];
    let series = crate::planner::address(job);
    let figures = JobFigures {
        pocd: Some(0.5),
        ..JobFigures::default()
    };
    let labels = JobLabels {
        name: series.name.as_str().into(),
        ..JobLabels::default()
    };
    metrics.jobs.set(&series, labels, &figures);
    world.known.put_back(first.snapshot.jobs);
    let pass = |world: &mut World| {
        let view = view_after(&world.process.context.shared, &mut world.known);
        crate::planner::drop_series(&metrics, &view.gone);
        world.known.put_back(view.snapshot.jobs);
        metrics.page().unwrap().contains(r#"job_name="job-1""#)
    };
    assert!(pass(&mut world) && pass(&mut world));
    let event = Event::Delete(watched(1, &Change::default()));
    let stores = Arc::clone(&world.process.context.stores);
    stores.see_job(&mut world.writer, event);
    assert!(!pass(&mut world));
}

#[tokio::test]
async fn a_job_that_is_gone_is_forgotten() {
    let mut world = World::new(3);
    world.looks();
    let event = Event::Delete(watched(1, &Change::default()));
    let stores = Arc::clone(&world.process.context.stores);
    stores.see_job(&mut world.writer, event);
    world.looks();
    assert_eq!((world.known.jobs.len(), world.known.uids.len()), (2, 2));
}

#[derive(Debug, Clone)]
enum Step {
    Pod(u32, u32, &'static str),
    PodGone(u32, u32),
    Job(u32, Change),
    Report(u32, u32, u8),
    Nodes(u32),
    BackOff(u32),
    CloneStop(&'static str),
    ActiveJobsMax(&'static str),
    Judged,
}

const JOBS: u32 = 4;

fn step() -> impl Strategy<Value = Step> {
    let attempt = || (0..JOBS, 0..TASKS);
    let state = prop::sample::select(vec!["runs", "waits", "ended", "failed"]);
    let change = (0..=TASKS, any::<bool>(), prop::bool::weighted(0.1));
    let change = change.prop_map(|(launched, suspends, leaves)| Change {
        revision: 0,
        launched: Some(launched),
        suspends,
        leaves,
    });
    prop_oneof![
        4 => (attempt(), state).prop_map(|((job, task), state)| Step::Pod(job, task, state)),
        1 => attempt().prop_map(|(job, task)| Step::PodGone(job, task)),
        3 => (0..JOBS, change).prop_map(|(job, change)| Step::Job(job, change)),
        3 => (attempt(), 1..100_u8).prop_map(|((job, task), share)| Step::Report(job, task, share)),
        1 => (0..3_u32).prop_map(Step::Nodes),
        1 => (0..JOBS).prop_map(Step::BackOff),
        1 => prop::sample::select(vec!["team", "shed", "other"]).prop_map(Step::CloneStop),
        1 => prop::sample::select(vec!["1", "2", "3"]).prop_map(Step::ActiveJobsMax),
        1 => Just(Step::Judged),
    ]
}

impl World {
    fn take(&mut self, step: Step) {
        match step {
            Step::Pod(job, task, state) => {
                self.stores().see_pod(Event::Apply(pod(job, task, state)))
            }
            Step::PodGone(job, task) => {
                self.stores().see_pod(Event::Delete(pod(job, task, "runs")))
            }
            Step::Job(job, change) => self.see_job(job, change),
            Step::Report(job, task, share) => self.report(job, task, &format!("0.{share:02}")),
            Step::Nodes(count) => {
                let nodes: Vec<_> = (0..count)
                    .map(|at| fixtures::node(&format!("node-{at}"), 64))
                    .collect();
                self.stores().show_nodes(&nodes);
            }
            Step::BackOff(job) => back_off(self, job),
            Step::CloneStop(namespace) => self.stores().show_clone_stops(&[(namespace, "stop")]),
            Step::ActiveJobsMax(limit) => {
                let limit = ("team", ANNOTATION_ACTIVE_JOBS_MAX, limit);
                self.stores().show_namespaces(&[limit]);
            }
            Step::Judged => self.judge_deadlines(),
        }
    }
}

fn back_off(world: &World, job: u32) {
    let context = &world.process.context.shared;
    let until = context.clock.ticks().plus(Span::from_seconds(3600));
    context
        .job_memories
        .with(&world.uids[job as usize], |memory| {
            memory.planned.backoff = Some(Backoff {
                blocked: Blocked {
                    reason: crate::api::reason::POD_INVALID,
                    message: "no image".to_owned(),
                },
                until,
                count: 1,
            });
        });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn keeping_quiet_jobs_changes_no_fact(steps in prop::collection::vec(prop::collection::vec(step(), 0..3), 1..12)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut world = World::new(JOBS);
            for events in steps {
                for event in events {
                    world.take(event);
                }
                world.looks();
            }
        });
    }
}
