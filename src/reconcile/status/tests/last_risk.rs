use super::*;

/// The message of a condition.
fn message(case: &mut Case, type_: &str) -> String {
    let status = case.render();
    let mut conditions = status.conditions.into_iter();
    let found = conditions.find(|one| one.type_ == type_);
    found.map_or_else(String::new, |found| found.message)
}

const STRAGGLER: &str = "; the last risk: a few tasks are far behind the others: task 1 on node node-1; shed clones it \
                         while a clone is worth its price; PoCD fell below 0.9";

/// A job at risk because of a straggler, later than its deadline.
fn at_risk(change: &str) -> Case {
    let mut case = Case::new(change);
    case.report = Some(report(0.4));
    case.render();
    case.now = Instant(605_000);
    case.facts_as_of = case.now;
    case
}

#[test]
fn a_job_that_has_ended_keeps_the_cause_of_its_last_risk() {
    let mut case = at_risk("");
    case.ledger.ending = Some(Conclusion::DeadlineExceeded);
    case.ledger.ended = Some(case.now);
    let type_ = api::DEADLINE_AT_RISK;
    let words = message(&mut case, type_);
    assert_eq!(words, format!("the job has ended{STRAGGLER}"));
    assert_eq!(case.condition(type_), is("False", reason::JOB_ENDED));
    let missed = message(&mut case, api::DEADLINE_MISSED);
    let expected = format!("not complete at 1970-01-01T00:10:00Z{STRAGGLER}");
    assert_eq!(missed, expected);
    // Later renders change nothing, also once the job has finished.
    case.ledger.finished = true;
    assert_eq!(message(&mut case, type_), words);
    assert_eq!(message(&mut case, api::DEADLINE_MISSED), missed);
}

#[test]
fn a_job_that_ends_on_track_keeps_that() {
    let mut case = Case::new("");
    case.report = Some(report(0.4));
    case.render();
    (case.now, case.report) = (Instant(60_000), Some(report(0.99)));
    case.render();
    case.ledger.ending = Some(Conclusion::Complete);
    let on_track = is("False", reason::ON_TRACK);
    assert_eq!(case.condition(api::DEADLINE_AT_RISK), on_track);
}

#[test]
fn the_cause_of_a_miss_stays_while_the_job_continues() {
    let mut case = at_risk("onMiss: Continue");
    let missed = message(&mut case, api::DEADLINE_MISSED);
    assert!(missed.ends_with(STRAGGLER), "{missed}");
    case.report = Some(JobReport {
        risk: Some(risk(RiskCause::Slow, 1)),
        ..report(0.0)
    });
    case.now = Instant(700_000);
    let slow = is("True", reason::TASKS_SLOW);
    assert_eq!(case.condition(api::DEADLINE_AT_RISK), slow);
    assert_eq!(message(&mut case, api::DEADLINE_MISSED), missed);
    // A job that was never at risk has no such cause.
    let mut case = Case::new("onMiss: Continue");
    case.now = Instant(605_000);
    case.facts_as_of = case.now;
    let missed = message(&mut case, api::DEADLINE_MISSED);
    assert_eq!(missed, "not complete at 1970-01-01T00:10:00Z");
}

#[test]
fn silence_of_every_attempt_is_the_cause_instead_of_slow_tasks() {
    let reason_of = |cause, unreachable| {
        let mut case = Case::new("");
        case.unreachable = unreachable;
        case.report = Some(JobReport {
            risk: Some(risk(cause, 1)),
            ..report(0.4)
        });
        case.condition(api::DEADLINE_AT_RISK).unwrap().1
    };
    for cause in [RiskCause::Straggler, RiskCause::Slow] {
        assert_eq!(reason_of(cause, (3, 3)), reason::TASKS_SILENT);
        assert_ne!(reason_of(cause, (2, 3)), reason::TASKS_SILENT);
        assert_ne!(reason_of(cause, (0, 0)), reason::TASKS_SILENT);
    }
    let failing = reason_of(RiskCause::Restarts, (3, 3));
    assert_eq!(failing, reason::ATTEMPTS_FAILING);
    let waiting = reason_of(RiskCause::Waiting, (3, 3));
    assert_eq!(waiting, reason::INSUFFICIENT_CAPACITY);
}
