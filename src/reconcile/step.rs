//! The per-job step: it derives the next ledger from the facts, and the writes that may follow once
//! the ledger is durable. Pure: tests run it without a client.
//!
//! The driver keeps the order: the ledger first, then releases, deletes, creates.

use std::collections::BTreeMap;

use shed_core::ids::{AttemptNumber, TaskIndex};
use shed_core::plan::{Kill, Move, Outcome, Settled};
use shed_core::settle::settle;
use shed_core::snapshot::{
    AttemptKind, AttemptState, Conclusion, FailureRule, Idempotency, JobSnapshot, KillKind, OnMiss,
    Resume, SlotTime,
};
use shed_core::time::{Instant, Span};

use crate::api::{Ledger, NodeEntry};
use crate::bounds::Bounds;
use crate::cluster::pod::{AttemptId, PodFacts, PodRef};
use crate::job::facts::{self, CREATION_SEEN_WITHIN};
use crate::job::notice::Notice;
use crate::job::view::JobView;
use crate::job::{restarts, termination_proof};
use crate::reconcile::{job_status, range};
use crate::validate::Learned;

/// Input of one step.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    /// The job.
    pub view: &'a JobView,
    /// The facts about it.
    pub facts: &'a JobSnapshot,
    /// Its slice of the plan.
    pub slice: &'a [Move],
    /// Attempts that request a commit grant, and since when.
    pub asking: &'a BTreeMap<AttemptId, Instant>,
    /// Nodes of attempts that the ledger does not contain yet.
    pub placements: &'a BTreeMap<AttemptId, NodeEntry>,
    /// How much its object may hold.
    pub bounds: Option<Bounds>,
    /// What is known for a deadline that is computed once.
    pub learned: Learned,
}

/// Result of one step.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Step {
    /// The ledger that must be durable before anything below is done.
    pub ledger: Ledger,
    /// The deadline from then on; absent while its clock has not started.
    pub deadline: Option<Instant>,
    /// Pods whose end is counted and whose finalizer can be removed.
    pub releases: Vec<PodRef>,
    /// Pods to delete.
    pub deletes: Vec<PodRef>,
    /// Attempts whose pods must exist.
    pub creates: Vec<AttemptId>,
    /// Notices for events, metrics and the log.
    pub notices: Vec<Notice>,
    /// Number of tasks whose checkpoint does not fit and is not durable. Absent if the step did not
    /// check that.
    pub undurable: Option<usize>,
    /// Whether launches and creations wait for the job's turn to launch, and are not in this step.
    pub awaits_turn: bool,
}

/// Settles the facts, carries out the slice, and derives the writes from the resulting ledger.
pub fn step(input: Input<'_>) -> Step {
    let mut step = Step {
        ledger: input.view.ledger.clone(),
        ..Step::default()
    };
    if step.ledger.first_pass.is_none() && !input.view.job.rules.suspend {
        step.ledger.first_pass = Some(input.view.now);
    }
    step.ledger.fixed_deadline =
        input
            .view
            .job
            .fixed_deadline(&step.ledger, input.learned, input.view.now);
    step.deadline = input.view.job.deadline_by(&step.ledger);
    if input.view.job.time_limit.is_some() {
        step.ledger
            .keep_time(!input.view.job.rules.suspend, input.view.now);
    }
    for action in settle(input.view.now, input.facts) {
        apply(&mut step, input, &action);
    }
    for action in input.slice {
        if still_holds(&step.ledger, input, action) {
            carry_out(&mut step, input, action);
        }
    }
    grant(&mut step, input);
    place(&mut step.ledger, input);
    if step.ledger != input.view.ledger && input.view.job.rules.resume != Resume::Range {
        step.undurable = Some(keep_checkpoints(
            &mut step.ledger,
            input.facts,
            input.bounds,
        ));
    }
    step.ledger.fold();
    derive_writes(&mut step, input);
    step
}

