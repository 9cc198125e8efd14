//! Attempts that no scheduler places, and jobs that no node could hold: the facts for the planner
//! and the messages for users.
//!
//! A pod is unplaceable once its scheduler has refused it for [`PATIENCE`]. It is also unplaceable
//! if the scheduler has neither answered for that time nor placed any pod meanwhile. If the
//! scheduler reports that nodes lack only capacity, the planner's own count of capacity applies as
//! long as it agrees. Such a pod waits for the cluster to grow, and the next free capacity is meant
//! for it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use shed_core::resources::Resources;
use shed_core::snapshot::{AttemptKind, JobPhase, JobSnapshot};
use shed_core::time::{Instant, Span};

use crate::api::{Ledger, reason};
use crate::cluster::node::NodeFacts;
use crate::cluster::pod::{AttemptId, JobPods, PodFacts, Stage};
use crate::cluster::scheduling::{DEFAULT_SCHEDULER, Refusal};
use crate::context::backoff::Blocked;
use crate::job::unmet_node_requirements::unmet_requirement;
use crate::job::view::JobView;

/// How long a scheduler may take.
const PATIENCE: Span = Span::from_seconds(10);

/// How long a clone may wait for its node. Clones use free capacity only: one that waits would make an autoscaler add a
/// node.
const CLONE_PATIENCE: Span = Span::from_seconds(5);

/// How long a clone may take to start on the node that it was given, if its volume can be mounted on
/// one node at a time.
const VOLUME_PATIENCE: Span = Span::from_seconds(60);

/// Minimum time between two messages with the same reason. Schedulers count nodes in their
/// messages.
const WORDS_PERIOD: Span = Span::from_seconds(60);

/// The nodes on which the attempts of one job can run. shed can lose all of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Placement {
    waiting: BTreeMap<AttemptId, Waiting>,
    /// Since when there has been capacity for a waiting attempt.
    capacity_since: Option<Instant>,
    /// The largest requests of its pods: admission may have added to the template's.
    requests: Resources,
    /// Attempts that are not placed though they should be, and the node on which each was seen.
    unplaceable: BTreeMap<AttemptId, Option<Arc<str>>>,
    no_node: bool,
    reported: Option<(Blocked, Instant)>,
    has_looked: bool,
}

/// A pod that waits for a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Waiting {
    /// Since when.
    since: Instant,
    /// Since when its scheduler has refused it.
    refused: Option<Instant>,
    /// Its scheduler refused it for lack of capacity although the planner counted enough. The count
    /// is wrong.
    is_disproved: bool,
    /// When gates were last seen that kept its scheduler from looking at it. Earlier answers do not count.
    gated: Option<Instant>,
}

/// Input of the check.
pub struct Input<'a> {
    /// The job.
    pub view: &'a JobView,
    /// All nodes of the cluster.
    pub nodes: &'a [NodeFacts],
    /// When a scheduler last placed a pod.
    pub last_bind: &'a dyn Fn(&str) -> Option<Instant>,
    /// Whether its pods can't be created at present.
    pub is_uncreatable: bool,
    /// Whether its clones cannot mount the volumes of their originals.
    pub is_unshared: bool,
}

impl Input<'_> {
    /// An object's time, by the process's own clock.
    fn own(&self, reported: Instant) -> Instant {
        self.view.ticks.plus(reported.since(self.view.now))
    }
}

/// How a pod that waits for a node stands.
enum Verdict {
    /// It should have been placed.
    Unplaceable,
    /// The planner counts no capacity for it.
    Full,
    /// Its scheduler may still place it. The check is repeated at this instant.
    Patience(Instant),
}

impl Placement {
    /// Requests of an attempt: those of the template, or the largest of the job's pods.
    pub fn learn_requests(&mut self, template: Resources, pods: &JobPods) -> Resources {
        if !pods.is_empty() {
            self.requests = Resources::default();
        }
        let mut demand = template;
        for pod in pods.values() {
            raise(&mut self.requests, &pod.requests);
        }
        raise(&mut demand, &self.requests);
        demand
    }

