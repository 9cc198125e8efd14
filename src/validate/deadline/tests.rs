use super::*;
use crate::fixtures;
use crate::validate::validate;

const CLOCK: &str = "deadline: {clock: {time: '06:00', timeZone: Etc/UTC}}";
const SIX: Instant = Instant(6 * 3_600_000);

fn history(factor: &str) -> HistoryRule {
    HistoryRule::new(Quantile::P95, factor).unwrap()
}

/// This quantile is known.
fn known(quantile: Span) -> Learned {
    Learned {
        quantile: Some(quantile),
        ..Learned::default()
    }
}

/// A job of a class whose deadline is half above the 95th percentile.
fn of_history() -> ValidatedJob {
    let mut job = fixtures::job("deadline: {history: {quantile: p95, factor: '1.5'}}");
    let label = (crate::api::LABEL_CLASS.to_owned(), "nightly".to_owned());
    job.metadata.labels = Some([label].into());
    validate(&job).unwrap()
}

#[test]
fn a_factor_is_exact_to_a_thousandth() {
    let second = Span(1000);
    for (factor, limit) in [
        ("1", 1000),
        ("1.5", 1500),
        ("0.001", 1),
        ("100", 100_000),
        ("1.05", 1050),
    ] {
        assert_eq!(history(factor).limit(second), Span(limit), "{factor}");
    }
    for factor in [
        "0", "0.000", "100.001", "1000", "-1", "+1", "1.", ".5", "1.2345", "1e2", "NaN", "",
    ] {
        assert_eq!(HistoryRule::new(Quantile::P95, factor), None, "{factor}");
    }
    assert_eq!(history("1.50").text(), "history(p95)*1.5");
    assert_eq!(history("3").limit(Span(i64::MAX)), Span(i64::MAX));
}

#[test]
fn a_time_of_day_is_known_at_once_and_stays_as_recorded() {
    let job = validate(&fixtures::job(CLOCK)).unwrap();
    let mut ledger = Ledger::default();
    assert_eq!(job.deadline_by(&ledger), Some(SIX));
    ledger.fixed_deadline = job.fixed_deadline(&ledger, Learned::default(), Instant(0));
    // The start of the clock has moved; the ledger's instant counts.
    let moved = ValidatedJob {
        counts_from: SIX,
        ..job
    };
    assert_eq!(moved.deadline_by(&ledger), Some(SIX));
    assert_eq!(
        moved.fixed_deadline(&ledger, Learned::default(), SIX),
        ledger.fixed_deadline
    );
}

#[test]
fn another_rule_is_computed_again() {
    let job = validate(&fixtures::job(CLOCK)).unwrap();
    let recorded = job.fixed_deadline(&Ledger::default(), Learned::default(), Instant(0));
    let ledger = Ledger {
        fixed_deadline: recorded,
        ..Ledger::default()
    };
    let later = "deadline: {clock: {time: '07:00', timeZone: Etc/UTC}}";
    let later = validate(&fixtures::job(later)).unwrap();
    let seven = SIX.plus(Span::from_seconds(3600));
    assert_eq!(later.deadline_by(&ledger), Some(seven));
    let fixed = later
        .fixed_deadline(&ledger, Learned::default(), Instant(0))
        .unwrap();
    assert_eq!((&*fixed.rule, fixed.at), ("07:00 Etc/UTC", seven));
    let within = validate(&fixtures::job("")).unwrap();
    assert_eq!(
        within.fixed_deadline(&ledger, Learned::default(), Instant(0)),
        None
    );
}

#[test]
fn a_history_deadline_counts_from_the_first_pass() {
    let (job, minute) = (of_history(), Span::from_seconds(60));
    let mut ledger = Ledger::default();
    assert_eq!(
        job.fixed_deadline(&ledger, known(minute), Instant(0)),
        None,
        "suspended"
    );
    ledger.first_pass = Some(Instant(10_000));
    assert_eq!(
        job.fixed_deadline(&ledger, Learned::default(), Instant(0)),
        None,
        "too few runs"
    );
    assert!(job.deadline.gives_none(job.deadline_by(&ledger)));
    ledger.fixed_deadline = job.fixed_deadline(&ledger, known(minute), Instant(20_000));
    assert_eq!(job.deadline_by(&ledger), Some(Instant(100_000)));
    let longer = known(Span::from_seconds(600));
    assert_eq!(
        job.fixed_deadline(&ledger, longer, Instant(20_000)),
        ledger.fixed_deadline
    );
}

