//! One Secret in an apiserver in memory.

use std::sync::Arc;

use http::{Method, Request, Response};
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::{Value, json};
use shed_agent::reply::ReplyKey;
use shed_agent::signed::VerifyingKey;
use shed_agent::stop::StopAt;

use super::*;

#[derive(Default)]
struct World {
    secret: Option<Value>,
    /// Writes with their answers, in order.
    writes: Vec<String>,
    /// The operator may not use these methods.
    forbidden: Vec<Method>,
    /// A Secret that another replica writes before the next write.
    rival: Option<Value>,
    /// A client deletes the Secret before the next write.
    deletes: bool,
}

impl World {
    fn answer(&mut self, method: &Method, body: Value) -> (u16, Value) {
        if self.forbidden.contains(method) {
            return failure(403, "Forbidden");
        }
        if *method != Method::GET {
            if let Some(rival) = self.rival.take() {
                self.secret = Some(rival);
            }
            if std::mem::take(&mut self.deletes) {
                self.secret = None;
            }
        }
        match (method, &self.secret) {
            (&Method::GET, Some(secret)) => return (200, secret.clone()),
            (&Method::POST, Some(_)) => return failure(409, "AlreadyExists"),
            (&Method::POST, None) => {}
            (_, None) => return failure(404, "NotFound"),
            (_, Some(secret)) => {
                if secret["metadata"]["resourceVersion"] != body["metadata"]["resourceVersion"] {
                    return failure(409, "Conflict");
                }
            }
        }
        let mut written = body;
        written["metadata"]["resourceVersion"] = json!("2");
        self.secret = Some(written.clone());
        (200, written)
    }
}

fn failure(code: u16, reason: &str) -> (u16, Value) {
    let status = json!({"kind": "Status", "status": "Failure", "code": code, "message": reason,
        "reason": reason});
    (code, status)
}

fn apiserver(world: World) -> (Client, Arc<Mutex<World>>) {
    let (service, mut handle) = tower_test::mock::pair::<Request<Body>, Response<Body>>();
    let world = Arc::new(Mutex::new(world));
    let served = Arc::clone(&world);
    tokio::spawn(async move {
        while let Some((request, respond)) = handle.next_request().await {
            let (head, body) = request.into_parts();
            let body = body.collect_bytes().await.unwrap();
            let body = serde_json::from_slice(&body).unwrap_or_default();
            let (code, answer) = {
                let mut world = served.lock();
                let (code, answer) = world.answer(&head.method, body);
                if head.method != Method::GET {
                    world.writes.push(format!("{} {code}", head.method));
                }
                (code, answer)
            };
            let answer = Body::from(answer.to_string().into_bytes());
            respond.send_response(Response::builder().status(code).body(answer).unwrap());
        }
    });
    (Client::new(service, "shed-system"), world)
}

/// As the chart creates it.
fn empty() -> Value {
    json!({"metadata": {"name": "key", "resourceVersion": "1", "labels": {"app": "shed"}}, "type": "Opaque"})
}

const ENTRY: &str = "ed25519-1.pk8";

fn filled(bytes: Vec<u8>) -> Value {
    let mut secret = empty();
    secret["data"] = json!({ENTRY: ByteString(bytes)});
    secret
}

/// The public key of the current key, or the error; then the writes and the Secret.
async fn loaded(world: World) -> (Result<String>, Vec<String>, Option<Value>) {
    let (keys, writes, secret) = loaded_with(world, "1").await;
    (keys.map(|keys| keys.public()), writes, secret)
}

async fn loaded_with(world: World, id: &str) -> (Result<AgentKeys>, Vec<String>, Option<Value>) {
    let (client, world) = apiserver(world);
    let key = load(&client, "key", id).await;
    let mut world = world.lock();
    (key, std::mem::take(&mut world.writes), world.secret.take())
}

#[tokio::test]
async fn a_secret_without_data_is_filled_and_keeps_its_labels() {
    for data in [Value::Null, json!({})] {
        let mut secret = empty();
        secret["data"] = data;
        let world = World {
            secret: Some(secret),
            forbidden: vec![Method::POST],
            ..World::default()
        };
        let (key, writes, secret) = loaded(world).await;
        assert_eq!(writes, ["PUT 200"]);
        let secret = secret.unwrap();
        assert_eq!(secret["metadata"]["labels"]["app"], "shed");
        let stored: Secret = serde_json::from_value(secret).unwrap();
        assert_eq!(read(&stored, ENTRY).unwrap().public(), key.unwrap());
    }
}

#[tokio::test]
async fn a_missing_secret_is_created() {
    let (key, writes, secret) = loaded(World::default()).await;
    assert_eq!(writes, ["POST 200"]);
    let stored: Secret = serde_json::from_value(secret.unwrap()).unwrap();
    assert_eq!(read(&stored, ENTRY).unwrap().public(), key.unwrap());
}

