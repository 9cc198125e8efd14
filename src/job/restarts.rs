//! Restarts of containers in place (`restartPolicy: OnFailure`). As in batch/v1, `backoffLimit` also
//! limits these restarts, in both kinds of job.

use std::collections::BTreeMap;

use crate::api::Ledger;
use crate::cluster::pod::JobPods;
use crate::cluster::pod_end::finished;
use crate::validate::ValidatedJob;

/// Failures that count against `backoffLimit`.
pub(super) fn failures(job: &ValidatedJob, ledger: &Ledger, pods: &JobPods) -> u32 {
    let counted = u32::try_from(ledger.counts.failed).unwrap_or(u32::MAX);
    match (at_limit(job, ledger, pods), job.rules.ending.backoff_limit) {
        (Some(_), Some(limit)) => counted.max(limit.saturating_add(1)),
        _ => counted,
    }
}

/// The restarts in the pods that live, if they have reached `backoffLimit`. Of a task's attempts
/// the one with the fewest counts, because the crash of a copy does not hold up its task.
pub fn at_limit(job: &ValidatedJob, ledger: &Ledger, pods: &JobPods) -> Option<u32> {
    let limit = job.rules.ending.backoff_limit?;
    let template = job.template.spec.as_ref()?;
    if template.restart_policy.as_deref() != Some("OnFailure") {
        return None;
    }
    let mut fewest: BTreeMap<u32, u32> = BTreeMap::new();
    let unkilled = ledger
        .open_attempts()
        .filter(|(_, attempt)| attempt.kill.is_none());
    for (id, _) in unkilled {
        let pod = pods.get(&id).and_then(|pod| pod.attempt.as_ref());
        if pod.is_some_and(|pod| finished(&pod.stage).is_some()) {
            continue;
        }
        let restarts = pod.map_or(0, |pod| pod.restarts);
        let least = fewest.entry(id.0).or_insert(restarts);
        *least = restarts.min(*least);
    }
    let restarts = fewest.into_values().fold(0, u32::saturating_add);
    (restarts >= limit.max(1)).then_some(restarts)
}

#[cfg(test)]
mod tests;
