//! The driver of one reconcile.

mod answers;
mod carry_out;

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::api::{Api, DeleteParams, ObjectMeta, Preconditions};
use kube::runtime::controller::Action as Wake;
use shed_core::plan::{JobReport, Move};
use shed_core::snapshot::JobSnapshot;
use shed_core::time::Instant;

use super::record::{record, refuse_spec, stand_aside};
use super::step::{Input, Notice, step};
use super::{
    Error, backoff, deadline, events, fence, isolation, live, mirror, quarantine, range,
    unanswered, volumes, wake,
};
use crate::adopt::claims::{self, Claims};
use crate::adopt::{self, Unfit};
use crate::api::{DeadlineJob, NodeEntry};
use crate::book::{Book, LedgerError};
use crate::bounds::Bounds;
use crate::context::Context;
use crate::observe::gone;
use crate::observe::job::{self, AttemptId, JobPods, Traces};
use crate::observe::reach;
use crate::observe::troubled::TroubledNodes;
use crate::observe::unconfirmed::{self, Unconfirmed};
use crate::validate::ValidatedJob;
use crate::{planner, recording};

pub(super) use answers::creations_wait;
use carry_out::carry_out;

/// Everything about one job in one pass.
pub(super) struct Pass {
    pub(super) owner: Arc<DeadlineJob>,
    pub(super) job: Arc<ValidatedJob>,
    pub(super) book: Book,
    pub(super) pods: JobPods,
    pub(super) traces: Traces,
    pub(super) facts: JobSnapshot,
    pub(super) report: Option<JobReport>,
    /// What became of parts of tasks before the step.
    pub(super) put_right: Vec<Notice>,
    /// Attempts that ask for leave to publish, and since when.
    pub(super) asking: BTreeMap<AttemptId, Instant>,
    /// Where attempts run, as far as the book does not say so.
    pub(super) placements: BTreeMap<AttemptId, NodeEntry>,
    /// Which attempt keeps others waiting by not being gone for certain.
    pub(super) awaited: Option<Unconfirmed>,
    /// What is to be said of the claims that attempts mount.
    pub(super) unshared: Option<String>,
    /// How much its object may hold.
    pub(super) bounds: Bounds,
    /// Pods that an adopted Job takes in or lets go.
    pub(super) claims: Claims,
    pub(super) now: Instant,
    /// The same by the process's own clock.
    pub(super) ticks: Instant,
}

/// Reconciles one job, if it is shed's and not quarantined, by `work` in a task of its own.
pub async fn reconcile_by<F>(
    watched: Arc<DeadlineJob>,
    context: Arc<Context>,
    work: impl FnOnce(Arc<DeadlineJob>, Arc<Context>) -> F,
) -> Result<Wake, Error>
where
    F: Future<Output = Result<Wake, Error>> + Send + 'static,
{
    // A job that is being deleted launches nothing; its pods are let go as orphans.
    let is_leaving = watched.metadata.deletion_timestamp.is_some();
    if is_leaving || !watched.spec.is_ours() || !context.stores.is_ready() {
        return Ok(Wake::await_change());
    }
    let namespace = watched.metadata.namespace.as_deref().unwrap_or_default();
    let _place = context.passes.acquire(&namespace.into()).await;
    // What is remembered may be of a future that was undone.
    context.doubt.settled().await;
    if let Some(wake) = quarantine::hold(&context, &watched).await? {
        return Ok(wake);
    }
    let owner = context.memos.newest(&watched);
    let work = work(Arc::clone(&watched), Arc::clone(&context));
    match isolation::run(&context.watch, Some(Arc::clone(&owner)), work).await {
        Ok(result) => {
            let wake = result?;
            quarantine::lift(&context, &watched).await?;
            Ok(wake)
        }
        Err(crash) => quarantine::impose(&context, &owner, &crash).await,
    }
}

