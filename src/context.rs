//! State that reconcilers and the planner share.

pub mod attempt_annotations;
pub mod backoff;
pub mod done_writes;
pub mod event_budget;
pub mod feasibility;
mod observation;
pub mod pending_tasks;
pub mod placement;
pub mod pod_creation;
mod quarantine;
pub mod shares;
pub mod spacing;
pub mod unanswered_writes;
pub mod validation;
pub mod workflow_estimate;

use std::collections::{HashMap, HashSet};
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Weak};

use k8s_openapi::api::batch::v1::Job;
use parking_lot::Mutex;
use shed_core::resources::Resources;
use shed_core::time::Instant;

use crate::api::DeadlineJob;
use crate::attempt_pod::AgentSettings;
use crate::clock::Clock;
use crate::cluster::pod::PodFacts;
use crate::cluster::{JobVersion, Stores, WatchedJob, job_version};
use crate::context::attempt_annotations::AnnotatedAttempts;
use crate::context::backoff::{Backoff, Blocked};
use crate::context::done_writes::DoneWrites;
use crate::context::event_budget::EventBudget;
use crate::context::feasibility::ReportedFeasibility;
use crate::context::placement::Placement;
use crate::context::pod_creation::Creations;
use crate::context::shares::ShareTable;
use crate::context::spacing::LastWrite;
use crate::context::unanswered_writes::UnansweredWrite;
use crate::context::validation::Validation;
use crate::context::workflow_estimate::WorkflowEstimate;
use crate::durable_state::LatestExperience;
use crate::forecast::ForecastTable;
use crate::job::facts::Traces;
use crate::job::troubled_nodes::TroubledNodes;
use crate::metrics::Metrics;
use crate::observed_clones::ObservedClones;
use crate::plan_slices::PlanSlices;
use crate::planner_copies::CopyRequests;
use crate::progress::ProgressTable;
use crate::validate::ValidatedJob;
use crate::watchdog::Watch;

/// State that reconcilers and the planner share.
pub struct Context {
    /// The watched world.
    pub stores: Arc<Stores>,
    /// Reports of attempts.
    pub progress: Arc<ProgressTable>,
    /// The apiserver's clock, and this process's own.
    pub clock: Arc<Clock>,
    /// Slices of the plan.
    pub plan_slices: PlanSlices,
    /// The division of capacity between namespaces.
    pub shares: ShareTable,
    /// The limit of clones in the whole cluster, as a share of a job's own slot-seconds.
    pub clone_budget: Option<f64>,
    /// Readers that wait for a copy of the planner's state.
    pub copies: CopyRequests,
    /// Notes the polls under way.
    pub watch: Watch,
    /// Prometheus metrics.
    pub metrics: Arc<Metrics>,
    /// The sidecar.
    pub agent: AgentSettings,
    /// This process's memory of each job. shed can lose all of it.
    pub job_memories: JobMemories,
    /// Estimates for running jobs from earlier jobs. shed can lose them, too.
    pub forecasts: ForecastTable,
    /// What the planner has learned from past jobs. shed can lose that, too.
    pub experience: LatestExperience,
    /// The recording of the planner's input and decisions, if enabled.
    pub recording: Option<Arc<shed_record::Recorder>>,
}

/// This process's memory of each job.
#[derive(Default)]
pub struct JobMemories(Mutex<Remembered>);

#[derive(Default)]
struct Remembered {
    jobs: HashMap<Arc<str>, JobMemory>,
    /// Jobs whose [`PlannedMemory`] may have been changed since the planner last took them.
    touched: HashSet<Arc<str>>,
}

/// This process's memory of one job. Its instants are of the process's own clock.
#[derive(Clone, Default)]
pub struct JobMemory {
    /// What the planner's facts depend on.
    pub planned: Marked<PlannedMemory>,
    /// The result of validating its specification.
    pub validated: Option<Validation>,
    /// The requests of one of its attempts by its template, for the last validation that they were read from.
    pub demand: Option<(Weak<ValidatedJob>, Resources)>,
    /// The nodes on which its attempts can run, as far as known.
    pub placement: Placement,
    /// The limit of active jobs of its namespace, if the job waits for one of these places.
    pub awaits_place_of: Option<u32>,
    /// What is estimated of the workflow's run that it is a stage of, after the last pass that looked at it.
    pub workflow: Option<WorkflowEstimate>,
    /// Its calibrated PoCD after the last pass that looked at it.
    pub calibrated: Option<f64>,
    /// What the planner would have done for it, if it only observes.
    pub observed: Option<ObservedClones>,
    /// What only its reconciler remembers.
    pub reconcile: ReconcileMemory,
}

