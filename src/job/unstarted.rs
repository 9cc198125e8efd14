//! Attempts without a started container. Pure.
//!
//! A missing ConfigMap, Secret or claim keeps a pod in ContainerCreating without a message in its status. Only the pod's
//! events name the cause, which shed may not read.

use std::sync::Arc;

use shed_core::time::{Instant, Span};

use crate::clock;
use crate::cluster::pod::{AttemptFacts, JobPods, PodFacts};
use crate::job::view::JobView;

/// Large images take their time, so a pod that starts is an obstacle only after this time on its node.
const REPORTED_AFTER: Span = Span::from_seconds(60);

/// An attempt that waits for its first container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unstarted {
    pod: Arc<str>,
    /// Absent until it is placed.
    node: Option<Arc<str>>,
    since: Instant,
}

impl Unstarted {
    fn of(pod: &PodFacts) -> Option<Self> {
        let placed = pod.scheduling.placed.filter(|_| pod.node.is_some());
        Some(Self {
            pod: Arc::clone(&pod.name),
            node: pod.node.clone(),
            since: placed.or(pod.scheduling.created)?,
        })
    }

    /// The attempt of these tasks that waits longest, if none of their attempts has started its task. Of all tasks if
    /// none is named; then a task that has ended is one that has started.
    pub fn longest(view: &JobView, task: Option<u32>) -> Option<Self> {
        let counts = &view.ledger.counts;
        let has_run = counts.won + counts.failed + counts.clone_failed + counts.late > 0;
        let mut of_task = of(&view.pods, task);
        // While the kubelet waits before its next restart, no container runs.
        let crashes = |attempt: &AttemptFacts| {
            let crash = attempt.crash_loop.as_ref();
            crash.is_some_and(|crash| !crash.is_init)
        };
        let has_started = |attempt: &AttemptFacts| attempt.started.is_some() || crashes(attempt);
        if task.is_none() && has_run || of_task.any(|(_, attempt)| has_started(attempt)) {
            return None;
        }
        let waiting = of(&view.pods, task).filter(|(pod, _)| !pod.terminal);
        let waiting = waiting.filter_map(|(pod, _)| Self::of(pod));
        waiting.min_by_key(|one| one.since)
    }

    /// The attempt that has waited on its node for long enough to be an obstacle.
    pub fn obstacle(view: &JobView) -> Option<Self> {
        let waits = |(pod, attempt): &(&PodFacts, &AttemptFacts)| {
            pod.node.is_some() && !pod.terminal && !attempt.deleting && !attempt.begun
        };
        let waiting = of(&view.pods, None).filter(waits);
        let waiting = waiting.filter_map(|(pod, _)| Self::of(pod));
        let longest = waiting.min_by_key(|one| one.since)?;
        (view.now.since(longest.since) >= REPORTED_AFTER).then_some(longest)
    }

    /// The pod, its node, and since when.
    pub fn words(&self) -> String {
        let since = clock::rfc3339(self.since);
        match &self.node {
            Some(node) => format!("pod {} on node {node} since {since}", self.pod),
            None => format!("pod {}, which waits for a node since {since}", self.pod),
        }
    }
}

fn of(pods: &JobPods, task: Option<u32>) -> impl Iterator<Item = (&PodFacts, &AttemptFacts)> {
    let pods = pods
        .iter()
        .filter(move |(id, _)| task.is_none_or(|task| id.0 == task));
    pods.filter_map(|(_, pod)| Some((&**pod, pod.attempt.as_deref()?)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc as Shared;

    use serde_json::json;

    use super::*;
    use crate::api::Ledger;
    use crate::cluster::pod::AttemptId;
    use crate::fixtures;
    use crate::validate::validate;

    /// A job a while after its pods were placed.
    struct World(JobView);

    impl World {
        fn at(seconds: i64) -> Self {
            let job = Shared::new(validate(&fixtures::job("")).unwrap());
            let now = Instant(seconds * 1000);
            Self(JobView::new(job, Ledger::default(), now, now))
        }

        /// A pod that was placed at this second, with these fields of its container's status.
        fn pod(mut self, id: AttemptId, placed: i64, mut task: serde_json::Value) -> Self {
            let job = fixtures::job("");
            let pod = fixtures::attempt_pod(&job, id, &format!("node-{}", id.0), "Pending");
            let mut pod = serde_json::to_value(pod).unwrap();
            let placed = clock::rfc3339(Instant(placed * 1000));
            pod["status"]["conditions"] =
                json!([{"type": "PodScheduled", "status": "True", "lastTransitionTime": placed}]);
            for (field, value) in [("name", "task"), ("image", ""), ("imageID", "")] {
                task[field] = value.into();
            }
            pod["status"]["containerStatuses"] = json!([task]);
            let pod = serde_json::from_value(pod).unwrap();
            let facts = PodFacts::from_pod(&pod, self.0.now);
            self.0.pods.insert(id, Shared::new(facts));
            self
        }

        fn obstacle(&self) -> Option<String> {
            Some(Unstarted::obstacle(&self.0)?.words())
        }
    }

    fn creating() -> serde_json::Value {
        json!({"ready": false, "restartCount": 0, "state": {"waiting": {"reason": "ContainerCreating"}}})
    }

    fn running() -> serde_json::Value {
        json!({"ready": false, "restartCount": 0,
            "state": {"running": {"startedAt": "1970-01-01T00:00:30Z"}}})
    }

    #[test]
    fn a_pod_without_a_started_container_is_an_obstacle_in_time() {
        let placed = |at| World::at(at).pod((0, 0), 20, creating()).obstacle();
        assert_eq!(placed(79), None);
        let words = placed(80).unwrap();
        assert!(
            words.starts_with("pod count-")
                && words.ends_with(" on node node-0 since 1970-01-01T00:00:20Z"),
            "{words}"
        );
        let world = World::at(80).pod((0, 0), 20, running());
        assert_eq!(world.obstacle(), None);
    }

    #[test]
    fn the_pod_that_waits_longest_is_named() {
        let world = World::at(300)
            .pod((0, 0), 100, creating())
            .pod((1, 0), 90, creating())
            .pod((2, 0), 80, running());
        assert!(world.obstacle().unwrap().contains("node-1"));
        // One task has started, so only a named task counts as unstarted.
        let longest = |task| Unstarted::longest(&world.0, task).map(|one| one.words());
        assert_eq!(longest(None), None);
        assert_eq!(longest(Some(2)), None);
        assert!(longest(Some(0)).unwrap().contains("node-0"));
    }

    #[test]
    fn a_task_between_two_restarts_has_started() {
        let crashes = json!({"ready": false, "restartCount": 1,
            "state": {"waiting": {"reason": "CrashLoopBackOff"}},
            "lastState": {"terminated": {"exitCode": 1}}});
        let world = World::at(300).pod((0, 0), 100, crashes);
        assert_eq!(Unstarted::longest(&world.0, Some(0)), None);
        assert_eq!(world.obstacle(), None);
    }

    #[test]
    fn a_job_with_ended_attempts_has_started() {
        let mut world = World::at(300).pod((0, 0), 100, creating());
        assert!(Unstarted::longest(&world.0, None).is_some());
        world.0.ledger.counts.failed = 1;
        assert_eq!(Unstarted::longest(&world.0, None), None);
    }
}
