//! The status that users read: derived from the book and the planner's report. Pure.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use shed_core::decide::feasibility::TARGET_DEFAULT;
use shed_core::index_set::IndexSet;
use shed_core::plan::JobReport;
use shed_core::settle::DEADLINE_GRACE;
use shed_core::snapshot::{AttemptKind, Conclusion, OnMiss};
use shed_core::time::{Instant, Span};

use super::feasibility::Told;
use super::waiting::Waiting;
use super::words;
use crate::api::{self, DeadlineJobStatus, reason, renamed};
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

/// Phases of a job that has not ended: no attempt was given a node yet, or one was.
const PENDING: &str = "Pending";
const RUNNING: &str = "Running";

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
    /// Whether nothing is known to keep attempts from being placed.
    pub placeable: bool,
    /// Whether any attempt runs.
    pub running: bool,
    /// Whether any attempt was given a node.
    pub placed: bool,
    /// How many attempts that may win are Ready.
    pub ready: i32,
    /// How many running attempts don't answer, and how many were asked.
    pub unreachable: (usize, usize),
    /// Which attempt keeps others waiting by not being gone for certain.
    pub awaited: Option<&'a Unconfirmed>,
    /// What is to be said of the claims that attempts mount.
    pub unshared: Option<&'a str>,
    /// Tasks whose checkpoint is not durable, as there is no room for it; absent if that is as it was.
    pub undurable: Option<usize>,
    /// Up to when every end of an attempt is known.
    pub facts_as_of: Instant,
    /// Whether the job would be ended now if the apiserver's time were certain.
    pub held_back: bool,
    /// What tasks without an attempt wait for.
    pub waiting: &'a Waiting,
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
        phase: Some(phase(input).to_owned()),
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
    let mut list = Conditions::of(old, generation.unwrap_or(0), now);
    list.say(api::FAILURE_TARGET, reason::INVALID_SPEC, message);
    list.say(api::FAILED, reason::INVALID_SPEC, message);
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

