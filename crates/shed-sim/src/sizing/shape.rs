//! Clusters of any size that are made like a given one.

use shed_core::ids::NodeName;

use crate::settings::{Cluster, NodeSpec};

/// What clusters are made of.
#[derive(Debug, Clone)]
pub enum Shape {
    /// Equal slots.
    Slots,
    /// Nodes of one or more kinds; at least one node.
    Nodes(Vec<Kind>),
}

/// Nodes that differ in their names alone.
#[derive(Debug, Clone)]
pub struct Kind {
    nodes: Vec<NodeSpec>,
}

impl Shape {
    /// The shape of a cluster.
    pub fn of(cluster: &Cluster) -> Self {
        let Cluster::Nodes(nodes) = cluster else {
            return Self::Slots;
        };
        let mut kinds: Vec<Kind> = Vec::new();
        for node in nodes {
            match kinds.iter_mut().find(|kind| kind.has(node)) {
                Some(kind) => kind.nodes.push(node.clone()),
                None => kinds.push(Kind {
                    nodes: vec![node.clone()],
                }),
            }
        }
        Self::Nodes(kinds)
    }

    /// A cluster of that size. Every cluster contains the smaller ones. Kinds have the shares of the
    /// given cluster, as nearly as whole nodes allow; at its size, and at multiples of it, exactly.
    pub fn cluster(&self, size: u32) -> Cluster {
        let kinds = match self {
            Self::Slots => return Cluster::Slots(size),
            Self::Nodes(kinds) => kinds,
        };
        let all: i64 = kinds.iter().map(Kind::count).sum();
        let mut taken = vec![0_i64; kinds.len()];
        let mut nodes = Vec::with_capacity(size as usize);
        for position in 1..=i64::from(size) {
            // The kind that is furthest behind its share, then the first.
            let behind = |at: &usize| kinds[*at].count() * position - all * taken[*at];
            let furthest = (0..kinds.len()).rev().max_by_key(behind);
            let Some(at) = furthest else {
                break;
            };
            nodes.push(kinds[at].node(taken[at] as usize));
            taken[at] += 1;
        }
        Cluster::Nodes(nodes)
    }
}

impl Kind {
    fn count(&self) -> i64 {
        self.nodes.len() as i64
    }

    fn has(&self, node: &NodeSpec) -> bool {
        self.nodes.first().is_some_and(|first| {
            let renamed = NodeSpec {
                name: first.name.clone(),
                ..node.clone()
            };
            renamed == *first
        })
    }

    /// The nodes of the given cluster, then copies of them.
    fn node(&self, number: usize) -> NodeSpec {
        let (round, at) = (number / self.nodes.len(), number % self.nodes.len());
        let mut node = self.nodes[at].clone();
        if round > 0 {
            node.name = NodeName::from(format!("{}+{round}", node.name.0).as_str());
        }
        node
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use shed_core::resources::Resources;

    use super::*;

    fn node(name: &str, cores: i64) -> NodeSpec {
        NodeSpec {
            name: NodeName::from(name),
            allocatable: Resources::from_pairs([("cpu", cores * 1000), ("pods", 110)]),
            speed: 1.0,
            changes: Vec::new(),
            slowdowns: None,
        }
    }

    fn cores(shape: &Shape, size: u32) -> Vec<i64> {
        match shape.cluster(size) {
            Cluster::Nodes(nodes) => nodes
                .iter()
                .map(|node| node.allocatable.get("cpu") / 1000)
                .collect(),
            Cluster::Slots(_) => Vec::new(),
        }
    }

    #[test]
    fn clusters_keep_the_shares_of_kinds_and_contain_smaller_ones() {
        let nodes = ["a", "b", "c", "d"].map(|name| node(name, 8));
        let given: Vec<NodeSpec> = [node("big", 64)].into_iter().chain(nodes).collect();
        let shape = Shape::of(&Cluster::Nodes(given.clone()));
        let large = cores(&shape, 15);
        for size in 0..15 {
            assert_eq!(cores(&shape, size), large[..size as usize]);
        }
        let big = |size: u32| cores(&shape, size).iter().filter(|c| **c == 64).count();
        assert_eq!([big(5), big(10), big(15)], [1, 2, 3]);
        assert!((1..3).contains(&big(7)));
        let Cluster::Nodes(same) = shape.cluster(5) else {
            panic!("nodes make nodes");
        };
        let names = |nodes: &[NodeSpec]| -> BTreeSet<NodeName> {
            nodes.iter().map(|node| node.name.clone()).collect()
        };
        assert_eq!(names(&same), names(&given));
        let Cluster::Nodes(many) = shape.cluster(40) else {
            panic!("nodes make nodes");
        };
        assert_eq!(names(&many).len(), 40, "names are unique");
    }

    #[test]
    fn slots_stay_slots() {
        let shape = Shape::of(&Cluster::Slots(7));
        assert_eq!(shape.cluster(90), Cluster::Slots(90));
    }
}
