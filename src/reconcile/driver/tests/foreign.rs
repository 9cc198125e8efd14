//! Pods that only look like attempts, and attempts that don't look like it.

use super::ends::overdue;
use crate::adopt::AdoptJobs;
use k8s_openapi::api::core::v1::Pod;

use super::*;
use crate::cluster::Stores;

/// The difference between a copy and the attempt that it is made from.
type Change = fn(&mut Pod);

/// Copies of attempt (0, 0), which would have succeeded if they counted; each is disowned for one reason.
fn copies(api: &Apiserver) -> Vec<(&'static str, Pod)> {
    let name = pod_name(&api.job(), (0, 0));
    let real = api.world.lock().pods[&name].clone();
    let changes: [(&str, Change); 4] = [
        ("another namespace, the labels alone", |pod| {
            pod.metadata.namespace = Some("evil".to_owned());
            pod.metadata.owner_references = None;
        }),
        ("another namespace, owner and name too", |pod| {
            pod.metadata.namespace = Some("evil".to_owned());
        }),
        ("the same namespace, no owner", |pod| {
            pod.metadata.name = Some("a-debug-copy".to_owned());
            pod.metadata.owner_references = None;
        }),
        ("the same namespace and owner, another name", |pod| {
            pod.metadata.name = Some("a-debug-copy".to_owned());
        }),
    ];
    let copy = |(what, change): (&'static str, Change)| {
        let mut pod = real.clone();
        pod.metadata.uid = Some("copy".to_owned());
        pod.metadata.finalizers = None;
        let ended = serde_json::json!({"phase": "Succeeded", "containerStatuses": [{"name": "task",
            "ready": false, "restartCount": 0, "image": "i", "imageID": "i",
            "state": {"terminated": {"exitCode": 0, "finishedAt": clock::time(clock::now())}}}]});
        pod.status = serde_json::from_value(ended).unwrap();
        change(&mut pod);
        (what, pod)
    };
    changes.map(copy).into()
}

/// The watch shows this pod and the job's own.
fn show_with(api: &Apiserver, process: &Process, pod: &Pod) {
    let mut pods = api.pods();
    pods.push(pod.clone());
    process.context.stores.show(pods);
}

#[tokio::test]
async fn a_succeeded_copy_completes_no_task_and_hides_no_attempt() {
    let (api, process) = two_running("").await;
    for (what, copy) in copies(&api) {
        show_with(&api, &process, &copy);
        process.reconcile(api.job()).await.unwrap();
        assert_eq!(api.said(), WAITS, "{what}");
        // It is deleted, and the attempt stays.
        process.look(&api).await.unwrap();
        assert_eq!(api.said(), WAITS, "{what}: gone");
    }
    assert_eq!(api.job().status.as_ref().unwrap().succeeded, 0);
    api.exit((0, 0), 0, clock::now());
    let (_, copy) = copies(&api).swap_remove(0);
    show_with(&api, &process, &copy);
    process.reconcile(api.job()).await.unwrap();
    assert_eq!(api.said(), ["PUT job status", "PATCH pod 0-0"]);
    assert_eq!(api.job().status.as_ref().unwrap().succeeded, 1);
}

#[tokio::test]
async fn the_live_read_ignores_a_succeeded_copy_at_the_deadline() {
    for position in 2..4 {
        let (api, process) = overdue("").await;
        let (what, copy) = copies(&api).swap_remove(position);
        let name = copy.metadata.name.clone().unwrap();
        process.context.stores.show(api.pods());
        api.world.lock().pods.insert(name.clone(), copy);
        process.reconcile(api.job()).await.unwrap();
        // The fate is reported once its attempts are seen as deleted.
        process.look(&api).await.unwrap();
        assert_eq!(
            api.condition(api::DEADLINE_MISSED).unwrap().0,
            "True",
            "{what}"
        );
        assert_eq!(api.job().status.as_ref().unwrap().succeeded, 0, "{what}");
        assert!(
            api.world.lock().pods.contains_key(&name),
            "{what}: left alone"
        );
    }
}

/// Every label is taken off an attempt.
fn strip(api: &Apiserver, id: (u32, u32)) {
    let name = pod_name(&api.job(), id);
    let mut world = api.world.lock();
    world.pods.get_mut(&name).unwrap().metadata.labels = None;
}

#[tokio::test]
async fn an_attempt_without_labels_runs_on_wins_and_is_let_go() {
    let (api, process) = two_running("").await;
    strip(&api, (0, 0));
    process.look(&api).await.unwrap();
    assert_eq!(api.said(), WAITS, "its task does not run twice");
    api.exit((0, 0), 0, clock::now());
    process.look(&api).await.unwrap();
    assert_eq!(api.said(), ["PUT job status", "PATCH pod 0-0"]);
    let status = api.job().status.clone().unwrap();
    assert_eq!((status.succeeded, status.attempts.retries), (1, 0));
}

