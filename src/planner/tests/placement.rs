//! Attempts that no scheduler places, requests that admission added, and creations that the
//! apiserver refuses.

use k8s_openapi::api::core::v1::Pod;
use serde_json::json;
use shed_core::snapshot::KillKind;

use super::*;
use crate::adopt::AdoptJobs;
use crate::cluster::pod::AttemptId;
use crate::context::pod_creation::Count;
use crate::planner::known_jobs::KnownJobs;
use crate::reconcile::mock::{Fate, launch as slice_of, originals, pod_name};

const CORE: &str =
    "template: {spec: {containers: [{name: task, image: i, resources: {requests: {cpu: '1'}}}]}}";

/// Launches of the policy in a pass over these facts, by job.
fn launches(view: &observation::ClusterView, policy: &Policy) -> HashMap<String, usize> {
    let (plan, _) = decide(&view.snapshot, Memory::default(), policy);
    assert_eq!(plan_check(&view.snapshot, policy, &plan), []);
    let mut launches = HashMap::new();
    for planned in plan.actions {
        if matches!(planned.action, Move::Launch(_)) {
            let name = view.addresses.references[&planned.job.0].name.clone();
            *launches.entry(name).or_insert(0) += 1;
        }
    }
    launches
}

fn prime() -> Policy {
    "shed-prime".parse().unwrap()
}

/// A job of that name in that namespace.
fn named(name: &str, namespace: &str, change: &str) -> DeadlineJob {
    let mut job = fixtures::job_of_age(30, change);
    let metadata = &mut job.metadata;
    metadata.name = Some(name.to_owned());
    metadata.namespace = Some(namespace.to_owned());
    metadata.uid = Some(format!("uid-{name}"));
    job
}

/// A pod's condition, as its scheduler wrote it this many seconds ago.
fn answer(pod: &mut Pod, seconds: i64, reason: &str, message: &str) {
    let at = clock::time(clock::now().plus(Span::from_seconds(-seconds)));
    let status = json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False",
        "reason": reason, "message": message, "lastTransitionTime": at}]});
    pod.status = serde_json::from_value(status).expect("status");
}

/// A job whose attempts are all launched in the first pass, and their pods.
async fn launched(change: &str, tasks: u32) -> (Apiserver, Process) {
    let (api, process) = cluster(|job| {
        job.spec = fixtures::job(&format!("{{completions: {tasks}, {change} {CORE}}}")).spec;
    });
    process.plan(&api.job(), originals(tasks));
    process.reconcile(api.job()).await.unwrap();
    api.said();
    (api, process)
}

fn answer_all(api: &Apiserver, seconds: i64, reason: &str, message: &str) {
    let mut world = api.world.lock();
    let pods = world.pods.values_mut();
    pods.for_each(|pod| answer(pod, seconds, reason, message));
}

const ANTI: &str = "0/1 nodes are available: 1 node(s) did not match pod anti-affinity rules.";

#[tokio::test]
async fn an_unschedulable_pod_holds_no_capacity_and_is_reported() {
    let (api, process) = launched("", 2).await;
    let context = &process.context.shared;
    let held = |view: &observation::ClusterView| {
        let (plan, _) = decide(&view.snapshot, Memory::default(), &policy());
        plan.report.capacity.used.get("cpu")
    };
    answer_all(&api, 5, "Unschedulable", ANTI);
    context.stores.show(api.pods());
    let view = observation::view(context);
    assert_eq!(held(&view), 2000, "a scheduler has ten seconds");
    let wait = view.due.expect("a wake").since(view.snapshot.now).seconds();
    assert!((3.0..6.0).contains(&wait), "{wait}");
    answer_all(&api, 11, "Unschedulable", ANTI);
    context.stores.show(api.pods());
    let view = observation::view(context);
    assert_eq!((held(&view), view.news.len()), (0, 1));
    assert_eq!(observation::view(context).news.len(), 0, "it is news once");
    process.look(&api).await.unwrap();
    assert_eq!(api.said(), ["PUT job status", "POST event Unschedulable"]);
    let blocked = api.condition(crate::api::ATTEMPTS_BLOCKED).unwrap();
    assert_eq!(blocked, ("True".to_owned(), "Unschedulable".to_owned()));
    assert_eq!(
        api.job().status.as_ref().unwrap().phase.as_deref(),
        Some("Pending")
    );
    // The scheduler finds a node after all.
    api.run((0, 0));
    api.run((1, 0));
    context.stores.show(api.pods());
    assert_eq!(held(&observation::view(context)), 2000);
    process.look(&api).await.unwrap();
    assert_eq!(
        api.condition(crate::api::ATTEMPTS_BLOCKED).unwrap().0,
        "False"
    );
    assert_eq!(
        api.job().status.as_ref().unwrap().phase.as_deref(),
        Some("Running")
    );
}

