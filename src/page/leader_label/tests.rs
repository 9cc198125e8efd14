//! Pods of an apiserver in memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use http::{Method, Request, Response};
use kube::client::Body;

use super::*;

/// The pods and whether they have the label, and the changes so far.
#[derive(Default)]
struct Pods {
    labelled: BTreeMap<String, bool>,
    patches: Vec<String>,
}

fn apiserver(pods: &[(&str, bool)]) -> (Client, Arc<Mutex<Pods>>) {
    let (service, mut handle) = tower_test::mock::pair::<Request<Body>, Response<Body>>();
    let labelled = pods.iter().map(|(name, has)| ((*name).to_owned(), *has));
    let world = Arc::new(Mutex::new(Pods {
        labelled: labelled.collect(),
        ..Pods::default()
    }));
    let served = Arc::clone(&world);
    tokio::spawn(async move {
        while let Some((request, respond)) = handle.next_request().await {
            let (parts, body) = request.into_parts();
            let body = body.collect_bytes().await.unwrap();
            let path = parts.uri.path();
            assert!(path.starts_with("/api/v1/namespaces/shed-system/pods"));
            let mut world = served.lock().unwrap();
            let metadata = |name: &str| {
                json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
                    "metadata": {"name": name, "namespace": "shed-system"}})
            };
            let (code, answer) = if parts.method == Method::GET {
                let query = parts.uri.query().unwrap_or_default();
                assert!(
                    query.contains("labelSelector=shed.dev%2Fleader%3Dtrue"),
                    "{query}"
                );
                let with = world.labelled.iter().filter(|(_, has)| **has);
                let items: Vec<Value> = with.map(|(name, _)| metadata(name)).collect();
                let list = json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList",
                    "metadata": {}, "items": items});
                (200, list)
            } else {
                let name = path.rsplit('/').next().unwrap().to_owned();
                let patch: Value = serde_json::from_slice(&body).unwrap();
                let value = &patch["metadata"]["labels"][LABEL_LEADER];
                world.patches.push(format!("{name} {value}"));
                match world.labelled.get_mut(&name) {
                    Some(has) => {
                        *has = *value == "true";
                        (200, metadata(&name))
                    }
                    None => (
                        404,
                        json!({"kind": "Status", "code": 404, "status": "Failure",
                        "reason": "NotFound", "message": ""}),
                    ),
                }
            };
            let answer = Body::from(answer.to_string().into_bytes());
            let response = Response::builder().status(code).body(answer).unwrap();
            respond.send_response(response);
        }
    });
    (Client::new(service, "shed-system"), world)
}

#[tokio::test(start_paused = true)]
async fn the_label_moves_to_the_leader_and_stays_there() {
    let (client, world) = apiserver(&[("shed-0", true), ("shed-1", false), ("shed-2", true)]);
    let label = LeaderLabel::new(client, "shed-1".to_owned());
    let keeper = tokio::spawn(label.clone().keep());
    sleep(PERIOD * 3).await;
    let moved = ["shed-0 null", "shed-2 null", "shed-1 \"true\""];
    assert_eq!(world.lock().unwrap().patches, moved, "and nothing more");
    // Another client moves it.
    world
        .lock()
        .unwrap()
        .labelled
        .insert("shed-0".to_owned(), true);
    sleep(PERIOD * 2).await;
    assert_eq!(world.lock().unwrap().patches.len(), moved.len() + 1);
    keeper.abort();
    label.take_off().await;
    let world = world.lock().unwrap();
    assert!(world.labelled.values().all(|has| !has));
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_gone_is_no_obstacle() {
    let (client, world) = apiserver(&[]);
    let label = LeaderLabel::new(client, "shed-1".to_owned());
    label.set("shed-0", Value::Null).await.unwrap();
    label.take_off().await;
    assert_eq!(
        world.lock().unwrap().patches,
        ["shed-0 null", "shed-1 null"]
    );
}
