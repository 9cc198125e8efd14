use shed_core::ids::{NodeName, TaskIndex};
use shed_core::risk::{Risk, RiskCause};
use shed_core::time::Span;

use super::*;
use crate::fixtures;
use crate::validate::validate;

mod ends;
mod obstacles;
mod risk;
mod workflow;

fn report(pocd: f64) -> JobReport {
    JobReport {
        pocd_before: Some(pocd),
        pocd_after: Some(pocd),
        estimated_completion: Some(Instant(300_000)),
        end_range: Some(EndRange {
            p50: Instant(310_000),
            p90: Instant(340_000),
        }),
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
    reported: Option<ReportedFeasibility>,
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
    unstarted: Option<Unstarted>,
    uncommitted: bool,
    is_queued: bool,
    gate: Option<&'static str>,
    workflow: Option<WorkflowEstimate>,
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
            reported: None,
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
            unstarted: None,
            uncommitted: false,
            is_queued: false,
            gate: None,
            workflow: None,
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
            unstarted: self.unstarted.as_ref(),
            uncommitted: self.uncommitted,
            is_queued: self.is_queued,
            gate: self.gate,
            workflow: self.workflow.as_ref(),
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
            reported: self.reported.as_ref(),
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

fn risk_words(case: &mut Case) -> String {
    let status = case.render();
    let mut conditions = status.conditions.into_iter();
    let found = conditions.find(|one| one.type_ == api::DEADLINE_AT_RISK);
    found.map_or_else(String::new, |found| found.message)
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
fn pocd_alone_is_written_when_it_moved_enough_and_not_too_often() {
    let mut case = Case::new("");
    case.report = Some(report(0.99));
    case.render();
    case.last_write = Some(case.now);
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
fn readiness_alone_is_written_a_while_after_the_last_write() {
    let mut case = Case::new("");
    case.render();
    case.ready = 2;
    case.last_write = Some(case.now);
    assert_eq!(case.render().ready, 0, "just written");
    case.now = case.now.plus(FIGURES_WAIT);
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
    case.now = case.now.plus(FIGURES_WAIT);
    let shown = case.render();
    assert_eq!((shown.phase.as_deref(), shown.ready), (Some(RUNNING), 2));
}

#[test]
fn the_cause_of_a_risk_is_written_no_more_often_than_pocd() {
    let mut case = Case::new("");
    case.report = Some(report(0.4));
    let first = risk_words(&mut case);
    case.last_write = Some(case.now);
    let other = JobReport {
        risk: Some(risk(RiskCause::Restarts, 2)),
        ..report(0.4)
    };
    case.report = Some(other);
    case.now = case.now.plus(Span(FIGURES_WAIT.0 - 1));
    assert_eq!(risk_words(&mut case), first, "too soon");
    case.now = case.now.plus(Span(1));
    let restarts = is("True", reason::ATTEMPTS_FAILING);
    assert_eq!(case.condition(api::DEADLINE_AT_RISK), restarts);
}

#[test]
fn observed_clones_are_shown_in_observe_mode() {
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
    case.last_write = Some(case.now);
    case.observed = clones(2);
    case.now = case.now.plus(Span(FIGURES_WAIT.0 - 1));
    assert_eq!(case.render().observed, clones(1), "too soon");
    case.now = case.now.plus(Span(1));
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
    let range = status.completion_range.expect("a range without a deadline");
    assert_eq!(
        [range.p50, range.p90],
        [310, 340].map(|at| clock::time(Instant(1000 * at)))
    );
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
    assert_eq!((status.pocd, status.completion_range), (None, None));
    assert_eq!(case.condition(api::DEADLINE_MISSED), None);
    assert_eq!(case.condition(api::DEADLINE_UNKNOWN), Some(passed));
}
