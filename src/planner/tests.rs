use std::collections::BTreeMap;

use shed_core::decide::decide;
use shed_core::fixtures::{JobBuilder, attempt, job, world};
use shed_core::guard::policies;
use shed_core::ids::JobKey;
use shed_core::plan::PlannedMove;
use shed_core::policy::{Policy, Speculation};
use shed_core::time::{Instant, Span};
use shed_record::schema::recorded_plan;
use shed_record::{Fault, Item, Reader, Recorder, Replayer};
use tokio::time::{sleep, timeout};

use super::pass_interval::PASS_PERIOD_MAX;
use super::*;
use crate::api::DeadlineJob;
use crate::clock;
use crate::cluster::Stores;
use crate::context::backoff::{Backoff, Blocked};
use crate::fixtures;
use crate::reconcile::mock::{Apiserver, Process};

mod copies;
mod creations;
mod experience;
mod placement;
mod scale;
mod stages;
mod stories;

/// Longer than the planner needs for a pass or two.
const A_WHILE: Duration = Duration::from_millis(400);

fn policy() -> Policy {
    Policy {
        surge_max: 0,
        speculation: Speculation::new(shed_papers::ShedPlus::default()),
        ..Policy::default()
    }
}

/// A job whose attempts request one core each, on a cluster of two.
fn cluster(change: impl FnOnce(&mut DeadlineJob)) -> (Apiserver, Process) {
    let mut job = fixtures::job_of_age(
        0,
        "template: {spec: {containers: [{name: task, image: i, resources: {requests: {cpu: '1'}}}]}}",
    );
    change(&mut job);
    let api = Apiserver::new(job.clone());
    let stores = Stores::for_tests(vec![job], vec![], &[fixtures::node("node-1", 2)]);
    let process = Process::with_stores(&api, stores);
    (api, process)
}

/// The number of moves that a pass plans for the cluster.
fn planned(process: &Process) -> usize {
    let view = observation::view(&process.context.shared);
    let (plan, _) = decide(&view.snapshot, Memory::default(), &policy());
    plan.actions.len()
}

#[tokio::test(start_paused = true)]
async fn the_next_plan_waits_until_the_slice_is_carried_out() {
    let (api, process) = cluster(|_| {});
    let (touched, mut jobs) = mpsc::unbounded_channel();
    let planner = tokio::spawn(run(Arc::clone(&process.context.shared), policy(), touched));
    let first = timeout(A_WHILE, jobs.recv()).await.expect("a slice");
    assert_eq!(first.unwrap().name, "count");
    let planning = &process.context.metrics.planning;
    assert_eq!(planning.pass_seconds.get_sample_count(), 1);
    assert_eq!(planning.decide_seconds.get_sample_count(), 1);
    process.context.stores.changed.notify_one();
    sleep(A_WHILE).await;
    assert!(jobs.try_recv().is_err(), "the slice is not carried out yet");
    // The watch never shows the write or the pods. A planner that relied on the watch would use the
    // capacity twice.
    process.reconcile(api.job()).await.unwrap();
    let said = api.said();
    assert_eq!(said, ["PUT job status", "POST pod 0-0", "POST pod 1-0"]);
    process.context.stores.changed.notify_one();
    sleep(A_WHILE).await;
    assert!(jobs.try_recv().is_err(), "the channel is full");
    planner.abort();
}

#[tokio::test(start_paused = true)]
async fn deadline_feasibility_is_reported_with_the_first_write() {
    let (api, process) = cluster(|_| {});
    let (touched, mut jobs) = mpsc::unbounded_channel();
    let planner = tokio::spawn(run(Arc::clone(&process.context.shared), policy(), touched));
    timeout(A_WHILE, jobs.recv()).await.expect("a slice");
    process.reconcile(api.job()).await.unwrap();
    let status = api.job().status.clone().unwrap_or_default();
    let mut conditions = status.conditions.iter();
    let reported = conditions.find(|one| one.type_ == crate::api::DEADLINE_FEASIBLE);
    let reported = reported.expect("condition");
    assert_eq!(
        (&*reported.status, &*reported.reason),
        ("Unknown", "DurationsUnknown")
    );
    assert_eq!(reported.observed_generation, Some(1));
    // It was weighed just now.
    let view = observation::view(&process.context.shared);
    assert!(!view.snapshot.jobs[0].asks_feasibility);
    planner.abort();
}

