//! The runs of workflows whose stages are jobs: when each began, and how long the later stages of a stage take.
//!
//! The watches of jobs fill it, also with Jobs that shed only watches, and the stored state restores it. A job may be shown
//! any number of times, by both, and counts once.

use std::sync::Arc;

use kube::api::ObjectMeta;
use parking_lot::Mutex;
use shed_core::time::{Instant, Span};
use shed_core::workflow::{JobState, StageJob, StageTime, Workflows, median, reserved_tail};

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

    /// When the run is expected to be complete if the stage is at that time: they take their median time.
    pub fn expected_end(&self, of_stage: Instant) -> Option<Instant> {
        Some(of_stage.plus(median(&self.tails)?))
    }
}

/// A stage that exceeds its usual time, and by how much.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlowStage {
    /// The stage.
    pub stage: Arc<str>,
    /// At least a second.
    pub by: Span,
}

impl SlowStage {
    fn of(stage: &str, begin: Instant, end: Instant, usual: Span) -> Option<Self> {
        let by = Span(end.since(begin).0 - usual.0);
        (by.0 >= 1000).then(|| Self {
            stage: stage.into(),
            by,
        })
    }
}

/// By how much the stages of a run exceed their usual times.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overruns {
    /// The stage of the job while it is open: its name, its begin and its usual time.
    own: Option<(Arc<str>, Instant, Span)>,
    /// The largest one of the others.
    others: Option<SlowStage>,
}

impl Overruns {
    fn new(own: Option<&str>, times: &[StageTime<'_>], now: Instant) -> Self {
        let is_own = |time: &&StageTime<'_>| Some(time.stage) == own && time.end.is_none();
        let others = times.iter().filter(|time| !is_own(time));
        let others = others.filter_map(|time| {
            let end = time.end.unwrap_or(now);
            SlowStage::of(time.stage, time.begin, end, time.usual)
        });
        let own = times.iter().find(is_own);
        Self {
            own: own.map(|time| (time.stage.into(), time.begin, time.usual)),
            others: others.max_by_key(|overrun| overrun.by),
        }
    }

    /// The largest one, if the stage of the job is complete at `end`.
    pub fn largest(&self, end: Instant) -> Option<SlowStage> {
        let own = self.own.as_ref();
        let own = own.and_then(|(stage, begin, usual)| SlowStage::of(stage, *begin, end, *usual));
        let both = own.into_iter().chain(self.others.clone());
        both.max_by_key(|overrun| overrun.by)
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

    /// How the times of the stages of a job's run compare with those of earlier runs.
    pub fn overruns(&self, job: &StageOfRun<'_>, now: Instant) -> Overruns {
        let table = self.0.lock();
        let runs = table.runs.runs(&job.class());
        let times = runs.map(|runs| runs.stage_times(&job.workflow.run, now));
        Overruns::new(job.stage, &times.unwrap_or_default(), now)
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
