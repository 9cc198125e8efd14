//! A process's memory of attempts that failed because of their nodes. It holds the nodes, and the
//! time until which nothing of the job is launched if no single node is at fault.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::core::v1::PodSpec;
use shed_core::plan::Outcome;
use shed_core::snapshot::KillKind;

use crate::cluster::node::Constraints;
use crate::cluster::pod::AttemptId;
use crate::context::JobMemory;
use crate::context::backoff::Backoff;
use crate::job::notice::Notice;
use crate::reconcile::context::ReconcileContext;
use crate::reconcile::driver::Pass;
use crate::reconcile::kubelet_obstacles::blocked_by_kubelet;
use crate::reconcile::record::any_runs;
use crate::reconcile::step::Step;

/// Records a step's evidence about nodes. Attempts that could not start are launched again, per
/// task and on other nodes. The whole job waits only if none of its attempts runs, and if more than
/// one node, or every node it may use, cannot start them. When an attempt runs, the next failure
/// starts from the first wait again.
pub(super) fn note(context: &ReconcileContext, pass: &Pass, step: &Step) {
    let replaced: Vec<AttemptId> = killed(step, KillKind::Replace).collect();
    let running = any_runs(&pass.view.pods);
    context.job_memories.with(&pass.view.job.uid, |memory| {
        note_nodes(memory, pass, step, &replaced);
        let before = memory.planned.backoff.as_ref();
        let is_over = before.is_none_or(|before| before.until <= pass.view.ticks);
        let mut blocked = replaced.iter();
        let blocked = blocked.find_map(|&id| blocked_by_kubelet(&pass.view.pods, id));
        if let Some(blocked) = blocked {
            // An attempt that fails during a wait was launched before it. A pass that is repeated
            // after a conflict does not extend the wait either.
            if is_over && !running && starts_nowhere(context, pass, memory) {
                memory.planned.backoff = Some(Backoff::next(
                    memory.planned.backoff.as_ref(),
                    blocked,
                    pass.view.ticks,
                ));
            }
        } else if running && is_over {
            memory.planned.backoff = None;
        }
    });
}

fn killed(step: &Step, by: KillKind) -> impl Iterator<Item = AttemptId> {
    let notices = step.notices.iter();
    notices.filter_map(move |notice| match notice {
        Notice::Killed { id, kind } if *kind == by => Some(*id),
        _ => None,
    })
}

fn note_nodes(memory: &mut JobMemory, pass: &Pass, step: &Step, replaced: &[AttemptId]) {
    memory
        .planned
        .troubled
        .forget(&step.ledger, pass.view.ticks);
    let node = |id: &AttemptId| pass.view.pods.get(id).and_then(|pod| pod.node.as_ref());
    for node in replaced.iter().filter_map(node) {
        memory.planned.troubled.note_stuck(node, pass.view.ticks);
    }
    let counted = step.notices.iter().filter_map(|notice| match notice {
        Notice::Counted { id, outcome, .. } if *outcome == Outcome::Disrupted => Some(*id),
        _ => None,
    });
    // A node where the task was slow, or a clone of it was of no use, is no place for its next clone either.
    let left = [KillKind::Abandon, KillKind::Prune, KillKind::Restart];
    let left = left.into_iter().flat_map(|kind| killed(step, kind));
    for id in counted.chain(left) {
        let is_open = step.ledger.tasks.contains_key(&id.0);
        if let Some(node) = node(&id).filter(|_| is_open) {
            memory.planned.troubled.note_left(id.0, node);
        }
    }
}

/// Whether it is no single node's fault that attempts can't start: several nodes can't start them, or
/// all that the job may use.
fn starts_nowhere(context: &ReconcileContext, pass: &Pass, memory: &JobMemory) -> bool {
    let stuck: BTreeSet<Arc<str>> = memory
        .planned
        .troubled
        .stuck(pass.view.ticks)
        .into_iter()
        .collect();
    let none = PodSpec::default();
    let spec = pass.view.job.template.spec.as_ref().unwrap_or(&none);
    let nodes = context.stores.nodes.all().into_values();
    let mut eligible = nodes.filter(|node| node.admits(&Constraints::of(spec)));
    stuck.len() >= 2 || eligible.all(|node| stuck.contains(&node.name))
}
