//! The status that users read: derived from the book and the planner's report. Pure.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use shed_core::decide::feasibility::TARGET_DEFAULT;
use shed_core::index_set::IndexSet;
use shed_core::plan::JobReport;
use shed_core::snapshot::{AttemptKind, Conclusion, OnMiss};
use shed_core::time::{Instant, Span};

use super::feasibility::Told;
use crate::api::{self, DeadlineJobStatus, reason};
use crate::book::Book;
use crate::clock;
use crate::observe::unconfirmed::Unconfirmed;
use crate::validate::{DeadlineRule, ValidatedJob};

/// Below this PoCD a job is at risk.
const AT_RISK_BELOW: f64 = TARGET_DEFAULT;
/// A PoCD alone is worth a write if it moved by this …
const POCD_STEP: f64 = 0.05;
/// … and the last such write is this long ago.
const POCD_PERIOD: Span = Span::from_seconds(10);

/// Why attempts can't be created or can't start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocked {
    /// A reason of `AttemptsBlocked`.
    pub reason: &'static str,
    /// What the apiserver or the kubelet said.
    pub message: String,
}

/// What the status is made from.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    /// The job.
    pub job: &'a ValidatedJob,
    /// Its book as it is about to be written.
    pub book: &'a Book,
    /// The status as it is.
    pub old: &'a DeadlineJobStatus,
    /// What the planner found out last.
    pub report: Option<&'a JobReport>,
    /// What keeps attempts from starting.
    pub blocked: Option<&'a Blocked>,
    /// Whether any attempt runs.
    pub running: bool,
    /// How many attempts that may win are Ready.
    pub ready: i32,
    /// How many running attempts don't answer, and how many were asked.
    pub unreachable: (usize, usize),
    /// Which attempt keeps others waiting by not being gone for certain.
    pub awaited: Option<&'a Unconfirmed>,
    /// What is to be said of the claims that attempts mount.
    pub unshared: Option<&'a str>,
    /// What is to be told of whether the deadline can be kept.
    pub told: Option<&'a Told>,
    /// When PoCD alone was last worth a write.
    pub pocd_written: Option<Instant>,
    /// When.
    pub now: Instant,
}

/// The status that should be there, without the ledger's revision raised.
#[must_use]
pub fn render(input: Input<'_>) -> DeadlineJobStatus {
    let Input { job, book, old, .. } = input;
    let live = book
        .tasks
        .values()
        .flat_map(|task| &task.attempts)
        .filter(|attempt| attempt.kill.is_none());
    let clones = live
        .clone()
        .filter(|attempt| attempt.kind == AttemptKind::Clone);
    let killed = book
        .tasks
        .values()
        .flat_map(|task| &task.attempts)
        .filter(|attempt| attempt.kill.is_some());
    let deadline = job.deadline.instant(job.created, book.first_pass);
    let complete = book.finished && book.ending.is_some_and(Conclusion::is_success);
    let fresh = fresh_pocd(input);
    let total = job.rules.completions;
    let (done, failed) = (book.done_tasks(total), book.failed_tasks(total));
    DeadlineJobStatus {
        observed_generation: Some(job.generation),
        phase: Some(phase(job, book).to_owned()),
        deadline: deadline.map(clock::time),
        start_time: book.started.map(clock::time),
        completion_time: book.last_win.filter(|_| complete).map(clock::time),
        pocd: fresh.pocd,
        estimated_completion_time: fresh.estimate.map(clock::time),
        active: count(live),
        // Once the fate is known nobody may win any more.
        ready: if book.ending.is_none() {
            input.ready
        } else {
            0
        },
        clones: count(clones),
        terminating: count(killed),
        succeeded: i32::try_from(done.len()).unwrap_or(i32::MAX),
        failed: i32::try_from(failed.len()).unwrap_or(i32::MAX),
        completed_indexes: done.to_string(),
        failed_indexes: failed.to_string(),
        attempts: book.counts,
        conditions: conditions(input, deadline),
        ledger: Some(book.to_ledger()),
        unknown: old.unknown.clone(),
    }
    .keep_estimate_if_nothing_else_changed(old, &input)
}

