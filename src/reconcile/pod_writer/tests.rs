use std::collections::HashMap;

use super::*;
use crate::fixtures;
use crate::reconcile::mock::{Apiserver, Fate, SLOW_NAMESPACE, pod_name, slow_webhook};

fn pods_of(api: &Apiserver) -> Api<Pod> {
    Api::namespaced(api.client.clone(), "team")
}

/// State of the writes of one test.
struct Shared {
    namespace: Arc<str>,
    places: WritePlaces,
    metrics: Metrics,
}

impl Shared {
    fn new() -> Self {
        Self {
            namespace: "team".into(),
            places: WritePlaces::default(),
            metrics: Metrics::new().unwrap(),
        }
    }

    fn writer(&self) -> PodWriter<'_> {
        PodWriter {
            namespace: &self.namespace,
            places: &self.places,
            metrics: &self.metrics,
        }
    }
}

async fn create(api: &Apiserver, pods: Vec<Pod>) -> Vec<Created> {
    let pods = pods.into_iter().map(Ok);
    Shared::new().writer().create(&pods_of(api), pods).await
}

async fn delete(api: &Apiserver, pods: &[PodRef]) -> Written {
    Shared::new().writer().delete(&pods_of(api), pods).await
}

async fn release(api: &Apiserver, pods: &[PodRef]) -> Written {
    Shared::new().writer().release(&pods_of(api), pods).await
}

fn pod(api: &Apiserver, task: u32) -> Pod {
    let mut pod = Pod::default();
    pod.metadata.name = Some(pod_name(&api.job(), (task, 0)));
    pod
}

fn apiserver() -> Apiserver {
    // No ledger records these pods. The job is being deleted, so no invariant fails.
    let mut job = fixtures::job("");
    job.metadata.deletion_timestamp = job.metadata.creation_timestamp.clone();
    Apiserver::new(job)
}

#[tokio::test]
async fn answers_follow_the_order_of_pods_and_include_untried_ones() {
    let api = apiserver();
    api.refuse("POST pod 4-0", 422, "Invalid", "no such field");
    let pods = (0..10).map(|task| pod(&api, task)).collect();
    let answers = create(&api, pods).await;
    let words: Vec<&str> = answers
        .iter()
        .map(|answer| match answer {
            Created::Ours => "ours",
            Created::Refused(_) => "refused",
            Created::Failed(_) => "failed",
            Created::NotTried => "not tried",
        })
        .collect();
    // Batches of 1, 2, 4: the refusal is in the third, and its other three writes were sent.
    assert_eq!(words[..4], ["ours"; 4]);
    assert_eq!(words[4], "refused");
    assert_eq!(words[5..7], ["ours"; 2]);
    assert_eq!(words[7..], ["not tried"; 3]);
    assert_eq!(api.said().len(), 7);
}

#[tokio::test]
async fn pods_are_made_when_their_batch_is_sent() {
    let api = apiserver();
    api.refuse("POST pod 3-0", 422, "Invalid", "no such field");
    let shared = Shared::new();
    let mut made = 0;
    let pods = (0..1000).map(|task| {
        made += 1;
        Ok(pod(&api, task))
    });
    let answers = shared.writer().create(&pods_of(&api), pods).await;
    assert_eq!(answers.len(), 1000);
    // Batches of 1, 2, 4.
    assert_eq!(made, 7);
}

#[tokio::test]
async fn a_conflicting_pod_that_is_gone_is_left_for_the_next_pass() {
    let api = apiserver();
    api.refuse("POST pod", 409, "AlreadyExists", "it exists");
    let pods = vec![pod(&api, 0)];
    let answers = create(&api, pods).await;
    assert!(matches!(answers[..], [Created::NotTried]), "{answers:?}");
    assert_eq!(api.said(), ["POST pod 0-0", "GET pod 0-0"]);
}

#[tokio::test]
async fn a_delete_that_fails_does_not_keep_the_others() {
    let api = apiserver();
    let pods: Vec<Pod> = (0..3).map(|task| pod(&api, task)).collect();
    create(&api, pods).await;
    let references: Vec<PodRef> = api
        .pods()
        .into_iter()
        .map(|pod| PodRef {
            name: pod.metadata.name.unwrap(),
            uid: pod.metadata.uid.unwrap(),
        })
        .collect();
    api.script(|call| match &*call.words {
        "DELETE pod 0-0" => Fate::Refused(500, "InternalError", "etcd is away"),
        _ => Fate::Served,
    });
    let result = delete(&api, &references).await;
    assert!(result.failure.is_some());
    assert_eq!(api.pods().len(), 1, "the other two are gone");
}

#[tokio::test]
async fn a_pod_of_another_uid_is_neither_deleted_nor_released() {
    let api = apiserver();
    let pods = vec![pod(&api, 0)];
    create(&api, pods).await;
    let before = api.pods();
    let stale = [PodRef {
        name: before[0].metadata.name.clone().unwrap(),
        uid: "of the pod before".to_owned(),
    }];
    assert!(delete(&api, &stale).await.failure.is_none());
    assert!(release(&api, &stale).await.failure.is_none());
    assert_eq!(api.pods(), before);
}

