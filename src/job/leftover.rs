//! Pods that go on though the ledger counts their attempts no more: those of a batch/v1 Job that were
//! deleted, which count as failed at once, and those that were never recorded. They hold their room,
//! and a Job is over only when they are.

use std::sync::Arc;

use crate::api::Ledger;
use crate::cluster::pod::{AttemptId, JobPods, PodFacts};

/// The job's pods that have not ended and that the book holds no attempt for.
pub fn leftover<'a>(
    book: &'a Ledger,
    pods: &'a JobPods,
) -> impl Iterator<Item = (AttemptId, &'a Arc<PodFacts>)> {
    let pods = pods.iter().map(|(&id, pod)| (id, pod));
    pods.filter(|(id, pod)| !pod.terminal && book.attempt(id.0, id.1).is_none())
}
