mod spans;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kube::runtime::reflector::ObjectRef;
use parking_lot::Mutex;
use shed_core::ids::{AttemptNumber, TaskIndex};
use shed_core::plan::{Kill, Move};
use shed_core::snapshot::KillKind;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::*;
use crate::cluster::Stores;
use crate::fair_places::FairPlaces;
use crate::fixtures;
use crate::reconcile::context::ReconcileContext;
use crate::reconcile::mock::{Apiserver, Process};
use crate::reconcile::queue::Wake;
use crate::reconcile::write_places::LAUNCHES_AT_ONCE;

const A_WHILE: Duration = Duration::from_secs(5);

/// Panics over one job, and counts the others.
async fn work(
    job: Arc<DeadlineJob>,
    context: Arc<ReconcileContext>,
    _: Option<LaunchPlace>,
) -> Result<Wake, Error> {
    assert_ne!(job.metadata.name.as_deref(), Some("count"), "on purpose");
    context.metrics.attempts.grants.inc();
    Ok(Wake::await_change())
}

#[tokio::test(start_paused = true)]
async fn a_panic_over_one_job_keeps_no_other_from_being_reconciled() {
    let broken = fixtures::job_of_age(0, "");
    let mut other = broken.clone();
    other.metadata.name = Some("other".to_owned());
    other.metadata.uid = Some("another".to_owned());
    let api = Apiserver::new(broken.clone());
    let stores = Stores::for_tests(vec![broken.clone(), other.clone()], vec![], &[]);
    let process = Process::with_stores(&api, stores);
    let (touched, jobs) = mpsc::unbounded_channel();
    let context = Arc::clone(&process.context);
    let (_sender, status_only_jobs) = mpsc::unbounded_channel();
    let running = tokio::spawn(run_by(context, jobs, status_only_jobs, work));
    for round in 1..=3 {
        for job in [&broken, &other] {
            touched.send(ObjectRef::from_obj(job)).unwrap();
        }
        tokio::time::sleep(A_WHILE).await;
        assert_eq!(process.context.metrics.attempts.grants.get(), round);
    }
    process.send_events().await;
    let noted = ["GET job", "PUT job status", "POST event ReconcilePanicked"];
    assert_eq!(api.said(), noted, "it was tried once");
    assert!(timeout(A_WHILE, running).await.is_err(), "the term goes on");
}

#[tokio::test(start_paused = true)]
async fn status_only_changes_share_a_reconcile_and_others_do_not_wait() {
    let (touched, jobs) = mpsc::unbounded_channel();
    let (status_only, status_only_jobs) = mpsc::unbounded_channel();
    let mut due = Box::pin(due_jobs(jobs, status_only_jobs));
    let job: ObjectRef<DeadlineJob> = ObjectRef::from_obj(&fixtures::job(""));
    let started = tokio::time::Instant::now();
    for _ in 0..3 {
        status_only.send(job.clone()).unwrap();
    }
    assert_eq!(due.next().await.as_ref(), Some(&job));
    // A timer rounds up to a millisecond.
    assert_eq!(
        started.elapsed().as_millis() / 10,
        u128::try_from(MERGE_WAIT.0).unwrap() / 10
    );
    assert!(timeout(A_WHILE, due.next()).await.is_err(), "one is enough");
    let started = tokio::time::Instant::now();
    status_only.send(job.clone()).unwrap();
    touched.send(job.clone()).unwrap();
    assert_eq!(due.next().await.as_ref(), Some(&job));
    assert!(started.elapsed() < clock::duration(MERGE_WAIT));
    assert!(
        timeout(A_WHILE, due.next()).await.is_err(),
        "it covers both"
    );
}

#[tokio::test(start_paused = true)]
async fn a_relist_of_10_000_jobs_is_at_most_two_passes_each() {
    const JOBS: u64 = 10_000;
    let job = |number| {
        let mut job = fixtures::job_of_age(0, "");
        job.metadata.name = Some(format!("job-{number}"));
        job.metadata.uid = Some(format!("uid-{number}"));
        job
    };
    let all: Vec<DeadlineJob> = (0..JOBS).map(job).collect();
    let api = Apiserver::new(all[0].clone());
    let process = Process::with_stores(&api, Stores::for_tests(all.clone(), vec![], &[]));
    let (touched, jobs) = mpsc::unbounded_channel();
    let (_sender, status_only_jobs) = mpsc::unbounded_channel();
    // A list names each with its page, and again at its end.
    for job in all.iter().chain(&all) {
        touched.send(ObjectRef::from_obj(job)).unwrap();
    }
    let running = run_by(Arc::clone(&process.context), jobs, status_only_jobs, work);
    assert!(timeout(A_WHILE, running).await.is_err(), "the term goes on");
    let passes = process.context.metrics.attempts.grants.get();
    assert!((JOBS..=2 * JOBS).contains(&passes), "{passes}");
    assert!(api.said().is_empty(), "no read");
}

#[test]
fn launches_leave_places_for_other_passes() {
    let (passes, namespace) = (FairPlaces::new(PASSES_AT_ONCE), "team");
    let launching = (0..LAUNCHES_AT_ONCE).map(|_| passes.try_acquire(&namespace));
    let launching: Vec<_> = launching.collect();
    assert!(launching.iter().all(Option::is_some));
    assert!(passes.try_acquire(&namespace).is_some());
}