/// Whether an action that was planned on an older view still makes sense on this one.
fn still_holds(ledger: &Ledger, input: Input<'_>, action: &Move) -> bool {
    if ledger.ending.is_some() || input.view.job.rules.suspend {
        return false;
    }
    let lives = |task: TaskIndex| live_attempts(ledger, input.facts, task);
    match action {
        Move::Launch(_) if input.view.job.launches_nothing() => false,
        Move::Launch(launch) => {
            let task = launch.task;
            let none_uncounted = ledger
                .tasks
                .get(&task.0)
                .is_none_or(|entry| entry.attempts.is_empty());
            !input.facts.has_ended(task)
                && !ledger.done.contains(task)
                && !ledger.failed.contains(task)
                && !ledger.is_dropped(task.0)
                && match launch.kind {
                    AttemptKind::Clone => {
                        !input.facts.obstacles.clones_stopped && lives(task).next().is_some()
                    }
                    AttemptKind::Original | AttemptKind::Retry
                        if input.view.job.rules.waits_until_gone() =>
                    {
                        none_uncounted
                    }
                    AttemptKind::Original | AttemptKind::Retry => lives(task).next().is_none(),
                }
        }
        Move::Kill(kill) => {
            let is_only = lives(kill.task).count() == 1;
            let entry = ledger.tasks.get(&kill.task.0);
            let grant = entry.and_then(|entry| entry.grant.as_ref());
            // It may be publishing by now.
            let is_granted = grant.is_some_and(|grant| grant.attempt == kill.attempt.0);
            !is_granted
                && lives(kill.task).any(|number| number == kill.attempt.0)
                && is_only == kill.kind.gives_up_the_only()
        }
    }
}

/// Grants commits: to the attempt with the first request, in tasks without a grant. An attempt that
/// cannot win any more gets no grant.
fn grant(step: &mut Step, input: Input<'_>) {
    let rules = &input.view.job.rules;
    let is_late = rules.on_miss == OnMiss::Fail
        && input
            .facts
            .deadline
            .is_some_and(|deadline| input.view.now > deadline);
    if rules.idempotency != Idempotency::Fenced
        || step.ledger.ending.is_some()
        || rules.suspend
        || is_late
    {
        return;
    }
    let mut asking: Vec<_> = input.asking.iter().map(|(&id, &at)| (at, id)).collect();
    asking.sort_unstable();
    for (_, id) in asking {
        let (task, number) = id;
        if step.ledger.done.contains(TaskIndex(task)) || !runs(&step.ledger, input.facts, id) {
            continue;
        }
        if let Some(token) = step.ledger.grant(task, number, input.view.now) {
            step.notices.push(Notice::Granted { id, token });
        }
    }
}

fn runs(ledger: &Ledger, facts: &JobSnapshot, id: AttemptId) -> bool {
    let entry = ledger.attempt(id.0, id.1);
    let attempt = facts::attempt_of(facts, id);
    entry.is_some_and(|entry| entry.kill.is_none())
        && attempt.is_some_and(|attempt| attempt.state == AttemptState::Running)
}

/// Records the nodes of attempts whose end must be proven later.
fn place(ledger: &mut Ledger, input: Input<'_>) {
    for (&(task, number), node) in input.placements {
        let entry = ledger.tasks.get(&task);
        if entry.is_some_and(|entry| {
            termination_proof::needs_proof(&input.view.job, ledger, entry, number)
        }) {
            ledger.place(task, number, node);
        }
    }
}

/// Attempts of the task that may still win, by the current ledger.
fn live_attempts<'a>(
    ledger: &'a Ledger,
    facts: &'a JobSnapshot,
    task: TaskIndex,
) -> impl Iterator<Item = u32> + 'a {
    let ended = move |number: u32| {
        let attempt = facts::attempt_of(facts, (task.0, number));
        attempt.is_some_and(|attempt| !attempt.holds_capacity())
    };
    let entry = ledger.tasks.get(&task.0);
    let attempts = entry.into_iter().flat_map(|entry| &entry.attempts);
    attempts
        .filter(move |attempt| attempt.kill.is_none() && !ended(attempt.number))
        .map(|attempt| attempt.number)
}

fn carry_out(step: &mut Step, input: Input<'_>, planned: &Move) {
    match planned {
        Move::Launch(launch) => {
            let Some(placed) = range::place(&mut step.ledger, input, launch) else {
                return;
            };
            let number = step.ledger.launch(&placed, input.view.now);
            step.notices.push(Notice::Launched {
                id: (placed.task.0, number.0),
                launch: launch.clone(),
            });
        }
        Move::Kill(stop) => kill(step, input, stop),
    }
}

fn kill(step: &mut Step, input: Input<'_>, kill: &Kill) {
    let (task, attempt, kind) = (kill.task, kill.attempt, kill.kind);
    if step.ledger.kill(task, attempt, kind, input.view.now) {
        if kind == KillKind::Replace && is_in_vain(input.facts, task, attempt) {
            step.ledger.count_vain_clone(task);
        }
        step.notices.push(Notice::Killed {
            id: (task.0, attempt.0),
            kind,
        });
    }
}

