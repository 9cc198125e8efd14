//! Reports the batch/v1 Jobs that shed has begun and no longer runs, because the operator's
//! `--adopt-jobs` was changed. Their ledger and their pods stay unchanged for the next controller.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use kube::Resource;
use kube::runtime::events::EventType;

use crate::api::{self, DeadlineJob};
use crate::cluster::Stores;
use crate::cluster::identity::{Owner, OwnerKind};
use crate::reconcile::context::ReconcileContext;
use crate::reconcile::events;
use crate::reconcile::periodic_checks;

/// Interval of the check, which makes no call.
const PERIOD: Duration = Duration::from_secs(1);

const NOTE: &str = "shed started this Job, but its current --adopt-jobs (chart value adoptJobs) does not \
select it: shed starts, counts and stops no attempts, and pods keep the finalizer \
batch.kubernetes.io/job-tracking until the Job is deleted; restore adoptJobs to continue the Job, or delete \
the Job";

/// Reported companions, and the state at the last check.
#[derive(Default)]
struct Reported {
    uids: HashSet<String>,
    seen: Option<(u64, u64)>,
}

/// Checks without end.
pub async fn run(context: Arc<ReconcileContext>) {
    let mut reported = Reported::default();
    let mut ticks = periodic_checks::every(&context, PERIOD).await;
    loop {
        ticks.tick().await;
        for companion in look(&context, &mut reported) {
            announce(&context, &companion).await;
        }
    }
}

/// Companions that were not reported before, unless nothing has changed since.
fn look(context: &ReconcileContext, reported: &mut Reported) -> Vec<Arc<DeadlineJob>> {
    let now = (
        context.stores.jobs.live_version(),
        context.stores.jobs.batch_version(),
    );
    if reported.seen.replace(now) == Some(now) {
        return Vec::new();
    }
    // A companion that has ended is not live.
    let jobs = context.stores.jobs.live().into_iter();
    let left: Vec<_> = jobs.filter(|job| is_left(&context.stores, job)).collect();
    let count = i64::try_from(left.len()).unwrap_or(i64::MAX);
    context.metrics.reconciles.not_adopted.set(count);
    let uid = |job: &DeadlineJob| job.metadata.uid.clone().unwrap_or_default();
    let present: HashSet<String> = left.iter().map(|job| uid(job)).collect();
    let before = std::mem::replace(&mut reported.uids, present);
    let is_new = |job: &Arc<DeadlineJob>| !before.contains(&uid(job));
    left.into_iter().filter(is_new).collect()
}

/// Whether a companion's Job was begun, has not ended, and is not shed's to run.
fn is_left(stores: &Stores, job: &DeadlineJob) -> bool {
    let ledger = job.ledger();
    let is_open = ledger.is_some_and(|ledger| !ledger.finished);
    if !is_open || !job.spec.is_companion() || job.metadata.deletion_timestamp.is_some() {
        return false;
    }
    let owner = Owner::of(&job.metadata);
    owner.kind == OwnerKind::Job
        && match stores.jobs.runs(&owner) {
            Some(is_run) => !is_run,
            // Where Jobs are watched it is gone, and its companion follows.
            None => stores.jobs.batch().is_none(),
        }
}

/// Reports it on the Job, and on the companion, for users who cannot read events of Jobs.
async fn announce(context: &ReconcileContext, companion: &DeadlineJob) {
    let (namespace, name) = (&companion.metadata.namespace, &companion.metadata.name);
    tracing::warn!(?namespace, job = ?name, "{NOTE}");
    let (type_, reason) = (EventType::Warning, api::NOT_ADOPTED);
    events::publish(context, companion, type_, reason, NOTE.to_owned());
    let own = companion.object_ref(&());
    events::publish_about(context, &own, type_, reason, NOTE.to_owned());
}

#[cfg(test)]
mod tests;
