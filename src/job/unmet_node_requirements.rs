//! Whether any node of the cluster could hold an attempt if the node were empty, and otherwise the
//! missing requirement. Nodes that are cordoned or not ready count, because they may come back.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{NodeSelectorRequirement, NodeSelectorTerm, PodSpec, Taint};
use shed_core::resources::Resources;

use crate::cluster::node::{Constraints, NodeFacts, tolerates};

/// Taints that Kubernetes itself puts on nodes for as long as something is wrong with them.
const PASSING_TAINTS: [&str; 2] = ["node.kubernetes.io/", "node.cloudprovider.kubernetes.io/"];

/// Parts of a message that are listed; the others are counted.
const LISTED_MAX: usize = 4;

/// The missing resource or feature, if no node could hold an attempt even when empty.
pub fn unmet_requirement<'a>(
    spec: &PodSpec,
    demand: &Resources,
    nodes: impl Iterator<Item = &'a NodeFacts> + Clone,
) -> Option<String> {
    let wants = Wants { spec, demand };
    let nodes = nodes.filter(|node| node.exists);
    if nodes.clone().any(|node| wants.are_met_by(node)) {
        return None;
    }
    let nodes: Vec<&NodeFacts> = nodes.collect();
    if nodes.is_empty() {
        return Some("the cluster has no nodes".to_owned());
    }
    let missing = wants.missing_everywhere(&nodes);
    Some(match missing.is_empty() {
        false => listed(missing, "; "),
        true => wants.missing_by_node(&nodes),
    })
}

/// Requirements on a node.
struct Wants<'a> {
    spec: &'a PodSpec,
    demand: &'a Resources,
}

impl Wants<'_> {
    fn are_met_by(&self, node: &NodeFacts) -> bool {
        let mut selector = self.spec.node_selector.iter().flatten();
        self.is_named(node)
            && node.allocatable.fits(self.demand)
            && selector.all(|(key, value)| node.labels.get(key) == Some(value))
            && node.satisfies_affinity(&Constraints::of(self.spec))
            && self.taint(node).is_none()
    }

    /// Whether the template leaves the choice, or names the node.
    fn is_named(&self, node: &NodeFacts) -> bool {
        let named = self.spec.node_name.as_deref();
        named.is_none_or(|name| name == &*node.name)
    }

    /// Requirements that no node meets, each checked alone.
    fn missing_everywhere(&self, nodes: &[&NodeFacts]) -> Vec<String> {
        let mut missing = Vec::new();
        let named = self.spec.node_name.as_deref();
        if let Some(name) = named.filter(|_| !nodes.iter().any(|node| self.is_named(node))) {
            missing.push(format!("no node has the name {name}"));
        }
        for (key, value) in self.spec.node_selector.iter().flatten() {
            if nodes.iter().all(|node| node.labels.get(key) != Some(value)) {
                missing.push(format!("no node has the label {key}={value}"));
            }
        }
        if nodes
            .iter()
            .all(|node| !node.satisfies_affinity(&Constraints::of(self.spec)))
        {
            let asked = affinity_words(self.spec);
            missing.push(format!(
                "no node satisfies the required node affinity {asked}"
            ));
        }
        missing.extend(self.taints_everywhere(nodes));
        if nodes
            .iter()
            .all(|node| node.allocatable == Resources::default())
        {
            missing.push("no node reports its allocatable resources".to_owned());
            return missing;
        }
        let demand = self.demand.iter().filter(|(_, asked)| *asked > 0);
        missing.extend(demand.filter_map(|(name, asked)| lacking(name, asked, nodes)));
        missing
    }

    fn taints_everywhere(&self, nodes: &[&NodeFacts]) -> Option<String> {
        let taints: Vec<_> = nodes.iter().filter_map(|node| self.taint(node)).collect();
        let are_everywhere = taints.len() == nodes.len();
        let mut words: Vec<String> = taints.into_iter().map(taint_words).collect();
        words.sort_unstable();
        words.dedup();
        are_everywhere.then(|| {
            let taints = listed(words, ", ");
            format!("every node has a taint that spec.tolerations does not cover: {taints}")
        })
    }

    /// For requirements that some nodes meet, but no node meets together: the first unmet one of
    /// each node.
    fn missing_by_node(&self, nodes: &[&NodeFacts]) -> String {
        let mut lacks: BTreeMap<String, usize> = BTreeMap::new();
        for lack in nodes.iter().filter_map(|node| self.first_lack(node)) {
            *lacks.entry(lack).or_insert(0) += 1;
        }
        let mut lacks: Vec<(usize, String)> =
            lacks.into_iter().map(|(lack, n)| (n, lack)).collect();
        lacks.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        let words = lacks
            .into_iter()
            .map(|(count, lack)| format!("{count} {lack}"));
        let all = nodes.len();
        format!("of {all} nodes {}", listed(words.collect(), ", "))
    }

    fn first_lack(&self, node: &NodeFacts) -> Option<String> {
        if !self.is_named(node) {
            return Some("of another name".to_owned());
        }
        let mut selector = self.spec.node_selector.iter().flatten();
        if let Some((key, value)) =
            selector.find(|(key, value)| node.labels.get(*key) != Some(value))
        {
            return Some(format!("without the label {key}={value}"));
        }
        if !node.satisfies_affinity(&Constraints::of(self.spec)) {
            let asked = affinity_words(self.spec);
            return Some(format!("outside the required node affinity {asked}"));
        }
        if let Some(taint) = self.taint(node) {
            return Some(format!("with the taint {}", taint_words(taint)));
        }
        let mut demand = self.demand.iter();
        let (name, asked) =
            demand.find(|(name, asked)| *asked > 0 && *asked > node.allocatable.get(name))?;
        Some(format!("with less {name} than {}", amount(name, asked)))
    }

    /// A taint of the node that lasts and is not tolerated.
    fn taint<'n>(&self, node: &'n NodeFacts) -> Option<&'n Taint> {
        let lasts = |taint: &&Taint| {
            !PASSING_TAINTS
                .iter()
                .any(|begin| taint.key.starts_with(begin))
        };
        let mut taints = node.taints.iter().filter(lasts);
        taints.find(|taint| {
            let mut tolerations = self.spec.tolerations.iter().flatten();
            !tolerations.any(|toleration| tolerates(toleration, taint))
        })
    }
}

