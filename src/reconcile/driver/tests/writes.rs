//! When writes are sent: by their size, by their urgency, and by the failure of another kind of
//! write.

use shed_core::time::Span;

use super::*;
use crate::cluster::Stores;
use crate::context::spacing::LastWrite;
use crate::reconcile::write_places::LaunchPlace;

/// The job's ledger was last written `ago` milliseconds ago, and had a MiB.
fn wrote_a_mib(process: &Process, job: &DeadlineJob, ago: i64) {
    let uid: Arc<str> = job.metadata.uid.as_deref().unwrap().into();
    let at = process.context.clock.ticks().plus(Span(-ago));
    let paid = at.plus(Span(1048));
    let last_write = Some(LastWrite { at, paid });
    let job_memories = &process.context.job_memories;
    job_memories.with(&uid, |memory| memory.reconcile.last_write = last_write);
}

#[tokio::test]
async fn a_large_ledger_is_written_less_often_and_its_slice_waits() {
    let api = Apiserver::new(fixtures::job_of_age(0, ""));
    let process = Process::start(&api);
    wrote_a_mib(&process, &api.job(), 0);
    process.plan(&api.job(), originals(4));
    process.look(&api).await.unwrap();
    assert_eq!(api.said(), WAITS);
    assert!(!process.is_drained().await, "the slice is not lost");
    assert_eq!(process.context.metrics.ledger.deferred.get(), 1);
    wrote_a_mib(&process, &api.job(), 1100);
    process.look(&api).await.unwrap();
    assert_eq!(api.said().len(), 5, "the ledger and four pods");
    assert!(process.is_drained().await);
}

/// Two tasks, the second with a clone that has just succeeded: its original must stop, and no condition turns.
async fn one_to_stop() -> (Apiserver, Process) {
    let (api, process) = two_running("").await;
    process.plan(&api.job(), vec![launch(1, AttemptKind::Clone)]);
    process.look(&api).await.unwrap();
    api.run((1, 1));
    process.look(&api).await.unwrap();
    api.said();
    api.exit((1, 1), 0, clock::now());
    (api, process)
}

#[tokio::test]
async fn a_stop_is_written_a_quarter_second_after_the_last_write() {
    for (ago, expected) in [(0, 0), (251, 3)] {
        let (api, process) = one_to_stop().await;
        wrote_a_mib(&process, &api.job(), ago);
        process.look(&api).await.unwrap();
        let calls = api.said();
        let written = calls.iter().filter(|words| !words.contains("event"));
        let written: Vec<_> = written.collect();
        assert_eq!(written.len(), expected, "{written:?}");
    }
}

#[tokio::test]
async fn a_deferred_write_defers_nothing_that_is_recorded() {
    let (api, process) = two_running("completions: 4").await;
    process.plan(&api.job(), vec![launch(1, AttemptKind::Clone)]);
    process.look(&api).await.unwrap();
    api.run((1, 1));
    process.look(&api).await.unwrap();
    api.exit((1, 1), 0, clock::now());
    process.plan(&api.job(), vec![launch(2, AttemptKind::Original)]);
    api.script(|call| match call.words.as_str() {
        "DELETE pod 1-0" | "POST pod 2-0" => Fate::LostBefore,
        _ => Fate::Served,
    });
    process.look(&api).await.unwrap_err();
    api.script(|_| Fate::Served);
    api.said();
    // The next process finds both in the ledger, and a win that it may not write yet.
    let process = Process::start(&api);
    api.exit((0, 0), 0, clock::now());
    wrote_a_mib(&process, &api.job(), 0);
    process.plan(&api.job(), vec![launch(3, AttemptKind::Original)]);
    process.look(&api).await.unwrap();
    assert_eq!(api.said(), ["DELETE pod 1-0", "POST pod 2-0"]);
    assert!(!process.is_drained().await, "what is not recorded waits");
}

/// Other jobs of the namespace launch, and have all the places that it may have.
fn busy_launches(process: &Process) -> Vec<LaunchPlace> {
    let launches = &process.context.write_places.launches;
    std::iter::from_fn(|| launches.try_acquire(&"team".into())).collect()
}

#[tokio::test]
async fn a_stop_waits_for_no_launch() {
    let (api, process) = one_to_stop().await;
    let busy = busy_launches(&process);
    process.plan(&api.job(), vec![launch(0, AttemptKind::Clone)]);
    let wake = process.look(&api).await.unwrap();
    assert!(wake.awaits_turn());
    let said = api.said();
    assert!(said.contains(&"DELETE pod 1-0".to_owned()), "{said:?}");
    assert!(!said.iter().any(|call| call.starts_with("POST pod")));
    assert!(!process.is_drained().await, "the launch is not lost");
    drop(busy);
    let wake = process.look(&api).await.unwrap();
    assert!(!wake.awaits_turn());
    assert!(api.said().contains(&"POST pod 0-1".to_owned()));
    assert!(process.is_drained().await);
}

#[tokio::test]
async fn a_recorded_launch_waits_for_its_turn_and_nothing_else_does() {
    let (api, process) = two_running("completions: 3").await;
    process.plan(&api.job(), vec![launch(2, AttemptKind::Original)]);
    api.refuse("POST pod", 504, "Timeout", "etcd is slow");
    process.look(&api).await.unwrap_err();
    api.script(|_| Fate::Served);
    api.said();
    let process = Process::start(&api);
    let busy = busy_launches(&process);
    api.exit((0, 0), 0, clock::now());
    assert!(process.look(&api).await.unwrap().awaits_turn());
    assert_eq!(api.said(), ["PUT job status", "PATCH pod 0-0"]);
    drop(busy);
    assert!(!process.look(&api).await.unwrap().awaits_turn());
    assert_eq!(api.said(), ["POST pod 2-0"]);
}