    /// Looks at the job; when it should be looked at again though nothing happens.
    pub fn look(&mut self, input: &Input<'_>) -> Option<Instant> {
        self.has_looked = true;
        let mut due: Option<Instant> = None;
        let (mut unplaceable, mut words) = (BTreeMap::new(), None);
        let mut waiting = std::mem::take(&mut self.waiting);
        for (&id, pod) in input
            .view
            .pods
            .iter()
            .filter(|(id, pod)| waits(&input.view.ledger, **id, pod))
        {
            let mut state = Waiting::seen(waiting.remove(&id), pod, input);
            if pod.scheduling.gate.is_some() {
                // Its queue decides, and the facts about the attempt say so.
                self.waiting.insert(id, state);
                continue;
            }
            let entry = input.view.ledger.attempt(id.0, id.1);
            let is_clone = entry.is_some_and(|entry| entry.kind == AttemptKind::Clone);
            match self.verdict(&mut state, pod, is_clone, input) {
                Verdict::Patience(until) => due = due.into_iter().chain([until]).min(),
                verdict => {
                    if matches!(verdict, Verdict::Unplaceable) {
                        unplaceable.insert(id, None);
                    }
                    words = words.or_else(|| Some(words_of(pod)));
                }
            }
            self.waiting.insert(id, state);
        }
        unplaceable.extend(uncreated(input).map(|id| (id, None)));
        unplaceable.extend(unmounted(input, &mut due));
        self.unplaceable = unplaceable;
        let missing = may_run(input).then(|| self.missing(input)).flatten();
        self.no_node = missing.is_some();
        let of_cluster = missing.filter(|_| lacks_attempts(input)).map(no_node_words);
        self.announce(
            of_cluster.or(words.filter(|_| may_run(input))),
            input.view.ticks,
        );
        due.into_iter()
            .chain(self.capacity_due(input.view.ticks))
            .min()
    }

    /// Marks the known obstacles in the facts about the job.
    pub fn mark(&self, facts: &mut JobSnapshot, pods: &JobPods) {
        facts.obstacles.no_node = self.no_node;
        if self.unplaceable.is_empty() {
            return;
        }
        for task in &mut facts.tasks {
            for attempt in &mut task.attempts {
                let id = (task.index.0, attempt.number.0);
                let pod = pods.get(&id);
                let node = pod.and_then(|pod| pod.node.clone());
                let is_same = self.unplaceable.get(&id).is_some_and(|seen| *seen == node);
                attempt.unplaceable = is_same && attempt.started.is_none();
            }
        }
    }

    /// The obstacle to placing its attempts.
    pub fn blocked(&self) -> Option<&Blocked> {
        self.reported.as_ref().map(|(blocked, _)| blocked)
    }

    /// Whether nothing is known to keep its attempts from being placed. Before the first look nothing is
    /// known.
    pub fn is_clear(&self) -> bool {
        self.has_looked && self.reported.is_none()
    }

    /// Whether the job's reconciler has new work or a new message.
    pub fn is_news_after(&self, before: &Self) -> bool {
        let ids = |one: &Self| one.unplaceable.keys().copied().collect::<BTreeSet<_>>();
        self.blocked() != before.blocked() || ids(self) != ids(before)
    }

    /// Whether an attempt of the job waits for capacity.
    pub fn waits_for_capacity(&self) -> bool {
        let mut waiting = self.waiting.values();
        waiting.any(|waiting| waiting.refused.is_some() && !waiting.is_disproved)
    }

    /// Records whether there is capacity for an attempt of the job, by the planner's count.
    pub fn note_capacity(&mut self, is_there: bool, now: Instant) {
        self.capacity_since = is_there.then(|| self.capacity_since.unwrap_or(now));
    }