#[tokio::test(start_paused = true)]
async fn what_the_attempts_of_a_job_that_is_gone_hold_is_not_free() {
    let (_api, process) = cluster(|_| {});
    assert_eq!(planned(&process), 2);
    let mut gone = fixtures::job("");
    gone.metadata.uid = Some("gone".to_owned());
    let pod = |phase: &str| fixtures::attempt_pod(&gone, (0, 0), "node-1", phase);
    process.context.stores.show(vec![pod("Running")]);
    assert_eq!(planned(&process), 1);
    process.context.stores.show(vec![pod("Failed")]);
    assert_eq!(planned(&process), 2);
}

#[tokio::test(start_paused = true)]
async fn a_published_slice_is_taken_once_and_its_job_is_touched() {
    let (api, process) = cluster(|_| {});
    let context = &process.context.shared;
    let view = observation::view(context);
    let plan = guarded(&view.snapshot, &policy()).plan;
    let (touched, mut jobs) = mpsc::unbounded_channel();
    publish(context, &view, plan, &[true], &touched);
    assert_eq!(jobs.try_recv().unwrap().name, "count");
    let uid: JobUid = api.job().metadata.uid.as_deref().unwrap().into();
    assert_eq!(context.plan_slices.take(&uid).len(), 2);
    assert!(context.plan_slices.take(&uid).is_empty());
    assert!(!process.is_drained().await, "it is under way");
    context.plan_slices.finish(&uid);
    assert!(process.is_drained().await);
}

