use shed_core::snapshot::Conclusion;
use shed_core::time::{Instant, Span};

use super::*;
use crate::adopt::AdoptJobs;
use crate::api::{self, AttemptCounts, DeadlineJobStatus, Ledger};
use crate::cluster::Stores;
use crate::deadline_totals::StoredTotals;
use crate::fixtures;
use crate::reconcile::mock::{Apiserver, Process, originals};

/// The job as the watch keeps it once it has caught up.
fn kept(api: &Apiserver) -> WatchedJob {
    WatchedJob::new((*api.job()).clone(), 0)
}

/// The watches catch up, then the queue of reconciles reaches the job.
async fn visit(process: &Process, api: &Apiserver) -> Wake {
    process.context.stores.show(api.pods());
    let context = Arc::clone(&process.context);
    let work = |watched, context| driver::work(watched, context, None);
    let pass = reconcile_by(Arc::new(kept(api)), context, work);
    let wake = pass.await.unwrap();
    process.send_events().await;
    wake
}

fn is_remembered(process: &Process, api: &Apiserver) -> bool {
    let uid = api.job().metadata.uid.clone().unwrap();
    let is_there = std::cell::Cell::new(false);
    process.context.job_memories.retain(|known| {
        is_there.set(is_there.get() || known == uid);
        true
    });
    is_there.get()
}

/// A process that begins with these stored totals.
fn begun_with(api: &Apiserver, stored: StoredTotals) -> Process {
    let jobs = api.world.lock().job.iter().cloned().collect();
    let stores = Stores::for_tests(jobs, api.pods(), &[]);
    Process::with_totals(api, stores, stored)
}

/// A job of one task that has ended, and a new process that has listed it; its pod was not let go.
async fn ended(change: &str) -> (Apiserver, Process) {
    let change = format!("{{completions: 1, {change}}}");
    let api = Apiserver::new(fixtures::job_of_age(60, &change));
    let process = Process::start(&api);
    process.plan(&api.job(), originals(1));
    process.look(&api).await.unwrap();
    api.exit((0, 0), 0, clock::now());
    api.refuse("PATCH pod", 500, "InternalError", "not now");
    while kept(&api).live().is_some() {
        let _ = process.look(&api).await;
    }
    api.refuse("NONE", 500, "", "");
    api.said();
    let process = Process::start(&api);
    (api, process)
}

#[tokio::test]
async fn the_late_pod_of_a_finished_job_is_let_go_after_a_read() {
    let (api, process) = ended("").await;
    visit(&process, &api).await;
    // The second read is of its version, just before the write.
    assert_eq!(api.said(), ["GET job", "GET job", "PATCH pod 0-0"]);
    assert!(!is_remembered(&process, &api), "nothing of it is kept");
    visit(&process, &api).await;
    assert!(api.said().is_empty());
    assert!(process.context.stores.jobs.live().is_empty());
}

#[tokio::test]
async fn a_finished_job_is_deleted_at_the_end_of_its_time_to_live() {
    let (api, process) = ended("ttlSecondsAfterFinished: 60").await;
    visit(&process, &api).await;
    api.said();
    let wake = visit(&process, &api).await;
    assert_ne!(wake, Wake::await_change(), "it is looked at again");
    assert!(api.said().is_empty());
    process.context.clock.skip_for_tests(Span::from_seconds(61));
    let uid = api.job().metadata.uid.clone();
    visit(&process, &api).await;
    let deletion = api.call("DELETE job").body;
    assert_eq!(deletion["preconditions"]["uid"].as_str(), uid.as_deref());
    assert_eq!(api.said(), ["DELETE job"]);
}

/// The page of the next leader.
fn met(process: &Process) -> Option<String> {
    let page = process.context.metrics.page().unwrap();
    let line = page
        .lines()
        .find(|line| line.starts_with("shed_deadlines_met_total{"));
    line.and_then(|line| Some(line.rsplit(' ').next()?.to_owned()))
}

#[tokio::test]
async fn the_next_leader_shows_totals_that_no_scrape_has_seen() {
    // `ended` returns a process that never saw the job unfinished: the one before died after the write of its end.
    let (api, process) = ended("ttlSecondsAfterFinished: 60").await;
    assert_eq!(met(&process).as_deref(), Some("1"));
    // The job goes, and the totals are written.
    let totals = process.context.stores.jobs.totals();
    totals
        .lock()
        .gone(api.job().metadata.uid.as_deref().unwrap());
    let stored = totals.lock().to_store();
    api.world.lock().job = None;
    let next = begun_with(&api, stored);
    assert_eq!(met(&next).as_deref(), Some("1"));
    // A process that does not lead shows none.
    next.context.metrics.forget_jobs();
    assert_eq!(met(&next), None);
}

