use shed_core::fixtures::{attempt, job, world};
use shed_core::ids::{JobKey, TaskIndex};
use shed_core::plan::{Launch, LaunchReason, PlannedAction};
use shed_core::time::Span;
use tokio::time::{sleep, timeout};

use super::*;
use crate::api::DeadlineJob;
use crate::context::Backoff;
use crate::controller::mock::{Apiserver, Process};
use crate::controller::status::Blocked;
use crate::fixtures;
use crate::stores::Stores;

/// Longer than the planner needs for a pass or two.
const A_WHILE: Duration = Duration::from_millis(400);

fn policy() -> Policy {
    Policy {
        surge_max: 0,
        ..Policy::default()
    }
}

/// A job whose attempts ask for one core each, on a cluster of two.
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

/// What a pass plans for the cluster.
fn planned(process: &Process) -> usize {
    let view = observe::view(&process.context);
    let (plan, _) = decide(&view.snapshot, Memory::default(), &policy());
    plan.actions.len()
}

#[tokio::test(start_paused = true)]
async fn the_next_plan_waits_until_the_slice_is_carried_out_and_reads_what_that_wrote() {
    let (api, process) = cluster(|_| {});
    let (touched, mut jobs) = mpsc::unbounded_channel();
    let planner = tokio::spawn(run(Arc::clone(&process.context), policy(), touched));
    let first = timeout(A_WHILE, jobs.recv()).await.expect("a slice");
    assert_eq!(first.unwrap().name, "count");
    process.context.stores.changed.notify_one();
    sleep(A_WHILE).await;
    assert!(jobs.try_recv().is_err(), "the slice is not carried out yet");
    // The watch never shows the write nor the pods: room would be given away twice.
    process.reconcile(api.job()).await.unwrap();
    let said = api.said();
    assert_eq!(said, ["PUT job status", "POST pod 0-0", "POST pod 1-0"]);
    process.context.stores.changed.notify_one();
    sleep(A_WHILE).await;
    assert!(jobs.try_recv().is_err(), "there is no room left");
    planner.abort();
}

#[tokio::test(start_paused = true)]
async fn a_published_slice_is_taken_once_and_its_job_is_touched() {
    let (api, process) = cluster(|_| {});
    let context = &process.context;
    let view = observe::view(context);
    let (plan, _) = decide_safely(context, &view.snapshot, Memory::default(), &policy());
    let (touched, mut jobs) = mpsc::unbounded_channel();
    publish(context, &view, plan, &touched);
    assert_eq!(jobs.try_recv().unwrap().name, "count");
    let uid: JobUid = api.job().metadata.uid.as_deref().unwrap().into();
    assert_eq!(context.board.take(&uid).len(), 2);
    assert!(context.board.take(&uid).is_empty());
    assert!(!process.is_drained().await, "it is under way");
    context.board.finish(&uid);
    assert!(process.is_drained().await);
}

#[tokio::test]
async fn a_job_that_the_apiserver_refused_is_planned_again_when_its_wait_is_over() {
    let (api, process) = cluster(|_| {});
    let uid: JobUid = api.job().metadata.uid.as_deref().unwrap().into();
    let wait = |seconds| {
        let blocked = Blocked {
            reason: "QuotaExceeded",
            message: String::new(),
        };
        process.context.memos.with(&uid, |memo| {
            memo.backoff = Some(Backoff {
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
        assert!(observe::view(&process.context).snapshot.jobs.is_empty());
    }
}

fn launch(job: &str, task: u32, kind: AttemptKind) -> PlannedAction {
    PlannedAction {
        job: JobKey::from(job),
        action: Action::Launch(Launch {
            task: TaskIndex(task),
            kind,
            resume: None,
            avoid: vec![],
            surge: false,
            reason: LaunchReason::Admitted,
        }),
    }
}

/// What is left of these actions for jobs `a` and `b`, whose tasks 0 are running, and how often
/// a launch of the wrong kind was counted.
fn kept(actions: Vec<PlannedAction>) -> (Vec<PlannedAction>, u64) {
    let job = |key| job(key).task(0, [attempt(0).on(0)]);
    let snapshot = world(30.0, 2, 8000).job(job("a")).job(job("b")).build();
    let plan = Plan {
        actions,
        ..Plan::default()
    };
    let metrics = Metrics::new();
    let plan = keep_sound_slices(&metrics, &snapshot, &policy(), plan);
    let reason = "launch_kind";
    let counted = metrics.plan_refused.get_or_create(&Why { reason }).get();
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
fn a_slice_with_an_unsound_first_attempt_is_refused_and_other_jobs_go_on() {
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
