//! Nodes on which attempts are slow: a belief about each node, from what its attempts report now
//! and what they reported lately.
//!
//! Anybody can report anything, so each tenant has beliefs of its own. Its own attempts count as
//! they are; those of another tenant count as one witness per node at most. The clones of a tenant
//! keep off the nodes that its own attempts show to be slow. What only others tell is a preference.

use std::collections::BTreeMap;

use crate::ids::Tenant;
use crate::memory::{Memory, SlowNodes};
use crate::round::JobView;
use crate::snapshot::{Node, NodeIndex, Snapshot};
use crate::time::Span;

mod evidence;

use evidence::{Told, testimonies};

/// ln of the slowness from which on a node is avoided: 1.5 times the median of the job.
const LN_SLOW: f64 = 0.405_465_108_108_164_4;

/// So many are named at most, the slowest: each becomes a term that the cluster's scheduler
/// weighs for every pod.
const SLOW_MAX: usize = 10;

/// How much speaks for a node being as fast as others before anything is heard of it, in
/// witnesses. A task can be slow by itself: one witness never convicts its node, two that take
/// two and a half times the usual time do.
const PRIOR_WEIGHT: f64 = 2.5;

/// More witnesses than so many say no more: they share what slows them.
const WEIGHT_MAX: f64 = 4.0;

/// What another tenant's attempts on a node count for at most, in witnesses.
const FOREIGN_WEIGHT_MAX: f64 = 1.0;

/// A belief with less weight is forgotten.
const WEIGHT_MIN: f64 = 0.1;

/// What one tenant's attempts tell of nodes, ascending by node.
struct Testimony {
    tenant: Tenant,
    told: Vec<Told>,
}

/// What the tenants believe about nodes.
pub(crate) struct Beliefs {
    /// Per node of the snapshot: what a tenant believes whose own attempts tell nothing of it, as
    /// expected ln(time of an attempt there over the usual time).
    common: Vec<f64>,
    /// The first is that of tenants whose attempts tell nothing of any node.
    views: Vec<View>,
    tenants: BTreeMap<Tenant, usize>,
    /// What is to be remembered.
    pub(crate) remembered: SlowNodes,
}

/// What one tenant believes.
#[derive(Default)]
struct View {
    /// Where its own attempts tell something, ascending by node.
    own: Vec<(NodeIndex, f64)>,
    /// Nodes that its own attempts show to be slow, ascending.
    slow: Vec<NodeIndex>,
    /// Nodes that are slow by what others tell too, ascending, none of `slow`.
    doubtful: Vec<NodeIndex>,
}

/// What a tenant believes about each node: expected ln(time of an attempt there over the usual
/// time).
#[derive(Clone, Copy, Default)]
pub(crate) struct LnRatios<'b> {
    common: &'b [f64],
    own: &'b [(NodeIndex, f64)],
}

impl LnRatios<'_> {
    /// 0 for a node of which nothing is known.
    pub(crate) fn of(&self, node: NodeIndex) -> f64 {
        let own = self.own.binary_search_by_key(&node, |(node, _)| *node);
        let own = own.ok().and_then(|at| self.own.get(at));
        own.map(|(_, ln_ratio)| *ln_ratio)
            .or_else(|| self.common.get(node.0).copied())
            .unwrap_or(0.0)
    }
}

