//! The driver of one reconcile.

mod answers;
mod execution;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use kube::api::{Api, DeleteParams, ObjectMeta, Preconditions};
use shed_core::plan::{JobReport, Move};
use shed_core::snapshot::JobSnapshot;
use shed_core::time::Instant;
use tracing::{Instrument, debug_span};

use crate::adopt;
use crate::api::{DeadlineJob, Ledger, NewerForm, NodeEntry};
use crate::bounds::Bounds;
use crate::cluster::identity::Owner;
use crate::cluster::pod::AttemptId;
use crate::completion_history::Known;
use crate::context::pending_tasks::{self, NamespaceObstacles};
use crate::context::validation::{self, Unfit};
use crate::fair_places::Urgency;
use crate::job::notice::Notice;
use crate::job::unconfirmed_termination::{self, UnconfirmedTermination};
use crate::job::view::{JobView, Sighting};
use crate::job::{facts, gates};
use crate::reconcile::context::ReconcileContext;
use crate::reconcile::deadline::{self, Case};
use crate::reconcile::queue::Wake;
use crate::reconcile::record::{record, refuse_spec, stand_aside};
use crate::reconcile::step::{Input, Step, step};
use crate::reconcile::write_places::LaunchPlace;
use crate::reconcile::{
    Error, attempt_annotations, backoff, events, fence, live_read, mirror, next_reconcile,
    quarantine, range, slot_time, unanswered_writes, volumes, write_places,
};
use crate::validate::{self, DeadlineRule, Learned, ValidatedJob};
use crate::watchdog::isolation;
use crate::workflow_runs::StageOfRun;
use crate::{planner, recording};

pub(super) use answers::creations_wait;
use execution::{carry_out, carry_out_recorded, withhold_unrecorded};

/// Everything about one job in one pass.
#[derive(Clone)]
pub(super) struct Pass {
    pub(super) owner: Arc<DeadlineJob>,
    pub(super) view: JobView,
    pub(super) facts: JobSnapshot,
    pub(super) report: Option<JobReport>,
    /// Notices about segments from before the step.
    pub(super) put_right: Vec<Notice>,
    /// Attempts that request a commit grant, and since when.
    pub(super) asking: BTreeMap<AttemptId, Instant>,
    /// Nodes of attempts that the ledger does not contain yet.
    pub(super) placements: BTreeMap<AttemptId, NodeEntry>,
    /// The attempt that others wait for, because its termination is unproven.
    pub(super) awaited: Option<UnconfirmedTermination>,
    /// The message about the claims that attempts mount.
    pub(super) unshared: Option<String>,
    /// How much its object may hold.
    pub(super) bounds: Bounds,
    /// With `deadline.history`, what is known of its class.
    pub(super) history: Option<Known>,
    /// The obstacles that its namespace has.
    pub(super) namespace: NamespaceObstacles,
}

impl Pass {
    /// What decides why tasks wait, with the ledger after a step.
    pub(super) fn pending<'a>(&'a self, ledger: &'a Ledger) -> pending_tasks::Input<'a> {
        pending_tasks::Input {
            ledger,
            facts: &self.facts,
            report: self.report.as_ref(),
            bounds: &self.bounds,
            namespace: self.namespace,
            gate: gates::of_some(&self.view),
        }
    }
}

/// Reconciles one job, if it is shed's and not quarantined, by `work` in a task of its own.
pub async fn reconcile_by<F>(
    watched: Arc<DeadlineJob>,
    context: Arc<ReconcileContext>,
    work: impl FnOnce(Arc<DeadlineJob>, Arc<ReconcileContext>) -> F,
) -> Result<Wake, Error>
where
    F: Future<Output = Result<Wake, Error>> + Send + 'static,
{
    if !is_run(&watched) || !context.stores.is_ready() {
        return Ok(Wake::await_change());
    }
    let namespace = watched.metadata.namespace.as_deref().unwrap_or_default();
    let waiting = context.metrics.reconciles.waiting.enter();
    let urgency = urgency(&context, &watched);
    let _place = context.passes.acquire_by(&namespace.into(), urgency).await;
    drop(waiting);
    // On the heap: the futures of a pass are large, and each future around them would hold them again.
    Box::pin(hold_or_work(watched, &context, work)).await
}

/// A pass that stops an attempt waits for no other pass of its namespace: a loser uses capacity, and jobs that launch
/// keep the apiserver busy.
fn urgency(context: &ReconcileContext, job: &DeadlineJob) -> Urgency {
    let stores = &context.stores;
    let adopted = stores
        .jobs
        .batch()
        .and_then(|jobs| jobs.owner(&job.metadata));
    let adopted = adopted.as_ref().and_then(|job| job.spec.as_ref());
    let is_suspended = match adopted {
        Some(spec) => spec.suspend == Some(true),
        None => job.spec.suspend,
    };
    let uid = job.metadata.uid.as_deref().unwrap_or_default();
    let is_planned = context.plan_slices.must_stop_some(uid);
    match is_planned
        || stores
            .pods
            .must_stop_some(&Owner::of(&job.metadata), is_suspended)
    {
        true => Urgency::Urgent,
        false => Urgency::Usual,
    }
}

