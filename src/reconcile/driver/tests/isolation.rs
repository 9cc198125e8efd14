//! Reconciles that panic, take too long, or cannot be recorded, and the effect on their job.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use std::time::Duration;

use shed_core::time::Span;
use tokio::sync::Notify;

use super::*;
use crate::api::QuarantineEntry;
use crate::watchdog::isolation::PASS_MAX;

fn entry(api: &Apiserver) -> Option<QuarantineEntry> {
    let status = api.job().status.clone()?;
    status.ledger?.quarantine
}

/// How often in a row it failed, and for how many seconds it is left alone.
fn held(api: &Apiserver) -> (u32, i64) {
    let entry = entry(api).expect("a quarantine");
    let left = entry.until.since(clock::now());
    (entry.count, (left.0 + 500) / 1000)
}

/// The back-off ends then.
fn wait_until(api: &Apiserver, until: Instant) {
    edit(api, |job| {
        let ledger = job
            .status
            .as_mut()
            .and_then(|status| status.ledger.as_mut());
        let entry = ledger.and_then(|ledger| ledger.quarantine.as_mut());
        entry.expect("a quarantine").until = until;
    });
}

/// The back-off is over.
fn wait_over(api: &Apiserver) {
    wait_until(api, Instant(0));
}

/// Takes its slice, and dies over it.
async fn panics(watched: Arc<DeadlineJob>, context: Arc<ReconcileContext>) -> Result<Wake, Error> {
    let uid: Arc<str> = watched.metadata.uid.as_deref().unwrap().into();
    assert!(
        !context.plan_slices.take(&uid).is_empty(),
        "on purpose, but too early"
    );
    panic!("on purpose:\nit fails");
}

/// The driver's own work, then a panic.
async fn panics_after_work(
    watched: Arc<DeadlineJob>,
    context: Arc<ReconcileContext>,
) -> Result<Wake, Error> {
    driver_work(watched, context).await?;
    panic!("on purpose");
}

async fn driver_work(
    watched: Arc<DeadlineJob>,
    context: Arc<ReconcileContext>,
) -> Result<Wake, Error> {
    super::super::work(watched, context, None).await
}

fn started(change: &str) -> (Apiserver, Process) {
    let api = Apiserver::new(fixtures::job_of_age(0, change));
    let process = Process::start(&api);
    (api, process)
}

/// Seconds until the job is looked at again.
fn seconds(wake: &Wake) -> u64 {
    let wakes = (0..=3600).find(|&seconds| *wake == Wake::requeue(Duration::from_secs(seconds)));
    wakes.unwrap_or_else(|| panic!("{wake:?}"))
}

#[tokio::test]
async fn a_panic_quarantines_the_job_and_gives_its_slice_back() {
    let (api, process) = started("");
    process.plan(&api.job(), originals(4));
    let wake = process.reconcile_by(api.job(), panics).await.unwrap();
    assert_eq!(seconds(&wake), 60);
    let quarantined = ["GET job", "PUT job status", "POST event ReconcilePanicked"];
    let note = api.call("POST event").body["note"].to_string();
    assert!(
        note.contains("panicked: on purpose: it fails; consecutive failures: 1"),
        "{note}"
    );
    assert!(note.contains("delete the job"), "{note}");
    assert_eq!(api.said(), quarantined);
    let expected = ("True".to_owned(), "ReconcilePanicked".to_owned());
    assert_eq!(api.condition(api::QUARANTINED), Some(expected));
    assert_eq!(held(&api), (1, 60));
    assert!(process.is_drained().await);
    let page = process.context.metrics.page().unwrap();
    let counted = r#"shed_reconcile_crashes_total{reason="panicked"} 1"#;
    assert!(page.contains(counted), "{page}");
    // Neither this process nor a new one begins a reconcile, with a slice or without.
    for process in [process, Process::start(&api)] {
        process.plan(&api.job(), originals(4));
        process.look(&api).await.unwrap();
        assert_eq!(api.said(), WAITS);
        assert!(process.is_drained().await);
    }
}

#[tokio::test(start_paused = true)]
async fn a_reconcile_that_takes_too_long_quarantines_its_job() {
    let (api, process) = started("");
    process.plan(&api.job(), originals(4));
    let is_dropped = Arc::new(AtomicBool::new(false));
    let guard = Dropped(Arc::clone(&is_dropped));
    let began = tokio::time::Instant::now();
    let hangs = |watched: Arc<DeadlineJob>, context: Arc<ReconcileContext>| async move {
        let _guard = guard;
        let uid: Arc<str> = watched.metadata.uid.as_deref().unwrap().into();
        assert!(!context.plan_slices.take(&uid).is_empty());
        std::future::pending().await
    };
    let context = Arc::clone(&process.context);
    let wake = super::super::reconcile_by(api.job(), context, hangs).await;
    assert_eq!(seconds(&wake.unwrap()), 60);
    assert_eq!(began.elapsed().as_secs(), PASS_MAX.as_secs());
    assert!(is_dropped.load(Ordering::Relaxed), "nothing of it goes on");
    process.send_events().await;
    let quarantined = ["GET job", "PUT job status", "POST event ReconcileTimedOut"];
    assert_eq!(api.said(), quarantined);
    assert!(process.is_drained().await);
}