#[tokio::test]
async fn a_job_with_a_time_to_live_of_0_is_deleted_at_its_end() {
    let change = "{completions: 1, ttlSecondsAfterFinished: 0}";
    let api = Apiserver::new(fixtures::job_of_age(60, change));
    let process = Process::start(&api);
    process.plan(&api.job(), originals(1));
    process.look(&api).await.unwrap();
    api.exit((0, 0), 0, clock::now());
    while api.world.lock().job.is_some() {
        process.look(&api).await.unwrap();
    }
    let said = api.said();
    assert_eq!(said.iter().filter(|call| *call == "DELETE job").count(), 1);
}

#[tokio::test]
async fn a_job_that_ends_and_goes_unseen_by_the_watch_counts() {
    let change = "{completions: 1, ttlSecondsAfterFinished: 0}";
    let api = Apiserver::new(fixtures::job_of_age(60, change));
    let process = Process::start(&api);
    let uid = api.job().metadata.uid.clone().unwrap();
    process.plan(&api.job(), originals(1));
    process.look(&api).await.unwrap();
    api.exit((0, 0), 0, clock::now());
    while api.world.lock().job.is_some() {
        process.look(&api).await.unwrap();
    }
    // The list after the interruption lacks it.
    let totals = process.context.stores.jobs.totals();
    totals.lock().gone(&uid);
    let stored = totals.lock().to_store();
    assert_eq!(met(&begun_with(&api, stored)).as_deref(), Some("1"));
}

/// A suspended job with a complete status.
async fn suspended() -> (Apiserver, Process) {
    let api = Apiserver::new(fixtures::job_of_age(60, "suspend: true"));
    let process = Process::start(&api);
    process.look(&api).await.unwrap();
    assert!(kept(&api).live().is_some(), "its deadline is not weighed");
    let mut weighed = api.job().status.clone().unwrap().conditions[0].clone();
    api::DEADLINE_FEASIBLE.clone_into(&mut weighed.type_);
    weighed.status = "True".to_owned();
    let mut world = api.world.lock();
    let status = world.job.as_mut().and_then(|job| job.status.as_mut());
    status.unwrap().conditions.push(weighed);
    drop(world);
    api.said();
    let process = Process::start(&api);
    (api, process)
}

#[tokio::test]
async fn a_suspended_job_rests_until_it_is_resumed() {
    let (api, process) = suspended().await;
    assert!(process.context.stores.jobs.live().is_empty());
    let wake = visit(&process, &api).await;
    assert_ne!(wake, Wake::await_change(), "its deadline comes");
    assert!(api.said().is_empty());
    api.world.lock().job.as_mut().unwrap().spec.suspend = false;
    assert!(kept(&api).live().is_some());
    visit(&process, &api).await;
    let said = api.said();
    assert_eq!(said, ["PUT job status"], "reconciled as any other");
}

/// Jobs of other namespaces take the whole memory budget, whatever it is.
fn fill_memory(stores: &Stores) {
    for bit in (0..usize::BITS - 1).rev() {
        // Large jobs take a part only.
        for number in 0.. {
            let name = Some(format!("other-{bit}-{number}"));
            let other = ObjectMeta {
                namespace: name.clone(),
                uid: name,
                ..ObjectMeta::default()
            };
            if !stores.jobs.reserve(Kind::Deadline, &other, 1 << bit) {
                break;
            }
        }
    }
}

/// What shed does about a resumed job that the memory budget does not admit: at first, before the watch has shown that,
/// and after that.
async fn resumed_without_memory(change: impl FnOnce(&mut Ledger)) -> (Apiserver, [Vec<String>; 3]) {
    let (api, process) = suspended().await;
    fill_memory(&process.context.stores);
    {
        let mut world = api.world.lock();
        let job = world.job.as_mut().unwrap();
        job.spec.suspend = false;
        let status = job.status.as_mut().unwrap();
        change(
            status
                .ledger
                .as_mut()
                .expect("the ledger of a suspended job"),
        );
    }
    let visit = async |waiting: WatchedJob| {
        let work = |watched, context| driver::work(watched, context, None);
        let context = Arc::clone(&process.context);
        let wake = reconcile_by(Arc::new(waiting), context, work)
            .await
            .unwrap();
        assert_eq!(wake, Wake::requeue(MEMORY_WAIT));
        api.said()
    };
    let seen = WatchedJob::crowded(&api.job());
    let said = [visit(seen.clone()).await, visit(seen).await];
    let [first, unseen] = said;
    let shown = visit(WatchedJob::crowded(&api.job())).await;
    (api, [first, unseen, shown])
}

