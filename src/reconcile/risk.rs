//! The condition `DeadlineAtRisk`: whether a job is likely to miss its deadline, and why. Pure.
//!
//! The calibrated PoCD decides. The cause is that of the planner's report: what
//! lowers PoCD most.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use shed_core::decide::feasibility::TARGET_DEFAULT;
use shed_core::plan::JobReport;
use shed_core::risk::{Risk, RiskCause};
use shed_core::snapshot::{Idempotency, SpeculationMode};

use crate::api::{self, DeadlineJobStatus, reason};
use crate::conditions::Conditions;
use crate::conditions::messages::{self, LAST_RISK};
use crate::context::feasibility::ReportedFeasibility;
use crate::context::pending_tasks::PendingTasks;
use crate::context::workflow_estimate::WorkflowEstimate;
use crate::reconcile::status::Input;

/// Below this PoCD a job is at risk.
const AT_RISK_BELOW: f64 = TARGET_DEFAULT;

/// A job that is at risk remains so below this PoCD. Without a distance between the two, a PoCD near the first would
/// change the condition, and page people, with every report.
const REMAINS_BELOW: f64 = 0.95;

/// The PoCD at which the risk of a job begins, and the one below which it is at risk now.
pub(super) struct Thresholds {
    pub(super) begin: f64,
    pub(super) now: f64,
}

impl Thresholds {
    /// Clones stop at the target, so a job that has reached it is as its user wants it.
    pub(super) fn of(target: Option<f64>, is_at_risk: bool) -> Self {
        let own = target.filter(|target| *target < AT_RISK_BELOW);
        let begin = own.unwrap_or(AT_RISK_BELOW);
        let now = match own {
            None if is_at_risk => REMAINS_BELOW,
            _ => begin,
        };
        Self { begin, now }
    }
}

pub(super) fn condition(list: &mut Conditions, input: Input<'_>) {
    let type_ = api::DEADLINE_AT_RISK;
    if input.ledger.ending.is_some() {
        let cause = last_cause(&list.list).map(|cause| format!("{LAST_RISK}{cause}"));
        return list.clear(type_, reason::JOB_ENDED, &cause.unwrap_or_default());
    }
    if input.held_back {
        return list.say(type_, reason::CLOCK_UNCERTAIN, "");
    }
    if input.job.deadline.gives_none(input.deadline) {
        return list.clear(type_, reason::ON_TRACK, "the job has no deadline");
    }
    let Some(report) = input.report else {
        return;
    };
    let is_at_risk = stated_in(&list.list).is_some();
    let Thresholds { begin, now } = Thresholds::of(input.job.rules.target_pocd, is_at_risk);
    // Without a PoCD a calibrated one would be that of an earlier report.
    let own = report.pocd_after;
    let own = own.map(|pocd| input.calibrated.unwrap_or(pocd));
    // A stage must also leave the later ones the time that they take.
    let run = input.workflow.and_then(|run| run.figures.as_ref());
    let of_run = run.and_then(|run| run.pocd);
    let of_run = of_run.filter(|of_run| own.is_some_and(|own| *of_run < own));
    match of_run.or(own) {
        Some(pocd) if pocd < now => {
            let (reason, example) = cause(input, report);
            // No figures of the report in the message: they would make a write of each.
            let split = match of_run {
                Some(_) => "; the later stages of the run need time too",
                None => unknown_split(input),
            };
            let overrun = run.and_then(|run| run.overrun.as_ref());
            let overrun = overrun.map(|it| format!("; stage {} exceeds its usual time", it.stage));
            let overrun = overrun.unwrap_or_default();
            let below = match example {
                None => format!("{begin}{split}{overrun}"),
                Some(example) => format!("{example}; PoCD fell below {begin}{split}{overrun}"),
            };
            list.say(type_, reason, &below);
        }
        Some(_) => {
            let words = format!("PoCD is high enough{}", unknown_split(input));
            list.clear(type_, reason::ON_TRACK, &words);
        }
        None => unknown(list, input),
    }
}

