use shed_core::ids::{NodeName, TaskIndex};
use shed_core::risk::{Risk, RiskCause};

use super::*;
use crate::fixtures;
use crate::validate::validate;

fn report(pocd: f64) -> JobReport {
    JobReport {
        pocd_before: Some(pocd),
        pocd_after: Some(pocd),
        estimated_completion: Some(Instant(300_000)),
        stragglers: vec![TaskIndex(1)],
        risk: Some(risk(RiskCause::Straggler, 1)),
        ..fixtures::report("u")
    }
}

mod last_risk;

fn risk(cause: RiskCause, task: u32) -> Risk {
    Risk {
        cause,
        task: Some(TaskIndex(task)),
        node: Some(NodeName::from(&*format!("node-{task}"))),
        failures: 0,
    }
}

#[derive(Clone)]
struct Case {
    job: ValidatedJob,
    ledger: Ledger,
    old: DeadlineJobStatus,
    report: Option<JobReport>,
    calibrated: Option<f64>,
    observed: Option<ObservedClones>,
    blocked: Option<Blocked>,
    now: Instant,
    told: Option<Told>,
    pocd_written: Option<Instant>,
    last_write: Option<Instant>,
    ready: i32,
    facts_as_of: Instant,
    held_back: bool,
    waiting: PendingTasks,
    placed: bool,
    running: bool,
    placeable: bool,
    clone_stop: Option<CloneStop<'static>>,
    history: Option<Known>,
    unreachable: (usize, usize),
}

impl Case {
    fn new(change: &str) -> Self {
        Self {
            job: validate(&fixtures::job(change)).unwrap(),
            ledger: Ledger::default(),
            old: DeadlineJobStatus::default(),
            report: None,
            calibrated: None,
            observed: None,
            blocked: None,
            now: Instant(10_000),
            told: None,
            pocd_written: None,
            last_write: None,
            ready: 0,
            facts_as_of: Instant(0),
            held_back: false,
            waiting: PendingTasks::No,
            placed: true,
            running: true,
            placeable: false,
            clone_stop: None,
            history: None,
            unreachable: (0, 0),
        }
    }

    fn render(&mut self) -> DeadlineJobStatus {
        let status = render(Input {
            job: &self.job,
            ledger: &self.ledger,
            deadline: self.job.deadline_by(&self.ledger),
            history: self.history,
            old: &self.old,
            report: self.report.as_ref(),
            calibrated: self.calibrated,
            observed: self.observed,
            blocked: self.blocked.as_ref(),
            placeable: self.placeable,
            running: self.running,
            placed: self.placed,
            ready: self.ready,
            unreachable: self.unreachable,
            awaited: None,
            unshared: None,
            undurable: Some(0),
            facts_as_of: self.facts_as_of,
            held_back: self.held_back,
            waiting: &self.waiting,
            clone_stop: self.clone_stop,
            told: self.told.as_ref(),
            pocd_written: self.pocd_written,
            last_write: self.last_write,
            now: self.now,
        });
        self.old = status.clone();
        status
    }

    fn condition(&mut self, type_: &str) -> Option<(String, String)> {
        let status = self.render();
        let found = status
            .conditions
            .into_iter()
            .find(|condition| condition.type_ == type_);
        found.map(|condition| (condition.status, condition.reason))
    }
}

fn is(status: &str, reason: &str) -> Option<(String, String)> {
    Some((status.to_owned(), reason.to_owned()))
}

#[test]
fn the_same_facts_render_the_same_status_so_nothing_is_written() {
    let mut case = Case::new("");
    case.report = Some(report(0.4));
    let first = case.render();
    case.now = Instant(500_000);
    assert_eq!(case.render(), first);
}