/// Why no node has as much of a resource.
fn lacking(name: &str, asked: i64, nodes: &[&NodeFacts]) -> Option<String> {
    let largest = nodes.iter().map(|node| node.allocatable.get(name)).max();
    let largest = largest.unwrap_or(0);
    let words = amount(name, asked);
    if asked <= largest {
        None
    } else if largest <= 0 {
        Some(format!("no node has {name} ({words} requested)"))
    } else {
        let largest = amount(name, largest);
        Some(format!(
            "{name}: {words} requested, the largest node has {largest}"
        ))
    }
}

fn listed(mut words: Vec<String>, between: &str) -> String {
    let more = words.len().saturating_sub(LISTED_MAX);
    words.truncate(LISTED_MAX);
    let mut list = words.join(between);
    if more > 0 {
        list.push_str(&format!("{between}{more} more"));
    }
    list
}

fn taint_words(taint: &Taint) -> String {
    let Taint { key, effect, .. } = taint;
    match taint.value.as_deref().unwrap_or_default() {
        "" => format!("{key}:{effect}"),
        value => format!("{key}={value}:{effect}"),
    }
}

fn affinity_words(spec: &PodSpec) -> String {
    let affinity = spec.affinity.as_ref();
    let node = affinity.and_then(|affinity| affinity.node_affinity.as_ref());
    let required = node.and_then(|node| {
        node.required_during_scheduling_ignored_during_execution
            .as_ref()
    });
    let terms = required.map_or(&[][..], |required| &required.node_selector_terms);
    listed(terms.iter().map(term_words).collect(), " or ")
}

fn term_words(term: &NodeSelectorTerm) -> String {
    let rules = term.match_expressions.iter().chain(&term.match_fields);
    let words: Vec<String> = rules.flatten().map(rule_words).collect();
    match words.is_empty() {
        true => "(an empty term, which matches no node)".to_owned(),
        false => listed(words, " and "),
    }
}

fn rule_words(rule: &NodeSelectorRequirement) -> String {
    let values = rule.values.clone().unwrap_or_default();
    match values.is_empty() {
        true => format!("{} {}", rule.key, rule.operator),
        false => format!("{} {} ({})", rule.key, rule.operator, listed(values, ", ")),
    }
}

/// An amount as users write it: `500m`, `16Gi`.
fn amount(name: &str, amount: i64) -> String {
    let is_of_bytes = ["memory", "ephemeral-storage", "storage"].contains(&name)
        || name.starts_with("hugepages-");
    if name == "cpu" && amount % 1000 != 0 {
        format!("{amount}m")
    } else if name == "cpu" {
        (amount / 1000).to_string()
    } else if is_of_bytes {
        bytes(amount)
    } else {
        amount.to_string()
    }
}

fn bytes(amount: i64) -> String {
    let units = [("Ti", 40), ("Gi", 30), ("Mi", 20), ("Ki", 10)];
    let unit = units.into_iter().find(|(_, bits)| amount >= 1 << bits);
    match unit {
        None => amount.to_string(),
        Some((unit, bits)) if amount % (1 << bits) == 0 => format!("{}{unit}", amount >> bits),
        Some((unit, bits)) => format!("{:.1}{unit}", amount as f64 / (1i64 << bits) as f64),
    }
}

#[cfg(test)]
mod tests;