/// Reconciles one job with its slice of the plan, if there is one.
pub async fn work(watched: Arc<DeadlineJob>, context: Arc<Context>) -> Result<Wake, Error> {
    let uid: Arc<str> = watched.metadata.uid.as_deref().unwrap_or_default().into();
    let is_on_trial = quarantine::entry(&context.memos.newest(&watched)).is_some();
    let slice = context.board.take(&uid);
    let result = pass(Arc::clone(&watched), &context, &slice).await;
    context.board.finish(&uid);
    if is_on_trial {
        // The planner reads the job too: that must go well before the quarantine ends.
        planner::observe::try_out(&context, &watched);
    }
    result
}

async fn pass(watched: Arc<DeadlineJob>, context: &Context, slice: &[Move]) -> Result<Wake, Error> {
    let owner = context.memos.newest(&watched);
    let book = Book::from_status(owner.status.as_ref());
    if let Err(LedgerError::Newer(form)) = book {
        return Ok(stand_aside(context, &owner, form));
    }
    // validate (no client required)
    let job = match adopt::read(&context.memos, &owner, context.stores.batch()) {
        Ok(job) => job,
        Err(Unfit::Absent) => return let_go(context, &owner).await,
        Err(Unfit::Invalid(invalid)) => {
            return refuse_spec(context, &owner, invalid.to_string()).await;
        }
    };
    let mut book = match book {
        Ok(book) => book,
        Err(error) => {
            let message = format!("status.ledger was edited: {error}");
            return refuse_spec(context, &owner, message).await;
        }
    };
    unanswered::announce(context, &owner, &job, &book);
    // What the policy remembers must be there after a failover.
    let policy_state = context.board.policy_state(&job.uid);
    book.policy_state = policy_state.or(book.policy_state);
    // observe (client required at the deadline and for claims only)
    let pass = observe(context, owner, job, book).await?;
    // step (no client required)
    let creations = context
        .memos
        .with(&pass.job.uid, |memo| memo.creations.clone());
    let slice = creations.first(slice);
    let fitting = pass.bounds.fitting(&pass.book, &slice);
    let mut step = step(Input {
        job: &pass.job,
        book: &pass.book,
        facts: &pass.facts,
        pods: &pass.pods,
        traces: &pass.traces,
        slice: fitting.as_deref().unwrap_or(&slice),
        asking: &pass.asking,
        placements: &pass.placements,
        bounds: Some(pass.bounds),
        now: pass.now,
        ticks: pass.ticks,
    });
    step.notices.splice(0..0, pass.put_right.iter().cloned());
    backoff::note(context, &pass, &step);
    // record (client required)
    let recorded = match record(context, &pass, &step).await {
        Err(Error::Deferred(until)) => {
            context.board.put_back(&pass.job.uid);
            return Ok(wake::at(context, until));
        }
        recorded => recorded?,
    };
    // From here on the ledger holds the capacity: what follows may take its time.
    context.board.finish(&pass.job.uid);
    fence::answer(context, &pass, &step.book);
    let mirrored = mirror::mirror(context, &pass, &step.book, &recorded).await;
    recording::record_ends(context, &pass.facts, &step.notices);
    events::announce(context, &recorded, &pass.job, &step.book, &step.notices);
    // carry out (client required)
    let is_cut_short = carry_out(context, &pass, &recorded, &step, mirrored).await?;
    // wake (no client required)
    expire(context, &pass, &step.book).await?;
    if is_cut_short {
        return Ok(wake::at(context, context.clock.ticks()));
    }
    Ok(wake::after(context, &pass, &step, &recorded))
}

/// A companion whose Job is not there: it goes with the Job. One that was orphaned on purpose has
/// nobody else to take it away.
async fn let_go(context: &Context, owner: &DeadlineJob) -> Result<Wake, Error> {
    let has_begun = owner.status.is_some();
    if has_begun && adopt::owner(owner).is_none() {
        delete_job(context, &owner.metadata).await?;
    }
    Ok(Wake::await_change())
}

