//! Nodes that are gone, that refuse pods, and that can't start them.

use k8s_openapi::api::core::v1::Node;
use shed_core::time::Span;

use super::*;
use crate::cluster::Stores;

fn ready(name: &str, is: &str) -> Node {
    let mut node = fixtures::node(name, 4);
    let conditions = node.status.as_mut().and_then(|s| s.conditions.as_mut());
    conditions.unwrap()[0].status = is.to_owned();
    node
}

/// A process that has just listed everything, these nodes among it.
fn seeing(api: &Apiserver, nodes: &[Node]) -> Process {
    let jobs = api.world.lock().job.iter().cloned().collect();
    Process::with_stores(api, Stores::for_tests(jobs, api.pods(), nodes))
}

fn ago(seconds: i64) -> Instant {
    clock::now().plus(Span::from_seconds(-seconds))
}

/// A job of one task, whose first attempt runs on `node-1` and was deleted. It should have been
/// gone for a minute.
async fn deleted(change: &str) -> Apiserver {
    let api = Apiserver::new(fixtures::job_of_age(
        60,
        &format!("{{completions: 1, {change}}}"),
    ));
    let process = Process::start(&api);
    process.plan(&api.job(), originals(1));
    process.look(&api).await.unwrap();
    api.run((0, 0));
    process.look(&api).await.unwrap();
    api.delete((0, 0), ago(60));
    api.said();
    api
}

fn counts(api: &Apiserver) -> crate::api::AttemptCounts {
    api.job().status.clone().unwrap_or_default().attempts
}

fn launches(said: &[String]) -> bool {
    said.contains(&"POST pod 0-1".to_owned())
}

/// Calls of a process that sees this node and must launch a retry in its second pass.
async fn retried(api: &Apiserver, nodes: &[Node]) -> Vec<String> {
    let process = seeing(api, nodes);
    process.look(api).await.unwrap();
    process.plan(&api.job(), vec![launch(0, AttemptKind::Retry)]);
    process.look(api).await.unwrap();
    api.said()
}

#[tokio::test]
async fn a_deleted_attempt_on_a_node_that_is_gone_is_replaced() {
    for nodes in [vec![], vec![ready("node-1", "Unknown")]] {
        let api = deleted("").await;
        let said = retried(&api, &nodes).await;
        let expected = [
            "PUT job status",
            "POST event AttemptAbandoned",
            "PUT job status",
            "POST pod 0-1",
        ];
        assert_eq!(said, expected, "{nodes:?}");
        let ledger = api.job().status.clone().unwrap().ledger.unwrap();
        let first = &ledger.tasks[&0].attempts[0];
        assert_eq!((first.number, first.kill), (0, Some(KillKind::Abandon)));
        assert_eq!(ledger.tasks[&0].disruptions, 1);
        // The node comes back, and its kubelet ends the pod.
        api.exit((0, 0), 143, clock::now());
        seeing(&api, &[ready("node-1", "True")])
            .look(&api)
            .await
            .unwrap();
        assert_eq!(counts(&api).disrupted, 1);
        let ledger = api.job().status.clone().unwrap().ledger.unwrap();
        assert_eq!(ledger.tasks[&0].disruptions, 1, "counted once");
    }
}

#[tokio::test]
async fn a_deleted_attempt_is_awaited_on_a_healthy_node_or_in_time() {
    let api = deleted("").await;
    assert!(!launches(&retried(&api, &[ready("node-1", "True")]).await));
    api.delete((0, 0), ago(-20));
    assert!(!launches(
        &retried(&api, &[ready("node-1", "Unknown")]).await
    ));
}

#[tokio::test]
async fn a_result_from_before_the_node_loss_counts_if_no_other_won() {
    let (lost, back) = ([ready("node-1", "Unknown")], [ready("node-1", "True")]);
    let api = deleted("").await;
    retried(&api, &lost).await;
    api.exit((0, 0), 0, ago(100));
    seeing(&api, &back).look(&api).await.unwrap();
    assert_eq!((counts(&api).won, counts(&api).superseded), (1, 0));
    let said = api.said();
    assert!(said.contains(&"DELETE pod 0-1".to_owned()), "{said:?}");
    // Once another has won it is harmless.
    let api = deleted("").await;
    retried(&api, &lost).await;
    api.exit((0, 1), 0, clock::now());
    api.exit((0, 0), 0, ago(100));
    let process = seeing(&api, &back);
    process.look(&api).await.unwrap();
    assert_eq!(counts(&api).won, 1);
}

