//! Commit grants, and proofs that attempts are gone.

use k8s_openapi::api::core::v1::Node;
use shed_core::time::{Instant, Span};

use super::*;
use crate::attempt_pod;
use crate::cluster::Stores;
use crate::cluster::pod::PodFacts;

const FENCED: &str = "{completions: 1, idempotency: Fenced, progress: {file: {}}}";
const NONE: &str = "{completions: 1, idempotency: None}";

/// A fenced job of one task with an original and a clone, both running.
pub(super) async fn race() -> (Apiserver, Process) {
    let api = Apiserver::new(fixtures::job_of_age(60, FENCED));
    let process = Process::start(&api);
    for kind in [AttemptKind::Original, AttemptKind::Clone] {
        process.plan(&api.job(), vec![launch(0, kind)]);
        process.look(&api).await.unwrap();
    }
    api.run((0, 0));
    api.run((0, 1));
    process.look(&api).await.unwrap();
    api.said();
    (api, process)
}

fn pod_uid(api: &Apiserver, id: AttemptId) -> String {
    let name = pod_name(&api.job(), id);
    let pod = api.world.lock().pods.get(&name).cloned();
    pod.and_then(|pod| pod.metadata.uid).unwrap_or_default()
}

fn ask(api: &Apiserver, process: &Process, id: AttemptId, since: i64) {
    let job = api.job().metadata.uid.clone().unwrap();
    let fence = &process.context.fence;
    fence.ask_for_tests(&job, &pod_uid(api, id), Instant(since));
}

/// The token that the attempt would receive.
fn reported(api: &Apiserver, process: &Process, id: AttemptId) -> Option<u64> {
    let job = api.job().metadata.uid.clone().unwrap();
    let fence = &process.context.fence;
    let reported = fence.reported_for_tests(&job, &pod_uid(api, id));
    reported.map(|grant| grant.token)
}

/// Attempts of a fenced job that run.
fn running(api: &Apiserver) -> Vec<AttemptId> {
    if api.job().spec.idempotency != crate::api::Idempotency::Fenced {
        return vec![];
    }
    let facts = api.pods();
    let facts = facts
        .into_iter()
        .map(|pod| PodFacts::from_pod(&pod.into(), clock::now()));
    facts
        .filter(|pod| !pod.terminal)
        .filter_map(|pod| pod.attempt.map(|attempt| (attempt.task, attempt.number)))
        .collect()
}

/// The polls of this process find every task asking, in the order of their numbers.
pub(super) fn all_ask(api: &Apiserver, process: &Process) {
    for (task, number) in running(api) {
        ask(api, process, (task, number), i64::from(number));
    }
}

/// Every attempt with a grant publishes and ends.
pub(super) fn publish(api: &Apiserver, process: &Process) {
    for id in running(api) {
        if reported(api, process, id).is_some() {
            api.exit(id, 0, clock::now());
        }
    }
}

#[tokio::test]
async fn one_attempt_is_granted_and_reported_once_the_ledger_says_so() {
    let (api, process) = race().await;
    ask(&api, &process, (0, 1), 5);
    ask(&api, &process, (0, 0), 9);
    process.look(&api).await.unwrap();
    let put = api.call("PUT job").body;
    let ledger = ledger(&put);
    let grant = ledger.tasks[&0].grant.as_ref().unwrap();
    assert_eq!(grant.attempt, 1, "who asked first");
    assert_eq!(ledger.fence_token, 1);
    assert_eq!(api.said(), ["PUT job status"]);
    assert_eq!(reported(&api, &process, (0, 1)), Some(1));
    assert_eq!(reported(&api, &process, (0, 0)), None);
}

#[tokio::test]
async fn a_grant_that_is_not_recorded_is_reported_nobody() {
    for fate in [
        Fate::LostBefore,
        Fate::LostAfter,
        Fate::Refused(409, "Conflict", "changed"),
        Fate::Refused(500, "InternalError", "etcd is away"),
    ] {
        let (api, process) = race().await;
        all_ask(&api, &process);
        api.script(move |_| fate);
        process.look(&api).await.unwrap_err();
        assert_eq!(reported(&api, &process, (0, 0)), None, "{fate:?}");
    }
}

#[tokio::test]
async fn another_process_tells_the_same_and_writes_nothing() {
    let (api, process) = race().await;
    all_ask(&api, &process);
    process.look(&api).await.unwrap();
    api.said();
    let next = Process::start(&api);
    // The attempt without the grant requests first now.
    ask(&api, &next, (0, 1), 1);
    ask(&api, &next, (0, 0), 2);
    next.look(&api).await.unwrap();
    assert_eq!(api.said(), WAITS);
    assert_eq!(reported(&api, &next, (0, 0)), Some(1));
    assert_eq!(reported(&api, &next, (0, 1)), None);
}

