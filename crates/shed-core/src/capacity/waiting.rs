//! Pods that wait for the cluster to grow.

use std::collections::BTreeMap;

use super::{Capacity, Holdings};
use crate::ids::Tenant;
use crate::snapshot::{AttemptSnapshot, AttemptState, Snapshot};

impl Capacity {
    pub(super) fn note_unplaceable(&mut self, snapshot: &Snapshot, holdings: &[Holdings]) {
        let jobs = snapshot.jobs.iter().zip(holdings).enumerate();
        let jobs = jobs.filter(|(_, (job, held))| held.unplaceable > 0 && !job.obstacles.no_node);
        for (position, (job, _)) in jobs {
            // An autoscaler sees only attempts that have a pod.
            let waits = |a: &&AttemptSnapshot| {
                a.unplaceable && a.lives() && a.node.is_none() && a.state == AttemptState::Pending
            };
            let attempts = job.tasks.iter().flat_map(|task| &task.attempts);
            let waiting = attempts.filter(waits).map(|_| position);
            self.unplaceable.extend(waiting);
        }
    }

    /// The number of pending pods of each tenant that only a larger cluster can run. Those that a quota outside shed has
    /// admitted have no limit.
    pub(crate) fn waiting_pods(&self, snapshot: &Snapshot) -> BTreeMap<Tenant, usize> {
        let mut waiting = BTreeMap::new();
        for &position in self.surging.iter().chain(&self.unplaceable) {
            let job = snapshot.jobs.get(position);
            if let Some(job) = job.filter(|job| job.admitted.is_none()) {
                *waiting.entry(job.tenant.clone()).or_insert(0) += 1;
            }
        }
        waiting
    }
}
