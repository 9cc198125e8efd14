use std::collections::VecDeque;

use http::{Request, Response};
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::*;
use crate::api::{
    ANNOTATION_ACTIVE_JOBS_MAX, ANNOTATION_CLONE_BUDGET, ANNOTATION_CLONES, LABEL_JOBS, LABEL_SHARE,
};

/// The metadata of a namespace with these labels and annotations.
pub(super) fn namespace(name: &str, values: &[(&str, &str)]) -> PartialObjectMeta<Namespace> {
    let values: serde_json::Map<String, Value> = values
        .iter()
        .map(|(key, value)| ((*key).to_owned(), json!(value)))
        .collect();
    let (labels, annotations): (Vec<_>, Vec<_>) = values
        .into_iter()
        .partition(|(key, _)| [LABEL_JOBS, LABEL_SHARE].contains(&&**key));
    let [labels, annotations] =
        [labels, annotations].map(|all| all.into_iter().collect::<serde_json::Map<_, _>>());
    let object = json!({"metadata": {"name": name, "labels": labels, "annotations": annotations}});
    serde_json::from_value(object).unwrap()
}

fn annotated(name: &str, value: &str) -> PartialObjectMeta<Namespace> {
    namespace(name, &[(ANNOTATION_CLONES, value)])
}

/// What is known after a list of these namespaces with their annotation `shed.dev/clones`.
fn listed(values: &[(&str, &str)]) -> Watched {
    let mut watched = Watched::of("shed", Scope::All);
    assert!(watched.take(Event::Init).is_none());
    for (name, value) in values {
        let event = Event::InitApply(annotated(name, value));
        assert!(watched.take(event).is_none());
    }
    assert!(watched.take(Event::InitDone).is_some());
    watched
}

#[test]
fn the_annotation_stops_the_clones_of_its_namespace() {
    let mut watched = listed(&[("team", "stop")]);
    let stop = CloneStop::Namespace("team");
    assert_eq!(watched.known.clone_stop("team"), Some(stop));
    assert_eq!(watched.known.clone_stop("other"), None);
    let removed = Event::Apply(namespace("team", &[]));
    assert_eq!(watched.take(removed).unwrap().clone_stop("team"), None);
    let again = Event::Apply(annotated("team", "stop"));
    assert_eq!(watched.take(again).unwrap().clone_stop("team"), Some(stop));
    let deleted = Event::Delete(annotated("team", "stop"));
    assert_eq!(watched.take(deleted).unwrap().clone_stop("team"), None);
}

#[test]
fn the_annotation_of_the_own_namespace_stops_all_clones() {
    let known = listed(&[("team", "stop"), ("shed", "stop")]).known;
    for namespace in ["team", "other", "shed"] {
        assert_eq!(
            known.clone_stop(namespace),
            Some(CloneStop::Cluster("shed"))
        );
    }
}

#[test]
fn other_values_have_no_effect_and_are_listed() {
    let mut watched = listed(&[("team", "Stop"), ("shed", ""), ("a", "stop")]);
    let known = &watched.known;
    assert_eq!(
        ["team", "shed"].map(|name| known.clone_stop(name)),
        [None; 2]
    );
    let faults: Vec<(&str, &str)> = known.faults().map(|(n, it)| (&**n, &*it.value)).collect();
    assert_eq!(faults, [("shed", ""), ("team", "Stop")]);
    let long = annotated("long", &"stop".repeat(1000));
    let known = watched.take(Event::Apply(long)).unwrap();
    let kept = known.namespaces["long"].faults[0].value.len();
    assert_eq!((known.clone_stop("long"), kept), (None, 64));
}

/// The weight that holds for a label, and the beginning of the text about it.
fn weight_of(label: &str) -> (f64, Option<String>) {
    let metadata = namespace("team", &[(LABEL_SHARE, label)]).metadata;
    let settings = Settings::of(&metadata);
    let fault = settings.faults.first().map(Fault::words);
    (settings.weight.unwrap_or(1.0), fault)
}

#[test]
fn the_label_is_a_weight_and_nonsense_counts_as_1() {
    for (label, weight) in [("3", 3.0), ("0.5", 0.5), ("1", 1.0), ("1e2", 100.0)] {
        assert_eq!(weight_of(label), (weight, None), "{label}");
    }
    for label in ["0", "-1", "-0.0", "a", "", "NaN", "inf", "1e999", "1,5"] {
        let (weight, fault) = weight_of(label);
        let words = format!("label shed.dev/share: invalid value `{label}`: the weight is 1");
        assert!(
            weight == 1.0 && fault.unwrap().starts_with(&words),
            "{label}"
        );
    }
}

