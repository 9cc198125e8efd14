//! An adopted Job's status follows its companion's: its start before any pod is created, its end after all are released.

use std::sync::Arc;

use k8s_openapi::api::batch::v1::{Job, JobStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::Resource;
use kube::api::Api;

use crate::api::{DeadlineJob, DeadlineJobStatus, Ledger};
use crate::cluster::version;
use crate::reconcile::context::ReconcileContext;
use crate::reconcile::driver::Pass;
use crate::reconcile::{Error, companions, job_status, pod_writer};
use crate::validate::Adopted;

/// Writes the status of the Job that a companion represents, if it should change.
pub(super) async fn mirror(
    context: &ReconcileContext,
    pass: &Pass,
    ledger: &Ledger,
    recorded: &DeadlineJob,
) -> Result<(), Error> {
    let Some(adopted) = &pass.view.job.adopted else {
        return Ok(());
    };
    let Some(mut job) = newest(context, pass) else {
        return Ok(());
    };
    let recorded = recorded.status.clone().unwrap_or_default();
    for _ in 0..pod_writer::TRIES_MAX {
        let status = render(pass, ledger, adopted, &recorded, &job);
        if is_shown(&job, &status, &recorded) {
            return Ok(());
        }
        match companions::write(context, &job, status).await {
            Ok(written) => {
                context.job_memories.with(&pass.view.job.uid, |memory| {
                    memory.reconcile.newest_batch = Some(Arc::new(written));
                });
                return Ok(());
            }
            Err(kube::Error::Api(status)) if status.code == 404 => return Err(Error::Gone),
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            Err(error) => return Err(Error::Mirror(error)),
        }
        job = live(context, pass, adopted).await?;
    }
    Err(Error::Conflict)
}

/// Whether the Job needs no write. Readiness alone is written when it is written for the companion.
fn is_shown(job: &Job, status: &JobStatus, recorded: &DeadlineJobStatus) -> bool {
    let Some(shown) = &job.status else {
        return false;
    };
    let waits = status.ready != Some(recorded.ready);
    let alike = JobStatus {
        ready: shown.ready.filter(|_| waits).or(status.ready),
        ..status.clone()
    };
    *shown == alike
}

fn render(
    pass: &Pass,
    ledger: &Ledger,
    adopted: &Adopted,
    recorded: &DeadlineJobStatus,
    job: &Job,
) -> JobStatus {
    job_status::render(job_status::Input {
        job,
        adopted,
        recorded,
        ledger,
        pods: job_status::count(ledger, &pass.view.pods),
        completions: pass.view.job.rules.completions,
        suspend: pass.view.job.rules.suspend,
        now: pass.view.now,
    })
}

/// The newest copy of the Job that was seen.
fn newest(context: &ReconcileContext, pass: &Pass) -> Option<Arc<Job>> {
    let watched = context.stores.jobs.batch()?.of(&pass.owner)?;
    context.job_memories.with(&pass.view.job.uid, |memory| {
        let before = memory.reconcile.newest_batch.take();
        let newer = before.filter(|before| version(&before.metadata) > version(&watched.metadata));
        let newest = newer.unwrap_or(watched);
        Some(Arc::clone(memory.reconcile.newest_batch.insert(newest)))
    })
}

async fn live(
    context: &ReconcileContext,
    pass: &Pass,
    adopted: &Adopted,
) -> Result<Arc<Job>, Error> {
    let api: Api<Job> = Api::namespaced(context.client.clone(), &pass.view.job.namespace);
    let live = api.get_opt(&adopted.name).await.map_err(Error::Mirror)?;
    let is_it = |job: &Job| job.metadata.uid.as_deref() == Some(adopted.uid.as_ref());
    live.filter(is_it).map(Arc::new).ok_or(Error::Gone)
}

/// Copies a condition of a companion to the Job that it represents. Only users read it there, so a
/// failure is logged and not repeated.
pub(super) async fn show(
    context: &ReconcileContext,
    companion: &DeadlineJob,
    condition: &Condition,
) {
    let jobs = context
        .stores
        .jobs
        .batch()
        .filter(|_| companion.spec.is_companion());
    let watched = jobs.and_then(|jobs| jobs.present(&companion.metadata));
    let Some(watched) = watched.filter(|job| job.is_ours()) else {
        return;
    };
    let watched = watched.meta();
    let namespace = watched.namespace.as_deref().unwrap_or_default();
    let name = watched.name.as_deref().unwrap_or_default();
    let api: Api<Job> = Api::namespaced(context.client.clone(), namespace);
    let shown = async {
        let live = api.get_opt(name).await?;
        let live = live.filter(|live| live.meta().uid == watched.uid);
        let status = live
            .as_ref()
            .and_then(|live| job_status::with(live, condition));
        if let Some((live, status)) = live.zip(status) {
            companions::write(context, &live, status).await?;
        }
        Ok::<_, kube::Error>(())
    };
    if let Err(error) = shown.await {
        tracing::warn!(%error, namespace, job = name, "condition of a Job");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(ready: i32, succeeded: i32) -> JobStatus {
        JobStatus {
            ready: Some(ready),
            succeeded: Some(succeeded),
            ..JobStatus::default()
        }
    }

    #[test]
    fn readiness_alone_is_written_with_that_of_the_companion() {
        let job = Job {
            status: Some(shown(1, 4)),
            ..Job::default()
        };
        let recorded = |ready| DeadlineJobStatus {
            ready,
            ..DeadlineJobStatus::default()
        };
        let is_shown = |status, ready| is_shown(&job, &status, &recorded(ready));
        assert!(is_shown(shown(1, 4), 1));
        assert!(is_shown(shown(2, 4), 1), "the companion's is not written");
        assert!(!is_shown(shown(2, 4), 2));
        assert!(!is_shown(shown(2, 5), 1), "another figure changed too");
    }
}
