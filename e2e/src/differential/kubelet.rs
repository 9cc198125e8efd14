//! The statuses that kubelets and the garbage collector of pods write.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Container, ContainerStatus, Pod};
use serde_json::{Value, json};

use super::case::{End, OnDelete};
use super::view::index;
use crate::wait::is_ready;

/// How long ago containers ended. No controller then waits before it tries again, and clocks of nodes may differ as much.
const AGO: SignedDuration = SignedDuration::from_secs(30);
/// The earliest start of a pod by its status, in seconds of Unix time.
const FIRST_START: i64 = 1_577_836_800;

/// A container's state.
#[derive(Clone, Copy)]
enum State {
    Runs,
    Waits,
    Ended(i32),
}

/// A pod that runs and is ready, after this number of acts. The built-in controller stops any of the pods that became ready in
/// the same second, so the acts and the index decide when that was.
pub fn running(pod: &Pod, acts: usize) -> Value {
    let later = 10 * u32::try_from(acts).unwrap_or(0) + index(pod).unwrap_or(0);
    let start = Timestamp::from_second(FIRST_START + i64::from(later)).unwrap_or_default();
    json!({
        "phase": "Running",
        "startTime": seconds(start),
        "conditions": conditions(pod, Some(start), None),
        "containerStatuses": statuses(pod, false, State::Runs),
        "initContainerStatuses": statuses(pod, true, State::Runs),
    })
}

/// A pod that runs and is not ready.
pub fn not_ready(pod: &Pod) -> Value {
    json!({"conditions": conditions(pod, None, None)})
}

/// A pod whose container was started again; nothing if it never is. Position 0 is the main container.
pub fn restarted(pod: &Pod, container: usize) -> Option<Value> {
    let spec = pod.spec.as_ref()?;
    let init = spec.init_containers.as_deref().unwrap_or_default();
    let (list, position) = match container.checked_sub(1) {
        Some(position) if !init.is_empty() => ("initContainerStatuses", position % init.len()),
        _ => ("containerStatuses", 0),
    };
    let own = match list {
        "containerStatuses" => spec.containers.first()?,
        _ => init.get(position)?,
    };
    let is_started_again = is_sidecar(own) || spec.restart_policy.as_deref() == Some("OnFailure");
    if !is_started_again {
        return None;
    }
    let mut all = statuses(pod, list != "containerStatuses", State::Runs);
    let status = all.get_mut(position)?;
    status["restartCount"] = json!(status["restartCount"].as_i64()? + 1);
    status["lastState"] = terminated(1, "Error");
    // The change of readiness shows in the Job's status, once its controller has seen the restart.
    let since = (!is_ready(pod)).then(|| started(pod));
    Some(json!({list: all, "conditions": conditions(pod, since, None)}))
}

/// A pod that came to an end by itself.
pub fn ended(pod: &Pod, end: End) -> Value {
    let mut status = match end {
        End::Success => finished(pod, 0),
        End::Error => finished(pod, 1),
        End::Exit42 => finished(pod, 42),
        End::OomKilled | End::NodePressure => finished(pod, 137),
        End::PodDeadline | End::NodeShutdown => finished(pod, 0),
        End::Collected => json!({}),
        End::InitFailed => json!({
            "containerStatuses": statuses(pod, false, State::Waits),
            "initContainerStatuses": statuses(pod, true, State::Ended(1)),
        }),
    };
    status["phase"] = json!(if end == End::Success {
        "Succeeded"
    } else {
        "Failed"
    });
    let (reason, disruption) = match end {
        End::PodDeadline => (Some("DeadlineExceeded"), None),
        End::NodeShutdown => (Some("Terminated"), Some("TerminationByKubelet")),
        End::NodePressure => (Some("Evicted"), Some("TerminationByKubelet")),
        End::Collected => (None, Some("DeletionByPodGC")),
        End::OomKilled => {
            status["containerStatuses"][0]["state"] = terminated(137, "OOMKilled");
            (None, None)
        }
        _ => (None, None),
    };
    status["reason"] = json!(reason);
    status["conditions"] = json!(conditions(pod, None, disruption));
    status
}

/// A pod whose containers react to its deletion.
pub fn killed(pod: &Pod, on_delete: OnDelete) -> Value {
    let code = if on_delete == OnDelete::ExitZero {
        0
    } else {
        143
    };
    let mut status = finished(pod, code);
    status["phase"] = json!(if code == 0 { "Succeeded" } else { "Failed" });
    status["conditions"] = json!(conditions(pod, None, None));
    status
}

/// Main containers have ended: the first one with this code, others with 0.
fn finished(pod: &Pod, code: i32) -> Value {
    let mut containers = statuses(pod, false, State::Ended(0));
    if let Some(first) = containers.first_mut() {
        first["state"] = terminated(code, if code == 0 { "Completed" } else { "Error" });
    }
    json!({
        "containerStatuses": containers,
        "initContainerStatuses": statuses(pod, true, State::Ended(0)),
    })
}

fn statuses(pod: &Pod, are_init: bool, state: State) -> Vec<Value> {
    let Some(spec) = pod.spec.as_ref() else {
        return Vec::new();
    };
    let containers = match are_init {
        true => spec.init_containers.as_deref().unwrap_or_default(),
        false => &spec.containers,
    };
    containers
        .iter()
        .map(|own| status(pod, own, are_init, state))
        .collect()
}

