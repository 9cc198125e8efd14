//! Nodes on which attempts are slow: an estimate for each node, from the present and the recent reports of its
//! attempts.
//!
//! A tenant's reports are not trusted by others, so each tenant has estimates of its own. Its own attempts count
//! fully; those of another tenant count as one witness per node at most. The clones of a tenant keep off the nodes
//! that its own attempts show to be slow. Evidence from other tenants alone is only a preference.

use std::collections::BTreeMap;

use crate::ids::Tenant;
use crate::memory::{Memory, SlowNodes};
use crate::round::JobView;
use crate::snapshot::{Node, NodeIndex, Snapshot};

mod evidence;
mod paces;

pub(crate) use evidence::Heard;
use evidence::{Reported, testimonies};
pub(crate) use paces::paces;
pub use paces::{NodePace, Witness};

/// ln of the slowness at which a node is avoided: 1.5 times the median of the job.
const LN_SLOW: f64 = 0.405_465_108_108_164_4;

/// At most this many nodes are named, the slowest first: each becomes a term that the cluster's scheduler weighs for
/// every pod.
const SLOW_MAX: usize = 10;

/// The prior weight, in witnesses, of a node being as fast as others. A task can be slow by itself: one witness alone
/// never marks its node as slow. Two witnesses that take two and a half times the usual time do.
const PRIOR_WEIGHT: f64 = 2.5;

/// More witnesses add no evidence, because the same cause slows them.
const WEIGHT_MAX: f64 = 4.0;

/// The most that another tenant's attempts on a node count, in witnesses.
const FOREIGN_WEIGHT_MAX: f64 = 1.0;

/// An estimate with less weight is forgotten.
const WEIGHT_MIN: f64 = 0.1;

/// The evidence of one tenant's attempts about nodes, ascending by node.
struct Testimony {
    tenant: Tenant,
    reported: Vec<Reported>,
}

/// The tenants' estimates of nodes.
pub(crate) struct Beliefs {
    /// Per node of the snapshot: the estimate of a tenant whose own attempts give no evidence about the node. It is
    /// the expected ln(time of an attempt there over the usual time).
    common: Vec<f64>,
    /// The first view is that of tenants whose attempts give no evidence about any node.
    views: Vec<View>,
    tenants: BTreeMap<Tenant, usize>,
    /// The evidence to remember.
    pub(crate) remembered: SlowNodes,
}

/// One tenant's estimates.
#[derive(Default)]
struct View {
    /// Nodes with evidence of the tenant's own attempts, ascending.
    own: Vec<(NodeIndex, f64)>,
    /// Nodes that the tenant's own attempts show to be slow, ascending.
    slow: Vec<NodeIndex>,
    /// Nodes that are slow only with the evidence of others, ascending, without those of `slow`.
    doubtful: Vec<NodeIndex>,
}