/// Answers the first `count` calls whose words begin with `words` with a conflict.
fn conflicts(api: &Apiserver, words: &'static str, mut count: u32) {
    api.script(move |call| {
        if !call.words.starts_with(words) || count == 0 {
            return Fate::Served;
        }
        count -= 1;
        Fate::Refused(409, "Conflict", "the object has been modified")
    });
}

async fn one_pod(api: &Apiserver) -> PodRef {
    let pods = vec![pod(api, 0)];
    create(api, pods).await;
    api.said();
    let metadata = api.pods().remove(0).metadata;
    PodRef {
        name: metadata.name.unwrap(),
        uid: metadata.uid.unwrap(),
    }
}

#[tokio::test]
async fn a_conflict_over_the_same_pod_is_tried_again() {
    let api = apiserver();
    let pod = one_pod(&api).await;
    conflicts(&api, "PATCH", 2);
    assert!(
        release(&api, std::slice::from_ref(&pod))
            .await
            .failure
            .is_none()
    );
    let patch_and_look = ["PATCH pod 0-0", "GET pod 0-0"];
    let said = api.said();
    assert_eq!(said[..2], patch_and_look);
    assert_eq!(said[2..4], patch_and_look);
    assert_eq!(said[4..], ["PATCH pod 0-0"]);
    conflicts(&api, "DELETE", 1);
    assert!(delete(&api, &[pod]).await.failure.is_none());
    let said = api.said();
    assert_eq!(said, ["DELETE pod 0-0", "GET pod 0-0", "DELETE pod 0-0"]);
    assert!(api.pods().is_empty());
}

#[tokio::test]
async fn conflicts_without_end_are_an_error_for_the_next_pass() {
    let api = apiserver();
    let pod = one_pod(&api).await;
    api.refuse("PATCH", 409, "Conflict", "the object has been modified");
    let result = release(&api, &[pod]).await;
    assert!(result.failure.is_some());
    assert_eq!(api.said().len(), 10, "five times a try and a look");
}

/// Fields that a Job hands on if its template has a field that this version does not know.
fn template_extras() -> TemplateExtras {
    let mut job = json!(fixtures::batch_job("completions: 3"));
    job["spec"]["template"]["spec"]["hardened"] = json!({"level": 3});
    let metadata = serde_json::from_value(job["metadata"].clone()).unwrap();
    crate::validate::template_extras::read(metadata, &job["spec"], &job["status"])
        .unwrap()
        .1
}

#[tokio::test]
async fn pods_are_created_with_what_is_not_known_of_their_template() {
    let api = apiserver();
    let pods = (0..2).map(|task| Pod {
        spec: Some(k8s_openapi::api::core::v1::PodSpec::default()),
        ..pod(&api, task)
    });
    let shared = Shared::new();
    let answers = create_with(&api.client, shared.writer(), &template_extras(), pods).await;
    assert!(matches!(answers[..], [Created::Ours, Created::Ours]));
    let body = api.call("POST pod 1-0").body;
    assert_eq!(body["spec"]["hardened"], json!({"level": 3}));
    assert_eq!(
        (&body["apiVersion"], &body["kind"]),
        (&json!("v1"), &json!("Pod"))
    );
    api.said();
    // Pods without a place for it are not created without it.
    let pods = [pod(&api, 2), pod(&api, 3)].into_iter();
    let answers = create_with(&api.client, shared.writer(), &template_extras(), pods).await;
    let [Created::Refused(blocked), Created::NotTried] = &answers[..] else {
        panic!("{answers:?}");
    };
    assert!(blocked.message.contains("template.spec.hardened"));
    assert!(api.said().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_pass_begins_stops_for_a_time_and_leaves_the_rest() {
    let api = apiserver();
    let shared = Shared::new();
    // Slow writes of the same namespace have all the places that it may have.
    let stops = &shared.places.stops;
    let taken: Vec<_> = std::iter::from_fn(|| stops.try_acquire(&shared.namespace)).collect();
    let give_back = async {
        tokio::time::sleep(TIME_OF_STOPS * 2).await;
        drop(taken);
    };
    let pods_api = pods_of(&api);
    let stale = [PodRef {
        name: "a".to_owned(),
        uid: "a".to_owned(),
    }];
    let deleted = shared.writer().delete(&pods_api, &stale);
    let ((), deleted) = tokio::join!(give_back, deleted);
    assert!(deleted.is_cut_short && deleted.failure.is_none());
    assert!(api.said().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_pass_begins_creations_for_a_time_and_leaves_the_rest() {
    let (client, created) = slow_webhook(HashMap::new());
    let pods_api: Api<Pod> = Api::namespaced(client, SLOW_NAMESPACE);
    let pods = (0..3).map(|_| Ok(Pod::default()));
    let answers = Shared::new().writer().create(&pods_api, pods).await;
    assert!(
        matches!(
            answers[..],
            [Created::Ours, Created::NotTried, Created::NotTried]
        ),
        "{answers:?}"
    );
    assert_eq!(created.lock().len(), 1);
}