#[tokio::test(start_paused = true)]
async fn what_is_recorded_is_decided_again_alike() {
    let folder = std::env::temp_dir().join(format!("shed-planner-{}", std::process::id()));
    let (api, mut process) = cluster(|_| {});
    let on_fault = |fault: Fault| panic!("{fault:?}");
    let recorder = Recorder::start(&folder, 1 << 20, &policy(), Instant(0), on_fault).unwrap();
    let reconcilers = Arc::get_mut(&mut process.context).unwrap();
    let shared = Arc::get_mut(&mut reconcilers.shared).unwrap();
    shared.recording = Some(recorder.into());
    let (touched, mut jobs) = mpsc::unbounded_channel();
    let planner = tokio::spawn(run(Arc::clone(&process.context.shared), policy(), touched));
    timeout(A_WHILE, jobs.recv()).await.expect("a slice");
    process.reconcile(api.job()).await.unwrap();
    sleep(PASS_PERIOD_MAX * 3).await;
    planner.abort();
    // A second term of the same process has another memory.
    let (touched, _jobs) = mpsc::unbounded_channel();
    let planner = tokio::spawn(run(Arc::clone(&process.context.shared), policy(), touched));
    sleep(PASS_PERIOD_MAX * 3).await;
    planner.abort();
    process.context.recording.as_ref().unwrap().finish();
    let mut reader = Reader::open(&folder)
        .unwrap()
        .knowing(shed_papers::registry());
    let (mut replayer, mut launches, mut passes, mut named) = (None, 0, 0, BTreeMap::new());
    let mut incremental = 0;
    while let Some(item) = reader.next_item().unwrap() {
        match item {
            Item::File(header, recorded) => {
                assert_eq!(*recorded, policy());
                replayer = Some(Replayer::new(header.memory));
            }
            Item::Pass {
                changed,
                decided,
                plan,
                names,
                ..
            } => {
                let replayer: &mut Replayer = replayer.as_mut().expect("a header");
                let changed = changed.as_deref();
                let again = replayer.pass(reader.snapshot(), &policy(), changed, decided);
                assert_eq!(*plan, recorded_plan(again));
                incremental += u32::from(changed.is_some());
                launches += plan.actions.len();
                passes += 1;
                named.extend(names);
            }
            Item::Gap(gap) => {
                assert_eq!(gap.passes, 0);
                replayer.as_mut().expect("a header").skip(*gap);
            }
            other => panic!("{other:?}"),
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(passes >= 3, "{passes}");
    assert_eq!(
        incremental,
        passes - 2,
        "the first of a term looks at every job"
    );
    assert_eq!(launches, 2);
    let names: Vec<&str> = named.values().map(String::as_str).collect();
    assert_eq!(names, ["team/count"]);
}

#[tokio::test]
async fn a_refused_job_is_planned_again_when_its_wait_is_over() {
    let (api, process) = cluster(|_| {});
    let uid: JobUid = api.job().metadata.uid.as_deref().unwrap().into();
    let wait = |seconds| {
        let blocked = Blocked {
            reason: "QuotaExceeded",
            message: String::new(),
        };
        process.context.job_memories.with(&uid, |memory| {
            memory.planned.backoff = Some(Backoff {
                blocked,
                count: 1,
                until: clock::now().plus(Span::from_seconds(seconds)),
            });
        });
    };
    wait(5);
    assert_eq!(planned(&process), 0);
    wait(-1);
    assert_eq!(planned(&process), 2);
}

#[tokio::test]
async fn jobs_that_are_going_or_cannot_be_carried_out_are_not_planned() {
    let changes: [fn(&mut DeadlineJob); 3] = [
        |job| job.metadata.deletion_timestamp = Some(clock::time(clock::now())),
        |job| job.spec.completions = 0,
        |job| {
            let mut status = crate::api::DeadlineJobStatus::default();
            status.ledger.get_or_insert_default().finished = true;
            job.status = Some(status);
        },
    ];
    for change in changes {
        let (_api, process) = cluster(change);
        assert!(
            observation::view(&process.context.shared)
                .snapshot
                .jobs
                .is_empty()
        );
    }
}

fn launch(job: &str, task: u32, kind: AttemptKind) -> PlannedMove {
    PlannedMove {
        job: JobKey::from(job),
        action: Move::Launch(shed_core::fixtures::launch(task, kind)),
    }
}

/// The actions for jobs `a` and `b` that pass the check, and the count of launches of the wrong
/// kind. Tasks 0 of both jobs are running.
fn kept(actions: Vec<PlannedMove>) -> (Vec<PlannedMove>, u64) {
    let job = |key| job(key).task(0, [attempt(0).on(0)]);
    let snapshot = world(30.0, 2, 8000).job(job("a")).job(job("b")).build();
    let plan = Plan {
        actions,
        ..Plan::default()
    };
    let metrics = Metrics::new().unwrap();
    let plan = keep_sound_slices(&metrics, &snapshot, &policy(), plan);
    let reason = "launch_kind";
    let counted = metrics.planning.refused.with([reason]).get();
    (plan.actions, counted)
}

#[test]
fn a_slice_with_an_unsound_clone_keeps_its_first_attempts() {
    let sound = launch("a", 1, AttemptKind::Original);
    let first = launch("b", 1, AttemptKind::Original);
    let without_sibling = launch("b", 2, AttemptKind::Clone);
    let actions = vec![sound.clone(), first.clone(), without_sibling];
    assert_eq!(kept(actions), (vec![sound, first], 1));
}

#[test]
fn a_slice_with_an_unsound_first_attempt_is_refused() {
    let sound = launch("a", 1, AttemptKind::Original);
    let alive = launch("b", 0, AttemptKind::Original);
    let actions = vec![sound.clone(), alive];
    assert_eq!(kept(actions), (vec![sound], 1));
}

#[test]
fn a_sound_plan_passes_unchanged() {
    let actions = vec![
        launch("a", 1, AttemptKind::Original),
        launch("b", 0, AttemptKind::Clone),
    ];
    assert_eq!(kept(actions.clone()), (actions, 0));
}

/// At 30 s task 2 of three is late by far.
fn straggling(key: &str) -> JobBuilder {
    let regular = |node| attempt(0).on(node).progress(0.4, 29.0);
    job(key)
        .tasks(4)
        .deadline_in(160.0)
        .task(0, [regular(0)])
        .task(1, [regular(1)])
        .task(2, [attempt(0).on(0).progress(0.1, 29.0)])
}

fn launched(plan: &Plan) -> Vec<String> {
    let launches = plan
        .actions
        .iter()
        .filter_map(|planned| match &planned.action {
            Move::Launch(launch) => {
                let kind = launch.kind.label();
                Some(format!("{}: {kind} {}", planned.job, launch.task))
            }
            _ => None,
        });
    let mut launches: Vec<String> = launches.collect();
    launches.dedup();
    launches
}

/// A pass on these facts alone.
fn guarded<'a>(snapshot: &'a Snapshot, policy: &Policy) -> Passed<'a> {
    let mut planner = GuardedPlanner::default();
    planner.decide(snapshot, &mut Memory::default(), policy, Changed::All)
}

#[test]
fn a_policy_that_panics_is_counted_and_leaves_first_attempts() {
    let snapshot = world(30.0, 2, 8000).job(straggling("a")).build();
    let plain = &policies(&policy())[1];
    assert_eq!(plain.speculation, Speculation::none());
    let decided = Passed {
        panics: 1,
        ..guarded(&snapshot, plain)
    };
    let metrics = Metrics::new().unwrap();
    announce(&metrics, &decided, &mut RefusedJobs::default());
    assert_eq!(metrics.planning.panics.get(), 1);
    let plan = keep_sound_slices(&metrics, &decided.snapshot, &policy(), decided.plan);
    assert_eq!(launched(&plan), ["a: original 3"]);
}

