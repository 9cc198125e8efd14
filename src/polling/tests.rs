use std::collections::BTreeSet;
use std::sync::LazyLock;

use k8s_openapi::api::core::v1::Pod;
use kube::runtime::reflector::store::Writer;
use kube::runtime::watcher::Event;
use parking_lot::Mutex;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::follower::Visits;
use super::*;
use crate::cluster::{JobObject, Stores, WatchedJob};
use crate::fixtures;
use crate::polling::poll_addresses::PollAddresses;

/// Polls every attempt of every job; `moves` with the number of divided tasks.
struct Everything;

impl Rules for Everything {
    type Job = usize;
    type Attempt = AttemptId;
    const OUTLASTS: bool = true;

    fn job(job: &Arc<DeadlineJob>, _: Option<&Jobs>) -> Option<usize> {
        let ledger = job.ledger();
        Some(ledger.map_or(0, |ledger| ledger.segments.len()))
    }

    fn moves(before: &usize, after: &usize) -> bool {
        before != after
    }

    fn attempt(_: &DeadlineJob, attempt: &AttemptFacts, _: Instant) -> AttemptId {
        (attempt.task, attempt.number)
    }

    fn due(_: &usize, _: AttemptId, _: &AttemptId) -> Instant {
        Instant(0)
    }
}

/// Any job, as the apiserver holds it.
static JOB: LazyLock<Value> =
    LazyLock::new(|| serde_json::to_value(fixtures::job("")).expect("job"));

fn job(number: usize, status: &Value) -> JobObject {
    serde_json::from_value(object(number, status)).unwrap()
}

fn object(number: usize, status: &Value) -> Value {
    let mut job = JOB.clone();
    job["metadata"]["name"] = json!(format!("job-{number}"));
    job["metadata"]["uid"] = json!(format!("uid-{number}"));
    job["status"] = status.clone();
    job
}

fn pod(of: usize, task: u32, status: &str) -> Pod {
    let job: DeadlineJob = serde_json::from_value(object(of, &json!({}))).unwrap();
    let mut pod = fixtures::attempt_pod(&job, (task, 0), "node-1", "Running");
    pod.metadata.uid = Some(format!("pod-{of}-{task}"));
    let status = json!({"phase": "Running", "podIP": "10.1.2.3", "containerStatuses": [{
        "name": "task", "image": "", "imageID": "", "ready": true, "restartCount": 0,
        "state": serde_json::from_str::<Value>(status).unwrap()}]});
    pod.status = serde_json::from_value(status).unwrap();
    pod
}

const RUNS: &str = r#"{"running": {"startedAt": "2020-01-01T00:00:00Z"}}"#;
const ENDED: &str = r#"{"terminated": {"exitCode": 0, "finishedAt": "2020-01-01T00:00:09Z"}}"#;

struct World {
    stores: Arc<Stores>,
    writer: Writer<WatchedJob>,
    follower: Follower,
    table: Mutex<Table<Everything>>,
}

impl World {
    /// Jobs with this status, each with attempts that run.
    fn new(jobs: usize, attempts: u32, status: &Value) -> Self {
        let objects = (0..jobs).map(|number| job(number, status)).collect();
        let attempts = |of| (0..attempts).map(move |task| pod(of, task, RUNS));
        let pods = (0..jobs).flat_map(attempts).collect();
        let (stores, writer) = Stores::of_objects(objects, pods);
        Self {
            follower: Follower::new(PollAddresses::new(Arc::clone(&stores), false)),
            stores,
            writer,
            table: Mutex::default(),
        }
    }

    /// How many jobs and attempts are visited.
    fn follow(&self) -> (usize, usize) {
        let Visits { jobs, attempts } = self.follower.follow(&self.table, Instant(1));
        (jobs, attempts)
    }

    fn see_job(&mut self, event: Event<JobObject>) {
        self.stores.see_job(&mut self.writer, event);
    }

    /// How many attempts are known, and how many may be polled.
    fn known(&self) -> (usize, usize) {
        let mut table = lock(&self.table);
        let polled = table.begin_polls(Instant(1), usize::MAX, |_| Some(()));
        for (key, ()) in &polled {
            table.end_poll(key, |_, _| ());
        }
        (table.all().count(), polled.len())
    }
}

