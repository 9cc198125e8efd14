//! Labels and annotations that say which attempt a pod is. A template can't say so: the schema refuses a new
//! `DeadlineJob` that tries, and in jobs that are there, and in batch/v1 Jobs, shed's own take their place.

use std::collections::BTreeMap;

use kube::runtime::events::EventType;

use super::events;
use crate::api::{self, DeadlineJob};
use crate::context::Context;
use crate::validate::ValidatedJob;

/// Fields that one event names.
const NAMED_MAX: usize = 10;

/// Takes reserved keys out of a template's labels or annotations.
pub fn strip(entries: &mut BTreeMap<String, String>) {
    entries.retain(|key, _| !api::RESERVED.contains(&key.as_str()));
}

/// The fields of the job's template that are not followed.
#[must_use]
pub fn fields(job: &ValidatedJob) -> Vec<String> {
    let Some(metadata) = &job.template.metadata else {
        return Vec::new();
    };
    let is_reserved = |key: &str| {
        // To a batch/v1 Job the index is the Job's own business.
        api::RESERVED.contains(&key) || (key == api::LABEL_INDEX && job.adopted.is_none())
    };
    let parts = [
        ("labels", &metadata.labels),
        ("annotations", &metadata.annotations),
    ];
    let named = parts.iter().flat_map(|(part, entries)| {
        let keys = entries.iter().flat_map(BTreeMap::keys);
        let reserved = keys.filter(|key| is_reserved(key));
        reserved.map(move |key| format!("{part}[{key}]"))
    });
    named.take(NAMED_MAX).collect()
}

/// Says once, when pods of the job are made, that its template has reserved keys.
pub(super) async fn tell(context: &Context, owner: &DeadlineJob, job: &ValidatedJob) {
    let told = context.memos.with(&job.uid, |memo| {
        std::mem::replace(&mut memo.reserved_told, true)
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