#[test]
fn a_job_with_wrong_facts_is_counted_once_and_gets_no_clones() {
    let wrong = straggling("a").with(|job| job.tasks[0].attempts[0].start_progress = f64::NAN);
    let snapshot = world(30.0, 2, 16000)
        .job(wrong)
        .job(straggling("b"))
        .build();
    let (metrics, mut refused) = (Metrics::new().unwrap(), RefusedJobs::default());
    for _ in 0..2 {
        let decided = guarded(&snapshot, &policy());
        announce(&metrics, &decided, &mut refused);
        let plan = keep_sound_slices(&metrics, &decided.snapshot, &policy(), decided.plan);
        let expected = ["a: original 3", "b: original 3", "b: clone 2"];
        assert_eq!(launched(&plan), expected);
    }
    assert_eq!(metrics.planning.jobs_rejected.get(), 1);
}

#[test]
fn a_pass_cut_short_is_counted_and_keeps_its_first_attempts() {
    let snapshot = world(30.0, 2, 8000).job(straggling("a")).build();
    let short = Policy {
        work_max: 2,
        ..policy()
    };
    let decided = guarded(&snapshot, &short);
    let metrics = Metrics::new().unwrap();
    announce(&metrics, &decided, &mut RefusedJobs::default());
    assert_eq!(metrics.planning.jobs_cut_short.get(), 1);
    assert_eq!(launched(&decided.plan), ["a: original 3"]);
}

#[tokio::test(start_paused = true)]
async fn the_calibrated_pocd_follows_earlier_jobs() {
    let (_api, process) = cluster(|_| {});
    let context = &process.context.shared;
    let mut view = observation::view(context);
    let job = &mut view.snapshot.jobs[0];
    job.deadline = Some(view.snapshot.now.plus(Span::from_seconds(100)));
    let uid = Arc::clone(&job.key.0);
    let mut report = decide(&view.snapshot, Memory::default(), &policy())
        .0
        .report;
    report.jobs[0].pocd_after = Some(0.5);
    report.jobs[0].pocd_expected = Some(0.5);
    for number in 0..30 {
        let uid: Arc<str> = format!("earlier-{number}").into();
        let earlier = JobSnapshot {
            key: JobKey(Arc::clone(&uid)),
            ..view.snapshot.jobs[0].clone()
        };
        context.forecasts.say(&earlier, view.snapshot.now, 0.5, 0.5);
        context.forecasts.learn(&uid, true);
    }
    export(context, &view, &report, &[true]);
    let shown = |process: &Process| {
        let page = process.context.metrics.page().unwrap();
        let mut lines = page.lines();
        let line = lines.find(|line| line.starts_with("shed_job_pocd_calibrated{"));
        line.map(|line| line.rsplit_once(' ').unwrap().1.parse::<f64>().unwrap())
    };
    assert!(shown(&process).is_some_and(|forecast| forecast > 0.95));
    // After its deadline it cannot succeed, whatever earlier jobs did.
    view.snapshot.now = view.snapshot.now.plus(Span::from_seconds(200));
    export(context, &view, &report, &[true]);
    assert_eq!(shown(&process), Some(0.0));
    context.forecasts.retain(|job| *job == *uid);
}

#[tokio::test(start_paused = true)]
async fn an_unrecorded_slice_counts_and_its_job_gets_no_other() {
    let (api, process) = cluster(|_| {});
    let context = &process.context.shared;
    process.plan(&api.job(), crate::reconcile::mock::originals(1));
    let _under_way = context.plan_slices.take(&uid(&api));
    assert_eq!(planned(&process), 1, "of two slots one is given");
    let view = observation::view(context);
    assert!(view.held.contains(&uid(&api)));
    assert_eq!(view.snapshot.jobs[0].tasks.len(), 1);
    let (touched, _jobs) = mpsc::unbounded_channel();
    let planner = tokio::spawn(run(Arc::clone(context), policy(), touched));
    sleep(A_WHILE * 5).await;
    let held = context
        .plan_slices
        .held(Span(i64::MAX), context.clock.ticks());
    assert_eq!(held[&uid(&api)].len(), 1, "the one that is under way");
    // It was given up: both slots are free.
    context.plan_slices.finish(&uid(&api));
    context.stores.changed.notify_one();
    sleep(A_WHILE).await;
    assert_eq!(context.plan_slices.take(&uid(&api)).len(), 2);
    planner.abort();
}

fn uid(api: &Apiserver) -> JobUid {
    api.job().metadata.uid.as_deref().unwrap().into()
}