    fn capacity_due(&self, now: Instant) -> Option<Instant> {
        let due = self.capacity_since?.plus(PATIENCE);
        (self.waits_for_capacity() && due > now).then_some(due)
    }

    fn verdict(
        &self,
        state: &mut Waiting,
        pod: &PodFacts,
        is_clone: bool,
        input: &Input<'_>,
    ) -> Verdict {
        let now = input.view.ticks;
        let since = state.refused.unwrap_or_else(|| {
            let last = (input.last_bind)(pod.scheduling.scheduler()).map(|at| input.own(at));
            last.max(Some(state.since)).unwrap_or(state.since)
        });
        let until = since.plus(if is_clone { CLONE_PATIENCE } else { PATIENCE });
        let refusal = pod.scheduling.refusal.as_deref();
        if now < until {
            return Verdict::Patience(until);
        }
        // Its scheduler frees capacity for it.
        if pod.scheduling.preempts {
            return Verdict::Full;
        }
        let had_capacity = self
            .capacity_since
            .is_some_and(|capacity| now.since(capacity) >= PATIENCE);
        let is_for_capacity = refusal.is_some_and(Refusal::is_for_capacity);
        state.is_disproved |= is_for_capacity && had_capacity;
        match is_for_capacity && !state.is_disproved && !is_clone {
            true => Verdict::Full,
            false => Verdict::Unplaceable,
        }
    }

    fn missing(&self, input: &Input<'_>) -> Option<String> {
        let none = k8s_openapi::api::core::v1::PodSpec::default();
        let spec = input.view.job.template.spec.as_ref().unwrap_or(&none);
        unmet_requirement(spec, &input.view.places.demand, input.nodes.iter())
    }

    fn announce(&mut self, blocked: Option<Blocked>, now: Instant) {
        let Some(blocked) = blocked else {
            self.reported = None;
            return;
        };
        let is_recent = |reported: &(Blocked, Instant)| {
            reported.0.reason == blocked.reason && now.since(reported.1) < WORDS_PERIOD
        };
        if !self.reported.as_ref().is_some_and(is_recent) {
            self.reported = Some((blocked, now));
        }
    }
}

impl Waiting {
    fn seen(before: Option<Self>, pod: &PodFacts, input: &Input<'_>) -> Self {
        let (scheduling, now) = (&pod.scheduling, input.view.ticks);
        let gated = match &scheduling.gate {
            Some(_) => Some(now),
            None => before.and_then(|before| before.gated),
        };
        let reported = |at: Option<Instant>| at.map_or(now, |at| input.own(at));
        let since = before.map_or(now, |before| before.since);
        let refused = scheduling.refusal.as_ref().map(|refusal| {
            let seen = before.and_then(|before| before.refused).unwrap_or(now);
            seen.min(reported(refusal.since))
        });
        let since = since.min(reported(scheduling.created));
        Self {
            since: gated.map_or(since, |gated| since.max(gated)),
            refused: refused.map(|refused| gated.map_or(refused, |gated| refused.max(gated))),
            is_disproved: before.is_some_and(|before| before.is_disproved),
            gated,
        }
    }
}

/// Raises amounts to those of another list, if these are larger.
fn raise(amounts: &mut Resources, to: &Resources) {
    for (name, amount) in to.iter() {
        if amount > amounts.get(name) {
            amounts.set(name, amount);
        }
    }
}

fn lives(ledger: &Ledger, id: AttemptId) -> bool {
    let entry = ledger.attempt(id.0, id.1);
    entry.is_some_and(|entry| entry.kill.is_none())
}

/// Whether the pod is of a live attempt and has no node.
fn waits(ledger: &Ledger, id: AttemptId, pod: &PodFacts) -> bool {
    let is_going = || pod.attempt.as_ref().is_none_or(|attempt| attempt.deleting);
    pod.node.is_none() && !pod.terminal && !is_going() && lives(ledger, id)
}

