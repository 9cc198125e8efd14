//! The planner's snapshot of a job for which it decides nothing. It contains only the capacity that
//! the attempts hold until they have ended.

use std::sync::Arc;

use shed_core::ids::{AttemptNumber, JobKey, TaskIndex, Tenant};
use shed_core::index_set::IndexSet;
use shed_core::resources::Resources;
use shed_core::snapshot::{
    AttemptKind, AttemptSnapshot, AttemptState, Conclusion, EndRules, Idempotency, JobPhase,
    JobRules, JobSnapshot, KillKind, NodeIndex, Obstacles, OnMiss, Preemption, Resume, SlotTime,
    SpeculationMode, TaskSnapshot,
};
use shed_core::time::Instant;

/// The job; its tasks are ascending.
pub(super) fn job(
    uid: Arc<str>,
    namespace: Arc<str>,
    demand: Resources,
    tasks: Vec<TaskSnapshot>,
    now: Instant,
) -> JobSnapshot {
    let last = tasks.last().map(|task| task.index.0);
    let completions = last.map_or(0, |last| last.saturating_add(1));
    JobSnapshot {
        key: JobKey(uid),
        tenant: Tenant(namespace),
        class: None,
        expected_duration: None,
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
            clone_budget: None,
            on_miss: OnMiss::Fail,
            backoff_limit_per_index: 0,
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
        ended_slot_time: SlotTime::default(),
        launch_not_before: None,
        obstacles: Obstacles::default(),
        failures: 0,
        time_limit: None,
        facts_as_of: now,
        asks_feasibility: false,
        admitted: None,
        is_stage: false,
        phases: None,
        avoid: Vec::new(),
    }
}

/// A task of such a job.
pub(super) fn task(index: u32) -> TaskSnapshot {
    TaskSnapshot::untouched(TaskIndex(index))
}

/// An attempt that holds the capacity it requests.
pub(super) fn attempt(number: u32, node: Option<NodeIndex>, now: Instant) -> AttemptSnapshot {
    AttemptSnapshot {
        state: AttemptState::Running,
        kill: Some(KillKind::JobEnd),
        killed_at: Some(now),
        node,
        ..AttemptSnapshot::pending(AttemptNumber(number), AttemptKind::Original, now)
    }
}
