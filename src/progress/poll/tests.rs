use shed_agent::stop::StopState;
use shed_agent::wire::{FileContent, write_reply};

use super::*;
use crate::fixtures::{self, Agent};

const JOB: &str = "job";
const POD: &str = "pod";
/// Where the attempt's part ends.
const END: u64 = 40;

fn poller(doubt: &Arc<Doubt>) -> Arc<Poller> {
    let table = Arc::new(ProgressTable::new(Instant(0)));
    table.answer_for_tests(JOB, POD, &[]);
    let key = SigningKey::from_pkcs8(&SigningKey::generate().unwrap()).unwrap();
    Arc::new(Poller {
        table,
        reach: Reach::new(Stores::for_tests(vec![], vec![], &[]), false),
        metrics: Arc::new(Metrics::new()),
        key: Arc::new(key),
        doubt: Arc::clone(doubt),
        clock: Clock::for_tests(),
        client: ask::client(),
    })
}

/// An agent whose task has reported half of its work and knows no end of it yet.
async fn agent() -> Agent {
    let stop = StopState {
        nonce: "nonce".to_owned(),
        unit: None,
    };
    let content = FileContent::Bytes(b"20/40".to_vec(), Duration::ZERO);
    Agent::serve(write_reply(POD, content, Some(stop)).unwrap()).await
}

async fn ask_once(poller: &Arc<Poller>, agent: &Agent) {
    let question = Question::for_tests(POD, JOB, agent.address, END);
    let places = Arc::new(Semaphore::new(1));
    let place = places.try_acquire_owned().unwrap();
    Arc::clone(poller).exchange(question, place).await;
}

fn told(poller: &Poller) -> Option<u64> {
    poller.table.lock()[JOB][POD].told
}

#[tokio::test]
async fn in_doubt_no_attempt_is_told_where_it_ends_and_reports_are_read_on() {
    let doubt = Doubt::new();
    let (poller, agent) = (poller(&doubt), agent().await);
    doubt.raise();
    ask_once(&poller, &agent).await;
    assert_eq!((agent.orders(), told(&poller)), (0, None));
    assert!(
        poller.table.reports_of(JOB).contains_key(POD),
        "asked all the same"
    );
    doubt.dispel(doubt.arisen().await);
    ask_once(&poller, &agent).await;
    assert_eq!((agent.orders(), told(&poller)), (1, Some(END)));
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
    let poller = Poller {
        reach: Reach::new(Stores::for_tests(vec![job], pods, &[]), false),
        ..Arc::into_inner(poller(&Doubt::new())).unwrap()
    };
    let asked = poller.due(10, clock::now());
    let asked: Vec<&str> = asked.iter().map(|question| question.uid.as_str()).collect();
    assert_eq!(asked, [first]);
}
