//! Attempts whose job is gone, going, or not to be understood. Nothing is decided for them any
//! more, but until they have ended what they hold is not free: others are launched when it is. Each is
//! charged to its own node by what it requests itself; one without a node holds nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use shed_core::ids::{AttemptNumber, JobKey, TaskIndex, Tenant};
use shed_core::index_set::IndexSet;
use shed_core::resources::Resources;
use shed_core::snapshot::{
    AttemptKind, AttemptSnapshot, AttemptState, Conclusion, EndRules, Idempotency, JobPhase,
    JobRules, JobSnapshot, KillKind, NodeIndex, OnMiss, Preemption, Resume, SpeculationMode,
    TaskSnapshot,
};
use shed_core::time::Instant;

use crate::observe::identity::Owner;
use crate::stores::Stores;

/// The attempts that are alike in what they request, by that.
type Alike = Vec<(Resources, Vec<NodeIndex>)>;

/// Jobs that stand for the live attempts of each owner that is not `known`: one for each size.
pub fn jobs(
    stores: &Stores,
    known: impl Fn(&Owner) -> bool,
    positions: &BTreeMap<Arc<str>, NodeIndex>,
    now: Instant,
) -> Vec<JobSnapshot> {
    let mut owners = stores.owners_of_attempts();
    owners.retain(|owner| !known(owner));
    owners.sort_unstable();
    let jobs = owners.iter().flat_map(|owner| {
        let alike = alike(stores, owner, positions);
        let numbered = alike.into_iter().enumerate();
        numbered.map(move |(number, (demand, nodes))| job(owner, number, demand, &nodes, now))
    });
    jobs.collect()
}

fn alike(stores: &Stores, owner: &Owner, positions: &BTreeMap<Arc<str>, NodeIndex>) -> Alike {
    let mut alike = Alike::new();
    let attempts = stores.attempts_of(owner).into_values();
    for pod in attempts.filter(|pod| !pod.terminal) {
        let Some(&node) = pod.node.as_ref().and_then(|node| positions.get(node)) else {
            continue;
        };
        let known = alike.iter_mut().find(|(demand, _)| *demand == pod.requests);
        match known {
            Some((_, nodes)) => nodes.push(node),
            None => alike.push((pod.requests.clone(), vec![node])),
        }
    }
    alike
}

fn job(
    owner: &Owner,
    number: usize,
    demand: Resources,
    nodes: &[NodeIndex],
    now: Instant,
) -> JobSnapshot {
    let tasks = (0..)
        .zip(nodes)
        .map(|(index, &node)| task(index, node, now));
    let tasks: Vec<TaskSnapshot> = tasks.collect();
    let completions = u32::try_from(tasks.len()).unwrap_or(u32::MAX);
    let Owner { namespace, uid, .. } = owner;
    JobSnapshot {
        // No job has such a key: whoever makes up an owner must not stand for a job that is there.
        key: JobKey(format!("{namespace}/{uid}/{number}").into()),
        tenant: Tenant(Arc::clone(namespace)),
        class: None,
        submitted: now,
        deadline: None,
        rules: JobRules {
            completions,
            parallelism: completions,
            idempotency: Idempotency::Safe,
            resume: Resume::None,
            speculation: SpeculationMode::Disabled,
            max_clones_per_task: 0,
            target_pocd: None,
            on_miss: OnMiss::Fail,
            backoff_limit: 0,
            suspend: false,
            replaces_when_gone: false,
            preemption: Preemption::Never,
            ending: EndRules::default(),
        },
        phase: JobPhase::Ending(Conclusion::FailedIndexes),
        launched_before: true,
        reports_progress: false,
        demand,
        eligible_nodes: Arc::from([]),
        done: IndexSet::new(),
        failed: IndexSet::new(),
        tasks,
        ended_runs: Vec::new(),
        launch_not_before: None,
        failures: 0,
        time_limit: None,
        facts_as_of: now,
        asks_feasibility: false,
        avoid: Vec::new(),
    }
}

fn task(index: u32, node: NodeIndex, now: Instant) -> TaskSnapshot {
    let attempt = AttemptSnapshot {
        number: AttemptNumber(0),
        kind: AttemptKind::Original,
        state: AttemptState::Running,
        kill: Some(KillKind::JobEnd),
        killed_at: Some(now),
        launched: now,
        node: Some(node),
        started: None,
        start_progress: 0.0,
        progress: None,
        checkpoint: None,
        failure_rule: None,
        out_of_reach: false,
    };
    TaskSnapshot {
        index: TaskIndex(index),
        winner: None,
        attempts: vec![attempt],
        failures: 0,
        clone_failures: 0,
        retry_not_before: None,
        resume_point: None,
        grant: None,
        avoid: Vec::new(),
        clone_disrupted: None,
    }
}

#[cfg(test)]
mod tests;
