//! The status that users read, derived from the ledger and the planner's report. Pure.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use shed_core::index_set::IndexSet;
use shed_core::plan::{EndRange, JobReport};
use shed_core::snapshot::{AttemptKind, Conclusion, Idempotency, SpeculationMode};
use shed_core::time::Instant;

use crate::api::{self, CompletionRange, DeadlineJobStatus, Ledger, ObservedClones, Pocd, reason};
use crate::clock;
use crate::cluster::namespace_settings::CloneStop;
use crate::completion_history::Known;
use crate::conditions::Conditions;
use crate::conditions::messages::{self, LAST_RISK};
use crate::context::backoff::Blocked;
use crate::context::feasibility::ReportedFeasibility;
use crate::context::pending_tasks::PendingTasks;
use crate::context::spacing::FIGURES_WAIT;
use crate::context::workflow_estimate::WorkflowEstimate;
use crate::job::unconfirmed_termination::UnconfirmedTermination;
use crate::job::unstarted::Unstarted;
use crate::job::verdict::DeadlineVerdict;
use crate::reconcile::risk;
use crate::validate::ValidatedJob;

mod workflow;

/// A PoCD alone is worth a write if it moved by this.
const POCD_STEP: f64 = 0.05;

/// A cause of failures that ended the job.
const UNCOMMITTED: &str =
    "; attempts ended with exit code 0 and never requested a commit grant, so they count as failed";

/// Phases of a job that has not ended: no attempt was given a node yet, or one was.
const PENDING: &str = "Pending";
const RUNNING: &str = "Running";

/// Input of the status.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    /// The job.
    pub job: &'a ValidatedJob,
    /// Its ledger, as about to be written.
    pub ledger: &'a Ledger,
    /// Its deadline; absent while its clock has not started.
    pub deadline: Option<Instant>,
    /// With `deadline.history`, what is known of its class.
    pub history: Option<Known>,
    /// The current status.
    pub old: &'a DeadlineJobStatus,
    /// The planner's last report.
    pub report: Option<&'a JobReport>,
    /// The calibrated PoCD of that report.
    pub calibrated: Option<f64>,
    /// What is estimated of the workflow's run that it is a stage of.
    pub workflow: Option<&'a WorkflowEstimate>,
    /// The clones that shed would have started, if the job only observes.
    pub observed: Option<ObservedClones>,
    /// The obstacle to starting attempts.
    pub blocked: Option<&'a Blocked>,
    /// Whether nothing is known to keep attempts from being placed.
    pub placeable: bool,
    /// Whether a queue outside shed decides when the job may run.
    pub is_queued: bool,
    /// The scheduling gate that holds back all attempts of the tasks at risk.
    pub gate: Option<&'a str>,
    /// Whether any attempt runs.
    pub running: bool,
    /// The attempt that waits for its first container, if no container of the tasks at risk has started.
    pub unstarted: Option<&'a Unstarted>,
    /// Whether an attempt ended with exit code 0 and without a commit grant.
    pub uncommitted: bool,
    /// Whether any attempt was given a node.
    pub placed: bool,
    /// How many attempts that may win are Ready.
    pub ready: i32,
    /// The number of running attempts that do not answer, and the number of polled attempts.
    pub unreachable: (usize, usize),
    /// The attempt that others wait for, because its termination is unproven.
    pub awaited: Option<&'a UnconfirmedTermination>,
    /// The message about the claims that attempts mount.
    pub unshared: Option<&'a str>,
    /// Number of tasks whose checkpoint does not fit and is not durable. Absent if the number has
    /// not changed.
    pub undurable: Option<usize>,
    /// Up to when every end of an attempt is known.
    pub facts_as_of: Instant,
    /// Whether the job would be ended now if the apiserver's time were certain.
    pub held_back: bool,
    /// The obstacle of tasks without an attempt.
    pub waiting: &'a PendingTasks,
    /// The namespace whose annotation stops new clones of the job.
    pub clone_stop: Option<CloneStop<'a>>,
    /// The verdict on whether the deadline can be kept.
    pub reported: Option<&'a ReportedFeasibility>,
    /// When the status was last written by this process.
    pub last_write: Option<Instant>,
    /// When.
    pub now: Instant,
}

