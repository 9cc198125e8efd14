//! Attempts whose job is deleted, being deleted, or undecodable. The planner decides nothing for
//! them, but they hold their capacity until they have ended. Then it launches others. Each is
//! charged to its own node by its own requests; one without a node holds nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use shed_core::resources::Resources;
use shed_core::snapshot::{JobSnapshot, NodeIndex, TaskSnapshot};
use shed_core::time::Instant;

use crate::cluster::Stores;
use crate::cluster::identity::Owner;
use crate::planner::ending_job;

/// Attempts by their requests.
type Alike = Vec<(Resources, Vec<NodeIndex>)>;

/// Artificial jobs for the live attempts of each owner that is not `known`: one for each size.
pub fn jobs(
    stores: &Stores,
    known: impl Fn(&Owner) -> bool,
    positions: &BTreeMap<Arc<str>, NodeIndex>,
    now: Instant,
) -> Vec<JobSnapshot> {
    let mut owners = stores.pods.owners_of_running(|owner| !known(owner));
    owners.sort_unstable();
    let jobs = owners.iter().flat_map(|owner| {
        let alike = alike(stores, owner, positions);
        let numbered = alike.into_iter().enumerate();
        numbered.map(move |(number, (demand, nodes))| job(owner, number, demand, &nodes, now))
    });
    jobs.collect()
}

fn alike(stores: &Stores, owner: &Owner, positions: &BTreeMap<Arc<str>, NodeIndex>) -> Alike {
    let mut alike = Alike::new();
    let attempts = stores.pods.attempts_of(owner).into_values();
    for pod in attempts.filter(|pod| !pod.terminal) {
        let Some(&node) = pod.node.as_ref().and_then(|node| positions.get(node)) else {
            continue;
        };
        let known = alike
            .iter_mut()
            .find(|(demand, _)| *demand == *pod.requests);
        match known {
            Some((_, nodes)) => nodes.push(node),
            None => alike.push(((*pod.requests).clone(), vec![node])),
        }
    }
    alike
}

fn job(
    owner: &Owner,
    number: usize,
    demand: Resources,
    nodes: &[NodeIndex],
    now: Instant,
) -> JobSnapshot {
    let tasks = (0..).zip(nodes).map(|(index, &node)| TaskSnapshot {
        attempts: vec![ending_job::attempt(0, Some(node), now)],
        ..ending_job::task(index)
    });
    let Owner { namespace, uid, .. } = owner;
    // No job has such a key, because an artificial owner must not represent an existing job.
    let key = format!("{namespace}/{uid}/{number}");
    ending_job::job(
        key.into(),
        Arc::clone(namespace),
        demand,
        tasks.collect(),
        now,
    )
}

#[cfg(test)]
mod tests;