/// Whether shed runs the job. One that is being deleted launches nothing; its pods are let go as orphans.
fn is_run(job: &DeadlineJob) -> bool {
    job.metadata.deletion_timestamp.is_none() && job.spec.is_ours()
}

/// Does the work, unless the job is quarantined.
async fn hold_or_work<F>(
    watched: Arc<DeadlineJob>,
    context: &Arc<ReconcileContext>,
    work: impl FnOnce(Arc<DeadlineJob>, Arc<ReconcileContext>) -> F,
) -> Result<Wake, Error>
where
    F: Future<Output = Result<Wake, Error>> + Send + 'static,
{
    let _running = context.metrics.reconciles.running.enter();
    if let Some(wake) = quarantine::hold(context, &watched).await? {
        return Ok(wake);
    }
    let owner = context.job_memories.newest(&watched);
    let work = work(Arc::clone(&watched), Arc::clone(context));
    match isolation::run(&context.watch, Some(Arc::clone(&owner)), work).await {
        Ok(result) => {
            let wake = result?;
            quarantine::lift(context, &watched).await?;
            Ok(wake)
        }
        Err(crash) => quarantine::impose(context, &owner, &crash).await,
    }
}

/// Reconciles one job with its slice of the plan, if there is one, and with its turn to launch, if that has come.
/// `watched` may have grown old while the pass waited.
pub async fn work(
    watched: Arc<DeadlineJob>,
    context: Arc<ReconcileContext>,
    turn: Option<LaunchPlace>,
) -> Result<Wake, Error> {
    let uid: Arc<str> = watched.metadata.uid.as_deref().unwrap_or_default().into();
    let Some(owner) = context.newest(&watched).filter(|job| is_run(job)) else {
        // The watch has named the job again for it.
        context.plan_slices.abandon(&uid);
        return Ok(Wake::await_change());
    };
    let is_on_trial = crate::quarantine::entry(&owner).is_some();
    let slice = context.plan_slices.take(&uid);
    let reconcile = pass(owner, &context, slice, turn);
    let result = reconcile.instrument(debug_span!("reconcile", %uid)).await;
    context.plan_slices.finish(&uid);
    if is_on_trial {
        // The planner reads the job too: that must go well before the quarantine ends.
        planner::observation::try_out(&context.shared, &watched);
    }
    result
}

async fn pass(
    owner: Arc<DeadlineJob>,
    context: &ReconcileContext,
    slice: Vec<Move>,
    turn: Option<LaunchPlace>,
) -> Result<Wake, Error> {
    // validate (no client required)
    let (job, ledger) = match read(context, &owner).await? {
        ControlFlow::Continue(read) => read,
        ControlFlow::Break(wake) => return Ok(wake),
    };
    unanswered_writes::announce(context, &owner, &job, &ledger);
    // observe (client required at the deadline and for claims only)
    let observed = observe(context, owner, job, ledger).instrument(debug_span!("observe"));
    let pass = observed.await?;
    // step (no client required)
    let launches = &context.write_places.launches;
    let place = turn.or_else(|| launches.try_acquire(&pass.view.job.namespace));
    let step = debug_span!("step");
    let mut step = step.in_scope(|| decide_in_turn(context, &pass, slice, place.is_some()));
    backoff::note(context, &pass, &step);
    let place = place.filter(|_| !step.creates.is_empty());
    let awaits_turn = step.awaits_turn;
    let act = act(context, &pass, &mut step);
    let wake = write_places::within_turn(place, act).await?;
    Ok(wake.with_turn(awaits_turn))
}

