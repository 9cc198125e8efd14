use shed_agent::stop::StopState;
use shed_agent::wire::{FileContent, write_reply};

use super::*;
use crate::fixtures::Agent;

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
        stores: Stores::for_tests(vec![], vec![], &[]),
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
