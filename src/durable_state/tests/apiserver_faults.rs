//! Writes that the apiserver refuses or does not answer.

use super::*;

#[tokio::test(start_paused = true)]
async fn after_a_conflict_the_leader_replaces_all_but_newer_content() {
    let api = Apiserver::with(&text_of(experience(1)));
    let term = Term::begin(&api).await;
    term.learn(2);
    api.world.lock().rival = Some(text_of(experience(9)));
    sleep(Duration::from_secs(30) + A_LITTLE).await;
    assert_eq!(api.writes(), ["PATCH 409", "PATCH 200"]);
    assert_eq!(api.text(), text_of(experience(2)));
    term.learn(3);
    api.world.lock().rival = Some(r#"{"version":2}"#.to_owned());
    sleep(Duration::from_secs(90)).await;
    assert_eq!(api.writes(), ["PATCH 409"]);
    assert_eq!(api.text(), r#"{"version":2}"#);
    assert_eq!(term.metrics.writes.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_configmap_is_created_again() {
    let api = Apiserver::with(&text_of(experience(1)));
    let term = Term::begin(&api).await;
    api.world.lock().map = None;
    term.learn(2);
    sleep(Duration::from_secs(30) + A_LITTLE).await;
    assert_eq!(api.writes(), ["PATCH 404", "POST 201"]);
    // Another client is faster.
    api.world.lock().map = None;
    term.learn(3);
    api.world.lock().rival = Some(String::new());
    sleep(Duration::from_secs(30)).await;
    assert_eq!(api.writes(), ["PATCH 409", "PATCH 200"]);
    assert_eq!(api.text(), text_of(experience(3)));
}

#[tokio::test(start_paused = true)]
async fn without_rights_a_term_uses_priors_and_counts_failed_writes() {
    let api = Apiserver::with(&text_of(experience(1)));
    api.world.lock().refuses = Some((Method::GET, 403));
    let begun = tokio::time::Instant::now();
    let term = Term::begin(&api).await;
    assert_eq!(begun.elapsed(), Duration::ZERO, "the answer is final");
    assert_eq!(
        (&term.begun_with, term.unusable(UNREADABLE)),
        (&State::default(), 1)
    );
    term.learn(2);
    sleep(Duration::from_secs(61)).await;
    assert_eq!(term.metrics.write_errors.get(), 2);
    // Once it may read, it may write.
    api.world.lock().refuses = None;
    sleep(Duration::from_secs(30)).await;
    assert_eq!(api.writes(), ["PATCH 200"]);
    api.world.lock().refuses = Some((Method::PATCH, 403));
    term.learn(3);
    sleep(Duration::from_secs(30)).await;
    assert_eq!(term.metrics.write_errors.get(), 3);
}

#[tokio::test(start_paused = true)]
async fn an_unavailable_apiserver_is_waited_for_within_limits() {
    let api = Apiserver::with(&text_of(experience(1)));
    api.world.lock().refuses = Some((Method::GET, 503));
    let begun = tokio::time::Instant::now();
    let (term, ()) = tokio::join!(Term::begin(&api), async {
        sleep(Duration::from_millis(500)).await;
        api.world.lock().refuses = None;
    });
    assert_eq!(term.begun_with.planner, experience(1));
    assert!(begun.elapsed() <= Duration::from_secs(2));
    api.world.lock().refuses = Some((Method::GET, 503));
    let term = Term::begin(&api).await;
    assert_eq!(term.unusable(UNREADABLE), 1);
}

#[tokio::test(start_paused = true)]
async fn a_closed_write_gate_stops_the_state_too() {
    use crate::lease::write_gate::{WriteGate, WriteGateLayer};
    let api = Apiserver::new();
    let gate = WriteGate::new(None, loose_counter());
    let (service, mut requests) = tower_test::mock::pair::<Request<Body>, Response<Body>>();
    let service = tower::Layer::layer(&WriteGateLayer(Arc::clone(&gate)), service);
    let behind = Apiserver {
        client: Client::new(service, "shed-system"),
        world: Arc::clone(&api.world),
    };
    tokio::spawn(async move {
        while let Some((request, respond)) = requests.next_request().await {
            assert_eq!(request.method(), Method::GET, "a write passed the gate");
            let (code, body) = failure(404, "NotFound");
            let body = Body::from(body.to_string().into_bytes());
            respond.send_response(Response::builder().status(code).body(body).unwrap());
        }
    });
    let term = Term::begin(&behind).await;
    gate.close();
    term.learn(1);
    term.hand_over.take_place().await;
    assert_eq!(term.metrics.write_errors.get(), 1);
}