/// Makes a step durable and carries it out.
async fn act(context: &ReconcileContext, pass: &Pass, step: &mut Step) -> Result<Wake, Error> {
    // record (client required)
    let recorded = record(context, pass, step).instrument(debug_span!("record"));
    let recorded = match recorded.await {
        Err(Error::Deferred(until)) => {
            context.plan_slices.put_back(&pass.view.job.uid);
            let is_cut_short = carry_out_recorded(context, pass, step).await?;
            let ticks = context.clock.ticks();
            return Ok(next_reconcile::at(
                context,
                if is_cut_short { ticks } else { until },
            ));
        }
        recorded => recorded?,
    };
    // From here on the ledger holds the capacity, so the next steps may take time.
    match step.awaits_turn {
        true => context.plan_slices.put_back(&pass.view.job.uid),
        false => context.plan_slices.finish(&pass.view.job.uid),
    }
    fence::answer(context, pass, &step.ledger);
    let proven = withhold_unrecorded(context, pass, &recorded, step).await;
    // A Job says that it has begun before its first pod is created, and that it has ended after its last one is released.
    let has_ended = step.ledger.finished;
    let mirrored = match has_ended {
        true => Ok(()),
        false => mirror::mirror(context, pass, &step.ledger, &recorded).await,
    };
    announce(context, pass, step, &recorded);
    // carry out (client required)
    let apply = carry_out(context, pass, &recorded, step, mirrored);
    let is_cut_short = apply.instrument(debug_span!("apply")).await?;
    proven?;
    attempt_annotations::write(context, pass, &step.ledger, &recorded).await;
    if has_ended && !is_cut_short {
        mirror::mirror(context, pass, &step.ledger, &recorded).await?;
    }
    // wake (no client required)
    let has_expired = expire(context, pass, &step.ledger).await?;
    if is_cut_short {
        return Ok(next_reconcile::at(context, context.clock.ticks()));
    }
    if has_expired {
        return Ok(Wake::await_change());
    }
    Ok(next_reconcile::after(context, pass, step, &recorded))
}

/// The job's specification and ledger, or its next wake if nothing can be done for it.
async fn read(
    context: &ReconcileContext,
    owner: &Arc<DeadlineJob>,
) -> Result<ControlFlow<Wake, (Arc<ValidatedJob>, Ledger)>, Error> {
    let mut ledger = match Ledger::from_status(owner.status.as_ref()) {
        Ok(ledger) => ledger,
        Err(NewerForm(form)) => {
            return Ok(ControlFlow::Break(stand_aside(context, owner, form)));
        }
    };
    let job = match validation::read(&context.job_memories, owner, context.stores.jobs.batch()) {
        Ok(job) => job,
        Err(Unfit::Absent) => return let_go(context, owner).await.map(ControlFlow::Break),
        Err(Unfit::Invalid(invalid)) => {
            let refused = refuse_spec(context, owner, invalid.to_string()).await;
            return refused.map(ControlFlow::Break);
        }
    };
    // The policy's state must survive a failover.
    let policy_state = context.plan_slices.policy_state(&job.uid);
    ledger.policy_state = policy_state.or(ledger.policy_state);
    Ok(ControlFlow::Continue((job, ledger)))
}

/// The step of a pass. A job whose turn to launch has not come leaves launches and creations to a later pass, so that
/// nothing else waits for them.
fn decide_in_turn(
    context: &ReconcileContext,
    pass: &Pass,
    mut slice: Vec<Move>,
    is_its_turn: bool,
) -> Step {
    let planned = slice.len();
    if !is_its_turn {
        slice.retain(|planned| matches!(planned, Move::Kill(_)));
    }
    let mut step = decide(context, pass, &slice);
    if !is_its_turn {
        step.awaits_turn = slice.len() < planned || !step.creates.is_empty();
        step.creates.clear();
    }
    step
}

/// The step for facts and slice, as far as the apiserver and the object's size allow it.
fn decide(context: &ReconcileContext, pass: &Pass, slice: &[Move]) -> Step {
    let creations = context.job_memories.with(&pass.view.job.uid, |memory| {
        memory.planned.creations.clone()
    });
    let slice = creations.first(slice);
    let fitting = pass.bounds.fitting(&pass.view.ledger, &slice);
    let mut step = step(Input {
        view: &pass.view,
        facts: &pass.facts,
        slice: fitting.as_deref().unwrap_or(&slice),
        asking: &pass.asking,
        placements: &pass.placements,
        bounds: Some(pass.bounds),
        learned: Learned {
            quantile: pass.history.and_then(|known| known.quantile),
            run_start: run_start(context, pass),
        },
    });
    step.notices.splice(0..0, pass.put_right.iter().cloned());
    step
}

/// Records and announces the results of a step, once it is durable.
fn announce(context: &ReconcileContext, pass: &Pass, step: &Step, recorded: &DeadlineJob) {
    recording::record_ends(&context.shared, &pass.facts, &step.notices);
    let slots = &context.metrics.slot_time;
    let (job, notices) = (&pass.view.job, &step.notices);
    slot_time::measure(slots, &job.namespace, &pass.facts, notices, pass.view.now);
    events::announce(context, recorded, job, &step.ledger, notices);
}

/// A companion whose Job does not exist. The garbage collector deletes it with the Job. If a client
/// orphaned it on purpose, shed must delete it.
async fn let_go(context: &ReconcileContext, owner: &DeadlineJob) -> Result<Wake, Error> {
    let has_begun = owner.status.is_some();
    if !has_begun || adopt::controller(&owner.metadata).is_some() {
        return Ok(Wake::await_change());
    }
    delete_job(context, &owner.metadata).await
}