fn apply(step: &mut Step, input: Input<'_>, settled: &Settled) {
    match settled {
        Settled::Kill(stop) => kill(step, input, stop),
        Settled::Win {
            task,
            attempt,
            finished,
        } => win(step, input, *task, *attempt, *finished),
        Settled::Count {
            task,
            attempt,
            outcome,
        } => count(step, input, (*task, *attempt), *outcome),
        Settled::FailTask { task } => {
            if step.ledger.failed.insert(*task) {
                step.notices.push(Notice::TaskFailed { task: task.0 });
            }
        }
        Settled::End(conclusion) => end(step, input, *conclusion),
        Settled::Finish(conclusion) => finish(step, input, *conclusion),
    }
}

fn count(
    step: &mut Step,
    input: Input<'_>,
    (task, attempt): (TaskIndex, AttemptNumber),
    outcome: Outcome,
) {
    let (retries, now) = (input.view.job.retries, input.view.now);
    let slot_time = slot_time_after(step, input, task, attempt);
    if let Some(kind) = step.ledger.count(task, attempt, outcome, retries, now) {
        step.ledger.slot_time = slot_time;
        step.notices.push(Notice::Counted {
            id: (task.0, attempt.0),
            kind,
            outcome,
            uncommitted: is_uncommitted(input, (task, attempt), outcome),
        });
    }
}

/// Whether the failure of an attempt is that it ended with exit code 0 without a commit grant.
fn is_uncommitted(
    input: Input<'_>,
    (task, number): (TaskIndex, AttemptNumber),
    outcome: Outcome,
) -> bool {
    let attempt = facts::attempt_of(input.facts, (task.0, number.0));
    let has_succeeded =
        attempt.is_some_and(|one| matches!(one.state, AttemptState::Succeeded { .. }));
    has_succeeded && matches!(outcome, Outcome::Failed | Outcome::CloneFailed)
}

/// The slot time of ended attempts with this one. Only a budget of clones requires it.
fn slot_time_after(
    step: &Step,
    input: Input<'_>,
    task: TaskIndex,
    number: AttemptNumber,
) -> SlotTime {
    let mut time = step.ledger.slot_time;
    let has_budget = input.view.clone_budget.is_some();
    if let Some(attempt) = facts::attempt_of(input.facts, (task.0, number.0)).filter(|_| has_budget)
    {
        let until = attempt.held_until(input.view.now);
        time.add(attempt.kind, attempt.launched, until);
    }
    time
}

fn end(step: &mut Step, input: Input<'_>, conclusion: Conclusion) {
    step.ledger.ending = Some(conclusion);
    step.ledger.ending_note = match conclusion {
        Conclusion::PodFailurePolicy => failing_pod(input),
        Conclusion::BackoffLimit => restarts_at_limit(step, input),
        _ => None,
    };
    step.notices.push(Notice::Ending(conclusion));
}

fn finish(step: &mut Step, input: Input<'_>, conclusion: Conclusion) {
    if step.ledger.finished || awaits_pods(step, input) {
        return;
    }
    step.ledger.ending = Some(conclusion);
    step.ledger.finished = true;
    step.ledger.ended = Some(input.view.now);
    step.notices.push(Notice::Finished(conclusion));
}

/// A batch/v1 Job ends when its last pod has ended, including a pod that counts as failed already.
fn awaits_pods(step: &Step, input: Input<'_>) -> bool {
    input.view.job.adopted.is_some() && job_status::terminating(&step.ledger, &input.view.pods) > 0
}

/// Whether it is a clone that can't be placed: one more would not be either.
fn is_in_vain(facts: &JobSnapshot, task: TaskIndex, number: AttemptNumber) -> bool {
    let clone = facts::attempt_of(facts, (task.0, number.0));
    clone.is_some_and(|clone| clone.kind == AttemptKind::Clone && clone.unplaceable)
}

/// The restarts in place that reached `backoffLimit`, unless the failures alone exceed it.
fn restarts_at_limit(step: &Step, input: Input<'_>) -> Option<String> {
    let JobView {
        job, ledger, pods, ..
    } = input.view;
    let limit = job.rules.ending.backoff_limit.map(u64::from);
    let failures = u64::try_from(step.ledger.counts.failed).ok();
    let restarts = restarts::at_limit(job, ledger, pods).filter(|_| failures <= limit)?;
    Some(format!(
        "containers were restarted {restarts} times in place"
    ))
}

