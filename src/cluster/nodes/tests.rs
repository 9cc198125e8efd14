use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use http::{Request, Response};
use kube::client::Body;
use serde_json::json;

use super::*;
use crate::fixtures;
use crate::lease::role::Standing;

/// Answers to lists, and how many there were.
struct Lists {
    allowed: AtomicBool,
    /// Until lists are allowed: code, reason and message.
    refusal: (u16, &'static str, &'static str),
    count: AtomicU32,
}

const FORBIDDEN: (u16, &str, &str) = (
    403,
    "Forbidden",
    "nodes is forbidden: User \"shed\" cannot list resource \"nodes\"",
);

/// What Kubernetes 1.37 may answer while its cache is behind.
const OVERLOADED: (u16, &str, &str) = (
    429,
    "TooManyRequests",
    "storage is (re)initializing, please try again later",
);

impl Lists {
    fn answer(&self) -> Response<Body> {
        self.count.fetch_add(1, Ordering::Relaxed);
        let (code, body) = match self.allowed.load(Ordering::Relaxed) {
            true => {
                let nodes = [fixtures::node("node-1", 4)];
                let metadata = json!({"resourceVersion": "9"});
                (200, json!({"metadata": metadata, "items": nodes}))
            }
            false => {
                let (code, reason, message) = self.refusal;
                let status = json!({"status": "Failure", "reason": reason, "code": code, "message": message});
                (code, status)
            }
        };
        let body = Body::from(body.to_string().into_bytes());
        Response::builder().status(code).body(body).unwrap()
    }
}

/// An apiserver of nodes. Watches get no answer.
fn apiserver(refusal: (u16, &'static str, &'static str)) -> (Client, Arc<Lists>) {
    let (service, mut handle) = tower_test::mock::pair::<Request<Body>, Response<Body>>();
    let lists = Arc::new(Lists {
        allowed: AtomicBool::default(),
        refusal,
        count: AtomicU32::default(),
    });
    let served = Arc::clone(&lists);
    tokio::spawn(async move {
        let mut open = Vec::new();
        while let Some((request, respond)) = handle.next_request().await {
            match request.uri().query().unwrap_or_default() {
                query if query.contains("watch=true") => open.push(respond),
                _ => respond.send_response(served.answer()),
            }
        }
    });
    (Client::new(service, "shed"), lists)
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_may_not_read_nodes_says_so_until_it_may() {
    let (client, lists) = apiserver(FORBIDDEN);
    let stores = Stores::unlisted();
    stores.show(vec![]);
    let standing = Standing::default();
    standing.leading(Some(Arc::clone(&stores)));
    let watch = tokio::spawn(watch_nodes(Arc::clone(&stores), client));

    tokio::time::sleep(Duration::from_secs(60)).await;
    let line = standing.ready().unwrap_err();
    assert!(line.contains("first lists of namespaces, nodes;"), "{line}");
    assert!(line.contains("a missing right"), "{line}");
    assert!(lists.count.load(Ordering::Relaxed) > 1, "it tries again");

    lists.allowed.store(true, Ordering::Relaxed);
    while stores.awaited().contains(&"nodes") {
        stores.changed.notified().await;
    }
    let line = standing.ready().unwrap_err();
    assert!(line.contains("first lists of namespaces;"), "{line}");
    watch.abort();
}

#[tokio::test(start_paused = true)]
async fn an_overloaded_apiserver_makes_the_first_list_wait() {
    let (client, lists) = apiserver(OVERLOADED);
    let stores = Stores::unlisted();
    let watch = tokio::spawn(watch_nodes(Arc::clone(&stores), client));
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(lists.count.load(Ordering::Relaxed) > 1, "it tries again");
    assert!(stores.awaited().contains(&"nodes") && !watch.is_finished());
    lists.allowed.store(true, Ordering::Relaxed);
    while stores.awaited().contains(&"nodes") {
        stores.changed.notified().await;
    }
    assert_eq!(stores.nodes.all().len(), 1);
    watch.abort();
}
