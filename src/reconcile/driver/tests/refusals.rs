//! The apiserver refuses a pod, or the ledger is a newer operator's.

use k8s_openapi::api::core::v1::Pod;

use super::*;
use crate::cluster::Stores;
use crate::context::pod_creation::{Count, Limits};

pub(super) const QUOTA: &str = "pods \"p\" is forbidden: exceeded quota: small";

/// One pass over four planned first attempts; each creation gets this answer.
pub(super) async fn refused(
    code: u16,
    reason: &'static str,
    message: &'static str,
) -> (Apiserver, Process) {
    let api = Apiserver::new(fixtures::job_of_age(0, ""));
    let process = Process::start(&api);
    api.refuse("POST pod", code, reason, message);
    process.plan(&api.job(), originals(4));
    process.look(&api).await.unwrap();
    (api, process)
}

pub(super) fn true_for(reason: &str) -> Option<(String, String)> {
    Some(("True".to_owned(), reason.to_owned()))
}

#[tokio::test]
async fn a_quota_costs_one_create_and_withdraws_untried_attempts() {
    let (api, process) = refused(403, "Forbidden", QUOTA).await;
    assert_eq!(
        api.said(),
        [
            "PUT job status",
            "POST pod 0-0",
            "PUT job status",
            "POST event QuotaExceeded"
        ]
    );
    let status = api.job().status.clone().unwrap();
    let counts = status.attempts;
    // Three of them were never requested.
    assert_eq!((counts.refused, counts.originals, status.active), (1, 1, 0));
    assert_eq!(
        api.condition(api::ATTEMPTS_BLOCKED),
        true_for("QuotaExceeded")
    );
    let wait = wait(&process, &api);
    assert!((8.0..=10.0).contains(&wait), "{wait}");
    assert!(process.is_drained().await);
}

/// Limits on launches while no pod of the job exists.
pub(super) fn limits(process: &Process, api: &Apiserver) -> Limits {
    let creations = process.planned(&api.job()).creations;
    creations.limits(Count::default(), clock::now())
}

/// Seconds until more is tried.
pub(super) fn wait(process: &Process, api: &Apiserver) -> f64 {
    let limits = limits(process, api);
    let until = limits.until.max(limits.not_before).expect("a wait");
    until.since(clock::now()).seconds()
}

