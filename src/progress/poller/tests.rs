use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;
use kube::runtime::watcher::Event;
use shed_agent::stop::StopState;
use shed_agent::wire::{FileContent, write_reply};

use super::*;
use crate::clock;
use crate::cluster::Stores;
use crate::fixtures::{self, Agent};
use crate::progress::Answer;

const JOB: &str = "job";
const POD: &str = "pod";
/// End of the attempt's segment.
const END: u64 = 40;

fn polling(stores: &Arc<Stores>) -> Arc<Poller> {
    let table = Arc::new(ProgressTable::new(Instant(0)));
    table.answer_for_tests(JOB, POD, &[]);
    Arc::new(Poller {
        table,
        follower: Follower::new(PollAddresses::new(Arc::clone(stores), false)),
        places: FairPlaces::new(ASKED_AT_ONCE_MAX),
        metrics: Arc::new(Metrics::new().unwrap()),
        keys: fixtures::keys(),
        clock: Clock::for_tests(),
        client: request::client(request::PATIENCE),
    })
}

/// An agent whose task has reported half of its work and has no end yet.
async fn agent() -> Agent {
    agent_of(JOB).await
}

async fn agent_of(job_uid: &str) -> Agent {
    let stop = StopState {
        nonce: "nonce".to_owned(),
        unit: None,
    };
    let content = FileContent::Bytes(b"20/40".to_vec(), Duration::ZERO);
    Agent::serve(job_uid, write_reply(POD, content, Some(stop)).unwrap()).await
}

async fn ask_once(poller: &Arc<Poller>, agent: &Agent) {
    let question = Question::for_tests(POD, JOB, agent.address, END);
    let place = poller.places.try_acquire(&"n".into()).unwrap();
    Arc::clone(poller).exchange((question, place)).await;
}

fn reported(poller: &Poller) -> Option<u64> {
    let key = Key::for_tests(JOB, POD);
    poller.table.lock().get(&key).unwrap().reported
}

#[tokio::test]
async fn a_poll_reads_the_report_and_tells_the_end_of_the_segment() {
    let stores = Stores::for_tests(vec![], vec![], &[]);
    let (poller, agent) = (polling(&stores), agent().await);
    ask_once(&poller, &agent).await;
    assert!(poller.table.reports_of(JOB).contains_key(POD));
    assert_eq!((agent.orders(), reported(&poller)), (1, Some(END)));
    let page = poller.metrics.page().unwrap();
    assert!(page.contains("shed_progress_poll_duration_seconds_count 1"));
}

#[tokio::test]
async fn who_answers_in_place_of_the_agent_is_not_believed() {
    let stores = Stores::for_tests(vec![], vec![], &[]);
    let (poller, stranger) = (polling(&stores), agent_of("another job").await);
    ask_once(&poller, &stranger).await;
    assert!(!poller.table.reports_of(JOB).contains_key(POD));
    assert_eq!((stranger.orders(), reported(&poller)), (0, None));
}

#[tokio::test]
async fn a_pod_that_says_to_be_where_no_pod_is_is_not_asked() {
    let mut job = fixtures::job("progress: {httpGet: {port: 80}}");
    let pod = |number: u32, ip: &str| {
        let mut pod = fixtures::attempt_pod(&job, (number, 0), "node-1", "Running");
        let status = serde_json::json!({"phase": "Running", "podIP": ip, "containerStatuses": [{
            "name": "task", "image": "", "imageID": "", "ready": true, "restartCount": 0,
            "state": {"running": {"startedAt": "2020-01-01T00:00:00Z"}}}]});
        pod.status = serde_json::from_value(status).unwrap();
        pod
    };
    let pods = vec![
        pod(0, "10.1.2.3"),
        pod(1, "169.254.169.254"),
        pod(2, "127.0.0.1"),
    ];
    job.status = Some(crate::api::DeadlineJobStatus::default());
    let first = pods[0].metadata.uid.clone().unwrap();
    let poller = polling(&Stores::for_tests(vec![job], pods, &[]));
    let mut budget = TokenBucket::per_second(10);
    let asked = poller.due(&mut budget, clock::now());
    let asked: Vec<&str> = asked.iter().map(|(to, _)| &*to.attempt.pod).collect();
    assert_eq!(asked, [first]);
}

