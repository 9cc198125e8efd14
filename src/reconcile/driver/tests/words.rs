//! Causes that conditions and events name.

use serde_json::json;
use shed_core::time::Span;

use super::*;

/// The message of a condition that is true.
fn words(api: &Apiserver, type_: &str) -> Option<String> {
    let status = api.job().status.clone()?;
    let mut conditions = status.conditions.into_iter();
    let found = conditions.find(|one| one.type_ == type_ && one.status == "True");
    found.map(|found| found.message)
}

/// The volume of the pod is missing: it has a node since then, and its kubelet reports nothing else.
fn await_volume(api: &Apiserver, id: (u32, u32)) {
    let placed = clock::time(api.now());
    let name = pod_name(&api.job(), id);
    let status = json!({
        "phase": "Pending",
        "conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": placed}],
        "containerStatuses": [{"name": "task", "ready": false, "restartCount": 0, "image": "i", "imageID": "",
            "state": {"waiting": {"reason": "ContainerCreating"}}}],
    });
    api.place(id, "node-1");
    let mut world = api.world.lock();
    let pod = world.pods.get_mut(&name).unwrap();
    pod.status = serde_json::from_value(status).unwrap();
}

#[tokio::test]
async fn a_pod_whose_volume_is_missing_is_reported_after_a_minute() {
    let api = Apiserver::new(fixtures::job_of_age(
        0,
        "{completions: 1, onMiss: Continue}",
    ));
    let process = Process::start(&api);
    process.plan(&api.job(), originals(1));
    process.look(&api).await.unwrap();
    await_volume(&api, (0, 0));
    process.look(&api).await.unwrap();
    assert_eq!(words(&api, api::ATTEMPTS_BLOCKED), None);
    let clock = &process.context.clock;
    clock.skip_for_tests(Span::from_seconds(61));
    process.look(&api).await.unwrap();
    let reported = words(&api, api::ATTEMPTS_BLOCKED).unwrap();
    let pod = pod_name(&api.job(), (0, 0));
    assert!(
        reported.starts_with(&format!(
            "no container has started in pod {pod} on node node-1 since "
        )) && reported.contains("kubectl describe pod"),
        "{reported}"
    );
    assert!(
        api.said()
            .contains(&"POST event ContainersNotStarted".to_owned())
    );
    // Another process tells the same, and the condition ends with the first container.
    let next = Process::start(&api);
    next.context.clock.skip_for_tests(Span::from_seconds(61));
    next.look(&api).await.unwrap();
    assert_eq!(words(&api, api::ATTEMPTS_BLOCKED), Some(reported));
    api.run((0, 0));
    next.look(&api).await.unwrap();
    assert_eq!(words(&api, api::ATTEMPTS_BLOCKED), None);
}

#[tokio::test]
async fn a_fenced_task_that_requests_no_commit_learns_the_cause() {
    let fenced =
        "{completions: 1, idempotency: Fenced, progress: {file: {}}, backoffLimitPerIndex: 0}";
    let api = Apiserver::new(fixtures::job_of_age(60, fenced));
    let process = Process::start(&api);
    process.plan(&api.job(), originals(1));
    process.look(&api).await.unwrap();
    api.run((0, 0));
    process.look(&api).await.unwrap();
    api.exit((0, 0), 0, clock::now());
    api.said();
    for _ in 0..4 {
        process.look(&api).await.unwrap();
    }
    let said = api.said();
    let event = "POST event CommitNotRequested".to_owned();
    assert!(said.contains(&event), "{said:?}");
    for type_ in [api::FAILURE_TARGET, api::FAILED] {
        let failed = words(&api, type_).unwrap();
        assert!(
            failed.contains("tasks 0 failed for good")
                && failed.ends_with("never requested a commit grant, so they count as failed"),
            "{failed}"
        );
    }
    // An ordinary failure has no such words.
    let api = Apiserver::new(fixtures::job_of_age(60, fenced));
    let process = Process::start(&api);
    process.plan(&api.job(), originals(1));
    process.look(&api).await.unwrap();
    api.exit((0, 0), 1, clock::now());
    for _ in 0..4 {
        process.look(&api).await.unwrap();
    }
    let failed = words(&api, api::FAILED).unwrap();
    assert!(!failed.contains("commit"), "{failed}");
    assert!(!api.said().contains(&event));
}