#[tokio::test]
async fn the_granted_attempt_wins_though_another_ends_with_0_before() {
    let (api, process) = race().await;
    ask(&api, &process, (0, 1), 1);
    process.look(&api).await.unwrap();
    api.exit((0, 0), 0, clock::now());
    process.look(&api).await.unwrap();
    let counts = |api: &Apiserver| api.job().status.as_ref().unwrap().attempts;
    assert_eq!((counts(&api).won, counts(&api).clone_failed), (0, 1));
    api.exit((0, 1), 0, clock::now());
    process.look(&api).await.unwrap();
    assert_eq!((counts(&api).won, counts(&api).clone_wins), (1, 1));
}

#[tokio::test]
async fn a_publisher_that_ended_is_followed_with_a_higher_token() {
    let (api, process) = race().await;
    all_ask(&api, &process);
    process.look(&api).await.unwrap();
    api.exit((0, 0), 1, clock::now());
    process.look(&api).await.unwrap();
    assert_eq!(reported(&api, &process, (0, 1)), Some(2));
}

#[tokio::test]
async fn a_publisher_that_may_still_run_keeps_its_grant() {
    let (api, process) = race().await;
    all_ask(&api, &process);
    process.look(&api).await.unwrap();
    api.lose((0, 0));
    ask(&api, &process, (0, 1), 1);
    process.look(&api).await.unwrap();
    assert_eq!(reported(&api, &process, (0, 1)), None);
    let waits = api.condition(api::TERMINATION_UNCONFIRMED).unwrap();
    assert_eq!(waits, ("True".to_owned(), "NodeUnreachable".to_owned()));
}

#[tokio::test]
async fn nobody_prunes_an_attempt_that_may_be_publishing() {
    let (api, process) = race().await;
    all_ask(&api, &process);
    process.look(&api).await.unwrap();
    api.said();
    let prune = Move::Kill(shed_core::plan::Kill {
        task: TaskIndex(0),
        attempt: AttemptNumber(0),
        kind: KillKind::Prune,
        survivor: Some(AttemptNumber(1)),
    });
    process.plan(&api.job(), vec![prune]);
    process.look(&api).await.unwrap();
    assert_eq!(api.said(), WAITS);
}

#[tokio::test]
async fn after_the_deadline_nobody_is_granted_where_it_stops_the_job() {
    let late =
        "{completions: 1, idempotency: Fenced, progress: {file: {}}, deadline: {within: 60s}}";
    let api = Apiserver::new(fixtures::job_of_age(59, late));
    let process = Process::start(&api);
    process.plan(&api.job(), originals(1));
    process.look(&api).await.unwrap();
    api.run((0, 0));
    api.world
        .lock()
        .job
        .as_mut()
        .unwrap()
        .metadata
        .creation_timestamp = Some(clock::time(
        clock::now().plus(shed_core::time::Span::from_seconds(-61)),
    ));
    ask(&api, &process, (0, 0), 1);
    process.look(&api).await.unwrap();
    assert_eq!(reported(&api, &process, (0, 0)), None);
}

fn node(boot: &str, taint: &str) -> Node {
    let yaml = format!(
        "{{metadata: {{name: node-1}}, spec: {{taints: [{taint}]}}, status: {{nodeInfo: \
         {{bootID: '{boot}', architecture: a, containerRuntimeVersion: c, kernelVersion: k, \
         kubeProxyVersion: p, kubeletVersion: k, machineID: m, operatingSystem: o, osImage: i, \
         systemUUID: s}}}}}}"
    );
    serde_saphyr::from_str(&yaml).expect("node")
}

/// A process that sees this node.
fn with_node(api: &Apiserver, node: &Node) -> Process {
    let jobs = api.world.lock().job.iter().cloned().collect();
    let nodes = std::slice::from_ref(node);
    Process::with_stores(api, Stores::for_tests(jobs, api.pods(), nodes))
}

/// A job with idempotency None. Its attempt ran, and then its node went out of reach.
async fn out_of_reach() -> Apiserver {
    let api = Apiserver::new(fixtures::job_of_age(60, NONE));
    let process = with_node(&api, &node("boot-1", ""));
    process.plan(&api.job(), originals(1));
    process.look(&api).await.unwrap();
    api.run((0, 0));
    process.look(&api).await.unwrap();
    api.lose((0, 0));
    api.said();
    api
}

/// Calls of the next process when it must launch a retry, twice.
async fn retry(api: &Apiserver, node: &Node) -> Vec<String> {
    let process = with_node(api, node);
    for _ in 0..2 {
        process.plan(&api.job(), vec![launch(0, AttemptKind::Retry)]);
        process.look(api).await.unwrap();
    }
    api.said()
}

fn launches(said: &[String]) -> bool {
    said.contains(&"POST pod 0-1".to_owned())
}

#[tokio::test]
async fn a_task_that_must_not_run_twice_is_retried_once_proven_gone() {
    let off = "{key: node.kubernetes.io/out-of-service, effect: NoExecute}";
    for (node, is_gone) in [
        (node("boot-1", ""), false),
        (node("", ""), false),
        (node("boot-1", off), true),
        (node("boot-2", ""), true),
    ] {
        let api = out_of_reach().await;
        let said = retry(&api, &node).await;
        assert_eq!(launches(&said), is_gone, "{node:?}: {said:?}");
        let waits = api.condition(api::TERMINATION_UNCONFIRMED);
        assert_eq!(waits.is_some_and(|(status, _)| status == "True"), !is_gone);
    }
    let api = out_of_reach().await;
    api.exit((0, 0), 1, clock::now());
    assert!(launches(&retry(&api, &node("boot-1", "")).await));
}

