//! The process dies, or a call fails, at every call of a conversation. In the end the state is the
//! same as without a fault. The apiserver checks the invariants at every write in between.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use shed_core::plan::Kill;

use super::*;
use crate::api::AttemptCounts;

/// More passes than any conversation needs. A conversation with more passes fails.
const PASSES_MAX: usize = 20;

/// How a call fails.
#[derive(Debug, Clone, Copy)]
struct Fault {
    /// Index of the call, from 0.
    at: usize,
    fate: Fate,
    /// The process dies of it. Its other requests in progress never reach the apiserver.
    fatal: bool,
}

/// Final state of a conversation, without times and revisions.
#[derive(Debug, PartialEq)]
pub(super) struct Outcome {
    counts: AttemptCounts,
    phase: Option<String>,
    done: String,
    pub(super) conditions: Vec<(String, String, String)>,
    /// Whether each pod is tracked, by name.
    pods: BTreeMap<String, bool>,
}

pub(super) fn outcome(api: &Apiserver) -> Outcome {
    let status = api.job().status.clone().unwrap();
    let mut conditions: Vec<_> = status
        .conditions
        .into_iter()
        .map(|condition| (condition.type_, condition.status, condition.reason))
        .collect();
    conditions.sort();
    let pods = api.pods().into_iter().map(|pod| {
        let finalizers = pod.metadata.finalizers.unwrap_or_default();
        (pod.metadata.name.unwrap(), !finalizers.is_empty())
    });
    Outcome {
        counts: status.attempts,
        phase: status.phase,
        done: status.completed_indexes,
        conditions,
        pods: pods.collect(),
    }
}

/// How far a conversation is.
#[derive(Default)]
struct Progress {
    calls: AtomicUsize,
    /// The process has died and is not replaced yet; its calls have no effect.
    is_dead: AtomicBool,
}

/// Lets the fault happen.
fn inject(api: &Apiserver, fault: Option<Fault>) -> Arc<Progress> {
    let progress = Arc::new(Progress::default());
    let seen = Arc::clone(&progress);
    api.script(move |_| {
        let call = seen.calls.fetch_add(1, Ordering::Relaxed);
        if seen.is_dead.load(Ordering::Relaxed) {
            return Fate::LostBefore;
        }
        match fault {
            Some(fault) if fault.at == call => {
                seen.is_dead.store(fault.fatal, Ordering::Relaxed);
                fault.fate
            }
            _ => Fate::Served,
        }
    });
    progress
}

/// Passes until no more calls are made; the process is replaced when it dies. The planner gives the
/// same slice again and again, as if it had not seen the result. The watches show in every other
/// pass the state of the pass before.
async fn to_rest(api: &Apiserver, mut process: Process, slice: &[Move], fault: Option<Fault>) {
    let progress = inject(api, fault);
    let calls = || progress.calls.load(Ordering::Relaxed);
    let mut quiet = 0;
    let mut shown = (api.job(), api.pods());
    for pass in 0..PASSES_MAX {
        let before = calls();
        let is_behind = pass % 2 == 1;
        if !is_behind {
            shown = (api.job(), api.pods());
        }
        process.plan(&shown.0, slice.to_vec());
        process.context.stores.show(shown.1.clone());
        process.ask(api);
        fence::all_ask(api, &process);
        let result = process.reconcile(Arc::clone(&shown.0)).await;
        fence::publish(api, &process);
        let after = calls();
        let struck = fault.is_some_and(|fault| (before..after).contains(&fault.at));
        let stale = is_behind && matches!(result, Err(Error::Conflict));
        if progress.is_dead.swap(false, Ordering::Relaxed) {
            process = Process::start(api);
            shown = (api.job(), api.pods());
        } else if !struck && !stale {
            result.unwrap();
        }
        let killed = api.kill_deleted();
        quiet = if before == after && !killed {
            quiet + 1
        } else {
            0
        };
        if quiet == 3 {
            return;
        }
    }
    panic!("no rest after {PASSES_MAX} passes: {:?}", api.said());
}

