use super::*;

fn completion(at: i64, took: i64) -> Completion {
    Completion {
        at: Instant(at * 1000),
        took: Span(took * 1000),
    }
}

/// A history of a class in which the n-th job took as many seconds as the n-th number says.
fn took(seconds: &[i64]) -> CompletionHistory {
    let history = CompletionHistory::default();
    for (number, seconds) in seconds.iter().enumerate() {
        let at = i64::try_from(number).unwrap();
        history.see(
            &format!("uid-{number}"),
            "team/nightly",
            completion(at, *seconds),
        );
    }
    history
}

fn quantile_of(history: &CompletionHistory, which: Quantile) -> Option<i64> {
    let known = history.known("team/nightly", which);
    known.quantile.map(|span| span.0 / 1000)
}

#[test]
fn fewer_than_five_runs_have_no_quantile() {
    let four = took(&[10, 20, 30, 40]);
    assert_eq!(
        four.known("team/nightly", Quantile::Max),
        Known {
            runs: 4,
            quantile: None
        }
    );
    assert_eq!(
        quantile_of(&took(&[10, 20, 30, 40, 50]), Quantile::Max),
        Some(50)
    );
    assert_eq!(four.known("team/other", Quantile::P50), Known::default());
}

#[test]
fn quantiles_are_by_nearest_rank() {
    let hundred: Vec<i64> = (1..=50).rev().collect();
    let history = took(&hundred);
    let found = Quantile::ALL.map(|which| quantile_of(&history, which));
    assert_eq!(found, [25, 45, 48, 50, 50].map(Some));
    // Runs that differ by a hundred times give the quantile as it is.
    let wide = took(&[10, 10, 10, 10, 10, 10, 1000, 1000, 1000, 1000]);
    let found = [Quantile::P50, Quantile::P90].map(|which| quantile_of(&wide, which));
    assert_eq!(found, [10, 1000].map(Some));
}

#[test]
fn the_last_fifty_count_in_any_order_and_each_once() {
    let seconds: Vec<i64> = (1..=60).collect();
    let forth = took(&seconds);
    let back = CompletionHistory::default();
    for number in (0..60_i64).rev().chain(0..60) {
        let uid = format!("uid-{number}");
        back.see(&uid, "team/nightly", completion(number, number + 1));
    }
    assert_eq!(forth.to_store(), back.to_store());
    assert_eq!(forth.known("team/nightly", Quantile::Max).runs, RUNS_MAX);
    let figures = &forth.figures("team", None)[0];
    assert_eq!(figures.quantiles[0], Span(35_000), "11 to 60 are left");
}

#[test]
fn two_jobs_that_end_together_are_two() {
    let history = CompletionHistory::default();
    history.see("a", "team/nightly", completion(5, 60));
    history.see("b", "team/nightly", completion(5, 60));
    assert_eq!(history.known("team/nightly", Quantile::Max).runs, 2);
}

#[test]
fn a_namespace_never_sees_another() {
    let history = took(&[10; 5]);
    history.see("other", "team-b/nightly", completion(9, 1000));
    history.see("like", "tea/m", completion(9, 1000));
    assert_eq!(quantile_of(&history, Quantile::Max), Some(10));
    let classes = |namespace: &str, class| {
        let figures = history.figures(namespace, class);
        figures
            .into_iter()
            .map(|one| (one.class, one.runs))
            .collect::<Vec<_>>()
    };
    assert_eq!(classes("team", None), [("nightly".to_owned(), 5)]);
    assert_eq!(classes("team", Some("night")), []);
    assert_eq!(
        classes("team-b", Some("nightly")),
        [("nightly".to_owned(), 1)]
    );
}

