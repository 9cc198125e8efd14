//! Conditions about a deadline that may be missed.

use std::sync::Arc;

use super::*;
use crate::cluster::pod::PodFacts;
use crate::job::view::JobView;
use crate::validate::DeadlineRule;

#[test]
fn risk_is_said_before_the_miss_and_taken_back() {
    let mut case = Case::new("");
    case.report = Some(report(0.4));
    assert_eq!(
        case.condition("DeadlineAtRisk"),
        is("True", "TasksStraggling")
    );
    case.report = Some(report(0.99));
    case.now = Instant(60_000);
    assert_eq!(case.condition("DeadlineAtRisk"), is("False", "OnTrack"));
}

#[test]
fn the_feasibility_of_a_deadline_is_reported_and_kept() {
    let figures = |pocd| shed_core::plan::Feasibility {
        pocd: Some(pocd),
        target: 0.9,
        earliest: None,
        is_known: true,
        width: 4,
    };
    let mut case = Case::new("");
    case.reported = Some(ReportedFeasibility::after(None, &figures(0.5), 1, case.now));
    let feasible = api::DEADLINE_FEASIBLE;
    assert_eq!(
        case.condition(feasible),
        is("False", reason::DEADLINE_INFEASIBLE)
    );
    // Another process has no memory of it, and leaves it unchanged.
    case.reported = None;
    assert_eq!(
        case.condition(feasible),
        is("False", reason::DEADLINE_INFEASIBLE)
    );
    // A verdict about an older specification is dropped.
    case.reported = Some(ReportedFeasibility::after(
        None,
        &figures(0.99),
        0,
        case.now,
    ));
    assert_eq!(
        case.condition(feasible),
        is("False", reason::DEADLINE_INFEASIBLE)
    );
    case.reported = Some(ReportedFeasibility::after(
        None,
        &figures(0.99),
        1,
        case.now,
    ));
    assert_eq!(
        case.condition(feasible),
        is("True", reason::TARGET_REACHABLE)
    );
}

#[test]
fn a_risk_is_unknown_until_durations_are_known() {
    let figures = shed_core::plan::Feasibility {
        pocd: None,
        target: 0.9,
        earliest: None,
        is_known: false,
        width: 4,
    };
    let nothing = JobReport {
        pocd_after: None,
        ..report(0.5)
    };
    let mut case = Case::new("");
    case.report = Some(nothing.clone());
    assert_eq!(case.condition(api::DEADLINE_AT_RISK), None);
    case.reported = Some(ReportedFeasibility::after(None, &figures, 1, case.now));
    let unknown = is("Unknown", reason::DURATIONS_UNKNOWN);
    assert_eq!(case.condition(api::DEADLINE_AT_RISK), unknown);
    assert!(
        risk_words(&mut case)
            .contains("earlier jobs of the class (shed.dev/class, or the CronJob)")
    );
    case.now = Instant(60_000);
    case.report = Some(report(0.99));
    let on_track = is("False", reason::ON_TRACK);
    assert_eq!(case.condition(api::DEADLINE_AT_RISK), on_track);
    // A risk that was known stays.
    case.report = Some(nothing);
    assert_eq!(case.condition(api::DEADLINE_AT_RISK), on_track);
}

#[test]
fn a_job_that_has_reached_its_target_is_not_at_risk() {
    let mut case = Case::new("targetPoCD: 0.7");
    case.report = Some(report(0.75));
    assert_eq!(case.condition(api::DEADLINE_AT_RISK), None);
    case.report = Some(report(0.69));
    let at_risk = is("True", reason::TASKS_STRAGGLING);
    assert_eq!(case.condition(api::DEADLINE_AT_RISK), at_risk);
}

#[test]
fn a_job_at_risk_says_what_its_tasks_wait_for() {
    let reason_of = |waiting| {
        let mut case = Case::new("");
        case.report = Some(JobReport {
            stragglers: vec![],
            waiting,
            risk: None,
            ..report(0.1)
        });
        case.condition(api::DEADLINE_AT_RISK)
    };
    assert_eq!(reason_of(2), is("True", reason::INSUFFICIENT_CAPACITY));
    assert_eq!(reason_of(0), is("True", reason::TASKS_SLOW));
}

