use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;
use kube::runtime::watcher::Event;

use super::*;
use crate::cluster::Stores;
use crate::fixtures::{self, Agent};

const JOB: &str = "job";
/// The answer of an agent whose task asks.
const ASKING: &[u8] = br#"{"attempt":"pod","nonce":"nonce"}"#;

fn grant(token: u64) -> CommitGrant {
    CommitGrant {
        job: JOB.to_owned(),
        task: 0,
        segment: 0,
        token,
    }
}

fn pod() -> Key {
    Key::for_tests(JOB, "pod")
}

fn asking() -> FenceTable {
    let table = FenceTable::default();
    table.ask_for_tests(JOB, "pod", Instant(1000));
    table
}

#[test]
fn a_commit_request_counts_from_its_first_poll_while_upheld() {
    let table = asking();
    assert!(!table.take(&pod(), Some("nonce".to_owned()), Instant(5000)));
    assert_eq!(table.asking(JOB)["pod"], Instant(1000));
    assert!(table.asking("another").is_empty());
    table.is_silent(&pod(), Instant(6000));
    assert!(table.asking(JOB).is_empty());
    assert!(table.take(&pod(), Some("nonce".to_owned()), Instant(7000)));
    assert_eq!(table.asking(JOB)["pod"], Instant(7000));
    // The agent was restarted, so its request is new.
    assert!(table.take(&pod(), Some("another".to_owned()), Instant(8000)));
    assert!(!table.take(&pod(), None, Instant(9000)));
    assert!(table.asking(JOB).is_empty());
}

#[tokio::test(start_paused = true)]
async fn nobody_is_reported_what_the_ledger_does_not_say() {
    let table = asking();
    assert_eq!(table.reported(&pod()).await, None);
    table.allow("pod", grant(7));
    let reported = table.reported(&pod()).await;
    assert_eq!(reported, Some((grant(7), "nonce".to_owned())));
    table.is_answered(&pod());
    table.take(&pod(), Some("nonce".to_owned()), Instant(9000));
    assert_eq!(
        table.reported(&pod()).await,
        None,
        "the ledger is asked again"
    );
}

#[tokio::test(start_paused = true)]
async fn who_waits_is_reported_at_once() {
    let table = Arc::new(asking());
    let waiting = tokio::spawn({
        let table = Arc::clone(&table);
        async move { table.reported(&pod()).await }
    });
    tokio::task::yield_now().await;
    table.allow("pod", grant(7));
    assert!(waiting.await.unwrap().is_some());
}

/// Polls the agent, where the attempt asks or has asked already.
async fn attended(table: FenceTable, agent: &Agent) -> FenceTable {
    let fence = Fence {
        table: Arc::new(table),
        addresses: PollAddresses::new(Stores::for_tests(vec![], vec![], &[]), false),
        metrics: Arc::new(Metrics::new().unwrap()),
        keys: fixtures::keys(),
        clock: Clock::for_tests(),
        touched: mpsc::unbounded_channel().0,
    };
    let target = Target {
        job: ObjectRef::new("count"),
        attempt: pod(),
        pod_name: "".into(),
        agent: agent.address.to_string(),
    };
    fence.table.allow("pod", grant(7));
    let client = progress::client(request::PATIENCE);
    attend(&fence, &client, &target).await;
    Arc::into_inner(fence.table).unwrap()
}

#[tokio::test]
async fn a_task_that_asks_and_is_granted_is_reported_once() {
    let agent = Agent::serve(JOB, ASKING.to_vec()).await;
    let table = attended(asking(), &agent).await;
    assert_eq!(agent.orders(), 1);
    assert_eq!(table.reported_for_tests(JOB, "pod"), None, "reported");
}

#[tokio::test]
async fn who_answers_in_place_of_the_agent_is_not_believed() {
    let stranger = Agent::serve("another job", ASKING.to_vec()).await;
    let table = attended(asking(), &stranger).await;
    assert_eq!(stranger.orders(), 0);
    assert!(table.asking(JOB).is_empty());
}

/// Attempts of a namespace's fenced job that run.
fn tenant(namespace: &str, attempts: u32) -> (DeadlineJob, Vec<Pod>) {
    let mut job = fixtures::job("idempotency: Fenced");
    job.metadata.namespace = Some(namespace.to_owned());
    job.metadata.uid = Some(format!("uid-{namespace}"));
    let pod = |number: u32| {
        let mut pod = fixtures::attempt_pod(&job, (number, 0), "node-1", "Running");
        pod.metadata.uid = Some(format!("{namespace}-{number}"));
        let [.., high, low] = number.to_be_bytes();
        let status = serde_json::json!({"phase": "Running", "podIP": format!("10.1.{high}.{low}"),
            "containerStatuses": [{"name": "task", "image": "", "imageID": "", "ready": true,
            "restartCount": 0, "state": {"running": {"startedAt": "2020-01-01T00:00:00Z"}}}]});
        pod.status = serde_json::from_value(status).unwrap();
        pod
    };
    let pods = (0..attempts).map(pod).collect();
    (job, pods)
}

