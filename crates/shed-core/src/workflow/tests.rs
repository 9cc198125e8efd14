use super::*;

const CLASS: &str = "team/nightly";

/// A job of the stage that was there from `from` to `to` seconds.
fn job(id: u64, stage: &str, from: i64, to: Option<i64>) -> StageJob<'_> {
    let at = |seconds: i64| Instant(seconds * 1000);
    StageJob {
        job: id,
        stage,
        created: at(from),
        run_start: None,
        state: to.map_or(JobState::Open, |to| JobState::Complete(at(to))),
        is_last: false,
    }
}

/// A run of extract (10 s), a gap of 5 s, transform (20 s), a gap of 5 s and load (`load` s).
fn run(runs: &mut Runs, name: &str, from: i64, load: i64) {
    let id = from.unsigned_abs() * 10;
    runs.see(name, &job(id, "extract", from, Some(from + 10)));
    runs.see(name, &job(id + 1, "transform", from + 15, Some(from + 35)));
    let end = from + 40 + load;
    runs.see(name, &job(id + 2, "load", from + 40, Some(end)));
}

fn seconds(spans: &[Span]) -> Vec<f64> {
    spans.iter().map(|span| span.seconds()).collect()
}

#[test]
fn a_tail_is_the_time_that_later_stages_take() {
    let mut runs = Runs::default();
    for (night, load) in [(0, 30), (1, 10), (2, 20)] {
        run(&mut runs, &format!("n-{night}"), night * 1000, load);
    }
    let now = Instant(4_000_000);
    assert_eq!(
        seconds(&runs.tails("n-3", "extract", now)),
        [40.0, 50.0, 60.0]
    );
    assert_eq!(seconds(&runs.tails("n-3", "load", now)), [0.0; 3]);
    assert_eq!(runs.tails("n-3", "unheard-of", now), []);
    // A run teaches nothing about itself.
    assert_eq!(seconds(&runs.tails("n-1", "transform", now)), [25.0, 35.0]);
}

#[test]
fn a_tail_holds_no_stage_that_runs_at_the_same_time() {
    let mut runs = Runs::default();
    let mut see = |id, stage, from, to| runs.see("n-0", &job(id, stage, from, Some(to)));
    // The join awaits the longer one of two branches, and nothing awaits the report.
    see(1, "short", 0, 10);
    see(2, "long", 0, 50);
    see(3, "report", 0, 100);
    see(4, "join", 55, 75);
    let marked = StageJob {
        is_last: true,
        ..job(4, "join", 55, Some(75))
    };
    runs.see("n-0", &marked);
    let tail = |stage| seconds(&runs.tails("", stage, Instant(200_000)));
    assert_eq!(tail("short"), [25.0]);
    assert_eq!(tail("long"), [25.0]);
    assert_eq!(tail("join"), [0.0]);
    assert_eq!(tail("report"), [0.0]);
}

#[test]
fn a_run_has_ended_once_it_is_quiet_for_longer_than_any_gap() {
    let mut runs = Runs::default();
    run(&mut runs, "n-0", 0, 10);
    let tails = |seconds: i64| runs.tails("n-1", "extract", Instant(seconds * 1000)).len();
    assert_eq!((tails(55), tails(56)), (0, 1));
}

#[test]
fn a_run_that_goes_on_after_a_longer_gap_has_not_ended() {
    let mut runs = Runs::default();
    run(&mut runs, "n-0", 0, 10);
    let at = |seconds: i64| Instant(seconds * 1000);
    assert_eq!(seconds(&runs.tails("", "load", at(60))), [0.0]);
    runs.see("n-0", &job(9, "publish", 100, None));
    assert_eq!(runs.tails("", "load", at(101)), []);
    runs.see("n-0", &job(9, "publish", 100, Some(110)));
    // The longest gap is that of 50 s now.
    assert_eq!(runs.tails("", "load", at(160)), []);
    assert_eq!(seconds(&runs.tails("", "load", at(161))), [60.0]);
}

#[test]
fn a_single_stage_run_ends_by_its_mark_or_by_the_next_run() {
    let mut runs = Runs::default();
    let now = Instant(10_000_000);
    runs.see("a", &job(1, "all", 0, Some(10)));
    assert_eq!(runs.tails("", "all", now), []);
    runs.see("b", &job(2, "all", 100, None));
    assert_eq!(seconds(&runs.tails("", "all", now)), [0.0]);
    let marked = StageJob {
        is_last: true,
        ..job(2, "all", 100, Some(110))
    };
    runs.see("b", &marked);
    assert_eq!(seconds(&runs.tails("", "all", now)), [0.0, 0.0]);
}

