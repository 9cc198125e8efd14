//! Jobs whose reconcile panicked, overran its time or did not end. Such a job is left alone for a
//! while that doubles with each failure, then it is tried once. The ledger holds the quarantine, so
//! that the next leader keeps it too. A failed reconcile counts as a crash of the process: of the job
//! nothing is remembered, and its pods are listed again before anything is decided.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::runtime::controller::Action as Wake;
use kube::runtime::events::EventType;
use shed_core::time::{Instant, Span};

use super::{Error, apply, events, mirror, record};
use crate::api::{self, DeadlineJob, QuarantineEntry, reason};
use crate::clock;
use crate::context::Context;
use crate::metrics::Why;
use crate::stores::Versioned;
use crate::watchdog;

pub mod note;

/// The first wait; it doubles with each failure in a row, up to the last. The first one is longer than
/// a watch lags behind (60 s), and than a request that was cut off stays under way.
const WAIT_FIRST: Span = Span::from_seconds(60);
const WAIT_LAST: Span = Span::from_seconds(3600);
/// Characters of a panic's text that a message holds at most.
const TEXT_MAX: usize = 200;

/// The wait after so many failures in a row.
fn wait(count: u32) -> Span {
    Span(WAIT_FIRST.0 << count.saturating_sub(1).min(8)).min(WAIT_LAST)
}

/// How a reconcile failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// It panicked.
    Panicked,
    /// It overran its time.
    Overran,
    /// One of its polls did not end.
    Stuck,
}

impl Failure {
    /// Reason of the condition and of the event.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::Panicked => reason::RECONCILE_PANICKED,
            Self::Overran => reason::RECONCILE_TIMED_OUT,
            Self::Stuck => reason::RECONCILE_STUCK,
        }
    }

    /// Label of the metric.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Panicked => "panicked",
            Self::Overran => "timed_out",
            Self::Stuck => "stuck",
        }
    }
}

/// A reconcile that failed in a way that could harm other jobs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct Crash {
    /// How.
    pub failure: Failure,
    /// What happened, as a sentence without its full stop.
    what: String,
}

impl Crash {
    /// It panicked with this payload.
    #[must_use]
    pub fn panicked(payload: &(dyn Any + Send)) -> Self {
        let text = payload.downcast_ref::<&str>().copied();
        let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        let text: String = text.unwrap_or("no text").chars().take(TEXT_MAX).collect();
        let text = text.replace(char::is_control, " ");
        Self {
            failure: Failure::Panicked,
            what: format!("shed's work on this job panicked: {text}"),
        }
    }

    /// It took longer than this.
    #[must_use]
    pub fn overran(limit: Duration) -> Self {
        let limit = limit.as_secs();
        Self {
            failure: Failure::Overran,
            what: format!("shed's work on this job exceeded {limit} s and was canceled"),
        }
    }

    /// One of its polls did not end.
    #[must_use]
    pub fn stuck() -> Self {
        let seconds = watchdog::TICK.as_secs() * u64::from(watchdog::TICKS_MAX);
        Self {
            failure: Failure::Stuck,
            what: format!(
                "a step of shed's work on this job did not return within {seconds} s, so the operator exited"
            ),
        }
    }

    fn message(&self, count: u32, until: Instant) -> String {
        let until = clock::rfc3339(until);
        format!(
            "{}; consecutive failures: {count}. shed retries at {until}. Until then it starts, stops and \
             counts no attempts of this job, also at its deadline. If it fails again, report the operator's \
            log. To stop the job's pods now, delete the job",
            self.what,
        )
    }
}

/// The job of a reconcile, as far as its quarantine needs to know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: Arc<str>,
    /// The number of its reconciles in a row that have failed so before this one.
    pub crashes: u32,
}

impl Subject {
    /// What the quarantine of this job needs to know.
    #[must_use]
    pub fn of(job: &DeadlineJob) -> Self {
        let metadata = &job.metadata;
        Self {
            namespace: metadata.namespace.clone().unwrap_or_default(),
            name: metadata.name.clone().unwrap_or_default(),
            uid: uid(job),
            crashes: entry(job).map_or(0, |entry| entry.count),
        }
    }
}

/// What this process remembers of a job's quarantine.
#[derive(Debug, Clone, Default)]
pub struct Memo {
    /// A failure that is not in the ledger yet, and until when it keeps the job from being reconciled.
    unwritten: Option<(Subject, Crash, Instant)>,
    /// The failure in a row that was last announced.
    announced: u32,
    /// Whether its pods must be listed before anything is decided. The watch may not show yet what a
    /// pass did that was cut off.
    pub is_unlisted: bool,
}

impl Memo {
    /// Whether the ledger does not hold a failure yet.
    #[must_use]
    pub fn is_unwritten(&self) -> bool {
        self.unwritten.is_some()
    }
}

/// The quarantine that the job's ledger holds.
#[must_use]
pub fn entry(job: &DeadlineJob) -> Option<&QuarantineEntry> {
    let status = job.status.as_ref()?;
    status.ledger.as_ref()?.quarantine.as_ref()
}

/// Whether a job is quarantined, until a reconcile of it has gone well.
#[must_use]
pub fn is_in_force(context: &Context, job: &DeadlineJob) -> bool {
    let is_unwritten = || {
        let memos = &context.memos;
        memos.with(&uid(job), |memo| memo.quarantine.unwritten.is_some())
    };
    entry(job).is_some() || is_unwritten()
}