struct Dropped(Arc<AtomicBool>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[tokio::test]
async fn a_reconcile_ends_with_who_waits_for_it() {
    let (api, process) = started("");
    let is_dropped = Arc::new(AtomicBool::new(false));
    let guard = Dropped(Arc::clone(&is_dropped));
    let begun = Arc::new(Notify::new());
    let begins = Arc::clone(&begun);
    let hangs = |_, _| async move {
        let _guard = guard;
        begins.notify_one();
        std::future::pending().await
    };
    let context = Arc::clone(&process.context);
    let reconcile = super::super::reconcile_by(api.job(), context, hangs);
    tokio::select! {
        _ = reconcile => panic!("it hangs"),
        () = begun.notified() => {}
    }
    tokio::task::yield_now().await;
    assert!(is_dropped.load(Ordering::Relaxed));
}

#[tokio::test]
async fn the_wait_doubles_to_an_hour_until_a_reconcile_succeeds() {
    let (api, process) = started("");
    let mut waits = Vec::new();
    for count in 1..=8 {
        process.plan(&api.job(), originals(4));
        process.reconcile_by(api.job(), panics).await.unwrap();
        let (counted, wait) = held(&api);
        assert_eq!(counted, count);
        waits.push(wait);
        wait_over(&api);
    }
    assert_eq!(waits, [60, 120, 240, 480, 960, 1920, 3600, 3600]);
    api.said();
    process.look(&api).await.unwrap();
    assert_eq!(entry(&api), None);
    let lifted = ("False".to_owned(), "Reconciled".to_owned());
    assert_eq!(api.condition(api::QUARANTINED), Some(lifted));
    let tried = ["LIST pods", "PUT job status", "GET job", "PUT job status"];
    assert_eq!(api.said(), tried);
    process.plan(&api.job(), originals(4));
    process.reconcile_by(api.job(), panics).await.unwrap();
    assert_eq!(held(&api), (1, 60), "it counts from the start again");
}

#[tokio::test]
async fn an_entry_from_a_clock_days_ahead_quarantines_no_job_for_days() {
    let (api, process) = started("");
    process.plan(&api.job(), originals(4));
    process.reconcile_by(api.job(), panics).await.unwrap();
    let seconds = |seconds| clock::now().plus(Span::from_seconds(seconds));
    // Another replica's clock may well be behind a little.
    wait_until(&api, seconds(90));
    process.look(&api).await.unwrap();
    assert!(entry(&api).is_some());
    wait_until(&api, seconds(2 * 86_400));
    process.look(&api).await.unwrap();
    assert_eq!(entry(&api), None);
}

/// An error is no success.
#[tokio::test]
async fn a_reconcile_that_fails_otherwise_does_not_end_the_quarantine() {
    let (api, process) = started("");
    process.plan(&api.job(), originals(4));
    process.reconcile_by(api.job(), panics).await.unwrap();
    wait_over(&api);
    api.refuse("PUT job", 500, "InternalError", "etcd is away");
    process.look(&api).await.unwrap_err();
    assert_eq!(entry(&api).unwrap().count, 1);
    api.script(|_| Fate::Served);
    process.look(&api).await.unwrap();
    assert_eq!(entry(&api), None);
}

#[tokio::test]
async fn a_quarantine_that_can_not_be_noted_is_kept_and_noted_later() {
    let (api, process) = started("");
    process.plan(&api.job(), originals(4));
    api.refuse("PUT job", 500, "InternalError", "etcd is away");
    let error = process.reconcile_by(api.job(), panics).await.unwrap_err();
    assert!(matches!(error, Error::Quarantine(_)), "{error}");
    process.plan(&api.job(), originals(4));
    process.look(&api).await.unwrap_err();
    assert_eq!(api.said(), ["GET job", "PUT job status"].repeat(2));
    assert!(api.pods().is_empty() && process.is_drained().await);
    api.script(|_| Fate::Served);
    process.look(&api).await.unwrap();
    assert_eq!(held(&api), (1, 60));
}

/// Of a job that is gone by then there is nothing to note.
#[tokio::test]
async fn a_job_that_goes_while_its_reconcile_fails_is_forgotten() {
    let (api, process) = started("");
    let watched = api.job();
    process.plan(&watched, originals(4));
    api.world.lock().job = None;
    process.reconcile_by(watched, panics).await.unwrap();
    assert_eq!(api.said(), ["GET job"]);
}

/// Its pods were lost with the process's memory. As after a restart they are looked up, and
/// created.
#[tokio::test]
async fn after_a_panic_a_job_is_resumed_as_by_a_new_process() {
    let outcome = async |starts: bool| {
        let (api, mut process) = started("completions: 2");
        process.plan(&api.job(), originals(2));
        let died = process.reconcile_by(api.job(), panics_after_work).await;
        died.unwrap();
        // The watch is behind the pass's writes, and one of its pods is gone by now.
        let gone = pod_name(&api.job(), (1, 0));
        api.world.lock().pods.remove(&gone).unwrap();
        wait_over(&api);
        api.said();
        if starts {
            process = Process::start(&api);
            process.reconcile(api.job()).await.unwrap();
        } else {
            process.reconcile(api.job()).await.unwrap();
        }
        let said = api.said().into_iter();
        said.filter(|words| words != "LIST pods")
            .collect::<Vec<_>>()
    };
    let expected = ["POST pod 1-0", "GET job", "PUT job status"];
    assert_eq!(outcome(true).await, expected);
    assert_eq!(outcome(false).await, expected);
}

#[tokio::test]
async fn a_quarantine_survives_a_crash_at_every_call() {
    let begin = async || {
        let (api, process) = race().await;
        let slice = launch(0, AttemptKind::Clone);
        process.plan(&api.job(), vec![slice]);
        process.reconcile_by(api.job(), panics).await.unwrap();
        wait_over(&api);
        api.exit((0, 1), 0, clock::now());
        api.said();
        (api, process)
    };
    crash::survives(begin, &[], 8).await;
}

/// Passes until no more calls are made. The pass that makes this call panics at it.
async fn to_rest(api: &Apiserver, process: &Process, slice: &[Move], at: usize) {
    let (calls, now) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
    let (counted, panic_now) = (Arc::clone(&calls), Arc::clone(&now));
    api.script(move |_| {
        if counted.fetch_add(1, Ordering::Relaxed) == at {
            panic_now.notify_one();
        }
        Fate::Served
    });
    let mut shown = api.pods();
    for pass in 0..20 {
        let before = calls.load(Ordering::Relaxed);
        // Every other pass sees the pods that the one before saw.
        if pass % 2 == 0 {
            shown = api.pods();
        }
        process.plan(&api.job(), slice.to_vec());
        process.context.stores.show(shown.clone());
        let now = Arc::clone(&now);
        let struck = |watched, context| async move {
            tokio::select! {
                biased;
                () = now.notified() => panic!("on purpose"),
                result = driver_work(watched, context) => result,
            }
        };
        // Conflicts and the effects of a late watch are tried again.
        let _ = process.reconcile_by(api.job(), struck).await;
        if entry(api).is_some() {
            wait_over(api);
        }
        let killed = api.kill_deleted();
        if before == calls.load(Ordering::Relaxed) && !killed && pass % 2 == 0 {
            return;
        }
    }
    panic!("no rest: {:?}", api.said());
}

/// A panic at any call changes nothing about the outcome.
async fn survives_panics<F: Future<Output = (Apiserver, Process)>>(
    begin: impl Fn() -> F,
    slice: &[Move],
    calls_min: usize,
) {
    let outcome = |api: &Apiserver| {
        let mut outcome = crash::outcome(api);
        let is_other = |(type_, ..): &(String, String, String)| type_ != api::QUARANTINED;
        outcome.conditions.retain(is_other);
        outcome
    };
    let (api, process) = begin().await;
    to_rest(&api, &process, slice, usize::MAX).await;
    let (undisturbed, calls) = (outcome(&api), api.said().len());
    assert!(calls >= calls_min, "{calls} calls");
    for at in 0..calls {
        let (api, process) = begin().await;
        to_rest(&api, &process, slice, at).await;
        assert!(
            api.condition(api::QUARANTINED).is_some(),
            "no panic at {at}"
        );
        assert_eq!(outcome(&api), undisturbed, "{at}: {:?}", api.said());
    }
}

#[tokio::test]
async fn a_launch_survives_a_panic_at_every_call() {
    let begin = async || started("completions: 4");
    survives_panics(begin, &originals(4), 5).await;
}

#[tokio::test]
async fn a_win_survives_a_panic_at_every_call() {
    let begin = async || {
        let (api, process) = race().await;
        api.exit((0, 1), 0, clock::now());
        (api, process)
    };
    survives_panics(begin, &[], 6).await;
}

#[tokio::test]
async fn a_suspension_survives_a_panic_at_every_call() {
    let begin = async || {
        let (api, process) = two_running("").await;
        edit(&api, |job| job.spec.suspend = true);
        (api, process)
    };
    survives_panics(begin, &[], 6).await;
}

#[tokio::test]
async fn a_deadline_that_passes_in_quarantine_ends_the_job_afterwards() {
    let (api, process) = two_running("deadline: {within: 62s}").await;
    let slice = launch(0, AttemptKind::Clone);
    process.plan(&api.job(), vec![slice]);
    process.reconcile_by(api.job(), panics).await.unwrap();
    edit(&api, |job| {
        let created = clock::now().plus(Span::from_seconds(-70));
        job.metadata.creation_timestamp = Some(clock::time(created));
    });
    api.said();
    process.look(&api).await.unwrap();
    assert_eq!(api.said(), WAITS, "not before");
    wait_over(&api);
    for _ in 0..2 {
        process.look(&api).await.unwrap();
    }
    let failing = api.job().status.clone().unwrap().phase;
    assert_eq!(failing.as_deref(), Some("Failing"));
}
