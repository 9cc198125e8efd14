//! Reports templates with reserved labels or annotations.

use kube::runtime::events::EventType;

use crate::api::{self, DeadlineJob};
use crate::attempt_pod::reserved_keys::fields;
use crate::reconcile::context::ReconcileContext;
use crate::reconcile::events;
use crate::validate::ValidatedJob;

/// Reports once, when pods of the job are created, that its template has reserved keys.
pub(super) async fn tell(context: &ReconcileContext, owner: &DeadlineJob, job: &ValidatedJob) {
    let told = context.shared.memos.with(&job.uid, |memo| {
        std::mem::replace(&mut memo.reconcile.reserved_told, true)
    });
    let fields = if told { Vec::new() } else { fields(job) };
    if fields.is_empty() {
        return;
    }
    let note = format!(
        "spec.template.metadata: {}: shed reserves these keys and sets its own values on the pods; remove them",
        fields.join(", ")
    );
    let reason = api::RESERVED_LABEL;
    events::publish(context, owner, EventType::Warning, reason, note);
}
