//! The runs of workflows whose stages are jobs: when each began, and how long the later stages of a stage take.
//!
//! The watches of jobs fill it, also with Jobs that shed only watches, and the stored state restores it. A job may be shown
//! any number of times, by both, and counts once.

use std::sync::Arc;

use kube::api::ObjectMeta;
use parking_lot::Mutex;
use shed_core::time::{Instant, Span};
use shed_core::workflow::{JobState, StageJob, Workflows, reserved_tail};

use crate::clock;
use crate::pod_names::fnv1a;
use crate::size;
use crate::validate::{self, Workflow};

/// The stored runs have at most this many bytes, so that the stored state holds all else too.
const STORED_MAX: usize = 192 * 1024;

/// A job's place in a workflow.
#[derive(Debug, Clone)]
pub struct StageOfRun<'a> {
    /// Its uid.
    pub uid: &'a str,
    /// Its namespace.
    pub namespace: &'a str,
    /// Its class, without the namespace. A job without a class has an unnamed stage, which nothing is learned about.
    pub stage: Option<&'a str>,
    /// When it was created.
    pub created: Instant,
    /// Its run.
    pub workflow: &'a Workflow,
}

impl<'a> StageOfRun<'a> {
    /// The place of a DeadlineJob or a companion.
    pub fn of(job: &'a ObjectMeta, workflow: &'a Workflow) -> Option<Self> {
        Some(Self {
            uid: job.uid.as_deref()?,
            namespace: job.namespace.as_deref().unwrap_or_default(),
            stage: validate::class_label(job),
            created: clock::instant(job.creation_timestamp.as_ref()?),
            workflow,
        })
    }

    fn class(&self) -> String {
        format!("{}/{}", self.namespace, self.workflow.class)
    }
}

/// What is known of the stages behind a stage.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LaterStages {
    /// The times from the end of the stage to the end of the run, in earlier runs, ascending.
    pub tails: Arc<[Span]>,
}

impl LaterStages {
    /// When the stage must be complete so that the later ones have the time that they take, if that is known.
    pub fn deadline(&self, of_run: Instant) -> Option<Instant> {
        let tail = reserved_tail(&self.tails)?;
        Some(of_run.plus(Span(-tail.0)))
    }
}

#[derive(Debug, Default)]
struct Table {
    runs: Workflows,
    is_restored: bool,
}

/// The runs of all namespaces, in one term of leadership.
#[derive(Debug, Default)]
pub struct WorkflowRuns(Mutex<Table>);

impl WorkflowRuns {
    /// A watch shows a job of a run.
    pub fn see(&self, job: &StageOfRun<'_>, state: JobState) {
        let Workflow {
            run,
            start,
            is_last,
            ..
        } = job.workflow;
        let shown = StageJob {
            job: u64::from(fnv1a(job.uid.as_bytes())),
            stage: job.stage.unwrap_or_default(),
            created: job.created,
            run_start: *start,
            state,
            is_last: *is_last,
        };
        self.0.lock().runs.see(&job.class(), run, &shown);
    }

    /// When the run of a job began. A run that is not known any more began with the job.
    pub fn start(&self, job: &StageOfRun<'_>) -> Instant {
        let table = self.0.lock();
        let runs = table.runs.runs(&job.class());
        let known = runs.and_then(|runs| runs.start(&job.workflow.run));
        let own = job.workflow.began(job.created);
        known.map_or(own, |known| known.min(own))
    }

    /// What earlier runs show of the stages behind the stage of a job.
    pub fn later_stages(&self, job: &StageOfRun<'_>, now: Instant) -> LaterStages {
        let table = self.0.lock();
        let runs = table.runs.runs(&job.class()).zip(job.stage);
        let tails = runs.map(|(runs, stage)| runs.tails(&job.workflow.run, stage, now));
        LaterStages {
            tails: tails.unwrap_or_default().into(),
        }
    }

    /// Adds what earlier leaders have stored, once in a term: what was stored since then is known.
    pub fn restore(&self, stored: &Workflows) {
        let mut table = self.0.lock();
        if !std::mem::replace(&mut table.is_restored, true) {
            table.runs.restore(stored);
        }
    }

    /// What the next leader must know.
    pub fn to_store(&self) -> Workflows {
        let mut stored = self.0.lock().runs.clone();
        loop {
            let bytes = size::bytes(&stored);
            if bytes <= STORED_MAX || stored.is_empty() {
                return stored;
            }
            stored.keep(0.95 * STORED_MAX as f64 / bytes as f64);
        }
    }
}

#[cfg(test)]
mod tests;
