//! A pass's share in the commit fence: the commit requests, and the answers once they are recorded.

use std::collections::BTreeMap;

use shed_agent::fence::CommitGrant;
use shed_core::snapshot::Idempotency;
use shed_core::time::Instant;

use crate::api::{Ledger, NodeEntry};
use crate::cluster::pod::AttemptId;
use crate::job::termination_proof;
use crate::job::view::JobView;
use crate::reconcile::context::ReconcileContext;
use crate::reconcile::driver::Pass;

/// The job's attempts that request a commit grant, and since when.
pub(super) fn asking(context: &ReconcileContext, view: &JobView) -> BTreeMap<AttemptId, Instant> {
    let job = &view.job;
    if job.rules.idempotency != Idempotency::Fenced {
        return BTreeMap::new();
    }
    let asking = context.fence.asking(&job.uid);
    let pods = view.pods.iter();
    pods.filter_map(|(&id, pod)| Some((id, *asking.get(&pod.uid)?)))
        .collect()
}

/// Nodes of attempts whose end may have to be proven later.
pub(super) fn placements(
    context: &ReconcileContext,
    view: &JobView,
    asking: &BTreeMap<AttemptId, Instant>,
) -> BTreeMap<AttemptId, NodeEntry> {
    let of_interest = |id: AttemptId| match view.job.rules.idempotency {
        Idempotency::Safe => false,
        Idempotency::Fenced => asking.contains_key(&id),
        Idempotency::None => true,
    };
    let pods = view.pods.iter().filter(|&(&id, _)| of_interest(id));
    termination_proof::placements(&view.ledger, pods, &context.stores)
}

/// Answers the commit requests from the ledger, now that it is durable.
pub(super) fn answer(context: &ReconcileContext, pass: &Pass, recorded: &Ledger) {
    for (&(task, number), pod) in pass
        .asking
        .keys()
        .filter_map(|id| pass.view.pods.get_key_value(id))
    {
        let entry = recorded.tasks.get(&task);
        let grant = entry.and_then(|entry| entry.grant.as_ref());
        let Some(grant) = grant.filter(|grant| grant.attempt == number) else {
            continue;
        };
        let order = CommitGrant {
            job: pass.view.job.uid.to_string(),
            task,
            segment: 0,
            token: grant.token.unsigned_abs(),
        };
        context.fence.allow(&pod.uid, order);
    }
}
