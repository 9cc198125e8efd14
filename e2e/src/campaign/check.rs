//! Invariants of every state of a history. The letters are those of docs/develop/faults.md.

mod attempts;
mod batch;
mod size;
mod waits;

pub use self::waits::{Capacity, Evidence, outlasted, waits};

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use shed::adopt;
use shed::api::ledger::invariants::{LedgerFault, faults};
use shed::api::{self, AttemptEntry, DeadlineJob, Ledger};
use shed_core::ids::TaskIndex;
use shed_core::snapshot::KillKind;

use super::foreign::is_foreign;
use super::history::{Change, Entry};
use super::states::is_refused;
use crate::jobs::{is_true, node_of, terminated};
use crate::wait::{is_deleted, is_over, phase};

/// The context of a check in addition to the history.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// Most attempts that fit into the capacity at once.
    pub capacity: usize,
    /// Objects up to this version existed before the history began.
    pub begins_at: u64,
    /// Uids of pods that the operator deleted; what others delete is their business.
    pub deleted: BTreeSet<String>,
    /// Jobs whose pods can't be placed: one without a node takes no capacity.
    pub troubled: BTreeSet<String>,
    /// Jobs that a user makes too large.
    pub bloated: BTreeSet<String>,
    /// Whether everything was deleted at the end.
    pub emptied: bool,
}

/// A job's uid, a task and an attempt's number.
pub type AttemptId = (String, u32, u32);

/// A history that is gone through, state by state.
#[derive(Default)]
pub struct Replay {
    known: Known,
    version: u64,
    jobs: BTreeMap<String, (DeadlineJob, Ledger)>,
    pods: BTreeMap<String, Pod>,
    /// batch/v1 Jobs that shed runs.
    batch: BTreeMap<String, Job>,
    /// The pod of an attempt.
    pod_of: BTreeMap<AttemptId, String>,
    /// Attempt numbers that were given out.
    given: BTreeSet<AttemptId>,
    /// Companions of Jobs that ask nothing of shed: a pod of theirs that is deleted has failed.
    plain: BTreeSet<String>,
    /// Uids of pods that had succeeded before they were deleted.
    unspoilt: BTreeSet<String>,
    /// Uids of the pods of each job, by its uid.
    pods_of: BTreeMap<String, BTreeSet<String>>,
    /// Uids of pods that take capacity.
    live: BTreeSet<String>,
    broken: Vec<String>,
}

/// Everything that is broken anywhere in the history, in words; empty if all is well.
pub fn check(entries: &[Entry], known: &Known) -> Vec<String> {
    let mut replay = Replay::new(known.clone());
    for entry in entries {
        replay.take(entry);
    }
    replay.end()
}

/// Whether something of a pod runs, or may still run.
fn holds(pod: &Pod) -> bool {
    match phase(pod) {
        _ if is_over(pod) => false,
        // The apiserver places nothing that is being deleted.
        "Pending" => !is_deleted(pod) || node_of(pod).is_some(),
        _ => true,
    }
}

/// When the first of a pod's containers ended.
fn finished(pod: &Pod) -> Option<Timestamp> {
    Some(terminated(pod)?.finished_at.as_ref()?.0)
}

/// The attempt of a pod; absent if it only looks like one.
pub fn id(pod: &Pod) -> Option<AttemptId> {
    if is_foreign(pod) {
        return None;
    }
    let label = |name: &str| pod.labels().get(name);
    let number = |name: &str| label(name)?.parse::<u32>().ok();
    let job = label(api::LABEL_JOB_UID)?.clone();
    let task = number(api::LABEL_INDEX).or_else(|| number(api::LABEL_TASK))?;
    Some((job, task, number(api::LABEL_ATTEMPT)?))
}

fn attempts(ledger: &Ledger) -> BTreeMap<(u32, u32), &AttemptEntry> {
    let tasks = ledger.tasks.values();
    tasks
        .flat_map(|task| task.attempts.iter().map(|a| ((task.index, a.number), a)))
        .collect()
}

/// The invariant of docs/develop/faults.md that a fault breaks.
fn code(fault: LedgerFault) -> &'static str {
    match fault {
        LedgerFault::Unbalanced
        | LedgerFault::Winners
        | LedgerFault::CountsWentBack
        | LedgerFault::EndTakenBack
        | LedgerFault::WinnerChanged
        | LedgerFault::DeadlineChanged
        | LedgerFault::GrantMoved => "I1",

        LedgerFault::KillChanged | LedgerFault::KillWithoutCause => "I4",
    }
}

