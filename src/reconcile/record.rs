//! The write that makes a step durable, and the announcements after it: events of conditions that
//! turned true, deadlines met and missed.

use std::borrow::Cow;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta};
use kube::Resource;
use kube::core::PartialObjectMetaExt;
use kube::runtime::events::EventType;
use shed_core::time::{Instant, Span};

mod write;

use write::write_status;
pub(super) use write::{is_newest, note_answer};

use crate::api::{
    self, DeadlineJob, DeadlineJobStatus, JobRecord, LEDGER_FORM, Ledger, ObservedClones, Pocd,
    reason,
};
use crate::clock;
use crate::cluster::Refusal;
use crate::cluster::pod::{JobPods, Stage};
use crate::conditions;
use crate::context::backoff::Blocked;
use crate::context::feasibility::ReportedFeasibility;
use crate::context::pending_tasks::{self, PendingTasks};
use crate::context::unanswered_writes::UnansweredWrite;
use crate::context::workflow_estimate::WorkflowEstimate;
use crate::context::{JobMemory, spacing, validation};
use crate::job::gates;
use crate::job::record as job_record;
use crate::job::uncommitted;
use crate::job::unstarted::Unstarted;
use crate::job::verdict::DeadlineVerdict;
use crate::metrics::JobAddress;
use crate::observed_clones;
use crate::reconcile::context::ReconcileContext;
use crate::reconcile::deadline::{self, Case};
use crate::reconcile::driver::Pass;
use crate::reconcile::kubelet_obstacles::{blocked_by_kubelet, crash_loop};
use crate::reconcile::queue::Wake;
use crate::reconcile::step::Step;
use crate::reconcile::{Error, companions, condition_events, events, job_status, status};

/// Reason of the event of a job whose ledger has a newer format.
pub(super) const LEDGER_TOO_NEW: &str = "LedgerTooNew";

pub(super) fn any_runs(pods: &JobPods) -> bool {
    pods.values()
        .filter_map(|pod| pod.attempt.as_ref())
        .any(|attempt| attempt.stage == Stage::Running)
}

pub(super) fn ready(pods: &JobPods) -> usize {
    let pods = pods.values();
    pods.filter(|pod| job_status::is_ready(pod)).count()
}

fn unstarted(pass: &Pass) -> Option<Blocked> {
    Some(Blocked {
        reason: reason::CONTAINERS_NOT_STARTED,
        message: Unstarted::obstacle(&pass.view)?.words(),
    })
}

/// Makes the ledger durable before shed acts on it. The write carries the resourceVersion that the
/// decision was based on.
pub(super) async fn record(
    context: &ReconcileContext,
    pass: &Pass,
    step: &Step,
) -> Result<Arc<DeadlineJob>, Error> {
    let old = pass.owner.status.clone().unwrap_or_default();
    let (mut status, verdict) = render(context, pass, step, &old);
    if status == old {
        return Ok(Arc::clone(&pass.owner));
    }
    if let Some(until) = wait(context, pass, step, &old, &status) {
        context.metrics.ledger.deferred.inc();
        return Err(Error::Deferred(until));
    }
    status.record = Some(job_record(pass, step, &old, status.pocd));
    if let Some(ledger) = &mut status.ledger {
        ledger.revision += 1;
    }
    let written = match write_status(context, &pass.owner, &status).await {
        Ok(written) => written,
        Err(error) => {
            let write = UnansweredWrite::new(&old, &status, verdict, &step.notices);
            let remember =
                |memory: &mut JobMemory| write.remember(&mut memory.reconcile.unanswered);
            context.job_memories.with(&pass.view.job.uid, remember);
            return Err(error);
        }
    };
    let last_write = write::last_write(context, &status);
    context.job_memories.with(&pass.view.job.uid, |memory| {
        memory.reconcile.too_large_reported = false;
        memory.reconcile.last_write = Some(last_write);
        memory.planned.newest(&written);
        memory.reconcile.unanswered.clear();
    });
    context.stores.jobs.count_written(&written);
    announce(context, &written, &old, verdict);
    context.stores.changed.notify_one();
    Ok(written)
}