#[tokio::test]
async fn an_unlabeled_attempt_that_finished_counts_at_the_deadline() {
    let (api, process) = overdue("").await;
    process.context.stores.show(api.pods());
    for id in [(0, 0), (1, 0)] {
        api.exit(id, 0, Instant(clock::now().0 - 30_000));
        strip(&api, id);
    }
    process.reconcile(api.job()).await.unwrap();
    assert_eq!(api.said()[..3], ["LIST pods", "GET pod 0-0", "GET pod 1-0"]);
    assert_eq!(api.condition(api::DEADLINE_MISSED), None);
    assert_eq!(api.job().status.as_ref().unwrap().succeeded, 2);
}

#[tokio::test]
async fn an_attempt_without_its_owner_is_lost_and_its_task_continues() {
    let (api, process) = two_running("").await;
    let name = pod_name(&api.job(), (0, 0));
    let pod = |api: &Apiserver| api.world.lock().pods[&name].clone();
    let mut freed = pod(&api);
    freed.metadata.owner_references = None;
    api.world.lock().pods.insert(name.clone(), freed);
    process.plan(&api.job(), vec![launch(0, AttemptKind::Retry)]);
    process.look(&api).await.unwrap();
    assert_eq!(api.said(), ["PUT job status", "POST pod 0-1"]);
    let status = api.job().status.clone().unwrap();
    assert_eq!((status.attempts.disrupted, status.attempts.failed), (1, 0));
    assert!(
        pod(&api).metadata.deletion_timestamp.is_none(),
        "it is not the job's to delete"
    );
}

#[tokio::test]
async fn a_new_process_does_not_take_a_freed_pod_for_its_attempt() {
    let (api, _) = two_running("").await;
    for pod in api.world.lock().pods.values_mut() {
        pod.metadata.owner_references = None;
    }
    let jobs = vec![(*api.job()).clone()];
    let process = Process::with_stores(&api, Stores::for_tests(jobs, api.pods(), &[]));
    process.reconcile(api.job()).await.unwrap();
    assert_eq!(
        api.condition(api::ATTEMPTS_BLOCKED).unwrap(),
        ("True".to_owned(), "PodCreationFailed".to_owned())
    );
}

#[tokio::test]
async fn annotations_of_shed_on_pods_are_reported_once() {
    let template = "template: {metadata: {annotations: {shed.dev/deadline: 10s, example.com/a: b}}, \
        spec: {containers: [{name: task, image: i}]}}";
    let api = Apiserver::new(fixtures::job_of_age(0, template));
    let process = Process::start(&api);
    process.plan(&api.job(), originals(2));
    process.look(&api).await.unwrap();
    let note = api.call("POST event MisplacedAnnotation").body["note"].to_string();
    assert!(
        note.contains("the annotations shed.dev/deadline have no effect"),
        "{note}"
    );
    api.said();
    process.plan(&api.job(), vec![launch(2, AttemptKind::Original)]);
    process.look(&api).await.unwrap();
    assert!(!api.said().iter().any(|said| said.contains("event")));
}

/// As Airflow creates it: the annotations of the Job are on its pods too.
#[tokio::test]
async fn annotations_that_the_job_has_too_are_not_reported() {
    let template = "{metadata: {annotations: {shed.dev/deadline: 1h, shed.dev/on-miss: Fail}}, \
        spec: {restartPolicy: Never, containers: [{name: task, image: i}]}}";
    let mut batch = fixtures::batch_job(&format!("completions: 1, template: {template}"));
    batch.metadata.annotations = Some([("shed.dev/deadline".into(), "1h".into())].into());
    let mut companion = fixtures::companion(&batch);
    companion.metadata.generation = Some(1);
    let api = Apiserver::new(companion);
    let stores = Stores::for_tests(vec![(*api.job()).clone()], api.pods(), &[]);
    let process = Process::with_stores(&api, stores.adopting(AdoptJobs::All, vec![batch]));
    process.plan(&api.job(), originals(1));
    process.look(&api).await.unwrap();
    let note = api.call("POST event MisplacedAnnotation").body["note"].to_string();
    assert!(
        note.contains("the annotations shed.dev/on-miss have no effect"),
        "{note}"
    );
}

#[tokio::test]
async fn reserved_labels_of_a_template_are_named_once() {
    let template = "template: {metadata: {labels: {shed.dev/task: '1'}, annotations: \
        {batch.kubernetes.io/job-completion-index: '1'}}, spec: {containers: [{name: task, image: i}]}}";
    let api = Apiserver::new(fixtures::job_of_age(0, template));
    let process = Process::start(&api);
    process.plan(&api.job(), originals(2));
    process.look(&api).await.unwrap();
    let note = api.call("POST event").body["note"].to_string();
    for field in [
        "labels[shed.dev/task]",
        "annotations[batch.kubernetes.io/job-completion-index]",
    ] {
        assert!(note.contains(field), "{note}");
    }
    let reported = |said: Vec<String>| said.iter().filter(|words| words.contains("event")).count();
    assert_eq!(reported(api.said()), 1);
    process.plan(&api.job(), vec![launch(2, AttemptKind::Original)]);
    process.look(&api).await.unwrap();
    assert_eq!(reported(api.said()), 0);
}
