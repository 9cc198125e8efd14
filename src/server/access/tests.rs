//! Reviews by an apiserver in memory.

use axum::Router;
use axum::body::Body;
use axum::extract::connect_info::MockConnectInfo;
use axum::routing::get;
use http::Response as HttpResponse;
use kube::Client;
use kube::client::Body as KubeBody;
use serde_json::{Value, json};
use tower::Service;

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::super::reviews::{KEPT_MAX, TOKEN_MAX};
use super::*;

/// Calls that the apiserver got.
type Calls = Arc<Mutex<Vec<&'static str>>>;

/// An apiserver that knows the tokens `reader` and `other`; only the first one's user may read the metrics. It answers with
/// `code` if that is not 201.
fn apiserver(code: u16) -> (Client, Calls) {
    let (service, mut handle) =
        tower_test::mock::pair::<http::Request<KubeBody>, HttpResponse<KubeBody>>();
    let calls = Calls::default();
    let noted = Arc::clone(&calls);
    tokio::spawn(async move {
        while let Some((request, respond)) = handle.next_request().await {
            let is_token = request.uri().path().ends_with("/tokenreviews");
            let kind = if is_token { "token" } else { "access" };
            noted.lock().push(kind);
            let body = request.into_body().collect_bytes().await.unwrap();
            let mut body: Value = serde_json::from_slice(&body).unwrap();
            body["status"] = match kind {
                "token" => {
                    let user = body["spec"]["token"].clone();
                    let is_known = user == "reader" || user == "other";
                    json!({"authenticated": is_known, "user": {"username": user, "groups": ["all"],
                        "extra": {"node": ["n"]}}})
                }
                _ => {
                    let asked = &body["spec"]["nonResourceAttributes"];
                    assert_eq!(*asked, json!({"path": "/metrics", "verb": "get"}));
                    assert_eq!(body["spec"]["groups"], json!(["all"]));
                    assert_eq!(body["spec"]["extra"], json!({"node": ["n"]}));
                    json!({"allowed": body["spec"]["user"] == "reader"})
                }
            };
            let body = match code {
                201 => body,
                code => {
                    json!({"kind": "Status", "code": code, "status": "Failure", "reason": "", "message": ""})
                }
            };
            let answer = HttpResponse::builder().status(code);
            let body = KubeBody::from(body.to_string().into_bytes());
            respond.send_response(answer.body(body).unwrap());
        }
    });
    (Client::new(service, "default"), calls)
}

fn gate(client: Client) -> Arc<Gate> {
    let reviewer = Reviewer::new(client);
    Arc::new(Gate::new(reviewer, Clock::for_tests()))
}

fn reviewer(code: u16) -> (Arc<Gate>, Calls) {
    let (client, calls) = apiserver(code);
    (gate(client), calls)
}

/// Status of the answer to a request with this header, of a client of its own.
async fn scrape(gate: &Arc<Gate>, authorization: Option<&str>) -> u16 {
    static CLIENTS: AtomicU32 = AtomicU32::new(1);
    let client = CLIENTS.fetch_add(1, Ordering::Relaxed);
    scrape_from(IpAddr::from(client.to_be_bytes()), gate, authorization).await
}

async fn scrape_from(client: IpAddr, gate: &Arc<Gate>, authorization: Option<&str>) -> u16 {
    let layer = axum::middleware::from_fn_with_state(Arc::clone(gate), require);
    let peer = MockConnectInfo(SocketAddr::from((client, 50_000)));
    let route = get(|| async { "page" });
    let pages = Router::new().route("/metrics", route);
    let mut pages = pages.layer(layer).layer(peer);
    let mut request = http::Request::get("/metrics");
    if let Some(value) = authorization {
        request = request.header(header::AUTHORIZATION, value);
    }
    let answer = pages.call(request.body(Body::empty()).unwrap()).await;
    answer.unwrap().status().as_u16()
}

#[tokio::test]
async fn each_token_gets_its_answer() {
    let (reviewer, calls) = reviewer(201);
    for (authorization, status, reviews) in [
        (None, 401, 0),
        (Some("Basic cmVhZGVyOg=="), 401, 0),
        (Some("Bearer "), 401, 0),
        (
            Some(&*format!("Bearer {}", "x".repeat(TOKEN_MAX + 1))),
            401,
            0,
        ),
        (Some("Bearer unknown"), 401, 1),
        (Some("Bearer other"), 403, 2),
        (Some("Bearer reader"), 200, 2),
        (Some("bearer reader"), 200, 0),
    ] {
        calls.lock().clear();
        let found = scrape(&reviewer, authorization).await;
        let made = calls.lock().len();
        assert_eq!((found, made), (status, reviews), "{authorization:.20?}");
    }
}

#[tokio::test]
async fn without_an_apiserver_no_scrape_is_answered() {
    for code in [500, 403] {
        let (reviewer, calls) = reviewer(code);
        for _ in 0..2 {
            assert_eq!(scrape(&reviewer, Some("Bearer reader")).await, 503);
        }
        assert_eq!(*calls.lock(), ["token", "token"]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_apiserver_that_does_not_answer_is_not_waited_for_long() {
    let (service, _handle) =
        tower_test::mock::pair::<http::Request<KubeBody>, HttpResponse<KubeBody>>();
    let reviewer = gate(Client::new(service, "default"));
    let begun = Instant::now();
    assert_eq!(scrape(&reviewer, Some("Bearer reader")).await, 503);
    assert_eq!(begun.elapsed(), REVIEW_PATIENCE);
}

#[tokio::test(start_paused = true)]
async fn answers_are_kept_for_seconds() {
    let (reviewer, calls) = reviewer(201);
    for (wait, reviews) in [(0, 2), (9, 2), (2, 4)] {
        tokio::time::sleep(Duration::from_secs(wait)).await;
        assert_eq!(scrape(&reviewer, Some("Bearer reader")).await, 200);
        assert_eq!(calls.lock().len(), reviews);
    }
}

#[tokio::test(start_paused = true)]
async fn answers_are_bounded_and_refused_tokens_evict_no_reader() {
    let (reviewer, calls) = reviewer(201);
    assert_eq!(scrape(&reviewer, Some("Bearer reader")).await, 200);
    for number in 0..2 * KEPT_MAX {
        let token = format!("Bearer guess-{number}");
        assert_eq!(scrape(&reviewer, Some(&token)).await, 401);
    }
    assert_eq!(reviewer.reviewer.tokens(), KEPT_MAX);
    calls.lock().clear();
    assert_eq!(scrape(&reviewer, Some("Bearer reader")).await, 200);
    assert!(calls.lock().is_empty());
}

#[tokio::test]
async fn one_address_causes_a_bounded_number_of_reviews() {
    let (gate, calls) = reviewer(201);
    let (stranger, monitor) = (IpAddr::from([10, 0, 0, 7]), IpAddr::from([10, 0, 0, 8]));
    let mut answers = Vec::new();
    for number in 0..50 {
        let token = format!("Bearer guess-{number}");
        answers.push(scrape_from(stranger, &gate, Some(&token)).await);
    }
    let reviewed = answers.iter().filter(|status| **status == 401).count();
    let refused = answers.iter().filter(|status| **status == 429).count();
    assert_eq!(reviewed + refused, 50);
    assert_eq!(calls.lock().len(), reviewed);
    assert!(refused >= 30, "{answers:?}");
    // Others are served, and a token that is known costs nothing.
    for _ in 0..50 {
        assert_eq!(
            scrape_from(monitor, &gate, Some("Bearer reader")).await,
            200
        );
    }
}
