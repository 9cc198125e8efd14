//! Reports that the apiserver refuses to stop a job's pods, or to remove shed's finalizer from
//! them. A policy or a webhook may deny only deletes or patches. The rest of the job continues.

use std::sync::Arc;

use kube::runtime::events::EventType;

use crate::api::DeadlineJob;
use crate::reconcile::context::ReconcileContext;
use crate::reconcile::events;
use crate::reconcile::pod_writer::Written;

/// Reason of the event.
const POD_WRITE_REFUSED: &str = "PodWriteRefused";

/// Reports to users once, until all writes of a later pass succeed.
pub(super) fn announce(
    context: &ReconcileContext,
    owner: &DeadlineJob,
    written: [(&str, &Written); 2],
) {
    let refusal = written.iter().find_map(|(verb, written)| {
        let kube::Error::Api(status) = written.failure.as_ref()? else {
            return None;
        };
        Some((verb, &status.message))
    });
    let uid: Arc<str> = owner.metadata.uid.as_deref().unwrap_or_default().into();
    let is_refused = refusal.is_some();
    let was_reported = context.job_memories.with(&uid, |memory| {
        std::mem::replace(&mut memory.reconcile.refusal_reported, is_refused)
    });
    let Some((verb, message)) = refusal.filter(|_| !was_reported) else {
        return;
    };
    let note = format!(
        "the apiserver does not let shed {verb} pods of this job, so stopped attempts may continue or their \
         pods may remain; shed retries every few seconds: {message}"
    );
    events::publish(context, owner, EventType::Warning, POD_WRITE_REFUSED, note);
}