#[test]
fn a_history_deadline_that_has_passed_is_not_recorded() {
    let (job, minute) = (of_history(), known(Span::from_seconds(60)));
    let ledger = Ledger {
        first_pass: Some(Instant(0)),
        ..Ledger::default()
    };
    assert_eq!(job.fixed_deadline(&ledger, minute, Instant(90_000)), None);
    assert!(
        job.fixed_deadline(&ledger, minute, Instant(89_999))
            .is_some()
    );
}

#[test]
fn an_ended_job_gets_no_deadline() {
    let ledger = Ledger {
        first_pass: Some(Instant(0)),
        ending: Some(shed_core::snapshot::Conclusion::Complete),
        ..Ledger::default()
    };
    let minute = known(Span::from_seconds(60));
    assert_eq!(
        of_history().fixed_deadline(&ledger, minute, Instant(0)),
        None
    );
}

/// A job that was created at 0 s, with the annotations of a run that must be complete within a minute.
fn stage(change: &str) -> ValidatedJob {
    let mut job = fixtures::job(change);
    let run = [
        ("shed.dev/workflow", "nightly-7"),
        ("shed.dev/workflow-deadline", "1m"),
    ];
    let run = run.map(|(key, value)| (key.to_owned(), value.to_owned()));
    job.metadata.annotations = Some(run.into());
    validate(&job).unwrap()
}

/// The run began then.
fn began(at: i64) -> Learned {
    Learned {
        run_start: Some(Instant(at)),
        ..Learned::default()
    }
}

#[test]
fn the_deadline_of_a_run_is_recorded_once() {
    let job = stage("deadline: {within: 1h}");
    let mut ledger = Ledger::default();
    assert_eq!(job.deadline_by(&ledger), Some(Instant(3_600_000)));
    ledger.fixed_deadline = job.fixed_deadline(&ledger, began(-30_000), Instant(0));
    let fixed = ledger.fixed_deadline.clone().unwrap();
    assert_eq!(
        (&*fixed.rule, fixed.at),
        ("workflow(nightly-7) 1m", Instant(30_000))
    );
    assert_eq!(job.deadline_by(&ledger), Some(Instant(30_000)));
    // The history of the run is lost, or another operator leads.
    for later in [Learned::default(), began(0)] {
        let again = job.fixed_deadline(&ledger, later, Instant(0));
        assert_eq!(again, ledger.fixed_deadline);
    }
}

#[test]
fn the_earlier_one_of_both_deadlines_binds() {
    for (own, expected) in [
        ("deadline: {within: 10s}", 10_000),
        ("deadline: {within: 10m}", 61_000),
        ("deadline: {at: '1970-01-01T00:00:02Z'}", 2000),
        (
            "deadline: {clock: {time: '00:01', timeZone: Etc/UTC}}",
            60_000,
        ),
    ] {
        let job = stage(own);
        let mut ledger = Ledger::default();
        ledger.fixed_deadline = job.fixed_deadline(&ledger, began(1000), Instant(0));
        assert_eq!(job.deadline_by(&ledger), Some(Instant(expected)), "{own}");
        assert!(!job.deadline.gives_none(None));
    }
    let of_start = stage("deadline: {within: 10s, clockStart: Start}");
    let mut ledger = Ledger::default();
    assert_eq!(of_start.deadline_by(&ledger), None);
    ledger.fixed_deadline = of_start.fixed_deadline(&ledger, began(1000), Instant(0));
    assert_eq!(of_start.deadline_by(&ledger), Some(Instant(61_000)));
    ledger.first_pass = Some(Instant(20_000));
    assert_eq!(of_start.deadline_by(&ledger), Some(Instant(30_000)));
}

#[test]
fn a_deadline_of_a_run_that_has_passed_is_recorded_as_a_miss() {
    let job = stage("deadline: {within: 10m}");
    let fixed = job.fixed_deadline(&Ledger::default(), began(-100_000), Instant(1000));
    assert_eq!(fixed.unwrap().at, Instant(-40_000));
}

#[test]
fn a_run_with_a_deadline_from_history_is_refused() {
    let mut job = fixtures::job("deadline: {history: {quantile: p95, factor: '1.5'}}");
    let label = (crate::api::LABEL_CLASS.to_owned(), "nightly".to_owned());
    job.metadata.labels = Some([label].into());
    let run = [
        ("shed.dev/workflow", "a"),
        ("shed.dev/workflow-deadline", "1m"),
    ];
    let run = run.map(|(key, value)| (key.to_owned(), value.to_owned()));
    job.metadata.annotations = Some(run.into());
    let said = validate(&job).unwrap_err().to_string();
    assert!(
        said.contains("annotation shed.dev/workflow-deadline: does not work"),
        "{said}"
    );
}