#[test]
fn an_idle_tick_visits_nothing_with_ten_thousand_finished_jobs() {
    let finished = json!({"observedGeneration": 1, "ledger": {"finished": true}});
    let world = World::new(10_000, 1, &finished);
    assert_eq!(world.follow(), (0, 0), "the first list");
    for _ in 0..3 {
        assert_eq!(world.follow(), (0, 0));
        assert_eq!(world.known(), (0, 0));
    }
    assert!(lock(&world.table).jobs.is_empty());
}

#[test]
fn a_change_visits_what_changed_alone() {
    let mut world = World::new(30, 20, &json!({}));
    assert_eq!(world.follow(), (30, 600));
    assert_eq!(world.known(), (600, 600));
    world.stores.see_pod(Event::Apply(pod(7, 3, ENDED)));
    assert_eq!(world.follow(), (1, 1));
    assert_eq!(world.known(), (600, 599), "kept, and not polled");
    world.stores.see_pod(Event::Delete(pod(7, 3, ENDED)));
    assert_eq!(world.follow(), (1, 1));
    assert_eq!(world.known(), (599, 599));
    let deadline = json!({"deadline": "2030-01-01T00:00:00Z"});
    world.see_job(Event::Apply(job(4, &deadline)));
    assert_eq!(world.follow(), (1, 0), "no attempt's poll moves");
    let divided = json!({"ledger": {"segments": [{"index": 9, "task": 0, "start": 0, "end": 5, "total": 9}]}});
    world.see_job(Event::Apply(job(4, &divided)));
    assert_eq!(world.follow(), (1, 20));
}

#[test]
fn a_job_that_went_takes_its_own_entries_alone() {
    let mut world = World::new(30, 20, &json!({}));
    world.follow();
    world.see_job(Event::Delete(job(4, &json!({}))));
    world.see_job(Event::Apply(job(
        5,
        &json!({"observedGeneration": 1, "ledger": {"finished": true}}),
    )));
    assert_eq!(world.follow(), (2, 0));
    assert_eq!(world.known(), (560, 560));
    assert_eq!(lock(&world.table).owners.len(), 28);
}

#[test]
fn a_pod_that_was_made_again_is_another_attempt() {
    let world = World::new(1, 1, &json!({}));
    world.follow();
    let mut again = pod(0, 0, RUNS);
    again.metadata.uid = Some("another".to_owned());
    world.stores.see_pod(Event::Apply(again));
    assert_eq!(world.follow(), (1, 1));
    assert_eq!(world.known(), (1, 1));
    let key = |pod| Key::for_tests("uid-0", pod);
    let table = lock(&world.table);
    assert!(table.get(&key("another")).is_some() && table.get(&key("pod-0-0")).is_none());
}

#[test]
fn a_new_list_of_pods_finds_what_went() {
    let world = World::new(2, 3, &json!({}));
    world.follow();
    world.stores.show(vec![pod(1, 0, RUNS)]);
    assert_eq!(world.follow(), (2, 6));
    assert_eq!(world.known(), (1, 1));
}

#[test]
fn one_poll_at_a_time_and_none_where_it_was_suspended() {
    let world = World::new(1, 2, &json!({}));
    world.follow();
    let mut table = lock(&world.table);
    let begun = table.begin_polls(Instant(1), 10, |_| Some(()));
    assert_eq!(begun.len(), 2);
    assert!(table.first_due().is_none());
    table.end_poll(&begun[0].0, |_, _| ());
    table.suspend(&begun[1].0);
    let begun_again = table.begin_polls(Instant(1), 10, |_| Some(()));
    assert_eq!(begun_again, begun[..1]);
}

#[test]
fn no_poll_goes_to_an_address_that_became_a_nodes() {
    let world = World::new(1, 1, &json!({}));
    world.follow();
    let node = json!({"metadata": {"name": "n"}, "status": {"addresses": [
        {"type": "InternalIP", "address": "10.1.2.3"}]}});
    let node = serde_json::from_value(node).unwrap();
    world.stores.show_nodes(&[node]);
    assert_eq!(world.follow(), (0, 0), "each poll looks for itself");
    world.stores.see_pod(Event::Apply(pod(0, 0, RUNS)));
    world.follow();
    assert_eq!(world.known(), (1, 0));
    world.stores.show_nodes(&[]);
    assert_eq!(world.follow(), (1, 1));
    assert_eq!(world.known(), (1, 1));
}