impl Replay {
    /// Before the first state.
    pub fn new(known: Known) -> Self {
        Self {
            known,
            ..Self::default()
        }
    }

    /// More pods that the operator deleted. It must be known before the state that shows the deletion.
    pub fn deleted_by_operator(&mut self, uids: BTreeSet<String>) {
        self.known.deleted.extend(uids);
    }

    /// All objects were deleted, so that none may be left at the end.
    pub fn all_deleted(&mut self) {
        self.known.emptied = true;
    }

    /// The next state.
    pub fn take(&mut self, entry: &Entry) {
        self.version = entry.version;
        match &entry.change {
            Change::Job(job) => {
                self.job(job);
                self.held(&job.uid().unwrap_or_default());
            }
            Change::JobGone(job) => self.job_gone(job),
            Change::Pod(pod) => {
                self.pod(pod);
                self.holding(pod);
            }
            Change::PodGone(pod) => self.pod_gone(pod),
            Change::Batch(job) => self.batch(job),
            Change::BatchGone(job) => {
                self.batch.remove(&job.uid().unwrap_or_default());
            }
        }
        let (live, capacity) = (self.live.len(), self.known.capacity);
        self.demand(live <= capacity, || {
            format!("I2: {live} attempts at once, and capacity for {capacity}")
        });
    }