/// The status of a job whose specification can't be carried out.
#[must_use]
pub fn invalid(
    old: &DeadlineJobStatus,
    generation: Option<i64>,
    message: &str,
    now: Instant,
) -> DeadlineJobStatus {
    let mut list = Conditions {
        list: old.conditions.clone(),
        generation: generation.unwrap_or(0),
        now,
    };
    list.set(api::FAILURE_TARGET, true, reason::INVALID_SPEC, message);
    list.set(api::FAILED, true, reason::INVALID_SPEC, message);
    DeadlineJobStatus {
        observed_generation: generation,
        phase: Some("Failed".to_owned()),
        conditions: list.list,
        ..old.clone()
    }
}

fn count<T>(items: impl Iterator<Item = T>) -> i32 {
    i32::try_from(items.count()).unwrap_or(i32::MAX)
}

fn phase(job: &ValidatedJob, book: &Book) -> &'static str {
    match (book.ending, book.finished) {
        (Some(conclusion), true) if conclusion.is_success() => "Complete",
        (Some(conclusion), false) if conclusion.is_success() => "Completing",
        (Some(_), true) => "Failed",
        (Some(_), false) => "Failing",
        (None, _) if job.rules.suspend => "Suspended",
        (None, _) if book.started.is_none() => "Pending",
        (None, _) => "Running",
    }
}

struct FreshPocd {
    pocd: Option<String>,
    estimate: Option<Instant>,
}

fn fresh_pocd(input: Input<'_>) -> FreshPocd {
    let settled = |pocd: &str| FreshPocd {
        pocd: Some(pocd.to_owned()),
        estimate: None,
    };
    match input.book.ending {
        _ if input.job.deadline == DeadlineRule::Never => FreshPocd {
            pocd: None,
            estimate: input.report.and_then(|report| report.estimated_completion),
        },
        Some(conclusion) if conclusion.is_success() && met(input.job, input.book) => {
            settled("1.000")
        }
        Some(_) => settled("0.000"),
        None => FreshPocd {
            pocd: input
                .report
                .and_then(|report| report.pocd_after)
                .map(|pocd| format!("{pocd:.3}"))
                .or_else(|| input.old.pocd.clone()),
            estimate: input.report.and_then(|report| report.estimated_completion),
        },
    }
}

/// Whether the job was complete in time, by its latest winner's own clock. Container times
/// have whole seconds, so the deadline's second still counts.
#[must_use]
pub fn met(job: &ValidatedJob, book: &Book) -> bool {
    let deadline = job.deadline.instant(job.created, book.first_pass);
    let complete = book.ending.is_some_and(Conclusion::is_success);
    complete && deadline.is_some_and(|deadline| book.last_win <= Some(deadline))
}

impl DeadlineJobStatus {
    /// PoCD, the estimate and readiness move all the time; alone they are worth a write only when
    /// PoCD moved far enough or readiness did, and the last such write is long enough ago.
    fn keep_estimate_if_nothing_else_changed(mut self, old: &Self, input: &Input<'_>) -> Self {
        let mut alike = self.clone();
        alike.pocd.clone_from(&old.pocd);
        alike.ready = old.ready;
        alike
            .estimated_completion_time
            .clone_from(&old.estimated_completion_time);
        if alike != *old {
            return self;
        }
        let number = |text: &Option<String>| text.as_deref().and_then(|text| text.parse().ok());
        let (new, before): (Option<f64>, Option<f64>) = (number(&self.pocd), number(&old.pocd));
        let moved = match (new, before) {
            (Some(new), Some(before)) => (new - before).abs() >= POCD_STEP,
            (new, before) => new.is_some() != before.is_some(),
        };
        let due = input
            .pocd_written
            .is_none_or(|written| input.now.since(written) >= POCD_PERIOD);
        if !((moved || self.ready != old.ready) && due) {
            self.ready = alike.ready;
            self.pocd = alike.pocd;
            self.estimated_completion_time = alike.estimated_completion_time;
        }
        self
    }
}