async fn observe(
    context: &ReconcileContext,
    owner: Arc<DeadlineJob>,
    job: Arc<ValidatedJob>,
    ledger: Ledger,
) -> Result<Pass, Error> {
    let ticks = context.clock.ticks();
    let read = JobView::new(job, ledger, context.clock.at(ticks), ticks);
    let sighting = sight(context, &owner, &read).await?;
    let mut view = context.see(read, sighting);
    let put_right = range::put_right(&mut view);
    let mut facts = facts::facts(&view);
    deadline::hold_limit(&context.clock, &mut facts);
    let namespaces = context.stores.namespaces();
    facts.obstacles.clones_stopped = namespaces.clone_stop(&view.job.namespace).is_some();
    let awaits_place_of = context.job_memories.with(&view.job.uid, |memory| {
        memory.placement.mark(&mut facts, &view.pods);
        planner::obstacles::limit(memory, &view, &mut facts, &context.clock);
        memory.awaits_place_of
    });
    let asking = fence::asking(context, &view);
    Ok(Pass {
        report: context.plan_slices.report(&view.job.uid),
        namespace: NamespaceObstacles {
            awaits_place_of,
            is_share_lent: context.shares.is_lent(&view.job.namespace),
        },
        put_right,
        placements: fence::placements(context, &view, &asking),
        asking,
        awaited: unconfirmed_termination::unconfirmed(&view, &context.stores),
        unshared: volumes::unshared(context, &view).await,
        history: history(context, &view.job),
        bounds: Bounds::of(
            &owner,
            &view.job,
            context.stores.nodes.bytes(),
            context.stores.jobs.skipped_bytes(&owner),
        ),
        owner,
        view,
        facts,
    })
}

/// When the run began that the job is a stage of.
fn run_start(context: &ReconcileContext, pass: &Pass) -> Option<Instant> {
    let workflow = pass.view.job.workflow.as_deref()?;
    let stage = StageOfRun::of(&pass.owner.metadata, workflow)?;
    Some(context.stores.jobs.workflows().start(&stage))
}

/// What is known of the completion times from which the job's deadline is computed.
fn history(context: &ReconcileContext, job: &ValidatedJob) -> Option<Known> {
    let DeadlineRule::History(rule) = &job.deadline else {
        return None;
    };
    let completions = context.stores.jobs.completions();
    Some(completions.known(job.class.as_deref()?, rule.quantile))
}

/// The job's pods as the watch shows them, or by a live read: a cached view never reaches beyond the
/// deadline, however fresh it looks.
async fn sight(
    context: &ReconcileContext,
    owner: &DeadlineJob,
    read: &JobView,
) -> Result<Sighting, Error> {
    let watched = context.stores.pods.of_job(&read.job);
    let is_unlisted = context.job_memories.with(&read.job.uid, |memory| {
        memory.planned.quarantine.is_unlisted
    });
    let clock = &context.clock;
    if !is_unlisted && !Case::of(read).is_due(clock, owner.status.as_ref(), read.ticks) {
        return Ok(Sighting::watched(watched).with_newest_ledger());
    }
    let pods = live_read::pods(context, &read.job, &watched).await?;
    let facts_as_of = deadline::facts_as_of(clock, read.ticks);
    context.job_memories.with(&read.job.uid, |memory| {
        memory.planned.quarantine.is_unlisted = false;
    });
    Ok(Sighting::live(pods, facts_as_of).with_newest_ledger())
}

/// Deletes a job at the end of its time to live. Returns whether that has come.
async fn expire(context: &ReconcileContext, pass: &Pass, ledger: &Ledger) -> Result<bool, Error> {
    let expiry = validate::expiry(pass.view.job.ttl, ledger);
    let has_expired = expiry.is_some_and(|expiry| expiry <= pass.view.now);
    if has_expired {
        delete_job(context, &pass.owner.metadata).await?;
    }
    Ok(has_expired)
}

/// Deletes a job that has ended.
pub(super) async fn delete_job(
    context: &ReconcileContext,
    job: &ObjectMeta,
) -> Result<Wake, Error> {
    let namespace = job.namespace.as_deref().unwrap_or_default();
    let api: Api<DeadlineJob> = Api::namespaced(context.client.clone(), namespace);
    let parameters = DeleteParams {
        preconditions: Some(Preconditions {
            uid: job.uid.clone(),
            resource_version: None,
        }),
        ..DeleteParams::background()
    };
    let name = job.name.as_deref().unwrap_or_default();
    match api.delete(name, &parameters).await {
        Ok(_) => Ok(Wake::await_change()),
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {
            Ok(Wake::await_change())
        }
        Err(error) => Err(Error::Expire(error)),
    }
}

#[cfg(test)]
mod tests;