#[test]
fn a_failed_run_teaches_nothing_until_its_stage_is_complete() {
    let mut runs = Runs::default();
    run(&mut runs, "n-0", 0, 10);
    let failed = StageJob {
        state: JobState::Failed,
        ..job(7, "publish", 60, None)
    };
    runs.see("n-0", &failed);
    let now = Instant(1_000_000);
    assert_eq!(runs.tails("", "load", now), []);
    runs.see("n-0", &job(8, "publish", 70, Some(80)));
    assert_eq!(seconds(&runs.tails("", "load", now)), [30.0]);
}

#[test]
fn the_start_of_a_run_outlives_its_first_job() {
    let mut runs = Runs::default();
    runs.see("n", &job(1, "extract", 10, None));
    let gone = StageJob {
        state: JobState::Gone,
        ..job(1, "extract", 10, None)
    };
    runs.see("n", &gone);
    assert_eq!(runs.start("n"), Some(Instant(10_000)));
    let stated = StageJob {
        run_start: Some(Instant(4_000)),
        ..job(2, "transform", 30, None)
    };
    runs.see("n", &stated);
    assert_eq!(runs.start("n"), Some(Instant(4_000)));
}

#[test]
fn a_name_that_is_used_again_after_a_marked_end_is_another_run() {
    let mut runs = Runs::default();
    let last = |id, from, to| StageJob {
        is_last: true,
        ..job(id, "all", from, to)
    };
    runs.see("etl", &last(1, 0, Some(10)));
    runs.see("etl", &last(2, 100, None));
    assert_eq!(runs.start("etl"), Some(Instant(100_000)));
    // A list shows the job of the first run again.
    runs.see("etl", &last(1, 0, Some(10)));
    assert_eq!(runs.start("etl"), Some(Instant(100_000)));
    runs.see("etl", &last(2, 100, Some(120)));
    let now = Instant(200_000);
    assert_eq!(runs.tails("", "all", now).len(), 2);
}

#[test]
fn stages_at_the_same_time_end_with_their_last_job() {
    let mut runs = Runs::default();
    runs.see("n", &job(1, "map", 0, Some(10)));
    runs.see("n", &job(2, "map", 0, Some(30)));
    runs.see("n", &job(3, "side", 5, Some(50)));
    runs.see("n", &job(5, "reduce", 30, Some(45)));
    runs.see("m", &job(4, "map", 100, None));
    let now = Instant(1_000_000);
    assert_eq!(seconds(&runs.tails("m", "map", now)), [15.0]);
}

#[test]
fn the_reserved_tail_is_the_quantile_of_enough_tails() {
    let tails = |count: i64| -> Vec<Span> { (1..=count).map(Span::from_seconds).collect() };
    assert_eq!(reserved_tail(&tails(2)), None);
    assert_eq!(reserved_tail(&tails(3)), Some(Span::from_seconds(3)));
    assert_eq!(reserved_tail(&tails(10)), Some(Span::from_seconds(8)));
}

#[test]
fn the_probability_of_the_run_is_the_mean_over_the_tails() {
    let deadline = Instant(100_000);
    let in_time = |at: Instant| f64::from(u8::from(at >= Instant(50_000)));
    let tails = [10, 40, 60].map(Span::from_seconds);
    let pocd = pocd_of_run(deadline, &tails, in_time);
    assert_eq!(pocd, Some(2.0 / 3.0));
    assert_eq!(pocd_of_run(deadline, &tails[..2], in_time), None);
}

#[test]
fn bounds_drop_ended_runs_and_the_oldest_classes_first() {
    let mut all = Workflows::default();
    all.see(CLASS, "open", &job(1, "extract", 0, None));
    for number in 1..2 * RUNS_MAX as i64 {
        let name = format!("n-{number}");
        all.see(
            CLASS,
            &name,
            &job(
                number as u64 + 1,
                "extract",
                number * 100,
                Some(number * 100 + 1),
            ),
        );
    }
    let runs = all.runs(CLASS).unwrap();
    assert_eq!(runs.0.len(), RUNS_MAX);
    assert!(runs.start("open").is_some() && runs.start("n-1").is_none());
    for number in 0..CLASSES_MAX as i64 {
        all.see(
            &format!("loud/{number}"),
            "r",
            &job(1, "s", 10_000 + number, None),
        );
    }
    assert_eq!(all.len(), CLASSES_MAX);
    assert!(all.runs(CLASS).is_some() && all.runs("loud/0").is_none());
    assert!(all.is_sound());
    let text = serde_json::to_string(&all).unwrap();
    assert_eq!(serde_json::from_str::<Workflows>(&text).unwrap(), all);
}