#[test]
fn pocd_alone_is_written_when_it_moved_far_enough_and_not_too_often() {
    let mut case = Case::new("");
    case.report = Some(report(0.99));
    case.render();
    case.pocd_written = Some(case.now);
    case.report = Some(report(0.97));
    assert_eq!(
        case.render().pocd.map(|pocd| pocd.to_string()).as_deref(),
        Some("0.990"),
        "moved too little"
    );
    case.report = Some(report(0.92));
    assert_eq!(
        case.render().pocd.map(|pocd| pocd.to_string()).as_deref(),
        Some("0.990"),
        "too soon"
    );
    case.now = Instant(20_000);
    assert_eq!(
        case.render().pocd.map(|pocd| pocd.to_string()).as_deref(),
        Some("0.920")
    );
}

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
fn attempts_that_can_be_placed_again_are_blocked_no_more_though_none_runs() {
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
fn a_finish_in_time_that_was_seen_late_turns_the_failure_target_back() {
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
fn whether_the_deadline_can_be_kept_is_told_for_this_specification_and_stays() {
    let figures = |pocd| shed_core::plan::Feasibility {
        pocd: Some(pocd),
        target: 0.9,
        earliest: None,
        is_known: true,
        width: 4,
    };
    let mut case = Case::new("");
    case.told = Some(Told::after(None, &figures(0.5), 1, case.now));
    let feasible = api::DEADLINE_FEASIBLE;
    assert_eq!(
        case.condition(feasible),
        is("False", reason::DEADLINE_INFEASIBLE)
    );
    // Another process has no memory of it, and leaves it unchanged.
    case.told = None;
    assert_eq!(
        case.condition(feasible),
        is("False", reason::DEADLINE_INFEASIBLE)
    );
    // A verdict about an older specification is dropped.
    case.told = Some(Told::after(None, &figures(0.99), 0, case.now));
    assert_eq!(
        case.condition(feasible),
        is("False", reason::DEADLINE_INFEASIBLE)
    );
    case.told = Some(Told::after(None, &figures(0.99), 1, case.now));
    assert_eq!(
        case.condition(feasible),
        is("True", reason::TARGET_REACHABLE)
    );
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
    let reason_of = |waiting, kept_back| {
        let mut case = Case::new("");
        case.report = Some(JobReport {
            stragglers: vec![],
            waiting,
            kept_back,
            risk: None,
            ..report(0.1)
        });
        case.condition(api::DEADLINE_AT_RISK)
    };
    assert_eq!(reason_of(2, 0), is("True", reason::INSUFFICIENT_CAPACITY));
    assert_eq!(reason_of(2, 1), is("True", reason::HEADROOM_RESERVED));
    assert_eq!(reason_of(0, 0), is("True", reason::TASKS_SLOW));
}

#[test]
fn readiness_alone_is_written_every_ten_seconds_at_most() {
    let mut case = Case::new("");
    case.render();
    case.ready = 2;
    case.pocd_written = Some(case.now);
    assert_eq!(case.render().ready, 0, "just written");
    case.now = case.now.plus(POCD_PERIOD);
    assert_eq!(case.render().ready, 2);
    case.ledger.ending = Some(Conclusion::Complete);
    assert_eq!(case.render().ready, 0, "nobody may win any more");
}

#[test]
fn that_a_job_runs_and_its_readiness_share_a_write() {
    let mut case = Case::new("");
    case.last_write = Some(case.now);
    (case.placed, case.running) = (false, false);
    case.render();
    (case.placed, case.running) = (true, true);
    case.now = case.now.plus(Span::from_seconds(1));
    assert_eq!(
        case.render().phase.as_deref(),
        Some(PENDING),
        "more follows"
    );
    case.ready = 2;
    case.now = case.now.plus(Span::from_seconds(1));
    let shown = case.render();
    assert_eq!((shown.phase.as_deref(), shown.ready), (Some(RUNNING), 2));
}

#[test]
fn a_soft_miss_is_told_once_every_end_before_the_deadline_is_known() {
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
fn what_tasks_wait_for_is_told_and_taken_back() {
    let mut case = Case::new("");
    let told = |reason| PendingTasks::Told {
        reason,
        detail: String::new(),
        since: Instant(3000),
    };
    case.waiting = told(reason::INSUFFICIENT_CAPACITY);
    let short = is("True", reason::INSUFFICIENT_CAPACITY);
    assert_eq!(case.condition(api::TASKS_PENDING), short);
    assert!(case.old.conditions[0].message.contains("00:00:03Z"));
    case.waiting = PendingTasks::Yet;
    assert_eq!(case.condition(api::TASKS_PENDING), short, "nothing new");
    case.waiting = told(reason::PARALLELISM_REACHED);
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

/// What the condition says about the risk.
fn risk_words(case: &mut Case) -> String {
    let status = case.render();
    let mut conditions = status.conditions.into_iter();
    let found = conditions.find(|one| one.type_ == api::DEADLINE_AT_RISK);
    found.map_or_else(String::new, |found| found.message)
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
                "a few tasks are far behind the others: task 3 on node node-3; {does}; PoCD is below 0.9; move the \
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
        failed.contains("again: task 3 failed 2 times; PoCD is below 0.9; read the log"),
        "{failed}"
    );
    let silent = words("", risk(RiskCause::Silent, 3));
    assert!(
        silent.starts_with("tasks report no progress: task 3 on node node-3;"),
        "{silent}"
    );
}

#[test]
fn tasks_that_wait_for_parallelism_say_so() {
    let mut case = Case::new("");
    case.report = Some(JobReport {
        risk: Some(risk(RiskCause::Waiting, 0)),
        waiting: 2,
        ..report(0.4)
    });
    case.waiting = PendingTasks::Told {
        reason: reason::PARALLELISM_REACHED,
        detail: String::new(),
        since: Instant(0),
    };
    let narrow = is("True", reason::PARALLELISM_REACHED);
    assert_eq!(case.condition(api::DEADLINE_AT_RISK), narrow);
}

#[test]
fn the_cause_of_a_risk_is_written_no_more_often_than_pocd() {
    let mut case = Case::new("");
    case.report = Some(report(0.4));
    let first = risk_words(&mut case);
    (case.pocd_written, case.last_write) = (Some(case.now), Some(case.now));
    let other = JobReport {
        risk: Some(risk(RiskCause::Restarts, 2)),
        ..report(0.4)
    };
    case.report = Some(other);
    case.now = Instant(19_000);
    assert_eq!(risk_words(&mut case), first, "too soon");
    case.now = Instant(20_000);
    let restarts = is("True", reason::ATTEMPTS_FAILING);
    assert_eq!(case.condition(api::DEADLINE_AT_RISK), restarts);
}

#[test]
fn observed_clones_are_shown_in_observe_mode_and_ride_on_the_writes_of_pocd() {
    let clones = |total_clones| {
        Some(ObservedClones {
            clones: 1,
            total_clones,
            ..ObservedClones::default()
        })
    };
    let mut enabled = Case::new("");
    (enabled.report, enabled.observed) = (Some(report(0.4)), clones(1));
    assert_eq!(enabled.render().observed, None);
    let mut case = Case::new("speculation: {mode: Observe}");
    (case.report, case.observed) = (Some(report(0.4)), clones(1));
    assert_eq!(case.render().observed, clones(1));
    (case.pocd_written, case.last_write) = (Some(case.now), Some(case.now));
    case.observed = clones(2);
    case.now = Instant(19_000);
    assert_eq!(case.render().observed, clones(1), "too soon");
    case.now = Instant(20_000);
    assert_eq!(case.render().observed, clones(2));
    // A new leader knows nothing yet, and the figures outlive the job's end.
    case.observed = None;
    case.ledger.ending = Some(Conclusion::DeadlineExceeded);
    assert_eq!(case.render().observed, clones(2));
}

#[test]
fn a_job_by_history_says_why_it_has_no_deadline_and_has_no_pocd() {
    let mut case = Case::new("");
    let history = crate::validate::HistoryRule::new(api::Quantile::P95, "1").unwrap();
    case.job.deadline = crate::validate::DeadlineRule::History(history);
    case.report = Some(report(0.9));
    let known = |runs, quantile| Some(Known { runs, quantile });
    let minute = Some(Span::from_seconds(60));
    case.history = known(3, None);
    let status = case.render();
    assert_eq!((status.pocd, status.deadline), (None, None));
    assert!(status.estimated_completion_time.is_some());
    let message = &status
        .conditions
        .iter()
        .find(|one| one.type_ == api::DEADLINE_UNKNOWN)
        .unwrap()
        .message;
    assert!(
        message.contains("needs 5 completed jobs of the class, and shed knows 3"),
        "{message}"
    );
    // Its clock has not started, so it keeps what it said.
    case.history = known(5, minute);
    let too_few = case.condition(api::DEADLINE_UNKNOWN).unwrap();
    assert_eq!(too_few.1, reason::TOO_FEW_RUNS);
    case.ledger.first_pass = Some(Instant(0));
    case.now = Instant(90_000);
    let passed = case.condition(api::DEADLINE_UNKNOWN).unwrap();
    assert_eq!(passed.1, reason::DEADLINE_PASSED);
    // A job that ends without a deadline has neither met nor missed one.
    case.ledger.ending = Some(Conclusion::Complete);
    case.ledger.finished = true;
    let status = case.render();
    assert_eq!(status.pocd, None);
    assert_eq!(case.condition(api::DEADLINE_MISSED), None);
    assert_eq!(case.condition(api::DEADLINE_UNKNOWN), Some(passed));
}