#[test]
fn a_deadline_that_nobody_can_judge_is_a_risk() {
    let mut case = Case::new("");
    case.held_back = true;
    let uncertain = is("True", reason::CLOCK_UNCERTAIN);
    assert_eq!(case.condition(api::DEADLINE_AT_RISK), uncertain);
    let words = |case: &Case| case.old.conditions[0].message.clone();
    let first = words(&case);
    assert!(
        first.contains("2 s") && first.ends_with("(since 1970-01-01T00:00:10Z)"),
        "{first}"
    );
    case.now = Instant(90_000);
    case.render();
    assert_eq!(words(&case), first, "no write of every pass");
    case.held_back = false;
    case.report = Some(report(0.99));
    assert_eq!(
        case.condition(api::DEADLINE_AT_RISK),
        is("False", "OnTrack")
    );
}

#[test]
fn the_calibrated_pocd_decides_whether_a_job_is_at_risk() {
    let mut case = Case::new("");
    (case.report, case.calibrated) = (Some(report(0.4)), Some(0.95));
    assert_eq!(case.condition(api::DEADLINE_AT_RISK), None);
    (case.report, case.calibrated) = (Some(report(0.95)), Some(0.4));
    case.now = Instant(60_000);
    let at_risk = is("True", reason::TASKS_STRAGGLING);
    assert_eq!(case.condition(api::DEADLINE_AT_RISK), at_risk);
    let shown = case.old.calibrated_pocd.map(|pocd| pocd.to_string());
    assert_eq!(shown.as_deref(), Some("0.400"));
}

#[test]
fn a_pocd_near_the_threshold_changes_the_risk_once() {
    let mut case = Case::new("");
    let mut risks = Vec::new();
    for pocd in [0.91, 0.89, 0.91, 0.94, 0.89, 0.96, 0.91] {
        (case.report, case.calibrated) = (Some(report(0.5)), Some(pocd));
        case.now = case.now.plus(Span::from_seconds(60));
        let condition = case.condition(api::DEADLINE_AT_RISK);
        risks.push(condition.is_some_and(|condition| condition.0 == "True"));
    }
    assert_eq!(risks, [false, true, true, true, true, false, false]);
}

#[test]
fn a_risk_names_its_cause_and_what_shed_does() {
    let words = |change: &str, risk: Risk| {
        let mut case = Case::new(change);
        case.report = Some(JobReport {
            risk: Some(risk),
            ..report(0.4)
        });
        let words = risk_words(&mut case);
        words.rsplit_once(" (since").unwrap().0.to_owned()
    };
    let straggler = risk(RiskCause::Straggler, 3);
    for (change, does) in [
        ("", "shed clones it while a clone is worth its price"),
        (
            "speculation: {mode: Observe}",
            "shed starts no clone of it, because spec.speculation.mode is Observe",
        ),
        (
            "idempotency: None",
            "shed starts no clone of it with spec.idempotency: None",
        ),
    ] {
        assert_eq!(
            words(change, straggler.clone()),
            format!(
                "a few tasks are far behind the others: task 3 on node node-3; {does}; PoCD fell below 0.9; move the \
                 deadline, or add capacity for clones"
            )
        );
    }
    let failed = Risk {
        failures: 2,
        ..risk(RiskCause::Restarts, 3)
    };
    let failed = words("", failed);
    assert!(
        failed.contains("again: task 3 failed 2 times; PoCD fell below 0.9; read the log"),
        "{failed}"
    );
    let silent = words("", risk(RiskCause::Silent, 3));
    assert!(
        silent.starts_with("tasks report no progress: task 3 on node node-3;"),
        "{silent}"
    );
}

/// The pod that keeps a container from starting.
fn unstarted() -> Unstarted {
    let world = Case::new("");
    let mut view = JobView::new(
        Arc::new(world.job),
        Ledger::default(),
        Instant(0),
        Instant(0),
    );
    let mut pod = fixtures::attempt_pod(&fixtures::job(""), (1, 0), "node-1", "Pending");
    pod.metadata.creation_timestamp = Some(clock::time(Instant(0)));
    let pod = PodFacts::from_pod(&pod.into(), Instant(0));
    view.pods.insert((1, 0), Arc::new(pod));
    Unstarted::longest(&view, None).unwrap()
}