impl Input<'_> {
    /// The verdict on the deadline, once there is one.
    pub fn verdict(&self) -> Option<DeadlineVerdict> {
        DeadlineVerdict::of(self.job, self.ledger, self.deadline, self.facts_as_of)
    }
}

/// The status that should be there, without the ledger's revision raised.
pub fn render(input: Input<'_>) -> DeadlineJobStatus {
    let Input {
        job, ledger, old, ..
    } = input;
    let attempts = || ledger.tasks.values().flat_map(|task| &task.attempts);
    let live = || attempts().filter(|attempt| attempt.kill.is_none());
    let clones = live().filter(|attempt| attempt.kind == AttemptKind::Clone);
    let complete = ledger.finished && ledger.ending.is_some_and(Conclusion::is_success);
    let fresh = fresh_pocd(input);
    let total = job.rules.completions;
    let (done, failed) = (ledger.done_tasks(total), ledger.failed_tasks(total));
    DeadlineJobStatus {
        observed_generation: Some(job.generation),
        phase: Some(phase(input).to_owned()),
        deadline: input.deadline.map(clock::time),
        start_time: ledger.started.map(clock::time),
        completion_time: ledger.last_win.filter(|_| complete).map(clock::time),
        pocd: fresh.pocd,
        calibrated_pocd: fresh.calibrated,
        observed: observed(input),
        workflow: workflow::status(input),
        estimated_completion_time: fresh.estimate.map(clock::time),
        completion_range: fresh.range.map(|range| CompletionRange {
            p50: clock::time(range.p50),
            p90: clock::time(range.p90),
        }),
        active: count(live()),
        // Once the fate is known, no attempt may win.
        ready: if ledger.ending.is_none() {
            input.ready
        } else {
            0
        },
        clones: count(clones),
        terminating: count(attempts().filter(|attempt| attempt.kill.is_some())),
        succeeded: i32::try_from(done.len()).unwrap_or(i32::MAX),
        failed: i32::try_from(failed.len()).unwrap_or(i32::MAX),
        completed_indexes: done.to_string(),
        failed_indexes: failed.to_string(),
        attempts: ledger.counts,
        conditions: conditions(input),
        record: old.record.clone(),
        ledger: Some(ledger.clone()),
        unknown: old.unknown.clone(),
    }
    .keep_estimate_if_nothing_else_changed(old, &input)
}

fn count<T>(items: impl Iterator<Item = T>) -> i32 {
    i32::try_from(items.count()).unwrap_or(i32::MAX)
}