fn poller(tenants: &[(&str, u32)]) -> Poller {
    let (mut jobs, mut pods) = (vec![], vec![]);
    for &(namespace, attempts) in tenants {
        let (job, own) = tenant(namespace, attempts);
        jobs.push(job);
        pods.extend(own);
    }
    Poller::new(Fence {
        table: Arc::default(),
        addresses: PollAddresses::new(Stores::for_tests(jobs, pods, &[]), false),
        metrics: Arc::new(Metrics::new().unwrap()),
        keys: fixtures::keys(),
        clock: Clock::for_tests(),
        touched: mpsc::unbounded_channel().0,
    })
}

/// Answers polls. Those of "many" take four seconds each, others one.
struct Run {
    poller: Poller,
    now: Instant,
    held: Vec<(Instant, Target, Place<Arc<str>>)>,
    /// How often each was polled.
    polled: BTreeMap<String, u32>,
}

impl Run {
    fn of(tenants: &[(&str, u32)]) -> Self {
        Self {
            poller: poller(tenants),
            now: Instant(0),
            held: vec![],
            polled: BTreeMap::new(),
        }
    }

    fn tick(&mut self) {
        let held = std::mem::take(&mut self.held);
        for (until, target, place) in held {
            if until > self.now {
                self.held.push((until, target, place));
                continue;
            }
            let table = &self.poller.fence.table;
            table.is_polled(&target.attempt, self.now);
        }
        for (target, place) in self.poller.due(self.now) {
            let pod = target.attempt.pod.to_string();
            let held = Span(if pod.starts_with("many") { 4000 } else { 1000 });
            *self.polled.entry(pod).or_default() += 1;
            self.held.push((self.now.plus(held), target, place));
        }
        assert!(self.held.len() <= POLLED_AT_ONCE_MAX);
        self.now = self.now.plus(Span(200));
    }

    fn polled(mut self, ticks: usize) -> BTreeMap<String, u32> {
        (0..ticks).for_each(|_| self.tick());
        self.polled
    }
}

#[test]
fn held_polls_of_one_namespace_delay_no_poll_of_another() {
    let alone = Run::of(&[("few", 5)]).polled(50);
    assert_eq!(alone.len(), 5);
    let mut together = Run::of(&[("few", 5), ("many", 2000)]).polled(50);
    together.retain(|pod, _| pod.starts_with("few"));
    assert_eq!(together, alone);
}

#[test]
fn a_pod_that_comes_later_is_polled_at_once() {
    let mut run = Run::of(&[("many", 2000), ("few", 0)]);
    run.tick();
    assert_eq!(run.held.len(), POLLED_AT_ONCE_MAX / 4 * 3);
    for pod in tenant("few", 5).1 {
        run.poller
            .fence
            .addresses
            .stores()
            .see_pod(Event::Apply(pod));
    }
    run.tick();
    let few = run.polled.keys().filter(|pod| pod.starts_with("few"));
    assert_eq!(few.count(), 5);
}

#[test]
fn an_agent_that_still_asks_is_polled_first() {
    let mut run = Run::of(&[("many", 2000)]);
    run.tick();
    let asking = run.held[0].1.attempt.clone();
    let nonce = Some("nonce".to_owned());
    run.poller.fence.table.take(&asking, nonce, run.now);
    assert_eq!(run.poller.fence.table.asking("uid-many").len(), 1);
    (0..20).for_each(|_| run.tick());
    assert_eq!(run.polled[&*asking.pod], 2, "more than a thousand wait");
    assert!(run.polled.len() < 2000);
}

#[test]
fn silent_and_leaving_attempts_are_left_alone() {
    let mut run = Run::of(&[("few", 2)]);
    run.tick();
    let silent = run.held[0].1.attempt.clone();
    run.held.clear();
    let table = Arc::clone(&run.poller.fence.table);
    table.is_silent(&silent, run.now.plus(RETRY_AFTER));
    table.is_polled(&silent, run.now);
    (0..5).for_each(|_| run.tick());
    assert_eq!(run.polled[&*silent.pod], 1);
    run.tick();
    assert_eq!(run.polled[&*silent.pod], 2);
    let mut leaving = tenant("few", 1).1.remove(0);
    leaving.metadata.deletion_timestamp = Some(crate::clock::time(Instant(0)));
    run.poller
        .fence
        .addresses
        .stores()
        .see_pod(Event::Apply(leaving));
    run.tick();
    assert_eq!(table.lock().of("uid-few").count(), 1);
}
