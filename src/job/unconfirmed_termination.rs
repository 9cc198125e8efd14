//! `TerminationUnconfirmed`: the attempt whose termination is unproven, the attempts that wait for
//! it, and the remedy. The remedy depends on the node, because tainting a healthy node out of
//! service would stop everything on it.

use std::fmt;

use shed_core::time::{Instant, Span};

use crate::api::{TaskEntry, reason};
use crate::cluster::Stores;
use crate::cluster::pod::{AttemptId, PodFacts};
use crate::job::leftover_pods::leftover;
use crate::job::view::JobView;
use crate::job::{termination_proof, unreachable_attempts};
use crate::validate::ValidatedJob;

/// Kubelets mostly report an end within this time after the grace period.
const REPORTED_WITHIN: Span = Span::from_seconds(10);

/// Content of the condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnconfirmedTermination {
    /// A reason of `TerminationUnconfirmed`.
    pub reason: &'static str,
    /// The attempt, the waiting attempts, and the remedy.
    pub message: String,
}

/// The first attempt that keeps others, or the job's end, waiting: it should be gone, and nothing
/// proves that it is.
pub fn unconfirmed(view: &JobView, stores: &Stores) -> Option<UnconfirmedTermination> {
    if view.ledger.finished {
        return None;
    }
    let mut awaited = of_ledger(view, stores).chain(let_go(view, stores));
    let first = awaited.next()?;
    let others = awaited.count();
    Some(UnconfirmedTermination {
        reason: match first.node {
            NodeState::Ready => reason::TERMINATION_NOT_REPORTED,
            NodeState::NotReady | NodeState::Missing => reason::NODE_UNREACHABLE,
        },
        message: Words { first, others }.to_string(),
    })
}

/// An attempt that is waited for.
struct Awaited<'a> {
    id: AttemptId,
    /// Its pod, if it is there.
    pod: Option<&'a PodFacts>,
    node_name: Option<&'a str>,
    node: NodeState,
    /// The end of the job waits, and no other attempt.
    is_end: bool,
}

/// State of a node.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NodeState {
    Ready,
    NotReady,
    /// It has no object.
    Missing,
}

fn node_state(stores: &Stores, name: Option<&str>) -> NodeState {
    match name.and_then(|name| stores.nodes.get(name)) {
        Some(node) if node.ready => NodeState::Ready,
        Some(_) => NodeState::NotReady,
        None => NodeState::Missing,
    }
}

/// Attempts of the ledger.
fn of_ledger<'a>(view: &'a JobView, stores: &'a Stores) -> impl Iterator<Item = Awaited<'a>> {
    let (job, ledger) = (&*view.job, &view.ledger);
    let attempts = ledger.tasks.values().flat_map(|task| {
        let attempts = task.attempts.iter();
        attempts.map(move |attempt| (task, attempt))
    });
    attempts.filter_map(move |(task, attempt)| {
        let id = (task.index, attempt.number);
        let pod = view.pods.get(&id);
        let node_name = termination_proof::last_seen_on(attempt, pod);
        let node = node_state(stores, node_name);
        let needs_proof = termination_proof::needs_proof(job, ledger, task, attempt.number);
        let is_unproven = needs_proof && termination_proof::is_unproven(id, attempt, view);
        let holds_up = needs_proof || waits(job, task, attempt.number) || ledger.ending.is_some();
        let is_awaited = is_unproven || holds_up && pod.is_some_and(|pod| is_late(pod, view.now));
        is_awaited.then_some(Awaited {
            id,
            pod: pod.map(AsRef::as_ref),
            node_name,
            node,
            is_end: ledger.ending.is_some(),
        })
    })
}

/// Whether the task is launched again only when the attempt has ended.
fn waits(job: &ValidatedJob, task: &TaskEntry, number: u32) -> bool {
    job.rules.replaces_when_gone && task.winner != Some(number)
}

/// Pods that a batch/v1 Job counts as failed already, and whose end it still waits for.
fn let_go<'a>(view: &'a JobView, stores: &'a Stores) -> impl Iterator<Item = Awaited<'a>> {
    let (job, ledger) = (&*view.job, &view.ledger);
    let is_ending = job.adopted.is_some() && ledger.ending.is_some();
    let counted = leftover(ledger, &view.pods).filter(move |_| is_ending);
    counted.filter_map(move |(id, pod)| {
        let node_name = pod.node.as_deref();
        is_late(pod, view.now).then_some(Awaited {
            id,
            pod: Some(pod),
            node_name,
            node: node_state(stores, node_name),
            is_end: true,
        })
    })
}

/// Whether the pod's end should have been reported by now.
fn is_late(pod: &PodFacts, now: Instant) -> bool {
    pod.node.is_some() && unreachable_attempts::is_overdue(pod, Instant(now.0 - REPORTED_WITHIN.0))
}

struct Words<'a> {
    first: Awaited<'a>,
    others: usize,
}

impl fmt::Display for Words<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Awaited { id, pod, .. } = &self.first;
        let waits = match self.first.is_end {
            true => "the end of the job".to_owned(),
            false => format!("the next attempt of task {}", id.0),
        };
        let more = match self.others {
            0 => String::new(),
            others => format!(" (and {others} more)"),
        };
        let node = self.first.node_name.unwrap_or("its node");
        write!(
            f,
            "{waits} waits for attempt {} of task {}{more}",
            id.1, id.0
        )?;
        match (self.first.node, pod) {
            (NodeState::Ready, Some(pod)) => write!(
                f,
                ": pod {} should have terminated; node {node} is Ready, but its kubelet has not reported \
                 the termination. If this persists, look on that node for a process or a volume of the pod \
                that does not stop",
                pod.name
            ),
            (NodeState::Ready, None) => write!(
                f,
                ": its pod was removed before a kubelet reported the termination; node {node} is Ready, and \
                 the attempt counts as terminated once that machine has restarted"
            ),
            (NodeState::NotReady, _) => write!(
                f,
                ", which may still run on {node}; that node is not Ready: if the machine is certainly off, \
                 add the taint node.kubernetes.io/out-of-service to it"
            ),
            (NodeState::Missing, _) => write!(
                f,
                ", which may still run on {node}; that node has no Node object: if the machine is certainly \
                 off, create a Node with that name and the taint \
                 node.kubernetes.io/out-of-service"
            ),
        }
    }
}

#[cfg(test)]
mod tests;
