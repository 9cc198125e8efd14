use std::collections::BTreeSet;
use std::net::SocketAddr;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::fixtures::{Leading, running_job};
use super::*;
use crate::api::DeadlineJob;
use crate::cluster::Stores;
use crate::fixtures as objects;
use crate::reconcile::mock::{Apiserver, Process};

/// A leader whose answers are served on a port of their own.
struct Leader {
    address: SocketAddr,
    api: Arc<LeaderApi>,
    process: Process,
    _tasks: JoinSet<()>,
}

impl Leader {
    async fn of(jobs: Vec<DeadlineJob>) -> Self {
        let mut leading = Leading::of(jobs).await;
        let (address, api) = served(leading.standing, leading.term, &mut leading.tasks).await;
        Self {
            address,
            api,
            process: leading.process,
            _tasks: leading.tasks,
        }
    }

    async fn ask(&self, path: &str) -> (u16, Value) {
        let (status, _, body) = asked(self.address, &format!("GET {path}"), "localhost").await;
        (status, body)
    }

    async fn get(&self, path: &str) -> Value {
        let (status, body) = self.ask(path).await;
        assert_eq!(status, 200, "{path}: {body}");
        body
    }
}

async fn served(
    standing: Arc<Standing>,
    term: Arc<CurrentTerm>,
    tasks: &mut JoinSet<()>,
) -> (SocketAddr, Arc<LeaderApi>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let api = LeaderApi::new(standing, term);
    let serving = serve(listener, Arc::clone(&api));
    tasks.spawn(async move { serving.await.unwrap() });
    (address, api)
}

/// The status, the headers and the JSON of the answer.
async fn asked(address: SocketAddr, request: &str, host: &str) -> (u16, String, Value) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("{request} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let body = serde_json::from_str(body).unwrap_or_default();
    (status, head.to_lowercase(), body)
}

/// Three jobs: the deadline of `tight` can't be kept, that of `loose` is far, and the clock of `open` has not
/// started.
async fn three() -> Leader {
    Leader::of(vec![
        running_job("loose", "{within: 10h}"),
        running_job("open", "{within: 3h, clockStart: Start}"),
        running_job("tight", "{within: 3m}"),
    ])
    .await
}

fn names(list: &Value) -> Vec<&str> {
    let jobs = list["jobs"].as_array().unwrap().iter();
    jobs.map(|job| job["name"].as_str().unwrap()).collect()
}

