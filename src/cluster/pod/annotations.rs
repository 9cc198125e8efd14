//! The annotations that shed changes on the pods of running attempts, for other programs.

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use shed_core::time::Instant;

use crate::api::{
    ANNOTATION_DELETION_COST, ANNOTATION_DO_NOT_DISRUPT, ANNOTATION_EXPECTED_END,
    ANNOTATION_SAFE_TO_EVICT,
};
use crate::clock;

/// The annotations that shed changes on the pod of a running attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PodAnnotations {
    /// What a disruption of the pod costs; 0 without the annotation.
    pub deletion_cost: i32,
    /// Whether autoscalers must leave the pod alone.
    pub is_held: bool,
    /// When the attempt is expected to end.
    pub expected_end: Option<Instant>,
}

impl PodAnnotations {
    /// Those of a pod.
    pub fn of(pod: &Pod) -> Self {
        let annotations = pod.metadata.annotations.as_ref();
        let get = |key: &str| annotations.and_then(|all| all.get(key)).map(String::as_str);
        let cost = get(ANNOTATION_DELETION_COST).and_then(|cost| cost.parse().ok());
        let end = get(ANNOTATION_EXPECTED_END).and_then(|end| end.parse().ok());
        Self {
            deletion_cost: cost.unwrap_or(0),
            is_held: get(ANNOTATION_DO_NOT_DISRUPT) == Some("true")
                && get(ANNOTATION_SAFE_TO_EVICT) == Some("false"),
            expected_end: end.map(|end| clock::instant(&Time(end))),
        }
    }

    /// Those of a pod that has any. Most have none, and each pod is kept in memory.
    pub(super) fn noted_on(pod: &Pod) -> Option<Box<Self>> {
        let noted = Self::of(pod);
        (noted != Self::default()).then(|| Box::new(noted))
    }

    /// Names and values of what differs from `before`.
    pub fn changes_from(&self, before: &Self) -> Vec<(&'static str, String)> {
        let mut changes = Vec::new();
        if self.deletion_cost != before.deletion_cost {
            changes.push((ANNOTATION_DELETION_COST, self.deletion_cost.to_string()));
        }
        if self.is_held && !before.is_held {
            changes.push((ANNOTATION_DO_NOT_DISRUPT, "true".to_owned()));
            changes.push((ANNOTATION_SAFE_TO_EVICT, "false".to_owned()));
        }
        if let Some(end) = self
            .expected_end
            .filter(|_| self.expected_end != before.expected_end)
        {
            changes.push((ANNOTATION_EXPECTED_END, clock::rfc3339(end)));
        }
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let wanted = PodAnnotations {
            deletion_cost: 5,
            is_held: true,
            expected_end: Some(Instant(60_000)),
        };
        let changes = wanted.changes_from(&PodAnnotations::default());
        let mut pod = Pod::default();
        let annotations = changes
            .iter()
            .map(|(key, value)| ((*key).to_owned(), value.clone()));
        pod.metadata.annotations = Some(annotations.collect());
        assert_eq!(PodAnnotations::of(&pod), wanted);
        assert_eq!(wanted.changes_from(&wanted), []);
        assert_eq!(
            PodAnnotations::of(&Pod::default()),
            PodAnnotations::default()
        );
    }
}