fn status(pod: &Pod, container: &Container, is_init: bool, state: State) -> Value {
    // Containers of the first kind have ended before those of the pod begin.
    let state = match state {
        State::Runs if is_init && !is_sidecar(container) => State::Ended(0),
        other => other,
    };
    let runs = matches!(state, State::Runs);
    let state = match state {
        State::Runs => json!({"running": {"startedAt": seconds(Timestamp::now())}}),
        State::Waits => json!({"waiting": {"reason": "PodInitializing"}}),
        State::Ended(code) => terminated(code, if code == 0 { "Completed" } else { "Error" }),
    };
    let restarts = known(pod, &container.name).map_or(0, |known| known.restart_count);
    json!({"name": container.name, "image": container.image, "imageID": "", "ready": runs,
        "started": runs, "restartCount": restarts, "state": state})
}

fn known<'p>(pod: &'p Pod, name: &str) -> Option<&'p ContainerStatus> {
    let status = pod.status.as_ref()?;
    let main = status.container_statuses.iter().flatten();
    let mut all = main.chain(status.init_container_statuses.iter().flatten());
    all.find(|status| status.name == name)
}

fn is_sidecar(container: &Container) -> bool {
    container.restart_policy.as_deref() == Some("Always")
}

fn terminated(code: i32, reason: &str) -> Value {
    let ended = Timestamp::now().saturating_sub(AGO).unwrap_or_default();
    let started = ended
        .saturating_sub(SignedDuration::from_secs(10))
        .unwrap_or_default();
    json!({"terminated": {"exitCode": code, "reason": reason, "startedAt": seconds(started),
        "finishedAt": seconds(ended)}})
}

/// When the pod started by its status.
fn started(pod: &Pod) -> Timestamp {
    let status = pod.status.as_ref();
    let start = status.and_then(|status| status.start_time.as_ref());
    start.map_or_else(Timestamp::now, |start| start.0)
}

/// Conditions of a pod that is ready since then or not ready, those of the control plane included, since a merge
/// replaces the list.
fn conditions(pod: &Pod, ready: Option<Timestamp>, disruption: Option<&str>) -> Vec<Value> {
    let own = ["Ready", "ContainersReady", "DisruptionTarget"];
    let known = pod
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten());
    let mut all: Vec<Value> = known
        .filter(|known| {
            !own.contains(&known.type_.as_str()) || (known.type_ == own[2] && disruption.is_none())
        })
        .map(|known| json!(known))
        .collect();
    let then = Timestamp::now().saturating_sub(AGO).unwrap_or_default();
    let status = if ready.is_some() { "True" } else { "False" };
    let since = seconds(ready.unwrap_or(then));
    for type_ in &own[..2] {
        all.push(json!({"type": type_, "status": status, "lastTransitionTime": since}));
    }
    all.extend(disruption.map(|reason| {
        json!({"type": own[2], "status": "True", "reason": reason, "lastTransitionTime": seconds(then)})
    }));
    all
}

/// Kubelets tell whole seconds.
fn seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(policy: &str, status: Value) -> Pod {
        let pod = json!({"metadata": {"name": "a"}, "status": status, "spec": {
            "restartPolicy": policy,
            "initContainers": [{"name": "init"}, {"name": "sidecar", "restartPolicy": "Always"}],
            "containers": [{"name": "main"}, {"name": "second"}]}});
        serde_json::from_value(pod).unwrap()
    }

    #[test]
    fn only_the_main_container_fails() {
        let status = ended(&pod("Never", json!({})), End::Exit42);
        assert_eq!(status["phase"], "Failed");
        let code = |position: usize| {
            status["containerStatuses"][position]["state"]["terminated"]["exitCode"].as_i64()
        };
        assert_eq!((code(0), code(1)), (Some(42), Some(0)));
    }

    #[test]
    fn a_pod_cut_off_by_its_node_failed_with_exit_code_0() {
        let status = ended(&pod("Never", json!({})), End::NodeShutdown);
        assert_eq!(status["phase"], "Failed");
        let state = &status["containerStatuses"][0]["state"];
        assert_eq!(state["terminated"]["exitCode"], 0);
        let conditions = status["conditions"].as_array().unwrap();
        assert!(
            conditions
                .iter()
                .any(|own| own["reason"] == "TerminationByKubelet")
        );
    }

    #[test]
    fn restarts_add_up_where_the_policy_has_them() {
        let before = json!({"containerStatuses": [{"name": "main", "restartCount": 2, "ready": true,
            "image": "", "imageID": ""}]});
        let status = restarted(&pod("OnFailure", before), 0).unwrap();
        assert_eq!(status["containerStatuses"][0]["restartCount"], 3);
        assert_eq!(restarted(&pod("Never", json!({})), 0), None);
        assert_eq!(restarted(&pod("Never", json!({})), 1), None);
        let status = restarted(&pod("Never", json!({})), 2).unwrap();
        assert_eq!(status["initContainerStatuses"][1]["restartCount"], 1);
    }

    #[test]
    fn a_condition_of_the_control_plane_stays() {
        let before = json!({"conditions": [{"type": "DisruptionTarget", "status": "True",
            "reason": "EvictionByEvictionAPI"}, {"type": "Ready", "status": "True"}]});
        let status = killed(&pod("Never", before), OnDelete::Killed);
        let types: Vec<_> = status["conditions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|own| &own["type"])
            .collect();
        assert_eq!(types, ["DisruptionTarget", "Ready", "ContainersReady"]);
    }
}
