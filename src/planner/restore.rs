//! The planner's memory after a failover or a restart. The part that must not be lost is in the
//! ledgers.

use std::sync::Arc;

use shed_core::ids::{JobClass, JobKey, Tenant};
use shed_core::memory::{Durable, Memory, PastJob};

use crate::api::{DeadlineJob, Ledger};
use crate::cluster::{Rest, Skeleton};
use crate::context::{Context, validation};
use crate::validate::ValidatedJob;

/// A job and its ledger, if both can be read.
pub fn read(context: &Context, watched: &DeadlineJob) -> Option<(Arc<ValidatedJob>, Ledger)> {
    let job = validation::read(&context.job_memories, watched, context.stores.jobs.batch()).ok()?;
    Some((job, Ledger::from_status(watched.status.as_ref()).ok()?))
}

/// The stored memory, and what the existing jobs add to it: learned samples and past decisions.
pub fn memory(
    stored: Durable,
    live: &[Arc<DeadlineJob>],
    ended: &[Arc<Skeleton>],
    mut read: impl FnMut(&Arc<DeadlineJob>) -> Option<(Arc<ValidatedJob>, Ledger)>,
) -> Memory {
    let mut past: Vec<PastJob> = ended.iter().filter_map(|job| taught(job)).collect();
    let mut states = Vec::new();
    for watched in live {
        let Some((job, ledger)) = read(watched) else {
            continue;
        };
        let key = JobKey(Arc::clone(&job.uid));
        let ended = ledger.ended.filter(|_| ledger.finished);
        if let (Some(ended), Some(class)) = (ended, &job.class) {
            past.push(PastJob {
                ended,
                key,
                tenant: Tenant(Arc::clone(&job.namespace)),
                class: JobClass(Arc::clone(class)),
                runs: ledger.ended_runs,
            });
        } else if let Some(state) = ledger.policy_state.filter(|_| !ledger.finished) {
            states.push((key, state));
        }
    }
    Memory::restored(stored, past, states)
}

/// Samples from a job that is stored in its reduced form.
fn taught(job: &Skeleton) -> Option<PastJob> {
    let Rest::Finished(finished) = &job.rest else {
        return None;
    };
    let class = finished.class.as_ref()?;
    Some(PastJob {
        ended: finished.ended?,
        key: JobKey(job.metadata.uid.as_deref()?.into()),
        tenant: Tenant(job.metadata.namespace.as_deref()?.into()),
        class: JobClass(Arc::clone(class)),
        runs: finished.runs.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{DeadlineJobStatus, LABEL_CLASS, Ledger};
    use crate::cluster::WatchedJob;
    use crate::fixtures;
    use crate::validate::validate;

    fn job(uid: &str, ledger: Ledger) -> Arc<DeadlineJob> {
        let mut job = fixtures::job("");
        job.metadata.uid = Some(uid.to_owned());
        let class = (LABEL_CLASS.to_owned(), "nightly".to_owned());
        job.metadata.labels = Some([class].into());
        job.status = Some(DeadlineJobStatus {
            observed_generation: job.metadata.generation,
            ledger: Some(ledger),
            ..DeadlineJobStatus::default()
        });
        Arc::new(job)
    }

    #[test]
    fn finished_jobs_teach_and_states_of_those_that_go_on_are_kept() {
        let finished = Ledger {
            finished: true,
            ended: Some(shed_core::time::Instant(9)),
            ended_runs: vec![shed_core::time::Span::from_seconds(30)],
            policy_state: Some("2".to_owned()),
            ..Ledger::default()
        };
        let goes_on = Ledger {
            policy_state: Some("3".to_owned()),
            ..Ledger::default()
        };
        let old = Arc::unwrap_or_clone(job("old", finished.clone()));
        let class = validate(&old).unwrap().class.map(JobClass);
        let old = WatchedJob::new(old, 0).skeleton().cloned().unwrap();
        let stored = Durable::default();
        let memory = memory(stored, &[job("new", goes_on.clone())], &[old], |job| {
            let ledger = Ledger::from_status(job.status.as_ref());
            validate(job).ok().map(Arc::new).zip(ledger.ok())
        });
        let least = memory.history().least(class.as_ref()).unwrap();
        assert!((least - 30.0).abs() < 1e-9, "{least}");
        let states: Vec<_> = memory.durable_states().collect();
        assert_eq!(states, [(&JobKey(Arc::from("new")), "3")]);
    }
}
