//! Invariants of the status of a batch/v1 Job that shed runs: batch/v1's rules for its writer, and that the
//! companion's ledger records everything first.

use std::collections::BTreeSet;

use k8s_openapi::api::batch::v1::{Job, JobStatus};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use shed::adopt;
use shed::api::{self, DeadlineJob, Ledger};
use shed_core::index_set::IndexSet;
use shed_core::snapshot::Conclusion;

use super::Replay;

/// Conditions that are never taken back.
const FOR_GOOD: [&str; 4] = [
    api::SUCCESS_CRITERIA_MET,
    api::COMPLETE,
    api::FAILURE_TARGET,
    api::FAILED,
];
/// Each with the one that must be there with it.
const ANNOUNCED: [(&str, &str); 2] = [
    (api::COMPLETE, api::SUCCESS_CRITERIA_MET),
    (api::FAILED, api::FAILURE_TARGET),
];

fn true_ones(status: &JobStatus) -> BTreeSet<&str> {
    let conditions = status.conditions.iter().flatten();
    conditions
        .filter(|own| own.status == "True")
        .map(|own| own.type_.as_str())
        .collect()
}

/// Succeeded and failed.
fn counts(status: &JobStatus) -> (i32, i32) {
    (
        status.succeeded.unwrap_or_default(),
        status.failed.unwrap_or_default(),
    )
}

/// The attempts that may still win.
fn live(ledger: &Ledger) -> usize {
    let attempts = ledger.tasks.values().flat_map(|task| &task.attempts);
    attempts.filter(|attempt| attempt.kill.is_none()).count()
}

fn completed(status: &JobStatus) -> IndexSet {
    let indexes = status.completed_indexes.as_deref().unwrap_or_default();
    indexes.parse().unwrap_or_default()
}

impl Replay {
    /// One write of a Job.
    pub(super) fn batch(&mut self, job: &Job) {
        let uid = job.uid().unwrap_or_default();
        let old = self.batch.insert(uid.clone(), job.clone());
        let new = job.status.clone().unwrap_or_default();
        self.is_consistent(job, &new);
        let Some(old) = old else { return };
        let was_finished = shed::reconcile::job_status::is_finished(&old);
        let old = old.status.unwrap_or_default();
        if old == new {
            return;
        }
        let name = job.name_any();
        self.demand(!was_finished, || {
            format!("I1: the status of {name} changed after its end")
        });
        self.only_adds(&name, &old, &new);
        self.follows_ledger(&uid, &name, &new);
    }

    /// Rules of any status by itself.
    fn is_consistent(&mut self, job: &Job, status: &JobStatus) {
        let (name, is) = (job.name_any(), true_ones(status));
        for (end, before) in ANNOUNCED {
            self.demand(!is.contains(end) || is.contains(before), || {
                format!("I1: {name} has {end} without {before}")
            });
        }
        let both = is.contains(api::SUCCESS_CRITERIA_MET) && is.contains(api::FAILURE_TARGET);
        self.demand(!both, || format!("I1: {name} both succeeds and fails"));
        let has_time = status.completion_time.is_some();
        self.demand(has_time == is.contains(api::COMPLETE), || {
            format!("I1: {name} has a completion time without Complete, or the reverse")
        });
        let live = [status.active, status.ready, status.terminating];
        let rests = live.iter().all(|count| count.unwrap_or(0) == 0);
        self.demand(
            !shed::reconcile::job_status::is_finished(job) || rests,
            || format!("I1: {name} has ended and counts live pods: {live:?}"),
        );
        // Zero values are not written there.
        let [active, ready] = [status.active, status.ready].map(|count| count.unwrap_or(0));
        self.demand(ready <= active, || {
            format!("I1: {name} has more ready pods than active ones: {live:?}")
        });
    }