/// Runs a conversation without a fault, then with every fault at every call.
pub(super) async fn survives<F: Future<Output = (Apiserver, Process)>>(
    begin: impl Fn() -> F,
    slice: &[Move],
    calls_min: usize,
) {
    let (api, process) = begin().await;
    to_rest(&api, process, slice, None).await;
    let undisturbed = outcome(&api);
    let calls = api.said().len();
    assert!(calls >= calls_min, "{calls} calls");
    for at in 0..calls {
        for fate in [
            Fate::LostBefore,
            Fate::LostAfter,
            Fate::Refused(500, "InternalError", "etcd is away"),
        ] {
            for fatal in [true, false] {
                let fault = Fault { at, fate, fatal };
                let (api, process) = begin().await;
                to_rest(&api, process, slice, Some(fault)).await;
                assert_eq!(outcome(&api), undisturbed, "{fault:?}: {:?}", api.said());
            }
        }
    }
}

#[tokio::test]
async fn a_launch_survives_a_crash_at_every_call() {
    let begin = async || {
        let api = Apiserver::new(fixtures::job_of_age(0, ""));
        let process = Process::start(&api);
        (api, process)
    };
    survives(begin, &originals(4), 5).await;
}

#[tokio::test]
async fn a_win_survives_a_crash_at_every_call() {
    let begin = async || {
        let (api, process) = race().await;
        api.exit((0, 1), 0, clock::now());
        (api, process)
    };
    survives(begin, &[], 6).await;
}

#[tokio::test]
async fn a_publication_survives_a_crash_at_every_call() {
    survives(fence::race, &[], 6).await;
}

#[tokio::test]
async fn a_publisher_that_fails_is_followed_whoever_crashes_when() {
    let begin = async || {
        let (api, process) = fence::race().await;
        fence::all_ask(&api, &process);
        process.look(&api).await.unwrap();
        api.exit((0, 0), 1, clock::now());
        api.said();
        (api, process)
    };
    survives(begin, &[], 5).await;
}

#[tokio::test]
async fn a_stop_at_the_deadline_survives_a_crash_at_every_call() {
    survives(async || ends::overdue("").await, &[], 8).await;
}

#[tokio::test]
async fn a_failure_and_its_retry_survive_a_crash_at_every_call() {
    let begin = async || {
        let (api, process) = two_running("").await;
        api.exit((0, 0), 3, clock::now());
        (api, process)
    };
    survives(begin, &[launch(0, AttemptKind::Retry)], 3).await;
}

#[tokio::test]
async fn a_suspension_survives_a_crash_at_every_call() {
    let begin = async || {
        let (api, process) = two_running("").await;
        edit(&api, |job| job.spec.suspend = true);
        (api, process)
    };
    survives(begin, &[], 6).await;
}

#[tokio::test]
async fn a_prune_survives_a_crash_at_every_call() {
    let prune = Move::Kill(Kill {
        task: TaskIndex(0),
        attempt: AttemptNumber(1),
        kind: KillKind::Prune,
        survivor: Some(AttemptNumber(0)),
    });
    survives(async || race().await, &[prune], 5).await;
}

#[tokio::test]
async fn an_abandonment_and_its_retry_survive_a_crash_at_every_call() {
    let begin = async || {
        let (api, process) = two_running("").await;
        let minute = shed_core::time::Span::from_seconds(-60);
        api.delete((0, 0), clock::now().plus(minute));
        (api, process)
    };
    survives(begin, &[launch(0, AttemptKind::Retry)], 5).await;
}

#[tokio::test]
async fn a_refusal_survives_a_crash_at_every_call() {
    for at in 0..4 {
        let api = Apiserver::new(fixtures::job_of_age(0, ""));
        let mut calls = 0;
        api.script(move |call| {
            calls += 1;
            match call.words.starts_with("POST pod") {
                _ if calls == at + 1 => Fate::LostBefore,
                true => Fate::Refused(403, "Forbidden", "exceeded quota: small"),
                false => Fate::Served,
            }
        });
        let process = Process::start(&api);
        process.plan(&api.job(), originals(4));
        // The result depends on the call; only the next process's actions count.
        let _ = process.look(&api).await;
        let next = Process::start(&api);
        next.look(&api).await.unwrap();
        let status = api.job().status.clone().unwrap_or_default();
        assert_eq!(status.active, 0, "call {at}: {:?}", api.said());
        assert!(api.pods().is_empty());
    }
}