#[tokio::test]
async fn a_key_is_read_and_never_replaced() {
    let bytes = SigningKey::generate().unwrap();
    let public = SigningKey::from_pkcs8(&bytes).unwrap().public();
    let world = World {
        secret: Some(filled(bytes)),
        ..World::default()
    };
    let (key, writes, _) = loaded(world).await;
    assert_eq!((key.unwrap(), writes.len()), (public, 0));
}

#[tokio::test]
async fn of_two_replicas_both_use_the_key_of_the_first() {
    let bytes = SigningKey::generate().unwrap();
    let public = SigningKey::from_pkcs8(&bytes).unwrap().public();
    for (before, refused) in [(Some(empty()), "PUT 409"), (None, "POST 409")] {
        let mut rival = filled(bytes.clone());
        rival["metadata"]["resourceVersion"] = json!("2");
        let world = World {
            secret: before,
            rival: Some(rival),
            ..World::default()
        };
        let (key, writes, _) = loaded(world).await;
        assert_eq!(
            (key.unwrap(), writes),
            (public.clone(), vec![refused.to_owned()])
        );
    }
}

#[tokio::test]
async fn a_secret_that_is_deleted_meanwhile_is_created() {
    let world = World {
        secret: Some(empty()),
        deletes: true,
        ..World::default()
    };
    let (key, writes, _) = loaded(world).await;
    assert!(key.is_ok());
    assert_eq!(writes, ["PUT 404", "POST 200"]);
}

#[tokio::test]
async fn without_the_rights_the_error_names_them_and_the_way_out() {
    let world = World {
        forbidden: vec![Method::POST],
        ..World::default()
    };
    let error = loaded(world).await.0.unwrap_err().to_string();
    assert!(
        error.starts_with("secret shed-system/key: Forbidden"),
        "{error}"
    );
    assert!(error.contains("get and update"), "{error}");
    assert!(error.contains("create it without data"), "{error}");
}

#[tokio::test]
async fn a_secret_with_something_else_is_left_alone() {
    let mut secret = empty();
    secret["data"] = json!({"password": "eA=="});
    let world = World {
        secret: Some(secret.clone()),
        ..World::default()
    };
    let (key, writes, after) = loaded(world).await;
    assert_eq!((writes.len(), after), (0, Some(secret)));
    assert!(key.unwrap_err().to_string().contains("makes a new key"));
}

/// The order of an operator, and the answer of an agent that was launched by it.
struct Launched {
    public: VerifyingKey,
    reply: ReplyKey,
}

impl Launched {
    fn by(keys: &AgentKeys) -> Self {
        Self {
            public: VerifyingKey::parse(&keys.public()).unwrap(),
            reply: ReplyKey::parse(&keys.reply_key("job", "pod")).unwrap(),
        }
    }

    /// Whether it accepts an order of the operator, and the operator its answer.
    fn knows(&self, keys: &AgentKeys) -> (bool, bool) {
        let stop = StopAt { unit: 7 };
        let mut orders = keys.signed("uid", "nonce", &stop);
        let accepts =
            orders.any(|order| self.public.open("uid", "nonce", &order) == Ok(StopAt { unit: 7 }));
        let code = self.reply.code("/progress", b"nonce", b"0.5");
        let answer = AgentAnswer {
            job_uid: "job",
            pod_name: "pod",
            path: "/progress",
            nonce: "nonce",
            code: code.as_bytes(),
            body: b"0.5",
        };
        (accepts, keys.is_of_agent(&answer))
    }
}

#[tokio::test]
async fn a_former_key_is_good_until_it_is_removed() {
    let world = |secret: Option<Value>| World {
        secret,
        ..World::default()
    };
    let (first, _, secret) = loaded_with(world(None), "1").await;
    let first = first.unwrap();
    let old = Launched::by(&first);
    let (second, writes, secret) = loaded_with(world(secret), "2").await;
    let second = second.unwrap();
    assert_eq!(writes, ["PUT 200"]);
    assert_ne!(first.public(), second.public());
    assert_eq!(old.knows(&second), (true, true));
    assert_eq!(Launched::by(&second).knows(&second), (true, true));
    // A replica that is still configured with the first id.
    let (first, writes, mut secret) = loaded_with(world(secret), "1").await;
    assert_eq!(writes.len(), 0);
    assert_eq!(Launched::by(&second).knows(&first.unwrap()), (true, true));
    // An admin removes the first key although an attempt has it.
    let data = secret.as_mut().unwrap()["data"].as_object_mut().unwrap();
    data.remove(ENTRY).unwrap();
    let (third, ..) = loaded_with(world(secret), "2").await;
    let third = third.unwrap();
    assert_eq!(old.knows(&third), (false, false));
    assert_eq!(Launched::by(&second).knows(&third), (true, true));
}

#[tokio::test]
async fn an_entry_that_is_no_key_is_named() {
    let mut secret = filled(SigningKey::generate().unwrap());
    secret["data"]["ed25519-0.pk8"] = json!("eA==");
    let world = World {
        secret: Some(secret),
        ..World::default()
    };
    let error = format!("{:#}", loaded(world).await.0.unwrap_err());
    assert!(error.contains("ed25519-0.pk8: the key is not"), "{error}");
}
