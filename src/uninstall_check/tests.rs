use serde_json::json;

use super::*;
use crate::fixtures;
use crate::reconcile::mock::{Apiserver, Fate};

const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: [&str; 2] = ["LIST jobs", "LIST pods"];

/// A cluster with one job of this status and the running attempts 0-0 to `attempts`-0.
fn cluster(status: serde_json::Value, attempts: u32) -> Apiserver {
    let job = fixtures::changed(&fixtures::job(""), &[("/status", status)]);
    let api = Apiserver::new(serde_json::from_value(job).unwrap());
    for task in 0..attempts {
        let pod = fixtures::attempt_pod(&api.job(), (task, 0), "node-1", "Running");
        add(&api, pod);
    }
    api
}

fn add(api: &Apiserver, pod: Pod) {
    let name = pod.metadata.name.clone().unwrap();
    api.world.lock().pods.insert(name, pod);
}

fn mark_deleted(api: &Apiserver) {
    let now = crate::clock::time(api.now());
    let mut world = api.world.lock();
    world.job.as_mut().unwrap().metadata.deletion_timestamp = Some(now);
}

async fn refusal(api: &Apiserver) -> String {
    format!("{:#}", check(&api.client, PATIENCE).await.unwrap_err())
}

#[tokio::test(start_paused = true)]
async fn an_unfinished_job_is_refused_at_once_by_name() {
    for phase in ["Pending", "Running", "Suspended", "Completing", "Failing"] {
        let api = cluster(json!({"phase": phase}), 2);
        let begun = Instant::now();
        let said = refusal(&api).await;
        assert!(
            said.starts_with(
                "shed is not uninstalled, because the cluster still has unfinished jobs (DeadlineJob team/count) and \
                 pods with a finalizer of shed (team/count-"
            ),
            "{said}"
        );
        for way in ["Wait until", "delete them", "helm uninstall --no-hooks"] {
            assert!(said.contains(way), "{way}: {said}");
        }
        assert_eq!(begun.elapsed(), Duration::ZERO);
        // It reads and changes nothing.
        assert_eq!(api.said(), LOOK);
    }
}

/// No operator has seen it, or it is of a version that this one cannot decode.
#[tokio::test(start_paused = true)]
async fn a_job_without_a_phase_is_unfinished() {
    let api = cluster(json!({}), 0);
    let said = refusal(&api).await;
    assert!(said.contains("(DeadlineJob team/count)."), "{said}");
}

#[tokio::test(start_paused = true)]
async fn an_adopted_job_goes_by_its_own_name() {
    let job = fixtures::batch_job("");
    let api = Apiserver::new(fixtures::companion(&job));
    add(&api, fixtures::job_pod(&job));
    let said = refusal(&api).await;
    assert!(
        said.contains("unfinished jobs (Job team/pi) and pods"),
        "{said}"
    );
    assert!(said.contains("of shed (team/pi-"), "{said}");
}

#[tokio::test(start_paused = true)]
async fn ended_jobs_do_not_matter() {
    for phase in ["Complete", "Failed"] {
        let api = cluster(json!({"phase": phase}), 0);
        // The built-in controller's, and that of another program.
        for finalizer in ["batch.kubernetes.io/job-tracking", "example.com/backup"] {
            let mut pod = Pod::default();
            pod.metadata.name = Some(finalizer.replace('/', "-"));
            pod.metadata.finalizers = Some(vec![finalizer.to_owned()]);
            add(&api, pod);
        }
        check(&api.client, PATIENCE).await.unwrap();
        assert_eq!(api.said(), LOOK);
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_being_deleted_may_take_its_time() {
    let api = cluster(json!({"phase": "Running"}), 1);
    mark_deleted(&api);
    let goes = async {
        sleep(PATIENCE / 2).await;
        api.world.lock().job = None;
        sleep(PATIENCE / 4).await;
        api.world.lock().pods.clear();
    };
    let begun = Instant::now();
    let (checked, ()) = tokio::join!(check(&api.client, PATIENCE), goes);
    checked.unwrap();
    assert!(begun.elapsed() >= PATIENCE * 3 / 4);
}

/// The labels of one pod were removed, which keeps no operator from releasing it.
#[tokio::test(start_paused = true)]
async fn what_does_not_go_in_time_is_named() {
    let api = cluster(json!({"phase": "Running"}), 12);
    api.world.lock().page = 5;
    mark_deleted(&api);
    if let Some(pod) = api.world.lock().pods.values_mut().next() {
        pod.metadata.labels = None;
    }
    let begun = Instant::now();
    let said = refusal(&api).await;
    assert!(
        said.contains("jobs that are being deleted (DeadlineJob team/count) and pods"),
        "{said}"
    );
    assert!(said.contains(" and 2 more)"), "{said}");
    assert!((PATIENCE..PATIENCE + 2 * PERIOD).contains(&begun.elapsed()));
}

#[tokio::test(start_paused = true)]
async fn a_role_that_comes_late_is_waited_for() {
    let api = cluster(json!({"phase": "Complete"}), 0);
    let mut refusals = 3;
    api.script(move |_| match refusals {
        0 => Fate::Served,
        _ => {
            refusals -= 1;
            Fate::Refused(403, "Forbidden", "cannot list")
        }
    });
    check(&api.client, PATIENCE).await.unwrap();

    api.refuse("LIST pods", 403, "Forbidden", "cannot list pods");
    let said = refusal(&api).await;
    assert!(
        said.contains("could not be listed") && said.contains("cannot list pods"),
        "{said}"
    );
    assert!(said.contains("--no-hooks"), "{said}");
}

#[tokio::test(start_paused = true)]
async fn without_the_definition_there_are_no_jobs() {
    let api = cluster(json!({"phase": "Running"}), 0);
    api.refuse(
        "LIST jobs",
        404,
        "NotFound",
        "the server could not find the requested resource",
    );
    check(&api.client, PATIENCE).await.unwrap();
}
