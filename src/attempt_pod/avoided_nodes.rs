//! Nodes that a plan prefers to avoid for an attempt, such as the straggler's node for a clone, as
//! a preference of the pod's node affinity. They are not in the ledger. If a later pass than the
//! recording one creates the pod, the pod has no such preference, which does no harm.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Affinity, NodeAffinity, NodeSelectorRequirement, NodeSelectorTerm, Pod, PreferredSchedulingTerm,
};
use shed_core::ids::NodeName;

use crate::cluster::pod::AttemptId;
use crate::job::notice::Notice;

/// The attempts that a step launches for which some nodes are second choice, and these nodes.
pub fn rather_not(notices: &[Notice]) -> BTreeMap<AttemptId, &[NodeName]> {
    let launched = notices.iter().filter_map(|notice| match notice {
        Notice::Launched { id, launch } => Some((*id, launch.rather_not.as_slice())),
        _ => None,
    });
    launched.filter(|(_, nodes)| !nodes.is_empty()).collect()
}

/// The scheduler places the pod on these nodes only if no other is as good otherwise.
pub fn prefer_others(pod: &mut Pod, nodes: &[NodeName]) {
    let Some(spec) = pod.spec.as_mut().filter(|_| !nodes.is_empty()) else {
        return;
    };
    // The field selector takes one value per requirement.
    let rules = nodes.iter().map(|node| NodeSelectorRequirement {
        key: "metadata.name".to_owned(),
        operator: "NotIn".to_owned(),
        values: Some(vec![node.to_string()]),
    });
    let term = PreferredSchedulingTerm {
        weight: 100,
        preference: NodeSelectorTerm {
            match_fields: Some(rules.collect()),
            match_expressions: None,
        },
    };
    spec.affinity
        .get_or_insert_with(Affinity::default)
        .node_affinity
        .get_or_insert_with(NodeAffinity::default)
        .preferred_during_scheduling_ignored_during_execution
        .get_or_insert_with(Vec::new)
        .push(term);
}