/// Attempts of a namespace's job that run, each polled every second.
fn tenant(namespace: &str, attempts: u32) -> (crate::api::DeadlineJob, Vec<Pod>) {
    let mut job = fixtures::job("progress: {httpGet: {port: 80}, periodSeconds: 1}");
    job.metadata.namespace = Some(namespace.to_owned());
    job.metadata.uid = Some(format!("uid-{namespace}"));
    job.status = Some(crate::api::DeadlineJobStatus::default());
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

/// How often each attempt is polled in ten seconds with this budget. "slow" ones answer after 0.95
/// s, others at once.
fn asked(tenants: &[(&str, u32)], per_second: u32) -> BTreeMap<String, u32> {
    let (mut jobs, mut pods) = (vec![], vec![]);
    for &(namespace, attempts) in tenants {
        let (job, own) = tenant(namespace, attempts);
        jobs.push(job);
        pods.extend(own);
    }
    let poller = polling(&Stores::for_tests(jobs, pods, &[]));
    let mut budget = TokenBucket::per_second(per_second);
    let mut counts = BTreeMap::new();
    let mut under_way: Vec<(Instant, Asking)> = vec![];
    for tick in 0..100 {
        let now = Instant(tick * 100);
        let (answered, waiting) = under_way.into_iter().partition(|(at, _)| *at <= now);
        under_way = waiting;
        let answered: Vec<(Instant, Asking)> = answered;
        for (_, (question, _place)) in answered {
            let said = Answer::Said(shed_agent::parse_report(b"0.5"));
            poller
                .table
                .take(&question.attempt, said, now, &poller.metrics);
        }
        for asking in poller.due(&mut budget, now) {
            let pod = asking.0.attempt.pod.to_string();
            let takes = Span(if pod.starts_with("slow") { 950 } else { 50 });
            *counts.entry(pod).or_default() += 1;
            under_way.push((now.plus(takes), asking));
        }
        assert!(under_way.len() <= ASKED_AT_ONCE_MAX);
    }
    counts
}

fn of(namespace: &str, counts: &BTreeMap<String, u32>) -> BTreeMap<String, u32> {
    let own = counts.iter().filter(|(pod, _)| pod.starts_with(namespace));
    own.map(|(pod, count)| (pod.clone(), *count)).collect()
}

#[test]
fn slow_endpoints_of_one_namespace_delay_no_poll_of_another() {
    let alone = asked(&[("quick", 5)], 1000);
    assert_eq!(alone.len(), 5);
    let together = asked(&[("quick", 5), ("slow", 1000)], 1000);
    assert_eq!(of("quick", &together), alone);
    let slow: u32 = of("slow", &together).values().sum();
    // Three quarters of the places, ten times each.
    assert!((1800..=1920).contains(&slow), "{slow}");
}

#[test]
fn a_namespace_that_uses_up_the_budget_delays_no_other_poll() {
    let alone = asked(&[("quick", 5)], 100);
    let together = asked(&[("quick", 5), ("many", 2000)], 100);
    assert_eq!(of("quick", &together), alone);
    let total: u32 = together.values().sum();
    assert!((1050..=1100).contains(&total), "{total}");
}

/// The divided task is polled again before its period is over, until it has acknowledged its end.
#[test]
fn a_division_moves_the_poll_of_its_task_alone() {
    let (job, pods) = tenant("quick", 3);
    let (stores, mut writer) = Stores::of_objects(vec![fixtures::object(&job, &[])], pods);
    let poller = polling(&stores);
    let mut budget = TokenBucket::per_second(100);
    let mut polled_at = |now: i64| {
        let asked = poller.due(&mut budget, Instant(now));
        for (question, _place) in &asked {
            let said = Answer::Said(shed_agent::parse_report(b"0.5"));
            let attempt = &question.attempt;
            poller
                .table
                .take(attempt, said, Instant(now), &poller.metrics);
        }
        let key = |(question, _): &Asking| (question.attempt.pod.to_string(), question.ends_at);
        asked.iter().map(key).collect::<Vec<_>>()
    };
    assert_eq!(polled_at(0).len(), 3);
    let part = serde_json::json!({"index": 1, "task": 1, "start": 0, "end": 5, "total": 9});
    let status = serde_json::json!({"ledger": {"segments": [part]}});
    let divided = fixtures::object(&job, &[("/status", status)]);
    stores.see_job(&mut writer, Event::Apply(divided));
    assert_eq!(polled_at(400), []);
    let reported = [("quick-1".to_owned(), Some(5))];
    assert_eq!(polled_at(500), reported);
    assert_eq!(polled_at(900), []);
    poller
        .table
        .is_reported(&Key::for_tests("uid-quick", "quick-1"), Some(5));
    assert_eq!(polled_at(1100).len(), 2, "its period begins with each poll");
}