fn conditions(input: Input<'_>, deadline: Option<Instant>) -> Vec<Condition> {
    let mut list = Conditions {
        list: input.old.conditions.clone(),
        generation: input.job.generation,
        now: input.now,
    };
    end_conditions(&mut list, input);
    if input.job.rules.suspend && input.book.ending.is_none() {
        list.set(
            api::SUSPENDED,
            true,
            reason::JOB_SUSPENDED,
            "spec.suspend is true",
        );
    } else {
        list.clear(api::SUSPENDED, reason::JOB_RESUMED, "spec.suspend is false");
    }
    deadline_conditions(&mut list, input, deadline);
    let told = input
        .told
        .filter(|told| told.generation == input.job.generation);
    if let Some(told) = told.filter(|_| input.book.ending.is_none()) {
        let (status, reason, message) = told.words();
        list.put(api::DEADLINE_FEASIBLE, status, reason, &message);
    }
    match input.blocked {
        Some(blocked) if input.book.ending.is_none() => {
            list.set(
                api::ATTEMPTS_BLOCKED,
                true,
                blocked.reason,
                &blocked.message,
            );
        }
        _ if input.running || input.book.ending.is_some() => {
            list.clear(
                api::ATTEMPTS_BLOCKED,
                reason::ATTEMPTS_START,
                "attempts start",
            );
        }
        _ => {}
    }
    match input.awaited.filter(|_| !input.book.finished) {
        Some(awaited) => list.set(api::END_UNCONFIRMED, true, awaited.reason, &awaited.message),
        None => list.clear(
            api::END_UNCONFIRMED,
            reason::ALL_CONFIRMED,
            "every attempt that others wait for is gone",
        ),
    }
    match input.unshared {
        Some(message) => list.set(
            api::VOLUME_NOT_SHARED,
            true,
            reason::ONE_NODE_AT_A_TIME,
            message,
        ),
        None => list.clear(
            api::VOLUME_NOT_SHARED,
            reason::VOLUMES_SHARED,
            "attempts on several nodes can mount what the template mounts, or have no need to",
        ),
    }
    let (silent, asked) = input.unreachable;
    if asked > 0 && silent == asked {
        let message = format!(
            "none of {asked} running attempts answers on its progress port: does a NetworkPolicy \
             or strict mTLS keep the operator away?"
        );
        list.set(api::PROGRESS_UNREACHABLE, true, reason::NO_ANSWER, &message);
    } else if asked > 0 || input.book.ending.is_some() {
        list.clear(
            api::PROGRESS_UNREACHABLE,
            reason::ANSWERS,
            "attempts answer",
        );
    }
    list.list
}

fn end_conditions(list: &mut Conditions, input: Input<'_>) {
    let Some(conclusion) = input.book.ending else {
        // Set by a specification that could not be carried out and has been mended since.
        for type_ in [api::FAILURE_TARGET, api::FAILED] {
            list.clear(type_, reason::SPEC_MENDED, "the specification is valid now");
        }
        return;
    };
    let (reason, message) = words(conclusion, input);
    let (interim, last) = if conclusion.is_success() {
        (api::SUCCESS_CRITERIA_MET, api::COMPLETE)
    } else {
        (api::FAILURE_TARGET, api::FAILED)
    };
    if conclusion.is_success() {
        list.clear(
            api::FAILURE_TARGET,
            reason::FINISHED_IN_TIME,
            "the last task had finished before the deadline",
        );
    }
    list.set(interim, true, reason, &message);
    if input.book.finished {
        list.set(last, true, reason, &message);
    }
}

fn words(conclusion: Conclusion, input: Input<'_>) -> (&'static str, String) {
    let total = input.job.rules.completions;
    let done = input.book.done_tasks(total).len();
    let asked = total - input.job.skipped.as_ref().map_or(0, IndexSet::len);
    match conclusion {
        Conclusion::Complete => (
            reason::COMPLETIONS_REACHED,
            format!("all {asked} tasks have a winner"),
        ),
        Conclusion::SuccessPolicy => (
            reason::SUCCESS_POLICY,
            format!("{done} of {asked} tasks have a winner, enough for spec.successPolicy"),
        ),
        Conclusion::TimeLimit => (
            reason::DEADLINE_EXCEEDED,
            format!(
                "{done} of {asked} tasks were complete when spec.activeDeadlineSeconds had passed"
            ),
        ),
        Conclusion::MaxFailedIndexes => (
            reason::MAX_FAILED_INDEXES,
            format!(
                "tasks {} failed for good, more than spec.maxFailedIndexes allows",
                input.book.failed_tasks(total)
            ),
        ),
        Conclusion::BackoffLimit => (
            reason::BACKOFF_LIMIT,
            format!(
                "{} attempts failed, more than spec.backoffLimit allows",
                input.book.counts.failed
            ),
        ),
        Conclusion::PodFailurePolicy => (
            reason::POD_FAILURE_POLICY,
            input.book.ending_note.clone().unwrap_or_else(|| {
                "an attempt failed in a way for which spec.podFailurePolicy fails the job"
                    .to_owned()
            }),
        ),
        Conclusion::DeadlineExceeded => (
            reason::DEADLINE_MISSED,
            format!(
                "{done} of {asked} tasks were complete at the deadline and spec.onMiss is Fail"
            ),
        ),
        Conclusion::DeadlineInPast => (
            reason::DEADLINE_IN_PAST,
            "spec.deadline had passed when the job was submitted; nothing was launched".to_owned(),
        ),
        Conclusion::FailedIndexes => (
            reason::FAILED_INDEXES,
            format!(
                "tasks {} failed for good: more often than spec.backoffLimitPerIndex allows, or by \
                 a rule of spec.podFailurePolicy",
                input.book.failed_tasks(total)
            ),
        ),
    }
}