/// Weighs what is heard from each node against what was seen of it, which loses half its weight
/// in `half_life`.
pub(crate) fn beliefs(
    snapshot: &Snapshot,
    jobs: &[JobView<'_>],
    memory: &Memory,
    half_life: Span,
) -> Beliefs {
    let testimonies = testimonies(snapshot, jobs, memory, half_life);
    let mut pooled: Vec<Pooled> = snapshot.nodes.iter().map(Pooled::of).collect();
    for told in testimonies.iter().flat_map(|testimony| &testimony.told) {
        if let Some(pooled) = pooled.get_mut(told.node.0) {
            pooled.add(told);
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
    for Testimony { tenant, told } in testimonies {
        // A node that was fast is not remembered, so that one that turns slow is noticed as soon
        // as any other.
        for told in told.iter().filter(|told| told.slowness.ln_ratio > LN_SLOW) {
            if let Some(node) = snapshot.nodes.get(told.node.0) {
                let of_node = beliefs.remembered.entry(node.name.clone()).or_default();
                of_node.insert(tenant.clone(), told.slowness);
            }
        }
        beliefs.tenants.insert(tenant, beliefs.views.len());
        beliefs.views.push(View::of(&told, &pooled, &suspects));
    }
    beliefs
}

impl Beliefs {
    /// Which view is the tenant's.
    pub(crate) fn view_of(&self, tenant: &Tenant) -> usize {
        self.tenants.get(tenant).copied().unwrap_or(0)
    }

    /// What is believed of each node.
    pub(crate) fn ln_ratios(&self, view: usize) -> LnRatios<'_> {
        LnRatios {
            common: &self.common,
            own: self.views.get(view).map_or(&[], |view| &view.own),
        }
    }

    /// Nodes that clones keep off, ascending.
    pub(crate) fn slow(&self, view: usize) -> &[NodeIndex] {
        self.views.get(view).map_or(&[], |view| &view.slow)
    }

    /// Nodes to prefer others to, ascending, those that clones keep off left out.
    pub(crate) fn doubtful(&self, view: usize) -> &[NodeIndex] {
        self.views.get(view).map_or(&[], |view| &view.doubtful)
    }
}

/// What is told of one node, each tenant's part capped.
#[derive(Debug, Clone, Copy, Default)]
struct Pooled {
    /// Σ weight · ln(time there over the usual time).
    sum: f64,
    /// In witnesses.
    weight: f64,
    tenants: u32,
    /// Whether anything is launched there: else there is nothing to keep off.
    is_usable: bool,
}

impl Pooled {
    fn of(node: &Node) -> Self {
        Self {
            is_usable: node.usable,
            ..Self::default()
        }
    }

    fn add(&mut self, told: &Told) {
        let weight = told.weight.min(FOREIGN_WEIGHT_MAX);
        self.sum += weight * told.slowness.ln_ratio;
        self.weight += weight;
        self.tenants += 1;
    }

    /// What all but that tenant tell.
    fn without(&self, told: &Told) -> Self {
        let weight = told.weight.min(FOREIGN_WEIGHT_MAX);
        Self {
            sum: self.sum - weight * told.slowness.ln_ratio,
            weight: self.weight - weight,
            tenants: self.tenants.saturating_sub(1),
            ..*self
        }
    }

    /// What a tenant believes whose own attempts tell this. Others count as far as its own are
    /// fewer than tell anything new.
    fn belief(&self, own: Option<&Told>) -> f64 {
        let own_weight = own.map_or(0.0, |own| own.weight);
        let own_ratio = own.map_or(0.0, |own| own.slowness.ln_ratio);
        let room = (WEIGHT_MAX - own_weight).max(0.0);
        if self.tenants == 0 || self.weight <= 0.0 || room <= 0.0 {
            return own_ratio * own_weight / (own_weight + PRIOR_WEIGHT);
        }
        let share = (room / self.weight).min(1.0);
        let sum = own_ratio * own_weight + share * self.sum;
        sum / (own_weight + share * self.weight + PRIOR_WEIGHT)
    }
}

/// What is believed of a node, and the node.
type Suspect = (f64, NodeIndex);

/// Those that are believed slow, ascending by node.
fn suspects(ln_ratios: &[f64], pooled: &[Pooled]) -> Vec<Suspect> {
    let all = ln_ratios.iter().zip(pooled).zip((0..).map(NodeIndex));
    let slow = all.filter(|((belief, pooled), _)| **belief > LN_SLOW && pooled.is_usable);
    slow.map(|((belief, _), node)| (*belief, node)).collect()
}

/// The `most` that are believed slowest, ascending by node.
fn slowest(mut suspects: Vec<Suspect>, most: usize) -> Vec<NodeIndex> {
    suspects.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    suspects.truncate(most);
    let mut nodes: Vec<NodeIndex> = suspects.into_iter().map(|(_, node)| node).collect();
    nodes.sort_unstable();
    nodes
}

impl View {
    /// That of a tenant whose own attempts tell this, ascending by node.
    fn of(told: &[Told], pooled: &[Pooled], suspects: &[Suspect]) -> Self {
        let mut own = Vec::with_capacity(told.len());
        let (mut slow, mut doubtful) = (Vec::new(), Vec::new());
        for told in told {
            let Some(pooled) = pooled.get(told.node.0) else {
                continue;
            };
            let belief = pooled.without(told).belief(Some(told));
            own.push((told.node, belief));
            if !pooled.is_usable {
                continue;
            }
            let by_itself = Pooled::default().belief(Some(told));
            if by_itself > LN_SLOW {
                slow.push((by_itself, told.node));
            } else if belief > LN_SLOW {
                doubtful.push((belief, told.node));
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
