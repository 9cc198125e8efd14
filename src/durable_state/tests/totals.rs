//! The totals of deadlines in the state.

use super::*;

/// The watch shows an ended job.
fn ended(totals: &DeadlineTotals, uid: &str) {
    let outcome = Some(DeadlineOutcome::Met);
    let job = JobWithDeadline {
        namespace: "team",
        class: "nightly",
        outcome,
    };
    totals.lock().see(&uid.into(), false, Some(job));
}

/// The number of met deadlines that a page shows; absent if it shows none.
fn met(totals: &DeadlineTotals) -> Option<u64> {
    let shown = totals.lock().shown()?;
    Some(
        shown
            .iter()
            .map(|(.., counts)| counts.of(DeadlineOutcome::Met))
            .sum(),
    )
}

#[tokio::test(start_paused = true)]
async fn jobs_that_are_gone_are_stored_with_the_next_write() {
    let api = Apiserver::new();
    let term = Term::begin(&api).await;
    term.totals.lock().listed();
    ended(&term.totals, "a");
    ended(&term.totals, "b");
    sleep(Duration::from_secs(100)).await;
    assert!(api.writes().is_empty(), "their ledgers have their outcome");
    term.totals.lock().gone("a");
    term.totals.lock().gone("b");
    sleep(Duration::from_secs(30) + A_LITTLE).await;
    assert_eq!(api.writes(), ["POST 201"], "one for both");
    let next = Term::begin(&api).await;
    next.totals.lock().listed();
    assert_eq!(met(&next.totals), Some(2));
}

#[tokio::test(start_paused = true)]
async fn the_next_leader_shows_the_totals_of_the_one_before() {
    let api = Apiserver::new();
    let term = Term::begin(&api).await;
    term.totals.lock().listed();
    for uid in ["a", "b", "c"] {
        ended(&term.totals, uid);
    }
    term.totals.lock().gone("a");
    term.hand_over.take_place().await;
    let next = Term::begin(&api).await;
    assert_eq!(met(&next.totals), None, "its list is not complete");
    ended(&next.totals, "b");
    ended(&next.totals, "c");
    next.totals.lock().listed();
    assert_eq!(met(&next.totals), Some(3));
}

#[tokio::test(start_paused = true)]
async fn totals_that_cannot_be_read_are_not_replaced_and_not_shown() {
    let api = Apiserver::new();
    let term = Term::begin(&api).await;
    term.totals.lock().listed();
    ended(&term.totals, "a");
    term.totals.lock().gone("a");
    term.hand_over.take_place().await;
    api.writes();
    api.world.lock().refuses = Some((Method::GET, 403));
    let next = Term::begin(&api).await;
    ended(&next.totals, "b");
    ended(&next.totals, "c");
    next.totals.lock().listed();
    next.totals.lock().gone("c");
    sleep(Duration::from_secs(61)).await;
    assert_eq!(met(&next.totals), None);
    assert!(api.writes().is_empty());
    next.totals.lock().gone("b");
    api.world.lock().refuses = None;
    sleep(Duration::from_secs(31)).await;
    assert_eq!(met(&next.totals), Some(3));
    assert_eq!(api.writes(), ["PATCH 200"]);
}

#[tokio::test(start_paused = true)]
async fn a_broken_state_begins_the_totals_again() {
    for totals in [
        r#"{"series":{"team":{"nightly":[1,2]}}}"#,
        r#"{"series":{"team":{"nightly":[1,2,-3]}}}"#,
        r#"{"series":{"team":{"nightly":[1,2,9007199254740993]}}}"#,
    ] {
        let text = format!(r#"{{"version":1,"totals":{totals}}}"#);
        let api = Apiserver::with(&text);
        let term = Term::begin(&api).await;
        term.totals.lock().listed();
        assert_eq!(
            (term.unusable(BROKEN), met(&term.totals)),
            (1, Some(0)),
            "{totals:.80}"
        );
    }
}

#[test]
fn totals_have_their_place_whatever_was_learned() {
    let totals = DeadlineTotals::default();
    totals.lock().restore(Default::default());
    for number in 0..300 {
        for index in 0..12 {
            let (namespace, class) = (format!("{number:063}"), format!("{index:063}"));
            let job = JobWithDeadline {
                namespace: &namespace,
                class: &class,
                outcome: Some(DeadlineOutcome::Missed),
            };
            let uid = format!("{number:018}{index:018}");
            totals.lock().see(&uid.as_str().into(), false, Some(job));
            totals.lock().gone(&uid);
        }
    }
    let totals = totals.lock().to_store();
    let size = serde_json::to_string(&totals).unwrap().len();
    assert!((100_000..250_000).contains(&size), "{size}");
    let state = State {
        planner: experience_of(300, 8, 32),
        totals: totals.clone(),
        ..State::default()
    };
    let (text, dropped) = encode(state, Sections::new()).unwrap();
    assert!(text.len() <= TEXT_MAX && dropped > 0);
    assert_eq!(decode(&text).unwrap().0.totals, totals);
}
