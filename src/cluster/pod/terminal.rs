//! Evidence in a failed pod about its end: whether the kubelet's own report proves that nothing of
//! the pod runs any more, and the cause of the failure. The rules follow the statuses that kubelets
//! write (Kubernetes 1.34, `pkg/kubelet`: `kubelet.go`, `status/status_manager.go`,
//! `eviction/helpers.go`).
//!
//! The phase `Failed` alone proves nothing. Garbage collection also sets it, for pods of machines
//! that are only out of reach, and leaves the rest of the status as the kubelet last wrote it.

use k8s_openapi::api::core::v1::{ContainerStatus, Pod, PodSpec, PodStatus};

use crate::cluster::pod::{
    have_ended, have_exited_with_0, init_statuses, main_statuses, phase, terminated,
};

/// Start of the message of every pod that a kubelet has refused (`rejectPod`), whatever the reason.
const REFUSED: &str = "Pod was rejected";

/// Reasons of refusals, for kubelets with messages of their own.
const REFUSALS: [&str; 2] = ["UnexpectedAdmissionError", "NodeAffinity"];

/// Start of the reason of a refusal for lack of a resource, whose name follows.
const OUT_OF: &str = "OutOf";

/// Reasons by which a kubelet or the node's controller ends a pod for the node's sake.
const DISRUPTIONS: [&str; 5] = [
    "Evicted",
    "NodeShutdown",
    "NodeLost",
    "Terminated",
    "Preempting",
];

/// Whether the kubelet itself reported that nothing of the pod runs any more.
pub(super) fn is_gone(pod: &Pod) -> bool {
    is_refused(pod) || has_run_out(pod) || never_ran(pod)
}

/// A kubelet refused the pod before it started anything of it. It writes no container statuses then,
/// and the phase only once no container could be running.
pub(super) fn is_refused(pod: &Pod) -> bool {
    let Some(status) = pod.status.as_ref().filter(|_| phase(pod) == "Failed") else {
        return false;
    };
    let message = status.message.as_deref().unwrap_or_default();
    let reason = status.reason.as_deref().unwrap_or_default();
    main_statuses(pod).next().is_none()
        && (message.starts_with(REFUSED)
            || reason.starts_with(OUT_OF)
            || REFUSALS.contains(&reason))
}

/// Every main container has ended, and none is started again.
fn has_run_out(pod: &Pod) -> bool {
    // Between two runs of a container that is restarted in place, it has ended too.
    let is_final = || follow_template(pod) && !restarts(pod.spec.as_ref());
    have_exited_with_0(pod) || have_ended(pod) && (is_final() || kubelet_ended(pod))
}

/// Whether the template's restart policy is that of every main container.
pub(super) fn follow_template(pod: &Pod) -> bool {
    let spec = pod.spec.as_ref();
    let mut containers = spec.into_iter().flat_map(|spec| &spec.containers);
    containers.all(|container| container.restart_policy.is_none())
}

/// Whether containers that fail are restarted in place.
fn restarts(spec: Option<&PodSpec>) -> bool {
    let policy = spec.and_then(|spec| spec.restart_policy.as_deref());
    policy.is_some_and(|policy| policy != "Never")
}

/// No main container ever ran, and none will: an init container failed for good, or the pod was
/// ended while it was being initialized. Kubelets leave main containers waiting then.
fn never_ran(pod: &Pod) -> bool {
    let is_running = |status: &ContainerStatus| {
        let state = status.state.as_ref();
        state.is_some_and(|state| state.running.is_some())
    };
    if phase(pod) != "Failed"
        || main_statuses(pod).any(has_started)
        || init_statuses(pod).any(is_running)
    {
        return false;
    }
    let was_torn_down = || init_statuses(pod).any(has_started) && has_no_sandbox(pod);
    has_failed_to_initialize(pod) || kubelet_ended(pod) || was_torn_down()
}

/// Whether the container ever ran.
pub(super) fn has_started(status: &ContainerStatus) -> bool {
    let waits = status.state.as_ref();
    let waits = waits.is_none_or(|state| state.running.is_none() && state.terminated.is_none());
    let before = status.last_state.as_ref();
    !waits || before.is_some_and(|state| state.terminated.is_some())
}

/// An init container that is not restarted ended with another code than 0, or was killed. Sidecars
/// are restarted.
fn has_failed_to_initialize(pod: &Pod) -> bool {
    let spec = pod.spec.as_ref();
    let containers = spec.and_then(|spec| spec.init_containers.as_ref());
    let mut plain = containers
        .into_iter()
        .flatten()
        .filter(|container| container.restart_policy.is_none() && !restarts(spec));
    plain.any(|container| {
        let mut statuses = init_statuses(pod);
        let status = statuses.find(|status| status.name == container.name);
        let end = status.and_then(terminated);
        end.is_some_and(|end| end.exit_code != 0)
    })
}

/// Whether the kubelet, not garbage collection, has set the pod's last phase. Only the kubelet
/// writes this reason, once it starts nothing of the pod any more.
fn kubelet_ended(pod: &Pod) -> bool {
    let reason = condition(pod.status.as_ref(), "ContainersReady", "False");
    let is_over = matches!(phase(pod), "Failed" | "Succeeded");
    is_over && matches!(reason, Some("PodFailed" | "PodCompleted"))
}

/// Whether the kubelet has removed the sandbox that the containers share. After a container of a
/// pod has begun to start, the sandbox exists until all of them have ended.
fn has_no_sandbox(pod: &Pod) -> bool {
    condition(pod.status.as_ref(), "PodReadyToStartContainers", "False").is_some()
}

/// The reason of a condition, if it is there with that status.
fn condition<'a>(status: Option<&'a PodStatus>, type_: &str, is: &str) -> Option<&'a str> {
    let conditions = status.and_then(|status| status.conditions.as_ref());
    let mut conditions = conditions.into_iter().flatten();
    let found = conditions.find(|one| one.type_ == type_ && one.status == is)?;
    Some(found.reason.as_deref().unwrap_or_default())
}

/// The pod did not cause the failure: it has a disruption condition, or the kubelet refused or
/// evicted it, or another client deleted it. An eviction for a limit of the pod's own is a failure
/// of the task.
pub(super) fn is_disrupted(pod: &Pod) -> bool {
    let status = pod.status.as_ref();
    let reason = status.and_then(|status| status.reason.as_deref());
    !exceeded_own_limit(status)
        && (condition(status, "DisruptionTarget", "True").is_some()
            || pod.metadata.deletion_timestamp.is_some()
            || is_refused(pod)
            || reason.is_some_and(|reason| DISRUPTIONS.contains(&reason)))
}

/// Whether the kubelet evicted the pod because it used more of the node's disk than it allows itself:
/// a limit for ephemeral storage, or an emptyDir's `sizeLimit`.
fn exceeded_own_limit(status: Option<&PodStatus>) -> bool {
    let evicted = status.filter(|status| status.reason.as_deref() == Some("Evicted"));
    let message = evicted.and_then(|status| status.message.as_deref());
    message.is_some_and(|message| {
        message.starts_with("Usage of EmptyDir volume ")
            || message.starts_with("Pod ephemeral local storage usage exceeds the total limit")
            || (message.starts_with("Container ")
                && message.contains(" exceeded its local ephemeral storage limit "))
    })
}

#[cfg(test)]
mod tests;
