//! A namespace that is terminating accepts no new pod, and is gone only once every finalizer is. So shed counts ended
//! attempts and releases their pods, and tries again to create pods only once per wait (`context::pod_creation`).

use super::refusals::wait;
use super::*;

#[tokio::test]
async fn a_failed_pod_is_let_go_while_its_namespace_terminates() {
    let (api, process) = two_running("").await;
    api.exit((0, 0), 0, clock::now());
    let name = pod_name(&api.job(), (0, 0));
    if let Some(status) = &mut api.world.lock().pods.get_mut(&name).unwrap().status {
        status.phase = Some("Failed".to_owned());
    }
    let terminates =
        "unable to create new content in namespace team because it is being terminated";
    api.refuse("POST pod", 403, "Forbidden", terminates);
    process.look(&api).await.unwrap();
    assert_eq!(api.said(), ["PUT job status", "PATCH pod 0-0"]);
    let status = api.job().status.clone().unwrap();
    assert_eq!((status.attempts.failed, status.succeeded), (1, 0));
    process.plan(&api.job(), vec![launch(0, AttemptKind::Retry)]);
    api.exit((1, 0), 3, clock::now());
    let _refused = process.look(&api).await;
    let said = api.said();
    assert!(said.contains(&"PATCH pod 1-0".to_owned()), "{said:?}");
}

#[tokio::test]
async fn a_pod_that_no_scheduler_placed_ends_with_its_namespace() {
    let api = Apiserver::new(fixtures::job_of_age(60, "completions: 1"));
    let process = Process::start(&api);
    process.plan(&api.job(), originals(1));
    process.look(&api).await.unwrap();
    api.said();
    // The namespace's controller deletes its content, and nothing can be created there any more.
    let gone = "unable to create new content in namespace team because it is being terminated";
    api.refuse("POST pod", 403, "Forbidden", gone);
    for pod in api.world.lock().pods.values_mut() {
        pod.metadata.deletion_timestamp = Some(clock::time(clock::now()));
    }
    process.look(&api).await.unwrap();
    assert_eq!(api.said(), ["PUT job status", "PATCH pod 0-0"]);
    assert!(api.pods().is_empty());
    process.plan(&api.job(), vec![launch(0, AttemptKind::Retry)]);
    process.look(&api).await.unwrap();
    let tried = [
        "PUT job status",
        "POST pod 0-1",
        "PUT job status",
        "POST event PodForbidden",
    ];
    assert_eq!(api.said(), tried);
    assert!(wait(&process, &api) > 8.0, "once per wait");
    process.look(&api).await.unwrap();
    assert_eq!(api.said(), WAITS);
}
