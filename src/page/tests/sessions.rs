//! Logins, cookies and their ends.

use shed_core::time::Span;

use super::*;

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
        site.page.clock.skip_for_tests(Span::from_seconds(60));
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
