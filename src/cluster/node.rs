//! Nodes, and which of them a job's attempts may use.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{
    Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, PodSpec, Taint, Toleration,
};
use serde::Serialize;
use shed_core::resources::Resources;

use crate::cluster::requests;

/// The taint by which an administrator, or a fencing agent, marks the machine as off.
const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

/// Conditions by which an administrator or a tool announces that pods must leave the node (Kubernetes 1.37).
const MAINTENANCE: [&str; 2] = ["DrainInProgress", "MaintenancePlanned"];

/// A node, boiled down.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeFacts {
    /// Name.
    pub name: Arc<str>,
    /// Whether the cluster has an object for it.
    pub exists: bool,
    /// Its kubelet reports that it can run pods.
    pub ready: bool,
    /// Ready, not cordoned, no maintenance announced, and known to have anything to give.
    pub usable: bool,
    /// A condition announces its maintenance, and the scheduler may still place pods on it.
    pub maintained: bool,
    /// Changes whenever the machine starts.
    pub boot: String,
    /// An administrator confirmed that the machine is off, with everything on it.
    pub is_out_of_service: bool,
    /// Its own addresses. No polled pod has one of them.
    pub addresses: Vec<IpAddr>,
    /// Resources that pods may use.
    pub allocatable: Resources,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Taints that keep pods away.
    pub taints: Vec<Taint>,
}

/// The fields of a template that limit the nodes of its pods, without capacity. Its JSON is a key:
/// jobs with equal keys may use the same nodes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Constraints<'a> {
    node_name: Option<&'a str>,
    node_selector: Option<&'a BTreeMap<String, String>>,
    affinity: Option<&'a NodeSelector>,
    tolerations: &'a [Toleration],
}

impl<'a> Constraints<'a> {
    /// The constraints of this specification.
    pub fn of(spec: &'a PodSpec) -> Self {
        let affinity = spec.affinity.as_ref();
        let affinity = affinity.and_then(|affinity| affinity.node_affinity.as_ref());
        Self {
            node_name: spec.node_name.as_deref(),
            node_selector: spec.node_selector.as_ref(),
            affinity: affinity.and_then(|affinity| {
                let required = &affinity.required_during_scheduling_ignored_during_execution;
                required.as_ref()
            }),
            tolerations: spec.tolerations.as_deref().unwrap_or_default(),
        }
    }
}

impl NodeFacts {
    /// Boils a node down.
    pub fn from_node(node: &Node) -> Self {
        let spec = node.spec.as_ref();
        let status = node.status.as_ref();
        let conditions = status.and_then(|status| status.conditions.as_ref());
        let is_true = |name: &str| {
            let mut conditions = conditions.into_iter().flatten();
            conditions.any(|condition| condition.type_ == name && condition.status == "True")
        };
        let ready = is_true("Ready");
        let announced = MAINTENANCE.into_iter().any(is_true);
        let cordoned = spec.and_then(|spec| spec.unschedulable).unwrap_or(false);
        let allocatable = status
            .and_then(|status| status.allocatable.as_ref())
            .map(requests::amounts)
            .unwrap_or_default();
        Self {
            name: Arc::from(node.metadata.name.as_deref().unwrap_or_default()),
            exists: true,
            ready,
            usable: ready && !cordoned && !announced && allocatable.iter().next().is_some(),
            maintained: announced && ready && !cordoned,
            boot: status
                .and_then(|status| status.node_info.as_ref())
                .map(|info| info.boot_id.clone())
                .unwrap_or_default(),
            is_out_of_service: spec
                .and_then(|spec| spec.taints.as_ref())
                .into_iter()
                .flatten()
                .any(|taint| taint.key == OUT_OF_SERVICE),
            addresses: status
                .and_then(|status| status.addresses.as_ref())
                .into_iter()
                .flatten()
                .filter_map(|address| Some(address.address.parse::<IpAddr>().ok()?.to_canonical()))
                .collect(),
            allocatable,
            labels: node.metadata.labels.clone().unwrap_or_default(),
            taints: spec
                .and_then(|spec| spec.taints.clone())
                .unwrap_or_default()
                .into_iter()
                .filter(|taint| taint.effect != "PreferNoSchedule")
                .collect(),
        }
    }

    /// A node with pods that has no object (any more).
    pub fn missing(name: Arc<str>) -> Self {
        Self {
            name,
            exists: false,
            ready: false,
            usable: false,
            maintained: false,
            boot: String::new(),
            is_out_of_service: false,
            addresses: Vec::new(),
            allocatable: Resources::default(),
            labels: BTreeMap::new(),
            taints: Vec::new(),
        }
    }

    /// Whether the scheduler could place a pod with these constraints here, without regard to
    /// capacity. It checks selector, required affinity and taints, as the scheduler reads them. A
    /// template that names its node can use only that node.
    pub fn admits(&self, wanted: &Constraints<'_>) -> bool {
        self.usable
            && wanted.node_name.is_none_or(|name| name == &*self.name)
            && wanted
                .node_selector
                .iter()
                .copied()
                .flatten()
                .all(|(key, value)| self.labels.get(key) == Some(value))
            && self.satisfies_affinity(wanted)
            && self.taints.iter().all(|taint| {
                wanted
                    .tolerations
                    .iter()
                    .any(|toleration| tolerates(toleration, taint))
            })
    }

    /// Whether the required node affinity admits the pod here.
    pub(crate) fn satisfies_affinity(&self, wanted: &Constraints<'_>) -> bool {
        wanted.affinity.is_none_or(|selector| {
            selector
                .node_selector_terms
                .iter()
                .any(|term| self.matches_term(term))
        })
    }