fn number(value: &Value) -> f64 {
    value.as_str().unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shares_are_on_the_first_page_those_that_are_owed_most_first() {
    let leader = three().await;
    let context = &leader.process.context;
    let label = ("team", crate::api::LABEL_SHARE, "2");
    context.stores.show_namespaces(&[label]);
    let shares = [("lab", 0.25, 0.5), ("team", 0.75, 0.5)];
    let shares = shares.map(|(name, entitled, held)| objects::share(name, entitled, held));
    context.shares.publish(shares.to_vec());
    let first = leader.get("/v1/jobs?limit=2").await;
    let expected = json!([
        {"namespace": "team", "weight": "2.000", "entitled": "0.750", "held": "0.500", "lent": "0.000", "owed": "0.250"},
        {"namespace": "lab", "weight": "1.000", "entitled": "0.250", "held": "0.500", "lent": "0.250", "owed": "0.000"},
    ]);
    assert_eq!(first["shares"], expected);
    let next = first["continue"].as_str().unwrap();
    let rest = leader
        .get(&format!("/v1/jobs?limit=2&continue={next}"))
        .await;
    assert_eq!(rest["shares"], Value::Null);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_are_listed_by_risk_and_in_pages() {
    let leader = three().await;
    let all = leader.get("/v1/jobs").await;
    assert_eq!(names(&all), ["tight", "loose", "open"]);
    assert_eq!((&all["total"], &all["continue"]), (&json!(3), &Value::Null));
    let tight = &all["jobs"][0];
    for (field, value) in [
        ("namespace", json!("team")),
        ("kind", json!("DeadlineJob")),
        ("phase", json!("Running")),
        ("tasks", json!(12)),
        ("succeeded", json!(0)),
        ("active", json!(8)),
        ("clones", json!(0)),
    ] {
        assert_eq!(tight[field], value, "{field}");
    }
    assert!(number(&tight["pocd"]) < 0.1, "{tight}");
    assert!(tight["slackSeconds"].as_i64().unwrap() < 0, "{tight}");
    assert!(tight["risk"]["cause"].is_string(), "{tight}");
    assert!(number(&all["jobs"][1]["pocd"]) > 0.9, "{all}");
    assert_eq!(all["jobs"][2]["pocd"], Value::Null, "no deadline, no PoCD");
    let first = leader.get("/v1/jobs?limit=2").await;
    assert_eq!(
        (names(&first), &first["total"]),
        (vec!["tight", "loose"], &json!(3))
    );
    let next = first["continue"].as_str().unwrap();
    let rest = leader
        .get(&format!("/v1/jobs?limit=2&continue={next}"))
        .await;
    assert_eq!(
        (names(&rest), &rest["continue"]),
        (vec!["open"], &Value::Null)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_nodes_have_their_witnesses() {
    let leader = three().await;
    let nodes = leader.get("/v1/nodes").await;
    let slow = &nodes["nodes"][0];
    assert_eq!(
        (&slow["name"], &slow["verdict"]),
        (&json!("node-0"), &json!("Slow"))
    );
    assert!(number(&slow["pace"]) < 0.67, "{slow}");
    assert_eq!(slow["avoidedBy"], json!(["team"]));
    let witnesses = slow["witnesses"].as_array().unwrap();
    assert_eq!(witnesses.len(), 3, "{slow}");
    assert_eq!(witnesses[0]["namespace"], "team");
    assert_eq!(witnesses[0]["tasks"], 2);
    let mut jobs: Vec<&str> = witnesses
        .iter()
        .filter_map(|it| it["job"].as_str())
        .collect();
    jobs.sort_unstable();
    assert_eq!(jobs, ["loose", "open", "tight"]);
    assert_eq!(nodes["nodes"][1]["verdict"], "Normal");
    let unknown = &nodes["nodes"][2];
    assert_eq!(
        (&unknown["verdict"], &unknown["witnesses"]),
        (&json!("Unknown"), &json!([]))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_question_at_a_time_needs_the_planners_state() {
    let leader = three().await;
    let busy = Arc::clone(&leader.api.copies).try_acquire_owned().unwrap();
    let (status, head, body) = asked(leader.address, "GET /v1/nodes", "localhost").await;
    assert_eq!(status, 503, "{body}");
    assert!(head.contains("retry-after: 1"), "{head}");
    assert!(
        body["error"]
            .as_str()
            .unwrap()
            .contains("another such question")
    );
    drop(busy);
    leader.get("/v1/nodes").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_questions_are_refused_with_the_parameter_and_the_fix() {
    let leader = three().await;
    for (path, status, words) in [
        ("/", 404, "/v1/jobs"),
        ("/v1/jobs/", 404, "no such path"),
        ("/v1/jobs/team/tight", 404, "no such path"),
        ("/metrics", 404, "no such path"),
        (
            "/v1/jobs?limit=0",
            400,
            "limit: 0: use a whole number from 1 to 500",
        ),
        ("/v1/jobs?limit=two", 400, "limit: two"),
        ("/v1/jobs?limit=2&limit=3", 400, "duplicate field `limit`"),
        ("/v1/jobs?ended=true", 400, "unknown field `ended`"),
        ("/v1/jobs?limit=501", 400, "limit: 501"),
        ("/v1/jobs?continue=xyz", 400, "continue: xyz"),
    ] {
        let (found, body) = leader.ask(path).await;
        let error = body["error"].as_str().unwrap_or_default();
        assert_eq!(found, status, "{path}: {error}");
        assert!(error.contains(words), "{path}: {error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_local_clients_read_and_nobody_writes() {
    let leader = Leader::of(vec![running_job("loose", "{within: 10h}")]).await;
    for method in ["POST", "PUT", "DELETE"] {
        let request = format!("{method} /v1/jobs");
        let (status, head, _) = asked(leader.address, &request, "localhost").await;
        assert_eq!(status, 405, "{method}");
        assert!(head.contains("allow: get"), "{head}");
    }
    for (host, status) in [
        ("localhost:9444", 200),
        ("127.0.0.1:1", 200),
        ("[::1]:9444", 200),
        ("shed", 200),
        ("rebound.example:9444", 400),
        ("10.0.0.7", 400),
    ] {
        let (found, head, _) = asked(leader.address, "GET /v1/jobs", host).await;
        assert_eq!(found, status, "{host}");
        assert!(!head.contains("access-control"), "{head}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_does_not_lead_names_the_leader() {
    let (standing, mut tasks) = (Arc::new(Standing::default()), JoinSet::new());
    let term = Arc::new(CurrentTerm::default());
    let (address, _) = served(Arc::clone(&standing), Arc::clone(&term), &mut tasks).await;
    let paths = ["/v1/jobs", "/v1/nodes"];
    let refused = async |path: &str| {
        let request = format!("GET {path}");
        let (status, head, body) = asked(address, &request, "localhost").await;
        assert_eq!(status, 503, "{path}: {body}");
        assert!(head.contains("retry-after: 1"), "{head}");
        body
    };
    for path in paths {
        assert_eq!(refused(path).await["leader"], Value::Null);
    }
    standing.waiting("shed-1_5f-1");
    for path in paths {
        let body = refused(path).await;
        assert_eq!(body["leader"], "shed-1_5f-1");
        assert!(body["error"].as_str().unwrap().contains("shed-1_5f-1"));
    }
    let stores = Stores::unlisted();
    standing.leading(Some(Arc::clone(&stores)));
    assert_eq!(refused("/v1/jobs").await["leader"], Value::Null);
    let process = Process::with_stores(&Apiserver::new(objects::job("")), stores);
    term.begin(&process.context.shared);
    let error = refused("/v1/jobs").await["error"].clone();
    assert!(
        error.as_str().unwrap().contains("the first lists"),
        "{error}"
    );
}

/// The fields of a JSON value, each with those around it.
fn fields(value: &Value, within: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields_of) => {
            for (name, value) in fields_of {
                let name = format!("{within}.{name}");
                fields(value, &name, found);
                found.insert(name);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| fields(item, within, found)),
        _ => {}
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_reference_shows_each_field() {
    let page = include_str!("../../docs/reference/leader-api.md");
    let blocks = page.split("```json\n").skip(1);
    let shown: Vec<Value> = blocks
        .map(|block| serde_json::from_str(block.split("```").next().unwrap()).unwrap())
        .collect();
    let leader = three().await;
    let paths = ["/v1/jobs?limit=1", "/v1/nodes", "/v1/none"];
    assert_eq!(shown.len(), paths.len());
    for (path, shown) in paths.into_iter().zip(shown) {
        let (mut of_page, mut of_answer) = (BTreeSet::new(), BTreeSet::new());
        fields(&shown, "", &mut of_page);
        fields(&leader.ask(path).await.1, "", &mut of_answer);
        let missing: Vec<_> = of_answer.difference(&of_page).collect();
        assert!(missing.is_empty(), "{path}: {missing:?}");
    }
}