#[tokio::test]
async fn a_resumed_job_without_memory_reports_that_it_waits() {
    let is_reported = |api: &Apiserver| {
        let blocked = api.condition(api::ATTEMPTS_BLOCKED);
        blocked.is_some_and(|(_, reason)| reason == api::reason::OPERATOR_MEMORY)
    };
    let (api, said) = resumed_without_memory(|_| {}).await;
    assert_eq!(said, [vec!["PUT job status"], vec![], vec![]]);
    assert!(is_reported(&api));
    // Its status is too large to be kept until then.
    let grow = |ledger: &mut Ledger| ledger.ended_runs = vec![Span(1_000_000); 1000];
    let (api, said) = resumed_without_memory(grow).await;
    assert_eq!(said, [vec!["GET job", "PUT job status"], vec![], vec![]]);
    assert!(is_reported(&api));
    let ledger = api.job().status.clone().unwrap().ledger.unwrap();
    assert_eq!(ledger.ended_runs.len(), 1000);
    // A write would lose fields of a newer ledger.
    let (api, said) = resumed_without_memory(|ledger| ledger.form = u32::MAX).await;
    assert!(said.concat().is_empty() && !is_reported(&api));
}

#[tokio::test]
async fn a_suspended_job_fails_at_its_deadline() {
    let (api, process) = suspended().await;
    // The deadline is ten minutes after the creation, which was a minute ago.
    process
        .context
        .clock
        .skip_for_tests(Span::from_seconds(560));
    visit(&process, &api).await;
    let said = api.said();
    assert_eq!(said[..2], ["GET job", "LIST pods"]);
    for _ in 0..3 {
        visit(&process, &api).await;
    }
    let failed = api.condition(api::FAILED);
    assert_eq!(failed.unwrap().1, api::DEADLINE_MISSED);
}