/// What the planner's facts about a job depend on: after a change the next pass looks at the job again.
#[derive(Clone, Default)]
pub struct PlannedMemory {
    /// The newest copy of the job that was seen: in the watch, in the answer to a write, or in a live read.
    pub newest: Option<Arc<DeadlineJob>>,
    /// Observations of its pods.
    pub traces: Traces,
    /// Why and until when nothing is launched, as attempts could not start.
    pub backoff: Option<Backoff>,
    /// The apiserver's answers to creations of its pods.
    pub creations: Creations,
    /// When its claims were last checked, and the message about them.
    pub claims: Option<(Instant, Option<String>)>,
    /// When its deadline was last evaluated, and the job's generation then.
    pub weighed: Option<(Instant, i64)>,
    /// The last published verdict about the deadline.
    pub reported: Option<ReportedFeasibility>,
    /// Nodes where its attempts recently failed to start or were disrupted.
    pub troubled: TroubledNodes,
    /// Its quarantine, if it is in one or was.
    pub quarantine: crate::quarantine::QuarantineMemory,
}

/// A value that notes that it may have been changed.
#[derive(Clone, Default)]
pub struct Marked<T> {
    value: T,
    is_marked: bool,
}

impl<T> Marked<T> {
    /// For changes that need no mark: the planner makes them itself, or a watch reports them.
    pub fn unmarked(&mut self) -> &mut T {
        &mut self.value
    }
}

impl<T> Deref for Marked<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for Marked<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.is_marked = true;
        &mut self.value
    }
}

/// What a job's reconciler remembers and the planner does not read.
#[derive(Clone, Default)]
pub struct ReconcileMemory {
    /// The newest copy of the batch/v1 Job that it represents.
    pub newest_batch: Option<Arc<Job>>,
    /// When its ledger was last written, and how much that was.
    pub last_write: Option<LastWrite>,
    /// Deletes and releases of its pods that the watch has not shown yet.
    pub done_writes: DoneWrites,
    /// The annotations of its running attempts.
    pub annotated: AnnotatedAttempts,
    /// The version on which shed reported last that it waits for memory. The watch may show it for long after that.
    pub reported_crowded: Option<JobVersion>,
    /// Whether shed has checked its template for reserved labels and reported them.
    pub reserved_reported: bool,
    /// Whether shed has reported that the job's object is too large to be written.
    pub too_large_reported: bool,
    /// Whether shed has reported that the apiserver refuses to delete or release its pods.
    pub refusal_reported: bool,
    /// Whether shed has reported that it does not run the job, because a newer operator has its
    /// ledger.
    pub stands_aside: bool,
    /// The obstacle of its waiting tasks.
    pub waiting: pending_tasks::Remembered,
    /// Its remaining budget for events of attempts.
    pub events: EventBudget,
    /// Writes of the ledger whose outcome is unknown.
    pub unanswered: Vec<UnansweredWrite>,
}

impl PlannedMemory {
    /// The newest copy of the job that was seen, with this one. It is kept until a newer one is seen, so a reader with
    /// an older copy gets it too. In general it is the watch's own copy and takes no memory.
    pub fn newest(&mut self, seen: &Arc<DeadlineJob>) -> Arc<DeadlineJob> {
        let before = self.newest.take();
        let newer = before.filter(|before| job_version(before) > job_version(seen));
        Arc::clone(
            self.newest
                .insert(newer.unwrap_or_else(|| Arc::clone(seen))),
        )
    }
}

impl JobMemory {
    /// The last known obstacle to creating, placing or starting its attempts.
    pub fn blocked(&self) -> Option<Blocked> {
        let unplaced = || self.placement.blocked().cloned();
        let stuck = || {
            self.planned
                .backoff
                .as_ref()
                .map(|backoff| backoff.blocked.clone())
        };
        self.planned
            .creations
            .blocked()
            .or_else(unplaced)
            .or_else(stuck)
    }
}

impl JobMemories {
    /// Reads or changes a job's memory.
    pub fn with<T>(&self, job: &Arc<str>, look: impl FnOnce(&mut JobMemory) -> T) -> T {
        let Remembered { jobs, touched } = &mut *self.0.lock();
        let memory = jobs.entry(Arc::clone(job)).or_default();
        let found = look(memory);
        if std::mem::take(&mut memory.planned.is_marked) {
            touched.insert(Arc::clone(job));
        }
        found
    }

    /// The jobs whose [`PlannedMemory`] may have been changed since the last call.
    pub fn take_touched(&self) -> HashSet<Arc<str>> {
        std::mem::take(&mut self.0.lock().touched)
    }

    /// Reads a job's memory, if there is one.
    pub fn peek<T>(&self, job: &str, read: impl FnOnce(&JobMemory) -> T) -> Option<T> {
        self.0.lock().jobs.get(job).map(read)
    }

    /// Forgets a job, as a crash of the process would. Like a new process, this one never decides on an older ledger.
    pub fn forget(&self, job: &str) {
        let mut job_memories = self.0.lock();
        if let Some(memory) = job_memories.jobs.get_mut(job) {
            let newest = memory.planned.newest.take();
            *memory = JobMemory::default();
            memory.planned.newest = newest;
        }
        job_memories.touched.insert(job.into());
    }

    /// Changes what the planner keeps of a job, if there is a memory of it.
    pub fn change(&self, job: &Arc<str>, change: impl FnOnce(&mut JobMemory)) {
        if let Some(memory) = self.0.lock().jobs.get_mut(job) {
            change(memory);
        }
    }