/// The pod that failed the job, its failure, and the matched rule. Recorded now, because the pod
/// may soon be gone.
fn failing_pod(input: Input<'_>) -> Option<String> {
    let fails_job = |id: AttemptId| {
        let attempt = facts::attempt_of(input.facts, id);
        attempt.is_some_and(|attempt| attempt.failure_rule == Some(FailureRule::FailJob))
    };
    let (_, pod) = input.view.pods.iter().find(|(id, _)| fails_job(**id))?;
    let matched = facts::failure_match(&input.view.job.failure_rules, pod)?;
    Some(format!(
        "pod {}: {}, for which rules[{}] of spec.podFailurePolicy fails the job",
        pod.name, matched.what, matched.position
    ))
}

fn win(
    step: &mut Step,
    input: Input<'_>,
    task: TaskIndex,
    number: AttemptNumber,
    finished: Instant,
) {
    let Some(attempt) = facts::attempt_of(input.facts, (task.0, number.0)) else {
        return;
    };
    // The time of a whole task: a resumed attempt did only the rest of it.
    let run = attempt.started.map(|started| {
        let share = (1.0 - attempt.start_progress).max(0.01);
        Span::from_seconds_f64(finished.since(started).seconds().max(0.0) / share)
    });
    let slot_time = slot_time_after(step, input, task, number);
    if step.ledger.win(task, number, finished, run) {
        step.ledger.slot_time = slot_time;
        step.notices.push(Notice::Won {
            id: (task.0, number.0),
            kind: attempt.kind,
            resumed_from: attempt.start_progress,
        });
    }
}

/// Checkpoints are written with writes that happen anyway. Returns the number of tasks whose
/// checkpoint does not fit.
fn keep_checkpoints(ledger: &mut Ledger, facts: &JobSnapshot, bounds: Option<Bounds>) -> usize {
    for task in &facts.tasks {
        if let Some(point) = task.best_resume_point() {
            ledger.keep_checkpoint(task.index, point);
        }
    }
    bounds.map_or(0, |bounds| bounds.keep_checkpoints(ledger))
}

/// Level-triggered: derives the writes from the difference between the ledger and the pods.
fn derive_writes(step: &mut Step, input: Input<'_>) {
    for (&id, pod) in &input.view.pods {
        let killed = step.ledger.attempt(id.0, id.1).map(|entry| entry.kill);
        match killed {
            Some(Some(_)) => delete(step, pod),
            Some(None) => {}
            None => clear(step, id, pod),
        }
    }
    for entry in step.ledger.tasks.values() {
        for attempt in entry
            .attempts
            .iter()
            .filter(|attempt| attempt.kill.is_none())
        {
            let id = (entry.index, attempt.number);
            // An attempt with a node was seen, perhaps by an earlier process.
            if attempt.node.is_none() && must_create(id, input) {
                step.creates.push(id);
            }
        }
    }
}

fn must_create(id: AttemptId, input: Input<'_>) -> bool {
    if input.view.job.launches_nothing() {
        return false;
    }
    let trace = input.view.traces.get(&id).copied().unwrap_or_default();
    let acknowledged = trace
        .created
        .is_some_and(|created| input.view.ticks.since(created) < CREATION_SEEN_WITHIN);
    !input.view.pods.contains_key(&id) && !trace.seen && !acknowledged
}

/// A pod whose attempt is not in the ledger: counted already, or never recorded.
fn clear(step: &mut Step, id: AttemptId, pod: &PodFacts) {
    let writes = |step: &Step| step.deletes.len() + step.releases.len();
    let before = writes(step);
    if !pod.terminal {
        delete(step, pod);
    }
    if pod.attempt.as_ref().is_some_and(|attempt| attempt.tracked) {
        step.releases.push(pod.reference());
    }
    // The notice comes with the write, not while the pod ends.
    if writes(step) > before && !step.ledger.knows(id.0, id.1) {
        step.notices.push(Notice::Unrecorded {
            pod: pod.name.to_string(),
        });
    }
}

fn delete(step: &mut Step, pod: &PodFacts) {
    let deleting = pod.attempt.as_ref().is_some_and(|attempt| attempt.deleting);
    if !deleting {
        step.deletes.push(pod.reference());
    }
}

/// The attempts that cannot start now, for the condition about them.
pub fn stuck(facts: &JobSnapshot) -> impl Iterator<Item = AttemptId> + '_ {
    facts.tasks.iter().flat_map(|task| {
        task.live()
            .filter(|attempt| matches!(attempt.state, AttemptState::Stuck { .. }))
            .map(|attempt| (task.index.0, attempt.number.0))
    })
}

#[cfg(test)]
mod tests;