#[tokio::test]
async fn a_specification_that_is_too_large_is_refused_and_not_kept() {
    let mut job = fixtures::job_of_age(60, "");
    let containers = job.spec.template.spec.as_mut().unwrap();
    containers.containers[0].args = Some(vec!["x".repeat(300 * 1024)]);
    let message = crate::validate::validate(&job).unwrap_err().to_string();
    let api = Apiserver::new(job);
    let process = Process::start(&api);
    assert!(process.context.stores.jobs.live().is_empty());
    visit(&process, &api).await;
    assert_eq!(api.said(), ["PUT job status", "POST event InvalidSpec"]);
    let status = api.job().status.clone().unwrap();
    assert!(
        status
            .conditions
            .iter()
            .all(|one| one.message.contains(&message))
    );
    assert!(!is_remembered(&process, &api));
    visit(&process, &api).await;
    assert!(api.said().is_empty(), "once is enough");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_waits_for_a_place_of_its_namespace() {
    let mut job = fixtures::job_of_age(60, "");
    let containers = job.spec.template.spec.as_mut().unwrap();
    containers.containers[0].args = Some(vec!["x".repeat(300 * 1024)]);
    let namespace: Arc<str> = job.metadata.namespace.as_deref().unwrap().into();
    let api = Apiserver::new(job);
    let process = Process::start(&api);
    let passes = &process.context.passes;
    let hung: Vec<_> = std::iter::from_fn(|| passes.try_acquire(&namespace)).collect();
    let visited = tokio::time::timeout(Duration::from_secs(60), visit(&process, &api)).await;
    assert!(visited.is_err() && api.said().is_empty());
    drop(hung);
    visit(&process, &api).await;
    assert_eq!(api.said(), ["PUT job status", "POST event InvalidSpec"]);
}

#[tokio::test]
async fn only_a_few_large_objects_are_read_at_a_time() {
    let mut job = fixtures::job_of_age(60, "");
    let containers = job.spec.template.spec.as_mut().unwrap();
    containers.containers[0].args = Some(vec!["x".repeat(300 * 1024)]);
    // What it has come to must stay in its status, which is read for that.
    job.status = Some(DeadlineJobStatus {
        ledger: Some(Ledger {
            first_pass: Some(Instant(1000)),
            ..Ledger::default()
        }),
        ..DeadlineJobStatus::default()
    });
    let api = Apiserver::new(job);
    let process = Process::start(&api);
    let stores = &process.context.stores;
    let places = std::iter::from_fn(|| stores.jobs.whole_place(&"team".into()));
    let places: Vec<_> = places.collect();
    assert_ne!(visit(&process, &api).await, Wake::await_change());
    assert!(api.said().is_empty(), "it waits for a place");
    assert!(stores.jobs.whole_place(&"another".into()).is_some());
    drop(places);
    visit(&process, &api).await;
    assert_eq!(api.said()[0], "GET job");
}

#[tokio::test]
async fn a_job_of_another_controller_is_left_alone() {
    let api = Apiserver::new(fixtures::job_of_age(60, "managedBy: example.com/other"));
    let process = Process::start(&api);
    assert_eq!(visit(&process, &api).await, Wake::await_change());
    assert!(api.said().is_empty());
}

#[tokio::test]
async fn the_status_of_an_adopted_job_is_written_after_a_crash() {
    let mut job = fixtures::batch_job("completions: 1, parallelism: 1");
    let mut companion = fixtures::companion(&job);
    let ended = Instant(9000);
    let ledger = Ledger {
        done: "0".parse().unwrap(),
        started: Some(Instant(1000)),
        last_win: Some(ended),
        ending: Some(Conclusion::Complete),
        ended: Some(ended),
        finished: true,
        first_pass: Some(Instant(1000)),
        ..Ledger::default()
    };
    let counts = AttemptCounts {
        originals: 1,
        won: 1,
        ..AttemptCounts::default()
    };
    companion.status = Some(DeadlineJobStatus {
        observed_generation: companion.metadata.generation,
        attempts: counts,
        ledger: Some(ledger.clone()),
        ..DeadlineJobStatus::default()
    });
    let api = Apiserver::new(companion.clone());
    let with = |job| {
        let stores = Stores::for_tests(vec![(*api.job()).clone()], vec![], &[]);
        Process::with_stores(&api, stores.adopting(AdoptJobs::Managed, vec![job]))
    };
    let process = with(job.clone());
    assert!(process.context.stores.jobs.live().is_empty());
    visit(&process, &api).await;
    let said = api.said();
    assert_eq!(said.first().map(String::as_str), Some("GET job"));
    assert_eq!(
        said.iter().filter(|call| *call == "PUT Job status").count(),
        1
    );
    let status = serde_json::json!({"conditions": [{"type": "Complete", "status": "True"}]});
    job.status = serde_json::from_value(status).unwrap();
    let process = with(job);
    visit(&process, &api).await;
    assert!(api.said().is_empty());
}

/// A suspended Job with a deadline, whose companion has reported both.
fn suspended_job() -> (Job, DeadlineJob) {
    let mut job = fixtures::batch_job("suspend: true");
    job.metadata.creation_timestamp = Some(clock::time(clock::now()));
    let annotations = [("shed.dev/deadline".to_owned(), "10m".to_owned())];
    job.metadata.annotations = Some(annotations.into());
    let mut companion = fixtures::companion(&job);
    let condition = |type_: &str| {
        serde_json::json!({"type": type_, "status": "True", "reason": "", "message": "",
            "lastTransitionTime": "1970-01-01T00:00:00Z"})
    };
    let deadline = clock::time(clock::now().plus(Span::from_seconds(600)));
    let conditions = ["Suspended", "DeadlineFeasible"].map(condition);
    let status = serde_json::json!({"conditions": conditions, "deadline": deadline});
    companion.status = serde_json::from_value(status).unwrap();
    let status = serde_json::json!({"conditions": [{"type": "Suspended", "status": "True"}]});
    job.status = serde_json::from_value(status).unwrap();
    (job, companion)
}

/// An apiserver with both, and a process that has listed them.
fn adopting(job: Job, companion: &DeadlineJob) -> (Apiserver, Process) {
    let api = Apiserver::new(companion.clone());
    api.world.lock().batch = Some(job.clone());
    let stores = Stores::for_tests(vec![companion.clone()], vec![], &[]);
    let stores = stores.adopting(AdoptJobs::Managed, vec![job]);
    let process = Process::with_stores(&api, stores);
    (api, process)
}

#[tokio::test]
async fn a_suspended_adopted_job_is_read_at_its_deadline_only() {
    let (job, companion) = suspended_job();
    let (api, process) = adopting(job, &companion);
    let is_whole = || {
        let jobs = process.context.stores.jobs.batch().unwrap();
        jobs.of(&companion).is_some()
    };
    let wake = visit(&process, &api).await;
    assert_ne!(wake, Wake::await_change(), "its deadline comes");
    assert!(api.said().is_empty() && !is_whole());
    assert!(process.context.stores.jobs.live().is_empty());
    let clock = &process.context.clock;
    clock.skip_for_tests(Span::from_seconds(601));
    visit(&process, &api).await;
    let said = api.said();
    assert_eq!(said[..2], ["GET Job", "GET job"], "{said:?}");
    assert!(said.contains(&"PUT job status".to_owned()), "{said:?}");
    assert!(!is_whole(), "it is not kept");
}

#[tokio::test]
async fn a_job_in_a_queue_gets_a_class_by_its_deadline() {
    let (mut job, mut companion) = suspended_job();
    let queue = ("kueue.x-k8s.io/queue-name".to_owned(), "team".to_owned());
    job.metadata.labels.get_or_insert_default().extend([queue]);
    let deadline = clock::now().plus(Span::from_seconds(1200));
    companion.status.as_mut().unwrap().deadline = Some(clock::time(deadline));
    let (api, process) = adopting(job.clone(), &companion);
    visit(&process, &api).await;
    assert!(api.said().is_empty(), "it is off by default");
    let (api, mut process) = adopting(job, &companion);
    Arc::get_mut(&mut process.context).unwrap().slack_classes = true;
    let class = || {
        let job = api.world.lock().batch.clone().unwrap();
        job.metadata.labels.unwrap()["kueue.x-k8s.io/priority-class"].clone()
    };
    visit(&process, &api).await;
    assert_eq!(api.said(), ["GET Job", "PATCH Job"]);
    assert_eq!(class(), "shed-slack-1");
    visit(&process, &api).await;
    assert_eq!(api.said(), ["GET Job"]);
    process
        .context
        .clock
        .skip_for_tests(Span::from_seconds(301));
    visit(&process, &api).await;
    assert_eq!(class(), "shed-slack-0");
}

#[tokio::test]
async fn the_companion_of_a_resumed_job_is_read_and_kept() {
    let (mut job, companion) = suspended_job();
    // A queue admits the Job.
    job.spec.as_mut().unwrap().suspend = Some(false);
    let (api, process) = adopting(job, &companion);
    assert!(kept(&api).live().is_none(), "it rests until then");
    visit(&process, &api).await;
    let said = api.said();
    assert_eq!(said[..2], ["GET job", "PUT job status"], "{said:?}");
    let suspended = api.condition(api::SUSPENDED);
    assert_eq!(suspended.unwrap().0, "False");
    assert!(kept(&api).live().is_some());
}

#[tokio::test]
async fn a_companion_that_lost_its_suspended_job_is_deleted() {
    let (job, mut companion) = suspended_job();
    companion.metadata.owner_references = None;
    let (api, process) = adopting(job, &companion);
    visit(&process, &api).await;
    let said = api.said();
    assert!(said.iter().any(|call| call == "DELETE job"), "{said:?}");
}

#[tokio::test]
async fn a_job_with_released_pods_is_not_read_while_the_watch_lags() {
    let change = "{completions: 1}";
    let api = Apiserver::new(fixtures::job_of_age(60, change));
    let process = Process::start(&api);
    process.plan(&api.job(), originals(1));
    process.look(&api).await.unwrap();
    api.exit((0, 0), 0, clock::now());
    let before = api.pods();
    while kept(&api).live().is_some() {
        let _ = process.look(&api).await;
    }
    let said = api.said();
    assert!(said.contains(&"PATCH pod 0-0".to_owned()), "{said:?}");

    // The watch shows the end of the job, and not yet that its pod was let go.
    process.context.stores.show(before);
    let context = Arc::clone(&process.context);
    let work = |watched, context| driver::work(watched, context, None);
    let pass = reconcile_by(Arc::new(kept(&api)), context, work);
    assert_ne!(pass.await.unwrap(), Wake::await_change(), "it looks again");
    assert!(api.said().is_empty());

    visit(&process, &api).await;
    assert!(api.said().is_empty());
    assert!(!is_remembered(&process, &api), "nothing of it is kept");
}
