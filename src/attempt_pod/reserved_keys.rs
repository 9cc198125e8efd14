//! Labels and annotations that identify the attempt of a pod. A template must not set them. The
//! schema refuses a new `DeadlineJob` that does. In existing jobs, and in batch/v1 Jobs, shed
//! replaces them.

use std::collections::BTreeMap;

use crate::api;
use crate::validate::ValidatedJob;

/// Fields that one event names.
const NAMED_MAX: usize = 10;

/// Takes reserved keys out of a template's labels or annotations.
pub fn strip(entries: &mut BTreeMap<String, String>) {
    entries.retain(|key, _| !api::RESERVED.contains(&key.as_str()));
}

/// The fields of the job's template that are not followed.
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
