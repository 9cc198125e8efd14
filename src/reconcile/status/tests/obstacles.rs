//! Conditions about what attempts and clones wait for.

use super::*;

#[test]
fn what_blocks_attempts_is_said_and_taken_back() {
    let mut case = Case::new("");
    case.blocked = Some(Blocked {
        reason: reason::QUOTA_EXCEEDED,
        message: "exceeded quota".to_owned(),
    });
    assert_eq!(
        case.condition("AttemptsBlocked"),
        is("True", "QuotaExceeded")
    );
    case.blocked = None;
    assert_eq!(
        case.condition("AttemptsBlocked"),
        is("False", "AttemptsStarting")
    );
}

#[test]
fn attempts_that_can_be_placed_again_are_no_longer_blocked() {
    let mut case = Case::new("");
    case.running = false;
    case.blocked = Some(Blocked {
        reason: reason::NO_MATCHING_NODE,
        message: "no node has the label disk=ssd".to_owned(),
    });
    let blocked = is("True", "NoMatchingNode");
    assert_eq!(case.condition("AttemptsBlocked"), blocked);
    // A new process has no memory of it.
    case.blocked = None;
    assert_eq!(case.condition("AttemptsBlocked"), blocked);
    case.placeable = true;
    let over = is("False", "AttemptsStarting");
    assert_eq!(case.condition("AttemptsBlocked"), over);
}

#[test]
fn what_a_user_holds_back_is_blocked_by_nothing_else() {
    let mut case = Case::new("suspend: true");
    case.blocked = Some(Blocked {
        reason: reason::UNSCHEDULABLE,
        message: "0/1 nodes are available".to_owned(),
    });
    assert_eq!(case.condition("AttemptsBlocked"), None);
    case.job.rules.suspend = false;
    let blocked = is("True", "Unschedulable");
    assert_eq!(case.condition("AttemptsBlocked"), blocked);
    case.job.rules.suspend = true;
    let over = is("False", "AttemptsStarting");
    assert_eq!(case.condition("AttemptsBlocked"), over);
}

#[test]
fn what_tasks_wait_for_is_reported_and_taken_back() {
    let mut case = Case::new("");
    let reported = |reason| PendingTasks::Reported {
        reason,
        detail: String::new(),
        since: Instant(3000),
    };
    case.waiting = reported(reason::INSUFFICIENT_CAPACITY);
    let short = is("True", reason::INSUFFICIENT_CAPACITY);
    assert_eq!(case.condition(api::TASKS_PENDING), short);
    assert!(case.old.conditions[0].message.contains("00:00:03Z"));
    case.waiting = PendingTasks::Yet;
    assert_eq!(case.condition(api::TASKS_PENDING), short, "nothing new");
    case.waiting = reported(reason::PARALLELISM_REACHED);
    let wide = is("True", reason::PARALLELISM_REACHED);
    assert_eq!(case.condition(api::TASKS_PENDING), wide);
    case.waiting = PendingTasks::No;
    let over = is("False", reason::NO_TASKS_PENDING);
    assert_eq!(case.condition(api::TASKS_PENDING), over);
}

#[test]
fn a_stop_of_clones_is_a_condition_and_its_end_too() {
    let mut case = Case::new("");
    assert_eq!(case.condition(api::CLONES_STOPPED), None);
    case.clone_stop = Some(CloneStop::Namespace("team"));
    let of_namespace = is("True", reason::NAMESPACE_ANNOTATION);
    assert_eq!(case.condition(api::CLONES_STOPPED), of_namespace);
    case.clone_stop = Some(CloneStop::Cluster("shed"));
    let of_cluster = is("True", reason::CLUSTER_ANNOTATION);
    assert_eq!(case.condition(api::CLONES_STOPPED), of_cluster);
    let message = &case.old.conditions.last().unwrap().message;
    assert!(message.contains("namespace shed"), "{message}");
    case.clone_stop = None;
    let over = is("False", reason::CLONES_ALLOWED);
    assert_eq!(case.condition(api::CLONES_STOPPED), over);
}

#[test]
fn a_job_that_has_ended_keeps_the_stop_of_clones() {
    let mut case = Case::new("");
    case.clone_stop = Some(CloneStop::Namespace("team"));
    let stopped = is("True", reason::NAMESPACE_ANNOTATION);
    assert_eq!(case.condition(api::CLONES_STOPPED), stopped);
    case.ledger.ending = Some(Conclusion::Complete);
    case.clone_stop = None;
    assert_eq!(case.condition(api::CLONES_STOPPED), stopped);
}

#[test]
fn a_job_that_has_no_clones_reports_no_stop() {
    for change in ["idempotency: None", "speculation: {mode: Disabled}"] {
        let mut case = Case::new(change);
        case.clone_stop = Some(CloneStop::Namespace("team"));
        assert_eq!(case.condition(api::CLONES_STOPPED), None, "{change}");
    }
}

#[test]
fn tasks_that_wait_for_parallelism_say_so() {
    let mut case = Case::new("");
    case.report = Some(JobReport {
        risk: Some(risk(RiskCause::Waiting, 0)),
        waiting: 2,
        ..report(0.4)
    });
    case.waiting = PendingTasks::Reported {
        reason: reason::PARALLELISM_REACHED,
        detail: String::new(),
        since: Instant(0),
    };
    let narrow = is("True", reason::PARALLELISM_REACHED);
    assert_eq!(case.condition(api::DEADLINE_AT_RISK), narrow);
}

#[test]
fn a_missing_commit_request_is_the_cause_of_a_failure() {
    let mut case = Case::new("{idempotency: Fenced, progress: {file: {}}}");
    let back_off = PendingTasks::Reported {
        reason: reason::BACK_OFF,
        detail: "12:00".to_owned(),
        since: Instant(0),
    };
    case.waiting = back_off;
    let failed = is("True", reason::BACK_OFF);
    assert_eq!(case.condition(api::TASKS_PENDING), failed);
    case.uncommitted = true;
    let uncommitted = is("True", reason::COMMIT_NOT_REQUESTED);
    assert_eq!(case.condition(api::TASKS_PENDING), uncommitted);
    for ending in [
        Conclusion::BackoffLimit,
        Conclusion::FailedIndexes,
        Conclusion::MaxFailedIndexes,
    ] {
        let mut case = case.clone();
        (case.ledger.ending, case.ledger.finished) = (Some(ending), true);
        let words = |case: &mut Case| {
            let status = case.render();
            let mut conditions = status.conditions.into_iter();
            let failed = conditions.find(|one| one.type_ == api::FAILED).unwrap();
            failed.message
        };
        let first = words(&mut case);
        assert_eq!(first.matches("never requested a commit grant").count(), 1);
        // Its pods are gone.
        case.uncommitted = false;
        assert_eq!(words(&mut case), first);
    }
}
