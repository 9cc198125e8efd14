//! Whether an attempt is gone. A failed or vanished pod proves little on a machine that is out of
//! reach. If two copies must never run, or two must never publish, shed requires a proof: the
//! kubelet's own report, an administrator's taint that the machine is off, or a restart of the
//! machine.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use shed_core::snapshot::Idempotency;

use crate::api::{AttemptEntry, Ledger, NodeEntry, TaskEntry};
use crate::cluster::Stores;
use crate::cluster::pod::{AttemptId, PodFacts};
use crate::job::view::JobView;
use crate::validate::ValidatedJob;

/// Whether another attempt waits for this one to be gone. No attempt waits once the job ends.
pub fn needs_proof(job: &ValidatedJob, ledger: &Ledger, task: &TaskEntry, number: u32) -> bool {
    ledger.ending.is_none()
        && match job.rules.idempotency {
            Idempotency::Safe => false,
            Idempotency::Fenced => task
                .grant
                .as_ref()
                .is_some_and(|grant| grant.attempt == number),
            Idempotency::None => true,
        }
}

/// Attempts whose node proves that they are gone, if their pods are being deleted.
pub fn proven(ledger: &Ledger, stores: &Stores) -> BTreeSet<AttemptId> {
    let attempts = ledger.open_attempts();
    let placed = attempts.filter_map(|(id, attempt)| Some((id, attempt.node.as_ref()?)));
    placed
        .filter(|(_, node)| {
            stores.nodes.get(&node.name).is_some_and(|now| {
                let is_known = !now.boot.is_empty() && !node.boot.is_empty();
                now.is_out_of_service || (is_known && now.boot != node.boot)
            })
        })
        .map(|(id, _)| id)
        .collect()
}

/// Whether its pod looks as if it had ended, and nothing proves that.
pub fn is_unproven(id: AttemptId, entry: &AttemptEntry, view: &JobView) -> bool {
    if view.proven_gone.contains(&id) {
        return false;
    }
    let Some(pod) = view.pods.get(&id) else {
        // The attempt had a node, so its pod was seen. Now even its finalizer was removed.
        return entry.node.is_some();
    };
    let is_gone = pod.attempt.as_ref().is_some_and(|attempt| attempt.is_gone);
    // A pod that never got a node never ran.
    let was_placed = pod.node.is_some() || entry.node.is_some();
    pod.terminal && was_placed && !is_gone
}

/// The node of an attempt: its pod's, or, if the pod is missing, the ledger's.
pub fn last_seen_on<'a>(
    entry: &'a AttemptEntry,
    pod: Option<&'a Arc<PodFacts>>,
) -> Option<&'a str> {
    let of_pod = pod.and_then(|pod| pod.node.as_deref());
    of_pod.or(entry.node.as_ref().map(|node| node.name.as_str()))
}

/// Nodes of attempts that the ledger does not contain yet.
pub fn placements<'a>(
    ledger: &Ledger,
    pods: impl Iterator<Item = (&'a AttemptId, &'a Arc<PodFacts>)>,
    stores: &Stores,
) -> BTreeMap<AttemptId, NodeEntry> {
    let unplaced = pods.filter(|(id, _)| {
        let entry = ledger.attempt(id.0, id.1);
        entry.is_some_and(|entry| entry.node.is_none())
    });
    unplaced
        .filter_map(|(&id, pod)| {
            let node = stores.nodes.get(pod.node.as_ref()?)?;
            let name = node.name.to_string();
            let boot = node.boot;
            Some((id, NodeEntry { name, boot }))
        })
        .collect()
}