fn phase(input: Input<'_>) -> &'static str {
    let Input { job, book, .. } = input;
    match (book.ending, book.finished) {
        (Some(conclusion), true) if conclusion.is_success() => "Complete",
        (Some(conclusion), false) if conclusion.is_success() => "Completing",
        (Some(_), true) => "Failed",
        (Some(_), false) => "Failing",
        (None, _) if job.rules.suspend => "Suspended",
        (None, _) if has_begun(input) => RUNNING,
        (None, _) => PENDING,
    }
}

/// Whether an attempt was ever given a node: until then nothing of the job can have run.
fn has_begun(input: Input<'_>) -> bool {
    let counts = &input.book.counts;
    let ran = counts.won + counts.failed + counts.clone_failed + counts.late;
    input.placed || ran > 0 || input.old.phase.as_deref() == Some(RUNNING)
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
    /// PoCD moved far enough or readiness did, and the last such write is long enough ago. That
    /// the first attempt was given a node goes with them.
    fn keep_estimate_if_nothing_else_changed(mut self, old: &Self, input: &Input<'_>) -> Self {
        let mut alike = self.clone();
        alike.pocd.clone_from(&old.pocd);
        alike.ready = old.ready;
        let begins =
            old.phase.as_deref() == Some(PENDING) && self.phase.as_deref() == Some(RUNNING);
        if begins {
            alike.phase.clone_from(&old.phase);
        }
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
        if !((moved || self.ready != old.ready || begins) && due) {
            self.phase = alike.phase;
            self.ready = alike.ready;
            self.pocd = alike.pocd;
            self.estimated_completion_time = alike.estimated_completion_time;
        }
        self
    }
}

fn conditions(input: Input<'_>, deadline: Option<Instant>) -> Vec<Condition> {
    let mut list = Conditions::of(input.old, input.job.generation, input.now);
    let is_open = input.book.ending.is_none();
    end_conditions(&mut list, input);
    if input.job.rules.suspend && is_open {
        list.say(api::SUSPENDED, reason::JOB_SUSPENDED, "");
    } else {
        list.clear(api::SUSPENDED, reason::JOB_RESUMED, "");
    }
    deadline_conditions(&mut list, input, deadline);
    risk_conditions(&mut list, input);
    let told = input
        .told
        .filter(|told| told.generation == input.job.generation);
    if let Some(told) = told.filter(|_| is_open) {
        let (reason, detail) = told.words();
        list.say(api::DEADLINE_FEASIBLE, reason, &detail);
    }
    let is_held = input.book.ending.is_some() || input.job.rules.suspend;
    match input.blocked {
        Some(blocked) if !is_held => {
            list.say(api::ATTEMPTS_BLOCKED, blocked.reason, &blocked.message);
        }
        _ if input.running || is_held || is_placeable_again(input) => {
            list.clear(api::ATTEMPTS_BLOCKED, reason::ATTEMPTS_STARTING, "");
        }
        _ => {}
    }
    match input.waiting {
        Waiting::Told {
            reason,
            detail,
            since,
        } if is_open => list.say_since(api::TASKS_PENDING, reason, detail, *since),
        Waiting::Yet if is_open => {}
        _ => list.clear(api::TASKS_PENDING, reason::NO_TASKS_PENDING, ""),
    }
    match input.awaited.filter(|_| !input.book.finished) {
        Some(awaited) => list.say(
            api::TERMINATION_UNCONFIRMED,
            awaited.reason,
            &awaited.message,
        ),
        None => list.clear(
            api::TERMINATION_UNCONFIRMED,
            reason::TERMINATION_CONFIRMED,
            "",
        ),
    }
    match input.unshared {
        Some(message) => list.say(
            api::VOLUME_NOT_SHARED,
            reason::SINGLE_NODE_ACCESS_MODE,
            message,
        ),
        None => list.clear(api::VOLUME_NOT_SHARED, reason::VOLUMES_SHARED, ""),
    }
    match input.undurable {
        None => {}
        Some(0) => list.clear(
            api::CHECKPOINTS_NOT_DURABLE,
            reason::CHECKPOINTS_DURABLE,
            "",
        ),
        Some(tasks) => list.say(
            api::CHECKPOINTS_NOT_DURABLE,
            reason::OBJECT_SIZE_LIMIT,
            &tasks.to_string(),
        ),
    }
    let (silent, asked) = input.unreachable;
    if asked > 0 && silent == asked {
        list.say(
            api::PROGRESS_UNREACHABLE,
            reason::NO_RESPONSE,
            &asked.to_string(),
        );
    } else if asked > 0 || !is_open {
        list.clear(api::PROGRESS_UNREACHABLE, reason::PROGRESS_REACHABLE, "");
    }
    list.list
}

/// Whether the status still says that attempts can't be placed, and they can. (That they can be created
/// and start is seen when one runs.)
fn is_placeable_again(input: Input<'_>) -> bool {
    let of_placement = [reason::NO_MATCHING_NODE, reason::UNSCHEDULABLE];
    let mut told = input.old.conditions.iter();
    let is_told = told.any(|one| {
        one.type_ == api::ATTEMPTS_BLOCKED && of_placement.contains(&one.reason.as_str())
    });
    input.placeable && is_told
}

fn end_conditions(list: &mut Conditions, input: Input<'_>) {
    let Some(conclusion) = input.book.ending else {
        // Set by a specification that could not be carried out and has been mended since.
        for type_ in [api::FAILURE_TARGET, api::FAILED] {
            list.clear(type_, reason::SPEC_CORRECTED, "");
        }
        return;
    };
    let (reason, detail) = fate(conclusion, input);
    let (interim, last) = if conclusion.is_success() {
        (api::SUCCESS_CRITERIA_MET, api::COMPLETE)
    } else {
        (api::FAILURE_TARGET, api::FAILED)
    };
    if conclusion.is_success() {
        list.clear(api::FAILURE_TARGET, reason::DEADLINE_MET, "");
    }
    list.say(interim, reason, &detail);
    if input.book.finished {
        list.say(last, reason, &detail);
    }
}

/// The reason of a job's fate, and what is known of it.
fn fate(conclusion: Conclusion, input: Input<'_>) -> (&'static str, String) {
    let total = input.job.rules.completions;
    let done = input.book.done_tasks(total).len();
    let asked = total - input.job.skipped.as_ref().map_or(0, IndexSet::len);
    let share = || format!("{done} of {asked}");
    let failed = || words::some_of(&input.book.failed_tasks(total));
    match conclusion {
        Conclusion::Complete => (reason::COMPLETIONS_REACHED, asked.to_string()),
        Conclusion::SuccessPolicy => (reason::SUCCESS_POLICY, share()),
        Conclusion::TimeLimit => (reason::DEADLINE_EXCEEDED, share()),
        Conclusion::MaxFailedIndexes => (reason::MAX_FAILED_INDEXES, failed()),
        Conclusion::BackoffLimit => {
            let failures = input.book.counts.failed;
            (reason::BACKOFF_LIMIT, failures.to_string())
        }
        Conclusion::PodFailurePolicy => {
            let unknown = "an attempt failed, and a rule of spec.podFailurePolicy fails the job";
            let note = input.book.ending_note.clone();
            let note = note.unwrap_or_else(|| unknown.to_owned());
            (reason::POD_FAILURE_POLICY, note)
        }
        Conclusion::DeadlineExceeded => (reason::DEADLINE_MISSED, share()),
        Conclusion::DeadlineInPast => (reason::DEADLINE_IN_PAST, String::new()),
        Conclusion::FailedIndexes => (reason::FAILED_INDEXES, failed()),
    }
}

fn deadline_conditions(list: &mut Conditions, input: Input<'_>, deadline: Option<Instant>) {
    let Some(deadline) = deadline else {
        return;
    };
    let missed = match input.book.ending {
        Some(conclusion) if conclusion.is_success() => !met(input.job, input.book),
        Some(_) => true,
        // Not before the last task may have finished in time without anybody knowing.
        None => {
            input.job.rules.on_miss == OnMiss::Continue
                && input.facts_as_of >= deadline.plus(DEADLINE_GRACE)
        }
    };
    if missed {
        let failed_before = input.book.ended.unwrap_or(input.now) < deadline;
        let reason = match failed_before {
            true => reason::FAILED_BEFORE_DEADLINE,
            false => reason::DEADLINE_PASSED,
        };
        list.say(api::DEADLINE_MISSED, reason, &clock::rfc3339(deadline));
    } else if input.book.ending.is_some() {
        list.clear(api::DEADLINE_MISSED, reason::DEADLINE_MET, "");
    } else if input.now < deadline {
        list.clear(api::DEADLINE_MISSED, reason::DEADLINE_MOVED, "");
    }
}

fn risk_conditions(list: &mut Conditions, input: Input<'_>) {
    let type_ = api::DEADLINE_AT_RISK;
    if input.book.ending.is_some() {
        return list.clear(type_, reason::ON_TRACK, "the job has ended");
    }
    if input.held_back {
        return list.say(type_, reason::CLOCK_UNCERTAIN, "");
    }
    let Some(report) = input.report else {
        return;
    };
    // Clones stop at the target: a job that has reached it is where its user wants it.
    let target = input.job.rules.target_pocd;
    let at_risk_below = target.map_or(AT_RISK_BELOW, |target| target.min(AT_RISK_BELOW));
    match report.pocd_after {
        Some(pocd) if pocd < at_risk_below => {
            let reason = if report.stragglers.is_empty() && report.kept_back > 0 {
                reason::HEADROOM_RESERVED
            } else if report.stragglers.is_empty() && report.waiting > 0 {
                reason::INSUFFICIENT_CAPACITY
            } else {
                reason::TASKS_STRAGGLING
            };
            // No figures of the report in the message: they would make a write of each.
            list.say(type_, reason, &at_risk_below.to_string());
        }
        Some(_) => list.clear(type_, reason::ON_TRACK, "PoCD is high enough"),
        None => {}
    }
}

struct Conditions {
    list: Vec<Condition>,
    generation: i64,
    now: Instant,
    /// The job had finished before: what it said then stays as it was worded.
    is_final: bool,
}

impl Conditions {
    /// The conditions of a status, under their present names unless the job has finished.
    fn of(old: &DeadlineJobStatus, generation: i64, now: Instant) -> Self {
        let mut list = old.conditions.clone();
        let ledger = old.ledger.as_ref();
        let is_final = ledger.is_some_and(|ledger| ledger.finished);
        if !is_final {
            for condition in &mut list {
                renamed::present_type(&condition.type_.clone()).clone_into(&mut condition.type_);
                let reason = condition.reason.clone();
                renamed::present_reason(&condition.type_, &reason)
                    .clone_into(&mut condition.reason);
            }
        }
        // After a roll-back a type may be there under both names.
        let mut types = BTreeSet::new();
        list.retain(|condition| types.insert(condition.type_.clone()));
        Self {
            list,
            generation,
            now,
            is_final,
        }
    }

    /// Says a state in the words of its row.
    fn say(&mut self, type_: &str, reason: &str, detail: &str) {
        self.say_since(type_, reason, detail, self.now);
    }

    /// The same, if it has been so since.
    fn say_since(&mut self, type_: &str, reason: &str, detail: &str, since: Instant) {
        // A test walks every reason; without its row a state would be told in raw words.
        let Some(row) = words::row(type_, reason) else {
            return self.put(type_, "True", reason, detail);
        };
        let is_it = |old: &&Condition| {
            old.type_ == type_
                && old.status == row.status
                && renamed::present_reason(type_, &old.reason) == reason
        };
        let before = self.list.iter().find(is_it);
        if self.is_final && before.is_some() {
            return;
        }
        let before = before.map(|old| old.message.as_str());
        let message = row.words(detail, since, before);
        self.put(type_, row.status, reason, &message);
    }

    /// Sets a condition; its transition time moves with its status only.
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

    /// Says that a state is over, if its condition is there and true.
    fn clear(&mut self, type_: &str, reason: &str, detail: &str) {
        let is_true = self
            .list
            .iter()
            .any(|condition| condition.type_ == type_ && condition.status == "True");
        if is_true {
            self.say(type_, reason, detail);
        }
    }
}

#[cfg(test)]
mod tests;
