//! An apiserver with a webhook that is slow over the objects of one namespace.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request, Response};
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::{Value, json};

/// The namespace over whose objects the webhook is slow.
pub const SLOW_NAMESPACE: &str = "slow";
/// How long the webhook takes.
pub const WEBHOOK_TIME: Duration = Duration::from_secs(20);

/// A client, and the namespaces of the writes so far in their order. Reads are answered from `held`, by path.
pub fn slow_webhook(held: HashMap<String, Value>) -> (Client, Arc<Mutex<Vec<String>>>) {
    let (service, mut handle) = tower_test::mock::pair::<Request<Body>, Response<Body>>();
    let (held, written) = (Arc::new(held), Arc::default());
    let writes = Arc::clone(&written);
    tokio::spawn(async move {
        while let Some((request, respond)) = handle.next_request().await {
            let (held, writes) = (Arc::clone(&held), Arc::clone(&writes));
            tokio::spawn(async move {
                respond.send_response(answer(request, &held, &writes).await);
            });
        }
    });
    (Client::new(service, "default"), written)
}

async fn answer(
    request: Request<Body>,
    held: &HashMap<String, Value>,
    writes: &Mutex<Vec<String>>,
) -> Response<Body> {
    let (head, body) = request.into_parts();
    let path = head.uri.path();
    let object = match head.method {
        Method::GET => held.get(path).cloned(),
        _ => {
            let mut parts = path.split('/').skip_while(|part| *part != "namespaces");
            let namespace = parts.nth(1).unwrap_or_default().to_owned();
            if namespace == SLOW_NAMESPACE {
                tokio::time::sleep(WEBHOOK_TIME).await;
            }
            writes.lock().push(namespace);
            let body = body.collect_bytes().await.expect("body");
            Some(serde_json::from_slice(&body).expect("JSON"))
        }
    };
    let code = if object.is_some() { 200 } else { 404 };
    let none = || json!({"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404});
    let body = object.unwrap_or_else(none).to_string().into_bytes();
    let response = Response::builder().status(code).body(Body::from(body));
    response.expect("response")
}