fn deadline_conditions(list: &mut Conditions, input: Input<'_>, deadline: Option<Instant>) {
    let Some(deadline) = deadline else {
        return;
    };
    let missed = match input.book.ending {
        Some(conclusion) if conclusion.is_success() => !met(input.job, input.book),
        Some(_) => true,
        None => input.now > deadline && input.job.rules.on_miss == OnMiss::Continue,
    };
    if missed {
        let at = clock::rfc3339(deadline);
        let (reason, message) = if input.book.ended.unwrap_or(input.now) < deadline {
            let message = format!("the job failed, so that it can't be complete at {at}");
            (reason::FAILED_BEFORE, message)
        } else {
            (reason::DEADLINE_PASSED, format!("not complete at {at}"))
        };
        list.set(api::DEADLINE_MISSED, true, reason, &message);
    }
    if input.book.ending.is_some() {
        list.clear(api::DEADLINE_AT_RISK, reason::ON_TRACK, "the job has ended");
        return;
    }
    let Some(report) = input.report else {
        return;
    };
    // Clones stop at the target: a job that has reached it is where its user wants it.
    let target = input.job.rules.target_pocd;
    let at_risk_below = target.map_or(AT_RISK_BELOW, |target| target.min(AT_RISK_BELOW));
    match report.pocd_after {
        Some(pocd) if pocd < at_risk_below => {
            let (reason, what) = if report.stragglers.is_empty() && report.kept_back > 0 {
                (
                    reason::CAPACITY_KEPT,
                    "tasks wait while capacity is kept for shorter jobs that are likely to come",
                )
            } else if report.stragglers.is_empty() && report.waiting > 0 {
                (reason::CAPACITY_SHORT, "tasks wait for capacity")
            } else {
                (
                    reason::STRAGGLER,
                    "tasks are expected to end after the deadline",
                )
            };
            // No figures in the message: they would make a write of every report.
            list.set(
                api::DEADLINE_AT_RISK,
                true,
                reason,
                &format!("{what}; PoCD is below {at_risk_below}"),
            );
        }
        Some(_) => list.clear(
            api::DEADLINE_AT_RISK,
            reason::ON_TRACK,
            "PoCD is high enough",
        ),
        None => {}
    }
}

struct Conditions {
    list: Vec<Condition>,
    generation: i64,
    now: Instant,
}

impl Conditions {
    /// Sets a condition; its transition time moves with its status only.
    fn set(&mut self, type_: &str, status: bool, reason: &str, message: &str) {
        let status = if status { "True" } else { "False" };
        self.put(type_, status, reason, message);
    }

    fn put(&mut self, type_: &str, status: &str, reason: &str, message: &str) {
        let fresh = Condition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message: message.to_owned(),
            observed_generation: Some(self.generation),
            last_transition_time: clock::time(self.now),
        };
        match self
            .list
            .iter_mut()
            .find(|condition| condition.type_ == type_)
        {
            None => self.list.push(fresh),
            Some(old) if old.status != status => *old = fresh,
            Some(old) => {
                old.reason = fresh.reason;
                old.message = fresh.message;
                old.observed_generation = fresh.observed_generation;
            }
        }
    }

    /// Turns a condition to false if it is there and true.
    fn clear(&mut self, type_: &str, reason: &str, message: &str) {
        let is_true = self
            .list
            .iter()
            .any(|condition| condition.type_ == type_ && condition.status == "True");
        if is_true {
            self.set(type_, false, reason, message);
        }
    }
}

#[cfg(test)]
mod tests;