#[tokio::test]
async fn where_two_copies_do_harm_proof_comes_first() {
    let lost = [ready("node-1", "Unknown")];
    let api = deleted("idempotency: None").await;
    assert!(!launches(&retried(&api, &lost).await));
    let waits = api.condition(api::TERMINATION_UNCONFIRMED).unwrap();
    assert_eq!(waits, ("True".to_owned(), "NodeUnreachable".to_owned()));
    // The user's rule is to wait until it has ended.
    let api = deleted("podReplacementPolicy: Failed").await;
    assert!(!launches(&retried(&api, &lost).await));
    let waits = api.condition(api::TERMINATION_UNCONFIRMED).unwrap();
    assert_eq!(waits.1, "NodeUnreachable");
    let api = deleted("idempotency: Fenced, progress: {file: {}}").await;
    assert!(
        launches(&retried(&api, &lost).await),
        "nothing is published"
    );
}

#[tokio::test]
async fn a_loser_on_a_dead_node_delays_its_job_and_is_reported() {
    let (api, process) = race().await;
    api.exit((0, 1), 0, clock::now());
    process.look(&api).await.unwrap();
    api.delete((0, 0), ago(60));
    let process = seeing(&api, &[ready("node-1", "Unknown")]);
    process.look(&api).await.unwrap();
    assert!(api.condition(api::COMPLETE).is_none());
    let waits = api.condition(api::TERMINATION_UNCONFIRMED).unwrap();
    assert_eq!(waits, ("True".to_owned(), "NodeUnreachable".to_owned()));
    api.exit((0, 0), 143, clock::now());
    process.look(&api).await.unwrap();
    assert_eq!(api.condition(api::COMPLETE).unwrap().0, "True");
    assert_eq!(
        api.condition(api::TERMINATION_UNCONFIRMED).unwrap().0,
        "False"
    );
}

/// A job of one task. Its first attempt was placed on `node-1` and never started, and for that many
/// seconds it should have been gone.
async fn never_started(change: &str, seconds: i64) -> Apiserver {
    let spec = format!("{{completions: 1, {change}}}");
    let api = Apiserver::new(fixtures::job_of_age(60, &spec));
    let process = Process::start(&api);
    process.plan(&api.job(), originals(1));
    process.look(&api).await.unwrap();
    api.place((0, 0), "node-1");
    api.delete((0, 0), ago(seconds));
    api.said();
    api
}

#[tokio::test]
async fn a_pod_deleted_before_it_started_is_replaced_and_awaited() {
    let healthy = [ready("node-1", "True")];
    let api = never_started("", 31).await;
    let said = retried(&api, &healthy).await;
    assert!(launches(&said), "{said:?}");
    assert!(!said.contains(&"PATCH pod 0-0".to_owned()), "{said:?}");
    assert_eq!(counts(&api).disrupted, 0, "its kubelet may only be late");
    // The kubelet was late: the attempt is counted once it has ended.
    api.exit((0, 0), 143, clock::now());
    seeing(&api, &healthy).look(&api).await.unwrap();
    assert_eq!(counts(&api).disrupted, 1);
    for (change, seconds) in [("", 29), ("idempotency: None", 31)] {
        let api = never_started(change, seconds).await;
        assert!(!launches(&retried(&api, &healthy).await), "{change}");
    }
}

#[tokio::test]
async fn a_pod_that_never_started_delays_nothing_beyond_five_minutes() {
    let counted = async |change: &str| {
        let api = never_started(change, 301).await;
        let process = seeing(&api, &[ready("node-1", "True")]);
        process.look(&api).await.unwrap();
        (counts(&api).disrupted, api.said())
    };
    let (disrupted, said) = counted("").await;
    assert_eq!(disrupted, 1);
    assert!(said.contains(&"PATCH pod 0-0".to_owned()), "{said:?}");
    let (disrupted, _) = counted("idempotency: None").await;
    assert_eq!(disrupted, 0, "it may have started, for all that is known");
}

