//! Attempts out of reach: their pods are being deleted, and nothing will report their end soon. Their
//! node is gone, or its kubelet does not answer for a pod that it never started. Kubernetes itself
//! would replace such a pod at once, or never.

use std::collections::BTreeSet;

use shed_core::time::{Instant, Span};

use crate::cluster::Stores;
use crate::cluster::node::NodeFacts;
use crate::cluster::pod::{AttemptId, JobPods, PodFacts};

/// How long after its deletion time a pod that never started anything may still exist. After that it
/// is out of reach.
const UNSTARTED_GOES_WITHIN: Span = Span::from_seconds(30);
/// After this time such a pod counts as gone. Some kubelets never report its end
/// (kubernetes/kubernetes#115331, #121435). One that is only late, as on a cluster with too much to
/// do, may still start the pod, so this is as long as pods tolerate an unreachable node by default.
const UNSTARTED_IS_GONE_AFTER: Span = Span::from_seconds(300);

/// The job's attempts that are out of reach now.
pub fn out_of_reach(pods: &JobPods, stores: &Stores, now: Instant) -> BTreeSet<AttemptId> {
    let overdue = pods.iter().filter(|(_, pod)| is_overdue(pod, now));
    let unreported = overdue.filter(|(_, pod)| {
        let node = pod.node.as_deref().map(|name| stores.nodes.get(name));
        let is_on_lost_node = node.is_some_and(|node| is_gone(node.as_ref()));
        is_on_lost_node || is_unstarted_after(pod, UNSTARTED_GOES_WITHIN, now)
    });
    unreported.map(|(&id, _)| id).collect()
}

/// Whether a pod should have ended by now: it was deleted, and its grace period is over.
pub fn is_overdue(pod: &PodFacts, now: Instant) -> bool {
    let attempt = pod.attempt.as_ref().filter(|_| !pod.terminal);
    let due = attempt.and_then(|attempt| attempt.due);
    due.is_some_and(|due| now >= due)
}

/// Whether no kubelet will report the end of a deleted pod: nothing of it had started, and it
/// should have disappeared.
pub fn is_given_up(pod: &PodFacts, now: Instant) -> bool {
    is_unstarted_after(pod, UNSTARTED_IS_GONE_AFTER, now)
}

/// Whether a pod with a node was to be gone at least `late` ago, and nothing of it has started.
fn is_unstarted_after(pod: &PodFacts, late: Span, now: Instant) -> bool {
    let has_begun = pod.attempt.as_ref().is_none_or(|attempt| attempt.begun);
    !has_begun && pod.node.is_some() && is_overdue(pod, Instant(now.0 - late.0))
}

/// A node without an object, that does not report, or that an administrator has tainted as off.
fn is_gone(node: Option<&NodeFacts>) -> bool {
    node.is_none_or(|node| !node.ready || node.is_out_of_service)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use k8s_openapi::api::core::v1::Node;

    use super::*;
    use crate::fixtures;

    /// A running pod that was to be gone at 10 s.
    fn pods(node: &str, status: &str) -> JobPods {
        let yaml = format!(
            "{{metadata: {{labels: {{shed.dev/job-uid: j, shed.dev/attempt: '0', \
             batch.kubernetes.io/job-completion-index: '0'}}, deletionTimestamp: '1970-01-01T00:00:10Z'}}, \
             spec: {{{node} containers: [{{name: task}}]}}, status: {{{status}}}}}"
        );
        let pod = serde_saphyr::from_str(&yaml).unwrap();
        let pod = PodFacts::from_pod(&pod, Instant(0));
        [((0, 0), Arc::new(pod))].into()
    }

    fn is_lost(pods: &JobPods, nodes: &[Node], now: i64) -> bool {
        let stores = Stores::for_tests(vec![], vec![], nodes);
        !out_of_reach(pods, &stores, Instant(now)).is_empty()
    }

    const ON_NODE_1: &str = "nodeName: node-1,";

    #[test]
    fn a_deleted_pod_of_a_lost_node_is_lost_after_its_grace_period() {
        let silent = |status: &str| {
            let mut node = fixtures::node("node-1", 1);
            let conditions = node.status.as_mut().and_then(|s| s.conditions.as_mut());
            conditions.unwrap()[0].status = status.to_owned();
            node
        };
        let mut off = silent("True");
        off.spec = serde_saphyr::from_str(
            "{taints: [{key: node.kubernetes.io/out-of-service, effect: NoExecute}]}",
        )
        .unwrap();
        let running = pods(ON_NODE_1, "phase: Running");
        for (nodes, expected) in [
            (vec![], true),
            (vec![silent("Unknown")], true),
            (vec![silent("False")], true),
            (vec![off], true),
            (vec![silent("True")], false),
        ] {
            assert_eq!(is_lost(&running, &nodes, 10_000), expected, "{nodes:?}");
            assert!(!is_lost(&running, &nodes, 9_999), "its grace period");
        }
        let ended = pods(ON_NODE_1, "phase: Failed");
        assert!(!is_lost(&ended, &[], 10_000));
        assert!(
            !is_lost(&pods("", "phase: Pending"), &[], 10_000),
            "it never had a node"
        );
        let stays = |mut pods: JobPods| {
            let pod = pods.get_mut(&(0, 0)).map(Arc::make_mut).unwrap();
            pod.attempt.as_mut().unwrap().due = None;
            pods
        };
        assert!(
            !is_lost(&stays(running), &[], 10_000),
            "no deletion was requested"
        );
    }

    const WAITING: &str = "phase: Pending, containerStatuses: [{name: task, ready: false, \
                           restartCount: 0, image: i, imageID: '', state: {waiting: {}}}]";

    #[test]
    fn a_deleted_pod_that_never_started_is_lost_after_30_seconds() {
        let is_lost = |status: &str, now| {
            let nodes = [fixtures::node("node-1", 1)];
            super::tests::is_lost(&pods(ON_NODE_1, status), &nodes, now)
        };
        assert!(is_lost("phase: Pending", 40_000) && is_lost(WAITING, 40_000));
        assert!(!is_lost(WAITING, 39_999));
        let begun = WAITING.replace("waiting: {}", "running: {}");
        assert!(!is_lost(&begun, 400_000), "its kubelet knows it");
    }

    #[test]
    fn it_is_given_up_once_a_late_kubelet_would_have_reported() {
        let is_given_up = |status: &str, now| {
            let pods = pods(ON_NODE_1, status);
            super::is_given_up(&pods[&(0, 0)], Instant(now))
        };
        assert!(is_given_up("phase: Pending", 310_000) && is_given_up(WAITING, 310_000));
        assert!(!is_given_up(WAITING, 309_999));
        let init = WAITING.replace("containerStatuses", "initContainerStatuses");
        let begun = init.replace("waiting: {}", "running: {}");
        assert!(is_given_up(&init, 310_000) && !is_given_up(&begun, 310_000));
    }
}