/// Why the risk is that of the stage alone, if shed does not know what the later stages of the run take.
fn unknown_split(input: Input<'_>) -> &'static str {
    match input.workflow.is_some_and(WorkflowEstimate::is_unknown) {
        false => "",
        true if input.job.class.is_none() => {
            "; the time that later stages need is unknown, because the job has no label shed.dev/class"
        }
        true => "; the time that later stages need is unknown until 3 earlier runs have ended",
    }
}

/// Reports that nothing is known yet. A risk that was known once stays until another PoCD replaces it.
fn unknown(list: &mut Conditions, input: Input<'_>) {
    let type_ = api::DEADLINE_AT_RISK;
    let mut conditions = list.list.iter();
    let was_known = conditions.any(|one| one.type_ == type_ && one.status != "Unknown");
    let mut reported = input.reported.into_iter();
    let reported = reported.find(|one| one.generation == input.job.generation);
    let reported = reported.map(ReportedFeasibility::words);
    let reported = reported.filter(|(reason, _)| *reason == reason::DURATIONS_UNKNOWN);
    if let Some((reason, label)) = reported.filter(|_| !was_known) {
        list.say(type_, reason, &label);
    }
}

/// The reason, and the task that shows it.
fn cause(input: Input<'_>, report: &JobReport) -> (&'static str, Option<String>) {
    if input.job.rules.suspend {
        let reason = match input.is_queued {
            true => reason::WAITING_IN_QUEUE,
            false => reason::JOB_SUSPENDED,
        };
        return (reason, None);
    }
    let Some(risk) = &report.risk else {
        return match report.stragglers.is_empty() && report.waiting > 0 {
            true => (waiting(input, report), None),
            false => unstarted(input).unwrap_or((reason::TASKS_SLOW, None)),
        };
    };
    let runs = matches!(
        risk.cause,
        RiskCause::Straggler | RiskCause::Slow | RiskCause::Silent
    );
    if let Some(unstarted) = unstarted(input).filter(|_| runs) {
        return unstarted;
    }
    let (silent, asked) = input.unreachable;
    let runs = matches!(risk.cause, RiskCause::Straggler | RiskCause::Slow);
    let cause = match runs && asked > 0 && silent == asked {
        true => RiskCause::Silent,
        false => risk.cause,
    };
    match cause {
        RiskCause::Waiting => (waiting(input, report), None),
        RiskCause::Straggler => {
            let example = format!("{}; {}", place(input, risk), what_shed_does(input));
            (reason::TASKS_STRAGGLING, Some(example))
        }
        RiskCause::Failed => (reason::TASKS_FAILED, Some(failures(input, risk))),
        RiskCause::Restarts => (reason::ATTEMPTS_FAILING, Some(failures(input, risk))),
        RiskCause::Silent => (reason::TASKS_SILENT, Some(place(input, risk))),
        RiskCause::Slow => (reason::TASKS_SLOW, None),
    }
}

/// Tasks without a started container are not slow.
fn unstarted(input: Input<'_>) -> Option<(&'static str, Option<String>)> {
    if input.gate.is_some() {
        return Some((reason::WAITING_IN_QUEUE, None));
    }
    let blocked = input.blocked.filter(|_| !input.running);
    let words = match blocked {
        Some(blocked) => blocked.message.clone(),
        None => input.unstarted?.words(),
    };
    Some((reason::ATTEMPTS_NOT_STARTED, Some(words)))
}

/// Reasons of waiting tasks that need another remedy than more capacity.
const NAMED_RISKS: [&str; 3] = [
    reason::PARALLELISM_REACHED,
    reason::ACTIVE_JOBS_LIMIT,
    reason::WAITING_IN_QUEUE,
];

/// What tasks without an attempt wait for.
fn waiting(input: Input<'_>, report: &JobReport) -> &'static str {
    match input.waiting {
        PendingTasks::Reported { reason, .. } if NAMED_RISKS.contains(reason) => reason,
        _ if report.waiting_for_share > 0 => reason::SHARE_IN_USE,
        _ => reason::INSUFFICIENT_CAPACITY,
    }
}

fn task(input: Input<'_>, risk: &Risk) -> String {
    match risk.task {
        Some(index) => format!("task {}", input.ledger.task_of(index.0)),
        None => "some tasks".to_owned(),
    }
}

fn place(input: Input<'_>, risk: &Risk) -> String {
    let task = task(input, risk);
    match &risk.node {
        Some(node) => format!("{task} on node {node}"),
        None => task,
    }
}

fn failures(input: Input<'_>, risk: &Risk) -> String {
    let task = task(input, risk);
    match risk.failures {
        0 => task,
        1 => format!("{task} failed once"),
        times => format!("{task} failed {times} times"),
    }
}

/// What shed does about a straggler.
fn what_shed_does(input: Input<'_>) -> &'static str {
    let rules = &input.job.rules;
    if rules.idempotency == Idempotency::None {
        "shed starts no clone of it with spec.idempotency: None"
    } else if rules.speculation == SpeculationMode::Observe {
        "shed starts no clone of it, because spec.speculation.mode is Observe"
    } else if rules.speculation == SpeculationMode::Disabled {
        "shed starts no clone of it, because spec.speculation.mode is Disabled"
    } else if input.clone_stop.is_some() {
        "shed starts no clone of it, because an annotation stops new clones"
    } else {
        "shed clones it while a clone is worth its price"
    }
}

/// The cause that the conditions state, without the remedy, which comes too late for a job that has ended.
pub(super) fn last_cause(conditions: &[Condition]) -> Option<&str> {
    stated_in(conditions).map(messages::without_help)
}

/// The cause that a status states while the job is at risk. Its task changes as often as PoCD does.
pub(super) fn stated(status: &DeadlineJobStatus) -> Option<&Condition> {
    stated_in(&status.conditions)
}

fn stated_in(conditions: &[Condition]) -> Option<&Condition> {
    conditions.iter().find(|one| {
        one.type_ == api::DEADLINE_AT_RISK
            && one.status == "True"
            && one.reason != reason::CLOCK_UNCERTAIN
    })
}

/// Restates the cause of `old`, if both states are at risk.
pub(super) fn restate(status: &mut DeadlineJobStatus, old: &DeadlineJobStatus) {
    let (Some(before), true) = (stated(old), stated(status).is_some()) else {
        return;
    };
    let mut conditions = status.conditions.iter_mut();
    if let Some(now) = conditions.find(|one| one.type_ == api::DEADLINE_AT_RISK) {
        now.clone_from(before);
    }
}