#[tokio::test]
async fn a_pod_that_a_kubelet_refuses_is_disrupted_and_waits_longer() {
    let api = Apiserver::new(fixtures::job_of_age(60, "completions: 1"));
    let nodes = [ready("node-1", "True"), ready("node-2", "True")];
    let process = seeing(&api, &nodes);
    process.plan(&api.job(), originals(1));
    process.look(&api).await.unwrap();
    let mut waits = Vec::new();
    for number in 0..4 {
        api.reject((0, number), "TopologyAffinityError");
        process.look(&api).await.unwrap();
        let ledger = api.job().status.clone().unwrap().ledger.unwrap();
        let until = ledger.tasks[&0].retry_not_before;
        let until = until.map(|at| at.since(clock::now()).seconds());
        waits.push(until.unwrap_or(0.0));
        process.plan(&api.job(), vec![launch(0, AttemptKind::Retry)]);
        process.look(&api).await.unwrap();
    }
    assert_eq!((counts(&api).disrupted, counts(&api).failed), (4, 0));
    for (wait, expected) in waits.iter().zip([0.0, 1.0, 2.0, 4.0]) {
        assert!((expected - wait).abs() < 0.9, "{waits:?}");
    }
    let view = crate::planner::observation::view(&process.context.shared);
    let task = &view.snapshot.jobs[0].tasks[0];
    let names = task
        .avoid
        .iter()
        .map(|node| &*view.snapshot.nodes[node.0].name.0);
    assert_eq!(names.collect::<Vec<_>>(), ["node-1"]);
    let uid: Arc<str> = api.job().metadata.uid.as_deref().unwrap().into();
    let troubled = process
        .context
        .job_memories
        .with(&uid, |memory| memory.planned.troubled.clone());
    assert_eq!(troubled.of_task(0).len(), 1);
}

#[tokio::test]
async fn the_next_clone_keeps_off_the_node_where_the_straggler_was() {
    let (api, process) = race().await;
    api.place((0, 0), "node-1");
    process.look(&api).await.unwrap();
    let stop_the_straggler = Move::Kill(shed_core::plan::Kill {
        task: TaskIndex(0),
        attempt: AttemptNumber(0),
        kind: KillKind::Prune,
        survivor: Some(AttemptNumber(1)),
    });
    process.plan(&api.job(), vec![stop_the_straggler]);
    process.look(&api).await.unwrap();
    let uid: Arc<str> = api.job().metadata.uid.as_deref().unwrap().into();
    let job_memories = &process.context.job_memories;
    let troubled = job_memories.with(&uid, |memory| memory.planned.troubled.clone());
    assert_eq!(troubled.of_task(0), [Arc::from("node-1")]);
}

#[tokio::test]
async fn a_failed_init_container_is_a_failure_without_idempotency_too() {
    let spec = "template: {spec: {restartPolicy: Never, initContainers: [{name: prepare, image: i}], \
                containers: [{name: task, image: i}]}}";
    let none = format!("{{completions: 1, idempotency: None, backoffLimitPerIndex: 1, {spec}}}");
    let api = Apiserver::new(fixtures::job_of_age(60, &none));
    let process = seeing(&api, &[ready("node-1", "True")]);
    process.plan(&api.job(), originals(1));
    process.look(&api).await.unwrap();
    api.fail_init((0, 0), 1);
    process.look(&api).await.unwrap();
    assert_eq!(counts(&api).failed, 1);
    process.plan(&api.job(), vec![launch(0, AttemptKind::Retry)]);
    process.look(&api).await.unwrap();
    assert!(launches(&api.said()));
    api.fail_init((0, 1), 1);
    process.look(&api).await.unwrap();
    process.look(&api).await.unwrap();
    assert_eq!(api.condition(api::FAILED).unwrap().1, "FailedIndexes");
    let refused = format!("{{completions: 1, idempotency: None, {spec}}}");
    let api = Apiserver::new(fixtures::job_of_age(60, &refused));
    let process = seeing(&api, &[ready("node-1", "True")]);
    process.plan(&api.job(), originals(1));
    process.look(&api).await.unwrap();
    api.reject((0, 0), "NodeShutdown");
    process.look(&api).await.unwrap();
    assert_eq!(counts(&api).disrupted, 1);
    assert!(launches(&retried(&api, &[ready("node-1", "True")]).await));
}

