//! State that reconcilers and the planner share.

pub mod backoff;
pub mod creation;
pub mod done_writes;
pub mod event_budget;
pub mod feasibility;
mod observation;
pub mod pending_tasks;
pub mod placement;
mod quarantine;
pub mod spacing;
pub mod unanswered_writes;
pub mod validation;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use k8s_openapi::api::batch::v1::Job;
use shed_core::resources::Resources;
use shed_core::time::Instant;

use crate::api::{DeadlineJob, LEDGER_FORM};
use crate::attempt_pod::AgentSettings;
use crate::clock::Clock;
use crate::cluster::pod::PodFacts;
use crate::cluster::{Stores, job_version, version};
use crate::context::backoff::{Backoff, Blocked};
use crate::context::creation::Creations;
use crate::context::done_writes::DoneWrites;
use crate::context::event_budget::EventBudget;
use crate::context::feasibility::Told;
use crate::context::placement::Placement;
use crate::context::spacing::LastWrite;
use crate::context::unanswered_writes::UnansweredWrite;
use crate::context::validation::Validation;
use crate::durable_state::LatestExperience;
use crate::forecast::ForecastTable;
use crate::job::facts::Traces;
use crate::job::troubled_nodes::TroubledNodes;
use crate::metrics::Metrics;
use crate::observed_clones::ObservedClones;
use crate::plan_slices::Board;
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
    pub board: Board,
    /// Readers that wait for a copy of the planner's state.
    pub copies: CopyRequests,
    /// Notes the polls under way.
    pub watch: Watch,
    /// Prometheus metrics.
    pub metrics: Arc<Metrics>,
    /// The sidecar.
    pub agent: AgentSettings,
    /// This process's memory of each job. shed can lose all of it.
    pub memos: Memos,
    /// Estimates for running jobs from earlier jobs. shed can lose them, too.
    pub forecasts: ForecastTable,
    /// What the planner has learned from past jobs. shed can lose that, too.
    pub experience: LatestExperience,
    /// The recording of the planner's input and decisions, if enabled.
    pub recording: Option<Arc<shed_record::Recorder>>,
}

/// This process's memory of each job.
#[derive(Default)]
pub struct Memos(Mutex<Remembered>);

#[derive(Default)]
struct Remembered {
    jobs: HashMap<Arc<str>, Memo>,
    /// Jobs whose memos others than the planner may have changed since it last asked.
    touched: HashSet<Arc<str>>,
}

/// This process's memory of one job. Its instants are of the process's own clock.
#[derive(Clone, Default)]
pub struct Memo {
    /// The job as the last own write left it: newer than the watch for a while.
    pub newest: Option<Arc<DeadlineJob>>,
    /// The result of validating its specification.
    pub validated: Option<Validation>,
    /// The requests of one of its attempts by its template, for the last validation that they were read from.
    pub demand: Option<(Weak<ValidatedJob>, Resources)>,
    /// Observations of its pods.
    pub traces: Traces,
    /// Why and until when nothing is launched, as attempts could not start.
    pub backoff: Option<Backoff>,
    /// The apiserver's answers to creations of its pods.
    pub creations: Creations,
    /// The nodes on which its attempts can run, as far as known.
    pub placement: Placement,
    /// When its claims were last checked, and the message about them.
    pub claims: Option<(Instant, Option<String>)>,
    /// When its deadline was last evaluated, and the job's generation then.
    pub weighed: Option<(Instant, i64)>,
    /// The last published verdict about the deadline.
    pub told: Option<Told>,
    /// Its calibrated PoCD after the last pass that looked at it.
    pub calibrated: Option<f64>,
    /// What the planner would have done for it, if it only observes.
    pub observed: Option<ObservedClones>,
    /// Nodes where its attempts recently failed to start or were disrupted.
    pub troubled: TroubledNodes,
    /// What only its reconciler remembers.
    pub reconcile: ReconcileMemo,
    /// Its quarantine, if it is in one or was.
    pub quarantine: crate::quarantine::Memo,
}

/// What a job's reconciler remembers and the planner does not read.
#[derive(Clone, Default)]
pub struct ReconcileMemo {
    /// The batch/v1 Job that it represents, as the last own write left it.
    pub newest_batch: Option<Arc<Job>>,
    /// When PoCD was last written.
    pub pocd_written: Option<Instant>,
    /// When its ledger was last written, and how much that was.
    pub last_write: Option<LastWrite>,
    /// Since when a write waits for more of its kind.
    pub merges_since: Option<Instant>,
    /// Deletes and releases of its pods that the watch has not shown yet.
    pub done_writes: DoneWrites,
    /// Whether shed has checked its template for reserved labels and reported them.
    pub reserved_told: bool,
    /// Whether shed has reported that the job's object is too large to be written.
    pub too_large_told: bool,
    /// Whether shed has reported that the apiserver refuses to delete or release its pods.
    pub refusal_told: bool,
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

impl Memo {
    /// The last known obstacle to creating, placing or starting its attempts.
    #[must_use]
    pub fn blocked(&self) -> Option<Blocked> {
        let unplaced = || self.placement.blocked().cloned();
        let stuck = || self.backoff.as_ref().map(|backoff| backoff.blocked.clone());
        self.creations.blocked().or_else(unplaced).or_else(stuck)
    }
}

impl Memos {
    /// Looks at or changes a job's memo. The planner's next pass looks at the job again.
    pub fn with<T>(&self, job: &Arc<str>, look: impl FnOnce(&mut Memo) -> T) -> T {
        let mut memos = self.lock();
        if !memos.touched.contains(job) {
            memos.touched.insert(Arc::clone(job));
        }
        look(memos.jobs.entry(Arc::clone(job)).or_default())
    }

