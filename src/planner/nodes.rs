//! The nodes of a pass. All nodes are numbered, also those that accept no attempts now (cordoned,
//! not ready) and those with attempts whose object is gone. Attempts there are charged to these
//! nodes and to no other.

#[cfg(test)]
use std::cell::Cell;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use k8s_openapi::api::core::v1::PodSpec;
use shed_core::ids::NodeName;
use shed_core::resources::Resources;
use shed_core::snapshot::{JobSnapshot, Node, NodeIndex};

use crate::cluster::Stores;
use crate::cluster::node::{Constraints, NodeFacts};
use crate::validate::ValidatedJob;

/// The nodes of a pass, in the order of their positions in the snapshot.
pub(super) struct NumberedNodes {
    facts: Vec<NodeFacts>,
    /// Positions by name.
    pub(super) positions: Arc<BTreeMap<Arc<str>, NodeIndex>>,
    /// Nodes that jobs may use, by the jobs' constraints.
    eligible: RefCell<HashMap<String, Arc<[NodeIndex]>>>,
    /// How often a node was looked at for that.
    #[cfg(test)]
    visits: Cell<usize>,
}

impl NumberedNodes {
    /// The nodes that the stores show, and the missing ones that attempts are on.
    pub(super) fn of(stores: &Stores, missing: &BTreeSet<Arc<str>>) -> Self {
        let mut facts = stores.nodes.all();
        for name in missing {
            let missing = || NodeFacts::missing(Arc::clone(name));
            facts.entry(Arc::clone(name)).or_insert_with(missing);
        }
        let facts: Vec<NodeFacts> = facts.into_values().collect();
        let names = facts.iter().map(|node| Arc::clone(&node.name));
        let positions = Arc::new(names.zip((0..).map(NodeIndex)).collect());
        Self {
            facts,
            positions,
            eligible: RefCell::default(),
            #[cfg(test)]
            visits: Cell::default(),
        }
    }

    /// Facts about the nodes.
    pub(super) fn facts(&self) -> &[NodeFacts] {
        &self.facts
    }

    /// Nodes that the job's attempts may use. Most jobs of a cluster request the same few kinds of
    /// nodes, so each kind is looked up once in a pass.
    pub(super) fn eligible(&self, job: &ValidatedJob) -> Arc<[NodeIndex]> {
        let none = PodSpec::default();
        let wanted = Constraints::of(job.template.spec.as_ref().unwrap_or(&none));
        let Ok(key) = serde_json::to_string(&wanted) else {
            return self.admitting(&wanted);
        };
        let mut known = self.eligible.borrow_mut();
        let nodes = known.entry(key);
        Arc::clone(nodes.or_insert_with(|| self.admitting(&wanted)))
    }

    fn admitting(&self, wanted: &Constraints<'_>) -> Arc<[NodeIndex]> {
        let nodes = self.facts.iter().zip((0..).map(NodeIndex));
        #[cfg(test)]
        let nodes = nodes.inspect(|_| self.visits.set(self.visits.get() + 1));
        let admitting = nodes.filter(|(node, _)| node.admits(wanted));
        admitting.map(|(_, position)| position).collect()
    }

    /// The nodes for the core, with the capacity that these attempts leave free. A node that accepts no attempts has
    /// nothing free.
    pub(super) fn snapshot(
        &self,
        others: &BTreeMap<Arc<str>, Resources>,
        charges: &NodeCharges,
    ) -> Vec<Node> {
        let node = |(at, facts): (usize, &NodeFacts)| {
            let used_by_others = others.get(&facts.name).cloned().unwrap_or_default();
            let mut free = Resources::default();
            if facts.usable {
                free = facts.allocatable.clone();
                free.subtract(&used_by_others);
                free.subtract(&charges.held(NodeIndex(at)));
            }
            Node {
                name: NodeName(Arc::clone(&facts.name)),
                allocatable: facts.allocatable.clone(),
                free,
                used_by_others,
                usable: facts.usable,
            }
        };
        self.facts.iter().enumerate().map(node).collect()
    }
}

/// The attempts that hold capacity, by node: each demand, and how many attempts have it.
#[derive(Clone, Default)]
pub(super) struct NodeCharges(Vec<Vec<(Resources, usize)>>);

impl NodeCharges {
    /// Charges the job's attempts to their nodes.
    pub(super) fn add(&mut self, job: &JobSnapshot) {
        for NodeIndex(node) in charged_nodes(job) {
            if self.0.len() <= node {
                self.0.resize_with(node + 1, Vec::new);
            }
            let known = &mut self.0[node];
            match known.iter_mut().find(|(demand, _)| *demand == job.demand) {
                Some((_, count)) => *count += 1,
                None => known.push((job.demand.clone(), 1)),
            }
        }
    }

    /// Takes back what [`NodeCharges::add`] has charged for the job.
    pub(super) fn remove(&mut self, job: &JobSnapshot) {
        for NodeIndex(node) in charged_nodes(job) {
            let Some(known) = self.0.get_mut(node) else {
                continue;
            };
            if let Some((_, count)) = known.iter_mut().find(|(demand, _)| *demand == job.demand) {
                *count -= 1;
            }
            known.retain(|(_, count)| *count > 0);
        }
    }

    fn held(&self, node: NodeIndex) -> Resources {
        let mut held = Resources::default();
        for (demand, count) in self.0.get(node.0).into_iter().flatten() {
            held.add_times(demand, *count);
        }
        held
    }
}

/// The node of each attempt that holds capacity.
fn charged_nodes(job: &JobSnapshot) -> impl Iterator<Item = NodeIndex> {
    let attempts = job.tasks.iter().flat_map(|task| &task.attempts);
    attempts
        .filter(|attempt| attempt.holds_capacity())
        .filter_map(|attempt| attempt.node)
}

#[cfg(test)]
mod tests;
