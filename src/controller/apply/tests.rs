use super::*;
use crate::controller::mock::{Apiserver, Fate, pod_name};
use crate::fixtures;

const UID: &str = "11111111-2222-3333-4444-555555555555";

fn pods_of(api: &Apiserver) -> Api<Pod> {
    Api::namespaced(api.client.clone(), "team")
}

fn pod(api: &Apiserver, task: u32) -> Pod {
    let mut pod = Pod::default();
    pod.metadata.name = Some(pod_name(&api.job(), (task, 0)));
    pod
}

fn apiserver() -> Apiserver {
    // Whoever creates these pods recorded nothing: the job is going, so nobody minds.
    let mut job = fixtures::job("");
    job.metadata.deletion_timestamp = job.metadata.creation_timestamp.clone();
    Apiserver::new(job)
}

#[tokio::test]
async fn answers_come_in_the_order_of_the_pods_and_what_was_not_tried_is_said() {
    let api = apiserver();
    api.refuse("POST pod 4-0", 422, "Invalid", "no such field");
    let pods = (0..10).map(|task| pod(&api, task)).collect();
    let answers = create(&pods_of(&api), UID, pods, &Metrics::new()).await;
    let words: Vec<&str> = answers
        .iter()
        .map(|answer| match answer {
            Created::Ours => "ours",
            Created::Refused(_) => "refused",
            Created::Failed(_) => "failed",
            Created::NotTried => "not tried",
        })
        .collect();
    // Batches of 1, 2, 4: the refusal is in the third, the other three of which were sent.
    assert_eq!(words[..4], ["ours"; 4]);
    assert_eq!(words[4], "refused");
    assert_eq!(words[5..7], ["ours"; 2]);
    assert_eq!(words[7..], ["not tried"; 3]);
    assert_eq!(api.said().len(), 7);
}

#[tokio::test]
async fn a_pod_that_was_in_the_way_and_is_gone_by_now_is_left_for_the_next_pass() {
    let api = apiserver();
    api.refuse("POST pod", 409, "AlreadyExists", "it exists");
    let pods = vec![pod(&api, 0)];
    let answers = create(&pods_of(&api), UID, pods, &Metrics::new()).await;
    assert!(matches!(answers[..], [Created::NotTried]), "{answers:?}");
    assert_eq!(api.said(), ["POST pod 0-0", "GET pod 0-0"]);
}

#[tokio::test]
async fn a_delete_that_fails_does_not_keep_the_others() {
    let api = apiserver();
    let pods: Vec<Pod> = (0..3).map(|task| pod(&api, task)).collect();
    create(&pods_of(&api), UID, pods, &Metrics::new()).await;
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
    let result = delete(&pods_of(&api), &references, &Metrics::new()).await;
    assert!(result.is_err());
    assert_eq!(api.pods().len(), 1, "the other two are gone");
}

#[tokio::test]
async fn a_pod_of_another_uid_is_neither_deleted_nor_released() {
    let api = apiserver();
    let pods = vec![pod(&api, 0)];
    create(&pods_of(&api), UID, pods, &Metrics::new()).await;
    let before = api.pods();
    let stale = [PodRef {
        name: before[0].metadata.name.clone().unwrap(),
        uid: "of the pod before".to_owned(),
    }];
    delete(&pods_of(&api), &stale, &Metrics::new())
        .await
        .unwrap();
    release(&pods_of(&api), &stale, &Metrics::new())
        .await
        .unwrap();
    assert_eq!(api.pods(), before);
}
