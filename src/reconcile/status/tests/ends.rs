//! Completion, failure and the missed deadline.

use super::*;

#[test]
fn an_end_is_recorded_in_two_steps_as_batch_jobs_are() {
    let mut case = Case::new("completions: 1");
    case.ledger.done.insert(TaskIndex(0));
    case.ledger.last_win = Some(Instant(9000));
    case.ledger.ending = Some(Conclusion::Complete);
    assert_eq!(
        case.condition("SuccessCriteriaMet"),
        is("True", "CompletionsReached")
    );
    assert_eq!(case.condition("Complete"), None);
    case.ledger.finished = true;
    let status = case.render();
    assert_eq!(status.phase.as_deref(), Some("Complete"));
    assert_eq!(
        status.pocd.map(|pocd| pocd.to_string()).as_deref(),
        Some("1.000")
    );
    assert!(status.completion_time.is_some());
    assert_eq!(case.condition("Complete"), is("True", "CompletionsReached"));
    assert_eq!(case.condition("DeadlineMissed"), None);
}

#[test]
fn a_late_completion_is_complete_and_missed() {
    let mut case = Case::new("{completions: 1, onMiss: Continue}");
    case.ledger.done.insert(TaskIndex(0));
    case.ledger.last_win = Some(Instant(601_000));
    case.ledger.ending = Some(Conclusion::Complete);
    case.ledger.finished = true;
    case.now = Instant(700_000);
    assert_eq!(case.condition("Complete"), is("True", "CompletionsReached"));
    assert_eq!(
        case.condition("DeadlineMissed"),
        is("True", "DeadlinePassed")
    );
}

#[test]
fn a_failure_before_the_deadline_is_a_miss_of_its_own_reason() {
    let mut case = Case::new("");
    case.ledger.ending = Some(Conclusion::FailedIndexes);
    case.ledger.ended = Some(Instant(60_000));
    // Also once the deadline has passed.
    case.now = Instant(601_000);
    assert_eq!(
        case.condition("DeadlineMissed"),
        is("True", "FailedBeforeDeadline")
    );
}

#[test]
fn a_late_seen_finish_in_time_reverts_the_failure_target() {
    let mut case = Case::new("completions: 1");
    case.ledger.ending = Some(Conclusion::DeadlineExceeded);
    assert_eq!(
        case.condition("FailureTarget"),
        is("True", "DeadlineMissed")
    );
    case.ledger.done.insert(TaskIndex(0));
    case.ledger.last_win = Some(Instant(599_000));
    case.ledger.ending = Some(Conclusion::Complete);
    case.ledger.finished = true;
    assert_eq!(case.condition("FailureTarget"), is("False", "DeadlineMet"));
    assert_eq!(case.condition("Complete"), is("True", "CompletionsReached"));
}

#[test]
fn a_soft_miss_is_reported_once_all_earlier_ends_are_known() {
    let mut case = Case::new("onMiss: Continue");
    case.now = Instant(601_500);
    assert_eq!(case.condition("DeadlineMissed"), None);
    case.facts_as_of = Instant(600_999);
    assert_eq!(case.condition("DeadlineMissed"), None);
    case.facts_as_of = Instant(601_000);
    let missed = is("True", reason::DEADLINE_PASSED);
    assert_eq!(case.condition("DeadlineMissed"), missed);
    // A cached view has no evidence about it, and takes nothing back.
    case.facts_as_of = Instant(0);
    assert_eq!(case.condition("DeadlineMissed"), missed);
}

#[test]
fn a_miss_that_turns_out_to_be_none_is_taken_back() {
    let missed = || {
        let mut case = Case::new("{completions: 1, onMiss: Continue}");
        case.now = Instant(610_000);
        case.facts_as_of = case.now;
        assert_eq!(
            case.condition("DeadlineMissed"),
            is("True", "DeadlinePassed")
        );
        case
    };
    let mut finished = missed();
    finished.ledger.done.insert(TaskIndex(0));
    finished.ledger.last_win = Some(Instant(600_000));
    finished.ledger.ending = Some(Conclusion::Complete);
    assert_eq!(
        finished.condition("DeadlineMissed"),
        is("False", reason::DEADLINE_MET)
    );
    let mut moved = missed();
    let later = fixtures::job("{completions: 1, onMiss: Continue, deadline: {within: 20m}}");
    moved.job = validate(&later).unwrap();
    moved.facts_as_of = Instant(0);
    assert_eq!(
        moved.condition("DeadlineMissed"),
        is("False", reason::DEADLINE_MOVED)
    );
}