    /// Forgets every job that is not there.
    pub fn retain(&self, is_there: impl Fn(&str) -> bool) {
        let mut job_memories = self.0.lock();
        job_memories.jobs.retain(|uid, _| is_there(uid));
        let Remembered { jobs, touched } = &mut *job_memories;
        touched.retain(|uid| jobs.contains_key(uid));
    }

    /// Whether a report or a record about a job is still due.
    pub fn is_owed(&self, job: &str) -> bool {
        let job_memories = self.0.lock();
        let is_owed = |memory: &JobMemory| {
            memory.planned.quarantine.is_unwritten() || !memory.reconcile.unanswered.is_empty()
        };
        job_memories.jobs.get(job).is_some_and(is_owed)
    }

    /// Whether each of these pods was let go by a write that the watch has not shown yet.
    pub fn has_released(&self, job: &str, pods: &[Arc<PodFacts>], ticks: Instant) -> bool {
        let job_memories = self.0.lock();
        let Some(memory) = job_memories.jobs.get(job) else {
            return pods.is_empty();
        };
        let released = &memory.reconcile.done_writes.releases;
        let is_done = |pod: &Arc<PodFacts>| pod.terminal && released.has(&pod.uid, ticks);
        pods.iter().all(is_done)
    }

    /// Forgets a job that has nothing to do, unless a newer copy was seen than the watch shows.
    pub fn settle(&self, job: &str, shown: JobVersion) {
        let mut job_memories = self.0.lock();
        let newest = job_memories
            .jobs
            .get(job)
            .and_then(|memory| memory.planned.newest.as_ref());
        if newest.is_none_or(|newest| job_version(newest) <= shown) {
            job_memories.jobs.remove(job);
            job_memories.touched.remove(job);
        }
    }

    /// The newest copy of the job that was seen, with this one.
    pub fn newest(&self, seen: &Arc<DeadlineJob>) -> Arc<DeadlineJob> {
        let uid: Arc<str> = seen.metadata.uid.as_deref().unwrap_or_default().into();
        self.with(&uid, |memory| memory.planned.unmarked().newest(seen))
    }
}

impl Context {
    /// The job as a pass decides on it: the newest copy that was seen. A pass asks once, after it has waited for its
    /// place. `seen` is the copy that it began with. None if the job is gone, or has had nothing to do since then.
    pub fn newest(&self, seen: &Arc<DeadlineJob>) -> Option<Arc<DeadlineJob>> {
        let newest = self.job_memories.newest(seen);
        let uid = seen.metadata.uid.as_deref().unwrap_or_default();
        match self.stores.jobs.get(uid)? {
            WatchedJob::Live(shown, _) => Some(self.job_memories.newest(&shown)),
            WatchedJob::Skeleton(shown) => {
                (shown.version <= job_version(&newest)).then_some(newest)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{DeadlineJobStatus, LEDGER_FORM, Ledger};
    use crate::fixtures;

    fn at_revision(revision: i64) -> Arc<DeadlineJob> {
        let mut job = fixtures::job("");
        job.status = Some(DeadlineJobStatus {
            ledger: Some(Ledger {
                revision,
                ..Ledger::default()
            }),
            ..DeadlineJobStatus::default()
        });
        Arc::new(job)
    }

    #[test]
    fn the_newest_copy_is_never_forgotten_for_an_older_one() {
        let job_memories = JobMemories::default();
        let uid: Arc<str> = at_revision(0).metadata.uid.as_deref().unwrap().into();
        let revision = |seen| job_version(&job_memories.newest(&at_revision(seen))).1;
        job_memories.with(&uid, |memory| memory.planned.newest = Some(at_revision(5)));
        assert_eq!([3, 6, 3].map(revision), [5, 6, 6]);
        job_memories.forget(&uid);
        assert_eq!(revision(3), 6, "not after a crash of its reconcile");
        let with_generation = |generation| {
            let mut job = Arc::unwrap_or_clone(at_revision(6));
            job.metadata.generation = Some(generation);
            job_memories.newest(&Arc::new(job)).metadata.generation
        };
        assert_eq!([2, 1].map(with_generation), [Some(2), Some(2)]);
    }

    #[test]
    fn an_older_copy_hides_no_ledger_in_a_newer_form() {
        let job_memories = JobMemories::default();
        let _ = job_memories.newest(&at_revision(5));
        // Nothing is read of a ledger in a newer form, its revision neither.
        let mut watched = Arc::unwrap_or_clone(at_revision(0));
        watched.metadata.resource_version = Some("8".to_owned());
        let ledger = watched
            .status
            .as_mut()
            .and_then(|status| status.ledger.as_mut());
        ledger.unwrap().form = LEDGER_FORM + 1;
        let newest = job_memories.newest(&Arc::new(watched));
        let ledger = newest.ledger();
        assert_eq!(ledger.unwrap().form, LEDGER_FORM + 1);
    }
}