/// The attempt can't pull its image for longer than the grace.
fn stick(api: &Apiserver, process: &Process, id: (u32, u32), node: &str) {
    api.place(id, node);
    api.stick(id, "ImagePullBackOff");
    let uid: Arc<str> = api.job().metadata.uid.as_deref().unwrap().into();
    process.context.job_memories.with(&uid, |memory| {
        memory.planned.traces.entry(id).or_default().stuck_since = Some(ago(6));
    });
}

/// A job of three tasks on two nodes, whose attempts are just placed.
async fn three_placed() -> (Apiserver, Process) {
    let api = Apiserver::new(fixtures::job_of_age(60, "completions: 3"));
    let process = seeing(&api, &[ready("node-1", "True"), ready("node-2", "True")]);
    process.plan(&api.job(), originals(3));
    process.look(&api).await.unwrap();
    api.said();
    (api, process)
}

fn has_wait(api: &Apiserver, process: &Process) -> bool {
    process.planned(&api.job()).backoff.is_some()
}

#[tokio::test]
async fn a_node_that_pulls_no_images_costs_its_own_attempts_alone() {
    let (api, process) = three_placed().await;
    stick(&api, &process, (0, 0), "node-1");
    process.look(&api).await.unwrap();
    assert!(api.said().contains(&"DELETE pod 0-0".to_owned()));
    assert!(!has_wait(&api, &process), "one node of two");
    let view = crate::planner::observation::view(&process.context.shared);
    let job = &view.snapshot.jobs[0];
    assert_eq!(job.launch_not_before, None);
    let names = job
        .avoid
        .iter()
        .map(|node| &*view.snapshot.nodes[node.0].name.0);
    assert_eq!(names.collect::<Vec<_>>(), ["node-1"]);
    stick(&api, &process, (1, 0), "node-2");
    process.look(&api).await.unwrap();
    assert!(has_wait(&api, &process), "both nodes, and nothing runs");
}

#[tokio::test]
async fn while_an_attempt_runs_no_node_holds_up_the_job() {
    let (api, process) = three_placed().await;
    api.place((2, 0), "node-2");
    api.run((2, 0));
    stick(&api, &process, (0, 0), "node-1");
    stick(&api, &process, (1, 0), "node-2");
    process.look(&api).await.unwrap();
    assert!(!has_wait(&api, &process));
    let ledger = api.job().status.clone().unwrap().ledger.unwrap();
    assert_eq!(
        ledger
            .tasks
            .values()
            .map(|task| task.disruptions)
            .sum::<u32>(),
        2
    );
}

#[tokio::test]
async fn the_only_node_that_a_job_may_use_holds_it_up() {
    let spec = "template: {spec: {nodeName: node-2, containers: [{name: task, image: i}]}}";
    let api = Apiserver::new(fixtures::job_of_age(
        60,
        &format!("{{completions: 1, {spec}}}"),
    ));
    let process = seeing(&api, &[ready("node-1", "True"), ready("node-2", "True")]);
    process.plan(&api.job(), originals(1));
    process.look(&api).await.unwrap();
    stick(&api, &process, (0, 0), "node-2");
    process.look(&api).await.unwrap();
    assert!(has_wait(&api, &process));
}

#[tokio::test]
async fn a_clone_that_is_preempted_is_reported_to_the_planner() {
    let (api, process) = race().await;
    api.exit((0, 1), 143, clock::now());
    {
        let name = pod_name(&api.job(), (0, 1));
        let mut world = api.world.lock();
        let status = world
            .pods
            .get_mut(&name)
            .and_then(|pod| pod.status.as_mut());
        let preempted = "[{type: DisruptionTarget, status: 'True', reason: PreemptionByScheduler}]";
        status.unwrap().conditions = serde_saphyr::from_str(preempted).unwrap();
    }
    process.look(&api).await.unwrap();
    assert_eq!(counts(&api).disrupted, 1);
    let view = crate::planner::observation::view(&process.context.shared);
    let task = &view.snapshot.jobs[0].tasks[0];
    assert!(
        task.clone_disrupted
            .is_some_and(|at| clock::now().since(at).seconds() < 5.0)
    );
    assert_eq!(task.retry_not_before, None);
}
