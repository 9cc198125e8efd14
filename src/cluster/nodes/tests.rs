use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use http::{Request, Response};
use kube::client::Body;
use serde_json::json;

use super::*;
use crate::fixtures;
use crate::lease::role::Standing;

/// Whether lists are allowed, and how many there were.
#[derive(Default)]
struct Lists {
    allowed: AtomicBool,
    count: AtomicU32,
}

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
                let message = "nodes is forbidden: User \"shed\" cannot list resource \"nodes\"";
                let status = json!({"status": "Failure", "reason": "Forbidden", "code": 403, "message": message});
                (403, status)
            }
        };
        let body = Body::from(body.to_string().into_bytes());
        Response::builder().status(code).body(body).unwrap()
    }
}

/// An apiserver of nodes. Watches get no answer.
fn apiserver() -> (Client, Arc<Lists>) {
    let (service, mut handle) = tower_test::mock::pair::<Request<Body>, Response<Body>>();
    let lists: Arc<Lists> = Arc::default();
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
    let (client, lists) = apiserver();
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