    fn demand(&mut self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            let what = what();
            self.broken.push(format!("at {}: {what}", self.version));
        }
    }

    fn job(&mut self, job: &DeadlineJob) {
        let uid = job.uid().unwrap_or_default();
        self.broken
            .extend(size::too_large(job, &self.known, self.version));
        // No fault makes a reconcile panic or overrun its time.
        self.demand(!is_true(job, api::QUARANTINED), || {
            format!("I9: {} is quarantined", job.name_any())
        });
        let new = match Ledger::from_status(job.status.as_ref()) {
            Ok(ledger) => ledger,
            Err(error) => {
                return self.demand(false, || format!("I1: {}: {error}", job.name_any()));
            }
        };
        let asks_nothing = job.spec.deadline.is_none() && job.spec.progress.is_none();
        if job.spec.is_companion() && asks_nothing {
            self.plain.insert(uid.clone());
        }
        match self.jobs.remove(&uid) {
            Some((_, old)) => {
                self.ledger(&uid, &old, &new);
                self.keeps_quota(job, &old, &new);
                self.lateness(job, &old, &new);
            }
            // A history that begins in the middle of a job's life: nothing to compare with.
            None => {
                let given = attempts(&new);
                let given = given.keys().map(|id| (uid.clone(), id.0, id.1));
                self.given.extend(given);
            }
        }
        self.jobs.insert(uid, (job.clone(), new));
    }

    /// One write of a job's ledger.
    fn ledger(&mut self, uid: &str, old: &Ledger, new: &Ledger) {
        let (before, after) = (attempts(old), attempts(new));
        for fault in faults(old, new) {
            self.demand(false, || {
                format!("{}: {}: {:?}", code(fault), fault.words(), new.counts)
            });
        }
        for id in after.keys().filter(|id| !before.contains_key(id)) {
            let fresh = self.given.insert((uid.to_owned(), id.0, id.1));
            self.demand(fresh, || format!("I1: number {id:?} was given out twice"));
        }
        for (&id, old_entry) in &before {
            self.progressed(uid, id, old_entry, after.get(&id).copied(), new);
        }
        self.failures(uid, old, new);
        for task in new.done.iter().filter(|task| !old.done.contains(*task)) {
            self.won(uid, task, &before);
        }
        self.resume_points(old, new);
    }

    /// Nothing is late before the deadline, whatever a node's clock says: the apiserver's counts.
    fn lateness(&mut self, job: &DeadlineJob, old: &Ledger, new: &Ledger) {
        let deadline = job
            .status
            .as_ref()
            .and_then(|status| status.deadline.as_ref());
        let writes = job.metadata.managed_fields.iter().flatten();
        let written = writes.filter_map(|write| write.time.as_ref()).max();
        let is_early =
            matches!((written, deadline), (Some(written), Some(deadline)) if written < deadline);
        let more = new.counts.late - old.counts.late;
        self.demand(more <= 0 || !is_early, || {
            format!(
                "I1: {more} attempts of {} counted late before the deadline",
                job.name_any()
            )
        });
    }

    /// One attempt that was open before the write.
    fn progressed(
        &mut self,
        uid: &str,
        id: (u32, u32),
        old: &AttemptEntry,
        new: Option<&AttemptEntry>,
        ledger: &Ledger,
    ) {
        let Some(new) = new else {
            let attempt = (uid.to_owned(), id.0, id.1);
            let pod = self.pod_of.get(&attempt).and_then(|uid| self.pods.get(uid));
            let ran = pod.is_some_and(|pod| holds(pod) && !self.fails_by_deletion(uid, pod));
            return self.demand(!ran, || {
                format!("I2: attempt {id:?} was counted while it ran")
            });
        };
        if old.kill.is_some() {
            return;
        }
        let spared = attempts(ledger)
            .into_iter()
            .any(|(other, entry)| other.0 == id.0 && other != id && entry.kill.is_none());
        let needs_survivor = matches!(new.kill, Some(KillKind::Prune | KillKind::Evict));
        self.demand(!needs_survivor || spared, || {
            format!("I4: {id:?} is to die and no sibling is spared")
        });
    }

    /// Whether a pod has failed as it is being deleted, by batch/v1's rule.
    fn fails_by_deletion(&self, job: &str, pod: &Pod) -> bool {
        is_deleted(pod) && self.plain.contains(job)
    }

    /// A killed attempt is never a failure, and a failure has a pod that failed.
    fn failures(&mut self, uid: &str, old: &Ledger, new: &Ledger) {
        let spent = |ledger: &Ledger| ledger.counts.failed + ledger.counts.clone_failed;
        let (before, after) = (attempts(old), attempts(new));
        let failed = before.iter().filter(|(id, entry)| {
            let pod = self.pod_of.get(&(uid.to_owned(), id.0, id.1));
            let pod = pod.and_then(|uid| self.pods.get(uid));
            !after.contains_key(id)
                && entry.kill.is_none()
                && pod.is_some_and(|pod| phase(pod) == "Failed" || self.fails_by_deletion(uid, pod))
        });
        let most = i64::try_from(failed.count()).unwrap_or(i64::MAX);
        let counted = spent(new) - spent(old);
        self.demand(counted <= most, || {
            format!("I1: {counted} failures counted, but only {most} attempts failed by themselves")
        });
    }

    /// A task has a winner now: one of its attempts must have succeeded.
    fn won(&mut self, uid: &str, task: TaskIndex, before: &BTreeMap<(u32, u32), &AttemptEntry>) {
        let succeeded = before.iter().filter(|(id, entry)| {
            let pod = self.pod_of.get(&(uid.to_owned(), id.0, id.1));
            let pod = pod.and_then(|uid| self.pods.get(uid));
            id.0 == task.0
                && pod.is_some_and(|pod| phase(pod) == "Succeeded" && self.counts(pod, entry))
        });
        let has_succeeded = succeeded.count() > 0;
        self.demand(has_succeeded, || {
            format!(
                "I1: task {} has a winner, but no attempt of it succeeded before it was killed",
                task.0
            )
        });
    }

    /// Whether the success of an attempt counts: what shed killed may have ended with 0 because of
    /// that, whatever its node's clock says. An abandoned attempt is not notified, so it counts if it had
    /// ended before.
    fn counts(&self, pod: &Pod, entry: &AttemptEntry) -> bool {
        let uid = pod.uid().unwrap_or_default();
        let is_old = self.version_of(pod) <= self.known.begins_at;
        let had_ended = || {
            let killed = entry.killed_at.map(shed::clock::timestamp);
            finished(pod).is_some_and(|finished| killed.is_some_and(|killed| finished < killed))
        };
        match entry.kill {
            None => true,
            Some(KillKind::Abandon) if had_ended() => true,
            Some(_) => is_old || self.unspoilt.contains(&uid),
        }
    }

    fn version_of(&self, pod: &Pod) -> u64 {
        let version = pod.resource_version().unwrap_or_default();
        version.parse().unwrap_or(self.version)
    }

    fn resume_points(&mut self, old: &Ledger, new: &Ledger) {
        for task in old.tasks.values() {
            let later = new.tasks.get(&task.index);
            let points = (
                task.resume.as_ref(),
                later.and_then(|later| later.resume.as_ref()),
            );
            if let (Some(before), Some(after)) = points {
                self.demand(before.progress <= after.progress, || {
                    format!("I5: the resume point of task {} went back", task.index)
                });
            }
        }
    }

    /// A job that went away by its time to live must have been done with; one that a user
    /// deleted does not matter.
    fn job_gone(&mut self, job: &DeadlineJob) {
        self.jobs.remove(&job.uid().unwrap_or_default());
    }

    fn ledger_of(&self, job: &str) -> Option<&Ledger> {
        let (job, ledger) = self.jobs.get(job)?;
        // A companion goes with its Job, a moment later.
        let owner = adopt::controller(&job.metadata).filter(|_| job.spec.is_companion());
        let stays = owner.is_none_or(|owner| self.batch.contains_key(&owner.uid));
        (stays && job.metadata.deletion_timestamp.is_none()).then_some(ledger)
    }

    fn pod(&mut self, pod: &Pod) {
        let uid = pod.uid().unwrap_or_default();
        if phase(pod) == "Succeeded" && !is_deleted(pod) {
            self.unspoilt.insert(uid.clone());
        }
        let old = self.pods.insert(uid.clone(), pod.clone());
        let Some(attempt) = id(pod) else { return };
        if old.is_none() {
            self.created(pod, &attempt, &uid);
        }
        let tracked = |pod: &Pod| {
            let finalizers = pod.finalizers();
            let own = [api::ATTEMPT_FINALIZER, api::JOB_TRACKING_FINALIZER];
            finalizers.iter().any(|name| own.contains(&name.as_str()))
        };
        let Some(old) = old else { return };
        if is_deleted(pod) && !is_deleted(&old) && self.known.deleted.contains(&uid) {
            self.deleted(pod, &attempt);
        }
        if tracked(&old) && !tracked(pod) {
            let open = self.entry(&attempt).is_some();
            self.demand(!open, || {
                format!(
                    "I1: {} was let go before its end was counted",
                    pod.name_any()
                )
            });
        }
    }

    /// The open entry of an attempt, as long as its job is there.
    fn entry(&self, attempt: &AttemptId) -> Option<&AttemptEntry> {
        self.ledger_of(&attempt.0)?.attempt(attempt.1, attempt.2)
    }

    fn created(&mut self, pod: &Pod, attempt: &AttemptId, uid: &str) {
        let before = self.pod_of.insert(attempt.clone(), uid.to_owned());
        self.demand(before.is_none(), || {
            format!("I1: attempt {attempt:?} had two pods")
        });
        if self.version <= self.known.begins_at || self.ledger_of(&attempt.0).is_none() {
            // It may have been counted by then; or its job is going, and the garbage collector takes it.
            return;
        }
        self.has_begun(pod);
        let alive = self
            .entry(attempt)
            .is_some_and(|entry| entry.kill.is_none());
        self.demand(alive, || {
            format!(
                "I2: {} was created and is not in the ledger",
                pod.name_any()
            )
        });
    }

    fn deleted(&mut self, pod: &Pod, attempt: &AttemptId) {
        if self.ledger_of(&attempt.0).is_none() {
            return;
        }
        let killed = match self.entry(attempt) {
            Some(entry) => entry.kill.is_some(),
            // Its end is counted, so it must have ended.
            None => !holds(pod),
        };
        self.demand(killed, || {
            format!(
                "I4: {} was deleted before its kill was recorded",
                pod.name_any()
            )
        });
    }

    /// Ends the history: all violations, in words.
    pub fn end(mut self) -> Vec<String> {
        let left: Vec<String> = self
            .jobs
            .values()
            .filter(|(job, ledger)| {
                !is_refused(job) && (!ledger.finished || !attempts(ledger).is_empty())
            })
            .map(|(job, _)| job.name_any())
            .collect();
        self.demand(left.is_empty(), || {
            format!("I3: jobs that have not come to an end: {left:?}")
        });
        if self.known.emptied {
            let pods: Vec<String> = self.pods.values().map(ResourceExt::name_any).collect();
            let no_job = self.jobs.is_empty() && self.batch.is_empty();
            self.demand(pods.is_empty() && no_job, || {
                format!("I8: left after the deletion of all jobs: {pods:?}")
            });
        }
        self.broken
    }
}

#[cfg(test)]
mod tests;