fn phase(input: Input<'_>) -> &'static str {
    let Input { job, ledger, .. } = input;
    match (ledger.ending, ledger.finished) {
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
    let counts = &input.ledger.counts;
    let ran = counts.won + counts.failed + counts.clone_failed + counts.late;
    input.placed || ran > 0 || input.old.phase.as_deref() == Some(RUNNING)
}

/// Figures of a job that ended, or that a new leader does not know yet, stay.
fn observed(input: Input<'_>) -> Option<ObservedClones> {
    let observes = input.job.rules.speculation == SpeculationMode::Observe;
    let known = input.observed.or(input.old.observed);
    known.filter(|_| observes)
}

struct FreshPocd {
    pocd: Option<Pocd>,
    calibrated: Option<Pocd>,
    estimate: Option<Instant>,
    range: Option<EndRange>,
}

fn fresh_pocd(input: Input<'_>) -> FreshPocd {
    let settled = |pocd: Pocd| FreshPocd {
        pocd: Some(pocd),
        calibrated: None,
        estimate: None,
        range: None,
    };
    let running = input.report.filter(|_| input.ledger.ending.is_none());
    let range = running.and_then(|report| report.end_range);
    match input.ledger.ending {
        _ if input.job.deadline.gives_none(input.deadline) => FreshPocd {
            pocd: None,
            calibrated: None,
            estimate: input.report.and_then(|report| report.estimated_completion),
            range,
        },
        Some(_) if input.verdict() == Some(DeadlineVerdict::Met) => settled(Pocd::MET),
        Some(_) => settled(Pocd::MISSED),
        None => FreshPocd {
            pocd: input
                .report
                .and_then(|report| report.pocd_after)
                .map(Pocd::nearest)
                .or(input.old.pocd),
            calibrated: input
                .calibrated
                .map(Pocd::nearest)
                .or(input.old.calibrated_pocd),
            estimate: input.report.and_then(|report| report.estimated_completion),
            range,
        },
    }
}

impl DeadlineJobStatus {
    /// Whether users read that no attempt was given a node yet.
    pub(super) fn is_pending(&self) -> bool {
        self.phase.as_deref() == Some(PENDING)
    }

    /// PoCD, the estimate, the cause of a risk and readiness change all the time. A change of these alone is written
    /// only if one of them moved far enough, and if the job's last write is long enough ago.
    /// The first assignment of a node to an attempt waits with them.
    fn keep_estimate_if_nothing_else_changed(mut self, old: &Self, input: &Input<'_>) -> Self {
        let mut alike = self.clone();
        alike.pocd = old.pocd;
        alike.calibrated_pocd = old.calibrated_pocd;
        alike.observed = old.observed;
        workflow::keep_figures(&mut alike, old);
        risk::restate(&mut alike, old);
        alike.ready = old.ready;
        let begins = old.is_pending() && self.phase.as_deref() == Some(RUNNING);
        if begins {
            alike.phase.clone_from(&old.phase);
        }
        alike
            .estimated_completion_time
            .clone_from(&old.estimated_completion_time);
        alike.completion_range.clone_from(&old.completion_range);
        if alike != *old {
            return self;
        }
        let moved = has_moved(self.pocd, old.pocd)
            || has_moved(self.calibrated_pocd, old.calibrated_pocd)
            || has_more(self.observed, old.observed)
            || workflow::have_moved(&self, old)
            || risk::stated(&self) != risk::stated(old);
        let last = input.last_write;
        let due = last.is_none_or(|at| input.now.since(at) >= FIGURES_WAIT);
        if !((moved || self.ready != old.ready || begins) && due) {
            self.phase = alike.phase;
            self.ready = alike.ready;
            self.pocd = alike.pocd;
            self.calibrated_pocd = alike.calibrated_pocd;
            self.observed = alike.observed;
            self.workflow = alike.workflow;
            self.conditions = alike.conditions;
            self.estimated_completion_time = alike.estimated_completion_time;
            self.completion_range = alike.completion_range;
        }
        self
    }
}

fn has_moved(new: Option<Pocd>, old: Option<Pocd>) -> bool {
    match (new, old) {
        (Some(new), Some(old)) => new.distance(old) >= Pocd::nearest(POCD_STEP),
        (new, old) => new.is_some() != old.is_some(),
    }
}

/// Whether shed would have started more clones, or would start some now and would not before.
fn has_more(new: Option<ObservedClones>, old: Option<ObservedClones>) -> bool {
    let figures = |it: ObservedClones| (it.total_clones, it.clones > 0);
    new.map(figures) != old.map(figures)
}

fn conditions(input: Input<'_>) -> Vec<Condition> {
    let mut list = Conditions::of(input.old, input.job.generation, input.now);
    let is_open = input.ledger.ending.is_none();
    end_conditions(&mut list, input);
    match &input.job.fault {
        Some(fault) if is_open => list.say(api::SPEC_INVALID, fault.reason, &fault.message),
        Some(_) => {}
        None => list.clear(api::SPEC_INVALID, reason::SPEC_CORRECTED, ""),
    }
    if input.job.rules.suspend && is_open {
        let reason = match input.job.lacks_ledger {
            true => reason::RESTORED_WITHOUT_STATUS,
            false => reason::JOB_SUSPENDED,
        };
        list.say(api::SUSPENDED, reason, "");
    } else {
        list.clear(api::SUSPENDED, reason::JOB_RESUMED, "");
    }
    deadline_conditions(&mut list, input);
    unknown_deadline_condition(&mut list, input);
    risk::condition(&mut list, input);
    feasibility_condition(&mut list, input);
    clone_condition(&mut list, input);
    obstacle_conditions(&mut list, input);
    attempt_conditions(&mut list, input);
    checkpoint_and_progress_conditions(&mut list, input);
    list.list
}

/// Why the job has no deadline although it asks for one. A job that has ended keeps the last reason.
fn unknown_deadline_condition(list: &mut Conditions, input: Input<'_>) {
    let Some(history) = input.history.filter(|_| input.ledger.ending.is_none()) else {
        return;
    };
    let (job, ledger) = (input.job, input.ledger);
    if input.deadline.is_some() {
        list.clear(api::DEADLINE_UNKNOWN, reason::DEADLINE_FIXED, "");
    } else if history.quantile.is_none() {
        let runs = history.runs.to_string();
        list.say(api::DEADLINE_UNKNOWN, reason::TOO_FEW_RUNS, &runs);
    } else if let Some(passed) = job.deadline_by_history(ledger, history.quantile) {
        let passed = clock::rfc3339(passed);
        list.say(api::DEADLINE_UNKNOWN, reason::DEADLINE_PASSED, &passed);
    }
}

fn feasibility_condition(list: &mut Conditions, input: Input<'_>) {
    let reported = input
        .reported
        .filter(|reported| reported.generation == input.job.generation);
    let is_unknown = input.job.deadline.gives_none(input.deadline);
    if let Some(reported) = reported.filter(|_| input.ledger.ending.is_none() && !is_unknown) {
        let (reason, detail) = reported.words();
        list.say(api::DEADLINE_FEASIBLE, reason, &detail);
    }
}

/// The stop of new clones, for a job that may have clones. A job that has ended keeps the last one.
fn clone_condition(list: &mut Conditions, input: Input<'_>) {
    if input.ledger.ending.is_some() {
        return;
    }
    let rules = &input.job.rules;
    let may_have_clones =
        rules.speculation != SpeculationMode::Disabled && rules.idempotency != Idempotency::None;
    match input.clone_stop.filter(|_| may_have_clones) {
        Some(CloneStop::Cluster(namespace)) => {
            list.say(api::CLONES_STOPPED, reason::CLUSTER_ANNOTATION, namespace);
        }
        Some(CloneStop::Namespace(namespace)) => {
            list.say(api::CLONES_STOPPED, reason::NAMESPACE_ANNOTATION, namespace);
        }
        None => list.clear(api::CLONES_STOPPED, reason::CLONES_ALLOWED, ""),
    }
}

/// The obstacles to creating, placing and starting attempts.
fn obstacle_conditions(list: &mut Conditions, input: Input<'_>) {
    let is_open = input.ledger.ending.is_none();
    let is_held = input.ledger.ending.is_some() || input.job.rules.suspend;
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
        PendingTasks::Reported {
            reason,
            detail,
            since,
        } if is_open => {
            let reason = match *reason == reason::BACK_OFF && input.uncommitted {
                true => reason::COMMIT_NOT_REQUESTED,
                false => reason,
            };
            list.say_since(api::TASKS_PENDING, reason, detail, *since);
        }
        PendingTasks::Yet if is_open => {}
        _ => list.clear(api::TASKS_PENDING, reason::NO_TASKS_PENDING, ""),
    }
}

fn attempt_conditions(list: &mut Conditions, input: Input<'_>) {
    match input.awaited.filter(|_| !input.ledger.finished) {
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
}

fn checkpoint_and_progress_conditions(list: &mut Conditions, input: Input<'_>) {
    let is_open = input.ledger.ending.is_none();
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
}

/// Whether the status still reports unplaceable attempts although they can be placed. (A running
/// attempt shows that attempts can be created and start.)
fn is_placeable_again(input: Input<'_>) -> bool {
    let of_placement = [reason::NO_MATCHING_NODE, reason::UNSCHEDULABLE];
    let mut reported = input.old.conditions.iter();
    let is_reported = reported.any(|one| {
        one.type_ == api::ATTEMPTS_BLOCKED && of_placement.contains(&one.reason.as_str())
    });
    input.placeable && is_reported
}

fn end_conditions(list: &mut Conditions, input: Input<'_>) {
    let Some(conclusion) = input.ledger.ending else {
        // The conditions of an invalid specification that was corrected since.
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
    if input.ledger.finished {
        list.say(last, reason, &detail);
    }
    let is_of_failures = matches!(
        conclusion,
        Conclusion::BackoffLimit | Conclusion::FailedIndexes | Conclusion::MaxFailedIndexes
    );
    if input.uncommitted && is_of_failures {
        list.add([interim, last], UNCOMMITTED);
    }
}

/// The reason of a job's fate, and its details.
fn fate(conclusion: Conclusion, input: Input<'_>) -> (&'static str, String) {
    let total = input.job.rules.completions;
    let done = input.ledger.done_tasks(total).len();
    let asked = total - input.job.skipped.as_ref().map_or(0, IndexSet::len);
    let share = || format!("{done} of {asked}");
    let failed = || messages::some_of(&input.ledger.failed_tasks(total));
    match conclusion {
        Conclusion::Complete => (reason::COMPLETIONS_REACHED, asked.to_string()),
        Conclusion::SuccessPolicy => (reason::SUCCESS_POLICY, share()),
        Conclusion::TimeLimit => (reason::DEADLINE_EXCEEDED, share()),
        Conclusion::MaxFailedIndexes => (reason::MAX_FAILED_INDEXES, failed()),
        Conclusion::BackoffLimit => {
            let failures = || format!("{} attempts failed", input.ledger.counts.failed);
            let restarts = input.ledger.ending_note.clone();
            (reason::BACKOFF_LIMIT, restarts.unwrap_or_else(failures))
        }
        Conclusion::PodFailurePolicy => {
            let unknown = "an attempt failed, and a rule of spec.podFailurePolicy fails the job";
            let note = input.ledger.ending_note.clone();
            let note = note.unwrap_or_else(|| unknown.to_owned());
            (reason::POD_FAILURE_POLICY, note)
        }
        Conclusion::DeadlineExceeded => (reason::DEADLINE_MISSED, share()),
        Conclusion::DeadlineInPast => (reason::DEADLINE_IN_PAST, String::new()),
        Conclusion::FailedIndexes => (reason::FAILED_INDEXES, failed()),
    }
}

/// The cause of the risk when the deadline was missed. It stays, although the risk of a job that continues changes.
fn risk_of_miss(conditions: &[Condition]) -> Option<&str> {
    let mut missed = conditions.iter();
    match missed.find(|one| one.type_ == api::DEADLINE_MISSED && one.status == "True") {
        Some(missed) => Some(missed.message.split_once(LAST_RISK)?.1),
        None => risk::last_cause(conditions),
    }
}

fn deadline_conditions(list: &mut Conditions, input: Input<'_>) {
    let Some(deadline) = input.deadline else {
        return;
    };
    if input.verdict() == Some(DeadlineVerdict::Missed) {
        let failed_before = input.ledger.ended.unwrap_or(input.now) < deadline;
        let reason = match failed_before {
            true => reason::FAILED_BEFORE_DEADLINE,
            false => reason::DEADLINE_PASSED,
        };
        let mut detail = clock::rfc3339(deadline);
        let cause = risk_of_miss(&list.list).filter(|_| !failed_before);
        if let Some(cause) = cause {
            detail = format!("{detail}{LAST_RISK}{cause}");
        }
        list.say(api::DEADLINE_MISSED, reason, &detail);
    } else if input.ledger.ending.is_some() {
        list.clear(api::DEADLINE_MISSED, reason::DEADLINE_MET, "");
    } else if input.now < deadline {
        list.clear(api::DEADLINE_MISSED, reason::DEADLINE_MOVED, "");
    }
}

#[cfg(test)]
mod tests;