    fn matches_term(&self, term: &NodeSelectorTerm) -> bool {
        let expressions = term.match_expressions.as_deref().unwrap_or_default();
        let fields = term.match_fields.as_deref().unwrap_or_default();
        // An empty term matches nothing.
        !(expressions.is_empty() && fields.is_empty())
            && expressions
                .iter()
                .all(|rule| matches_rule(rule, self.labels.get(&rule.key).map(String::as_str)))
            && fields
                .iter()
                .all(|rule| rule.key == "metadata.name" && matches_rule(rule, Some(&self.name)))
    }
}

fn matches_rule(rule: &NodeSelectorRequirement, value: Option<&str>) -> bool {
    let values = rule.values.as_deref().unwrap_or_default();
    let listed = value.is_some_and(|value| values.iter().any(|listed| listed == value));
    let number = |text: Option<&str>| text.and_then(|text| text.parse::<i64>().ok());
    let bound = number(values.first().map(String::as_str));
    match rule.operator.as_str() {
        "In" => listed,
        "NotIn" => !listed,
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => matches!((number(value), bound), (Some(value), Some(bound)) if value > bound),
        "Lt" => matches!((number(value), bound), (Some(value), Some(bound)) if value < bound),
        // An operator that this version does not know: keep away rather than overcount.
        _ => false,
    }
}

pub(crate) fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let effect = toleration.effect.as_deref().unwrap_or_default();
    let key = toleration.key.as_deref().unwrap_or_default();
    let effect_matches = effect.is_empty() || effect == taint.effect;
    let key_matches = key.is_empty() || key == taint.key;
    let value_matches = match toleration.operator.as_deref() {
        Some("Exists") => true,
        _ => {
            toleration.value.as_deref().unwrap_or_default()
                == taint.value.as_deref().unwrap_or_default()
                && !key.is_empty()
        }
    };
    effect_matches && key_matches && value_matches
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(extra: &str) -> NodeFacts {
        let yaml = format!(
            "{{metadata: {{name: node-1, labels: {{zone: a, size: '4'}}}}, spec: {{{extra}}}, \
             status: {{conditions: [{{type: Ready, status: 'True'}}], allocatable: {{cpu: '2'}}}}}}"
        );
        NodeFacts::from_node(&serde_saphyr::from_str(&yaml).unwrap())
    }

    fn admits(node: &NodeFacts, spec: &PodSpec) -> bool {
        node.admits(&Constraints::of(spec))
    }

    fn spec(extra: &str) -> PodSpec {
        serde_saphyr::from_str(&format!("{{containers: [{{name: c}}], {extra}}}")).unwrap()
    }

    #[test]
    fn selectors_and_affinity_are_read_as_the_scheduler_reads_them() {
        let affinity = |rule: &str| {
            spec(&format!(
                "affinity: {{nodeAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: \
                 {{nodeSelectorTerms: [{{matchExpressions: [{rule}]}}]}}}}}}"
            ))
        };
        assert!(admits(&node(""), &spec("nodeSelector: {zone: a}")));
        assert!(!admits(&node(""), &spec("nodeSelector: {zone: b}")));
        assert!(admits(
            &node(""),
            &affinity("{key: size, operator: Gt, values: ['3']}")
        ));
        assert!(!admits(
            &node(""),
            &affinity("{key: size, operator: Lt, values: ['3']}")
        ));
        assert!(!admits(
            &node(""),
            &affinity("{key: zone, operator: NotIn, values: [a]}")
        ));
        assert!(admits(
            &node(""),
            &affinity("{key: gpu, operator: DoesNotExist}")
        ));
    }

    #[test]
    fn a_taint_keeps_pods_away_unless_tolerated_and_a_cordon_always() {
        let tainted = node("taints: [{key: only, value: us, effect: NoSchedule}]");
        assert!(!admits(&tainted, &spec("")));
        assert!(admits(
            &tainted,
            &spec("tolerations: [{key: only, operator: Exists}]")
        ));
        assert!(admits(
            &tainted,
            &spec("tolerations: [{key: only, value: us}]")
        ));
        assert!(!admits(
            &tainted,
            &spec("tolerations: [{key: only, value: them}]")
        ));
        assert!(!admits(&node("unschedulable: true"), &spec("")));
        assert!(admits(
            &node("taints: [{key: k, effect: PreferNoSchedule}]"),
            &spec("")
        ));
    }

    #[test]
    fn a_node_whose_maintenance_is_announced_takes_no_attempts() {
        let with = |condition: &str, cordoned: bool| {
            let mut node = crate::fixtures::node("node-1", 4);
            let condition = serde_saphyr::from_str(condition).unwrap();
            let conditions = &mut node.status.as_mut().unwrap().conditions;
            conditions.get_or_insert_default().push(condition);
            node.spec.get_or_insert_default().unschedulable = Some(cordoned);
            let facts = NodeFacts::from_node(&node);
            (facts.usable, facts.maintained)
        };
        let drain = "{type: DrainInProgress, status: 'True'}";
        assert_eq!(with(drain, false), (false, true));
        assert_eq!(with(drain, true), (false, false), "the scheduler avoids it");
        let planned = "{type: MaintenancePlanned, status: 'True'}";
        assert_eq!(with(planned, false), (false, true));
        let over = "{type: MaintenancePlanned, status: 'False'}";
        assert_eq!(with(over, false), (true, false));
    }

    #[test]
    fn a_template_that_names_its_node_can_use_no_other() {
        assert!(admits(&node(""), &spec("nodeName: node-1")));
        assert!(!admits(&node(""), &spec("nodeName: node-2")));
    }
}