#[test]
fn jobs_are_watched_by_the_value_watch_only() {
    let mut known = NamespaceSettings::of("shed", Scope::All);
    for (name, value) in [("team", "watch"), ("other", "run"), ("wrong", "Watch")] {
        known.note(&namespace(name, &[(LABEL_JOBS, value)]));
    }
    let watched: Vec<&str> = known.watched().map(|name| &**name).collect();
    assert_eq!(watched, ["team"]);
    assert!(known.watches_jobs("team") && !known.watches_jobs("other"));
    let faults: Vec<String> = known.faults().map(|(_, fault)| fault.words()).collect();
    let words = "label shed.dev/jobs: invalid value `Watch`: it has no effect: use run or watch, or remove the label";
    assert_eq!(faults, [words]);
    known.forget(&namespace("team", &[]));
    assert_eq!(known.watched().count(), 0);
}

#[test]
fn a_weight_beyond_the_bounds_counts_as_the_bound() {
    for (label, weight) in [("1000000000", 1000.0), ("1e-9", 0.001)] {
        let (found, fault) = weight_of(label);
        assert_eq!(found, weight, "{label}");
        assert!(fault.unwrap().contains("it counts as"), "{label}");
    }
}

#[test]
fn the_lowest_clone_budget_holds() {
    let mut settings = NamespaceSettings::of("shed", Scope::All);
    settings.note(&namespace("team", &[(ANNOTATION_CLONE_BUDGET, "0.1")]));
    settings.note(&namespace("bad", &[(ANNOTATION_CLONE_BUDGET, "-1")]));
    let rows = [
        ("team", [None, None], Some(0.1)),
        ("team", [None, Some(0.2)], Some(0.1)),
        ("team", [Some(0.05), Some(0.2)], Some(0.05)),
        ("other", [None, None], None),
        ("other", [Some(0.5), Some(0.2)], Some(0.2)),
        ("other", [Some(0.1), None], Some(0.1)),
        ("bad", [None, Some(0.2)], Some(0.2)),
    ];
    for (namespace, limits, budget) in rows {
        assert_eq!(
            settings.clone_budget(namespace, limits),
            budget,
            "{namespace} {limits:?}"
        );
    }
}

#[test]
fn a_limit_of_active_jobs_is_a_whole_number_from_1() {
    let limit_of = |value: &str| {
        let metadata = namespace("team", &[(ANNOTATION_ACTIVE_JOBS_MAX, value)]).metadata;
        let settings = Settings::of(&metadata);
        (settings.active_jobs_max, settings.faults.len())
    };
    assert_eq!(limit_of("20"), (Some(20), 0));
    for value in ["0", "-1", "2.5", "many", "1000001"] {
        assert_eq!(limit_of(value), (None, 1), "{value}");
    }
}

#[test]
fn of_5000_namespaces_only_those_with_a_setting_are_kept() {
    let mut watched = Watched::of("shed", Scope::All);
    watched.take(Event::Init);
    for number in 0..5000 {
        let values: &[(&str, &str)] = match number % 1000 {
            0 => &[(LABEL_SHARE, "2")],
            1 => &[(LABEL_SHARE, "1")],
            _ => &[("team", "blue")],
        };
        let event = Event::InitApply(namespace(&format!("n-{number}"), values));
        watched.take(event);
    }
    let known = watched.take(Event::InitDone).unwrap();
    assert_eq!(known.namespaces.len(), 5);
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
    let items = items.map(|(name, value)| json!(annotated(name, value)));
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
    assert!(!stores.knows_namespaces());
    let watch = tokio::spawn(watch_namespaces(Arc::clone(&stores), client));
    while !stores.knows_namespaces() {
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
    let stops = stores.namespaces();
    assert_eq!(stops.clone_stop("team"), Some(CloneStop::Namespace("team")));
}

#[tokio::test(start_paused = true)]
async fn an_operator_that_may_read_only_its_namespace_uses_its_stop() {
    let answers = vec![forbidden(), list(&[("shed", "stop")])];
    let (stores, said) = known_after(answers).await;
    assert_eq!(said, [ALL, OWN]);
    let stops = stores.namespaces();
    assert_eq!(stops.clone_stop("team"), Some(CloneStop::Cluster("shed")));
}

#[tokio::test(start_paused = true)]
async fn an_operator_without_the_right_starts_without_settings() {
    let (stores, said) = known_after(vec![forbidden(), forbidden()]).await;
    assert_eq!(said, [ALL, OWN]);
    assert_eq!(stores.namespaces().clone_stop("team"), None);
}

#[tokio::test(start_paused = true)]
async fn all_weights_are_equal_once_the_right_to_read_them_is_lost() {
    let (client, _) = apiserver(vec![forbidden(), list(&[("shed", "stop")])]);
    let stores = Stores::unlisted();
    stores.show_namespaces(&[("team", LABEL_SHARE, "3")]);
    assert_eq!(stores.namespaces().weight("team"), Some(3.0));
    let watch = tokio::spawn(watch_namespaces(Arc::clone(&stores), client));
    while stores.namespaces().scope() == Scope::All {
        stores.changed.notified().await;
    }
    watch.abort();
    let settings = stores.namespaces();
    assert_eq!(
        (settings.weight("team"), settings.scope()),
        (None, Scope::Home)
    );
}
