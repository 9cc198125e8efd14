//! The estimates of nodes as people read them: how fast each node is, who keeps off it, and whose attempts show it.

use crate::ids::{JobKey, NodeName, Tenant};
use crate::round::{JobView, Round};
use crate::snapshot::NodeIndex;
use crate::time::Instant;

use super::LN_SLOW;

/// The estimate of one node.
#[derive(Debug, Clone, PartialEq)]
pub struct NodePace {
    /// The node.
    pub node: NodeName,
    /// The speed of attempts there over the usual speed of their jobs, as the tenant with the lowest estimate sees
    /// it. Absent without evidence.
    pub pace: Option<f64>,
    /// Whether that is slow.
    pub is_slow: bool,
    /// The tenants whose clones keep off the node because of their own attempts.
    pub avoided_by: Vec<Tenant>,
    /// When the last evidence of slowness was reported; absent for nodes that no tenant's attempts show to be slow.
    pub observed: Option<Instant>,
    /// The jobs whose running attempts are evidence. Evidence of earlier attempts is remembered for a while, and has
    /// no witness here.
    pub witnesses: Vec<Witness>,
}

/// One job whose attempts on a node are evidence about its speed.
#[derive(Debug, Clone, PartialEq)]
pub struct Witness {
    /// The job's tenant. For other tenants all attempts of this one count as one witness at most.
    pub tenant: Tenant,
    /// The job.
    pub job: JobKey,
    /// Its tasks with an attempt there that reports.
    pub tasks: u32,
    /// The speed of these attempts over the usual speed of the job.
    pub pace: f64,
}

/// The estimates of all nodes, in the snapshot's order.
pub(crate) fn paces(round: &Round<'_>) -> Vec<NodePace> {
    let mut paces: Vec<NodePace> = (0..round.snapshot.nodes.len())
        .filter_map(|at| of_node(round, NodeIndex(at)))
        .collect();
    for job in &round.jobs {
        testify(job, &mut paces);
    }
    paces
}

fn of_node(round: &Round<'_>, node: NodeIndex) -> Option<NodePace> {
    let beliefs = &round.beliefs;
    let name = &round.snapshot.nodes.get(node.0)?.name;
    let own = |view: usize| {
        let own = &beliefs.views.get(view)?.own;
        let at = own.binary_search_by_key(&node, |(node, _)| *node).ok()?;
        own.get(at).map(|(_, ln_ratio)| *ln_ratio)
    };
    let reported = (0..beliefs.views.len()).filter_map(own);
    let slowest = reported.reduce(f64::max).map(|reported| {
        let common = beliefs.common.get(node.0).copied();
        reported.max(common.unwrap_or(reported))
    });
    let avoiding = beliefs.tenants.iter();
    let avoiding = avoiding.filter(|(_, view)| beliefs.slow(**view).binary_search(&node).is_ok());
    let remembered = beliefs.remembered.get(name);
    let seen = remembered.into_iter().flatten().map(|(_, it)| it.seen);
    Some(NodePace {
        node: name.clone(),
        pace: slowest.map(|ln_ratio| libm::exp(-ln_ratio)),
        is_slow: slowest.is_some_and(|ln_ratio| ln_ratio > LN_SLOW),
        avoided_by: avoiding.map(|(tenant, _)| tenant.clone()).collect(),
        observed: seen.max(),
        witnesses: Vec::new(),
    })
}

/// Adds the job to the witnesses about the nodes of its attempts.
fn testify(job: &JobView<'_>, paces: &mut [NodePace]) {
    for (node, ln_ratio) in job.heard.means() {
        let there = |task: &&crate::round::TaskEstimate| {
            let mut attempts = task.attempts.iter();
            attempts.any(|attempt| attempt.node == Some(node) && attempt.reports())
        };
        let tasks = job.estimate.tasks.iter().filter(there).count();
        if let Some(pace) = paces.get_mut(node.0) {
            pace.witnesses.push(Witness {
                tenant: job.job.tenant.clone(),
                job: job.job.key.clone(),
                tasks: u32::try_from(tasks).unwrap_or(u32::MAX),
                pace: libm::exp(-ln_ratio),
            });
        }
    }
}

#[cfg(test)]
mod tests;
