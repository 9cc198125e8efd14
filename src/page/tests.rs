//! Visitors of a leader with jobs of two namespaces. The apiserver, in memory, knows the tokens `admin`, who may list all
//! jobs, `team`, who may list those of `team`, and any `user-…`, who may list none.

use std::sync::Mutex;

use axum::body::to_bytes;
use axum::extract::connect_info::MockConnectInfo;
use http::Request as HttpRequest;
use kube::client::Body as KubeBody;
use serde_json::Value;
use shed_core::time::Span;
use tokio_stream::StreamExt;
use tower::Service;

use super::*;
use crate::answers::fixtures::{Leading, elsewhere, ended_job, running_job};
use crate::api::DeadlineJob;

/// What nobody but `admin` may learn of.
const FOREIGN: [&str; 3] = ["rival", "merger", "merged"];

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
struct Site {
    page: Arc<Page>,
    router: Router,
    world: Arc<Mutex<World>>,
    standing: Arc<Standing>,
    _leading: Option<Leading>,
}

impl Site {
    /// A replica that does not lead.
    fn standby() -> Self {
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

/// The headers of a form that the page sends.
const OWN: [(&str, &str); 2] = [
    (
        "content-type",
        "application/x-www-form-urlencoded;charset=UTF-8",
    ),
    ("sec-fetch-site", "same-origin"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_opens_a_session_and_the_logout_closes_it() {
    let site = Site::leading().await;
    let response = site.post("/login", "token=team", &OWN).await;
    assert_eq!(response.status(), 204);
    let set = response.headers()[header::SET_COOKIE].to_str().unwrap();
    for part in [
        "__Host-shed=",
        "; Path=/;",
        "; Secure",
        "; HttpOnly",
        "; SameSite=Strict",
        "; Max-Age=28",
    ] {
        assert!(set.contains(part), "{part}: {set}");
    }
    assert_eq!(site.calls(), ["token team"]);
    let cookie = set.split(';').next().unwrap().to_owned();
    let session = site.json("/api/session", &cookie).await;
    assert_eq!(session["user"], "team");
    assert!(session["expires"].as_str().unwrap().ends_with('Z'));
    assert!(
        site.calls().is_empty(),
        "the review is ten seconds old at most"
    );
    let response = site.post("/logout", "", &OWN[1..]).await;
    let set = response.headers()[header::SET_COOKIE].to_str().unwrap();
    assert_eq!(response.status(), 204);
    assert!(
        set.starts_with("__Host-shed=; ") && set.contains("Max-Age=0"),
        "{set}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_login_that_cannot_be_is_refused_with_a_sentence() {
    let site = Site::leading().await;
    let long = format!("token={}", "x".repeat(40_000));
    let no_cookie = format!("token=user{}", "x".repeat(4000));
    let own = OWN.as_slice();
    let (kind, text) = (OWN[0], ("content-type", "text/plain"));
    let cross = [
        kind,
        ("sec-fetch-site", "cross-site"),
        ("origin", "https://shed"),
        ("host", "shed"),
    ];
    let other_port = [kind, ("origin", "https://shed:1"), ("host", "shed")];
    let same_origin = [kind, ("origin", "https://shed"), ("host", "shed")];
    for (form, headers, status, words, reviews) in [
        ("token=nobody", own, 401, "kubectl create token", 1),
        ("token=", own, 400, "missing or empty", 0),
        ("name=team", own, 400, "missing or empty", 0),
        ("token=%zz", own, 400, "not form-encoded", 0),
        ("token=team", &[text, OWN[1]], 400, "Content-Type", 0),
        (&*long, own, 413, "32768 bytes", 0),
        (&*no_cookie, own, 413, "too long for a cookie", 1),
        ("token=team", &[kind], 403, "not from the page", 0),
        ("token=team", &cross, 403, "not from the page", 0),
        ("token=team", &other_port, 403, "not from the page", 0),
        ("token=te%61m", &same_origin, 204, "", 1),
    ] {
        let response = site.post("/login", form, headers).await;
        let has_cookie = response.headers().contains_key(header::SET_COOKIE);
        let (found, body) = read(response).await;
        assert_eq!(found, status, "{form:.30}: {body}");
        assert!(body.contains(words), "{form:.30}: {body}");
        assert!(!body.contains("zz") && has_cookie == (status == 204));
        assert_eq!(site.calls().len(), reviews, "{form:.30}");
        // Each case as from another address.
        site.page.logins.forget();
    }
    let (status, _) = read(site.post("/logout", "", &cross).await).await;
    assert_eq!(status, 403);
    site.world.lock().unwrap().is_down = true;
    let (status, body) = read(site.post("/login", "token=admin", &OWN).await).await;
    assert_eq!(status, 503, "{body}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn logins_of_one_address_are_bounded() {
    let site = Site::leading().await;
    site.page.clock.freeze_for_tests();
    let mut refused = 0;
    for number in 0..40 {
        let form = format!("token=guess-{number}");
        let (status, _) = read(site.post("/login", &form, &OWN).await).await;
        refused += usize::from(status == 503);
    }
    assert_eq!((site.calls().len(), refused), (10, 30));
}

#[tokio::test]
async fn a_standby_has_the_page_and_no_data() {
    let site = Site::standby();
    let cookie = site.cookie("admin");
    for standing in ["unknown", "waiting"] {
        for path in [
            "/api/jobs",
            "/api/nodes",
            "/api/events",
            "/api/jobs/team/tight",
        ] {
            let (status, body) = site.get(path, &cookie).await;
            assert_eq!(status, 503, "{standing} {path}: {body}");
            assert!(!body.contains("shed-0"), "{body}");
        }
        let (status, body) = read(site.post("/login", "token=team", &OWN).await).await;
        assert_eq!(status, 503, "{body}");
        let response = site.open("/", "").await;
        assert_eq!(response.status(), 200);
        let policy = response.headers()[header::CONTENT_SECURITY_POLICY].clone();
        assert!(policy.to_str().unwrap().starts_with("default-src 'none';"));
        site.standing.waiting("shed-0");
    }
}

#[tokio::test]
async fn a_cookie_that_is_not_of_a_live_session_is_refused() {
    let (site, other) = (Site::standby(), Site::standby());
    let own = site.cookie("team");
    assert_eq!(site.get("/api/session", &own).await.0, 200);
    let foreign = other.cookie("team");
    let mut tampered = own.clone();
    let last = if tampered.pop() == Some('A') {
        'B'
    } else {
        'A'
    };
    tampered.push(last);
    let bare = format!("{}=team", session::COOKIE);
    // A token that expired an hour ago: {"exp": 1}.
    let expired = site.cookie("team.eyJleHAiOiAxfQ.c2ln");
    site.calls();
    for cookie in ["", &foreign, &tampered, &bare, &expired] {
        for path in ["/api/session", "/api/jobs", "/api/events"] {
            let (status, body) = site.get(path, cookie).await;
            assert_eq!(status, 401, "{cookie:.40}: {body}");
            assert!(body.contains("log in"), "{body}");
        }
    }
    assert!(site.calls().is_empty(), "none of them costs a review");
}

#[tokio::test(start_paused = true)]
async fn a_session_ends_soon_after_its_token() {
    let site = Site::standby();
    let cookie = site.cookie("team");
    assert_eq!(site.get("/api/session", &cookie).await.0, 200);
    site.world.lock().unwrap().revoked.push("team".to_owned());
    tokio::time::sleep(Duration::from_secs(10)).await;
    let (status, body) = site.get("/api/session", &cookie).await;
    assert_eq!(status, 401, "{body}");
    assert_eq!(site.calls(), ["token team", "token team"]);
    site.world.lock().unwrap().is_down = true;
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(site.get("/api/session", &cookie).await.0, 503);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rights_are_reviewed_once_and_used_again() {
    let site = Site::leading().await;
    let (admin, team) = (site.cookie("admin"), site.cookie("team"));
    for _ in 0..3 {
        site.json("/api/jobs", &admin).await;
    }
    assert_eq!(site.calls(), ["token admin", "access admin all"]);
    for _ in 0..3 {
        site.json("/api/jobs", &team).await;
        site.json("/api/jobs/team/tight", &team).await;
    }
    let mut calls = site.calls();
    calls.sort_unstable();
    let expected = [
        "access team all",
        "access team rival",
        "access team team",
        "token team",
    ];
    assert_eq!(calls, expected);
}

/// All bodies that a visitor can get.
async fn walk(site: &Site, token: &str) -> Vec<(String, String)> {
    let cookie = site.cookie(token);
    let mut found = Vec::new();
    let mut paths: Vec<String> = [
        "/api/session",
        "/api/jobs",
        "/api/jobs?ended=true",
        "/api/jobs/team/tight",
        "/api/jobs/team/done",
        "/api/jobs/team/none",
        "/api/jobs/rival/merger",
        "/api/jobs/rival/merged",
        "/api/jobs/rival/none",
        "/api/nodes",
        "/api/none",
        "/",
    ]
    .map(str::to_owned)
    .to_vec();
    paths.push("/api/jobs?ended=true&limit=1".to_owned());
    while let Some(path) = paths.pop() {
        let (status, body) = site.get(&path, &cookie).await;
        let answer: Value = serde_json::from_str(&body).unwrap_or_default();
        if let Some(next) = answer["continue"].as_str() {
            paths.push(format!("/api/jobs?ended=true&limit=1&continue={next}"));
        }
        found.push((path, format!("{status} {body}")));
    }
    for path in ["/api/events?job=team/tight", "/api/events?job=rival/merger"] {
        let response = site.open(path, &cookie).await;
        let mut stream = response.into_body().into_data_stream();
        let mut text = String::new();
        // The nodes are the last event of the first look.
        while !text.contains("event: nodes") {
            let frame = stream.next().await.unwrap().unwrap();
            text.push_str(std::str::from_utf8(&frame).unwrap());
        }
        found.push((path.to_owned(), text));
    }
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_of_a_foreign_namespace_is_in_any_response() {
    let site = Site::leading().await;
    let names = |walked: &[(String, String)]| {
        let bodies = walked.iter().map(|(_, body)| body.as_str());
        let all = bodies.collect::<String>();
        FOREIGN.map(|name| all.contains(name))
    };
    assert_eq!(
        names(&walk(&site, "admin").await),
        [true; 3],
        "admin sees them"
    );
    for token in ["team", "user-1"] {
        for (path, body) in walk(&site, token).await {
            for name in FOREIGN {
                assert!(!body.contains(name), "{token} {path}: {body}");
            }
        }
    }
    // What does not exist and what may not be seen look the same.
    let team = site.cookie("team");
    let absent = site.get("/api/jobs/team/none", &team).await;
    for path in [
        "/api/jobs/rival/merger",
        "/api/jobs/rival/merged",
        "/api/jobs/rival/none",
    ] {
        assert_eq!(site.get(path, &team).await, absent, "{path}");
    }
    let gets = site
        .calls()
        .into_iter()
        .filter(|call| call.contains("get "));
    assert!(
        gets.filter(|call| call.contains("merged")).count() <= 1,
        "for admin alone"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_have_the_visible_jobs_and_count_them_alone() {
    let site = Site::leading().await;
    let names = |list: &Value| -> Vec<String> {
        let jobs = list["jobs"].as_array().unwrap().iter();
        jobs.map(|job| job["name"].as_str().unwrap().to_owned())
            .collect()
    };
    for (token, live, all, namespaces) in [
        ("admin", 3, 6, json!("all")),
        ("team", 2, 4, json!(["team"])),
        ("user-1", 0, 0, json!([])),
    ] {
        let cookie = site.cookie(token);
        let list = site.json("/api/jobs", &cookie).await;
        assert_eq!(
            (&list["total"], names(&list).len()),
            (&json!(live), live),
            "{token}"
        );
        assert_eq!(list["namespaces"], namespaces, "{token}");
        let list = site.json("/api/jobs?ended=true", &cookie).await;
        assert_eq!(
            (&list["total"], names(&list).len()),
            (&json!(all), all),
            "{token}"
        );
    }
    let team = site.cookie("team");
    let list = site.json("/api/jobs?ended=true", &team).await;
    assert_eq!(names(&list), ["tight", "loose", "done", "first"], "{list}");
    let done = &list["jobs"][2];
    let expected = json!({"namespace": "team", "name": "done", "kind": "DeadlineJob", "phase": "Complete",
        "completionTime": "2030-01-01T00:00:10Z", "tasks": 4, "succeeded": 4, "active": 0, "clones": 0, "waiting": 0});
    assert_eq!(*done, expected);
    // Page by page, it is the same.
    let (mut path, mut paged) = ("/api/jobs?ended=true&limit=1".to_owned(), Vec::new());
    loop {
        let page = site.json(&path, &team).await;
        paged.extend(names(&page));
        let Some(next) = page["continue"].as_str() else {
            break;
        };
        path = format!(
            "/api/jobs?ended=true&limit=1&continue={}",
            next.replace('@', "%40")
        );
    }
    assert_eq!(paged, names(&list));
    for (path, words) in [
        ("/api/jobs?ended=1", "use true or false"),
        ("/api/jobs?continue=@x/a/b/Job", "continue="),
        ("/api/nodes?limit=1", "unknown parameter"),
        ("/api/events?job=tight", "<namespace>/<name>"),
        ("/api/jobs/team/tight?kind=Pod", "kind=Pod"),
    ] {
        let (status, body) = site.get(path, &team).await;
        assert_eq!(status, 400, "{path}: {body}");
        assert!(body.contains(words), "{path}: {body}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_has_its_record_also_when_it_has_ended() {
    let site = Site::leading().await;
    let team = site.cookie("team");
    let job = site
        .json("/api/jobs/team/tight?kind=DeadlineJob", &team)
        .await;
    assert_eq!(
        job["record"]["attempts"].as_array().unwrap().len(),
        8,
        "{job}"
    );
    let done = site.json("/api/jobs/team/done", &team).await;
    assert_eq!(done["completionTime"], "2030-01-01T00:00:10Z");
    assert_eq!(
        (&done["phase"], &done["succeeded"]),
        (&json!("Complete"), &json!(4))
    );
    assert_eq!(done["record"]["attempts"][0]["node"], "node-of-done");
    let (status, _) = site.get("/api/jobs/team/done?kind=Job", &team).await;
    assert_eq!(status, 404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_are_those_that_the_visible_jobs_show() {
    let site = Site::leading().await;
    let nodes = async |token: &str| {
        let list = site.json("/api/nodes", &site.cookie(token)).await;
        let nodes = list["nodes"].as_array().unwrap().clone();
        let name = |node: &Value| node["name"].as_str().unwrap().to_owned();
        (nodes.iter().map(name).collect::<Vec<_>>(), nodes)
    };
    let (all, _) = nodes("admin").await;
    assert_eq!(all.len(), 6, "also those without evidence: {all:?}");
    let (own, shown) = nodes("team").await;
    assert_eq!(own, ["node-0", "node-1"]);
    assert_eq!(
        (&shown[0]["verdict"], &shown[0]["avoidedBy"]),
        (&json!("Slow"), &json!(["team"]))
    );
    assert_eq!(shown[0]["witnesses"].as_array().unwrap().len(), 2);
    assert!(nodes("user-1").await.0.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_are_bounded_and_their_places_are_given_back() {
    let site = Site::leading().await;
    let mut open = Vec::new();
    for user in 0..8 {
        let cookie = site.cookie(&format!("user-{user}"));
        for _ in 0..4 {
            let response = site.open("/api/events", &cookie).await;
            assert_eq!(response.status(), 200);
            open.push(response);
        }
        let (status, body) = site.get("/api/events", &cookie).await;
        assert_eq!(status, 503, "{body}");
    }
    let team = site.cookie("team");
    let (status, body) = site.get("/api/events", &team).await;
    assert_eq!(status, 503);
    assert!(body.contains("32 pages"), "{body}");
    open.clear();
    for _ in 0..600 {
        if site.open("/api/events", &team).await.status() == 200 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("no place was given back");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_ends_with_its_session_and_with_the_term() {
    let site = Site::leading().await;
    let short = Session {
        token: "team".to_owned(),
        ends: site.page.clock.now().plus(Span::from_seconds(4)),
    };
    let short = format!(
        "{}={}",
        session::COOKIE,
        site.page.seal.seal(&short).unwrap()
    );
    let long = site.cookie("team");
    let short = site.open("/api/events", &short).await;
    let long = site.open("/api/events", &long).await;
    let rest = async |response: Response| {
        assert_eq!(
            response.headers()[header::CONTENT_TYPE],
            "text/event-stream"
        );
        read(response).await.1
    };
    let text = rest(short).await;
    assert!(
        text.starts_with("event: jobs\ndata: {\"time\":\""),
        "{text:.200}"
    );
    assert!(text.contains("\n\nevent: nodes\ndata: {"), "{text}");
    assert!(
        text.contains("\n\nevent: end\ndata: {\"error\":\"the session is over"),
        "{text}"
    );
    site.standing.waiting("shed-1");
    let text = rest(long).await;
    assert!(
        text.contains("\n\nevent: end\ndata: {\"error\":\"this replica does not lead"),
        "{text}"
    );
}

#[tokio::test]
async fn a_port_in_use_costs_the_page_alone() {
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (client, _) = apiserver(vec![]);
    let source = Source {
        standing: Arc::default(),
        term: Arc::default(),
        clock: Clock::for_tests(),
        client,
    };
    run(taken.local_addr().unwrap(), None, source).await;
}