    /// Values that never decrease.
    fn only_adds(&mut self, name: &str, old: &JobStatus, new: &JobStatus) {
        let (was, is) = (true_ones(old), true_ones(new));
        let kept = |type_: &&str| !was.contains(type_) || is.contains(type_);
        self.demand(FOR_GOOD.iter().all(kept), || {
            format!("I1: a condition of {name} was taken back: {was:?}, then {is:?}")
        });
        let ((won, lost), (now_won, now_lost)) = (counts(old), counts(new));
        self.demand(won <= now_won && lost <= now_lost, || {
            format!("I1: counts of {name} went back")
        });
        let (before, after) = (completed(old), completed(new));
        self.demand(before.iter().all(|index| after.contains(index)), || {
            format!("I1: an index of {name} is not complete any more")
        });
        let start_kept = old.start_time.is_none() || old.start_time == new.start_time;
        self.demand(start_kept || is.contains(api::SUSPENDED), || {
            format!("I1: {name} started at another time than before")
        });
    }

    /// A write of a companion's ledger. With what it launches, no more attempts live than the quota of its Job has admitted:
    /// one for each unfinished task, up to `parallelism`.
    pub(super) fn keeps_quota(&mut self, companion: &DeadlineJob, old: &Ledger, new: &Ledger) {
        let owner = adopt::controller(&companion.metadata);
        let job = owner.and_then(|owner| self.batch.get(&owner.uid));
        let Some(job) = job.filter(|job| adopt::kueue::is_queued(job)) else {
            return;
        };
        let spec = job.spec.clone().unwrap_or_default();
        let parallelism = spec.parallelism.unwrap_or(1).max(0) as usize;
        let ended = (new.done.len() + new.failed.len()) as usize;
        let tasks = spec.completions.unwrap_or(1).max(0) as usize;
        let admitted = parallelism.min(tasks.saturating_sub(ended));
        let (before, now) = (live(old), live(new));
        self.demand(now <= before || now <= admitted, || {
            format!("I14: {now} attempts live, and the quota admits {admitted}")
        });
    }

    fn follows_ledger(&mut self, uid: &str, name: &str, status: &JobStatus) {
        let Some(ledger) = self.companion_of(uid) else {
            return;
        };
        let reported = i64::from(ledger.done.len());
        let (recorded, ends) = ((reported, ledger.counts.failed), ledger.finished);
        let succeeds = ends && ledger.ending.is_some_and(Conclusion::is_success);
        let (won, lost) = counts(status);
        let said = (i64::from(won), i64::from(lost));
        self.demand(said.0 <= recorded.0 && said.1 <= recorded.1, || {
            format!("I1: {name} says {said:?} won and failed, its ledger {recorded:?}")
        });
        let is = true_ones(status);
        let (complete, failed) = (is.contains(api::COMPLETE), is.contains(api::FAILED));
        let allowed = (!complete || succeeds) && (!failed || (ends && !succeeds));
        self.demand(allowed, || {
            format!("I1: {name} has an end that its ledger does not say: {is:?}")
        });
    }

    fn companion_of(&self, uid: &str) -> Option<&Ledger> {
        let mut jobs = self.jobs.values();
        let is_its = |owner: &str| owner == uid;
        let found = jobs.find(|(job, _)| {
            adopt::controller(&job.metadata).is_some_and(|owner| is_its(&owner.uid))
        });
        found.map(|(_, ledger)| ledger)
    }

    /// No pod is made before the Job's status says that it has begun.
    pub(super) fn has_begun(&mut self, pod: &Pod) {
        let owners = pod.owner_references();
        let owner = owners.iter().find(|owner| owner.kind == "Job");
        let Some(job) = owner.and_then(|owner| self.batch.get(&owner.uid)) else {
            return;
        };
        let status = job.status.as_ref();
        let begun = status.is_some_and(|status| status.start_time.is_some());
        self.demand(begun, || {
            format!(
                "I1: {} was created before its Job's status says that it has begun",
                pod.name_any()
            )
        });
    }
}

#[cfg(test)]
mod tests;