#[tokio::test(start_paused = true)]
async fn a_pass_that_stops_an_attempt_comes_before_others() {
    let job = |name: &str, change: &str| {
        let mut job = fixtures::job_of_age(0, change);
        job.metadata.name = Some(name.to_owned());
        job.metadata.uid = Some(name.to_owned());
        job
    };
    let jobs = [
        job("calm", ""),
        job("raced", ""),
        job("suspended", "suspend: true"),
        job("idle", "suspend: true"),
        job("pruned", ""),
    ];
    let pod = |job, number, phase| fixtures::attempt_pod(job, (0, number), "", phase);
    let pods = vec![
        pod(&jobs[0], 0, "Running"),
        pod(&jobs[1], 0, "Running"),
        pod(&jobs[1], 1, "Succeeded"),
        pod(&jobs[2], 0, "Running"),
        pod(&jobs[3], 0, "Succeeded"),
        pod(&jobs[4], 0, "Running"),
        pod(&jobs[4], 1, "Running"),
    ];
    let api = Apiserver::new(jobs[0].clone());
    let process = Process::with_stores(&api, Stores::for_tests(jobs.to_vec(), pods, &[]));
    let prune = Kill {
        task: TaskIndex(0),
        attempt: AttemptNumber(1),
        kind: KillKind::Prune,
        survivor: Some(AttemptNumber(0)),
    };
    process.plan(&jobs[4], vec![Move::Kill(prune)]);
    let passes = &process.context.passes;
    let namespace: Arc<str> = "team".into();
    let busy: Vec<_> = std::iter::from_fn(|| passes.try_acquire(&namespace)).collect();
    let served: &Mutex<Vec<String>> = Box::leak(Box::default());
    let work = move |job: Arc<DeadlineJob>, _, _| async move {
        served.lock().extend(job.metadata.name.clone());
        Ok(Wake::await_change())
    };
    let (touched, named) = mpsc::unbounded_channel();
    let (_sender, status_only_jobs) = mpsc::unbounded_channel();
    let running = tokio::spawn(run_by(
        Arc::clone(&process.context),
        named,
        status_only_jobs,
        work,
    ));
    for job in [&jobs[0], &jobs[3], &jobs[1], &jobs[2], &jobs[4]] {
        touched.send(ObjectRef::from_obj(job)).unwrap();
        tokio::time::sleep(A_WHILE).await;
    }
    assert!(served.lock().is_empty());
    let mut busy = busy.into_iter();
    drop(busy.next());
    tokio::time::sleep(A_WHILE).await;
    assert_eq!(
        *served.lock(),
        ["raced", "suspended", "pruned", "calm", "idle"]
    );
    running.abort();
}

#[tokio::test(start_paused = true)]
async fn news_and_the_time_do_not_wait_for_a_turn_to_launch() {
    let job = fixtures::job_of_age(0, "");
    let api = Apiserver::new(job.clone());
    let process = Process::start(&api);
    let launches = &process.context.write_places.launches;
    let namespace: Arc<str> = "team".into();
    let take_all = || std::iter::from_fn(|| launches.try_acquire(&namespace)).collect::<Vec<_>>();
    let busy = take_all();
    // Whether each pass had its turn, and whether the job launches.
    let seen: &Mutex<Vec<bool>> = Box::leak(Box::default());
    let launching: &AtomicBool = Box::leak(Box::new(AtomicBool::new(true)));
    let work = move |_, _, turn: Option<LaunchPlace>| async move {
        seen.lock().push(turn.is_some());
        let awaits_turn = turn.is_none() && launching.load(Ordering::Relaxed);
        Ok(Wake::requeue(A_WHILE * 3).with_turn(awaits_turn))
    };
    let (touched, jobs) = mpsc::unbounded_channel();
    let (_sender, status_only_jobs) = mpsc::unbounded_channel();
    let running = tokio::spawn(run_by(
        Arc::clone(&process.context),
        jobs,
        status_only_jobs,
        work,
    ));
    let seen_after_news = async || {
        touched.send(ObjectRef::from_obj(&job)).unwrap();
        tokio::time::sleep(A_WHILE).await;
        std::mem::take(&mut *seen.lock())
    };
    assert_eq!(seen_after_news().await, [false]);
    assert_eq!(seen_after_news().await, [false], "news");
    tokio::time::sleep(A_WHILE * 3).await;
    assert_eq!(*seen.lock(), [false], "the time");
    let count = busy.len();
    drop(busy);
    tokio::time::sleep(A_WHILE).await;
    assert_eq!(*seen.lock(), [false, true], "its turn");
    let busy = take_all();
    assert_eq!(busy.len(), count, "the place came back");
    seen.lock().clear();
    assert_eq!(seen_after_news().await, [false]);
    // The user has suspended it.
    launching.store(false, Ordering::Relaxed);
    assert_eq!(seen_after_news().await, [false]);
    drop(busy);
    assert_eq!(take_all().len(), count, "it waits for no turn any more");
    running.abort();
}
