//! Answers of a pod's scheduler so far.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Pod, PodCondition};
use shed_core::time::Instant;

use crate::clock;

/// The scheduler of pods that name none.
pub const DEFAULT_SCHEDULER: &str = "default-scheduler";

/// Reason of the condition while gates keep the scheduler from looking at the pod.
const GATED: &str = "SchedulingGated";

/// Characters of a scheduler's message that are kept.
const MESSAGE_MAX: usize = 1000;

/// Answers of a pod's scheduler so far.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scheduling {
    /// The pod's scheduler; absent: the default one.
    pub scheduler: Option<Arc<str>>,
    /// When the pod was created.
    pub created: Option<Instant>,
    /// When it was given its node.
    pub placed: Option<Instant>,
    /// Why it has none.
    pub refusal: Option<Arc<Refusal>>,
}

/// The condition `PodScheduled=False`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Its reason.
    pub reason: String,
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
        Self {
            scheduler: scheduler
                .filter(|name| *name != DEFAULT_SCHEDULER)
                .map(Arc::from),
            created: pod.metadata.creation_timestamp.as_ref().map(clock::instant),
            placed: is("True").and_then(since),
            refusal: is("False")
                .filter(|_| is_attempt)
                .map(|answer| Arc::new(Refusal::of(answer))),
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
            reason: condition.reason.clone().unwrap_or_default(),
            message: words.chars().take(MESSAGE_MAX).collect(),
            since: since(condition),
        }
    }

    /// Whether the scheduler does not even look at the pod.
    pub fn is_gated(&self) -> bool {
        self.reason == GATED
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
        Scheduling::of(&serde_yaml_ng::from_str(&pod).unwrap(), true)
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
        let refused = |reason: &str, message: &str| {
            let condition = format!(
                "{{type: PodScheduled, status: 'False', reason: {reason}, message: '{message}'}}"
            );
            scheduling("schedulerName: default-scheduler,", &condition)
                .refusal
                .unwrap()
        };
        let gated = refused("SchedulingGated", "Scheduling is blocked");
        assert!(gated.is_gated() && !gated.is_for_capacity());
        let full = refused(
            "Unschedulable",
            "0/3 nodes are available: 3 Insufficient cpu.",
        );
        assert!(full.is_for_capacity() && !full.is_gated());
        let anti = "0/3 nodes are available: 3 node(s) did not match pod anti-affinity rules.";
        assert!(!refused("Unschedulable", anti).is_for_capacity());
    }
}