#[tokio::test]
async fn a_pod_whose_finalizer_somebody_took_off_is_not_gone_for_that() {
    let api = out_of_reach().await;
    api.world.lock().pods.clear();
    let said = retry(&api, &node("boot-1", "")).await;
    assert!(
        !said.iter().any(|call| call.starts_with("POST pod")),
        "{said:?}"
    );
    assert!(launches(&retry(&api, &node("boot-2", "")).await));
}

#[tokio::test]
async fn the_end_of_a_job_waits_for_no_proof() {
    let api = out_of_reach().await;
    api.world
        .lock()
        .job
        .as_mut()
        .unwrap()
        .metadata
        .creation_timestamp = Some(clock::time(
        clock::now().plus(shed_core::time::Span::from_seconds(-700)),
    ));
    let process = with_node(&api, &node("boot-1", ""));
    for _ in 0..3 {
        process.look(&api).await.unwrap();
    }
    let failed = api.condition(api::FAILED).unwrap();
    assert_eq!(failed.1, "DeadlineMissed");
}

#[test]
fn a_fenced_attempt_knows_whom_to_ask_and_whom_to_believe() {
    let owner = fixtures::job(FENCED);
    let job = crate::validate::validate(&owner).unwrap();
    let mut ledger = crate::api::Ledger::default();
    let Move::Launch(launch) = launch(0, AttemptKind::Original) else {
        return;
    };
    ledger.launch(&launch, Instant(0));
    let agent = attempt_pod::AgentSettings {
        image: "agent".to_owned(),
        pull_policy: "Always".to_owned(),
        pull_secret: None,
        security_context: attempt_pod::agent_context::restricted(),
        keys: fixtures::keys(),
    };
    let attempt = ledger.attempt(0, 0).unwrap();
    let pod = attempt_pod::pod(&owner, &job, 0, attempt, None, &agent, None);
    let spec = pod.spec.unwrap();
    let env = |container: &k8s_openapi::api::core::v1::Container, name: &str| {
        let mut env = container.env.iter().flatten();
        env.find(|env| env.name == name)
            .and_then(|env| env.value.clone())
    };
    let sidecar = &spec.init_containers.unwrap()[0];
    assert_eq!(env(sidecar, "SHED_OPERATOR_KEY"), Some(agent.keys.public()));
    let (uid, name) = (owner.metadata.uid.unwrap(), pod.metadata.name.unwrap());
    assert_eq!(
        env(sidecar, "SHED_REPLY_KEY"),
        Some(agent.keys.reply_key(&uid, &name))
    );
    assert_eq!(env(sidecar, "SHED_BIN").as_deref(), Some("/run/shed/shed"));
    let task = &spec.containers[0];
    assert_eq!(env(task, "SHED_BIN").as_deref(), Some("/run/shed/shed"));
    let url = env(task, "SHED_COMMIT_URL");
    assert_eq!(url.as_deref(), Some("http://127.0.0.1:9248/commit"));
}

#[tokio::test]
async fn a_suspension_leaves_the_attempt_that_publishes_its_time() {
    let (api, process) = race().await;
    ask(&api, &process, (0, 1), 1);
    process.look(&api).await.unwrap();
    api.said();
    edit(&api, |job| job.spec.suspend = true);
    process.look(&api).await.unwrap();
    assert_eq!(api.said(), ["PUT job status", "DELETE pod 0-0"]);
    process.context.clock.skip_for_tests(Span::from_seconds(61));
    process.look(&api).await.unwrap();
    assert_eq!(api.said(), ["PUT job status", "DELETE pod 0-1"]);
}

#[tokio::test]
async fn the_pods_of_a_job_that_publishes_are_listed_once() {
    let (api, process) = race().await;
    ask(&api, &process, (0, 0), 1);
    process.look(&api).await.unwrap();
    // The deadline is ten minutes after the creation, which was a minute ago.
    let clock = &process.context.clock;
    clock.skip_for_tests(Span::from_seconds(545));
    api.said();
    let lists = |said: Vec<String>| said.iter().filter(|call| *call == "LIST pods").count();
    for _ in 0..50 {
        process.look(&api).await.unwrap();
        clock.skip_for_tests(Span::from_seconds(1));
    }
    assert_eq!(lists(api.said()), 0);
    assert_eq!(api.condition(api::FAILURE_TARGET), None);
    // The grace for its publication is over.
    clock.skip_for_tests(Span::from_seconds(15));
    process.look(&api).await.unwrap();
    assert_eq!(lists(api.said()), 1);
    process.look(&api).await.unwrap();
    let failed = api.condition(api::FAILURE_TARGET);
    assert_eq!(failed.unwrap().0, "True");
}
