//! The evidence of each tenant's attempts about nodes: their present and their recent reports.

use std::collections::BTreeMap;

use super::{Testimony, WEIGHT_MAX, WEIGHT_MIN};
use crate::ids::Tenant;
use crate::memory::{Memory, NodeSlowness};
use crate::round::JobView;
use crate::round::estimates::JobEstimate;
use crate::snapshot::{NodeIndex, Snapshot};
use crate::time::{Instant, Span};

/// The share of a task that an attempt must have done itself to count as a whole witness.
const WITNESS: f64 = 0.1;

/// More than four times the usual time is no more evidence about a node than four times.
const LN_RATIO_MAX: f64 = 1.386_294_361_119_890_6;

/// The evidence of one tenant's attempts about one node.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reported {
    pub(super) node: NodeIndex,
    /// The evidence to remember.
    pub(super) slowness: NodeSlowness,
    /// The present weight, in witnesses.
    pub(super) weight: f64,
}

/// The time in which remembered evidence loses half its weight. Once a slow node's attempts are pruned, none runs there
/// that could show its speed, and the node then looks as free as a healthy one.
const HALF_LIFE: Span = Span::from_seconds(120);

/// The evidence of each tenant's attempts about nodes. Remembered evidence loses half its weight in [`HALF_LIFE`].
pub(super) fn testimonies(
    snapshot: &Snapshot,
    jobs: &[JobView<'_>],
    memory: &Memory,
) -> Vec<Testimony> {
    let mut by_tenant: BTreeMap<&Tenant, (Vec<&JobView<'_>>, Remembered<'_>)> = BTreeMap::new();
    for state in jobs.iter().filter(|state| !state.heard.is_empty()) {
        by_tenant
            .entry(&state.job.tenant)
            .or_default()
            .0
            .push(state);
    }
    for (position, node) in snapshot.nodes.iter().enumerate() {
        for (tenant, past) in memory.slow_node(&node.name).into_iter().flatten() {
            let remembered = &mut by_tenant.entry(tenant).or_default().1;
            remembered.push((NodeIndex(position), past));
        }
    }
    let mut heard = Evidences::of(snapshot.nodes.len());
    let all = by_tenant.into_iter().map(|(tenant, (jobs, remembered))| {
        jobs.into_iter().for_each(|state| heard.add(&state.heard));
        let reported = heard.take(&remembered).into_iter();
        let reported = reported.map(|(node, seen, past)| stronger(snapshot.now, node, seen, past));
        Testimony {
            tenant: tenant.clone(),
            reported: reported.collect(),
        }
    });
    all.collect()
}

/// A tenant's memory of nodes, ascending by node.
type Remembered<'a> = Vec<(NodeIndex, &'a NodeSlowness)>;

/// The stronger of memory and present evidence. A first report from a node that was slow for long therefore does not
/// clear it. The sum of both would count the same attempts twice.
fn stronger(
    now: Instant,
    node: NodeIndex,
    seen: Evidence,
    past: Option<&NodeSlowness>,
) -> Reported {
    let past_weight = past.map_or(0.0, |past| weight_left(past, now));
    let (slowness, weight) = match past {
        Some(past) if past_weight > seen.weight.max(WEIGHT_MIN) => (*past, past_weight),
        _ => (seen.slowness(now), seen.weight),
    };
    Reported {
        node,
        slowness,
        weight,
    }
}

fn weight_left(past: &NodeSlowness, now: Instant) -> f64 {
    let age = now.since(past.seen).seconds().max(0.0);
    past.weight * libm::exp2(-age / HALF_LIFE.seconds())
}

/// The present evidence about one node.
#[derive(Debug, Clone, Copy, Default)]
struct Evidence {
    /// Σ weight · ln(an attempt's time over the median of its job).
    sum: f64,
    /// The weight, in witnesses.
    weight: f64,
}

