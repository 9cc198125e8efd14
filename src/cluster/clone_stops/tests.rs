use std::collections::VecDeque;

use http::{Request, Response};
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::*;

fn namespace(name: &str, value: Option<&str>) -> PartialObjectMeta<Namespace> {
    let annotations = value.map(|value| json!({ ANNOTATION_CLONES: value }));
    let object = json!({"metadata": {"name": name, "annotations": annotations}});
    serde_json::from_value(object).unwrap()
}

/// What is known after a list of these namespaces.
fn listed(values: &[(&str, &str)]) -> Watched {
    let mut watched = Watched::of("shed");
    assert!(watched.take(Event::Init).is_none());
    for (name, value) in values {
        let event = Event::InitApply(namespace(name, Some(value)));
        assert!(watched.take(event).is_none());
    }
    assert!(watched.take(Event::InitDone).is_some());
    watched
}

#[test]
fn the_annotation_stops_the_clones_of_its_namespace() {
    let mut watched = listed(&[("team", "stop")]);
    let stop = CloneStop::Namespace("team");
    assert_eq!(watched.known.of("team"), Some(stop));
    assert_eq!(watched.known.of("other"), None);
    let removed = Event::Apply(namespace("team", None));
    assert_eq!(watched.take(removed).unwrap().of("team"), None);
    let again = Event::Apply(namespace("team", Some("stop")));
    assert_eq!(watched.take(again).unwrap().of("team"), Some(stop));
    let deleted = Event::Delete(namespace("team", Some("stop")));
    assert_eq!(watched.take(deleted).unwrap().of("team"), None);
}

#[test]
fn the_annotation_of_the_own_namespace_stops_all_clones() {
    let known = listed(&[("team", "stop"), ("shed", "stop")]).known;
    for namespace in ["team", "other", "shed"] {
        assert_eq!(known.of(namespace), Some(CloneStop::Cluster("shed")));
    }
}

#[test]
fn other_values_have_no_effect_and_are_listed() {
    let mut watched = listed(&[("team", "Stop"), ("shed", ""), ("a", "stop")]);
    let known = &watched.known;
    assert_eq!((known.of("team"), known.of("shed")), (None, None));
    let ignored: Vec<(&str, &str)> = known.ignored().map(|(n, v)| (&**n, &**v)).collect();
    assert_eq!(ignored, [("shed", ""), ("team", "Stop")]);
    let long = namespace("long", Some(&"stop".repeat(1000)));
    let known = watched.take(Event::Apply(long)).unwrap();
    let kept = known.values["long"].len();
    assert_eq!((known.of("long"), kept), (None, VALUE_MAX));
}

/// An apiserver that gives these answers to lists, in turn, and the queries that it got. Watches get no answer.
fn apiserver(answers: Vec<(u16, Value)>) -> (Client, Arc<Mutex<Vec<String>>>) {
    let (service, mut handle) = tower_test::mock::pair::<Request<Body>, Response<Body>>();
    let said: Arc<Mutex<Vec<String>>> = Arc::default();
    let heard = Arc::clone(&said);
    let mut answers = VecDeque::from(answers);
    tokio::spawn(async move {
        let mut open = Vec::new();
        while let Some((request, respond)) = handle.next_request().await {
            let query = request.uri().query().unwrap_or_default();
            if query.contains("watch=true") {
                open.push(respond);
                continue;
            }
            let accept = request.headers()[http::header::ACCEPT].to_str().unwrap();
            let is_metadata = accept.contains("as=PartialObjectMetadata");
            let is_own = query.contains("fieldSelector=metadata.name%3Dshed");
            let words = format!("metadata: {is_metadata}, own: {is_own}");
            heard.lock().push(words);
            let (code, body) = answers.pop_front().unwrap_or((500, json!({})));
            let response = Response::builder().status(code);
            let body = Body::from(body.to_string().into_bytes());
            respond.send_response(response.body(body).unwrap());
        }
    });
    (Client::new(service, "shed"), said)
}

fn list(values: &[(&str, &str)]) -> (u16, Value) {
    let items = values.iter();
    let items = items.map(|(name, value)| json!(namespace(name, Some(value))));
    let items: Vec<Value> = items.collect();
    let list = json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList",
        "metadata": {"resourceVersion": "9"}, "items": items});
    (200, list)
}

fn forbidden() -> (u16, Value) {
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "namespaces is forbidden", "reason": "Forbidden", "code": 403});
    (403, status)
}

/// The stores once the namespaces are known, and the lists that were requested.
async fn known_after(answers: Vec<(u16, Value)>) -> (Arc<Stores>, Vec<String>) {
    let (client, said) = apiserver(answers);
    let stores = Stores::unlisted();
    assert!(!stores.knows_clone_stops());
    let watch = tokio::spawn(watch_namespaces(Arc::clone(&stores), client));
    while !stores.knows_clone_stops() {
        stores.changed.notified().await;
    }
    watch.abort();
    let said = said.lock().clone();
    (stores, said)
}

const ALL: &str = "metadata: true, own: false";
const OWN: &str = "metadata: true, own: true";

#[tokio::test(start_paused = true)]
async fn the_metadata_of_all_namespaces_is_watched() {
    let (stores, said) = known_after(vec![list(&[("team", "stop")])]).await;
    assert_eq!(said, [ALL]);
    let stops = stores.clone_stops();
    assert_eq!(stops.of("team"), Some(CloneStop::Namespace("team")));
}

#[tokio::test(start_paused = true)]
async fn an_operator_that_may_read_only_its_namespace_uses_its_stop() {
    let answers = vec![forbidden(), list(&[("shed", "stop")])];
    let (stores, said) = known_after(answers).await;
    assert_eq!(said, [ALL, OWN]);
    let stops = stores.clone_stops();
    assert_eq!(stops.of("team"), Some(CloneStop::Cluster("shed")));
}

#[tokio::test(start_paused = true)]
async fn an_operator_that_may_read_no_namespace_starts_without_a_stop() {
    let (stores, said) = known_after(vec![forbidden(), forbidden()]).await;
    assert_eq!(said, [ALL, OWN]);
    assert_eq!(stores.clone_stops().of("team"), None);
}