/// The next event of a job, or of a task's pod.
#[derive(Debug, Clone, Copy)]
enum Step {
    Job(usize, Option<bool>),
    Pod(usize, u32, Option<(bool, u8)>),
    List,
    Follow,
    Begin,
    End(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let pod = proptest::option::weighted(0.8, (any::<bool>(), 0..2u8));
    prop_oneof![
        2 => (0..3usize, proptest::option::of(any::<bool>())).prop_map(|(of, is)| Step::Job(of, is)),
        6 => (0..3usize, 0..3u32, pod).prop_map(|(of, task, is)| Step::Pod(of, task, is)),
        1 => Just(Step::List),
        3 => Just(Step::Follow),
        2 => Just(Step::Begin),
        2 => (0..9usize).prop_map(Step::End),
    ]
}

/// The actual state, and the polls in progress.
#[derive(Default)]
struct Truth {
    /// Whether each job has finished.
    jobs: BTreeMap<usize, bool>,
    /// Whether each pod runs, and which one it is.
    pods: BTreeMap<(usize, u32), (bool, u8)>,
    under_way: Vec<Key>,
}

impl Truth {
    fn pod(&self, (of, task): (usize, u32)) -> Pod {
        let (runs, which) = self.pods[&(of, task)];
        let mut pod = pod(of, task, if runs { RUNS } else { ENDED });
        pod.metadata.uid = Some(format!("pod-{of}-{task}-{which}"));
        pod
    }

    fn apply(&mut self, step: Step, world: &mut World) {
        match step {
            Step::Job(of, Some(finished)) => {
                self.jobs.insert(of, finished);
                let status = json!({"observedGeneration": 1, "ledger": {"finished": finished}});
                world.see_job(Event::Apply(job(of, &status)));
            }
            Step::Job(of, None) => {
                self.jobs.remove(&of);
                world.see_job(Event::Delete(job(of, &json!({}))));
            }
            Step::Pod(of, task, Some(is)) => {
                self.pods.insert((of, task), is);
                world.stores.see_pod(Event::Apply(self.pod((of, task))));
            }
            Step::Pod(of, task, None) => {
                self.pods.remove(&(of, task));
                let gone = pod(of, task, ENDED);
                world.stores.see_pod(Event::Delete(gone));
            }
            Step::List => world
                .stores
                .show(self.pods.keys().map(|&at| self.pod(at)).collect()),
            Step::Follow => drop(world.follow()),
            Step::Begin => {
                let begun = lock(&world.table).begin_polls(Instant(1), 2, |_| Some(()));
                self.under_way
                    .extend(begun.into_iter().map(|(key, ())| key));
            }
            Step::End(at) if at < self.under_way.len() => {
                let key = self.under_way.swap_remove(at);
                lock(&world.table).end_poll(&key, |_, _| ());
            }
            Step::End(_) => {}
        }
    }

    /// Pods that run, of jobs that have not finished.
    fn polled(&self) -> BTreeSet<String> {
        let live = |of: &usize| self.jobs.get(of) == Some(&false);
        let pods = self.pods.iter();
        pods.filter(|((of, _), (runs, _))| *runs && live(of))
            .map(|((of, task), (_, which))| format!("pod-{of}-{task}-{which}"))
            .collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever the watches show and in whatever order, the table ends in the state that a full
    /// scan would give.
    #[test]
    fn what_is_polled_is_what_a_scan_would_find(steps in prop::collection::vec(step(), 0..60)) {
        let mut world = World::new(0, 0, &json!({}));
        let mut truth = Truth::default();
        for step in steps {
            truth.apply(step, &mut world);
        }
        world.follow();
        for key in std::mem::take(&mut truth.under_way) {
            lock(&world.table).end_poll(&key, |_, _| ());
        }
        let begun = lock(&world.table).begin_polls(Instant(1), usize::MAX, |_| Some(()));
        let polled: BTreeSet<String> = begun.iter().map(|(key, ())| key.pod.to_string()).collect();
        prop_assert_eq!(polled, truth.polled());
        let table = lock(&world.table);
        let live = truth.jobs.values().filter(|finished| !**finished).count();
        prop_assert_eq!((table.jobs.len(), table.owners.len()), (live, live));
        for job in table.jobs.values() {
            prop_assert_eq!(job.pods.len(), job.attempts.len());
        }
    }
}
