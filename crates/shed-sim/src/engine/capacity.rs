//! Nodes, their free capacity, and the placement of attempts: the simulator's replacement for the cluster's
//! scheduler.

use shed_core::ids::NodeName;
use shed_core::resources::Resources;
use shed_core::snapshot::Node;

use crate::settings::{Cluster, NodeSpec};
use crate::trace::Demand;

/// The resource that counts attempts.
pub(super) const PODS: &str = "pods";

/// Where attempts run.
#[derive(Debug)]
pub(super) enum Capacity {
    /// Slots that each take any one attempt.
    Slots {
        total: u32,
        used: u32,
        /// Job masters. Each takes a slot from attempts, and one slot is left whatever their number.
        masters: u32,
    },
    /// Nodes.
    Nodes(Vec<NodeCapacity>),
}

/// A node.
#[derive(Debug)]
pub(super) struct NodeCapacity {
    pub(super) spec: NodeSpec,
    held: Resources,
    /// Allocatable less held; nothing while it is lost.
    free: Resources,
    /// Whether its free or total capacity differs from what the planner was last given.
    stale: bool,
    /// The factor of the last change; 0 while the node is lost.
    factor: f64,
    pub(super) next_change: usize,
    /// The factor of its slowness process.
    pub(super) drawn: f64,
    pub(super) draws: u64,
}

impl NodeCapacity {
    /// The node's present speed.
    pub(super) fn speed(&self) -> f64 {
        self.spec.speed * self.factor * self.drawn
    }

    /// Changes the node's speed by this factor; with 0 the node is lost.
    pub(super) fn change(&mut self, factor: f64) {
        self.factor = factor;
        self.account();
    }

    fn hold(&mut self, demand: &Resources) {
        self.held.add(demand);
        self.account();
    }

    fn release(&mut self, demand: &Resources) {
        self.held.subtract(demand);
        self.account();
    }

    fn account(&mut self) {
        self.stale = true;
        self.free = if self.factor > 0.0 {
            let mut free = self.spec.allocatable.clone();
            free.subtract(&self.held);
            free
        } else {
            Resources::default()
        };
    }

    fn node(&self) -> Node {
        Node {
            name: self.spec.name.clone(),
            allocatable: if self.factor > 0.0 {
                self.spec.allocatable.clone()
            } else {
                Resources::default()
            },
            free: self.free.clone(),
            used_by_others: Resources::default(),
            usable: true,
        }
    }
}

impl Capacity {
    pub(super) fn new(cluster: &Cluster) -> Self {
        match cluster {
            Cluster::Slots(total) => Self::Slots {
                total: *total,
                used: 0,
                masters: 0,
            },
            Cluster::Nodes(specs) => Self::Nodes(
                specs
                    .iter()
                    .map(|spec| NodeCapacity {
                        spec: spec.clone(),
                        held: Resources::default(),
                        free: spec.allocatable.clone(),
                        stale: false,
                        factor: 1.0,
                        next_change: 0,
                        drawn: 1.0,
                        draws: 0,
                    })
                    .collect(),
            ),
        }
    }

    /// The requests of an attempt on this cluster.
    pub(super) fn demand(&self, demand: Demand) -> Resources {
        let mut resources = Resources::from_pairs([(PODS, 1)]);
        if let Self::Nodes(_) = self {
            for (name, amount) in [("cpu", demand.cpu_milli), ("memory", demand.memory_bytes)] {
                if let Some(amount) = amount.filter(|amount| *amount > 0) {
                    resources.set(name, amount);
                }
            }
        }
        resources
    }

    /// Places an attempt on a node. One of `avoid` is used only if no other node has enough capacity. Among the
    /// others it is the node with the most left of its scarcest resource, then the first. `None` if no node has
    /// enough.
    pub(super) fn place(&mut self, demand: &Resources, avoid: &[NodeName]) -> Option<u32> {
        match self {
            Self::Slots {
                total,
                used,
                masters,
            } => (*used < *total - held_by(*masters, *total)).then(|| {
                *used += 1;
                0
            }),
            Self::Nodes(nodes) => {
                let mut best: Option<((bool, u32), usize)> = None;
                for (at, node) in nodes.iter().enumerate() {
                    let times = node.free.times(demand);
                    let key = (!avoid.contains(&node.spec.name), times);
                    if times > 0 && best.is_none_or(|(other, _)| key > other) {
                        best = Some((key, at));
                    }
                }
                let (_, at) = best?;
                nodes[at].hold(demand);
                Some(at as u32)
            }
        }
    }

    /// Places an attempt on that node, if it has enough capacity. Slots have no names.
    pub(super) fn place_on(&mut self, demand: &Resources, name: &NodeName) -> Option<u32> {
        let Self::Nodes(nodes) = self else {
            return None;
        };
        let at = nodes.iter().position(|node| node.spec.name == *name)?;
        (nodes[at].free.times(demand) > 0).then(|| {
            nodes[at].hold(demand);
            at as u32
        })
    }

    /// A job master takes a slot, or gives it back. Nodes have no job masters.
    pub(super) fn count_master(&mut self, begins: bool) {
        if let Self::Slots { masters, .. } = self {
            *masters = match begins {
                true => *masters + 1,
                false => *masters - 1,
            };
        }
    }

    /// Frees the attempt's capacity.
    pub(super) fn release(&mut self, node: u32, demand: &Resources) {
        match self {
            Self::Slots { used, .. } => *used -= 1,
            Self::Nodes(nodes) => nodes[node as usize].release(demand),
        }
    }

    /// The node's present speed.
    pub(super) fn speed(&self, node: u32) -> f64 {
        match self {
            Self::Slots { .. } => 1.0,
            Self::Nodes(nodes) => nodes[node as usize].speed(),
        }
    }

    /// Updates the nodes in the planner's last snapshot.
    pub(super) fn show(&mut self, shown: &mut Vec<Node>) {
        let is_first = shown.is_empty();
        match self {
            Self::Slots { total, masters, .. } => {
                let masters = i64::from(held_by(*masters, *total));
                match shown.first_mut() {
                    None => shown.push(slots_node(i64::from(*total), masters)),
                    Some(node) => node.used_by_others.set(PODS, masters),
                }
            }
            Self::Nodes(nodes) if is_first => shown.extend(nodes.iter().map(NodeCapacity::node)),
            Self::Nodes(nodes) => {
                for (node, shown) in nodes.iter_mut().zip(shown) {
                    if std::mem::take(&mut node.stale) {
                        *shown = node.node();
                    }
                }
            }
        }
    }

    /// The number of nodes.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Slots { .. } => 1,
            Self::Nodes(nodes) => nodes.len(),
        }
    }
}

/// The slots that job masters hold.
pub(super) fn held_by(masters: u32, slots: u32) -> u32 {
    masters.min(slots.saturating_sub(1))
}

/// All slots as one node. The facts do not assign attempts to it, and the core reserves capacity for each attempt in
/// the facts.
fn slots_node(total: i64, masters: i64) -> Node {
    let pods = Resources::from_pairs([(PODS, total)]);
    Node {
        name: NodeName::from("slots"),
        allocatable: pods.clone(),
        free: pods,
        used_by_others: Resources::from_pairs([(PODS, masters)]),
        usable: true,
    }
}