#[test]
fn a_flood_of_classes_drops_those_of_its_own_namespace() {
    let history = took(&[10; 5]);
    let flood = i64::try_from(CLASSES_MAX).unwrap() + 20;
    for number in 0..flood {
        history.see(
            "uid",
            &format!("flood/class-{number:03}"),
            completion(100 + number, 5),
        );
    }
    let stored = history.to_store();
    assert_eq!(stored.len(), CLASSES_MAX);
    assert!(stored.is_sound());
    assert_eq!(quantile_of(&history, Quantile::P50), Some(10));
    assert!(
        history.figures("flood", Some("class-000")).is_empty(),
        "the oldest"
    );
    assert_eq!(history.figures("flood", Some("class-219")).len(), 1);
    // What was dropped does not come back from the state of before.
    history.restore(&stored);
    assert_eq!(history.to_store(), stored);
}

#[test]
fn a_failover_changes_nothing_whatever_is_read_first() {
    let before = took(&[10, 20, 30, 40, 50, 60]);
    let stored = before.to_store();
    let text = serde_json::to_string(&stored).unwrap();
    let stored: StoredCompletions = serde_json::from_str(&text).unwrap();
    assert!(stored.is_sound());
    let next = took(&[10, 20, 30]);
    next.restore(&stored);
    assert_eq!(next.to_store(), stored);
    let other = CompletionHistory::default();
    other.restore(&stored);
    other.see("uid-5", "team/nightly", completion(5, 60));
    assert_eq!(other.to_store(), stored);
}

#[test]
fn a_full_history_is_less_than_half_of_the_stored_state() {
    let history = CompletionHistory::default();
    for class in 0..i64::try_from(CLASSES_MAX).unwrap() {
        let name = format!("namespace-{:02}/a-class-with-a-name-{class:03}", class % 20);
        for run in 0..i64::try_from(RUNS_MAX).unwrap() {
            let completion = completion(1_764_000_000 + 60 * run + class, 86_400);
            history.see(&format!("uid-{class}-{run}"), &name, completion);
        }
    }
    let stored = history.to_store();
    let bytes = serde_json::to_string(&stored).unwrap().len();
    assert!(bytes < 300 * 1024, "{bytes}");
}

#[test]
fn only_a_complete_job_has_a_completion() {
    let complete = Ledger {
        first_pass: Some(Instant(1500)),
        last_win: Some(Instant(61_500)),
        ending: Some(Conclusion::Complete),
        finished: true,
        ..Ledger::default()
    };
    let found = Completion::of(&complete).unwrap();
    assert_eq!((found.at, found.took), (Instant(61_500), Span(60_000)));
    let changes: [fn(&mut Ledger); 5] = [
        |ledger| ledger.ending = Some(Conclusion::BackoffLimit),
        |ledger| ledger.ending = Some(Conclusion::DeadlineExceeded),
        |ledger| ledger.finished = false,
        |ledger| ledger.last_win = None,
        |ledger| ledger.first_pass = None,
    ];
    for change in changes {
        let mut ledger = complete.clone();
        change(&mut ledger);
        assert_eq!(Completion::of(&ledger), None);
    }
    let mut short = complete;
    short.last_win = Some(Instant(1000));
    assert_eq!(Completion::of(&short).unwrap().took, Span(1000));
}

#[test]
fn a_job_seems_no_faster_than_it_was() {
    let took = |first_pass, last_win| {
        let ledger = Ledger {
            first_pass: Some(Instant(first_pass)),
            last_win: Some(Instant(last_win)),
            ending: Some(Conclusion::Complete),
            finished: true,
            ..Ledger::default()
        };
        Completion::of(&ledger).unwrap().took
    };
    // The container ran from 1.9 s to 6.9 s, and its kubelet says 6 s.
    assert_eq!(took(1500, 6000), Span(5500));
    assert_eq!(took(1000, 6000), Span(6000));
}

#[test]
fn what_shed_does_not_write_is_not_sound() {
    for text in [
        r#"{"team/a": []}"#,
        r#"{"team/a": [[5, 0, 1]]}"#,
        r#"{"team/a": [[5, -1, 1]]}"#,
        r#"{"team/a": [[6, 1, 1], [5, 1, 1]]}"#,
    ] {
        let stored: StoredCompletions = serde_json::from_str(text).unwrap();
        assert!(!stored.is_sound(), "{text}");
    }
}
