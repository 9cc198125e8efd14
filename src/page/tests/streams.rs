//! Streams of events.

use shed_core::time::Span;

use super::*;

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
