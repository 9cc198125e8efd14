use super::*;
use crate::fixtures::Agent;
use crate::stores::Stores;

const JOB: &str = "job";

fn grant(token: u64) -> CommitGrant {
    CommitGrant {
        job: JOB.to_owned(),
        task: 0,
        segment: 0,
        token,
    }
}

fn asking() -> FenceTable {
    let table = FenceTable::default();
    table.ask_for_tests(JOB, "pod", Instant(1000));
    table
}

#[test]
fn a_question_counts_from_its_first_poll_and_only_while_it_is_upheld() {
    let table = asking();
    assert!(!table.take("pod", Some("nonce".to_owned()), Instant(5000)));
    assert_eq!(table.asking(JOB)["pod"], Instant(1000));
    assert!(table.asking("another").is_empty());
    table.is_silent("pod", Instant(6000));
    assert!(table.asking(JOB).is_empty());
    assert!(table.take("pod", Some("nonce".to_owned()), Instant(7000)));
    assert_eq!(table.asking(JOB)["pod"], Instant(7000));
    // The agent was started again: its question is a new one.
    assert!(table.take("pod", Some("another".to_owned()), Instant(8000)));
    assert!(!table.take("pod", None, Instant(9000)));
    assert!(table.asking(JOB).is_empty());
}

#[tokio::test(start_paused = true)]
async fn nobody_is_told_what_the_ledger_does_not_say() {
    let table = asking();
    assert_eq!(table.told("pod").await, None);
    table.allow("pod", grant(7));
    let told = table.told("pod").await;
    assert_eq!(told, Some((grant(7), "nonce".to_owned())));
    table.is_answered("pod");
    table.take("pod", Some("nonce".to_owned()), Instant(9000));
    assert_eq!(table.told("pod").await, None, "the ledger is asked again");
}

#[tokio::test(start_paused = true)]
async fn who_waits_is_told_at_once() {
    let table = Arc::new(asking());
    let waiting = tokio::spawn({
        let table = Arc::clone(&table);
        async move { table.told("pod").await }
    });
    tokio::task::yield_now().await;
    table.allow("pod", grant(7));
    assert!(waiting.await.unwrap().is_some());
}

#[tokio::test]
async fn in_doubt_nobody_is_told_and_once_it_is_gone_who_asks_again_is() {
    let agent = Agent::serve(br#"{"attempt":"pod","nonce":"nonce"}"#.to_vec()).await;
    let key = SigningKey::from_pkcs8(&SigningKey::generate().unwrap()).unwrap();
    let fence = Fence {
        table: Arc::new(asking()),
        reach: Reach::new(Stores::for_tests(vec![], vec![], &[]), false),
        doubt: Doubt::new(),
        metrics: Arc::new(Metrics::new()),
        key: Arc::new(key),
        clock: Clock::for_tests(),
        touched: mpsc::unbounded_channel().0,
    };
    let target = Target {
        job: ObjectRef::new("count"),
        pod_uid: "pod".to_owned(),
        agent: agent.address.to_string(),
    };
    let client = ask::client();
    fence.table.allow("pod", grant(7));
    fence.doubt.raise();
    attend(&fence, &client, &target).await;
    assert_eq!(agent.orders(), 0);
    assert!(
        fence.table.asking(JOB).is_empty(),
        "who has gone silent meanwhile is given nothing"
    );
    fence.doubt.dispel(fence.doubt.arisen().await);
    attend(&fence, &client, &target).await;
    assert_eq!(agent.orders(), 1);
    assert_eq!(fence.table.told_for_tests("pod"), None, "told");
}
