//! The estimates of nodes, and the jobs whose attempts show them.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::Serialize;
use shed_core::decide::{NodePace, node_paces};

use super::jobs;
use crate::api::Decimal;
use crate::clock;
use crate::context::Context;
use crate::planner_copies::PlannerCopy;

/// Witnesses that are listed for one node.
const WITNESSES_MAX: usize = 32;

#[derive(Debug, Serialize)]
pub struct List {
    /// The time of the facts.
    time: Time,
    nodes: Vec<NodeSummary>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct NodeSummary {
    name: Arc<str>,
    /// Speed over the usual speed of the same jobs: 0.5 means that attempts take twice as long there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pace: Option<Decimal>,
    verdict: &'static str,
    /// Namespaces whose clones keep off the node because of their own attempts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    avoided_by: Vec<Arc<str>>,
    /// When slowness was last seen; for slow nodes only.
    #[serde(skip_serializing_if = "Option::is_none")]
    observed_time: Option<Time>,
    witnesses: Vec<WitnessSummary>,
    #[serde(skip_serializing_if = "is_zero")]
    omitted_witnesses: usize,
}

#[derive(Debug, Serialize)]
struct WitnessSummary {
    namespace: Arc<str>,
    job: Arc<str>,
    tasks: u32,
    pace: Decimal,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// The slowest first; nodes without evidence last.
pub fn list(context: &Context, copy: &PlannerCopy) -> List {
    let mut paces = node_paces(&copy.snapshot, &copy.memory, &copy.policy);
    let key = |pace: &NodePace| pace.pace.unwrap_or(f64::INFINITY);
    paces.sort_by(|a, b| key(a).total_cmp(&key(b)).then_with(|| a.node.cmp(&b.node)));
    let nodes = paces.into_iter().map(|pace| summary(context, pace));
    List {
        time: clock::time(copy.snapshot.now),
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
        },
        avoided_by: pace.avoided_by.into_iter().map(|it| it.0).collect(),
        observed_time: pace.observed.filter(|_| pace.is_slow).map(clock::time),
        witnesses: witnesses.collect(),
        omitted_witnesses,
    }
}