/// Reason and message of a risk with this cause.
fn reported(change: impl FnOnce(&mut Case), cause: Option<RiskCause>) -> (String, String) {
    let mut case = Case::new("");
    case.report = Some(JobReport {
        stragglers: vec![],
        risk: cause.map(|cause| risk(cause, 1)),
        ..report(0.1)
    });
    change(&mut case);
    let (_, reason) = case.condition(api::DEADLINE_AT_RISK).unwrap();
    (reason, risk_words(&mut case))
}

#[test]
fn tasks_that_have_not_started_are_neither_slow_nor_silent() {
    use RiskCause::{Silent, Slow, Straggler};
    for cause in [None, Some(Straggler), Some(Silent), Some(Slow)] {
        let (reason, words) = reported(|case| case.unstarted = Some(unstarted()), cause);
        assert_eq!(reason, reason::ATTEMPTS_NOT_STARTED, "{cause:?}");
        assert!(
            words.contains("tasks that may be late have not started: pod ")
                && words
                    .contains(" on node node-1 since 1970-01-01T00:00:00Z; PoCD fell below 0.9;")
                && words.contains("kubectl describe pod")
                && !words.contains("resources"),
            "{words}"
        );
        // Nothing runs, because a Secret is missing.
        let blocked = |case: &mut Case| {
            case.running = false;
            case.blocked = Some(Blocked {
                reason: reason::CONTAINER_CONFIG_ERROR,
                message: "secret \"key\" not found".to_owned(),
            });
        };
        let (reason, words) = reported(blocked, cause);
        assert_eq!(reason, reason::ATTEMPTS_NOT_STARTED, "{cause:?}");
        assert!(words.contains("secret \"key\" not found"), "{words}");
    }
    let slow = reported(|_| {}, Some(Slow));
    assert_eq!(slow.0, reason::TASKS_SLOW);
    let restarted = |case: &mut Case| case.unstarted = Some(unstarted());
    let (reason, _) = reported(restarted, Some(RiskCause::Restarts));
    assert_eq!(reason, reason::ATTEMPTS_FAILING);
}

#[test]
fn a_task_that_failed_for_good_is_not_said_to_start_again() {
    let (reason, words) = reported(|_| {}, Some(RiskCause::Failed));
    assert_eq!(reason, reason::TASKS_FAILED);
    assert!(
        words.contains("starts no further attempts of them: task 1") && !words.contains("again"),
        "{words}"
    );
}

#[test]
fn the_risk_of_a_suspended_job_is_its_suspension() {
    for cause in [None, Some(RiskCause::Slow), Some(RiskCause::Waiting)] {
        let (reason, words) = reported(|case| case.job.rules.suspend = true, cause);
        assert_eq!(reason, reason::JOB_SUSPENDED);
        assert!(
            words.contains("the job is suspended") && !words.contains("resources"),
            "{words}"
        );
    }
}

#[test]
fn the_risk_of_a_job_in_a_queue_is_its_queue() {
    let suspended = |case: &mut Case| {
        case.job.rules.suspend = true;
        case.is_queued = true;
    };
    let gated = |case: &mut Case| {
        case.running = false;
        case.gate = Some("kueue.x-k8s.io/admission");
    };
    for cause in [None, Some(RiskCause::Slow), Some(RiskCause::Silent)] {
        for (reason, words) in [reported(suspended, cause), reported(gated, cause)] {
            assert_eq!(reason, reason::WAITING_IN_QUEUE, "{cause:?}");
            assert!(words.contains("the job waits in a queue"), "{words}");
        }
    }
    let failed = reported(gated, Some(RiskCause::Failed));
    assert_eq!(failed.0, reason::TASKS_FAILED);
}

#[test]
fn a_job_without_a_deadline_is_not_at_risk() {
    let mut case = Case::new("");
    case.report = Some(report(0.1));
    case.render();
    // An adopted Job lost its annotation. A report of an older planner may still have a PoCD.
    case.job.deadline = DeadlineRule::Never;
    assert_eq!(
        case.condition(api::DEADLINE_AT_RISK),
        is("False", reason::ON_TRACK)
    );
    let mut fresh = Case::new("");
    (fresh.job.deadline, fresh.report) = (DeadlineRule::Never, Some(report(0.1)));
    assert_eq!(fresh.condition(api::DEADLINE_AT_RISK), None);
    assert_eq!(fresh.render().pocd, None);
}