#[tokio::test]
async fn what_all_jobs_write_delays_a_launch_and_no_stop() {
    let (api, process) = one_to_stop().await;
    let rate = &process.context.ledger_rate;
    let ticks = process.context.clock.ticks();
    let uid: Arc<str> = api.job().metadata.uid.as_deref().unwrap().into();
    for _ in 0..40 {
        let last_write = Some(rate.note(1_000_000, ticks.plus(Span(-300))));
        let job_memories = &process.context.job_memories;
        job_memories.with(&uid, |memory| memory.reconcile.last_write = last_write);
    }
    let last_write = process.memory(&api.job()).reconcile.last_write;
    process.look(&api).await.unwrap();
    assert_eq!(api.said()[0], "PUT job status");
    let job_memories = &process.context.job_memories;
    job_memories.with(&uid, |memory| memory.reconcile.last_write = last_write);
    process.plan(&api.job(), vec![launch(0, AttemptKind::Clone)]);
    process.look(&api).await.unwrap();
    assert_eq!(api.said(), WAITS);
}

#[tokio::test]
async fn a_write_carries_the_status_alone_and_is_counted() {
    let api = Apiserver::new(fixtures::job_of_age(0, ""));
    let process = Process::start(&api);
    process.plan(&api.job(), originals(4));
    process.look(&api).await.unwrap();
    let put = api.call("PUT job").body;
    assert!(put.get("spec").is_none(), "{put}");
    let fields: Vec<_> = put["metadata"].as_object().unwrap().keys().collect();
    assert_eq!(fields, ["name", "namespace", "resourceVersion", "uid"]);
    let metrics = &process.context.metrics;
    assert_eq!(metrics.ledger.bytes.get(), put.to_string().len() as u64);
    assert_eq!(metrics.ledger.over_budget.get(), 0);
    let newest = process.planned(&api.job()).newest.unwrap();
    assert_eq!(newest.status, api.job().status, "as a watch will show it");
    assert_eq!(newest.spec, api.job().spec);
}

#[tokio::test]
async fn a_slice_is_finished_before_its_pods_are_created() {
    let api = Apiserver::new(fixtures::job_of_age(0, "completions: 1"));
    let process = Process::start(&api);
    process.plan(&api.job(), originals(1));
    let context = Arc::clone(&process.context);
    let (held, seen) = std::sync::mpsc::channel();
    api.script(move |call| {
        let ticks = context.clock.ticks();
        let is_held = !context.plan_slices.held(Span(i64::MAX), ticks).is_empty();
        let _ = held.send((call.words.clone(), is_held));
        Fate::Served
    });
    process.look(&api).await.unwrap();
    let seen: Vec<_> = seen.try_iter().collect();
    let expected = [("PUT job status", true), ("POST pod 0-0", false)];
    assert_eq!(seen, expected.map(|(words, held)| (words.to_owned(), held)));
}

#[tokio::test]
async fn no_pod_is_created_before_an_adopted_job_status_is_written() {
    let batch = fixtures::batch_job("completions: 3, parallelism: 3");
    let companion = fixtures::companion(&batch);
    let api = Apiserver::new(companion);
    let stores = Stores::for_tests(vec![Arc::unwrap_or_clone(api.job())], vec![], &[]);
    let stores = stores.adopting(crate::adopt::AdoptJobs::All, vec![batch]);
    let process = Process::with_stores(&api, stores);
    process.plan(&api.job(), originals(3));
    api.refuse("PUT Job", 403, "Forbidden", "no status on Fridays");
    let error = process.reconcile(api.job()).await.unwrap_err();
    assert!(matches!(error, Error::Mirror(_)), "{error}");
    assert_eq!(api.said(), ["PUT job status", "PUT Job status"]);
}

#[tokio::test]
async fn denied_deletes_are_reported_once_and_block_no_create() {
    let (api, process) = two_running("completions: 3").await;
    api.refuse("DELETE pod", 403, "Forbidden", "no deletes on Fridays");
    process.plan(&api.job(), vec![launch(1, AttemptKind::Clone)]);
    process.look(&api).await.unwrap();
    api.said();
    api.exit((1, 0), 0, clock::now());
    process.plan(&api.job(), vec![launch(2, AttemptKind::Original)]);
    for reported in [1, 0] {
        let error = process.look(&api).await.unwrap_err();
        assert!(matches!(error, Error::Delete(_)), "{error}");
        let said = api.said();
        let count = |words: &str| said.iter().filter(|said| said.starts_with(words)).count();
        assert_eq!(count("POST event PodWriteRefused"), reported, "{said:?}");
        assert_eq!(count("DELETE pod 1-1"), 1, "{said:?}");
        assert_eq!(count("POST pod 2-0"), reported, "{said:?}");
        assert_eq!(count("PATCH pod 1-0"), reported, "{said:?}");
    }
}

#[tokio::test]
async fn a_pod_is_stopped_and_released_once_though_the_watch_lags() {
    let (api, process) = one_to_stop().await;
    process.look(&api).await.unwrap();
    assert_eq!(
        api.said(),
        [
            "PUT job status",
            "DELETE pod 1-0",
            "PATCH pod 1-1",
            "POST event CloneWon"
        ]
    );
    // The watch still shows both as they were.
    for _ in 0..2 {
        process.reconcile(api.job()).await.unwrap();
        assert_eq!(api.said(), WAITS);
    }
    // Another process does not know.
    let next = Process::with_stores(&api, Arc::clone(&process.context.stores));
    next.reconcile(api.job()).await.unwrap();
    assert_eq!(api.said(), ["GET job", "DELETE pod 1-0", "PATCH pod 1-1"]);
}