    /// The same, for looks that add nothing that the planner's facts depend on.
    pub fn look<T>(&self, job: &Arc<str>, look: impl FnOnce(&mut Memo) -> T) -> T {
        look(self.lock().jobs.entry(Arc::clone(job)).or_default())
    }

    /// The jobs whose memos [`Memos::with`] and others have changed since the last call.
    #[must_use]
    pub fn take_touched(&self) -> HashSet<Arc<str>> {
        std::mem::take(&mut self.lock().touched)
    }

    /// Reads a job's memo, if there is one.
    pub fn peek<T>(&self, job: &str, read: impl FnOnce(&Memo) -> T) -> Option<T> {
        self.lock().jobs.get(job).map(read)
    }

    /// Forgets a job, as a crash of the process would.
    pub fn forget(&self, job: &str) {
        let mut memos = self.lock();
        memos.jobs.remove(job);
        memos.touched.insert(job.into());
    }

    /// Changes a job's memo, if there is one, as [`Memos::look`] does.
    pub fn change(&self, job: &Arc<str>, change: impl FnOnce(&mut Memo)) {
        if let Some(memo) = self.lock().jobs.get_mut(job) {
            change(memo);
        }
    }

    /// Forgets every job that is not there.
    pub fn retain(&self, is_there: impl Fn(&str) -> bool) {
        let mut memos = self.lock();
        memos.jobs.retain(|uid, _| is_there(uid));
        let Remembered { jobs, touched } = &mut *memos;
        touched.retain(|uid| jobs.contains_key(uid));
    }

    /// Whether a report or a record about a job is still due.
    #[must_use]
    pub fn is_owed(&self, job: &str) -> bool {
        let memos = self.lock();
        let is_owed =
            |memo: &Memo| memo.quarantine.is_unwritten() || !memo.reconcile.unanswered.is_empty();
        memos.jobs.get(job).is_some_and(is_owed)
    }

    /// Whether each of these pods was let go by a write that the watch has not shown yet.
    #[must_use]
    pub fn has_released(&self, job: &str, pods: &[Arc<PodFacts>], ticks: Instant) -> bool {
        let memos = self.lock();
        let Some(memo) = memos.jobs.get(job) else {
            return pods.is_empty();
        };
        let released = &memo.reconcile.done_writes.releases;
        let is_done = |pod: &Arc<PodFacts>| pod.terminal && released.has(&pod.uid, ticks);
        pods.iter().all(is_done)
    }

    /// Forgets a job that has nothing to do, unless an own write is newer than the watch.
    pub fn settle(&self, job: &str, shown: (i64, Option<i64>)) {
        let mut memos = self.lock();
        let newest = memos.jobs.get(job).and_then(|memo| memo.newest.as_ref());
        if newest.is_none_or(|own| job_version(own) <= shown) {
            memos.jobs.remove(job);
            memos.touched.remove(job);
        }
    }

    /// The version of each job as the last own write left it.
    #[must_use]
    pub fn own_versions(&self) -> Vec<(Arc<str>, u64)> {
        let memos = self.lock();
        let own = memos.jobs.iter().filter_map(|(uid, memo)| {
            let newest = memo.newest.as_ref()?;
            Some((Arc::clone(uid), version(&newest.metadata)?))
        });
        own.collect()
    }

    /// The newer of the watched job and the result of the last own write or live read.
    #[must_use]
    pub fn newest(&self, watched: &Arc<DeadlineJob>) -> Arc<DeadlineJob> {
        let uid: Arc<str> = watched.metadata.uid.as_deref().unwrap_or_default().into();
        self.look(&uid, |memo| {
            // Nothing is read of a ledger in a newer form, its revision neither.
            let own = memo
                .newest
                .as_ref()
                .filter(|own| !has_newer_form(watched) && job_version(own) > job_version(watched));
            if let Some(own) = own {
                return Arc::clone(own);
            }
            memo.newest = None;
            Arc::clone(watched)
        })
    }

    // A panic while the lock was held leaves valid memos, and memos can be lost.
    fn lock(&self) -> MutexGuard<'_, Remembered> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn has_newer_form(job: &DeadlineJob) -> bool {
    let status = job.status.as_ref();
    let ledger = status.and_then(|status| status.ledger.as_ref());
    ledger.is_some_and(|ledger| ledger.form > LEDGER_FORM)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{DeadlineJobStatus, Ledger};
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
    fn own_writes_are_read_until_the_watch_has_caught_up() {
        let memos = Memos::default();
        let uid: Arc<str> = at_revision(0).metadata.uid.as_deref().unwrap().into();
        memos.with(&uid, |memo| memo.newest = Some(at_revision(5)));
        assert_eq!(job_version(&memos.newest(&at_revision(3))).0, 5);
        assert_eq!(job_version(&memos.newest(&at_revision(6))).0, 6);
        assert_eq!(
            job_version(&memos.newest(&at_revision(3))).0,
            3,
            "the own copy is dropped"
        );
    }

    #[test]
    fn an_own_copy_hides_no_ledger_in_a_newer_form() {
        let memos = Memos::default();
        let uid: Arc<str> = at_revision(0).metadata.uid.as_deref().unwrap().into();
        memos.with(&uid, |memo| memo.newest = Some(at_revision(5)));
        let mut watched = Arc::unwrap_or_clone(at_revision(0));
        let ledger = watched
            .status
            .as_mut()
            .and_then(|status| status.ledger.as_mut());
        ledger.unwrap().form = LEDGER_FORM + 1;
        assert!(has_newer_form(&memos.newest(&Arc::new(watched))));
    }
}
