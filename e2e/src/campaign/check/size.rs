//! I13: no object is larger than 1 MiB, whatever became of the job, unless a user made it so.

use kube::ResourceExt;
use shed::api::DeadlineJob;
use shed::size::OBJECT_MAX;

use super::Known;
use crate::jobs::object_bytes;

/// That an object is too large, in words.
pub fn too_large(job: &DeadlineJob, known: &Known, version: u64) -> Option<String> {
    let name = job.name_any();
    if known.bloated.contains(&name) {
        return None;
    }
    let size = object_bytes(job);
    (size > OBJECT_MAX)
        .then(|| format!("at {version}: I13: {name} has {size} bytes, more than {OBJECT_MAX}"))
}
