//! Visitors of a leader with jobs of two namespaces. The apiserver, in memory, knows the tokens `admin`, who may list all
//! jobs, `team`, who may list those of `team`, and any `user-…`, who may list none.

mod sessions;
mod streams;
mod tls;
mod visibility;

use std::sync::Mutex;

use axum::body::to_bytes;
use axum::extract::connect_info::MockConnectInfo;
use http::Request as HttpRequest;
use kube::client::Body as KubeBody;
use serde_json::Value;
use tower::Service;

use super::*;
use crate::answers::fixtures::{Leading, elsewhere, ended_job, running_job};
use crate::api::DeadlineJob;

/// The apiserver's memory.
#[derive(Default)]
struct World {
    calls: Vec<String>,
    /// Tokens that it does not accept any more.
    revoked: Vec<String>,
    /// It answers nothing.
    is_down: bool,
}

/// An apiserver with these jobs.
fn apiserver(jobs: Vec<DeadlineJob>) -> (Client, Arc<Mutex<World>>) {
    let (service, mut handle) =
        tower_test::mock::pair::<HttpRequest<KubeBody>, http::Response<KubeBody>>();
    let world = Arc::new(Mutex::new(World::default()));
    let served = Arc::clone(&world);
    tokio::spawn(async move {
        while let Some((request, respond)) = handle.next_request().await {
            let (parts, body) = request.into_parts();
            let body = body.collect_bytes().await.unwrap();
            let body = serde_json::from_slice(&body).unwrap_or_default();
            let answer = called(&mut served.lock().unwrap(), parts.uri.path(), body, &jobs);
            let (code, body) = answer.unwrap_or_else(|code| {
                (code, json!({"kind": "Status", "code": code, "status": "Failure", "reason": "", "message": ""}))
            });
            let answer = http::Response::builder().status(code);
            let body = KubeBody::from(body.to_string().into_bytes());
            respond.send_response(answer.body(body).unwrap());
        }
    });
    (Client::new(service, "default"), world)
}

fn called(
    world: &mut World,
    path: &str,
    mut body: Value,
    jobs: &[DeadlineJob],
) -> Result<(u16, Value), u16> {
    if world.is_down {
        return Err(500);
    }
    if path.ends_with("/tokenreviews") {
        let token = body["spec"]["token"].as_str().unwrap().to_owned();
        world.calls.push(format!("token {token}"));
        // Of a JSON Web Token, the name is in the header.
        let user = token.split('.').next().unwrap_or_default();
        let is_known = ["admin", "team"].contains(&user) || user.starts_with("user");
        let is_known = is_known && !world.revoked.contains(&token);
        body["status"] =
            json!({"authenticated": is_known, "user": {"username": user, "groups": ["all"]}});
        return Ok((201, body));
    }
    if path.ends_with("/subjectaccessreviews") {
        let mut asked = body["spec"]["resourceAttributes"].clone();
        let namespace = asked["namespace"].take();
        let deadline_jobs = json!({"group": "shed.dev", "resource": "deadlinejobs", "verb": "list", "namespace": null});
        asked["namespace"] = Value::Null;
        assert_eq!(asked, deadline_jobs);
        assert_eq!(body["spec"]["groups"], json!(["all"]));
        let user = body["spec"]["user"].as_str().unwrap().to_owned();
        let namespace = namespace.as_str().unwrap_or("all").to_owned();
        world.calls.push(format!("access {user} {namespace}"));
        let allowed = user == "admin" || (user == "team" && namespace == "team");
        body["status"] = json!({"allowed": allowed});
        return Ok((201, body));
    }
    world.calls.push(format!("get {path}"));
    let found = jobs.iter().find(|job| {
        let (namespace, name) = (&job.metadata.namespace, &job.metadata.name);
        let (namespace, name) = (namespace.as_deref().unwrap(), name.as_deref().unwrap());
        path == format!("/apis/shed.dev/v1alpha1/namespaces/{namespace}/deadlinejobs/{name}")
    });
    Ok((200, serde_json::to_value(found.ok_or(404_u16)?).unwrap()))
}

/// A page and its apiserver.
pub(super) struct Site {
    pub(super) page: Arc<Page>,
    router: Router,
    world: Arc<Mutex<World>>,
    standing: Arc<Standing>,
    _leading: Option<Leading>,
}

impl Site {
    /// A replica that does not lead.
    pub(super) fn standby() -> Self {
        Self::of(None, vec![])
    }

    /// A leader with jobs of `team` and of `rival`.
    async fn leading() -> Self {
        let jobs = vec![
            running_job("loose", "{within: 10h}"),
            running_job("tight", "{within: 3m}"),
            elsewhere(running_job("merger", "{within: 2m}"), "rival"),
        ];
        let ended = vec![
            ended_job("done", 10),
            ended_job("first", 5),
            elsewhere(ended_job("merged", 7), "rival"),
        ];
        let leading = Leading::of(jobs, ended.clone()).await;
        Self::of(Some(leading), ended)
    }

    fn of(leading: Option<Leading>, ended: Vec<DeadlineJob>) -> Self {
        let (client, world) = apiserver(ended);
        let (standing, term) = match &leading {
            Some(leading) => (Arc::clone(&leading.standing), Arc::clone(&leading.term)),
            None => Default::default(),
        };
        let source = Source {
            standing: Arc::clone(&standing),
            term,
            clock: Clock::for_tests(),
            client,
        };
        let page = Page::new(source).unwrap();
        let peer = MockConnectInfo(SocketAddr::from(([10, 0, 0, 7], 50_000)));
        let router = router(Arc::clone(&page)).layer(peer);
        Self {
            page,
            router,
            world,
            standing,
            _leading: leading,
        }
    }

    async fn call(&self, request: HttpRequest<Body>) -> Response {
        self.router.clone().call(request).await.unwrap()
    }

    /// The cookie of a session of this token, without a login.
    fn cookie(&self, token: &str) -> String {
        let session = Session::begin(token.to_owned(), self.page.clock.now());
        format!(
            "{}={}",
            session::COOKIE,
            self.page.seal.seal(&session).unwrap()
        )
    }

    async fn open(&self, path: &str, cookie: &str) -> Response {
        let request = HttpRequest::get(path).header(header::COOKIE, cookie);
        self.call(request.body(Body::empty()).unwrap()).await
    }

    /// Status and body.
    async fn get(&self, path: &str, cookie: &str) -> (u16, String) {
        read(self.open(path, cookie).await).await
    }

    async fn json(&self, path: &str, cookie: &str) -> Value {
        let (status, body) = self.get(path, cookie).await;
        assert_eq!(status, 200, "{path}: {body}");
        serde_json::from_str(&body).unwrap()
    }

    /// Posts a form from the page itself.
    async fn post(&self, path: &str, form: &str, headers: &[(&str, &str)]) -> Response {
        let mut request = HttpRequest::post(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.call(request.body(Body::from(form.to_owned())).unwrap())
            .await
    }

    fn calls(&self) -> Vec<String> {
        std::mem::take(&mut self.world.lock().unwrap().calls)
    }
}

async fn read(response: Response) -> (u16, String) {
    let status = response.status().as_u16();
    let body = to_bytes(response.into_body(), 1 << 24).await.unwrap();
    (status, String::from_utf8(body.to_vec()).unwrap())
}