#[tokio::test]
async fn the_wait_doubles_while_the_quota_lasts() {
    let (api, process) = refused(403, "Forbidden", QUOTA).await;
    api.said();
    process.plan(&api.job(), originals(4));
    process.look(&api).await.unwrap();
    assert_eq!(
        api.said(),
        ["PUT job status", "POST pod 0-1", "PUT job status"]
    );
    assert!(wait(&process, &api) > 18.0);
    let counts = api.job().status.as_ref().unwrap().attempts;
    assert_eq!((counts.refused, counts.originals), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn a_pass_does_not_wait_forever_to_record_a_refusal() {
    let (api, process) = refused(403, "Forbidden", QUOTA).await;
    api.said();
    let context = Arc::clone(&process.context);
    // All jobs have written far too much when the second refusal comes, and no time passes.
    let uid: Arc<str> = api.job().metadata.uid.as_deref().unwrap().into();
    api.script(move |call| match call.words.starts_with("POST pod") {
        true => {
            let ticks = context.clock.ticks();
            let last_write = Some(context.ledger_rate.note(usize::MAX, ticks));
            let job_memories = &context.job_memories;
            job_memories.with(&uid, |memory| memory.reconcile.last_write = last_write);
            Fate::Refused(403, "Forbidden", QUOTA)
        }
        false => Fate::Served,
    });
    process.plan(&api.job(), originals(4));
    process.look(&api).await.unwrap();
    assert_eq!(api.said(), ["PUT job status", "POST pod 0-1"]);
    let recorded = &api.job().status.clone().unwrap().ledger.unwrap();
    assert_eq!(recorded.open_attempts().count(), 4, "tried again later");
}

#[tokio::test]
async fn attempts_start_after_the_quota_is_lifted() {
    let (api, process) = refused(403, "Forbidden", QUOTA).await;
    api.script(|_| Fate::Served);
    process.plan(&api.job(), originals(1));
    process.look(&api).await.unwrap();
    api.run((0, 1));
    process.look(&api).await.unwrap();
    assert_eq!(
        limits(&process, &api).attempts_max,
        Some(3),
        "two more than there is"
    );
    let condition = api.condition(api::ATTEMPTS_BLOCKED).unwrap();
    assert_eq!(condition.0, "False");
}

#[tokio::test]
async fn each_refusal_has_its_reason() {
    for (code, reason, message, expected) in [
        (
            403,
            "Forbidden",
            "violates PodSecurity \"restricted\"",
            "PodForbidden",
        ),
        (
            422,
            "Invalid",
            "spec.containers[0].image: Required",
            "PodInvalid",
        ),
        (
            400,
            "BadRequest",
            "admission webhook denied the request",
            "PodInvalid",
        ),
    ] {
        let (api, _process) = refused(code, reason, message).await;
        assert_eq!(api.condition(api::ATTEMPTS_BLOCKED), true_for(expected));
        assert_eq!(api.job().status.as_ref().unwrap().attempts.refused, 1);
    }
}

#[tokio::test]
async fn creations_go_out_in_batches_that_double_until_one_fails() {
    let api = Apiserver::new(fixtures::job_of_age(0, "completions: 12"));
    let process = Process::start(&api);
    api.refuse("POST pod 2-0", 403, "Forbidden", QUOTA);
    process.plan(&api.job(), originals(12));
    process.look(&api).await.unwrap();
    let posts = api
        .said()
        .iter()
        .filter(|words| words.starts_with("POST pod"))
        .count();
    assert_eq!(posts, 3, "one, then two, of which one is refused");
    let status = api.job().status.clone().unwrap();
    assert_eq!((status.attempts.refused, status.active), (1, 2));
    assert_eq!(status.attempts.originals, 3);
}

#[tokio::test]
async fn a_transient_create_failure_keeps_the_record() {
    let api = Apiserver::new(fixtures::job_of_age(0, "completions: 2"));
    let process = Process::start(&api);
    api.refuse("POST pod", 500, "InternalError", "etcd is away");
    process.plan(&api.job(), originals(2));
    let error = process.look(&api).await.unwrap_err();
    assert!(matches!(error, Error::Create(_)), "{error}");
    assert_eq!(api.said(), ["PUT job status", "POST pod 0-0"]);
    api.script(|_| Fate::Served);
    process.look(&api).await.unwrap();
    assert_eq!(api.said(), ["POST pod 0-0", "POST pod 1-0"]);
    assert_eq!(api.job().status.as_ref().unwrap().attempts.refused, 0);
}

/// A pod of the first attempt's name is there before. It has the job's labels, and its owner is changed so.
async fn name_is_taken(change: impl FnOnce(&mut Pod)) -> (Apiserver, Process) {
    let api = Apiserver::new(fixtures::job_of_age(0, "completions: 1"));
    let name = pod_name(&api.job(), (0, 0));
    let mut pod = fixtures::attempt_pod(&api.job(), (0, 0), "node-1", "Running");
    change(&mut pod);
    let process = Process::start(&api);
    api.world.lock().pods.insert(name, pod);
    process.plan(&api.job(), originals(1));
    process.reconcile(api.job()).await.unwrap();
    (api, process)
}

#[tokio::test]
async fn a_pod_that_exists_and_is_ours_is_taken_as_created() {
    let (api, process) = name_is_taken(|pod| pod.metadata.labels = None).await;
    assert_eq!(
        api.said(),
        ["PUT job status", "POST pod 0-0", "GET pod 0-0"]
    );
    process.reconcile(api.job()).await.unwrap();
    assert_eq!(api.said(), WAITS);
    assert_eq!(api.job().status.as_ref().unwrap().active, 1);
}

#[tokio::test]
async fn a_pod_of_somebody_else_in_the_way_is_said_and_left_alone() {
    let changes: [fn(&mut Pod); 2] = [
        |pod| pod.metadata.owner_references = None,
        |pod| pod.metadata.owner_references.as_mut().unwrap()[0].uid = "another".to_owned(),
    ];
    for change in changes {
        let (api, _process) = name_is_taken(change).await;
        assert_eq!(
            api.said(),
            [
                "PUT job status",
                "POST pod 0-0",
                "GET pod 0-0",
                "PUT job status",
                "POST event PodCreationFailed"
            ]
        );
        assert_eq!(
            api.condition(api::ATTEMPTS_BLOCKED),
            true_for("PodCreationFailed")
        );
        assert_eq!(api.job().status.as_ref().unwrap().attempts.refused, 1);
    }
}

#[tokio::test]
async fn a_conflict_in_a_withdrawal_keeps_the_record() {
    let api = Apiserver::new(fixtures::job_of_age(0, "completions: 1"));
    let process = Process::start(&api);
    let mut puts = 0;
    api.script(move |call| {
        puts += usize::from(call.words == "PUT job status");
        match &*call.words {
            "POST pod 0-0" => Fate::Refused(403, "Forbidden", QUOTA),
            "PUT job status" if (2..=6).contains(&puts) => {
                Fate::Refused(409, "Conflict", "changed")
            }
            _ => Fate::Served,
        }
    });
    process.plan(&api.job(), originals(1));
    let error = process.look(&api).await.unwrap_err();
    assert!(matches!(error, Error::Conflict), "{error}");
    assert_eq!(api.job().status.as_ref().unwrap().active, 1);
    api.said();
    process.look(&api).await.unwrap();
    let status = api.job().status.clone().unwrap();
    assert_eq!((status.attempts.refused, status.active), (1, 0));
}

/// The job as a newer operator leaves it, in a form that can't be read here.
fn of_newer_operator(job: &DeadlineJob) -> DeadlineJob {
    let mut value = serde_json::to_value(job).unwrap();
    let version = value["metadata"]["resourceVersion"].as_str().unwrap();
    let version: u64 = version.parse().unwrap();
    value["metadata"]["resourceVersion"] = (version + 1).to_string().into();
    value["status"]["ledger"] = serde_json::json!({
        "form": api::LEDGER_FORM + 1, "revision": "r7", "ending": "Postponed", "tasks": {"0": 1}});
    serde_json::from_value(value).expect("what is not understood is not read")
}

#[tokio::test]
async fn a_job_whose_ledger_has_a_newer_form_is_left_alone() {
    let (api, process) = two_running("").await;
    let newer = of_newer_operator(&api.job());
    api.world.lock().job = Some(newer);
    api.exit((0, 0), 0, clock::now());
    process.plan(&api.job(), originals(2));
    for said in [&["POST event LedgerTooNew"][..], &[]] {
        process.look(&api).await.unwrap();
        assert_eq!(api.said(), said);
    }
    assert!(process.is_drained().await);
    // A running attempt still holds its slot.
    let jobs = vec![(*api.job()).clone()];
    let stores = Stores::for_tests(jobs, api.pods(), &[fixtures::node("node-1", 8)]);
    let seen_anew = Process::with_stores(&api, stores);
    let view = crate::planner::observation::view(&seen_anew.context.shared);
    let held: usize = view.snapshot.jobs.iter().map(|job| job.tasks.len()).sum();
    assert_eq!(held, 1, "{:?}", view.snapshot.jobs);
}

#[tokio::test]
async fn a_job_is_taken_on_again_once_its_ledger_can_be_read() {
    let (api, process) = two_running("").await;
    let own = api.job();
    let newer = of_newer_operator(&own);
    api.world.lock().job = Some(newer);
    process.look(&api).await.unwrap();
    api.world.lock().job.as_mut().unwrap().status = own.status.clone();
    api.said();
    api.exit((0, 0), 0, clock::now());
    process.look(&api).await.unwrap();
    assert_eq!(api.job().status.as_ref().unwrap().attempts.won, 1);
}

#[tokio::test]
async fn every_write_keeps_status_fields_of_a_newer_operator() {
    let (api, process) = two_running("").await;
    let read = serde_json::to_value(&*api.job()).unwrap();
    let lines = &read["status"]["ledger"]["tasks"]["lines"];
    let line = |at: usize| lines[at].as_str().unwrap().replace(';', ",z7;") + ",y";
    let novel = [
        ("/status/novel", serde_json::json!({"depth": 1})),
        ("/status/ledger/novel", "x".into()),
        ("/status/ledger/tasks/novel", 7.into()),
        (
            "/status/ledger/tasks/lines",
            serde_json::json!([line(0), line(1)]),
        ),
    ];
    let object = fixtures::changed(&api.job(), &novel);
    api.world.lock().job = Some(serde_json::from_value(object).unwrap());
    api.exit((0, 0), 0, clock::now());
    process.look(&api).await.unwrap();
    let put = api.call("PUT job status").body;
    let ledger = &put["status"]["ledger"];
    assert_eq!(put["status"]["novel"], novel[0].1);
    assert_eq!(ledger["novel"], novel[1].1);
    // Task 0 is done, so that its entry is gone and the other has moved up.
    assert_eq!(put["status"]["completedIndexes"], "0");
    assert_eq!(ledger["tasks"]["novel"], novel[2].1);
    let left = ledger["tasks"]["lines"][0].as_str().unwrap();
    assert!(
        left.starts_with("1,1,z7;0o") && left.ends_with(",y"),
        "{left}"
    );
}

/// Its clones resume.
const RESUMES: &str = "resume: Checkpoint, progress: {file: {}},";

/// A pass over a job whose attempts mount the claim `data`, which has these modes.
async fn with_claim(modes: Vec<&'static str>, change: &str) -> (Apiserver, Process) {
    let change = format!(
        "{{completions: 1, {change} template: {{spec: \
         {{containers: [{{name: task, image: task}}], volumes: [{{name: scratch, emptyDir: {{}}}}, \
         {{name: data, persistentVolumeClaim: {{claimName: data}}}}]}}}}}}"
    );
    let api = Apiserver::new(fixtures::job_of_age(0, &change));
    api.world.lock().claims.insert("data".to_owned(), modes);
    let process = Process::start(&api);
    process.look(&api).await.unwrap();
    (api, process)
}

#[tokio::test]
async fn a_claim_that_two_nodes_cannot_mount_is_reported_with_the_fix() {
    let (api, process) = with_claim(vec!["ReadWriteOnce"], RESUMES).await;
    let note = api.call("POST event").body["note"].clone();
    let note = note.as_str().unwrap();
    let place = "spec.template.spec.volumes[1].persistentVolumeClaim.claimName: claim data is ReadWriteOnce";
    assert!(
        note.starts_with(place) && note.contains("ReadWriteMany"),
        "{note}"
    );
    let said = [
        "GET claim data",
        "PUT job status",
        "POST event VolumeNotShared",
    ];
    assert_eq!(api.said(), said);
    let condition = api.condition(api::VOLUME_NOT_SHARED);
    assert_eq!(condition, true_for("SingleNodeAccessMode"));
    process.look(&api).await.unwrap();
    assert!(api.said().is_empty(), "it is looked at again later");
}

#[tokio::test]
async fn a_claim_for_many_nodes_or_without_clones_is_not_reported() {
    let (api, _) = with_claim(vec!["ReadWriteMany"], RESUMES).await;
    assert_eq!(api.said(), ["GET claim data", "PUT job status"]);
    assert_eq!(api.condition(api::VOLUME_NOT_SHARED), None);
    let (api, _) = with_claim(vec!["ReadWriteOnce"], "idempotency: None,").await;
    assert_eq!(api.said(), ["PUT job status"], "there are no clones");
    let disabled = "speculation: {mode: Disabled},";
    let (api, _) = with_claim(vec!["ReadWriteOnce"], disabled).await;
    assert_eq!(api.said(), ["PUT job status"]);
}

#[tokio::test]
async fn a_claim_for_one_node_is_reported_if_clones_start_over() {
    let (api, _) = with_claim(vec!["ReadWriteOnce"], "").await;
    let note = api.call("POST event VolumeNotShared").body["note"].clone();
    let note = note.as_str().unwrap();
    assert!(
        note.contains("clones cannot start: use a ReadWriteMany claim"),
        "{note}"
    );
}

#[tokio::test]
async fn a_claim_that_can_not_be_read_keeps_no_job_from_running() {
    let (api, process) = with_claim(vec!["ReadWriteOnce"], RESUMES).await;
    process.context.job_memories.retain(|_| false);
    api.said();
    api.refuse("GET claim", 403, "Forbidden", "no");
    process.plan(&api.job(), originals(1));
    process.look(&api).await.unwrap();
    assert_eq!(
        api.said(),
        [
            "GET claim data",
            "PUT job status",
            "POST pod 0-0",
            "POST event VolumesShared"
        ]
    );
}

#[tokio::test]
async fn a_refusal_withdraws_an_attempt_only_after_a_list_of_pods() {
    let change = "{completions: 2, idempotency: None}";
    let api = Apiserver::new(fixtures::job_of_age(0, change));
    let process = Process::start(&api);
    // The first pod takes the last of the quota, and its answer is lost.
    api.script(|call| match call.words.as_str() {
        "POST pod 0-0" => Fate::LostAfter,
        _ => Fate::Served,
    });
    process.plan(&api.job(), originals(2));
    let job = api.job();
    process.reconcile(job).await.unwrap_err();
    assert_eq!(api.said(), ["PUT job status", "POST pod 0-0"]);
    api.refuse("POST pod", 403, "Forbidden", QUOTA);
    process.reconcile(api.job()).await.unwrap();
    let said = [
        "POST pod 0-0",
        "LIST pods",
        "PUT job status",
        "POST event QuotaExceeded",
    ];
    assert_eq!(api.said(), said);
    // The second was never requested, so it is withdrawn.
    let status = api.job().status.clone().unwrap();
    let counts = status.attempts;
    assert_eq!((counts.refused, counts.originals, status.active), (0, 1, 1));
    // The watch is still behind: it is not created again.
    process.reconcile(api.job()).await.unwrap();
    assert_eq!(api.said(), WAITS);
    api.run((0, 0));
    process.look(&api).await.unwrap();
    assert_eq!(api.pods().len(), 1, "one copy runs");
}

#[tokio::test]
async fn a_new_process_lists_pods_that_the_last_one_may_have_created() {
    let api = Apiserver::new(fixtures::job_of_age(0, "completions: 1"));
    let before = Process::start(&api);
    api.script(|call| match call.words.starts_with("POST pod") {
        true => Fate::LostAfter,
        false => Fate::Served,
    });
    before.plan(&api.job(), originals(1));
    before.look(&api).await.unwrap_err();
    // Its creation is carried out only after the next process has listed everything.
    let next = Process::start(&api);
    next.context.stores.show(vec![]);
    api.said();
    api.refuse("POST pod", 403, "Forbidden", QUOTA);
    next.reconcile(api.job()).await.unwrap();
    assert_eq!(api.said()[..2], ["POST pod 0-0", "LIST pods"]);
    assert_eq!(api.job().status.as_ref().unwrap().attempts.refused, 0);
}

#[tokio::test]
async fn a_refusal_takes_nothing_back_that_nobody_could_look_for() {
    let api = Apiserver::new(fixtures::job_of_age(0, "completions: 1"));
    let process = Process::start(&api);
    api.script(|call| match call.words.starts_with("POST pod") {
        true => Fate::LostBefore,
        false => Fate::Served,
    });
    process.plan(&api.job(), originals(1));
    process.look(&api).await.unwrap_err();
    api.script(|call| match call.words.as_str() {
        "POST pod 0-0" => Fate::Refused(403, "Forbidden", QUOTA),
        "LIST pods" => Fate::LostBefore,
        _ => Fate::Served,
    });
    let error = process.look(&api).await.unwrap_err();
    assert!(matches!(error, Error::LiveRead(_)), "{error}");
    assert_eq!(api.job().status.as_ref().unwrap().attempts.refused, 0);
    api.refuse("POST pod", 403, "Forbidden", QUOTA);
    process.look(&api).await.unwrap();
    assert_eq!(api.job().status.as_ref().unwrap().attempts.refused, 1);
}

#[tokio::test]
async fn a_silent_watch_retries_no_task_that_must_not_run_twice() {
    let change = "{completions: 1, idempotency: None}";
    let api = Apiserver::new(fixtures::job_of_age(0, change));
    let process = Process::start(&api);
    let clock = Arc::clone(&process.context.clock);
    process.plan(&api.job(), originals(1));
    // From here on the watch of pods shows nothing.
    process.reconcile(api.job()).await.unwrap();
    let suspend = |is| edit(&api, |job| job.spec.suspend = is);
    suspend(true);
    clock.skip_for_tests(shed_core::time::Span::from_seconds(5));
    process.reconcile(api.job()).await.unwrap();
    clock.skip_for_tests(shed_core::time::Span::from_seconds(60));
    suspend(false);
    process.plan(&api.job(), vec![launch(0, AttemptKind::Retry)]);
    process.reconcile(api.job()).await.unwrap();
    let created = |api: &Apiserver| {
        let said = api.said();
        said.iter()
            .filter(|call| call.starts_with("POST pod"))
            .count()
    };
    assert_eq!(created(&api), 1, "the first may run");
    assert_eq!(api.job().status.as_ref().unwrap().attempts.superseded, 0);
}
