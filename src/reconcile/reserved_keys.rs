//! Reports templates with reserved labels or annotations, and annotations of shed where they have no effect.

use kube::Resource;
use kube::runtime::events::EventType;

use crate::adopt::annotations::requests_in;
use crate::api::{self, DeadlineJob};
use crate::attempt_pod::reserved_keys::fields;
use crate::reconcile::context::ReconcileContext;
use crate::reconcile::events;
use crate::validate::ValidatedJob;

/// Reports once, when pods of the job are created, what its template holds in vain.
pub(super) async fn announce(context: &ReconcileContext, owner: &DeadlineJob, job: &ValidatedJob) {
    let reported = context.job_memories.with(&job.uid, |memory| {
        std::mem::replace(&mut memory.reconcile.reserved_reported, true)
    });
    if reported {
        return;
    }
    let reserved = fields(job);
    if !reserved.is_empty() {
        let note = format!(
            "spec.template.metadata: {}: shed reserves these keys and sets its own values on the pods; remove them",
            reserved.join(", ")
        );
        let reason = api::RESERVED_LABEL;
        events::publish(context, owner, EventType::Warning, reason, note);
    }
    if let Some(note) = misplaced(context, owner, job) {
        let reason = api::MISPLACED_ANNOTATION;
        events::publish(context, owner, EventType::Warning, reason, note);
    }
}

/// The note about annotations that would be requests on a batch/v1 Job. A client that sets them on the Job and on its
/// pods alike, such as Airflow, has them where they count.
fn misplaced(
    context: &ReconcileContext,
    owner: &DeadlineJob,
    job: &ValidatedJob,
) -> Option<String> {
    let template = job.template.metadata.as_ref();
    let mut found = requests_in(template.and_then(|metadata| metadata.annotations.as_ref()));
    let fix = if job.adopted.is_some() {
        let jobs = context.stores.jobs.batch();
        let batch = jobs.and_then(|jobs| jobs.present(&owner.metadata));
        let own = batch
            .as_ref()
            .and_then(|job| job.meta().annotations.as_ref());
        found.retain(|name| own.is_none_or(|own| !own.contains_key(*name)));
        "move them to metadata.annotations of the Job, or to spec.jobTemplate.metadata.annotations of its CronJob"
    } else {
        found.extend(requests_in(owner.metadata.annotations.as_ref()));
        "set the fields of the DeadlineJob's spec instead"
    };
    let names = found.join(", ");
    (!found.is_empty()).then(|| format!("the annotations {names} have no effect there: {fix}"))
}
