//! Reconciles that failed in a way that could harm other jobs, and how long their jobs are left alone.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use shed_core::time::{Instant, Span};

use crate::api::{DeadlineJob, QuarantineEntry, reason};
use crate::clock;

pub mod note;

/// The first wait; it doubles with each failure in a row, up to the last. The first one is longer than
/// a watch lags behind (60 s), and than a request that was cut off stays under way.
const WAIT_FIRST: Span = Span::from_seconds(60);
pub(crate) const WAIT_LAST: Span = Span::from_seconds(3600);
/// Characters of a panic's text that a message holds at most.
const TEXT_MAX: usize = 200;

/// The wait after this number of failures in a row.
pub(crate) fn wait(count: u32) -> Span {
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
    pub fn reason(self) -> &'static str {
        match self {
            Self::Panicked => reason::RECONCILE_PANICKED,
            Self::Overran => reason::RECONCILE_TIMED_OUT,
            Self::Stuck => reason::RECONCILE_STUCK,
        }
    }

    /// Label of the metric.
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
    /// Description of the crash, as a sentence without its period.
    what: String,
}

impl Crash {
    /// It panicked with this payload.
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
    pub fn overran(limit: Duration) -> Self {
        let limit = limit.as_secs();
        Self {
            failure: Failure::Overran,
            what: format!("shed's work on this job exceeded {limit} s and was canceled"),
        }
    }

    /// One of its polls did not end.
    pub fn stuck(limit: Duration) -> Self {
        let seconds = limit.as_secs();
        Self {
            failure: Failure::Stuck,
            what: format!(
                "a step of shed's work on this job did not return within {seconds} s, so the operator exited"
            ),
        }
    }

    pub(crate) fn message(&self, count: u32, until: Instant) -> String {
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
    /// The fields of this job that its quarantine depends on.
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

/// This process's memory of a job's quarantine.
#[derive(Debug, Clone, Default)]
pub struct QuarantineMemory {
    /// A failure that is not in the ledger yet, and until when it keeps the job from being reconciled.
    pub(crate) unwritten: Option<(Subject, Crash, Instant)>,
    /// The failure in a row that was last announced.
    pub(crate) announced: u32,
    /// Whether its pods must be listed before any decision. The watch may not show yet the writes
    /// of an interrupted pass.
    pub is_unlisted: bool,
}

impl QuarantineMemory {
    /// Whether the ledger does not hold a failure yet.
    pub fn is_unwritten(&self) -> bool {
        self.unwritten.is_some()
    }
}

/// The quarantine that the job's ledger holds.
pub fn entry(job: &DeadlineJob) -> Option<&QuarantineEntry> {
    job.ledger()?.quarantine.as_ref()
}

pub(crate) fn uid(job: &DeadlineJob) -> Arc<str> {
    job.metadata.uid.as_deref().unwrap_or_default().into()
}
