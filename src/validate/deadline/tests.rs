use super::*;
use crate::fixtures;
use crate::validate::validate;

const CLOCK: &str = "deadline: {clock: {time: '06:00', timeZone: Etc/UTC}}";
const SIX: Instant = Instant(6 * 3_600_000);

fn history(factor: &str) -> HistoryRule {
    HistoryRule::new(Quantile::P95, factor).unwrap()
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
    ledger.fixed_deadline = job.fixed_deadline(&ledger, None, Instant(0));
    // The start of the clock has moved; the ledger's instant counts.
    let moved = ValidatedJob {
        counts_from: SIX,
        ..job
    };
    assert_eq!(moved.deadline_by(&ledger), Some(SIX));
    assert_eq!(
        moved.fixed_deadline(&ledger, None, SIX),
        ledger.fixed_deadline
    );
}

#[test]
fn another_rule_is_computed_again() {
    let job = validate(&fixtures::job(CLOCK)).unwrap();
    let recorded = job.fixed_deadline(&Ledger::default(), None, Instant(0));
    let ledger = Ledger {
        fixed_deadline: recorded,
        ..Ledger::default()
    };
    let later = "deadline: {clock: {time: '07:00', timeZone: Etc/UTC}}";
    let later = validate(&fixtures::job(later)).unwrap();
    let seven = SIX.plus(Span::from_seconds(3600));
    assert_eq!(later.deadline_by(&ledger), Some(seven));
    let fixed = later.fixed_deadline(&ledger, None, Instant(0)).unwrap();
    assert_eq!((&*fixed.rule, fixed.at), ("07:00 Etc/UTC", seven));
    let within = validate(&fixtures::job("")).unwrap();
    assert_eq!(within.fixed_deadline(&ledger, None, Instant(0)), None);
}

#[test]
fn a_history_deadline_counts_from_the_first_pass() {
    let (job, minute) = (of_history(), Span::from_seconds(60));
    let mut ledger = Ledger::default();
    assert_eq!(
        job.fixed_deadline(&ledger, Some(minute), Instant(0)),
        None,
        "suspended"
    );
    ledger.first_pass = Some(Instant(10_000));
    assert_eq!(
        job.fixed_deadline(&ledger, None, Instant(0)),
        None,
        "too few runs"
    );
    assert!(job.deadline.gives_none(job.deadline_by(&ledger)));
    ledger.fixed_deadline = job.fixed_deadline(&ledger, Some(minute), Instant(20_000));
    assert_eq!(job.deadline_by(&ledger), Some(Instant(100_000)));
    let longer = Some(Span::from_seconds(600));
    assert_eq!(
        job.fixed_deadline(&ledger, longer, Instant(20_000)),
        ledger.fixed_deadline
    );
}

#[test]
fn a_history_deadline_that_has_passed_is_not_recorded() {
    let (job, minute) = (of_history(), Some(Span::from_seconds(60)));
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
    let minute = Some(Span::from_seconds(60));
    assert_eq!(
        of_history().fixed_deadline(&ledger, minute, Instant(0)),
        None
    );
}
