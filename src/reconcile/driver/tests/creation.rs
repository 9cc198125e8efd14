//! Pods that cannot be created: retries, their times, and the reports to users.

use super::refusals::{QUOTA, limits, refused, true_for, wait};
use super::*;
use crate::context::placement::Placement;
use crate::context::pod_creation::{Count, Creations};

#[tokio::test]
async fn a_repeated_create_failure_is_reported_and_retried_less_often() {
    let api = Apiserver::new(fixtures::job_of_age(0, "completions: 2"));
    let process = Process::start(&api);
    let message = "failed calling webhook \"w\": no endpoints available";
    api.refuse("POST pod", 500, "InternalError", message);
    process.plan(&api.job(), originals(2));
    process.look(&api).await.unwrap_err();
    assert_eq!(api.said(), ["PUT job status", "POST pod 0-0"]);
    process.look(&api).await.unwrap_err();
    let reported = [
        "POST pod 0-0",
        "PUT job status",
        "POST event PodCreationFailed",
    ];
    assert_eq!(api.said(), reported);
    let blocked = api.condition(api::ATTEMPTS_BLOCKED);
    assert_eq!(blocked, true_for("PodCreationFailed"));
    // The pass that follows at once, for its own write, requests nothing.
    let wake = process.look(&api).await.unwrap();
    assert_eq!(api.said(), WAITS);
    assert!(format!("{wake:?}").contains("Some(3."), "{wake:?}");
    // No more launches are recorded, and the recorded ones hold no slot.
    let view = crate::planner::observation::view(&process.context.shared);
    let job = &view.snapshot.jobs[0];
    assert!(
        job.tasks
            .iter()
            .all(|task| !job.takes_capacity(&task.attempts[0]))
    );
    api.script(|_| Fate::Served);
    let uid: Arc<str> = api.job().metadata.uid.as_deref().unwrap().into();
    process.context.job_memories.with(&uid, |memory| {
        memory.planned.creations = Creations::default();
        // There is no node in this world either.
        memory.placement = Placement::default();
    });
    process.look(&api).await.unwrap();
    assert_eq!(api.said(), ["POST pod 0-0", "POST pod 1-0"]);
    api.run((0, 0));
    process.look(&api).await.unwrap();
    let blocked = api.condition(api::ATTEMPTS_BLOCKED).unwrap();
    assert_eq!(blocked.0, "False");
}

#[tokio::test]
async fn a_new_namespace_gets_time_for_its_service_account() {
    let message =
        "error looking up service account team/default: serviceaccount \"default\" not found";
    let (api, process) = refused(403, "Forbidden", message).await;
    assert_eq!(
        api.said(),
        ["PUT job status", "POST pod 0-0", "PUT job status"]
    );
    assert_eq!(api.condition(api::ATTEMPTS_BLOCKED), None, "it passes");
    assert!(wait(&process, &api) <= 1.0);
    assert_eq!(limits(&process, &api).attempts_max, Some(1), "one is tried");
}

#[tokio::test]
async fn a_clone_that_is_refused_holds_off_clones_alone() {
    let (api, process) = two_running("").await;
    api.refuse("POST pod", 403, "Forbidden", QUOTA);
    process.plan(&api.job(), vec![launch(0, AttemptKind::Clone)]);
    process.look(&api).await.unwrap();
    let limits = process
        .planned(&api.job())
        .creations
        .limits(Count::default(), clock::now());
    assert_eq!((limits.attempts_max, limits.not_before), (None, None));
    assert!(limits.clones_not_before.is_some());
    let counts = api.job().status.as_ref().unwrap().attempts;
    assert_eq!((counts.clones, counts.refused), (1, 1));
}