#[test]
fn a_failed_job_that_is_shown_after_its_repetition_fails_no_run() {
    let failed = StageJob {
        state: JobState::Failed,
        ..job(3, "load", 100, None)
    };
    for is_later in [false, true] {
        let mut runs = Runs::default();
        run(&mut runs, "n-0", 0, 10);
        let again = StageJob {
            is_last: true,
            ..job(4, "load", if is_later { 90 } else { 110 }, Some(130))
        };
        runs.see("n-0", &again);
        runs.see("n-0", &failed);
        let ended = runs.tails("", "extract", Instant(10_000_000)).len();
        assert_eq!(ended, usize::from(!is_later));
    }
}

#[test]
fn restored_runs_lack_the_jobs_that_were_open() {
    let mut first = Workflows::default();
    first.see(CLASS, "a", &job(1, "extract", 0, Some(10)));
    first.see(CLASS, "a", &job(2, "load", 20, None));
    let text = serde_json::to_string(&first).unwrap();
    let stored: Workflows = serde_json::from_str(&text).unwrap();
    assert_eq!(stored, first);
    // The watch shows the second job before or after the state is read, or it is gone.
    let shown = |next: &mut Workflows| next.see(CLASS, "a", &job(2, "load", 20, Some(30)));
    let mut before = Workflows::default();
    shown(&mut before);
    before.restore(&stored);
    let mut after = Workflows::default();
    after.restore(&stored);
    assert!(!after.runs(CLASS).unwrap().0["a"].is_open());
    shown(&mut after);
    assert_eq!(before, after);
    assert_eq!(after.runs(CLASS).unwrap().start("a"), Some(Instant(0)));
    assert!(after.is_sound());
}

#[test]
fn a_restored_run_that_had_ended_is_not_one_of_the_same_name() {
    let mut stored = Workflows::default();
    let last = StageJob {
        is_last: true,
        ..job(1, "all", 0, Some(10))
    };
    stored.see(CLASS, "a", &last);
    let mut next = Workflows::default();
    next.see(CLASS, "a", &job(2, "all", 100, None));
    next.restore(&stored);
    let runs = next.runs(CLASS).unwrap();
    assert_eq!(runs.start("a"), Some(Instant(100_000)));
    assert_eq!(runs.tails("a", "all", Instant(200_000)).len(), 1);
}

#[test]
fn the_end_of_a_job_of_an_unknown_class_begins_none() {
    let mut workflows = Workflows::default();
    for state in [JobState::Failed, JobState::Gone] {
        let ended = StageJob {
            state,
            ..job(1, "all", 0, None)
        };
        workflows.see(CLASS, "a", &ended);
    }
    assert!(workflows.is_empty());
}

#[test]
fn a_stage_has_the_median_time_of_other_runs() {
    let mut runs = Runs::default();
    for (night, load) in [(0, 30), (1, 10), (2, 50)] {
        run(&mut runs, &format!("n-{night}"), night * 1000, load);
    }
    let now = Instant(4_000_000);
    runs.see("n-3", &job(1, "extract", 3000, Some(3100)));
    runs.see("n-3", &job(2, "load", 3200, None));
    runs.see("n-3", &job(3, "publish", 3200, None));
    runs.see("n-3", &job(4, "", 3200, None));
    let times = runs.stage_times("n-3", now);
    let shown = times.iter().map(|time| {
        let took = time.end.map(|end| end.since(time.begin).seconds());
        (time.stage, took, time.usual.seconds())
    });
    let shown: Vec<_> = shown.collect();
    // No other run had the stage `publish`.
    assert_eq!(
        shown,
        [("extract", Some(100.0), 10.0), ("load", None, 30.0)]
    );
    // Two other runs are too few.
    assert_eq!(runs.stage_times("n-0", Instant(2_100_000)), []);
    assert_eq!(runs.stage_times("unheard-of", now), []);
}
