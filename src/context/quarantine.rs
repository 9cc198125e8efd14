//! Jobs that this process knows to be quarantined.

use std::sync::Arc;

use super::Context;
use crate::api::DeadlineJob;
use crate::quarantine::{self, Crash, Failure, QuarantineMemory, Subject};

impl Context {
    /// Whether a job is quarantined, until a reconcile of it has gone well.
    pub fn is_quarantined(&self, job: &DeadlineJob) -> bool {
        let is_unwritten = || {
            let job_memories = &self.job_memories;
            job_memories.with(&quarantine::uid(job), |memory| {
                memory.planned.quarantine.unwritten.is_some()
            })
        };
        quarantine::entry(job).is_some() || is_unwritten()
    }

    /// Drops the memory of a job, as a crash of the process would, and stops its reconciles. The
    /// next reconcile records that.
    pub fn accuse(&self, owner: &DeadlineJob, crash: &Crash) {
        let job = Subject::of(owner);
        let (namespace, name) = (&job.namespace, &job.name);
        tracing::error!(namespace, job = name, "{crash}: quarantined");
        self.count_crash(crash.failure);
        let until = self.clock.ticks().plus(quarantine::wait(job.crashes + 1));
        self.plan_slices.abandon(&job.uid);
        self.job_memories.forget(&job.uid);
        let uid = Arc::clone(&job.uid);
        let quarantine = QuarantineMemory {
            unwritten: Some((job, crash.clone(), until)),
            announced: 0,
            is_unlisted: true,
        };
        self.job_memories
            .with(&uid, |memory| memory.planned.quarantine = quarantine);
    }

    /// Counts such a failure.
    pub fn count_crash(&self, failure: Failure) {
        let reason = failure.label();
        let crashes = &self.metrics.reconciles.crashes;
        crashes.with([reason]).inc();
    }
}
