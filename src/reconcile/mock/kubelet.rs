//! The kubelet's role: it runs pods, reports their ends, and ends those that are deleted.

use k8s_openapi::api::core::v1::Pod;
use serde_json::json;
use shed_core::time::Instant;

use crate::clock;
use crate::cluster::pod::AttemptId;
use crate::reconcile::mock::{Apiserver, pod_name};

/// Whether its containers have ended.
pub fn has_ended(pod: &Pod) -> bool {
    let phase = pod
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    // A pod without a node has no container that could continue.
    let is_placed = pod
        .spec
        .as_ref()
        .is_some_and(|spec| spec.node_name.is_some());
    !is_placed || matches!(phase, Some("Succeeded" | "Failed"))
}

impl Apiserver {
    /// The attempt's container started a second ago on `node-1`.
    pub fn run(&self, id: AttemptId) {
        let started = clock::time(Instant(self.now().0 - 1000));
        let state = json!({"running": {"startedAt": started}});
        self.report(id, "Running", &state);
    }

    /// The attempt's container ended.
    pub fn exit(&self, id: AttemptId, code: i32, finished: Instant) {
        let started = clock::time(Instant(finished.0 - 10_000));
        let state = json!({"terminated": {"exitCode": code, "startedAt": started,
            "finishedAt": clock::time(finished)}});
        let phase = if code == 0 { "Succeeded" } else { "Failed" };
        self.report(id, phase, &state);
    }

    /// The attempt's container succeeded, and its agent reported the end.
    pub fn exit_at(&self, id: AttemptId, said: &str) {
        self.exit(id, 0, self.now());
        let name = pod_name(&self.job(), id);
        let mut world = self.world.lock();
        let pod = world.pods.get_mut(&name).expect("the pod is there");
        let agent = json!([{"name": crate::api::AGENT_CONTAINER, "ready": false, "restartCount": 0,
            "image": "i", "imageID": "i",
            "state": {"terminated": {"exitCode": 0, "message": said}}}]);
        let status = pod.status.as_mut().expect("it ran");
        status.init_container_statuses = serde_json::from_value(agent).expect("status");
    }

    /// The attempt's container can't start.
    pub fn stick(&self, id: AttemptId, reason: &str) {
        let state = json!({"waiting": {"reason": reason, "message": "no such thing"}});
        self.report(id, "Pending", &state);
    }

    /// The attempt's container fails again and again, and its kubelet waits before the next restart.
    pub fn crash(&self, id: AttemptId, restarts: i32) {
        let task = json!([{"name": "task", "ready": false, "restartCount": restarts, "image": "i",
            "imageID": "i", "state": {"waiting": {"reason": "CrashLoopBackOff"}},
            "lastState": {"terminated": {"exitCode": 1}}}]);
        self.write_status(id, json!({"phase": "Running", "containerStatuses": task}));
    }

    /// Sets the attempt's pod to failed without a report about its container, as garbage collection
    /// does for pods on a machine out of reach.
    pub fn lose(&self, id: AttemptId) {
        let started = clock::time(Instant(self.now().0 - 1000));
        let state = json!({"running": {"startedAt": started}});
        self.report(id, "Failed", &state);
    }

    /// The kubelet of `node-1` refuses the attempt's pod.
    pub fn reject(&self, id: AttemptId, reason: &str) {
        let status = json!({"phase": "Failed", "reason": reason,
            "message": "Pod was rejected: not here"});
        self.write_status(id, status);
    }

    /// An init container of the attempt's pod ended with this code.
    pub fn fail_init(&self, id: AttemptId, code: i32) {
        let container = |name: &str, state: serde_json::Value| {
            json!([{"name": name, "ready": false, "restartCount": 0, "image": "i", "imageID": "i",
                "state": state}])
        };
        let waiting = json!({"waiting": {"reason": "PodInitializing"}});
        let ended = json!({"terminated": {"exitCode": code}});
        self.write_status(
            id,
            json!({"phase": "Failed",
                "initContainerStatuses": container("prepare", ended),
                "containerStatuses": container("task", waiting)}),
        );
    }

    /// Another client deletes the attempt's pod, which must be gone by then.
    pub fn delete(&self, id: AttemptId, due: Instant) {
        let name = pod_name(&self.job(), id);
        let mut world = self.world.lock();
        let pod = world.pods.get_mut(&name).expect("the pod is there");
        pod.metadata.deletion_timestamp = Some(clock::time(due));
    }

    /// The attempt's pod was placed on this node, and has not reported since.
    pub fn place(&self, id: AttemptId, node: &str) {
        let name = pod_name(&self.job(), id);
        let mut world = self.world.lock();
        let pod = world.pods.get_mut(&name).expect("the pod is there");
        let spec = pod.spec.as_mut().expect("a template");
        spec.node_name = Some(node.to_owned());
    }

    fn report(&self, id: AttemptId, phase: &str, state: &serde_json::Value) {
        let status = json!({"phase": phase, "containerStatuses": [{"name": "task",
            "ready": false, "restartCount": 0, "image": "i", "imageID": "i", "state": state}]});
        self.write_status(id, status);
    }

    fn write_status(&self, id: AttemptId, status: serde_json::Value) {
        let name = pod_name(&self.job(), id);
        let mut world = self.world.lock();
        let pod = world.pods.get_mut(&name).expect("the pod is there");
        if let Some(spec) = &mut pod.spec {
            spec.node_name.get_or_insert_with(|| "node-1".to_owned());
        }
        pod.status = serde_json::from_value(status).expect("status");
    }

    /// Ends the containers of deleted pods; whether there were any.
    pub fn kill_deleted(&self) -> bool {
        let doomed = |pod: &&Pod| pod.metadata.deletion_timestamp.is_some() && !has_ended(pod);
        let pods = self.pods();
        let ids: Vec<AttemptId> = pods.iter().filter(doomed).map(attempt_id).collect();
        for &id in &ids {
            self.exit(id, 143, self.now());
        }
        self.world.lock().collect_garbage();
        !ids.is_empty()
    }
}

/// Task and attempt by the pod's labels.
pub fn attempt_id(pod: &Pod) -> AttemptId {
    let facts = crate::cluster::pod::PodFacts::from_pod(&pod.clone().into(), Instant(0));
    let attempt = facts.attempt.expect("an attempt");
    (attempt.task, attempt.number)
}
