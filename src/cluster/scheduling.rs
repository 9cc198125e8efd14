//! Answers of a pod's scheduler so far.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Pod, PodCondition};
use shed_core::time::Instant;

use crate::clock;

/// The scheduler of pods that name none.
pub const DEFAULT_SCHEDULER: &str = "default-scheduler";

/// Reason of the condition while gates keep the scheduler from looking at the pod, and until it has looked at it after
/// that.
const GATED: &str = "SchedulingGated";

/// Words of a condition by which the scheduler preempts other pods for the pod (Kubernetes 1.37).
const PREEMPTING: &str = "preemption: found a potential placement";

/// Characters of a scheduler's message that are kept.
const MESSAGE_MAX: usize = 1000;

/// Answers of a pod's scheduler so far.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scheduling {
    /// The pod's scheduler; absent: the default one.
    pub scheduler: Option<Arc<str>>,
    /// When the pod was created, unless its scheduler has not answered since gates were removed.
    pub created: Option<Instant>,
    /// When it was given its node.
    pub placed: Option<Instant>,
    /// Why it has none.
    pub refusal: Option<Arc<Refusal>>,
    /// The first of the gates that keep its scheduler from looking at it. shed sets none.
    pub gate: Option<Arc<str>>,
    /// Whether its scheduler preempts other pods for it.
    pub preempts: bool,
}

/// The condition `PodScheduled=False`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The scheduler's own words.
    pub message: String,
    /// When the condition became false, by the scheduler's clock.
    pub since: Option<Instant>,
}

impl Scheduling {
    /// Facts of the pod's specification and conditions. The reason for a missing node is kept for
    /// attempts only.
    pub fn of(pod: &Pod, is_attempt: bool) -> Self {
        let spec = pod.spec.as_ref();
        let scheduler = spec.and_then(|spec| spec.scheduler_name.as_deref());
        let status = pod.status.as_ref();
        let conditions = status.and_then(|status| status.conditions.as_ref());
        let mut conditions = conditions.into_iter().flatten();
        let answer = conditions.find(|condition| condition.type_ == "PodScheduled");
        let is = |status: &str| answer.filter(|answer| answer.status == status);
        let was_gated = answer.is_some_and(|answer| answer.reason.as_deref() == Some(GATED));
        let refused = is("False").filter(|_| is_attempt && !was_gated);
        let gates = spec.and_then(|spec| spec.scheduling_gates.as_ref());
        let nominated = status.and_then(|status| status.nominated_node_name.as_deref());
        let words = refused.and_then(|answer| answer.message.as_deref());
        Self {
            scheduler: scheduler
                .filter(|name| *name != DEFAULT_SCHEDULER)
                .map(Arc::from),
            created: pod
                .metadata
                .creation_timestamp
                .as_ref()
                .map(clock::instant)
                .filter(|_| !was_gated),
            placed: is("True").and_then(since),
            refusal: refused.map(|answer| Arc::new(Refusal::of(answer))),
            gate: gates
                .and_then(|gates| gates.first())
                .filter(|_| is_attempt)
                .map(|gate| Arc::from(&*gate.name)),
            preempts: nominated.is_some_and(|node| !node.is_empty())
                || words.is_some_and(|words| words.contains(PREEMPTING)),
        }
    }

    /// Name of the pod's scheduler.
    pub fn scheduler(&self) -> &str {
        self.scheduler.as_deref().unwrap_or(DEFAULT_SCHEDULER)
    }
}

impl Refusal {
    fn of(condition: &PodCondition) -> Self {
        let words = condition.message.as_deref().unwrap_or_default();
        Self {
            message: words.chars().take(MESSAGE_MAX).collect(),
            since: since(condition),
        }
    }

    /// Whether a node lacks only capacity, by the messages of kube-scheduler's fit plugin.
    pub fn is_for_capacity(&self) -> bool {
        self.message.contains("Insufficient ") || self.message.contains("Too many pods")
    }
}

fn since(condition: &PodCondition) -> Option<Instant> {
    condition.last_transition_time.as_ref().map(clock::instant)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scheduling(spec: &str, condition: &str) -> Scheduling {
        let pod = format!(
            "{{metadata: {{creationTimestamp: '1970-01-01T00:00:01Z'}}, spec: {{{spec} containers: []}}, \
             status: {{conditions: [{condition}]}}}}"
        );
        Scheduling::of(&serde_saphyr::from_str(&pod).unwrap(), true)
    }

    #[test]
    fn the_scheduler_and_its_answer_are_read() {
        let none = scheduling("", "");
        assert_eq!(none.scheduler(), DEFAULT_SCHEDULER);
        assert_eq!(
            (none.created, none.placed, none.refusal),
            (Some(Instant(1000)), None, None)
        );
        let own = scheduling(
            "schedulerName: own,",
            "{type: PodScheduled, status: 'True', \
             lastTransitionTime: '1970-01-01T00:00:02Z'}",
        );
        assert_eq!((own.scheduler(), own.placed), ("own", Some(Instant(2000))));
        let full = refused("", "0/3 nodes are available: 3 Insufficient cpu.");
        assert!(full.refusal.unwrap().is_for_capacity() && !full.preempts);
        let anti = "0/3 nodes are available: 3 node(s) did not match pod anti-affinity rules.";
        assert!(!refused("", anti).refusal.unwrap().is_for_capacity());
    }

    /// A pod that its scheduler has refused with this message.
    fn refused(spec: &str, message: &str) -> Scheduling {
        let condition = format!(
            "{{type: PodScheduled, status: 'False', reason: Unschedulable, message: '{message}'}}"
        );
        scheduling(spec, &condition)
    }

    #[test]
    fn gates_are_no_answer_of_the_scheduler() {
        let condition = "{type: PodScheduled, status: 'False', reason: SchedulingGated, \
                         message: Scheduling is blocked, lastTransitionTime: '1970-01-01T00:00:02Z'}";
        let gates = "schedulingGates: [{name: kueue.x-k8s.io/admission}, {name: b}],";
        let gated = scheduling(gates, condition);
        assert_eq!(gated.gate.as_deref(), Some("kueue.x-k8s.io/admission"));
        assert_eq!((gated.refusal, gated.created), (None, None));
        // The gates are gone, and the scheduler has not answered since.
        let open = scheduling("", condition);
        assert_eq!((open.gate, open.refusal, open.created), (None, None, None));
    }

    #[test]
    fn a_pod_that_others_are_preempted_for_is_noticed() {
        let words = "0/3 nodes are available: 3 Insufficient cpu. preemption: found a potential \
                     placement on node-1, preempting 2 victims.";
        assert!(refused("", words).preempts);
        let pod = "{status: {nominatedNodeName: node-1}}";
        let nominated = Scheduling::of(&serde_saphyr::from_str(pod).unwrap(), true);
        assert!(nominated.preempts);
    }
}