/// Live attempts without a pod, while none can be created.
fn uncreated<'a>(input: &'a Input<'_>) -> impl Iterator<Item = AttemptId> + 'a {
    let tasks = input
        .view
        .ledger
        .tasks
        .values()
        .filter(|_| input.is_uncreatable);
    let attempts = tasks.flat_map(|task| {
        let live = task
            .attempts
            .iter()
            .filter(|attempt| attempt.kill.is_none());
        live.map(|attempt| (task.index, attempt.number))
    });
    attempts.filter(|id| {
        let trace = input.view.traces.get(id).copied().unwrap_or_default();
        !input.view.pods.contains_key(id) && !trace.seen && trace.created.is_none()
    })
}

/// Clones that were given a node and don't start there, where their volume is held elsewhere.
fn unmounted(
    input: &Input<'_>,
    due: &mut Option<Instant>,
) -> BTreeMap<AttemptId, Option<Arc<str>>> {
    let mut unmounted = BTreeMap::new();
    if !input.is_unshared {
        return unmounted;
    }
    for (&id, pod) in &input.view.pods {
        let is_pending = pod
            .attempt
            .as_ref()
            .is_some_and(|a| a.stage == Stage::Pending);
        let entry = input.view.ledger.attempt(id.0, id.1);
        let entry = entry.filter(|entry| entry.kind == AttemptKind::Clone && entry.kill.is_none());
        let (Some(entry), Some(node), true) = (entry, &pod.node, is_pending) else {
            continue;
        };
        let launched = entry.launched;
        let until = input.own(launched).plus(VOLUME_PATIENCE);
        if input.view.ticks < until {
            *due = due.iter().copied().chain([until]).min();
        } else {
            unmounted.insert(id, Some(Arc::clone(node)));
        }
    }
    unmounted
}

fn may_run(input: &Input<'_>) -> bool {
    let phase = input
        .view
        .ledger
        .ending
        .map_or(JobPhase::Active, JobPhase::Ending);
    phase == JobPhase::Active && !input.view.job.rules.suspend
}

/// Whether tasks that have not ended have no attempt on a node.
fn lacks_attempts(input: &Input<'_>) -> bool {
    let total = input.view.job.rules.completions;
    let skipped = input
        .view
        .job
        .skipped
        .as_ref()
        .map_or(0, |skipped| skipped.len());
    let placed: BTreeSet<u32> = input
        .view
        .pods
        .iter()
        .filter(|(id, pod)| pod.node.is_some() && !pod.terminal && lives(&input.view.ledger, **id))
        .map(|(id, _)| id.0)
        .collect();
    let ended =
        input.view.ledger.done_tasks(total).len() + input.view.ledger.failed_tasks(total).len();
    ended
        .saturating_add(skipped)
        .saturating_add(placed.len() as u32)
        < total
}

fn no_node_words(missing: String) -> Blocked {
    Blocked {
        reason: reason::NO_MATCHING_NODE,
        message: format!(
            "no node can run an attempt, even when empty: {missing}; shed leaves one pod pending so that an \
             autoscaler can add a node"
        ),
    }
}

fn words_of(pod: &PodFacts) -> Blocked {
    let name = &pod.name;
    let scheduler = pod.scheduling.scheduler();
    let message = match pod.scheduling.refusal.as_deref() {
        Some(refusal) => format!("pod {name}: {}", refusal.message),
        None if scheduler == DEFAULT_SCHEDULER => format!(
            "pod {name}: scheduler {scheduler} has not responded for {} s, and has placed no pod since",
            PATIENCE.seconds()
        ),
        None => format!(
            "pod {name}: no scheduler has responded for {} s, and {scheduler} \
             (spec.template.spec.schedulerName) has placed no pod since: check that it runs",
            PATIENCE.seconds()
        ),
    };
    Blocked {
        reason: reason::UNSCHEDULABLE,
        message,
    }
}

#[cfg(test)]
mod tests;
