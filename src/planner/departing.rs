//! Attempts whose job is gone, going, or not to be understood. Nothing is decided for them any
//! more, but until they have ended what they hold is not free: others are launched when it is.

use std::collections::BTreeMap;
use std::sync::Arc;

use shed_core::ids::{AttemptNumber, JobKey, TaskIndex, Tenant};
use shed_core::index_set::IndexSet;
use shed_core::snapshot::{
    AttemptKind, AttemptSnapshot, AttemptState, Conclusion, EndRules, Idempotency, JobPhase,
    JobRules, JobSnapshot, KillKind, NodeIndex, OnMiss, Preemption, Resume, SpeculationMode,
    TaskSnapshot,
};
use shed_core::time::Instant;

use crate::observe::pod::PodFacts;
use crate::stores::Stores;

/// One job for each that has live attempts and is not `known`; all that it has is these.
pub fn jobs(
    stores: &Stores,
    known: impl Fn(&str) -> bool,
    positions: &BTreeMap<Arc<str>, NodeIndex>,
    now: Instant,
) -> Vec<JobSnapshot> {
    let mut uids = stores.job_uids_with_pods();
    uids.retain(|uid| !known(uid));
    uids.into_iter()
        .filter_map(|uid| {
            let pods = stores.pods_of(&uid);
            let live: Vec<&PodFacts> = pods
                .values()
                .map(AsRef::as_ref)
                .filter(|pod| !pod.terminal)
                .collect();
            job(&uid, &live, positions, now)
        })
        .collect()
}

fn job(
    uid: &Arc<str>,
    live: &[&PodFacts],
    positions: &BTreeMap<Arc<str>, NodeIndex>,
    now: Instant,
) -> Option<JobSnapshot> {
    let first = live.first()?;
    let mut tasks: BTreeMap<u32, TaskSnapshot> = BTreeMap::new();
    for pod in live {
        let Some(facts) = &pod.attempt else { continue };
        let node = pod.node.as_ref();
        let task = tasks.entry(facts.task).or_insert_with(|| task(facts.task));
        task.attempts.push(AttemptSnapshot {
            number: AttemptNumber(facts.number),
            kind: AttemptKind::Original,
            state: AttemptState::Running,
            kill: Some(KillKind::JobEnd),
            killed_at: Some(now),
            launched: now,
            node: node.and_then(|node| positions.get(node).copied()),
            started: None,
            start_progress: 0.0,
            progress: None,
            checkpoint: None,
            failure_rule: None,
        });
    }
    let completions = tasks.keys().next_back()?.saturating_add(1);
    Some(JobSnapshot {
        key: JobKey(Arc::clone(uid)),
        tenant: Tenant(Arc::clone(&first.namespace)),
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
        demand: first.requests.clone(),
        eligible_nodes: Arc::from([]),
        done: IndexSet::new(),
        failed: IndexSet::new(),
        tasks: tasks.into_values().collect(),
        ended_runs: Vec::new(),
        launch_not_before: None,
        failures: 0,
        time_limit: None,
        facts_as_of: now,
        asks_feasibility: false,
    })
}

fn task(index: u32) -> TaskSnapshot {
    TaskSnapshot {
        index: TaskIndex(index),
        winner: None,
        attempts: Vec::new(),
        failures: 0,
        clone_failures: 0,
        retry_not_before: None,
        resume_point: None,
        grant: None,
    }
}
