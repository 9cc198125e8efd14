//! Jobs that are quarantined. The planner decides nothing for them, and does not run the code over
//! them that may have failed. Their ledgers still hold capacity, because shed tries these jobs
//! again.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use k8s_openapi::api::core::v1::PodSpec;
use kube::runtime::reflector::ObjectRef;
use shed_core::ids::JobKey;
use shed_core::memory::{Memory, PolicyState};
use shed_core::resources::Resources;
use shed_core::snapshot::{JobSnapshot, NodeIndex, TaskSnapshot};
use shed_core::time::Instant;

use crate::api::{DeadlineJob, Ledger};
use crate::cluster::identity::Owner;
use crate::cluster::pod::AttemptId;
use crate::cluster::requests;
use crate::context::Context;
use crate::planner::ending_job;
use crate::quarantine::Crash;
use crate::watchdog::Poll;

/// Looks at jobs one by one, and sets those apart that are quarantined or that can't be looked at.
pub(super) struct Apart<'a> {
    context: &'a Context,
    poll: Poll,
    jobs: Vec<Arc<DeadlineJob>>,
}

/// Facts about the jobs that were set apart, for use after the observation.
#[derive(Default)]
pub struct SetApart {
    /// Jobs to reconcile, so that the reconciler records their quarantine.
    pub accused: Vec<ObjectRef<DeadlineJob>>,
    /// The policy's states for them.
    states: Vec<(JobKey, String)>,
}

impl SetApart {
    /// Keeps the policy's state for a job while nothing is decided for it. Returns whether that changed the memory.
    pub fn keep_states(&self, memory: &mut Memory) -> bool {
        let mut has_changed = false;
        for (key, durable) in &self.states {
            let known = memory.state(key).cloned().unwrap_or_default();
            if known.durable.is_empty() {
                let durable = durable.clone();
                has_changed |= !durable.is_empty();
                memory.set_state(key.clone(), PolicyState { durable, ..known });
            }
        }
        has_changed
    }
}

impl<'a> Apart<'a> {
    pub(super) fn begin(context: &'a Context) -> Self {
        Self {
            context,
            poll: context.watch.begin(None),
            jobs: Vec::new(),
        }
    }

    /// Looks at a job, unless it is quarantined. If that panics it is from now on.
    pub(super) fn look<T>(
        &mut self,
        watched: &Arc<DeadlineJob>,
        look: impl FnOnce(&Arc<DeadlineJob>) -> Option<T>,
    ) -> Option<T> {
        let newest = self.context.job_memories.newest(watched);
        let is_leaving = watched.metadata.deletion_timestamp.is_some();
        if !is_leaving && self.context.is_quarantined(&newest) {
            self.jobs.push(newest);
            return None;
        }
        self.poll.goes_on(Some(Arc::clone(&newest)));
        let looked = catch_unwind(AssertUnwindSafe(|| look(&newest)));
        self.poll.goes_on(None);
        looked.unwrap_or_else(|payload| {
            let crash = Crash::panicked(payload.as_ref());
            self.context.accuse(&newest, &crash);
            self.jobs.push(newest);
            None
        })
    }

    /// Owners of the attempts of the jobs that were set apart.
    pub(super) fn owners(&self) -> impl Iterator<Item = Owner> {
        self.jobs.iter().map(|job| Owner::of(&job.metadata))
    }

    /// Capacity that the jobs that were set apart hold.
    pub(super) fn facts(
        &self,
        positions: &BTreeMap<Arc<str>, NodeIndex>,
        now: Instant,
    ) -> Vec<JobSnapshot> {
        let count = i64::try_from(self.jobs.len()).unwrap_or(i64::MAX);
        self.context.metrics.reconciles.quarantined.set(count);
        let jobs = self.jobs.iter();
        jobs.filter_map(|job| facts(self.context, job, positions, now))
            .collect()
    }

    /// Ends the look.
    pub(super) fn end(self) -> SetApart {
        let accused = self.jobs.iter();
        let accused = accused.filter(|job| crate::quarantine::entry(job).is_none());
        let states = self.jobs.iter().filter_map(|job| {
            let uid = job.metadata.uid.as_deref()?;
            let ledger = job.ledger()?;
            Some((JobKey::from(uid), ledger.policy_state.clone()?))
        });
        SetApart {
            accused: accused
                .map(|job| ObjectRef::from_obj(job.as_ref()))
                .collect(),
            states: states.collect(),
        }
    }
}

/// A job with only the attempts that hold capacity; all of them must end.
fn facts(
    context: &Context,
    job: &DeadlineJob,
    positions: &BTreeMap<Arc<str>, NodeIndex>,
    now: Instant,
) -> Option<JobSnapshot> {
    let uid: Arc<str> = job.metadata.uid.as_deref().unwrap_or_default().into();
    let pods = context.stores.pods.attempts_of(&Owner::of(&job.metadata));
    let recorded = recorded(job);
    let unrecorded = pods.keys().copied().filter(|id| !recorded.contains(id));
    let mut ids: Vec<AttemptId> = recorded.iter().copied().chain(unrecorded).collect();
    ids.sort_unstable();
    let mut tasks: BTreeMap<u32, TaskSnapshot> = BTreeMap::new();
    for (index, number) in ids {
        let pod = pods.get(&(index, number));
        if pod.is_some_and(|pod| pod.terminal) {
            continue;
        }
        let node = pod.and_then(|pod| pod.node.as_ref());
        let node = node.and_then(|node| positions.get(node).copied());
        let task = tasks
            .entry(index)
            .or_insert_with(|| ending_job::task(index));
        task.attempts.push(ending_job::attempt(number, node, now));
    }
    let tasks: Vec<TaskSnapshot> = tasks.into_values().collect();
    let pod = pods.values().find(|pod| !pod.terminal);
    let demand = pod.map_or_else(|| demand(context, job), |pod| (*pod.requests).clone());
    let namespace = job.metadata.namespace.as_deref().unwrap_or_default();
    (!tasks.is_empty()).then(|| ending_job::job(uid, namespace.into(), demand, tasks, now))
}

/// The attempts that the ledger holds.
fn recorded(job: &DeadlineJob) -> BTreeSet<AttemptId> {
    let ledger = job.ledger();
    let attempts = ledger.into_iter().flat_map(Ledger::open_attempts);
    attempts.map(|(id, _)| id).collect()
}

/// Requests of an attempt without a pod.
fn demand(context: &Context, job: &DeadlineJob) -> Resources {
    let of = |spec: Option<&PodSpec>| spec.map(requests::of_pod).unwrap_or_default();
    let batch = context.stores.jobs.batch().and_then(|jobs| jobs.of(job));
    match batch {
        Some(batch) => {
            let spec = batch.spec.as_ref();
            of(spec.and_then(|spec| spec.template.spec.as_ref()))
        }
        None => of(job.spec.template.spec.as_ref()),
    }
}

#[cfg(test)]
mod tests;