/// The status after a step, and the verdict on the deadline.
fn render(
    context: &ReconcileContext,
    pass: &Pass,
    step: &Step,
    old: &DeadlineJobStatus,
) -> (DeadlineJobStatus, Option<DeadlineVerdict>) {
    let clock = &context.clock;
    let (memory, waiting) = remembered(context, pass, step);
    let stuck = crate::reconcile::step::stuck(&pass.facts)
        .find_map(|id| blocked_by_kubelet(&pass.view.pods, id));
    let blocked = stuck.or(memory.blocked);
    let blocked = blocked.or_else(|| crash_loop(&pass.view).or_else(|| unstarted(pass)));
    let at_risk = pass
        .report
        .as_ref()
        .and_then(|report| report.risk.as_ref()?.task);
    let waiting_longest = Unstarted::longest(&pass.view, at_risk.map(|task| task.0));
    let reported_ledger = reported_ledger(pass, old, &step.ledger);
    let namespaces = context.stores.namespaces();
    let input = status::Input {
        job: &pass.view.job,
        ledger: &reported_ledger,
        deadline: step.deadline,
        history: pass.history,
        old,
        report: pass.report.as_ref(),
        calibrated: memory.calibrated,
        workflow: memory.workflow.as_ref(),
        observed: memory.observed,
        blocked: blocked.as_ref(),
        placeable: memory.placeable,
        is_queued: pass.view.is_queued,
        gate: gates::of_all(&pass.view, at_risk.map(|task| task.0)),
        running: any_runs(&pass.view.pods),
        unstarted: waiting_longest.as_ref(),
        uncommitted: uncommitted::any(&pass.view),
        placed: pass.view.pods.values().any(|pod| pod.node.is_some()),
        ready: i32::try_from(ready(&pass.view.pods)).unwrap_or(i32::MAX),
        unreachable: context.progress.unreachable(&pass.view.job.uid),
        awaited: pass.awaited.as_ref(),
        unshared: pass.unshared.as_deref(),
        undurable: step.undurable,
        facts_as_of: pass.facts.facts_as_of,
        held_back: Case::after(&pass.view, step).is_held_back(clock, pass.view.now),
        waiting: &waiting,
        clone_stop: namespaces.clone_stop(&pass.view.job.namespace),
        reported: memory.reported.as_ref(),
        last_write: memory.last_write.map(|at| clock.at(at)),
        now: pass.view.now,
    };
    let (mut status, verdict) = (status::render(input), input.verdict());
    status.ledger = Some(step.ledger.clone());
    (status, verdict)
}

/// What happened to the job so far. It is made only for a write that is due anyway, so a change of it alone is never
/// written.
fn job_record(pass: &Pass, step: &Step, old: &DeadlineJobStatus, pocd: Option<Pocd>) -> JobRecord {
    let (report, now) = (pass.report.as_ref(), pass.view.now);
    let waiting = pending_tasks::obstacle(pass.pending(&step.ledger), now);
    let input = job_record::Input {
        view: &pass.view,
        facts: &pass.facts,
        ledger: &step.ledger,
        notices: &step.notices,
        report,
        pocd,
        waiting,
        old: old.record.as_ref(),
    };
    job_record::fitted(job_record::continued(input, job_record::ATTEMPTS_MAX))
}

/// The status fields that come from the job's memory, and the obstacle of its waiting tasks.
fn remembered(context: &ReconcileContext, pass: &Pass, step: &Step) -> (Remembered, PendingTasks) {
    context.job_memories.with(&pass.view.job.uid, |memory| {
        let waiting = PendingTasks::of(
            pass.pending(&step.ledger),
            &mut memory.reconcile.waiting,
            &context.clock,
            pass.view.ticks,
        );
        (Remembered::of(memory), waiting)
    })
}

/// Status fields that come from memory.
struct Remembered {
    blocked: Option<Blocked>,
    placeable: bool,
    last_write: Option<Instant>,
    reported: Option<ReportedFeasibility>,
    calibrated: Option<f64>,
    workflow: Option<WorkflowEstimate>,
    observed: Option<ObservedClones>,
}

impl Remembered {
    fn of(memory: &JobMemory) -> Self {
        Self {
            blocked: memory.blocked(),
            placeable: memory.placement.is_clear(),
            last_write: memory.reconcile.last_write.map(|write| write.at),
            reported: memory.planned.reported.clone(),
            calibrated: memory.calibrated,
            workflow: memory.workflow.clone(),
            observed: memory
                .observed
                .as_ref()
                .map(observed_clones::ObservedClones::status),
        }
    }
}

/// Until when a write waits for the job's last one, by the process's own clock, if it waits. Urgent writes wait only
/// briefly, and so do writes with a condition that turned.
fn wait(
    context: &ReconcileContext,
    pass: &Pass,
    step: &Step,
    old: &DeadlineJobStatus,
    new: &DeadlineJobStatus,
) -> Option<Instant> {
    let is_urgent = spacing::is_urgent(&step.notices) || have_turned(old, new);
    let job_memories = &context.job_memories;
    let last = job_memories.with(&pass.view.job.uid, |memory| memory.reconcile.last_write);
    let until = last.map(|last| last.next(is_urgent));
    until.filter(|until| *until > context.clock.ticks())
}

