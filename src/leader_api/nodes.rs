//! The estimates of nodes, and the jobs whose attempts show them.

use shed_core::decide::{NodePace, node_paces};

use super::answers::{NodeList, NodeSummary, WitnessSummary};
use super::jobs;
use crate::api::Decimal;
use crate::clock;
use crate::context::Context;
use crate::planner_copies::PlannerCopy;

/// Witnesses that are listed for one node.
const WITNESSES_MAX: usize = 32;

/// The slowest first; nodes without evidence last.
pub fn list(context: &Context, copy: &PlannerCopy) -> NodeList {
    let mut paces = node_paces(&copy.snapshot, &copy.memory, &copy.policy);
    let key = |pace: &NodePace| pace.pace.unwrap_or(f64::INFINITY);
    paces.sort_by(|a, b| key(a).total_cmp(&key(b)).then_with(|| a.node.cmp(&b.node)));
    let nodes = paces.into_iter().map(|pace| summary(context, pace));
    NodeList {
        time: Some(clock::time(copy.snapshot.now)),
        nodes: nodes.collect(),
    }
}

fn summary(context: &Context, pace: NodePace) -> NodeSummary {
    let omitted_witnesses = pace.witnesses.len().saturating_sub(WITNESSES_MAX);
    let witnesses = pace.witnesses.into_iter().take(WITNESSES_MAX);
    let witnesses = witnesses.map(|witness| WitnessSummary {
        // A job that has gone since has only its key.
        job: jobs::name(context, &witness.job).unwrap_or(witness.job.0),
        namespace: witness.tenant.0,
        tasks: witness.tasks,
        pace: Decimal::nearest(witness.pace),
    });
    NodeSummary {
        name: pace.node.0,
        pace: pace.pace.map(Decimal::nearest),
        verdict: match (pace.is_slow, pace.pace) {
            (true, _) => "Slow",
            (false, Some(_)) => "Normal",
            (false, None) => "Unknown",
        }
        .into(),
        avoided_by: pace.avoided_by.into_iter().map(|it| it.0).collect(),
        observed_time: pace.observed.filter(|_| pace.is_slow).map(clock::time),
        witnesses: witnesses.collect(),
        omitted_witnesses,
    }
}