/// Combines the present evidence about each node with the remembered one.
pub(crate) fn beliefs(snapshot: &Snapshot, jobs: &[JobView<'_>], memory: &Memory) -> Beliefs {
    let testimonies = testimonies(snapshot, jobs, memory);
    let mut pooled: Vec<Pooled> = snapshot.nodes.iter().map(Pooled::of).collect();
    for reported in testimonies.iter().flat_map(|testimony| &testimony.reported) {
        if let Some(pooled) = pooled.get_mut(reported.node.0) {
            pooled.add(reported);
        }
    }
    let common = pooled.iter().map(|pooled| pooled.belief(None)).collect();
    let mut beliefs = Beliefs {
        common,
        views: Vec::with_capacity(testimonies.len() + 1),
        tenants: BTreeMap::new(),
        remembered: SlowNodes::new(),
    };
    let suspects = suspects(&beliefs.common, &pooled);
    beliefs.views.push(View::of(&[], &pooled, &suspects));
    for Testimony { tenant, reported } in testimonies {
        // A fast node is not remembered, so that one that turns slow is noticed as soon as any other.
        for reported in reported
            .iter()
            .filter(|reported| reported.slowness.ln_ratio > LN_SLOW)
        {
            if let Some(node) = snapshot.nodes.get(reported.node.0) {
                let of_node = beliefs.remembered.entry(node.name.clone()).or_default();
                of_node.insert(tenant.clone(), reported.slowness);
            }
        }
        beliefs.tenants.insert(tenant, beliefs.views.len());
        beliefs.views.push(View::of(&reported, &pooled, &suspects));
    }
    beliefs
}

impl Beliefs {
    /// The index of the tenant's view.
    pub(crate) fn view_of(&self, tenant: &Tenant) -> usize {
        self.tenants.get(tenant).copied().unwrap_or(0)
    }

    /// Nodes that clones must avoid, ascending.
    pub(crate) fn slow(&self, view: usize) -> &[NodeIndex] {
        self.views.get(view).map_or(&[], |view| &view.slow)
    }

    /// Nodes that clones avoid only if possible, ascending, without those that they must avoid.
    pub(crate) fn doubtful(&self, view: usize) -> &[NodeIndex] {
        self.views.get(view).map_or(&[], |view| &view.doubtful)
    }
}

/// The evidence about one node, each tenant's share capped.
#[derive(Debug, Clone, Copy, Default)]
struct Pooled {
    /// Σ weight · ln(time there over the usual time).
    sum: f64,
    /// The weight, in witnesses.
    weight: f64,
    tenants: u32,
    /// Whether attempts are launched there: otherwise clones need not avoid it.
    is_usable: bool,
}

impl Pooled {
    fn of(node: &Node) -> Self {
        Self {
            is_usable: node.usable,
            ..Self::default()
        }
    }

    fn add(&mut self, reported: &Reported) {
        let weight = reported.weight.min(FOREIGN_WEIGHT_MAX);
        self.sum += weight * reported.slowness.ln_ratio;
        self.weight += weight;
        self.tenants += 1;
    }

    /// The evidence of all tenants but this one.
    fn without(&self, reported: &Reported) -> Self {
        let weight = reported.weight.min(FOREIGN_WEIGHT_MAX);
        Self {
            sum: self.sum - weight * reported.slowness.ln_ratio,
            weight: self.weight - weight,
            tenants: self.tenants.saturating_sub(1),
            ..*self
        }
    }

    /// The estimate of a tenant with this evidence of its own. The evidence of others fills the weight that its own
    /// lacks up to the cap.
    fn belief(&self, own: Option<&Reported>) -> f64 {
        let own_weight = own.map_or(0.0, |own| own.weight);
        let own_ratio = own.map_or(0.0, |own| own.slowness.ln_ratio);
        let rest = (WEIGHT_MAX - own_weight).max(0.0);
        if self.tenants == 0 || self.weight <= 0.0 || rest <= 0.0 {
            return own_ratio * own_weight / (own_weight + PRIOR_WEIGHT);
        }
        let share = (rest / self.weight).min(1.0);
        let sum = own_ratio * own_weight + share * self.sum;
        sum / (own_weight + share * self.weight + PRIOR_WEIGHT)
    }
}

/// The estimate of a node, and the node.
type Suspect = (f64, NodeIndex);

/// Nodes that are estimated as slow, ascending by node.
fn suspects(ln_ratios: &[f64], pooled: &[Pooled]) -> Vec<Suspect> {
    let all = ln_ratios.iter().zip(pooled).zip((0..).map(NodeIndex));
    let slow = all.filter(|((belief, pooled), _)| **belief > LN_SLOW && pooled.is_usable);
    slow.map(|((belief, _), node)| (*belief, node)).collect()
}

/// The `most` nodes with the highest estimated slowness, ascending by node.
fn slowest(mut suspects: Vec<Suspect>, most: usize) -> Vec<NodeIndex> {
    suspects.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    suspects.truncate(most);
    let mut nodes: Vec<NodeIndex> = suspects.into_iter().map(|(_, node)| node).collect();
    nodes.sort_unstable();
    nodes
}

impl View {
    /// The view of a tenant with this evidence of its own, ascending by node.
    fn of(reported: &[Reported], pooled: &[Pooled], suspects: &[Suspect]) -> Self {
        let mut own = Vec::with_capacity(reported.len());
        let (mut slow, mut doubtful) = (Vec::new(), Vec::new());
        for reported in reported {
            let Some(pooled) = pooled.get(reported.node.0) else {
                continue;
            };
            let belief = pooled.without(reported).belief(Some(reported));
            own.push((reported.node, belief));
            if !pooled.is_usable {
                continue;
            }
            let by_itself = Pooled::default().belief(Some(reported));
            if by_itself > LN_SLOW {
                slow.push((by_itself, reported.node));
            } else if belief > LN_SLOW {
                doubtful.push((belief, reported.node));
            }
        }
        let is_own = |node: &NodeIndex| own.binary_search_by_key(node, |(node, _)| *node).is_ok();
        let of_others = suspects.iter().filter(|(_, node)| !is_own(node));
        doubtful.extend(of_others.copied());
        let slow = slowest(slow, SLOW_MAX);
        Self {
            doubtful: slowest(doubtful, SLOW_MAX - slow.len()),
            own,
            slow,
        }
    }
}