/// Whether a condition has turned, or has another reason. That the deadline is feasible calls for nothing, so
/// this alone is not written at once.
fn have_turned(old: &DeadlineJobStatus, new: &DeadlineJobStatus) -> bool {
    let words = |condition: &Condition| {
        let Condition {
            type_,
            status,
            reason,
            ..
        } = condition;
        (type_.clone(), status.clone(), reason.clone())
    };
    let is_news = |condition: &&Condition| {
        condition.type_ != api::DEADLINE_FEASIBLE || condition.status == "False"
    };
    let words = |conditions: &[Condition]| -> Vec<_> {
        conditions.iter().filter(is_news).map(words).collect()
    };
    words(&old.conditions) != words(&new.conditions)
}

/// The ledger as users see it, without a fate that may turn. (An earlier operator may have reported
/// it already.)
fn reported_ledger<'a>(
    pass: &Pass,
    old: &DeadlineJobStatus,
    ledger: &'a Ledger,
) -> Cow<'a, Ledger> {
    let is_reported = old.is_true(api::FAILURE_TARGET);
    if is_reported || !deadline::may_turn(ledger, &pass.facts, &pass.view.pods, pass.view.now) {
        return Cow::Borrowed(ledger);
    }
    Cow::Owned(Ledger {
        ending: None,
        ..ledger.clone()
    })
}

/// Announces the conditions that turned since `old`, and learns from a new fate.
pub(super) fn announce(
    context: &ReconcileContext,
    written: &DeadlineJob,
    old: &DeadlineJobStatus,
    verdict: Option<DeadlineVerdict>,
) {
    let Some(new) = &written.status else { return };
    for event in condition_events::between(old, new) {
        events::publish_within_budget(context, written, event);
    }
    let fresh = verdict.filter(|verdict| is_news(*verdict, new, old));
    if let Some(verdict) = fresh {
        announce_verdict(context, written, new, verdict);
    }
    let turned_true = |type_| new.is_true(type_) && !old.is_true(type_);
    if let Some(left) = slack(new).filter(|_| turned_true(api::COMPLETE)) {
        context.metrics.deadlines.completed(left.seconds());
    }
    if turned_true(api::COMPLETE) || turned_true(api::FAILED) {
        context.metrics.forget_job(&JobAddress {
            namespace: written.metadata.namespace.clone().unwrap_or_default(),
            name: written.metadata.name.clone().unwrap_or_default(),
        });
    }
}

/// The time from a job's completion to its deadline; negative if it was late.
fn slack(status: &DeadlineJobStatus) -> Option<Span> {
    let (deadline, completed) = (status.deadline.as_ref()?, status.completion_time.as_ref()?);
    Some(clock::instant(deadline).since(clock::instant(completed)))
}

/// Whether this write is the first that reports the verdict: a miss with its own condition, a met
/// deadline with the job's end. So each is announced and counted once per job.
fn is_news(verdict: DeadlineVerdict, new: &DeadlineJobStatus, old: &DeadlineJobStatus) -> bool {
    let type_ = match verdict {
        DeadlineVerdict::Met => api::COMPLETE,
        DeadlineVerdict::Missed => api::DEADLINE_MISSED,
    };
    new.is_true(type_) && !old.is_true(type_)
}

fn announce_verdict(
    context: &ReconcileContext,
    written: &DeadlineJob,
    new: &DeadlineJobStatus,
    verdict: DeadlineVerdict,
) {
    if verdict == DeadlineVerdict::Missed {
        let (reason, note) = (api::DEADLINE_MISSED, condition_events::missed(new));
        events::publish(context, written, EventType::Warning, reason, note);
    }
    let deadlines = &context.metrics.deadlines;
    let uid: Arc<str> = written.metadata.uid.as_deref().unwrap_or_default().into();
    let met = verdict == DeadlineVerdict::Met;
    let predictions = context.forecasts.learn(&uid, met);
    deadlines.score(&predictions, met);
}

/// A specification that can't be carried out fails the job at once, without a pod. A job that has begun never fails by it.
pub(super) async fn refuse_spec(
    context: &ReconcileContext,
    owner: &Arc<DeadlineJob>,
    message: String,
) -> Result<Wake, Error> {
    if validation::has_begun(owner) {
        return Ok(Wake::await_change());
    }
    if owner.spec.is_companion() {
        // A Job's fate cannot turn again, so a fault that a user may correct does not fail it.
        let Some(job) = context.stores.jobs.batch().and_then(|jobs| jobs.of(owner)) else {
            return Ok(Wake::await_change());
        };
        let reason = reason::INVALID_SPEC;
        let refused = companions::refuse(context, &job, reason, &message).await;
        return refused.map_err(Error::Mirror);
    }
    let old = owner.status.clone().unwrap_or_default();
    let status = conditions::invalid(
        &old,
        owner.metadata.generation,
        &message,
        context.clock.now(),
    );
    if status != old {
        write_status(context, owner, &status).await?;
        events::publish(
            context,
            owner,
            EventType::Warning,
            reason::INVALID_SPEC,
            message,
        );
    }
    Ok(Wake::await_change())
}

