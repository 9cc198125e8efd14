//! Obstacles to creating or placing a job's attempts, among the facts that a pass decides on.

use std::sync::Arc;

use shed_core::resources::Resources;
use shed_core::snapshot::{AttemptSnapshot, AttemptState, JobSnapshot, Snapshot};
use shed_core::time::Instant;

use crate::api::DeadlineJob;
use crate::attempt_pod;
use crate::bounds::Bounds;
use crate::clock::Clock;
use crate::cluster::node::NodeFacts;
use crate::context::placement::Input;
use crate::context::pod_creation::Count;
use crate::context::{Context, JobMemory};
use crate::job::view::JobView;

/// Result of a check.
pub struct Obstacles {
    /// When to look again though nothing happens, by the process's own clock.
    pub(super) due: Option<Instant>,
    /// Whether the job's reconciler has new work or a new message.
    pub(super) is_news: bool,
}

/// Requests of an attempt of the job, as far as its pods show.
pub(super) fn demand(context: &Context, view: &JobView) -> Resources {
    context.job_memories.with(&view.job.uid, |memory| {
        let known = memory.demand.take();
        let known = known.filter(|(of, _)| of.as_ptr() == Arc::as_ptr(&view.job));
        let (of, template) = known.unwrap_or_else(|| {
            let template = attempt_pod::demand(&view.job, &context.agent);
            (Arc::downgrade(&view.job), template)
        });
        memory.demand = Some((of, template.clone()));
        memory.placement.learn_requests(template, &view.pods)
    })
}

/// Checks the obstacles of the job, and adds them to the facts about it.
pub(super) fn look(
    context: &Context,
    view: &JobView,
    nodes: &[NodeFacts],
    facts: &mut JobSnapshot,
) -> Obstacles {
    context.job_memories.with(&view.job.uid, |memory| {
        let before = memory.placement.clone();
        let claims = memory.planned.claims.as_ref();
        let due = memory.placement.look(&Input {
            view,
            nodes,
            last_bind: &|scheduler| context.stores.pods.last_bind(scheduler),
            is_uncreatable: memory.planned.creations.is_failing(),
            is_unshared: claims.is_some_and(|(_, said)| said.is_some()),
        });
        memory.placement.mark(facts, &view.pods);
        let until = limit(memory, view, facts, &context.clock);
        Obstacles {
            due: due.into_iter().chain(until).min(),
            is_news: memory.placement.is_news_after(&before),
        }
    })
}

/// Adds to the facts how much the apiserver's answers let be launched; when that changes, by the
/// process's own clock.
pub fn limit(
    memory: &JobMemory,
    view: &JobView,
    facts: &mut JobSnapshot,
    clock: &Clock,
) -> Option<Instant> {
    let attempts = facts.tasks.iter().flat_map(|task| &task.attempts);
    let existing = attempts.filter(|attempt| attempt.holds_capacity());
    let is_uncreated = |attempt: &&AttemptSnapshot| attempt.state == AttemptState::Launching;
    let leaving = view.pods.values().filter(|pod| pod.is_leaving);
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let count = Count {
        uncreated: number(existing.clone().filter(is_uncreated).count()),
        existing: number(existing.count()),
        leaving: number(leaving.count()),
    };
    let limits = memory.planned.creations.limits(count, view.ticks);
    let at = |ticks: Instant| clock.at(ticks);
    facts.launch_not_before = facts.launch_not_before.max(limits.not_before.map(at));
    facts.obstacles.clones_not_before = limits.clones_not_before.map(at);
    facts.obstacles.attempts_max = limits.attempts_max;
    limits.until.filter(|until| *until > view.ticks)
}

/// Limits launches to the number that fits into the job's object.
pub(super) fn bound(
    context: &Context,
    owner: &DeadlineJob,
    view: &JobView,
    facts: &mut JobSnapshot,
) {
    let stores = &context.stores;
    let skipped = stores.jobs.skipped_bytes(owner);
    let bounds = Bounds::of(owner, &view.job, stores.nodes.bytes(), skipped);
    let further = bounds.further(&view.ledger);
    // The object of most jobs has capacity for many times the attempts they may run.
    if further >= facts.rules.completions.saturating_mul(2) {
        return;
    }
    let attempts = facts.tasks.iter().flat_map(|task| &task.attempts);
    let existing = attempts.filter(|attempt| attempt.holds_capacity()).count();
    let most = u32::try_from(existing)
        .unwrap_or(u32::MAX)
        .saturating_add(further);
    let obstacles = &mut facts.obstacles;
    obstacles.attempts_max = Some(obstacles.attempts_max.map_or(most, |other| other.min(most)));
}

/// Records, for jobs that wait for capacity, whether the planner counts any. `changed` has the jobs whose facts may have
/// changed, by position; absent if all of them may have.
pub(super) fn note_capacity(context: &Context, snapshot: &Snapshot, changed: Option<&[bool]>) {
    let ticks = context.clock.ticks();
    let has_changed = |at: usize| changed.is_none_or(|changed| changed.get(at) == Some(&true));
    let jobs = snapshot.jobs.iter().enumerate();
    for (_, job) in jobs.filter(|(at, _)| has_changed(*at)) {
        let uid = Arc::clone(&job.key.0);
        context.job_memories.change(&uid, |memory| {
            if memory.placement.waits_for_capacity() {
                let mut nodes = job.eligible_nodes.iter();
                let has_capacity = nodes.any(|node| {
                    let node = snapshot.nodes.get(node.0);
                    node.is_some_and(|node| node.free.fits(&job.demand))
                });
                memory.placement.note_capacity(has_capacity, ticks);
            }
        });
    }
}