#[tokio::test]
async fn where_nodes_are_full_the_pod_waits_for_the_cluster_to_grow() {
    let (api, process) = launched("", 3).await;
    api.run((0, 0));
    api.run((1, 0));
    let name = pod_name(&api.job(), (2, 0));
    let full = "0/1 nodes are available: 1 Insufficient cpu.";
    answer(
        api.world.lock().pods.get_mut(&name).unwrap(),
        60,
        "Unschedulable",
        full,
    );
    process.context.stores.show(api.pods());
    let view = observation::view(&process.context.shared);
    let attempt = |task: usize| &view.snapshot.jobs[0].tasks[task].attempts[0];
    assert!(!attempt(2).unplaceable, "what comes free is meant for it");
    let reported = process
        .memory(&api.job())
        .placement
        .blocked()
        .cloned()
        .unwrap();
    assert_eq!(
        (reported.reason, reported.message),
        ("Unschedulable", format!("pod {name}: {full}"))
    );
}

#[tokio::test]
async fn a_job_that_fits_no_node_gets_one_pod_and_a_report() {
    let gpu = "template: {spec: {containers: [{name: task, image: i, resources: {limits: \
               {nvidia.com/gpu: '1'}}}]}}";
    let (api, process) = cluster(|job| job.spec = fixtures::job(gpu).spec);
    let (touched, mut jobs) = mpsc::unbounded_channel();
    let planner = tokio::spawn(run(Arc::clone(&process.context.shared), policy(), touched));
    timeout(A_WHILE, jobs.recv()).await.expect("a slice");
    process.reconcile(api.job()).await.unwrap();
    assert_eq!(
        api.said(),
        [
            "PUT job status",
            "POST pod 0-0",
            "POST event NoMatchingNode"
        ]
    );
    let status = api.job().status.clone().unwrap();
    let blocked = status
        .conditions
        .iter()
        .find(|one| one.type_ == crate::api::ATTEMPTS_BLOCKED);
    let words = &blocked.unwrap().message;
    assert!(
        words.contains("no node has nvidia.com/gpu (1 requested)"),
        "{words}"
    );
    assert_eq!(status.phase.as_deref(), Some("Pending"));
    for _ in 0..3 {
        process.context.stores.show(api.pods());
        process.context.stores.changed.notify_one();
        sleep(A_WHILE).await;
    }
    planner.abort();
    let uid: JobUid = api.job().metadata.uid.as_deref().unwrap().into();
    assert!(
        process.context.plan_slices.take(&uid).is_empty(),
        "one pod is enough"
    );
    assert_eq!(api.pods().len(), 1);
}

#[tokio::test]
async fn a_node_without_allocatable_resources_has_no_capacity() {
    let mut node = fixtures::node("node-1", 2);
    node.status.as_mut().unwrap().allocatable = None;
    let job = named("a", "team", CORE);
    let api = Apiserver::new(job.clone());
    let process = Process::with_stores(&api, Stores::for_tests(vec![job], vec![], &[node]));
    let view = observation::view(&process.context.shared);
    assert_eq!(
        launches(&view, &policy()),
        HashMap::from([("a".to_owned(), 1)])
    );
    let reported = process
        .memory(&api.job())
        .placement
        .blocked()
        .cloned()
        .unwrap();
    assert_eq!(reported.reason, "NoMatchingNode");
    assert!(
        reported
            .message
            .contains("no node reports its allocatable resources"),
        "{}",
        reported.message
    );
}

#[tokio::test]
async fn gated_pods_of_another_namespace_hold_nothing() {
    let gates = CORE.replace("{spec: {", "{spec: {schedulingGates: [{name: g}], ");
    let gated = named("gated", "evil", &format!("{{completions: 100, {gates}}}"));
    let victim = named("victim", "team", &format!("{{completions: 50, {CORE}}}"));
    let api = Apiserver::new(gated.clone());
    let nodes = [fixtures::node("node-1", 50)];
    let stores = Stores::for_tests(vec![gated.clone(), victim.clone()], vec![], &nodes);
    let process = Process::with_stores(&api, stores);
    process.plan(&gated, originals(100));
    process.reconcile(api.job()).await.unwrap();
    answer_all(
        &api,
        0,
        "SchedulingGated",
        "Scheduling is blocked due to non-empty scheduling gates",
    );
    process.context.stores.show(api.pods());
    let view = observation::view(&process.context.shared);
    assert_eq!(
        launches(&view, &prime()),
        HashMap::from([("victim".to_owned(), 50)])
    );
}