/// Refuses a specification that is too large for the job to be read. Returns whether it is done: a job with a ledger, or
/// one that is too large to be written, must be read.
pub(super) async fn refuse_unread(
    context: &ReconcileContext,
    metadata: &ObjectMeta,
    refusal: &Refusal,
) -> Result<bool, Error> {
    let Some(old) = &refusal.status else {
        return Ok(false);
    };
    let (generation, now) = (metadata.generation, context.clock.now());
    let status = conditions::invalid(old, generation, &refusal.message, now);
    // However many such jobs a namespace has, they take its places only.
    let namespace = metadata.namespace.as_deref().unwrap_or_default();
    let _place = context.passes.acquire(&namespace.into()).await;
    if !write::write_unread(context, metadata, refusal.spec_bytes, &status).await? {
        return Ok(false);
    }
    let (reason, note) = (reason::INVALID_SPEC, refusal.message.clone());
    let job = metadata.clone().into_response_partial::<DeadlineJob>();
    let job = job.object_ref(&());
    events::publish_about(context, &job, EventType::Warning, reason, note);
    Ok(true)
}

/// Reports that a job waits because the operator's memory budget does not admit it. A ledger of a newer form stays as
/// it is.
pub(super) async fn report_crowded(
    context: &ReconcileContext,
    metadata: &ObjectMeta,
    spec_bytes: usize,
    old: &DeadlineJobStatus,
) -> Result<(), Error> {
    let status = conditions::crowded(old, metadata.generation, context.clock.now());
    if status == *old || Ledger::from_status(Some(old)).is_err() {
        return Ok(());
    }
    let namespace = metadata.namespace.as_deref().unwrap_or_default();
    let _place = context.passes.acquire(&namespace.into()).await;
    let write = write::write_unread(context, metadata, spec_bytes, &status);
    write.await.map(drop)
}

/// A newer operator has the job's ledger. A write would lose fields that only that operator knows,
/// so shed writes nothing. It also does nothing that this ledger may not allow.
pub(super) fn stand_aside(context: &ReconcileContext, owner: &DeadlineJob, form: u32) -> Wake {
    let uid: Arc<str> = owner.metadata.uid.as_deref().unwrap_or_default().into();
    let said = context.job_memories.with(&uid, |memory| {
        std::mem::replace(&mut memory.reconcile.stands_aside, true)
    });
    if !said {
        let reason = "ledger_too_new";
        let errors = &context.metrics.reconciles.errors;
        errors.with([reason]).inc();
        let note = format!(
            "status.ledger.form is {form}, but version {} of the operator supports forms up to \
             {LEDGER_FORM} and does not run the job; run the operator that wrote it, or a newer one",
            env!("CARGO_PKG_VERSION")
        );
        let (namespace, name) = (&owner.metadata.namespace, &owner.metadata.name);
        tracing::warn!(?namespace, job = ?name, "{note}");
        events::publish(context, owner, EventType::Warning, LEDGER_TOO_NEW, note);
    }
    Wake::await_change()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
    use shed_core::time::Instant;

    use super::*;
    use crate::clock;

    fn status(conditions: &[&str]) -> DeadlineJobStatus {
        let condition = |type_: &&str| Condition {
            type_: (*type_).to_owned(),
            status: "True".to_owned(),
            reason: String::new(),
            message: String::new(),
            observed_generation: None,
            last_transition_time: clock::time(Instant(0)),
        };
        DeadlineJobStatus {
            conditions: conditions.iter().map(condition).collect(),
            ..DeadlineJobStatus::default()
        }
    }

    #[test]
    fn a_verdict_is_news_in_one_write() {
        let (met, missed) = (DeadlineVerdict::Met, DeadlineVerdict::Missed);
        let none = status(&[]);
        let complete = status(&[api::COMPLETE]);
        assert!(is_news(met, &complete, &none));
        assert!(!is_news(met, &complete, &complete));
        assert!(!is_news(met, &none, &none), "pods are terminating");
        let late = status(&[api::DEADLINE_MISSED]);
        assert!(is_news(missed, &late, &none));
        let complete_late = status(&[api::DEADLINE_MISSED, api::COMPLETE]);
        assert!(!is_news(missed, &complete_late, &late));
    }
}
