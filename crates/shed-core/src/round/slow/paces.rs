//! The estimates of nodes as people read them: how fast each node is, who keeps off it, and whose attempts show it.

use crate::decide::opened;
use crate::ids::{JobKey, NodeName, Tenant};
use crate::memory::Memory;
use crate::policy::Policy;
use crate::round::{Changed, JobView, KeptJobs, Round};
use crate::snapshot::{NodeIndex, Snapshot};
use crate::time::Instant;
use crate::validate::sound;

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

/// The estimates of all nodes, in the snapshot's order, as the policy has them in a pass that looks at every job.
#[must_use]
pub fn node_paces(snapshot: &Snapshot, memory: &Memory, policy: &Policy) -> Vec<NodePace> {
    let (snapshot, _) = sound(snapshot);
    let round = opened(&snapshot, memory, policy, KeptJobs::default(), Changed::All);
    let mut paces: Vec<NodePace> = (0..snapshot.nodes.len())
        .filter_map(|at| of_node(&round, NodeIndex(at)))
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
    let told = (0..beliefs.views.len()).filter_map(own);
    let slowest = told.reduce(f64::max).map(|told| {
        let common = beliefs.common.get(node.0).copied();
        told.max(common.unwrap_or(told))
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
mod tests {
    use super::*;
    use crate::fixtures::{JobBuilder, attempt, job, world};

    /// Two tasks on node 0 that take `slow` times as long as the six on other nodes.
    fn tenant_job(key: &str, tenant: &str, slow: f64) -> JobBuilder {
        let on = |node: usize, times: f64| attempt(0).on(node).progress(0.4 / times, 39.0);
        let built = job(key).tenant(tenant).tasks(8).deadline_in(500.0);
        let built = built.task(0, [on(0, slow)]).task(1, [on(0, slow)]);
        (2..8).fold(built, |built, task| {
            built.task(task, [on(1 + task as usize % 3, 1.0)])
        })
    }

    fn paces(jobs: impl IntoIterator<Item = JobBuilder>) -> Vec<NodePace> {
        let cluster = world(40.0, 5, 64_000);
        let cluster = jobs.into_iter().fold(cluster, |world, job| world.job(job));
        let policy = "shed-prime".parse().unwrap();
        node_paces(&cluster.build(), &Memory::default(), &policy)
    }

    #[test]
    fn a_slow_node_has_its_witnesses_and_a_node_without_attempts_none() {
        let paces = paces([tenant_job("a", "ours", 3.0)]);
        let slow = &paces[0];
        assert!(slow.is_slow && slow.pace.unwrap() < 0.67, "{slow:?}");
        assert_eq!(slow.avoided_by, [Tenant::from("ours")]);
        assert_eq!(slow.observed, Some(Instant(40_000)));
        assert_eq!(slow.witnesses.len(), 1);
        let witness = &slow.witnesses[0];
        assert_eq!((witness.tasks, &*witness.job.0), (2, "a"));
        assert!((witness.pace - 1.0 / 3.0).abs() < 0.01, "{witness:?}");
        let usual = &paces[1];
        assert!(!usual.is_slow && usual.avoided_by.is_empty(), "{usual:?}");
        assert!((usual.pace.unwrap() - 1.0).abs() < 0.2, "{usual:?}");
        let unknown = &paces[4];
        assert_eq!((unknown.pace, unknown.is_slow), (None, false));
        assert!(unknown.witnesses.is_empty());
    }

    #[test]
    fn another_tenants_attempts_are_one_witness_and_no_reason_to_keep_off() {
        let ours = || tenant_job("a", "ours", 1.0);
        let two = paces([tenant_job("b", "theirs", 3.0), ours()]);
        assert_eq!(two[0].avoided_by, [Tenant::from("theirs")]);
        let tenants: Vec<&str> = two[0].witnesses.iter().map(|it| &*it.tenant.0).collect();
        assert_eq!(tenants, ["ours", "theirs"]);
        let alone = paces([tenant_job("b", "theirs", 3.0)]);
        let (alone, two) = (alone[0].pace.unwrap(), two[0].pace.unwrap());
        // The other tenant's usual times count too, as one witness.
        assert!(two > alone && two < 0.67, "{two} {alone}");
    }
}