/// Keeps a job that is quarantined from being reconciled: what it waits for. Nothing if it may be.
pub(super) async fn hold(
    context: &Context,
    watched: &Arc<DeadlineJob>,
) -> Result<Option<Wake>, Error> {
    let owner = context.memos.newest(watched);
    let (uid, now) = (uid(&owner), context.clock.now());
    let ticks = context.clock.ticks();
    let unwritten = context.memos.with(&uid, |memo| {
        // One that could not be written by then is like a crash that left no note.
        let unwritten = &mut memo.quarantine.unwritten;
        unwritten.take_if(|(_, _, until)| *until <= ticks);
        unwritten.clone()
    });
    if let Some((job, crash, _)) = unwritten {
        context.board.abandon(&uid);
        return write(context, &job, &crash).await.map(Some);
    }
    let Some(entry) = entry(&owner) else {
        return Ok(None);
    };
    // The process that found this one out has ended.
    if entry.reason == reason::RECONCILE_STUCK && announce(context, &owner).await {
        count(context, Failure::Stuck);
    }
    let left = clock::micro_instant(&entry.until).since(now);
    // A clock that was far ahead when that was noted must not hold the job for days.
    let longest = Span(wait(entry.count).0 + WAIT_LAST.0);
    if left.0 <= 0 || left > longest {
        return Ok(None);
    }
    context.board.abandon(&uid);
    Ok(Some(Wake::requeue(clock::duration(left))))
}

/// Quarantines a job for its failed reconcile.
pub(super) async fn impose(
    context: &Context,
    owner: &DeadlineJob,
    crash: &Crash,
) -> Result<Wake, Error> {
    accuse(context, owner, crash);
    write(context, &Subject::of(owner), crash).await
}

/// Forgets what is remembered of a job, as a crash of the process would, and keeps it from being
/// reconciled. The next reconcile writes that down.
pub fn accuse(context: &Context, owner: &DeadlineJob, crash: &Crash) {
    let job = Subject::of(owner);
    let (namespace, name) = (&job.namespace, &job.name);
    tracing::error!(namespace, job = name, "{crash}: quarantined");
    count(context, crash.failure);
    let until = context.clock.ticks().plus(wait(job.crashes + 1));
    context.board.abandon(&job.uid);
    context.memos.forget(&job.uid);
    let uid = Arc::clone(&job.uid);
    let quarantine = Memo {
        unwritten: Some((job, crash.clone(), until)),
        announced: 0,
        is_unlisted: true,
    };
    context
        .memos
        .with(&uid, |memo| memo.quarantine = quarantine);
}

/// Counts such a failure.
pub fn count(context: &Context, failure: Failure) {
    let reason = failure.label();
    let crashes = &context.metrics.reconciles.crashes;
    crashes.get_or_create(&Why { reason }).inc();
}

async fn write(context: &Context, job: &Subject, crash: &Crash) -> Result<Wake, Error> {
    let seen = context.stores.newest_version(Versioned::DeadlineJobs);
    apply::count(&context.metrics, "job_status");
    let written = note::put(&context.client, job, crash, context.clock.now()).await;
    let Some(written) = written.map_err(Error::Quarantine)? else {
        // The job is gone, or a newer operator has its ledger.
        context.memos.forget(&job.uid);
        return Ok(Wake::await_change());
    };
    let written = take_in(context, seen, written);
    announce(context, &written).await;
    let count = entry(&written).map_or(job.crashes + 1, |entry| entry.count);
    Ok(Wake::requeue(clock::duration(wait(count))))
}

/// Ends the quarantine of a job whose reconcile went well.
pub(super) async fn lift(context: &Context, watched: &Arc<DeadlineJob>) -> Result<(), Error> {
    let owner = context.memos.newest(watched);
    if entry(&owner).is_none() {
        return Ok(());
    }
    let job = Subject::of(&owner);
    let seen = context.stores.newest_version(Versioned::DeadlineJobs);
    apply::count(&context.metrics, "job_status");
    let written = note::lift(&context.client, &job, context.clock.now()).await;
    if let Some(written) = written.map_err(Error::Quarantine)? {
        take_in(context, seen, written);
        let (namespace, name) = (&job.namespace, &job.name);
        tracing::info!(namespace, job = name, "the job is not quarantined any more");
    }
    Ok(())
}

/// Takes note of an own write.
fn take_in(context: &Context, seen: u64, written: DeadlineJob) -> Arc<DeadlineJob> {
    record::note_answer(context, seen, &written.metadata);
    let written = Arc::new(written);
    context.memos.with(&uid(&written), |memo| {
        memo.quarantine.unwritten = None;
        memo.newest = Some(Arc::clone(&written));
    });
    context.stores.changed.notify_one();
    written
}

/// Announces a quarantine by an event and on the batch/v1 Job that the job stands for. False if this
/// process has announced it before.
async fn announce(context: &Context, job: &DeadlineJob) -> bool {
    let Some((entry, condition)) = entry(job).zip(condition(job)) else {
        return false;
    };
    let before = context.memos.with(&uid(job), |memo| {
        std::mem::replace(&mut memo.quarantine.announced, entry.count)
    });
    if before == entry.count {
        return false;
    }
    let (reason, note) = (&condition.reason, condition.message.clone());
    events::publish(context, job, EventType::Warning, reason, note);
    mirror::show(context, job, condition).await;
    true
}

fn condition(job: &DeadlineJob) -> Option<&Condition> {
    let mut conditions = job.status.as_ref()?.conditions.iter();
    conditions.find(|condition| condition.type_ == api::QUARANTINED)
}

fn uid(job: &DeadlineJob) -> Arc<str> {
    job.metadata.uid.as_deref().unwrap_or_default().into()
}
