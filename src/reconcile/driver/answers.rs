//! The apiserver's answers to the creations of a pass: their effect on later creations, and the
//! attempts that were never created.

use std::collections::BTreeMap;
use std::sync::Arc;

use shed_core::ids::{AttemptNumber, TaskIndex};
use shed_core::time::Instant;

use crate::api::{DeadlineJob, Ledger};
use crate::clock;
use crate::cluster::pod::{AttemptId, JobPods};
use crate::context::pod_creation::Answers;
use crate::job::pod_adoption::Claims;
use crate::job::view::JobView;
use crate::reconcile::context::ReconcileContext;
use crate::reconcile::driver::Pass;
use crate::reconcile::pod_writer::Created;
use crate::reconcile::record::record;
use crate::reconcile::step::Step;
use crate::reconcile::{Error, live_read};

/// When a failed creation is tried again without a success before, by the process's own clock.
pub fn creations_wait(context: &ReconcileContext, job: &Arc<str>) -> Option<Instant> {
    let ticks = context.clock.ticks();
    let until = context
        .job_memories
        .with(job, |memory| memory.planned.creations.not_before());
    until.filter(|until| *until > ticks)
}

/// The requested attempts, sorted by the answers.
#[derive(Default)]
struct Sorted {
    summary: Answers,
    refused: Vec<AttemptId>,
    /// Attempts after a refusal or failure.
    not_tried: Vec<AttemptId>,
    /// The last failure that is no refusal.
    failure: Option<kube::Error>,
}

/// Takes note of the answers, and returns whether some creations were not tried only for lack of
/// time. Refused attempts never existed, and neither did those after them that shed did not
/// request. A passing failure takes nothing back.
pub(super) async fn take(
    context: &ReconcileContext,
    pass: &Pass,
    owner: &Arc<DeadlineJob>,
    step: &Step,
    answers: Vec<Created>,
) -> Result<bool, Error> {
    let mut sorted = sort(context, pass, step, answers);
    for reason in sorted.summary.reasons() {
        let attempts = &context.metrics.attempts;
        attempts.pods_refused.with([reason]).inc();
    }
    let is_refused = !sorted.refused.is_empty();
    let mut ledger = step.ledger.clone();
    if is_refused {
        let (refused, not_tried) = (&mut sorted.refused, &mut sorted.not_tried);
        never_were(context, pass, [refused, not_tried]).await?;
        for &(task, number) in &sorted.refused {
            ledger.refuse(TaskIndex(task), AttemptNumber(number));
        }
        for &(task, number) in &sorted.not_tried {
            ledger.withdraw(TaskIndex(task), AttemptNumber(number));
        }
    }
    let existing = existing(&ledger, &pass.view.pods);
    let ticks = context.clock.ticks();
    let is_failing = context.job_memories.with(&pass.view.job.uid, |memory| {
        memory
            .planned
            .creations
            .take(sorted.summary, existing, ticks);
        memory.planned.creations.is_failing()
    });
    if is_refused || (is_failing && sorted.failure.is_some()) {
        record_again(context, pass, owner, (ledger, step.deadline)).await?;
    }
    let is_cut_short = !is_refused && !sorted.not_tried.is_empty();
    sorted
        .failure
        .map_or(Ok(is_cut_short), |error| Err(Error::Create(error)))
}

fn sort(context: &ReconcileContext, pass: &Pass, step: &Step, answers: Vec<Created>) -> Sorted {
    let ticks = context.clock.ticks();
    let mut sorted = Sorted::default();
    context.job_memories.with(&pass.view.job.uid, |memory| {
        for (&id, answer) in step.creates.iter().zip(answers) {
            let entry = step.ledger.attempt(id.0, id.1);
            let kind = entry.map(|attempt| attempt.kind);
            if matches!(answer, Created::Ours | Created::Failed(_)) {
                memory.planned.traces.entry(id).or_default().asked = Some(ticks);
            }
            match answer {
                Created::Ours => {
                    memory.planned.traces.entry(id).or_default().created = Some(ticks);
                    sorted.summary.create(kind);
                }
                Created::Refused(blocked) => {
                    sorted.summary.refuse(kind, blocked);
                    sorted.refused.push(id);
                }
                Created::NotTried => sorted.not_tried.push(id),
                Created::Failed(error) => {
                    sorted.summary.failed = Some(error.to_string());
                    sorted.failure = Some(error);
                }
            }
        }
    });
    sorted
}

/// Removes those of these attempts that exist anyway. An earlier creation, by this process or by
/// one before it, may have succeeded without an answer. A pod that so takes the last of a quota is
/// refused at the next request.
async fn never_were(
    context: &ReconcileContext,
    pass: &Pass,
    taken_back: [&mut Vec<AttemptId>; 2],
) -> Result<(), Error> {
    let recorded_before = |id: &AttemptId| pass.view.ledger.attempt(id.0, id.1).is_some();
    if !taken_back.iter().any(|ids| ids.iter().any(recorded_before)) {
        return Ok(());
    }
    let live = live_read::pods(context, &pass.view.job, &pass.view.pods).await?;
    let created = Some(context.clock.ticks());
    context.job_memories.with(&pass.view.job.uid, |memory| {
        for ids in taken_back {
            for id in ids.extract_if(.., |id| live.contains_key(id)) {
                memory.planned.traces.entry(id).or_default().created = created;
            }
        }
    });
    Ok(())
}

/// How many pods of the job exist that are not over, as a quota counts them.
fn existing(ledger: &Ledger, pods: &JobPods) -> u32 {
    let attempts = ledger.open_attempts().map(|(id, _)| id);
    let is_there = |id: &AttemptId| pods.get(id).is_none_or(|pod| !pod.terminal);
    let leaving = pods.values().filter(|pod| pod.is_leaving).count();
    u32::try_from(attempts.filter(is_there).count() + leaving).unwrap_or(u32::MAX)
}

/// Writes the effect of the answers to creations: attempts that the apiserver refused are removed,
/// and the conditions report the refusal.
async fn record_again(
    context: &ReconcileContext,
    pass: &Pass,
    owner: &Arc<DeadlineJob>,
    (mut ledger, deadline): (Ledger, Option<Instant>),
) -> Result<(), Error> {
    // The step was recorded under the owner's revision, so this write builds on that.
    let recorded = owner.ledger();
    ledger.revision = recorded.map_or(ledger.revision, |ledger| ledger.revision);
    let refused = Step {
        deadline,
        ledger,
        ..Step::default()
    };
    let pass = Pass {
        owner: Arc::clone(owner),
        view: JobView {
            ledger: refused.ledger.clone(),
            claims: Claims::default(),
            now: context.clock.now(),
            ticks: context.clock.ticks(),
            ..pass.view.clone()
        },
        put_right: Vec::new(),
        asking: BTreeMap::new(),
        placements: BTreeMap::new(),
        ..pass.clone()
    };
    // The spacing is fixed since the last write, so one wait is enough.
    for _ in 0..2 {
        match record(context, &pass, &refused).await {
            // Only this process knows the apiserver's answer.
            Err(Error::Deferred(until)) => {
                let wait = until.since(context.clock.ticks());
                tokio::time::sleep(clock::duration(wait)).await;
            }
            recorded => return recorded.map(|_| ()),
        }
    }
    // The attempts stay recorded, so a later pass requests them again with the same answer. Until then the pass would
    // keep its place from other jobs.
    Ok(())
}
