//! The cluster that sizes refer to, and jobs that it has no node for.

use std::collections::BTreeSet;
use std::path::Path;

use shed_core::snapshot::Node;

use super::By;
use super::plan::Lost;
use crate::cli::options::RunOptions;
use crate::cli::{CliError, fault};
use crate::settings::{Cluster, NodeSpec};
use crate::sizing::limits;
use crate::trace::{Trace, recording};
use crate::workload::{self, WorkloadError};

/// The cluster of --slots or --nodes, or else that of the recording.
pub(super) fn given(options: &RunOptions, by: By) -> Result<Option<Cluster>, CliError> {
    if options.slots.is_some() || options.nodes.is_some() {
        return options.cluster().map(Some);
    }
    if recording::is_one(&options.trace) {
        return recorded(&options.trace).map(Some);
    }
    let needs = match by {
        By::Lambda | By::Deadline => format!("--by {}", by.label()),
        By::Nodes if options.load.is_some() => "--load".to_owned(),
        By::Nodes if options.deadline_factor.is_some() => "--deadline-factor".to_owned(),
        By::Nodes => return Ok(None),
    };
    let message = format!("{needs} refers to a cluster: give --slots or --nodes, such as today's");
    Err(CliError::Usage(message))
}

/// Nodes of the recording. A run on slots records them as one node that holds nothing but a number of
/// attempts.
fn recorded(path: &Path) -> Result<Cluster, CliError> {
    let nodes = recording::nodes(path)?;
    if let [node] = &nodes[..] {
        let mut resources = node.allocatable.iter();
        if let (Some(("pods", count)), None) = (resources.next(), resources.next()) {
            return Ok(Cluster::Slots(u32::try_from(count).unwrap_or(0)));
        }
    }
    let spec = |node: Node| NodeSpec {
        name: node.name,
        allocatable: node.allocatable,
        speed: 1.0,
        changes: Vec::new(),
        slowdowns: None,
    };
    Ok(Cluster::Nodes(nodes.into_iter().map(spec).collect()))
}

pub(super) fn unit(options: &RunOptions, given: Option<&Cluster>) -> &'static str {
    match given {
        Some(Cluster::Nodes(_)) if options.slots.is_none() => "nodes",
        _ => "slots",
    }
}

/// How many slots or nodes.
pub(super) fn size(cluster: &Cluster) -> u32 {
    match cluster {
        Cluster::Slots(slots) => *slots,
        Cluster::Nodes(nodes) => nodes.len() as u32,
    }
}

/// What there is now, in steps of the search.
pub(super) fn today(options: &RunOptions, by: By, given: &Cluster) -> u32 {
    match by {
        By::Nodes => size(given),
        By::Lambda => (options.capacity_share * by.steps()).round() as u32,
        By::Deadline => by.steps() as u32,
    }
}

/// The trace without jobs that fit no node, and their deadlines.
pub(super) fn placeable(
    mut trace: Trace,
    cluster: &Cluster,
    options: &RunOptions,
) -> Result<(Trace, Lost), CliError> {
    let unplaceable: BTreeSet<usize> = limits::without_node(&trace, cluster).into_iter().collect();
    if !trace.jobs.is_empty() && unplaceable.len() == trace.jobs.len() {
        let error = workload::check(&trace, cluster)
            .err()
            .unwrap_or(WorkloadError::Empty);
        return Err(fault::of_workload(error, &options.trace, cluster));
    }
    let mut lost = Lost::default();
    let mut at = 0;
    trace.jobs.retain(|job| {
        let is_lost = unplaceable.contains(&at);
        // Without a deadline of its own a job gets one of the factor.
        if is_lost && (job.deadline.is_some() || options.deadline_factor.is_some()) {
            lost.add(job);
        }
        at += 1;
        !is_lost
    });
    Ok((trace, lost))
}