impl Evidence {
    fn slowness(self, now: Instant) -> NodeSlowness {
        let ln_ratio = if self.weight > 0.0 {
            self.sum / self.weight
        } else {
            0.0
        };
        NodeSlowness {
            ln_ratio,
            weight: self.weight,
            seen: now,
        }
    }

    fn add(&mut self, more: Self) {
        self.sum += more.sum;
        self.weight += more.weight;
    }

    fn capped(self) -> Self {
        if self.weight > WEIGHT_MAX {
            Self {
                sum: self.sum * (WEIGHT_MAX / self.weight),
                weight: WEIGHT_MAX,
            }
        } else {
            self
        }
    }
}

/// The evidence of one job's attempts about nodes, ascending by node.
#[derive(Debug, Clone, Default)]
pub(crate) struct Heard(Vec<(NodeIndex, Evidence)>);

impl Heard {
    /// Whether the attempts show nothing about any node.
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The mean ln(time of an attempt there over the median of its job) of each node, ascending by node.
    pub(super) fn means(&self) -> impl Iterator<Item = (NodeIndex, f64)> {
        let heard = self.0.iter().filter(|(_, it)| it.weight > 0.0);
        heard.map(|(node, it)| (*node, it.sum / it.weight))
    }

    /// The evidence of the estimated attempts, before their estimates are combined with that of their nodes.
    pub(crate) fn of(estimate: &JobEstimate) -> Self {
        let attempts = estimate.tasks.iter().flat_map(|task| &task.attempts);
        let mut placed = attempts
            .filter_map(|a| Some((a.node?, a.total?, a.own_progress())))
            .peekable();
        if placed.peek().is_none() {
            return Self::default();
        }
        let Some(median) = estimate.median_total() else {
            return Self::default();
        };
        let reported = placed.map(|(node, total, progress)| {
            let weight = (progress / WITNESS).min(1.0);
            let ln_ratio = libm::log(total / median).clamp(-LN_RATIO_MAX, LN_RATIO_MAX);
            let sum = weight * ln_ratio;
            (node, Evidence { sum, weight })
        });
        let mut reported: Vec<_> = reported.collect();
        reported.sort_by_key(|(node, _)| *node);
        let mut heard: Vec<(NodeIndex, Evidence)> = Vec::new();
        for (node, more) in reported {
            match heard.last_mut() {
                Some((last, evidence)) if *last == node => evidence.add(more),
                _ => heard.push((node, more)),
            }
        }
        Self(heard)
    }
}

/// The present evidence about the nodes, tenant by tenant.
struct Evidences {
    /// Per node of the snapshot; zero for nodes that are not among `nodes`.
    all: Vec<Evidence>,
    /// Nodes with evidence of the tenant's attempts; one may be listed more than once.
    nodes: Vec<NodeIndex>,
}

impl Evidences {
    fn of(nodes: usize) -> Self {
        Self {
            all: vec![Evidence::default(); nodes],
            nodes: Vec::new(),
        }
    }

    /// Adds the evidence of one job's attempts.
    fn add(&mut self, heard: &Heard) {
        for (node, more) in &heard.0 {
            if let Some(evidence) = self.all.get_mut(node.0) {
                evidence.add(*more);
                self.nodes.push(*node);
            }
        }
    }

    /// Takes the present and the remembered evidence of the tenant, ascending by node. It leaves nothing for the next
    /// tenant.
    fn take<'m>(
        &mut self,
        remembered: &Remembered<'m>,
    ) -> Vec<(NodeIndex, Evidence, Option<&'m NodeSlowness>)> {
        self.nodes.extend(remembered.iter().map(|(node, _)| *node));
        self.nodes.sort_unstable();
        self.nodes.dedup();
        let all = &mut self.all;
        let taken = self.nodes.drain(..).map(|node| {
            let evidence = all.get_mut(node.0).map(std::mem::take).unwrap_or_default();
            let at = remembered.binary_search_by_key(&node, |(node, _)| *node);
            let past = at.ok().and_then(|at| remembered.get(at));
            (node, evidence.capped(), past.map(|(_, past)| *past))
        });
        taken.collect()
    }
}
