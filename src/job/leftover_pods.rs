//! Pods that run although the ledger no longer counts their attempts. They are deleted pods of a
//! batch/v1 Job, which count as failed at once, or pods that were never recorded. They still hold
//! their slots, and a Job ends only after them.

use std::sync::Arc;

use crate::api::Ledger;
use crate::cluster::pod::{AttemptId, JobPods, PodFacts};

/// The job's pods that have not ended and whose attempt is not in the ledger.
pub fn leftover<'a>(
    ledger: &'a Ledger,
    pods: &'a JobPods,
) -> impl Iterator<Item = (AttemptId, &'a Arc<PodFacts>)> {
    let pods = pods.iter().map(|(&id, pod)| (id, pod));
    pods.filter(|(id, pod)| !pod.terminal && ledger.attempt(id.0, id.1).is_none())
}