async fn observe(
    context: &Context,
    owner: Arc<DeadlineJob>,
    job: Arc<ValidatedJob>,
    mut book: Book,
) -> Result<Pass, Error> {
    let ticks = context.clock.ticks();
    let now = context.clock.at(ticks);
    let mut pods = context.stores.pods_of(&job);
    // A cached view never reaches beyond the deadline, however fresh it looks.
    let mut facts_as_of = Instant(0);
    let is_unlisted = context
        .memos
        .with(&job.uid, |memo| memo.quarantine.is_unlisted);
    let is_due = deadline::is_due(&context.clock, &job, &book, owner.status.as_ref(), ticks);
    let is_live = is_due || is_unlisted;
    if is_live {
        pods = live::pods(context, &job, &pods).await?;
        facts_as_of = deadline::facts_as_of(&context.clock, ticks);
    }
    let claims = match &job.adopted {
        Some(adopted) => {
            let unlabelled = context.stores.unlabelled_pods_of(&job.owner());
            claims::sort(adopted, &mut pods, &unlabelled)
        }
        None => Claims::default(),
    };
    let traces = context.memos.with(&job.uid, |memo| {
        if is_live {
            job::note_live(&mut memo.traces, &pods, ticks);
            memo.quarantine.is_unlisted = false;
        } else {
            job::note(&mut memo.traces, &pods, ticks);
        }
        job::forget(&mut memo.traces, &book, &pods);
        memo.traces.clone()
    });
    let launch_not_before = context.memos.with(&job.uid, |memo| {
        let until = memo.backoff.as_ref().map(|backoff| backoff.until);
        until.map(|until| context.clock.at(until))
    });
    let reports = context.progress.reports_of(&job.uid);
    let put_right = range::put_right(&mut book, &job, &pods, &reports, now);
    let view = job::View {
        now,
        ticks,
        facts_as_of,
        pods: &pods,
        traces: &traces,
        reports: &reports,
        nodes: &BTreeMap::new(),
        eligible_nodes: Arc::from([]),
        demand: shed_core::resources::Resources::default(),
        launch_not_before,
        proven_gone: &gone::proven(&book, &context.stores),
        out_of_reach: &reach::out_of_reach(&pods, &context.stores, now),
        troubled: &TroubledNodes::default(),
    };
    let mut facts = job::facts(&job, &book, &view);
    deadline::hold_limit(&context.clock, &mut facts);
    context.memos.with(&job.uid, |memo| {
        memo.placement.mark(&mut facts, &pods);
        planner::obstacles::limit(memo, &view, &mut facts, &context.clock);
    });
    let awaited = unconfirmed::unconfirmed(&job, &book, &view, &context.stores);
    let report = context.board.report(&job.uid);
    let asking = fence::asking(context, &job, &pods);
    let unshared = volumes::unshared(context, &job, &book, ticks).await;
    Ok(Pass {
        unshared,
        bounds: Bounds::of(
            &owner,
            &job,
            context.stores.node_bytes(),
            context.stores.skipped_bytes(&owner),
        ),
        placements: fence::placements(context, &job, &book, &pods, &asking),
        asking,
        awaited,
        claims,
        owner,
        job,
        book,
        pods,
        traces,
        facts,
        report,
        put_right,
        now,
        ticks,
    })
}

async fn expire(context: &Context, pass: &Pass, book: &Book) -> Result<(), Error> {
    if wake::expiry(&pass.job, book).is_none_or(|expiry| pass.now < expiry) {
        return Ok(());
    }
    delete_job(context, &pass.owner.metadata).await
}

pub(super) async fn delete_job(context: &Context, job: &ObjectMeta) -> Result<(), Error> {
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
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
        Err(error) => Err(Error::Expire(error)),
    }
}

#[cfg(test)]
mod tests;