#[tokio::test]
async fn a_queue_orders_its_job_where_the_cluster_has_kueue() {
    let mut job = fixtures::batch_job("completions: 9, parallelism: 3");
    let queue = ("kueue.x-k8s.io/queue-name".to_owned(), "team".to_owned());
    job.metadata.labels = Some([queue].into());
    let template = json!({"spec": {"restartPolicy": "Never", "containers": [
        {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]}});
    job.spec.as_mut().unwrap().template = serde_json::from_value(template).unwrap();
    let companion = fixtures::companion(&job);
    let api = Apiserver::new(companion.clone());
    let full = [fixtures::node("node-1", 0)];
    let stores = Stores::for_tests(vec![companion], vec![], &full);
    let process = Process::with_stores(&api, stores.adopting(AdoptJobs::Managed, vec![job]));
    let context = &process.context.shared;
    let mut known = KnownJobs::following(&context.stores);
    let policy = Policy {
        surge_max: 1,
        ..prime()
    };
    let mut launched = || {
        let view = observation::view_after(context, &mut known);
        let launched = launches(&view, &policy).into_values().sum();
        let admitted = view.snapshot.jobs[0].admitted;
        known.put_back(view.snapshot.jobs);
        (admitted, launched)
    };
    assert_eq!(launched(), (Some(3), 3), "whatever the nodes have");
    assert!(context.stores.note_kueue(false));
    assert_eq!(launched(), (None, 1), "the label means nothing");
    assert!(!context.stores.note_kueue(false));
}

#[tokio::test]
async fn suspended_jobs_of_another_namespace_reserve_nothing() {
    let suspended = (0..16).map(|number| {
        let change = format!("{{completions: 10, suspend: true, {CORE}}}");
        named(&format!("s-{number}"), "evil", &change)
    });
    let victim = format!("{{completions: 80, deadline: {{within: 1h}}, {CORE}}}");
    let jobs: Vec<DeadlineJob> = suspended
        .chain([named("victim", "team", &victim)])
        .collect();
    let api = Apiserver::new(jobs[0].clone());
    let nodes = [fixtures::node("node-1", 100)];
    let process = Process::with_stores(&api, Stores::for_tests(jobs, vec![], &nodes));
    let view = observation::view(&process.context.shared);
    assert_eq!(
        launches(&view, &prime()),
        HashMap::from([("victim".to_owned(), 80)])
    );
}

#[tokio::test]
async fn requests_that_admission_added_count_for_later_launches() {
    let (api, process) = cluster(|job| {
        job.spec = fixtures::job("template: {spec: {containers: [{name: task, image: i}]}}").spec;
    });
    let cores = |process: &Process| {
        let view = observation::view(&process.context.shared);
        view.snapshot.jobs[0].demand.get("cpu")
    };
    assert_eq!(cores(&process), 0);
    process.plan(&api.job(), originals(1));
    process.reconcile(api.job()).await.unwrap();
    let name = pod_name(&api.job(), (0, 0));
    // A LimitRange of 1500m.
    let asked = json!({"requests": {"cpu": "1500m"}});
    let mut world = api.world.lock();
    let spec = world.pods.get_mut(&name).unwrap().spec.as_mut().unwrap();
    spec.containers[0].resources = serde_json::from_value(asked).unwrap();
    drop(world);
    api.run((0, 0));
    process.context.stores.show(api.pods());
    assert_eq!(cores(&process), 1500);
    let view = observation::view(&process.context.shared);
    assert_eq!(
        launches(&view, &policy()),
        HashMap::new(),
        "no more fit into two cores"
    );
}

#[tokio::test]
async fn a_lost_create_answer_delays_no_task_once_its_pod_has_ended() {
    let (api, process) = cluster(|job| {
        job.spec = fixtures::job(
            "{completions: 3, template: {spec: {containers: [{name: task, image: i}]}}}",
        )
        .spec;
    });
    let planned = |process: &Process| {
        process.context.stores.show(api.pods());
        let view = observation::view(&process.context.shared);
        launches(&view, &policy()).values().sum::<usize>()
    };
    api.script(|call| match &*call.words {
        "POST pod 0-0" => Fate::LostAfter,
        _ => Fate::Served,
    });
    process.plan(&api.job(), originals(1));
    process.look(&api).await.unwrap_err();
    // The watch shows the pod before the retry, and then its end.
    api.run((0, 0));
    assert_eq!(planned(&process), 1, "one, which tells");
    api.exit((0, 0), 0, clock::now());
    process.look(&api).await.unwrap();
    assert_eq!(planned(&process), 1);
    process.plan(&api.job(), vec![slice_of(1, AttemptKind::Original)]);
    process.look(&api).await.unwrap();
    assert_eq!(
        planned(&process),
        1,
        "the last one, since a pod was accepted"
    );
}

#[tokio::test]
async fn a_quota_allows_a_pod_for_each_that_ended_and_one_more() {
    let quota = "pods \"p\" is forbidden: exceeded quota: small";
    let (api, process) = cluster(|job| {
        job.spec = fixtures::job(
            "{completions: 6, template: {spec: {containers: [{name: task, image: i}]}}}",
        )
        .spec;
    });
    let planned = |process: &Process| {
        process.context.stores.show(api.pods());
        let view = observation::view(&process.context.shared);
        launches(&view, &policy()).values().sum::<usize>()
    };
    assert_eq!(planned(&process), 6);
    api.script(move |call| match &*call.words {
        "POST pod 2-0" => Fate::Refused(403, "Forbidden", quota),
        _ => Fate::Served,
    });
    process.plan(&api.job(), originals(6));
    process.look(&api).await.unwrap();
    let counts = |api: &Apiserver| api.job().status.as_ref().unwrap().attempts;
    assert_eq!(
        (
            api.pods().len(),
            counts(&api).refused,
            counts(&api).originals
        ),
        (2, 1, 3)
    );
    api.run((0, 0));
    api.run((1, 0));
    assert_eq!(planned(&process), 0, "as many as exist");
    api.exit((0, 0), 0, clock::now());
    process.look(&api).await.unwrap();
    assert_eq!(planned(&process), 1, "at once");
    let uid: JobUid = api.job().metadata.uid.as_deref().unwrap().into();
    process.plan(&api.job(), vec![slice_of(3, AttemptKind::Original)]);
    process.look(&api).await.unwrap();
    assert_eq!(planned(&process), 0);
    // The wait is over.
    process.context.job_memories.with(&uid, |memory| {
        assert!(memory.planned.creations.blocked().is_some());
        let later = clock::now().plus(Span::from_seconds(10));
        let count = Count {
            existing: 2,
            ..Count::default()
        };
        assert_eq!(
            memory.planned.creations.limits(count, later).attempts_max,
            Some(3)
        );
    });
}

#[tokio::test]
async fn a_clone_that_cannot_be_placed_counts_against_its_task() {
    let (api, process) = launched("", 1).await;
    api.run((0, 0));
    process.look(&api).await.unwrap();
    for number in [1, 2] {
        process.plan(&api.job(), vec![slice_of(0, AttemptKind::Clone)]);
        process.look(&api).await.unwrap();
        let id: AttemptId = (0, number);
        let name = pod_name(&api.job(), id);
        let words = "0/2 nodes are available: 2 node(s) had volume node affinity conflict.";
        answer(
            api.world.lock().pods.get_mut(&name).unwrap(),
            11,
            "Unschedulable",
            words,
        );
        process.context.stores.show(api.pods());
        let view = observation::view(&process.context.shared);
        assert_eq!(view.news.len(), 1, "its reconciler is reported");
        api.said();
        process.look(&api).await.unwrap();
        assert!(api.said().contains(&format!("DELETE pod 0-{number}")));
        let ledger = api.job().status.clone().unwrap().ledger.unwrap();
        let task = &ledger.tasks[&0];
        assert_eq!((task.clone_failures, task.failures), (number, 0));
        let kill = task.attempts.iter().find(|one| one.number == number);
        assert_eq!(kill.and_then(|one| one.kill), Some(KillKind::Replace));
        process.look(&api).await.unwrap();
    }
    let view = observation::view(&process.context.shared);
    assert_eq!(
        view.snapshot.jobs[0].tasks[0].clone_failures, 2,
        "no third one comes"
    );
}
